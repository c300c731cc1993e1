//! Requests for work: due timers to plan, and runs to start.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::Claim;
use crate::ids::{InstanceId, OrgId, Target};
use crate::job::Definition;
use crate::micros::micros;
use crate::run::{NewRun, Run, RunStatus, Trigger};

/// A request to plan due timers.
#[derive(Clone, Copy, Debug)]
pub struct PlanDue<'a> {
    /// The current time.
    pub now: Timestamp,
    /// The most timers.
    pub limit: u32,
    /// The most timers if a current job of these targets has a priority: enough of them to choose from, so that the most
    /// urgent runs can be started.
    pub limit_by_priority: u32,
    /// The targets whose timers are planned.
    pub targets: &'a [Target],
    /// The new runs that start at once, for an instance that has room; `None` leaves all of them pending.
    pub start: Option<StartRuns<'a>>,
}

impl<'a> PlanDue<'a> {
    /// Plans, and starts nothing.
    pub fn new(now: Timestamp, limit: u32, targets: &'a [Target]) -> PlanDue<'a> {
        PlanDue { now, limit, limit_by_priority: limit, targets, start: None }
    }

    /// The most timers, given whether a current job of the targets has a priority.
    pub fn limit_for(&self, by_priority: bool) -> u32 {
        if by_priority { self.limit_by_priority } else { self.limit }
    }
}

/// A request for runs.
#[derive(Clone, Copy, Debug)]
pub struct StartRuns<'a> {
    /// The instance that asks.
    pub instance: InstanceId,
    /// The targets that it serves, with the free capacity of each.
    pub targets: &'a [TargetRoom],
    /// The free capacity in total.
    pub limit: u32,
    /// The current time.
    pub now: Timestamp,
    /// When the leases end unless they are renewed.
    pub lease_until: Timestamp,
}

/// A target and how many more of its runs an instance takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRoom {
    /// The target.
    pub target: Target,
    /// The number of runs that it can take.
    pub room: u32,
    /// Whether runs of a backfill may be among them.
    pub backfills: bool,
}

impl StartRuns<'_> {
    /// Picks the runs of plans that start with their plan, by their places and in the order in which they start: those of
    /// a higher priority first, then by time, as far as there is room. A run that is skipped, held back or meant for
    /// later is not picked.
    pub fn picks<'r>(&self, runs: impl IntoIterator<Item = (&'r Definition, &'r NewRun)>) -> Vec<usize> {
        let mut ready: Vec<_> = runs
            .into_iter()
            .enumerate()
            .filter(|(_, (_, run))| run.skip.is_none() && !run.held && run.scheduled_at <= self.now)
            .map(|(place, (job, run))| (Reverse(job.policies.priority), run.scheduled_at, run.id, place, &job.target))
            .collect();
        ready.sort_unstable();
        let mut room: BTreeMap<&Target, u32> = self.targets.iter().map(|one| (&one.target, one.room)).collect();
        let mut has_room = |target: &Target| match room.get_mut(target).filter(|left| **left > 0) {
            Some(left) => {
                *left -= 1;
                true
            }
            None => false,
        };
        let picked = ready.into_iter().filter(|(.., target)| has_room(target)).map(|(_, _, _, place, _)| place);
        picked.take(self.limit as usize).collect()
    }

    /// The claim of a new run that starts with its plan.
    pub fn claim(&self, job: &Arc<Definition>, org: Option<OrgId>, new: NewRun) -> Claim {
        let (now, lease_until) = (micros(self.now), micros(self.lease_until));
        let mut run = Run::planned(job, org, new, now);
        run.start(self.instance, now, lease_until);
        Claim { run, job: Some(Arc::clone(job)), lease_until }
    }
}

impl Run {
    /// A run as a plan of this job makes it, for this org or none: skipped, or pending.
    pub fn planned(job: &Definition, org: Option<OrgId>, new: NewRun, now: Timestamp) -> Run {
        let mut run = Run::new(new.id, job.target.clone(), new.trigger, micros(new.scheduled_at), micros(now));
        run.job_id = Some(job.id);
        run.job_key = Some(job.key.clone());
        run.job_version = Some(job.version);
        run.org = org;
        run.local_date = new.local_date;
        run.payload = new.payload.unwrap_or_else(|| job.payload.clone());
        run.trace_context = new.trace_context;
        run.slot_at = new.slot_at.map(micros);
        if new.skip.is_some() {
            run.status = RunStatus::Skipped;
        }
        run.held = new.held && new.skip.is_none();
        run.skip = new.skip;
        run.catch_up = new.catch_up;
        run.folded = new.folded;
        run
    }

    /// Whether it belongs to a backfill.
    pub fn is_backfill(&self) -> bool {
        matches!(self.trigger, Trigger::Backfill(_))
    }

    /// Begins the next attempt of a pending run.
    pub fn start(&mut self, instance: InstanceId, now: Timestamp, lease_until: Timestamp) {
        self.status = RunStatus::Running;
        self.held = false;
        self.attempt += 1;
        self.claimed = Some((now, instance));
        self.started_at = Some(now);
        self.lease_until = Some(lease_until);
        self.failure = None;
        self.next_attempt_at = None;
    }
}
