//! How a program tests its own schedules: a week in a moment, over a change of the clocks, with a crash and an outage in it.
//!
//! `cargo run -p everbell --example testing`. In a real program `a_week` is a `#[tokio::test]`, and there is no `main`.

use std::time::Duration;

use everbell::testing::{GapReason, RunSetup, TestBell};
use everbell::{Backoff, Builder, Everbell, Payload, Run, RunError, RunStatus, Schedule};

async fn brief(Payload(team): Payload<String>, run: Run) -> Result<String, RunError> {
    if run.attempt() == 1 {
        return Err(RunError::fail("mail_server", "greylisted, try again"));
    }
    Ok(format!("briefed {team}"))
}

/// The builder that the program and its tests share.
fn app() -> Builder {
    let backoff = Backoff { initial: Duration::from_secs(30), max: Duration::from_mins(10) };
    Everbell::builder().database("sqlite:briefings.db").target("brief", brief).schedule(
        Schedule::cron("briefing", "0 8 * * mon-fri")
            .tz("Europe/Paris")
            .target("brief")
            .payload("sales")
            .retry(3, backoff),
    )
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    tokio::select! {
        () = a_week() => {}
        () = everbell::shutdown_signal() => {}
    }
}

#[allow(clippy::print_stdout, reason = "an example shows what it does")]
async fn a_week() {
    let mut test = TestBell::start(app(), "2027-03-26T12:00:00Z").await;

    test.advance_to("2027-03-30T12:00:00Z").await;
    let ran = test.assert_ran("briefing").await.times(2).with_payload(&"sales").with_status(RunStatus::Succeeded);
    let ran = ran.at(["2027-03-29T06:00:00Z", "2027-03-30T06:00:00Z"]);
    println!("after the clocks went forward:{ran}");

    let said: Result<String, RunError> = test.perform("brief", "support").await;
    println!("the handler alone, at its first attempt: {}", said.unwrap_or_else(|error| error.to_string()));
    let said: Result<String, RunError> = test.perform_with("brief", "support", RunSetup::new().attempt(2)).await;
    println!("and at its second: {}", said.unwrap_or_else(|error| error.to_string()));

    test.crash_during("briefing").await;
    test.advance_by(Duration::from_mins(2)).await;
    test.assert_settled().await;
    println!("with a crash in between:{}", test.assert_ran("briefing").await.times(3));
    println!("next: {}", test.next_fires("briefing", 1).await.join(""));

    test.down_for(Duration::from_hours(48)).await;
    test.advance_by(Duration::from_mins(2)).await;
    let ran = test.assert_ran("briefing").await.times(4);
    let last = &ran.runs()[3];
    println!("after two days without a process: {} slot(s) folded into the run of {}", last.folded, last.scheduled_at);
    test.assert_gaps("briefing").await.slots(1).because(GapReason::Coalesced);
    test.assert_skipped("briefing").await.times(0);
}
