//! [`LockedJobs`]: outcomes of jobs that other sessions of the database hold locked, such as a transaction of the application
//! that has changed the job and is not committed yet.
//!
//! They wait here, each try for as long as the store waits for a lock, while the recorder goes on with those of other jobs.
//! One task tries all of them in turn, so they never hold more than one connection.

use std::collections::{BTreeMap, BTreeSet};

use everbell_core::JobKey;
use everbell_core::store::{StoreError, StoreResult};
use tokio::task::{JoinError, JoinSet};
use tracing::{error, info, warn};

use super::outcome_group::OutcomeGroup;

/// How many jobs are recorded at once when it is not known which of them is locked.
const MAX_AT_ONCE: usize = 2;

type Groups = BTreeMap<Option<JobKey>, OutcomeGroup>;

#[derive(Debug, Default)]
pub(super) struct LockedJobs {
    /// The outcomes that wait for the next try.
    waiting: Groups,
    /// The jobs whose outcomes are being tried.
    tried: BTreeSet<Option<JobKey>>,
    /// The task that tries them; it answers with those that have to wait on. Ends when this is dropped.
    trying: JoinSet<Groups>,
}

impl LockedJobs {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.tried.is_empty()
    }

    /// Takes the outcomes of jobs that are known to be locked: they come after those that wait.
    pub(super) fn adopt(&mut self, group: &mut OutcomeGroup) {
        if self.is_empty() {
            return;
        }
        let mut own = group.take_of(|job| self.waiting.contains_key(job) || self.tried.contains(job));
        let count = own.len();
        for (job, group) in own.take_by_job(count) {
            self.add(job, group);
        }
    }

    /// Keeps the outcomes of a job that is locked.
    fn wait(&mut self, job: Option<JobKey>, group: OutcomeGroup) {
        let (job_key, outcomes) = (job.as_ref().map(JobKey::as_str), group.len());
        warn!(job_key, outcomes, "outcomes wait until another session of the database releases their job");
        self.add(job, group);
    }

    fn add(&mut self, job: Option<JobKey>, group: OutcomeGroup) {
        match self.waiting.get_mut(&job) {
            Some(waiting) => waiting.append(group),
            None => drop(self.waiting.insert(job, group)),
        }
    }

    /// Records the outcomes of each job apart: only those of jobs that are locked have to wait. After another failure the
    /// rest goes back into the group.
    pub(super) async fn record_by_job(&mut self, group: &mut OutcomeGroup, count: usize) -> StoreResult<()> {
        let groups = group.take_by_job(count);
        if groups.len() == 1 {
            // It is known which one.
            for (job, own) in groups {
                self.wait(job, own);
            }
            return Ok(());
        }
        let mut left = groups.into_iter();
        let mut tasks = JoinSet::new();
        let mut failed = None;
        loop {
            while tasks.len() < MAX_AT_ONCE
                && let Some((job, own)) = left.next()
            {
                tasks.spawn(record(job, own));
            }
            match tasks.join_next().await {
                None => break,
                Some(Err(error)) => report(&error),
                Some(Ok((_, _, Ok(())))) => {}
                Some(Ok((job, own, Err(error)))) if error.is_locked() => self.wait(job, own),
                Some(Ok((_, own, Err(error)))) => {
                    group.append(own);
                    failed = Some(error);
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Collects what the last try left, and begins the next one.
    pub(super) fn look(&mut self) {
        while let Some(ended) = self.trying.try_join_next() {
            let left = ended.inspect_err(report).unwrap_or_default();
            for job in std::mem::take(&mut self.tried) {
                if !left.contains_key(&job) {
                    info!(job_key = job.as_ref().map(JobKey::as_str), "recorded the outcomes of a job that was locked");
                }
            }
            // In front of those that came meanwhile.
            for (job, group) in std::mem::replace(&mut self.waiting, left) {
                self.add(job, group);
            }
        }
        if self.trying.is_empty() && !self.waiting.is_empty() {
            let groups = std::mem::take(&mut self.waiting);
            self.tried = groups.keys().cloned().collect();
            self.trying.spawn(try_each(groups));
        }
    }
}

/// Tries to record the outcomes of one job after the other, and returns those that have to wait on.
async fn try_each(groups: Groups) -> Groups {
    let mut left = Groups::new();
    for (job, group) in groups {
        let (job, group, answer) = record(job, group).await;
        if answer.is_err() {
            left.insert(job, group);
        }
    }
    left
}

async fn record(
    job: Option<JobKey>,
    mut group: OutcomeGroup,
) -> (Option<JobKey>, OutcomeGroup, Result<(), StoreError>) {
    let answer = group.write(group.len()).await;
    (job, group, answer)
}

/// A task that panicked has lost its outcomes: others end those runs when their leases expire.
fn report(error: &JoinError) {
    error!(%error, "could not record outcomes; those runs count as lost when their leases expire");
}
