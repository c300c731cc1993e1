//! One job for tenants all over the world: it fires for each at eight in the morning, their time.
//!
//! `cargo run -p everbell --example per_org`. A day passes in a moment; ctrl-c and SIGTERM end it before.

use everbell::testing::TestBell;
use everbell::{Everbell, JobKey, OrgId, OverrideWrite, Run, Schedule};

#[allow(clippy::print_stdout, reason = "an example shows what it does")]
async fn brief(run: Run) {
    let org = run.org().map_or("nobody", OrgId::as_str);
    let date = run.local_date().map_or_else(String::new, |date| format!(" for their {date}"));
    println!("{} {org}{date}", run.scheduled_at());
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    tokio::select! {
        done = a_day() => done,
        () = everbell::shutdown_signal() => Ok(()),
    }
}

#[allow(clippy::print_stdout, reason = "an example shows what it does")]
async fn a_day() -> anyhow::Result<()> {
    let app = Everbell::builder()
        .target("brief", brief)
        .schedule(Schedule::cron("briefing", "0 8 * * *").per_org().target("brief"));
    let mut test = TestBell::start(app, "2026-11-15T16:00:00Z").await;
    for (org, zone) in [("kiwi", "Pacific/Auckland"), ("lotus", "Asia/Tokyo"), ("lys", "Europe/Paris")] {
        test.org(org, zone).await;
    }
    let maple = test.org("maple", "America/Toronto").await.id;
    let later =
        OverrideWrite { job_key: JobKey::new("briefing")?, enabled: true, expression: Some("30 9 * * *".to_owned()) };
    test.orgs().set_override(&maple, &later).await?;
    test.advance_to("2026-11-16T16:00:00Z").await;

    // Tokyo has had its morning. In Toronto the same day has one too, and it is not fired twice.
    let lotus = OrgId::new("lotus")?;
    for job in test.orgs().what_if(&lotus, "America/Toronto", 1).await? {
        for day in job.what_if.days {
            println!("if lotus moved to Toronto: {} {}", day.date, day.verdict.as_str());
        }
    }
    Ok(())
}
