//! A job that is made while the program runs, fires once, and is done.
//!
//! `cargo run -p everbell --example one_time`. It ends by itself, or in order on ctrl-c or SIGTERM.

use std::time::Duration;

use everbell::{Event, Everbell, Payload, RunError, Schedule};

#[allow(clippy::print_stdout, reason = "an example shows what it does")]
async fn send(Payload(invoice): Payload<u64>) -> Result<(), RunError> {
    println!("sending invoice {invoice}");
    Ok(())
}

#[tokio::main]
#[allow(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> anyhow::Result<()> {
    let bell = Everbell::builder().database("sqlite::memory:").target("invoice.send", send).build().await?;
    let at = bell.now() + Duration::from_secs(1);
    let job = bell.jobs().create(Schedule::once("invoice-42", at).target("invoice.send").payload(42)).await?;
    println!("{} fires at {at}", job.job.definition.key);

    let mut events = bell.events();
    let finished = async { while !matches!(events.recv().await.as_deref(), Some(Event::Finished { .. }) | None) {} };
    bell.run_until(async {
        tokio::select! {
            () = finished => {}
            () = everbell::shutdown_signal() => {}
        }
    })
    .await?;

    // Retired, because it has had its time; or still active, if a signal came first.
    let job = bell.jobs().get("invoice-42").await?;
    println!("{} is {}", job.job.definition.key, job.job.state.status);
    Ok(())
}
