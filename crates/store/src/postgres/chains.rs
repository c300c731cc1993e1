//! Chains: what starts when runs end, and which jobs may follow each other.

use std::collections::BTreeMap;

use everbell_core::chain::{ChainLink, RunGroup, check_chain};
use everbell_core::plan::REPLACER;
use everbell_core::settle::Transition;
use everbell_core::store::StoreResult;
use everbell_core::{Definition, JobKey, Run, RunId, Scope};
use jiff::Timestamp;
use uuid::Uuid;

use super::PostgresStore;
use super::connect::{Conn, on};
use super::statement::{Backend, Statement};
use super::timers::{column, write};
use crate::micros::Micros;
use crate::rows::chain::{End, FollowerColumns, Followers, LinkColumns, Starting, changing, ids_after, links};
use crate::rows::origins::CauseColumns;
use crate::rows::placeholders::filled_sql;
use crate::rows::run_groups::{Overdue, OverdueColumns, RunGroupColumns, forgotten};
use crate::rows::{PlanBatch, RunColumns, TimerColumns};

const EXPIRING: &str = "ending waits of chains";

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
        let mut starting = followers.ended(ends)?;
        if starting.is_empty() {
            return Ok(None);
        }
        join_groups(&mut *conn, what, &mut starting).await?;
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

    pub(super) async fn groups_of(
        &self,
        job: &JobKey,
        until: Option<Timestamp>,
        limit: u32,
    ) -> StoreResult<Vec<RunGroup>> {
        let query = sqlx::query_as(include_str!("sql/list_run_groups.sql"))
            .bind(job.to_string())
            .bind(until.map(Micros::from))
            .bind(i64::from(limit));
        let rows: Vec<RunGroupColumns> = self.within("reading groups of runs", query.fetch_all_on(&self.pool)).await?;
        rows.into_iter().map(RunGroupColumns::read).collect()
    }

    pub(super) async fn expire_groups(&self, limit: u32, now: Timestamp) -> StoreResult<Option<Timestamp>> {
        let mut tx = self.begin(EXPIRING).await?;
        let done = self.expire_groups_in(&mut tx, limit, now).await;
        self.finish_transaction(EXPIRING, tx, done, |_| false).await
    }

    async fn expire_groups_in(&self, conn: Conn<'_, '_>, limit: u32, now: Timestamp) -> StoreResult<Option<Timestamp>> {
        let mut jobs: Vec<Uuid> = overdue(&mut *conn, limit, now).await?.iter().filter_map(|row| row.job_id).collect();
        jobs.sort_unstable();
        jobs.dedup();
        let query = sqlx::query_as(include_str!("sql/lock_followers.sql")).bind(jobs.clone());
        let timers: Vec<TimerColumns> = on(EXPIRING, query.fetch_all_on(&mut *conn)).await?;
        // Another session that held a lock may have closed a group.
        let overdue = Overdue::new(overdue(&mut *conn, limit, now).await?, &jobs, now);
        if !overdue.closed.is_empty() {
            let mut batch = PlanBatch::default();
            self.ask(&mut *conn, timers, now, &|due, _| overdue.plan(due), &mut batch).await?;
            write(&mut *conn, EXPIRING, &batch, REPLACER, now).await?;
            write_groups(&mut *conn, EXPIRING, &overdue.closed).await?;
        }
        let query = sqlx::query(include_str!("sql/prune_run_groups.sql")).bind(forgotten(now)).bind(i64::from(limit));
        on(EXPIRING, query.execute_on(&mut *conn)).await?;
        let query = sqlx::query_scalar(include_str!("sql/next_run_group.sql"));
        let next: Option<Micros> = on(EXPIRING, query.fetch_one_on(&mut *conn)).await?;
        Ok(next.map(Into::into))
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
    let Some(spec) = definition.spec.as_ref().ok().filter(|spec| spec.is_following()) else { return Ok(()) };
    on(what, sqlx::query(include_str!("sql/lock_chains.sql")).execute_on(&mut *conn)).await?;
    let mut scopes: BTreeMap<&JobKey, Scope> = BTreeMap::new();
    for parent in spec.parents() {
        let query = sqlx::query_scalar(include_str!("sql/is_current_job.sql")).bind(parent.job_key.to_string());
        let scope: Option<String> = on(what, query.fetch_optional_on(&mut *conn)).await?;
        scopes.extend(scope.map(|scope| (&parent.job_key, Scope::from_word(&scope).unwrap_or_default())));
    }
    let all = on(what, read_links(&mut *conn, i64::MAX)).await?;
    Ok(check_chain(&definition.key, spec.parents(), |key| scopes.get(key).copied(), &all)?)
}

/// Takes runs that have ended into the groups of the jobs that wait for several.
async fn join_groups(conn: Conn<'_, '_>, what: &str, starting: &mut Starting) -> StoreResult<()> {
    let mut origins = starting.origins();
    while let Some(runs) = origins.next() {
        let query = sqlx::query_as(include_str!("sql/read_causes.sql")).bind(runs);
        let rows: Vec<CauseColumns> = on(what, query.fetch_all_on(&mut *conn)).await?;
        origins.step(&rows)?;
    }
    let (jobs, names) = starting.groups(&origins);
    if jobs.is_empty() {
        return Ok(());
    }
    let query = sqlx::query_as(include_str!("sql/read_run_groups.sql")).bind(jobs).bind(names);
    let rows: Vec<RunGroupColumns> = on(what, query.fetch_all_on(&mut *conn)).await?;
    write_groups(conn, what, &starting.join(rows)?).await
}

async fn write_groups(conn: Conn<'_, '_>, what: &str, groups: &[RunGroupColumns]) -> StoreResult<()> {
    if groups.is_empty() {
        return Ok(());
    }
    let query = sqlx::query(include_str!("sql/write_run_groups.sql"))
        .bind(column(groups, |group| group.job_key.clone()))
        .bind(column(groups, |group| group.name.clone()))
        .bind(column(groups, |group| group.opened_at))
        .bind(column(groups, |group| group.deadline))
        .bind(column(groups, |group| group.closed_at))
        .bind(column(groups, |group| group.started))
        .bind(column(groups, |group| group.runs.clone()));
    on(what, query.execute_on(conn)).await.map(drop)
}

async fn overdue(conn: Conn<'_, '_>, limit: u32, now: Timestamp) -> StoreResult<Vec<OverdueColumns>> {
    let query = sqlx::query_as(include_str!("sql/overdue_run_groups.sql"));
    let query = query.bind(Micros::from(now)).bind(i64::from(limit));
    on(EXPIRING, query.fetch_all_on(conn)).await
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
