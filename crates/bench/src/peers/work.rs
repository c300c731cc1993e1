//! One piece of work, put through one peer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use everbell_store::testing::{OwnServer, TestDatabase};
use jiff::Timestamp;
use serde_json::json;
use sqlx::{Connection, PgConnection};

use super::catalog::PEERS;
use super::child::{Missing, Program};
use super::options::Entry;
use super::report::{Report, Timing};
use crate::measure::Stopwatch;

/// How long a peer may take to enqueue everything.
const SEED_LIMIT: Duration = Duration::from_mins(2);
/// How often a peer's own rows are asked for what is unfinished.
const LOOK: Duration = Duration::from_millis(5);
/// The time between the start of a program and its first timed job; the second is for peers that enqueue slowly.
const LEADS: [Duration; 2] = [Duration::from_secs(6), Duration::from_secs(30)];

/// The figures of one piece of work, by name.
pub(super) type Figures = BTreeMap<String, f64>;

/// The result of a piece of work.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) figures: Figures,
    /// The version that the peer reports.
    pub(super) version: String,
}

/// Where the work is done.
pub(super) struct Bench<'a> {
    pub(super) server: &'a OwnServer,
    pub(super) cache: &'a Path,
    pub(super) limit: Duration,
}

/// A program with a database and a folder of its own.
pub(super) struct Session {
    pub(super) database: TestDatabase,
    pub(super) program: Program,
    folder: PathBuf,
    jobs: u32,
}

impl Session {
    /// Starts the program of a peer with its work.
    pub(super) async fn start(bench: &Bench<'_>, entry: Entry, kind: &str, timing: &Timing) -> Result<Session, String> {
        let database = TestDatabase::empty_on(bench.server.url()).await;
        let name = format!("everbell-bench-peers-{}-{}", PEERS[entry.peer].name, uuid::Uuid::new_v4());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).map_err(|error| format!("create {}: {error}", folder.display()))?;
        let work = json!({
            "database": database.url(), "kind": kind, "best": entry.best, "jobs": timing.jobs,
            "base_ms": timing.base_ms, "spread_ms": timing.spread_ms, "results": folder.join("calls"),
        });
        let program = Program::start(&PEERS[entry.peer], bench.cache, &folder, &work).await?;
        Ok(Session { database, program, folder, jobs: timing.jobs })
    }

    /// Waits until everything is enqueued, and returns the peer's version.
    pub(super) async fn ready(&mut self, limit: Duration) -> Result<String, Missing> {
        let ready = self.program.expect("ready", limit).await?;
        Ok(ready["version"].as_str().unwrap_or("unknown").to_owned())
    }

    async fn report(self) -> Result<Report, String> {
        let Session { program, folder, jobs, database } = self;
        program.stop().await?;
        let text = std::fs::read_to_string(folder.join("calls")).map_err(|error| format!("read its calls: {error}"))?;
        let report = Report::parse(&text, jobs);
        let _best_effort = std::fs::remove_dir_all(&folder);
        drop(database);
        report
    }
}

/// Drains jobs that are all due: seconds from the start of the worker until the last one is finished in the peer's rows.
pub(super) async fn drain(bench: &Bench<'_>, entry: Entry, jobs: u32) -> Result<Measured, String> {
    let timing = Timing { base_ms: now_ms(), spread_ms: 0, jobs };
    let mut session = Session::start(bench, entry, "drain", &timing).await?;
    let ready = session.ready(SEED_LIMIT).await;
    let version = ready.map_err(|missing| missing.say("enqueue everything", SEED_LIMIT))?;
    let mut connection = connect(session.database.url()).await?;
    settle_down(&mut connection).await.map_err(|error| error.to_string())?;
    let watch = Stopwatch::start();
    session.program.send("go").await?;
    let is_done = match session.program.expect("called", bench.limit).await {
        Ok(_) => finished(&mut connection, entry, bench.limit).await?,
        Err(Missing::TimedOut) => false,
        Err(Missing::Failed(reason)) => return Err(reason),
    };
    let seconds = watch.seconds();
    let report = session.report().await?;
    let called = report.called();
    let rate = if is_done { f64::from(jobs) } else { f64::from(called) } / seconds;
    let figures = [
        ("seconds", seconds),
        ("jobs_per_second", rate),
        ("called", f64::from(called)),
        ("repeated", f64::from(report.repeated())),
        ("complete", f64::from(u8::from(is_done && called == jobs))),
    ];
    Ok(Measured { figures: named(&figures), version })
}

/// Measures the lag of jobs that become due while the worker waits for them.
pub(super) async fn timed(bench: &Bench<'_>, entry: Entry, jobs: u32, spread: Duration) -> Result<Measured, String> {
    let mut late = String::new();
    for lead in LEADS {
        match timed_after(bench, entry, jobs, spread, lead).await {
            Err(Missing::TimedOut) => late = format!("it did not enqueue {jobs} jobs within {} s", lead.as_secs()),
            Err(Missing::Failed(reason)) => return Err(reason),
            Ok(measured) => return Ok(measured),
        }
    }
    Err(late)
}

async fn timed_after(
    bench: &Bench<'_>,
    entry: Entry,
    jobs: u32,
    spread: Duration,
    lead: Duration,
) -> Result<Measured, Missing> {
    let failed = Missing::Failed;
    // On a whole second, because some peers keep no finer time.
    let base_ms = (now_ms() + lead.as_millis() as i64).div_euclid(1_000) * 1_000;
    let timing = Timing { base_ms, spread_ms: spread.as_millis() as i64, jobs };
    let mut session = Session::start(bench, entry, "timed", &timing).await.map_err(failed)?;
    // A second for the worker to start.
    let version = session.ready(lead.saturating_sub(Duration::from_secs(2))).await?;
    session.program.send("go").await.map_err(failed)?;
    let is_done = match session.program.expect("called", lead + spread + bench.limit).await {
        Ok(_) => true,
        Err(Missing::TimedOut) => false,
        Err(other) => return Err(other),
    };
    let report = session.report().await.map_err(failed)?;
    let none = || failed("no job started in time".to_owned());
    let lag = report.lag(&timing).ok_or_else(none)?;
    let figures = [
        ("p50_ms", lag.p50),
        ("p99_ms", lag.p99),
        ("max_ms", lag.max),
        ("early", f64::from(lag.early)),
        ("called", f64::from(report.called())),
        ("repeated", f64::from(report.repeated())),
        ("complete", f64::from(u8::from(is_done && report.called() == jobs))),
    ];
    Ok(Measured { figures: named(&figures), version })
}

impl Missing {
    /// Says what did not happen.
    pub(super) fn say(self, what: &str, limit: Duration) -> String {
        match self {
            Missing::TimedOut => format!("it did not {what} within {} s", limit.as_secs()),
            Missing::Failed(reason) => reason,
        }
    }
}

/// Gives every peer the same start: statistics of its tables, and no dirty pages of those before it.
async fn settle_down(connection: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::raw_sql("analyze").execute(&mut *connection).await?;
    sqlx::raw_sql("checkpoint").execute(connection).await?;
    Ok(())
}

/// Waits until the peer's rows say that no job is unfinished.
async fn finished(connection: &mut PgConnection, entry: Entry, limit: Duration) -> Result<bool, String> {
    let query = PEERS[entry.peer].unfinished;
    let waited = Stopwatch::start();
    while waited.seconds() < limit.as_secs_f64() {
        let unfinished: bool = sqlx::query_scalar(query)
            .fetch_one(&mut *connection)
            .await
            .map_err(|error| format!("ask for unfinished jobs: {error}"))?;
        if !unfinished {
            return Ok(true);
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(false)
}

pub(super) async fn connect(url: &str) -> Result<PgConnection, String> {
    PgConnection::connect(url).await.map_err(|error| format!("connect to the database: {error}"))
}

#[allow(clippy::disallowed_methods, reason = "the time of a job is a wall time, which other programs read")]
pub(super) fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// Returns the time in words, to the second.
#[allow(clippy::disallowed_methods, reason = "the date of a figure is a wall time")]
pub(super) fn now() -> String {
    Timestamp::now().round(jiff::Unit::Second).unwrap_or_default().to_string()
}

pub(super) fn named(figures: &[(&str, f64)]) -> Figures {
    figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}
