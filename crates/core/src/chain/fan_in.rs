//! [`FanIn`]: a job that starts when runs of several jobs have ended, once for each group of runs that belong together.
//!
//! ```text
//! a run of A ends ─► group of its slot or local date ─┬ new ─► open until `within` has passed
//! a run of B ends ─► the same group ──────────────────┴ all of them have ended as wanted ─► the job starts, closed
//!                                                       `within` is over ──► gap `incomplete`, closed
//! ```
//!
//! The slot of a run is that of the run at the beginning of its chain, so the two arms of a chain that forked meet again.
//! A group is closed once and remembered, so later runs of the same slot or date start nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::{EndedRun, Start};
use crate::after::After;
use crate::fan_in::FanIn;
use crate::ids::{JobKey, OrgId, RunId};
use crate::run::{Gap, GapReason, RunStatus, Trigger};
use crate::zone::Zone;

/// How long a closed group is remembered. Runs that end later open a new one.
pub const REMEMBERED: Duration = Duration::from_hours(32 * 24);

/// A run that has just ended, and that a job with a [`FanIn`] may wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FanInEnd {
    /// The run.
    pub ended: EndedRun,
    /// The key of its job.
    pub job_key: JobKey,
    /// The org that it was for. Such a run does not count.
    pub org: Option<OrgId>,
    /// The slot of the run at the beginning of its chain, or the time for which that was requested.
    pub origin: Timestamp,
}

/// The runs that belong together, as far as they have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunGroup {
    /// The key of the job that waits for them.
    pub job_key: JobKey,
    /// The slot or the local date, see [`FanIn::group_of`].
    pub name: String,
    /// When the first of them ended.
    pub opened_at: Timestamp,
    /// When the wait ends.
    pub deadline: Timestamp,
    /// When all of them had ended as wanted, or the wait was over.
    pub closed_at: Option<Timestamp>,
    /// The run that the group started.
    pub started: Option<RunId>,
    /// The last run of each job, or the last one that counts.
    pub runs: Vec<GroupedRun>,
}

/// A run of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupedRun {
    /// The key of its job.
    pub job_key: JobKey,
    /// The run.
    pub run_id: RunId,
    /// How it ended.
    pub status: RunStatus,
    /// Whether it ended with an outcome that counts.
    pub counts: bool,
}

impl RunGroup {
    fn new(job: &JobKey, name: &str, first: Timestamp, within: Duration) -> RunGroup {
        let deadline = first.saturating_add(within).unwrap_or(Timestamp::MAX);
        RunGroup {
            job_key: job.clone(),
            name: name.to_owned(),
            opened_at: first,
            deadline,
            closed_at: None,
            started: None,
            runs: Vec::new(),
        }
    }

    /// The runs that ended as wanted.
    fn counted(&self) -> impl Iterator<Item = &GroupedRun> {
        self.runs.iter().filter(|run| run.counts)
    }

    /// Describes each job that the group still waits for, or that was missing: `b has not ended`.
    pub fn missing(&self, fan_in: &FanIn) -> Vec<String> {
        let of = |parent: &After| self.runs.iter().find(|run| run.job_key == parent.job_key);
        let missing = fan_in.parents.iter().filter_map(|parent| match of(parent) {
            Some(run) if run.counts => None,
            Some(run) => Some(format!("run {} of {} is {}", run.run_id, parent.job_key, run.status)),
            None => Some(format!("{} has not ended", parent.job_key)),
        });
        missing.collect()
    }

    /// Takes a run into the group. Returns the start of the job, if everything it waits for has ended now.
    fn add(&mut self, fan_in: &FanIn, parent: &After, ended: &EndedRun) -> Option<Start> {
        // After the deadline the group is over, whether the gap is written yet or not.
        if self.closed_at.is_some() || ended.finished_at > self.deadline {
            return None;
        }
        let counts = parent.on.includes(ended.status);
        let run = GroupedRun { job_key: parent.job_key.clone(), run_id: ended.id, status: ended.status, counts };
        match self.runs.iter_mut().find(|known| known.job_key == run.job_key) {
            Some(known) if known.counts && !counts => {}
            Some(known) => *known = run,
            None => self.runs.push(run),
        }
        if !counts || !self.missing(fan_in).is_empty() {
            return None;
        }
        self.closed_at = Some(ended.finished_at);
        let mut runs = vec![ended.id];
        let wanted = self.counted().filter(|run| fan_in.parent(&run.job_key).is_some());
        runs.extend(wanted.map(|run| run.run_id).filter(|run| *run != ended.id));
        Some(Start { cause: ended.id, trigger: Trigger::AfterAll(runs), at: ended.finished_at })
    }
}

/// Takes runs that have ended into their groups, oldest first, and returns the starts of the job.
///
/// `groups` has those that are stored already, by name; afterwards also the new ones.
pub fn join(
    job: &JobKey,
    fan_in: &FanIn,
    zone: &Zone,
    ends: &[FanInEnd],
    groups: &mut BTreeMap<String, RunGroup>,
) -> Vec<Start> {
    let mut ends: Vec<&FanInEnd> = ends.iter().filter(|end| end.org.is_none()).collect();
    ends.sort_by_key(|end| (end.ended.finished_at, end.ended.id));
    let mut starts = Vec::new();
    for end in ends {
        let Some(parent) = fan_in.parent(&end.job_key).filter(|parent| parent.heeds(&end.ended.trigger)) else {
            continue;
        };
        let name = fan_in.group_of(end.origin, zone);
        let new = || RunGroup::new(job, &name, end.ended.finished_at, fan_in.within);
        let group = groups.entry(name.clone()).or_insert_with(new);
        if let Some(start) = group.add(fan_in, parent, &end.ended) {
            group.started = Some(RunId::after(job, None, start.cause, start.at));
            starts.push(start);
        }
    }
    starts
}

/// Ends the wait of a group whose deadline has passed. Returns the gap, unless no run ended as wanted: then the job had
/// nothing to do.
fn expire(group: &mut RunGroup, is_paused: bool, now: Timestamp) -> Option<Gap> {
    if group.closed_at.is_some() || group.deadline > now {
        return None;
    }
    group.closed_at = Some(group.deadline);
    group.counted().next()?;
    let at = group.deadline;
    let reason = if is_paused { GapReason::Paused } else { GapReason::Incomplete };
    Some(Gap { first_slot_at: at, last_slot_at: at, slots: 1, reason, actor: None })
}

/// Ends the waits of groups of a job whose deadlines have passed. Returns their gaps, which are joined into one.
pub fn expire_all(groups: &mut [RunGroup], is_paused: bool, now: Timestamp) -> Vec<Gap> {
    let mut gaps = Vec::new();
    groups.sort_by(|a, b| (a.deadline, &a.name).cmp(&(b.deadline, &b.name)));
    for gap in groups.iter_mut().filter_map(|group| expire(group, is_paused, now)) {
        super::add_gap(&mut gaps, gap.first_slot_at, gap.reason);
    }
    gaps
}

#[cfg(test)]
mod tests;
