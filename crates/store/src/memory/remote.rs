//! Runs in the hands of their remote sides.

use async_trait::async_trait;
use everbell_core::handover::{Handover, Remote};
use everbell_core::remote::HeldRun;
use everbell_core::store::{RemoteStore, RemoteUpdate, StoreResult};
use everbell_core::{InstanceId, Run, RunId, RunStatus};
use jiff::Timestamp;

use super::MemoryStore;
use super::state::{Active, State, micros};

#[async_trait]
impl RemoteStore for MemoryStore {
    async fn run_token_key(&self, candidate: &[u8; 32]) -> StoreResult<[u8; 32]> {
        self.with(|state| Ok(*state.run_token_key.get_or_insert(*candidate)))
    }

    async fn hand_over(&self, handover: &Handover, lease_until: Timestamp, output: Option<&str>) -> StoreResult<bool> {
        self.with(|state| {
            let Some(active) = state.at_work(handover.run, handover.attempt) else { return Ok(false) };
            let lease_until = Some(micros(lease_until));
            let is_new = !active.run.is_handed_over();
            let progress = active.remote.take().filter(|_| !is_new).and_then(|remote| remote.progress);
            active.remote = Some(Remote { lease: handover.lease, deadline: micros(handover.deadline), progress });
            if is_new {
                active.run.claimed = active.run.claimed.map(|(at, _)| (at, InstanceId::REMOTE));
                active.run.lease_until = lease_until;
                if let Some(output) = output {
                    state.outputs.insert(handover.run, output.to_owned());
                }
            } else {
                active.run.lease_until = active.run.lease_until.max(lease_until);
            }
            Ok(true)
        })
    }

    async fn update_remote(&self, update: &RemoteUpdate) -> StoreResult<bool> {
        self.with(|state| {
            let output = state.outputs.get(&update.run).cloned();
            let is_other = |added: &everbell_core::store::AddedOutput| added.before != output;
            if update.output.as_ref().is_some_and(is_other) {
                return Ok(false);
            }
            let active = state.at_work(update.run, update.attempt).filter(|active| active.run.is_handed_over());
            let Some(Active { run, remote: Some(remote), .. }) = active else { return Ok(false) };
            run.lease_until = run.lease_until.max(update.lease_until.map(micros));
            if update.progress.is_some() {
                remote.progress.clone_from(&update.progress);
            }
            if let Some(added) = &update.output {
                state.outputs.insert(update.run, added.after.clone());
            }
            Ok(true)
        })
    }

    async fn remote_runs(&self, before: Timestamp, limit: u32) -> StoreResult<Vec<HeldRun>> {
        self.with(|state| {
            let held = state.active.values().filter_map(|active| state.held_remotely(active));
            let mut held: Vec<HeldRun> = held.filter(|run| run.due_at() < micros(before)).collect();
            held.sort_by_key(|run| (run.due_at(), run.settling.id));
            held.truncate(limit as usize);
            Ok(held)
        })
    }
}

impl State {
    /// A run that is at work in this attempt.
    fn at_work(&mut self, run: RunId, attempt: u32) -> Option<&mut Active> {
        let is_current = |run: &Run| run.status == RunStatus::Running && run.attempt == attempt;
        self.active.get_mut(&run).filter(|active| is_current(&active.run))
    }

    /// Returns the remote side that holds a run.
    pub(super) fn remote_of(&self, run: RunId) -> Option<Remote> {
        let Active { run, remote, .. } = self.active.get(&run)?;
        remote.clone().filter(|_| run.status == RunStatus::Running && run.is_handed_over())
    }

    fn held_remotely(&self, Active { run, .. }: &Active) -> Option<HeldRun> {
        let remote = self.remote_of(run.id)?;
        Some(HeldRun {
            settling: self.settling(run),
            lease_until: run.lease_until?,
            lease: remote.lease,
            deadline: remote.deadline,
            started_at: run.started_at,
            cancel_by: run.cancel_by.clone(),
        })
    }
}
