//! Chains: what starts when runs end, and which jobs may follow each other.

use std::collections::BTreeMap;

use everbell_core::chain::{ChainLink, RunGroup, check_chain};
use everbell_core::plan::REPLACER;
use everbell_core::settle::Transition;
use everbell_core::store::StoreResult;
use everbell_core::{Definition, JobKey, Run, RunId, Scope};
use jiff::Timestamp;
use uuid::Uuid;

use super::batch::Hex;
use super::timers::write;
use super::transaction::Tx;
use super::{SqliteStore, batch};
use crate::micros::Micros;
use crate::rows::chain::{End, FollowerColumns, Followers, LinkColumns, Starting, ids_after, links};
use crate::rows::placeholders::filled_sql;
use crate::rows::run_groups::{Overdue, OverdueColumns, RunGroupColumns, forgotten};
use crate::rows::{PlanBatch, RunColumns, TimerColumns};

impl SqliteStore {
    /// Starts the jobs that follow runs which have ended. Returns whether anything was written.
    pub(super) async fn start_followers(
        &self,
        tx: &mut Tx<'_>,
        followers: &Followers,
        ends: &[End],
        now: Timestamp,
    ) -> StoreResult<bool> {
        let mut starting = followers.ended(ends)?;
        if starting.is_empty() {
            return Ok(false);
        }
        join_groups(tx, &mut starting).await?;
        let query = sqlx::query(include_str!("sql/lock_followers.sql")).bind(batch::ids(followers.jobs()));
        let mut timers: Vec<TimerColumns> = tx.all(query).await?;
        timers.retain(|timer| starting.contains(timer.job_id));
        let mut batch = PlanBatch::default();
        self.ask(tx, timers, now, &|due, _| starting.plan(due), &mut batch).await?;
        write(tx, &batch, REPLACER, now).await?;
        Ok(!batch.runs.is_empty())
    }

    /// The current jobs that start after another one.
    pub(super) async fn links(&self, limit: u32) -> StoreResult<Vec<ChainLink>> {
        let mut held = self.reader("reading chains").await?;
        let mut tx = held.begin().await?;
        read_links(&mut tx, i64::from(limit)).await
    }

    pub(super) async fn groups_of(
        &self,
        job: &JobKey,
        until: Option<Timestamp>,
        limit: u32,
    ) -> StoreResult<Vec<RunGroup>> {
        let mut held = self.reader("reading groups of runs").await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/list_run_groups.sql")).bind(job.to_string());
        let rows: Vec<RunGroupColumns> = tx.all(query.bind(until.map(Micros::from)).bind(limit)).await?;
        rows.into_iter().map(RunGroupColumns::read).collect()
    }

    pub(super) async fn expire_groups(&self, limit: u32, now: Timestamp) -> StoreResult<Option<Timestamp>> {
        let mut held = self.writer("ending waits of chains").await?;
        let mut tx = held.begin().await?;
        let query = sqlx::query(include_str!("sql/overdue_run_groups.sql")).bind(Micros::from(now)).bind(limit);
        let rows: Vec<OverdueColumns> = tx.all(query).await?;
        let mut jobs: Vec<Uuid> = rows.iter().filter_map(|row| row.job_id).collect();
        jobs.dedup();
        if !rows.is_empty() {
            let query = sqlx::query(include_str!("sql/lock_followers.sql")).bind(batch::ids(jobs.iter().copied()));
            let timers: Vec<TimerColumns> = tx.all(query).await?;
            let overdue = Overdue::new(rows, &jobs, now);
            let mut batch = PlanBatch::default();
            self.ask(&mut tx, timers, now, &|due, _| overdue.plan(due), &mut batch).await?;
            write(&mut tx, &batch, REPLACER, now).await?;
            write_groups(&mut tx, &overdue.closed).await?;
        }
        let query = sqlx::query(include_str!("sql/prune_run_groups.sql")).bind(forgotten(now)).bind(limit);
        tx.run(query).await?;
        let (next,): (Option<Micros>,) = tx.one(sqlx::query(include_str!("sql/next_run_group.sql"))).await?;
        tx.commit().await?;
        Ok(next.map(Into::into))
    }

    pub(super) async fn started_after(&self, ended: RunId, at: Timestamp, limit: u32) -> StoreResult<Vec<Run>> {
        let (first, last, trigger) = ids_after(ended, at);
        let query = sqlx::query(filled_sql!(include_str!("sql/runs_after.sql")));
        let rows: Vec<RunColumns> =
            self.read("reading runs of a chain", query.bind(first).bind(last).bind(trigger).bind(limit)).await?;
        rows.into_iter().map(RunColumns::read).collect()
    }
}

/// The jobs that start after the jobs of these runs.
pub(super) async fn followers_of(tx: &mut Tx<'_>, transitions: &[Transition]) -> StoreResult<Followers> {
    let runs = batch::ids(transitions.iter().map(|transition| transition.run_id.as_uuid()));
    let rows: Vec<FollowerColumns> = tx.all(sqlx::query(include_str!("sql/followers.sql")).bind(runs)).await?;
    Ok(Followers::new(rows))
}

/// Refuses a job that starts after one that does not exist, or in a circle.
pub(super) async fn check_links(tx: &mut Tx<'_>, definition: &Definition) -> StoreResult<()> {
    let Some(spec) = definition.spec.as_ref().ok().filter(|spec| spec.is_following()) else { return Ok(()) };
    let mut scopes: BTreeMap<&JobKey, Scope> = BTreeMap::new();
    for parent in spec.parents() {
        let query = sqlx::query(include_str!("sql/is_current_job.sql")).bind(parent.job_key.to_string());
        let scope: Option<(String,)> = tx.first(query).await?;
        scopes.extend(scope.map(|(scope,)| (&parent.job_key, Scope::from_word(&scope).unwrap_or_default())));
    }
    let all = read_links(tx, i64::MAX).await?;
    Ok(check_chain(&definition.key, spec.parents(), |key| scopes.get(key).copied(), &all)?)
}

/// Takes runs that have ended into the groups of the jobs that wait for several.
async fn join_groups(tx: &mut Tx<'_>, starting: &mut Starting) -> StoreResult<()> {
    let mut origins = starting.origins();
    while let Some(runs) = origins.next() {
        let query = sqlx::query(include_str!("sql/read_causes.sql")).bind(batch::ids(runs));
        origins.step(&tx.all(query).await?)?;
    }
    let (jobs, names) = starting.groups(&origins);
    if jobs.is_empty() {
        return Ok(());
    }
    let wanted = batch::rows(jobs.iter().zip(&names));
    let rows: Vec<RunGroupColumns> = tx.all(sqlx::query(include_str!("sql/read_run_groups.sql")).bind(wanted)).await?;
    write_groups(tx, &starting.join(rows)?).await
}

async fn write_groups(tx: &mut Tx<'_>, groups: &[RunGroupColumns]) -> StoreResult<()> {
    if groups.is_empty() {
        return Ok(());
    }
    let row = |row: &RunGroupColumns| {
        let (opened_at, deadline, closed_at) = (row.opened_at, row.deadline, row.closed_at);
        let (key, name, runs) = (row.job_key.clone(), row.name.clone(), row.runs.clone());
        (key, name, opened_at, deadline, closed_at, row.started.map(Hex), runs)
    };
    let rows = batch::rows(groups.iter().map(row));
    tx.run(sqlx::query(include_str!("sql/write_run_groups.sql")).bind(rows)).await?;
    Ok(())
}

async fn read_links(tx: &mut Tx<'_>, limit: i64) -> StoreResult<Vec<ChainLink>> {
    let query = sqlx::query(include_str!("sql/chain_links.sql")).bind(limit);
    Ok(links(tx.all::<LinkColumns>(query).await?))
}
