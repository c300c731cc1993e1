//! Backfills of any length: a row with a cursor, whose runs are created a few at a time.
//!
//! ```text
//!   from                       reached                                        to
//!    ├──── runs or existing ──────┤······│······│······│······│······│···········┤      oldest first
//!                                  └ next chunk: as many as places and rate allow
//! ```
//!
//! A [`Backfill`] knows which slots it has reached and which of its runs have not been counted yet. [`Backfill::settle`] counts
//! those that ended, [`Backfill::next_chunk`] creates runs for the next slots. Both are pure; a store writes what they decide with
//! the runs of the chunk in one transaction, guarded by the revision of the row. So each slot gets at most one run, no matter who
//! dies meanwhile, and any instance can go on.

mod chunk;
mod rate;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::ids::{BackfillId, Invalid, JobKey, OrgId, RunId};
use crate::policy::{Overlap, Policies, words};
use crate::run::{RunStatus, Trigger};
use crate::spec::Spec;
use crate::trace_context::TraceContext;

pub use chunk::{ChunkInput, MAX_CHUNK};
pub use rate::Rate;

/// The most runs of a backfill at once.
pub const MAX_PARALLEL: u32 = 1_000;

/// How many runs are at work at once if neither the request nor the job limits them.
pub const DEFAULT_PARALLEL: u32 = 100;

/// The order in which a backfill runs its slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BackfillOrder {
    /// The oldest slot first.
    #[default]
    Oldest,
    /// The newest slot first.
    Newest,
}
words!(BackfillOrder { Oldest = "oldest", Newest = "newest" });

/// The status of a backfill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BackfillStatus {
    /// It creates runs, or some of them have not ended.
    Running,
    /// An operator paused it.
    Paused,
    /// It creates no more runs, although slots are left.
    Stopped,
    /// Every slot has a run, and all of its own have ended.
    Done,
}
words!(BackfillStatus { Running = "running", Paused = "paused", Stopped = "stopped", Done = "done" });

impl BackfillStatus {
    /// Whether it can never change again.
    pub const fn is_over(self) -> bool {
        matches!(self, BackfillStatus::Stopped | BackfillStatus::Done)
    }
}

/// How a backfill runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackfillSettings {
    /// The order of its slots.
    pub order: BackfillOrder,
    /// How many of its runs may be pending or running at once: default as many as the job allows for all of its backfills.
    pub parallel: Option<u32>,
    /// How many runs it creates in a time: default no limit.
    pub rate: Option<Rate>,
    /// Whether it continues while the job is paused.
    pub paused_ok: bool,
}

impl BackfillSettings {
    /// Refuses a bound that is out of range.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.parallel.is_some_and(|parallel| !(1..=MAX_PARALLEL).contains(&parallel)) {
            return Err(Invalid::new("parallel", format!("must be from 1 to {MAX_PARALLEL}")));
        }
        Ok(())
    }
}

/// A run of a backfill that was not seen to have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenRun {
    /// The run.
    pub id: RunId,
    /// Its slot.
    pub slot: Timestamp,
}

/// How many slots of a backfill came to what, so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackfillCounts {
    /// Runs that it created.
    pub created: u64,
    /// Slots that had a run already.
    pub existing: u64,
    /// Runs that succeeded.
    pub succeeded: u64,
    /// Runs that failed.
    pub failed: u64,
    /// Runs that were canceled or skipped.
    pub canceled: u64,
}

impl BackfillCounts {
    /// The number of runs that have ended.
    pub fn ended(&self) -> u64 {
        self.succeeded + self.failed + self.canceled
    }
}

/// The point from which the speed of a backfill is measured: its beginning, or its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The time from which the speed is measured.
    pub since: Timestamp,
    /// How many runs had ended by then.
    pub ended: u64,
}

/// A backfill: its request, its settings, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backfill {
    /// Its id.
    pub id: BackfillId,
    /// Counts its changes, for the guard of the next one.
    pub revision: u64,
    /// The job. Each chunk belongs to the version that is current then.
    pub job_key: JobKey,
    /// The org, for a job that fires for each.
    pub org: Option<OrgId>,
    /// When it was requested.
    pub requested_at: Timestamp,
    /// The actor that requested it.
    pub requested_by: String,
    /// The reason that was given.
    pub reason: Option<String>,
    /// The start of the range, inclusive.
    pub from: Timestamp,
    /// The end of the range, inclusive.
    pub to: Timestamp,
    /// How it runs.
    pub settings: BackfillSettings,
    /// Its status.
    pub status: BackfillStatus,
    /// Why it stopped by itself.
    pub stopped_because: Option<String>,
    /// The last slot that it has reached, in its order.
    pub reached: Option<Timestamp>,
    /// Slots that it has reached and whose runs were withdrawn before they started, oldest first.
    pub again: Vec<Timestamp>,
    /// Its runs that are not counted as ended.
    pub open: Vec<OpenRun>,
    /// Its slots by their outcome.
    pub counts: BackfillCounts,
    /// When its rate allows the next run.
    pub next_at: Timestamp,
    /// The point from which its speed is measured.
    pub pace: Pace,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The trace that its runs continue.
    pub trace_context: Option<TraceContext>,
}

/// A run as far as a backfill cares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotRun {
    /// Its id.
    pub id: RunId,
    /// Its slot, or the time of its request.
    pub at: Timestamp,
    /// Its cause.
    pub trigger: Trigger,
    /// Its status.
    pub status: RunStatus,
    /// The number of its current attempt; 0 before the first.
    pub attempt: u32,
}

/// The progress of a backfill at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackfillProgress {
    /// Slots for which it has not created a run yet. Some of them may have one.
    pub left: u64,
    /// Its pending runs.
    pub pending: u64,
    /// Its running runs.
    pub running: u64,
    /// The other slots by their outcome.
    pub counts: BackfillCounts,
    /// How many runs ended per hour since its beginning or last change; `None` before the first.
    pub per_hour: Option<u64>,
    /// When it will be done at this speed.
    pub done_at: Option<Timestamp>,
}

impl Backfill {
    /// Returns it as this revision, written at `now`. Times are kept to the microsecond.
    pub(crate) fn at_revision(self, revision: u64, now: Timestamp) -> Backfill {
        Backfill { revision, updated_at: crate::micros::micros(now), ..self }
    }

    /// Creates a backfill that has not begun. Times are kept to the microsecond.
    pub fn new(
        (id, job_key, org): (BackfillId, JobKey, Option<OrgId>),
        (from, to): (Timestamp, Timestamp),
        settings: BackfillSettings,
        requested_by: &str,
        now: Timestamp,
    ) -> Backfill {
        let now = crate::micros::micros(now);
        Backfill {
            id,
            revision: 1,
            job_key,
            org,
            requested_at: now,
            requested_by: requested_by.to_owned(),
            reason: None,
            from: crate::micros::micros(from),
            to: crate::micros::micros(to),
            settings,
            status: BackfillStatus::Running,
            stopped_because: None,
            reached: None,
            again: Vec::new(),
            open: Vec::new(),
            counts: BackfillCounts::default(),
            next_at: now,
            pace: Pace { since: now, ended: 0 },
            updated_at: now,
            trace_context: None,
        }
    }

    /// Whether a loop has something to do for it: it runs, or runs of it are still to be counted.
    pub fn is_open(&self) -> bool {
        self.status == BackfillStatus::Running || !self.open.is_empty()
    }

    /// Whether this run is one of its own.
    pub fn owns(&self, run: &SlotRun) -> bool {
        run.trigger == Trigger::Backfill(self.id)
    }

    /// Counts the slots that it has not reached or has to create again. Arithmetic, however many they are.
    pub fn slots_left(&self, spec: &Spec) -> u64 {
        let (after, until) = self.unreached();
        let ahead = if after < until { spec.count_own_times(after, until) } else { 0 };
        ahead + self.again.len() as u64
    }

    /// Counts those of its open runs that ended, by how the database knows them. A run that is gone was withdrawn, and a slot
    /// whose run belongs to another request counts as existing.
    pub fn settle(&mut self, found: &[SlotRun]) {
        let found: BTreeMap<RunId, &SlotRun> = found.iter().map(|run| (run.id, run)).collect();
        let own = self.id;
        let counts = &mut self.counts;
        self.open.retain(|open| match found.get(&open.id) {
            None => {
                counts.created = counts.created.saturating_sub(1);
                false
            }
            Some(run) if run.trigger != Trigger::Backfill(own) => {
                counts.created = counts.created.saturating_sub(1);
                counts.existing += 1;
                false
            }
            Some(run) => match run.status {
                RunStatus::Pending | RunStatus::Running => true,
                RunStatus::Succeeded => {
                    counts.succeeded += 1;
                    false
                }
                RunStatus::Failed => {
                    counts.failed += 1;
                    false
                }
                RunStatus::Canceled | RunStatus::Skipped => {
                    counts.canceled += 1;
                    false
                }
            },
        });
    }

    /// Takes back runs that were deleted before they started. One that goes on creates them again first.
    pub fn withdraw(&mut self, deleted: &[RunId]) {
        let (gone, kept) = std::mem::take(&mut self.open).into_iter().partition(|open| deleted.contains(&open.id));
        let gone: Vec<OpenRun> = gone;
        self.open = kept;
        self.counts.created = self.counts.created.saturating_sub(gone.len() as u64);
        self.again.extend(gone.iter().map(|open| open.slot));
        self.again.sort_unstable();
        self.again.dedup();
    }

    /// Returns its progress, given its open runs and the schedule; without a schedule nothing is known to be left.
    pub fn progress(&self, found: &[SlotRun], spec: Option<&Spec>, now: Timestamp) -> BackfillProgress {
        let mut seen = self.clone();
        seen.settle(found);
        let is_running =
            |open: &&OpenRun| found.iter().any(|run| run.id == open.id && run.status == RunStatus::Running);
        let running = seen.open.iter().filter(is_running).count() as u64;
        let pending = seen.open.len() as u64 - running;
        let left = if self.status == BackfillStatus::Done { 0 } else { spec.map_or(0, |spec| seen.slots_left(spec)) };
        let (per_hour, done_at) = seen.estimate(left + pending + running, now);
        BackfillProgress { left, pending, running, counts: seen.counts, per_hour, done_at }
    }

    /// Estimates its speed, and when the rest will be done.
    fn estimate(&self, rest: u64, now: Timestamp) -> (Option<u64>, Option<Timestamp>) {
        if self.status != BackfillStatus::Running || rest == 0 {
            return (None, None);
        }
        let took = now.duration_since(self.pace.since).max(SignedDuration::from_millis(1));
        let ended = self.counts.ended().saturating_sub(self.pace.ended);
        let measured = (ended > 0).then(|| took.as_nanos() / i128::from(ended));
        let limited = self.settings.rate.map(|rate| rate.interval().as_nanos());
        let Some(each) = measured.max(limited) else { return (None, None) };
        let per_hour = u64::try_from(SignedDuration::from_hours(1).as_nanos() / each.max(1)).ok();
        let needed = i64::try_from((each * i128::from(rest)) / 1_000_000).ok().map(SignedDuration::from_millis);
        (per_hour.filter(|_| ended > 0), needed.and_then(|needed| now.checked_add(needed).ok()))
    }

    /// Measures its speed from now on.
    pub(crate) fn measure_from(&mut self, now: Timestamp) {
        self.pace = Pace { since: crate::micros::micros(now), ended: self.counts.ended() };
    }

    /// How many of its runs may be open at once, under the policies of its job.
    pub fn limit(&self, policies: &Policies) -> u32 {
        match (self.settings.parallel, policies.overlap) {
            (Some(parallel), _) => parallel,
            (None, Overlap::Allow) => DEFAULT_PARALLEL,
            (None, _) => policies.max_concurrent_runs.min(MAX_PARALLEL),
        }
    }

    /// The part of its range that it has not reached: after the first time, up to the second.
    fn unreached(&self) -> (Timestamp, Timestamp) {
        let start = crate::plan::just_before(self.from);
        match (self.settings.order, self.reached) {
            (_, None) => (start, self.to),
            (BackfillOrder::Oldest, Some(reached)) => (reached, self.to),
            (BackfillOrder::Newest, Some(reached)) => (start, crate::plan::just_before(reached)),
        }
    }
}
