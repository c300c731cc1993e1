//! A job that is made while the program runs, fires once, and is done.
//!
//! `cargo run -p everbell --example one_time`. It ends by itself.

use std::time::Duration;

use everbell::{Event, Everbell, JobStatus, Payload, RunError, Schedule};

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
    bell.run_until(async { while !matches!(events.recv().await.as_deref(), Some(Event::Finished { .. }) | None) {} })
        .await?;

    let job = bell.jobs().get("invoice-42").await?;
    anyhow::ensure!(job.job.state.status == JobStatus::Retired, "it has had its time");
    println!("{} is {}", job.job.definition.key, job.job.state.status);
    Ok(())
}
