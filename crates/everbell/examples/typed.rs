//! Payloads and states with types, results, and errors that are tried again or not.
//!
//! `cargo run -p everbell --example typed`. It ends when every run has ended, or in order on ctrl-c or SIGTERM.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use everbell::{Backoff, Event, Everbell, Payload, Run, RunError, RunNow, Schedule, State, TypedTarget};

#[derive(serde::Serialize, serde::Deserialize)]
struct Briefing {
    org: u64,
}

/// The target and the type of its payload: the compiler checks that jobs and the handler agree.
const BRIEF: TypedTarget<Briefing> = TypedTarget::new("brief");

/// The result of a run, shown beside it.
#[derive(serde::Serialize)]
struct Sent {
    mails: u32,
}

/// Simulates a mail server that is busy the first time.
#[derive(Clone, Default)]
struct Mailer(Arc<AtomicU32>);

impl Mailer {
    /// A real one would send nothing twice for the same key.
    fn send(&self, org: u64, _idempotency_key: &str) -> std::io::Result<u32> {
        match self.0.fetch_add(1, Ordering::Relaxed) {
            0 => Err(std::io::Error::other("the mail server is busy")),
            _ => Ok(u32::try_from(org % 100).unwrap_or_default()),
        }
    }
}

async fn brief(Payload(briefing): Payload<Briefing>, State(mailer): State<Mailer>, run: Run) -> Result<Sent, RunError> {
    run.progress(0.1, "sending");
    // An error of any kind is the failure `handler_error`, which is tried again.
    let mails = mailer.send(briefing.org, &run.idempotency_key())?;
    if mails == 0 {
        // An own code, not to be tried again.
        return Err(RunError::fail("no_recipients", format!("org {} has no members", briefing.org)).fatal());
    }
    run.log(format!("sent {mails} mails"));
    Ok(Sent { mails })
}

#[tokio::main]
#[allow(clippy::print_stdout, reason = "an example shows what it does")]
async fn main() -> anyhow::Result<()> {
    let patient = Backoff { initial: Duration::from_secs(1), max: Duration::from_secs(10) };
    let bell = Everbell::builder()
        .database("sqlite::memory:")
        .state(Mailer::default())
        .target(BRIEF, brief)
        .schedule(
            Schedule::cron("daily-briefing", "0 8 * * mon-fri")
                .tz("Europe/Paris")
                .to(&BRIEF, Briefing { org: 7 })
                .retry(3, patient),
        )
        .build()
        .await?;
    println!("{}", bell.synced());

    let mut events = bell.events();
    let jobs = bell.jobs().by("example");
    let mut waiting = vec![
        jobs.run_now("daily-briefing").await?,
        jobs.run_now("daily-briefing").payload(Briefing { org: 100 }).force().await?,
    ];
    // A payload that the handler cannot read is refused at once.
    match jobs.run_now("daily-briefing").payload("no briefing at all").await {
        Err(error) => println!("refused: {error}"),
        Ok(_) => anyhow::bail!("this payload is no briefing"),
    }
    let all_ended = async {
        while let Some(event) = events.recv().await {
            if let Event::Finished { run, .. } = &*event {
                waiting.retain(|asked: &RunNow| asked.run().id != run.id);
            }
            if waiting.is_empty() {
                return;
            }
        }
    };
    bell.run_until(async {
        tokio::select! {
            () = all_ended => {}
            () = everbell::shutdown_signal() => {}
        }
    })
    .await?;

    let page = everbell::PageRequest { limit: 10, after: None };
    let runs = bell.runs().list(&everbell::RunFilter::default(), &page).await?.items;
    for run in &runs {
        let said = run.result.as_ref().map(ToString::to_string);
        let failed = run.failure.as_ref().map(|failure| format!("{}: {}", failure.code.as_str(), failure.message));
        println!("{} after {} attempt(s): {}", run.status, run.attempt, said.or(failed).unwrap_or_default());
    }
    Ok(())
}
