//! Leases: the later one of a run and its instance counts.

use std::collections::BTreeSet;

use everbell_core::settle::Transition;
use everbell_core::store::WorkSeen;
use everbell_core::{InstanceId, Run, RunStatus, Target};
use jiff::Timestamp;
use uuid::Uuid;

use super::state::{Active, State};

impl State {
    /// The end of the lease on a run: its own, or that of its instance if that ends later.
    pub(super) fn lease_of(&self, run: &Run) -> Option<Timestamp> {
        let own = run.lease_until?;
        let instance = run.claimed.and_then(|(_, by)| self.instances.get(&by.as_uuid()));
        Some(instance.and_then(|instance| instance.lease_until).map_or(own, |lease| lease.max(own)))
    }

    /// A run as it is read: with the lease that counts.
    pub(super) fn with_lease(&self, run: &Run) -> Run {
        let mut run = run.clone();
        run.lease_until = self.lease_of(&run);
        run
    }

    /// The runs that an instance holds.
    pub(super) fn held_by(&self, instance: InstanceId) -> impl Iterator<Item = &Run> {
        let is_own =
            move |run: &&Run| run.status == RunStatus::Running && run.claimed.is_some_and(|(_, by)| by == instance);
        self.active.values().map(|active| &active.run).filter(is_own)
    }

    /// Whether there is work for these targets.
    pub(super) fn work_of(&self, targets: &[Target], now: Timestamp) -> WorkSeen {
        let is_waiting =
            |active: &&Active| active.run.status == RunStatus::Pending && active.available_at <= now && !active.paused;
        WorkSeen {
            is_due: !self.due(now, 1, targets).is_empty(),
            is_pending: self.active.values().filter(is_waiting).any(|active| targets.contains(&active.run.target)),
        }
    }

    /// Whether an instance holds runs.
    pub(super) fn holds_runs(&self, instance: InstanceId) -> bool {
        self.held_by(instance).next().is_some()
    }

    /// Lets the instances notice from which runs are taken as lost.
    pub(super) fn count_losses(&mut self, transitions: &[Transition]) {
        let lost = transitions.iter().filter(|transition| transition.is_lost());
        let runs = lost.filter_map(|transition| self.active.get(&transition.run_id)).map(|active| &active.run);
        let running = runs.filter(|run| run.status == RunStatus::Running);
        let runners: BTreeSet<Uuid> = running.filter_map(|run| Some(run.claimed?.1.as_uuid())).collect();
        for (_, instance) in self.instances.iter_mut().filter(|(id, _)| runners.contains(id)) {
            instance.losses += 1;
        }
    }
}
