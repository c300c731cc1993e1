//! Whether a new run may start while others of its job are active. One rule for every kind of trigger, but backfills are
//! beside the schedule: their runs count only among themselves, so that live slots neither wait for them nor are skipped.

use crate::ids::RunId;
use crate::policy::{Overlap, Policies};
use crate::run::{ActiveRun, SkipReason};

/// The actor who cancels a run that a later slot replaces.
pub const REPLACER: &str = "everbell (overlap: replace)";

/// Whether a run may start.
pub(crate) enum Admission {
    Start,
    /// Pending, but not before others have ended.
    Hold,
    Skip {
        blocking: RunId,
    },
}

/// The active runs of a job, those in the database and those of the plan in the making.
pub(crate) struct Overlaps {
    policy: Overlap,
    max: usize,
    /// Oldest first.
    active: Vec<Entry>,
    cancel: Vec<RunId>,
    /// Runs of this very plan that a later slot replaced, and by which.
    replaced: Vec<(RunId, RunId)>,
}

#[derive(Clone, Copy)]
struct Entry {
    id: RunId,
    held: bool,
    leaving: bool,
    /// Made by this plan, so not in the database yet.
    planned: bool,
}

impl Overlaps {
    pub(crate) fn new(policies: &Policies, active: &[ActiveRun]) -> Overlaps {
        let live = active.iter().filter(|run| !run.backfill);
        Overlaps::among(live, policies.overlap, policies.max_concurrent_runs)
    }

    /// Returns the active runs of backfills. Without a bound of its own, a backfill has that of the job.
    pub(crate) fn of_backfills(policies: &Policies, active: &[ActiveRun], parallel: Option<u32>) -> Overlaps {
        let policy = if parallel.is_some() { Overlap::Queue } else { policies.overlap };
        let backfills = active.iter().filter(|run| run.backfill);
        Overlaps::among(backfills, policy, parallel.unwrap_or(policies.max_concurrent_runs))
    }

    fn among<'a>(active: impl Iterator<Item = &'a ActiveRun>, policy: Overlap, max: u32) -> Overlaps {
        let entry =
            |run: &ActiveRun| Entry { id: run.id, held: run.held, leaving: run.cancel_requested, planned: false };
        let active = active.map(entry).collect();
        Overlaps { policy, max: max as usize, active, cancel: Vec::new(), replaced: Vec::new() }
    }

    /// Returns the same active runs under another policy, for a caller that asked for it.
    pub(crate) fn with_policy(self, policy: Overlap) -> Overlaps {
        Overlaps { policy, ..self }
    }

    pub(crate) fn admit(&mut self, id: RunId) -> Admission {
        if self.policy == Overlap::Allow || self.active.len() < self.max {
            return self.join(id, false);
        }
        match self.policy {
            Overlap::Allow => self.join(id, false),
            Overlap::Skip => Admission::Skip { blocking: self.active[0].id },
            Overlap::Queue => match self.active.iter().find(|entry| entry.held) {
                Some(waiting) => Admission::Skip { blocking: waiting.id },
                None => self.join(id, true),
            },
            Overlap::Replace => {
                self.make_room(id);
                // Nothing in the database is left to wait for only if everything that went was of this plan.
                let held = self.active.len() >= self.max;
                self.join(id, held)
            }
        }
    }

    /// Admits a run that waits for its turn however many wait before it.
    pub(crate) fn wait(&mut self, id: RunId) -> (Option<SkipReason>, bool) {
        let held = self.policy != Overlap::Allow && self.active.len() >= self.max;
        self.join(id, held);
        (None, held)
    }

    fn join(&mut self, id: RunId, held: bool) -> Admission {
        self.active.push(Entry { id, held, leaving: false, planned: true });
        if held { Admission::Hold } else { Admission::Start }
    }

    /// Sends away the oldest runs, until there is room for one more when they are gone.
    fn make_room(&mut self, newcomer: RunId) {
        let staying = self.active.iter().filter(|entry| !entry.leaving).count();
        let mut surplus = (staying + 1).saturating_sub(self.max);
        let mut kept = Vec::with_capacity(self.active.len());
        for mut entry in std::mem::take(&mut self.active) {
            if !entry.leaving && surplus > 0 {
                surplus -= 1;
                if entry.planned {
                    self.replaced.push((entry.id, newcomer));
                    continue;
                }
                entry.leaving = true;
                self.cancel.push(entry.id);
            }
            kept.push(entry);
        }
        self.active = kept;
    }

    /// The runs to cancel, and the runs of this plan that a later one replaced.
    pub(crate) fn finish(&mut self) -> (Vec<RunId>, Vec<(RunId, RunId)>) {
        (std::mem::take(&mut self.cancel), std::mem::take(&mut self.replaced))
    }
}
