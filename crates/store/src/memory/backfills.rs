//! Backfills of any length, and the runs of their slots.

use async_trait::async_trait;
use everbell_core::backfill::{Backfill, SlotRun};
use everbell_core::change::BackfillWrite;
use everbell_core::store::{BackfillStore, Changed, DecideFn, JobRef, StoreError, StoreResult};
use everbell_core::{BackfillId, JobKey, OrgId, Run, RunId, RunStatus, Trigger};
use jiff::Timestamp;

use super::MemoryStore;
use super::state::{State, micros};
use crate::rows::backfills::{changed_meanwhile, check_backfills, check_looked_up, step_entry};

#[async_trait]
impl BackfillStore for MemoryStore {
    async fn advance_backfill(
        &self,
        job: &JobRef,
        org: Option<&OrgId>,
        decide: &DecideFn<'_>,
        now: Timestamp,
    ) -> StoreResult<Changed> {
        let changed = self.with(|state| state.advance_backfill(job, org, decide, now));
        self.notify.notify_waiters();
        changed
    }

    async fn get_backfill(&self, id: BackfillId) -> StoreResult<Backfill> {
        self.with(|state| state.backfills.get(&id).cloned().ok_or_else(|| StoreError::not_found("backfill", id)))
    }

    async fn open_backfills(&self, job: Option<&JobKey>, limit: u32) -> StoreResult<Vec<Backfill>> {
        check_backfills(limit)?;
        self.with(|state| {
            let wanted = |one: &&Backfill| one.is_open() && job.is_none_or(|job| one.job_key == *job);
            let mut open: Vec<Backfill> = state.backfills.values().filter(wanted).cloned().collect();
            open.sort_by_key(|one| (one.updated_at, one.id));
            open.truncate(limit as usize);
            Ok(open)
        })
    }

    async fn backfills_of(&self, job: &JobKey, limit: u32) -> StoreResult<Vec<Backfill>> {
        check_backfills(limit)?;
        self.with(|state| {
            let own = state.backfills.values().rev().filter(|one| one.job_key == *job);
            Ok(own.take(limit as usize).cloned().collect())
        })
    }

    async fn look_up_runs(&self, runs: &[RunId]) -> StoreResult<Vec<SlotRun>> {
        check_looked_up(runs.len())?;
        self.with(|state| Ok(runs.iter().filter_map(|id| state.run(*id)).map(looked_up).collect()))
    }

    async fn runs_of_slots(&self, job: &JobKey, org: Option<&OrgId>, slots: &[Timestamp]) -> StoreResult<Vec<SlotRun>> {
        check_looked_up(slots.len())?;
        self.with(|state| {
            let versions = state.jobs.values().filter(|one| one.definition.key == *job).map(|one| one.definition.id);
            let owners = versions.map(|version| (version, org.cloned()));
            let found = owners.flat_map(|owner| {
                let runs = slots.iter().filter_map(|slot| state.slots.get(&(owner.clone(), micros(*slot))));
                runs.filter_map(|id| state.run(*id)).map(looked_up).collect::<Vec<_>>()
            });
            Ok(found.collect())
        })
    }
}

fn looked_up(run: &Run) -> SlotRun {
    SlotRun {
        id: run.id,
        at: run.slot_at.unwrap_or(run.id.time()),
        trigger: run.trigger.clone(),
        status: run.status,
        attempt: run.attempt,
    }
}

impl State {
    fn advance_backfill(
        &mut self,
        job: &JobRef,
        org: Option<&OrgId>,
        decide: &DecideFn<'_>,
        now: Timestamp,
    ) -> StoreResult<Changed> {
        self.carry_out(job, org, None, decide, (&step_entry(now), false))
    }

    /// Refuses a backfill that was changed since it was read.
    pub(super) fn check_backfill(&self, write: &BackfillWrite) -> StoreResult<()> {
        let stored = self.backfills.get(&write.backfill.id).map(|stored| stored.revision);
        if stored == write.expected_revision { Ok(()) } else { Err(changed_meanwhile(&write.backfill)) }
    }

    /// Writes a backfill, and returns how many of its runs were withdrawn.
    pub(super) fn write_backfill(&mut self, write: BackfillWrite) -> u64 {
        let BackfillWrite { mut backfill, withdraws, .. } = write;
        let trigger = Trigger::Backfill(backfill.id);
        let is_new = |state: &State, id: &RunId| {
            state.active.get(id).is_some_and(|active| {
                active.run.status == RunStatus::Pending && active.run.attempt == 0 && active.run.trigger == trigger
            })
        };
        let mut gone: Vec<RunId> = backfill.open.iter().map(|open| open.id).filter(|_| withdraws).collect();
        gone.retain(|id| is_new(self, id));
        self.active.retain(|id, _| !gone.contains(id));
        self.slots.retain(|_, id| !gone.contains(id));
        backfill.withdraw(&gone);
        self.backfills.insert(backfill.id, backfill);
        gone.len() as u64
    }

    /// Whether this is a run of a backfill that goes on while its job is paused.
    pub(super) fn is_paused_ok(&self, run: &Run) -> bool {
        let Trigger::Backfill(id) = run.trigger else { return false };
        self.backfills.get(&id).is_some_and(|one| one.is_open() && one.settings.paused_ok)
    }

    /// Forgets backfills that have ended before this time, those that changed least recently first.
    pub(super) fn prune_backfills(&mut self, before: Timestamp, limit: usize) {
        let old = self.backfills.values().filter(|one| !one.is_open() && one.updated_at < before);
        let mut old: Vec<(Timestamp, BackfillId)> = old.map(|one| (one.updated_at, one.id)).collect();
        old.sort_unstable();
        for (_, id) in old.into_iter().take(limit) {
            self.backfills.remove(&id);
        }
    }
}
