//! The same writes on PostgreSQL as bare statements on held connections: what there is to reach.

use std::str::FromStr;

use jiff::Timestamp;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{Rate, cpu};
use crate::measure::Stopwatch;

const DUE: &str = "with due as materialized (
    select job_id from timers where next_run_at <= timestamptz '2027-01-01T00:00:01Z' order by next_run_at limit $1
    for update skip locked)
  select job_id from due";
const CLAIM: &str = "with given as (select * from unnest($1::uuid[], $2::uuid[]) g (id, job_id)), new as (
    insert into runs (id, job_id, org_id, at, nonce, scheduled_at, created_at, trigger, target, catch_up, folded)
    select id, job_id, '', timestamptz '2027-01-01', 0, timestamptz '2027-01-01', timestamptz '2027-01-01T00:00:01Z',
           'schedule:0 0 1 1 *', 'noop', false, 0 from given
    on conflict do nothing returning id)
  insert into active_runs (run_id, job_id, org_id, target, status, held, max_concurrent, attempt, available_at)
  select g.id, g.job_id, '', 'noop', 'pending', false, 1, 0, timestamptz '2027-01-01' from given g join new using (id)";
/// As [`CLAIM`], with what [`START`] would write.
const CLAIM_RUNNING: &str = "with given as (select * from unnest($1::uuid[], $2::uuid[]) g (id, job_id)), new as (
    insert into runs (id, job_id, org_id, at, nonce, scheduled_at, created_at, trigger, target, catch_up, folded)
    select id, job_id, '', timestamptz '2027-01-01', 0, timestamptz '2027-01-01', timestamptz '2027-01-01T00:00:01Z',
           'schedule:0 0 1 1 *', 'noop', false, 0 from given
    on conflict do nothing returning id)
  insert into active_runs (run_id, job_id, org_id, target, status, held, max_concurrent, attempt, available_at,
                           runner_id, claimed_at, started_at, lease_until)
  select g.id, g.job_id, '', 'noop', 'running', false, 1, 1, timestamptz '2027-01-01', '00000000-0000-0000-0000-000000000003'::uuid,
         timestamptz '2027-01-01T00:00:01Z', timestamptz '2027-01-01T00:00:01Z', timestamptz '2027-01-01T00:00:31Z'
  from given g join new using (id)";
const ADVANCE: &str =
    "update timers t set next_run_at = timestamptz '2028-01-01', last_slot_at = timestamptz '2027-01-01'
  from unnest($1::uuid[]) g (job_id) where t.job_id = g.job_id and t.org_id = ''";
const START: &str = "with picked as materialized (
    select run_id from active_runs where target = 'noop' and status = 'pending' and available_at <= timestamptz '2027-01-01T00:00:01Z'
    order by available_at, run_id limit $1 for update skip locked)
  update active_runs a set status = 'running', attempt = a.attempt + 1, runner_id = $2,
    claimed_at = timestamptz '2027-01-01T00:00:01Z', started_at = timestamptz '2027-01-01T00:00:01Z',
    lease_until = timestamptz '2027-01-01T00:00:31Z'
  from picked p where a.run_id = p.run_id returning a.run_id";
const END: &str = "with gone as (
    delete from active_runs a using unnest($1::uuid[]) g (run_id)
    where a.run_id = g.run_id and a.attempt = 1 and a.status = 'running'
    returning a.run_id, a.attempt, a.runner_id, a.claimed_at, a.started_at)
  insert into outcomes (run_id, status, attempt, runner_id, claimed_at, started_at, finished_at)
  select run_id, 'succeeded', attempt, runner_id, claimed_at, started_at, timestamptz '2027-01-01T00:00:01Z' from gone";

/// Claims everything, then starts and ends everything.
pub(super) async fn lives(
    url: &str,
    batch: u32,
    connections: usize,
    runs: u32,
) -> Result<Rate, Box<dyn std::error::Error>> {
    let held = connect(url, connections).await?;
    let mut other = PgConnection::connect(url).await?;
    let before = cpu::with_backends(&mut other).await?;
    let watch = Stopwatch::start();
    let (held, claimed) = all(held, |connection| claim(connection, batch)).await?;
    let at_claim = watch.seconds();
    // Held until the end, because only living backends tell what they used.
    let (_held, ended) = all(held, |connection| run(connection, batch)).await?;
    let at_end = watch.seconds();
    let spent = cpu::with_backends(&mut other).await?.saturating_sub(before);
    assert_eq!((claimed, ended), (runs, runs), "every run lives once");
    Ok(Rate { claims: f64::from(runs) / at_claim, lives: f64::from(runs) / at_end, cpu: 0.0 }.with_cpu(spent, runs))
}

/// The same, but a run is claimed as running, and ended by whoever claimed it.
pub(super) async fn merged_lives(
    url: &str,
    batch: u32,
    connections: usize,
    runs: u32,
) -> Result<Rate, Box<dyn std::error::Error>> {
    let held = connect(url, connections).await?;
    let watch = Stopwatch::start();
    let (_, ended) = all(held, |connection| claim_and_end(connection, batch)).await?;
    let rate = f64::from(runs) / watch.seconds();
    assert_eq!(ended, runs, "every run lives once");
    Ok(Rate { claims: rate, lives: rate, cpu: 0.0 })
}

/// With the settings that the store has for its loops, so that nobody loses by bad plans.
async fn connect(url: &str, connections: usize) -> sqlx::Result<Vec<PgConnection>> {
    let plans = [("enable_seqscan", "off"), ("enable_bitmapscan", "off"), ("jit", "off")];
    let options = PgConnectOptions::from_str(url)?.options(plans).options([("plan_cache_mode", "force_generic_plan")]);
    let mut held = Vec::new();
    for _ in 0..connections {
        held.push(PgConnection::connect_with(&options).await?);
    }
    Ok(held)
}

async fn all<F>(
    held: Vec<PgConnection>,
    work: impl Fn(PgConnection) -> F,
) -> Result<(Vec<PgConnection>, u32), Box<dyn std::error::Error>>
where
    F: Future<Output = sqlx::Result<(PgConnection, u32)>> + Send + 'static,
{
    let mut working = JoinSet::new();
    for connection in held {
        working.spawn(work(connection));
    }
    let (mut back, mut total) = (Vec::new(), 0);
    while let Some(done) = working.join_next().await {
        let (connection, count) = done??;
        back.push(connection);
        total += count;
    }
    Ok((back, total))
}

async fn claim(mut connection: PgConnection, batch: u32) -> sqlx::Result<(PgConnection, u32)> {
    let mut total = 0;
    loop {
        let claimed = claim_batch(&mut connection, batch, CLAIM).await?;
        if claimed.is_empty() {
            return Ok((connection, total));
        }
        total += claimed.len() as u32;
    }
}

async fn claim_and_end(mut connection: PgConnection, batch: u32) -> sqlx::Result<(PgConnection, u32)> {
    let mut total = 0;
    loop {
        let claimed = claim_batch(&mut connection, batch, CLAIM_RUNNING).await?;
        if claimed.is_empty() {
            return Ok((connection, total));
        }
        total += sqlx::query(END).bind(claimed).execute(&mut connection).await?.rows_affected() as u32;
    }
}

/// Claims what is due, at most a batch, by this statement.
async fn claim_batch(connection: &mut PgConnection, batch: u32, insert: &'static str) -> sqlx::Result<Vec<Uuid>> {
    let slot: Timestamp = super::verbs::SLOT.parse().unwrap_or(Timestamp::UNIX_EPOCH);
    let mut tx = connection.begin().await?;
    let jobs: Vec<Uuid> = sqlx::query_scalar(DUE).bind(i64::from(batch)).fetch_all(&mut *tx).await?;
    if jobs.is_empty() {
        tx.rollback().await?;
        return Ok(jobs);
    }
    let id = |job: &Uuid| everbell_core::RunId::for_slot(everbell_core::JobId::from_uuid(*job), None, slot).as_uuid();
    let ids: Vec<Uuid> = jobs.iter().map(id).collect();
    sqlx::query(insert).bind(&ids).bind(&jobs).execute(&mut *tx).await?;
    sqlx::query(ADVANCE).bind(&jobs).execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(ids)
}

async fn run(mut connection: PgConnection, batch: u32) -> sqlx::Result<(PgConnection, u32)> {
    let mut total = 0;
    loop {
        let query = sqlx::query_scalar(START).bind(i64::from(batch)).bind(Uuid::from_u128(3));
        let started: Vec<Uuid> = query.fetch_all(&mut connection).await?;
        if started.is_empty() {
            return Ok((connection, total));
        }
        total += sqlx::query(END).bind(started).execute(&mut connection).await?.rows_affected() as u32;
    }
}
