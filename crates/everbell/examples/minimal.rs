//! The smallest program: one function, once a second.
//!
//! `cargo run -p everbell --example minimal`, and ctrl-c or SIGTERM to stop it.

use std::time::Duration;

use everbell::{Everbell, Run, Schedule};

#[allow(clippy::print_stdout, reason = "an example shows what it does")]
async fn tick(run: Run) {
    println!("tick {}", run.scheduled_at());
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let bell = Everbell::builder()
        .database("sqlite::memory:")
        .target("tick", tick)
        .schedule(Schedule::every("every-second", Duration::from_secs(1)).target("tick"))
        .build()
        .await?;
    bell.run_until(stopped()).await?;
    Ok(())
}

/// SIGTERM, ctrl-c, or so many seconds as `EVERBELL_EXAMPLE_SECONDS` says.
async fn stopped() {
    let seconds = std::env::var("EVERBELL_EXAMPLE_SECONDS").ok().and_then(|text| text.parse().ok());
    tokio::select! {
        () = everbell::shutdown_signal() => {}
        () = tokio::time::sleep(Duration::from_secs(seconds.unwrap_or(u64::MAX / 2))) => {}
    }
}
