//! Chains: what starts when runs end, and which jobs may follow each other.

use everbell_core::chain::{ChainLink, check_chain};
use everbell_core::plan::REPLACER;
use everbell_core::settle::Transition;
use everbell_core::store::StoreResult;
use everbell_core::{Definition, Run, RunId};
use jiff::Timestamp;

use super::timers::write;
use super::transaction::Tx;
use super::{SqliteStore, batch};
use crate::rows::chain::{End, FollowerColumns, Followers, LinkColumns, ids_after, links};
use crate::rows::placeholders::filled_sql;
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
        let starting = followers.ended(ends)?;
        if starting.is_empty() {
            return Ok(false);
        }
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
    let Some(after) = definition.spec.as_ref().ok().and_then(|spec| spec.after()) else { return Ok(()) };
    let query = sqlx::query(include_str!("sql/is_current_job.sql")).bind(after.job_key.to_string());
    let exists: Option<(bool,)> = tx.first(query).await?;
    let all = read_links(tx, i64::MAX).await?;
    Ok(check_chain(&definition.key, after, exists.is_some_and(|(exists,)| exists), &all)?)
}

async fn read_links(tx: &mut Tx<'_>, limit: i64) -> StoreResult<Vec<ChainLink>> {
    let query = sqlx::query(include_str!("sql/chain_links.sql")).bind(limit);
    Ok(links(tx.all::<LinkColumns>(query).await?))
}
