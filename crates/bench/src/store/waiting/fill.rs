//! Runs and timers that wait, written as rows.

use jiff::{SignedDuration, Timestamp};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, SqliteConnection};

use crate::population::Database;

/// Why something waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Runs of one job, which is at work.
    HeldByOneJob,
    /// Runs of a hundred jobs, all of which are at work.
    HeldByManyJobs,
    /// Runs with a negative priority, while others fill the places.
    LowPriority,
    /// Runs of a job that is paused.
    Paused,
    /// Runs that have failed and are tried again later.
    Backoff,
    /// Runs of a target that has no room.
    FullTarget,
    /// Due timers of a target that no live instance serves.
    UnservedTimers,
}

pub(super) const KINDS: [Kind; 7] = [
    Kind::HeldByOneJob,
    Kind::HeldByManyJobs,
    Kind::LowPriority,
    Kind::Paused,
    Kind::Backoff,
    Kind::FullTarget,
    Kind::UnservedTimers,
];

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::HeldByOneJob => "held runs of 1 job",
            Kind::HeldByManyJobs => "held runs of 100 jobs",
            Kind::LowPriority => "negative priority",
            Kind::Paused => "paused",
            Kind::Backoff => "backoff",
            Kind::FullTarget => "full target",
            Kind::UnservedTimers => "due timers, unserved target",
        }
    }

    /// Jobs with a run that is at work and others that are held.
    fn busy_jobs(self) -> u32 {
        match self {
            Kind::HeldByOneJob => 1,
            Kind::HeldByManyJobs => 100,
            _ => 0,
        }
    }
}

/// Writes this many rows that have waited since long before `slot`, or until long after it.
pub(super) async fn fill(
    place: Database<'_>,
    kind: Kind,
    waiting: u32,
    slot: Timestamp,
) -> Result<(), Box<dyn std::error::Error>> {
    if waiting == 0 {
        return Ok(());
    }
    match place {
        Database::Postgres(url) => {
            let id = |number: &str| format!("lpad(to_hex({number}), 32, '0')::uuid");
            let at = |time: Timestamp| format!("timestamptz '{time}' + n * interval '1 millisecond'");
            let sql = rows(kind, waiting, slot, id, at);
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut PgConnection::connect(url).await?).await?;
        }
        Database::Sqlite(path) => {
            let id = |number: &str| format!("unhex(printf('%032x', {number}))");
            let at = |time: Timestamp| format!("{} + n * 1000", time.as_microsecond());
            let sql = rows(kind, waiting, slot, id, at).replace("everbell.", "everbell_");
            let mut connection: SqliteConnection = SqliteConnectOptions::new().filename(path).connect().await?;
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await?;
        }
    }
    Ok(())
}

/// The statements for both databases, which write ids and times in their own way.
fn rows(
    kind: Kind,
    waiting: u32,
    slot: Timestamp,
    id: impl Fn(&str) -> String,
    at: impl Fn(Timestamp) -> String,
) -> String {
    const DAY: SignedDuration = SignedDuration::from_hours(24);
    let numbers =
        |count: u32| format!("with recursive n (n) as (select 1 union all select n + 1 from n where n < {count})");
    let (before, after) = (at(slot - DAY), at(slot + DAY));
    if kind == Kind::UnservedTimers {
        return format!(
            "insert into everbell.timers (job_id, org_id, target, next_run_at, last_slot_at)
             {} select j.id, 'org-' || n, 'elsewhere', {before}, j.created_at
             from n cross join everbell.jobs j where j.job_key = 'template';
             analyze;",
            numbers(waiting)
        );
    }
    let busy = kind.busy_jobs();
    let job = if busy == 0 { id("n") } else { id(&format!("n % {busy}")) };
    let target = if kind == Kind::FullTarget { "full" } else { "noop" };
    let available = if kind == Kind::Backoff { &after } else { &before };
    let priority = if kind == Kind::LowPriority { -1 } else { 0 };
    let attempt = u32::from(kind == Kind::Backoff);
    let (held, paused) = (busy > 0, kind == Kind::Paused);
    let run = id("n");
    format!(
        "insert into everbell.active_runs (run_id, job_id, org_id, target, status, held, max_concurrent, attempt,
             available_at, runner_id, lease_until, priority, paused)
         {} select {run}, {job}, '', '{target}', case when n <= {busy} then 'running' else 'pending' end,
             {held} and n > {busy}, 1, case when n <= {busy} then 1 else {attempt} end, {available},
             case when n <= {busy} then {run} end, case when n <= {busy} then {after} end, {priority}, {paused}
         from n;
         analyze;",
        numbers(waiting + busy)
    )
}
