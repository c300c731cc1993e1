//! Chains: what starts when runs end, and which jobs may follow each other.

use everbell_core::chain::{ChainLink, check_chain};
use everbell_core::plan::REPLACER;
use everbell_core::settle::Transition;
use everbell_core::store::StoreResult;
use everbell_core::{Definition, Run, RunId};
use jiff::Timestamp;
use uuid::Uuid;

use super::PostgresStore;
use super::connect::{Conn, on};
use super::statement::{Backend, Statement};
use super::timers::{column, write};
use crate::micros::Micros;
use crate::rows::chain::{End, FollowerColumns, Followers, LinkColumns, changing, ids_after, links};
use crate::rows::placeholders::filled_sql;
use crate::rows::{PlanBatch, RunColumns, TimerColumns};

/// How often the jobs after runs are locked that were edited meanwhile.
const MAX_LOOKS: u32 = 10;

/// The jobs after runs, with their timers, which are locked.
pub(super) type Locked = (Vec<TimerColumns>, Followers);

impl PostgresStore {
    /// Locks the timers of the jobs that start after the jobs of these runs: before anything else is locked, and so that
    /// no edit, pause or retirement of these jobs happens until the commit.
    pub(super) async fn lock_followers(
        &self,
        conn: Conn<'_, '_>,
        what: &str,
        transitions: &[Transition],
    ) -> StoreResult<Locked> {
        let runs = column(transitions, |transition| transition.run_id.as_uuid());
        let mut found = followers_of(&mut *conn, what, &runs).await?;
        for _ in 0..MAX_LOOKS {
            let jobs = found.jobs();
            if jobs.is_empty() {
                return Ok(Locked::default());
            }
            let query = sqlx::query_as(include_str!("sql/lock_followers.sql")).bind(jobs.clone());
            let timers: Vec<TimerColumns> = on(what, query.fetch_all_on(&mut *conn)).await?;
            // Another session that held a lock may have put the next version in the place of a job.
            found = followers_of(&mut *conn, what, &runs).await?;
            if found.jobs().iter().all(|job| jobs.binary_search(job).is_ok()) {
                return Ok((timers, found));
            }
        }
        Err(changing())
    }

    /// Starts the jobs that follow runs which have ended. Returns the time of the first of their runs, if there is one.
    pub(super) async fn start_followers(
        &self,
        conn: Conn<'_, '_>,
        what: &str,
        (mut timers, followers): Locked,
        ends: &[End],
        now: Timestamp,
    ) -> StoreResult<Option<Micros>> {
        let starting = followers.ended(ends)?;
        if starting.is_empty() {
            return Ok(None);
        }
        timers.retain(|timer| starting.contains(timer.job_id));
        let mut batch = PlanBatch::default();
        self.ask(&mut *conn, timers, now, &|due, _| starting.plan(due), &mut batch).await?;
        write(&mut *conn, what, &batch, REPLACER, now).await?;
        Ok(batch.waiting().map(|run| run.scheduled_at).min())
    }

    /// The current jobs that start after another one.
    pub(super) async fn links(&self, limit: u32) -> StoreResult<Vec<ChainLink>> {
        self.within("reading chains", read_links(&self.pool, i64::from(limit))).await
    }

    pub(super) async fn started_after(&self, ended: RunId, at: Timestamp, limit: u32) -> StoreResult<Vec<Run>> {
        let (first, last, trigger) = ids_after(ended, at);
        let query = sqlx::query_as(filled_sql!(include_str!("sql/runs_after.sql")))
            .bind(first)
            .bind(last)
            .bind(trigger)
            .bind(i64::from(limit));
        let rows: Vec<RunColumns> = self.within("reading runs of a chain", query.fetch_all_on(&self.pool)).await?;
        rows.into_iter().map(RunColumns::read).collect()
    }
}

/// Refuses a job that starts after one that does not exist, or in a circle. Chains stay as they are until the commit.
pub(super) async fn check_links(conn: Conn<'_, '_>, what: &str, definition: &Definition) -> StoreResult<()> {
    let Some(after) = definition.spec.as_ref().ok().and_then(|spec| spec.after()) else { return Ok(()) };
    on(what, sqlx::query(include_str!("sql/lock_chains.sql")).execute_on(&mut *conn)).await?;
    let query = sqlx::query_scalar(include_str!("sql/is_current_job.sql")).bind(after.job_key.to_string());
    let exists: bool = on(what, query.fetch_one_on(&mut *conn)).await?;
    let all = on(what, read_links(&mut *conn, i64::MAX)).await?;
    Ok(check_chain(&definition.key, after, exists, &all)?)
}

async fn read_links(backend: impl Backend, limit: i64) -> sqlx::Result<Vec<ChainLink>> {
    let query = sqlx::query_as(include_str!("sql/chain_links.sql")).bind(limit);
    let rows: Vec<LinkColumns> = query.fetch_all_on(backend).await?;
    Ok(links(rows))
}

async fn followers_of(conn: Conn<'_, '_>, what: &str, runs: &[Uuid]) -> StoreResult<Followers> {
    let query = sqlx::query_as(include_str!("sql/followers.sql")).bind(runs.to_vec());
    let rows: Vec<FollowerColumns> = on(what, query.fetch_all_on(conn)).await?;
    Ok(Followers::new(rows))
}
