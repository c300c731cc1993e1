//! PostgreSQL by bare statements on held connections: what there is to reach.

use std::str::FromStr;

use jiff::Timestamp;
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::Schedule;
use super::rate::{Pass, Rate};
use super::verbs::LEASE;
use crate::cpu::Meter;
use crate::micros::Micros;

const DUE: &str = "with due as materialized (
    select job_id, org_id, next_run_at, last_slot_at, rescheduled_from, last_local_date
    from everbell.timers where next_run_at <= $1 and target = any($2) order by next_run_at limit $3 for update skip locked)
  select * from due";
const ACTIVE: &str = "select run_id, job_id, org_id from everbell.active_runs where job_id = any($1)";
const CLAIM: &str = "with given as (
    select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::text[], $6::text[])
      g (id, job_id, org_id, at, trigger, target)), new as (
    insert into everbell.runs (id, job_id, org_id, at, nonce, scheduled_at, created_at, trigger, target, catch_up, folded)
    select id, job_id, org_id, at, 0, at, $7, trigger, target, false, 0 from given
    on conflict do nothing returning id, job_id, org_id, target, scheduled_at)
  insert into everbell.active_runs (run_id, job_id, org_id, target, status, held, max_concurrent, attempt, available_at)
  select id, job_id, org_id, target, 'pending', false, 1, 0, scheduled_at from new";
const ADVANCE: &str = "update everbell.timers t set next_run_at = g.next_run_at, last_slot_at = g.last_slot_at
  from unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::timestamptz[]) g (job_id, org_id, next_run_at, last_slot_at)
  where t.job_id = g.job_id and t.org_id = g.org_id";
const START: &str = "with picked as materialized (
    select run_id from everbell.active_runs where target = $1 and status = 'pending' and priority = 0 and not held and not paused
      and available_at <= $2
    order by available_at, run_id limit $3 for update skip locked), started as (
    update everbell.active_runs a set status = 'running', attempt = a.attempt + 1, runner_id = $4, claimed_at = $2,
      started_at = $2, lease_until = $5
    where a.run_id = any(array(select run_id from picked)) returning a.run_id, a.attempt)
  select r.id, r.job_id, r.org_id, r.target, r.payload, r.trigger, r.at, r.scheduled_at, s.attempt
  from started s cross join lateral (select * from everbell.runs where id = s.run_id offset 0) r";
const END: &str = "with given as (
    select * from unnest($1::uuid[], $2::integer[], $3::timestamptz[]) g (run_id, attempt, finished_at)), gone as (
    delete from everbell.active_runs a using given g
    where a.run_id = g.run_id and a.attempt = g.attempt and a.status = 'running'
    returning a.run_id, a.job_id, a.attempt, a.runner_id, a.claimed_at, a.started_at, g.finished_at), ended as (
    insert into everbell.outcomes (run_id, status, attempt, runner_id, claimed_at, started_at, finished_at)
    select run_id, 'succeeded', attempt, runner_id, claimed_at, started_at, finished_at from gone), cleared as (
    update everbell.jobs set consecutive_failures = 0
    where consecutive_failures > 0 and id = any(array(select job_id from gone)))
  select count(*) from gone";

/// Claims everything, then starts and ends everything.
pub(crate) async fn lives(
    url: &str,
    batch: u32,
    connections: usize,
    runs: u32,
    now: Timestamp,
    meter: &mut Meter,
) -> Result<Rate, Box<dyn std::error::Error>> {
    let held = connect(url, connections).await?;
    let schedule = Schedule::new(now)?;
    let pass = Pass::begin(meter).await?;
    let (held, claimed) = all(held, |connection| claim(connection, batch, schedule.clone())).await?;
    let pass = pass.claimed().await?;
    // Held until the end, because only live backends report what they used.
    let (_held, ended) = all(held, |connection| run(connection, batch, now)).await?;
    assert_eq!((claimed, ended), (runs, runs), "every run lives once");
    Ok(pass.ended(runs).await?)
}

/// Connects with the settings that the store has for its loops, so that both have the same plans.
async fn connect(url: &str, connections: usize) -> sqlx::Result<Vec<PgConnection>> {
    let off = ["enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin", "jit"];
    let options = PgConnectOptions::from_str(url)?.options(off.map(|name| (name, "off")));
    let options = options.options([("plan_cache_mode", "force_generic_plan")]);
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

async fn claim(mut connection: PgConnection, batch: u32, schedule: Schedule) -> sqlx::Result<(PgConnection, u32)> {
    let mut total = 0;
    loop {
        let claimed = claim_batch(&mut connection, batch, &schedule).await?;
        if claimed == 0 {
            return Ok((connection, total));
        }
        total += claimed;
    }
}

/// Claims what is due, at most a batch.
async fn claim_batch(connection: &mut PgConnection, batch: u32, schedule: &Schedule) -> sqlx::Result<u32> {
    type Timer = (Uuid, String, Micros, Micros, Option<Micros>, Option<String>);
    let now = Micros(schedule.now.as_microsecond());
    let mut tx = connection.begin().await?;
    let query = sqlx::query_as(DUE).bind(now).bind(vec!["noop"]).bind(i64::from(batch));
    let due: Vec<Timer> = query.fetch_all(&mut *tx).await?;
    if due.is_empty() {
        tx.rollback().await?;
        return Ok(0);
    }
    let jobs: Vec<Uuid> = due.iter().map(|timer| timer.0).collect();
    let active: Vec<(Uuid, Uuid, String)> = sqlx::query_as(ACTIVE).bind(&jobs).fetch_all(&mut *tx).await?;
    assert!(active.is_empty(), "nothing overlaps");
    let fires: Vec<_> = due.iter().map(|timer| schedule.fire(timer.0, timer.2.0)).collect();
    let orgs: Vec<&str> = due.iter().map(|timer| timer.1.as_str()).collect();
    let slots: Vec<Micros> = fires.iter().map(|fire| Micros(fire.0)).collect();
    let insert = sqlx::query(CLAIM)
        .bind(fires.iter().map(|fire| fire.2).collect::<Vec<_>>())
        .bind(&jobs)
        .bind(&orgs)
        .bind(&slots)
        .bind(vec![schedule.trigger.as_str(); due.len()])
        .bind(vec!["noop"; due.len()])
        .bind(now);
    let claimed = insert.execute(&mut *tx).await?.rows_affected() as u32;
    let next: Vec<Option<Micros>> = fires.iter().map(|fire| fire.1.map(Micros)).collect();
    sqlx::query(ADVANCE).bind(&jobs).bind(&orgs).bind(next).bind(&slots).execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(claimed)
}

async fn run(mut connection: PgConnection, batch: u32, now: Timestamp) -> sqlx::Result<(PgConnection, u32)> {
    type Started = (Uuid, Uuid, String, String, Option<String>, String, Micros, Micros, i32);
    let (now, until) = (Micros(now.as_microsecond()), Micros((now + LEASE).as_microsecond()));
    let mut total = 0;
    loop {
        let query = sqlx::query_as(START).bind("noop").bind(now).bind(i64::from(batch));
        let query = query.bind(Uuid::from_u128(3)).bind(until);
        let started: Vec<Started> = query.fetch_all(&mut connection).await?;
        if started.is_empty() {
            return Ok((connection, total));
        }
        let query = sqlx::query_scalar(END)
            .bind(started.iter().map(|run| run.0).collect::<Vec<_>>())
            .bind(started.iter().map(|run| run.8).collect::<Vec<_>>())
            .bind(vec![now; started.len()]);
        let ended: i64 = query.fetch_one(&mut connection).await?;
        total += ended as u32;
    }
}
