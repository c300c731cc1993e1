//! [`Outage`]: a period with no scheduling instance, and the outcome of each slot in it.
//!
//! ```text
//!   heartbeats   ─┤ ┤ ┤ ┤                          ├ ┤ ┤ ┤──► time
//!                       └──────── absence ─────────┘
//!   slots          │ │ │ ·  ·  ·  ·  ·  ·  ·  ·  · │ │ │
//!                        └─ missed, coalesced, late ┘
//! ```
//!
//! An [`Absence`] is a fact: an instance that begins to schedule, or that could not write heartbeats for a while, looks for the
//! last heartbeat of any instance that schedules, and writes down the time since. Slots belong to it by their time *and* by
//! the time of their outcome, which lies after the absence. So a slow job is no outage (its slots have an outcome while
//! instances are alive), and neither is a frozen, paused or excluded one (its gaps have another reason), nor a job whose
//! target no instance served while others were alive (there is no absence).

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::LATEST;
use crate::ids::JobKey;
use crate::policy::words;

/// The shortest absence that is written down: restarts and upgrades that are quicker cost nothing but a little lag.
pub const MIN_ABSENCE: Duration = Duration::from_secs(20);

/// An instance that is alive may be late by this many heartbeats.
const LATE_BEATS: u32 = 4;

/// Slots this long before the last heartbeat belong to the absence: the instance may have died before it planned them.
const SLACK: SignedDuration = SignedDuration::from_secs(5);

/// A gap that reaches into the absence may begin this long before: an instance that is asked to stop plans no more, and sends
/// heartbeats until its runs have ended. One that begins earlier has another cause, such as a target that no instance served.
const GAP_SLACK: SignedDuration = SignedDuration::from_mins(2);

/// Outcomes of slots of the absence are written at most this long before the first heartbeat after it.
const DECIDED_BEFORE: SignedDuration = SignedDuration::from_secs(10);

/// A time in which no instance that schedules sent a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Absence {
    /// The last heartbeat before.
    pub from: Timestamp,
    /// The first heartbeat after.
    pub until: Timestamp,
}

impl Absence {
    /// Returns the absence that ends with a heartbeat at `now`, given the last heartbeat of any instance that schedules and
    /// the time between two heartbeats. `None` if it is too short, if there never was a heartbeat, or if a clock went back.
    pub fn since(last_heartbeat: Option<Timestamp>, now: Timestamp, interval: Duration) -> Option<Absence> {
        let from = last_heartbeat.filter(|from| *from < now)?;
        let length = Duration::try_from(now.duration_since(from)).ok()?;
        (length >= MIN_ABSENCE.max(interval.saturating_mul(LATE_BEATS))).then_some(Absence { from, until: now })
    }

    /// Returns how long it was.
    pub fn length(&self) -> SignedDuration {
        self.until.duration_since(self.from)
    }

    /// Returns the time from which on outcomes of its slots were written: shortly before the first heartbeat after it, because
    /// an instance that was stopped for a while may plan before it sends one. That is after the last instance has ended, which
    /// lives on for at most a heartbeat after its last one.
    fn decided_from(&self) -> Timestamp {
        self.until.checked_sub(DECIDED_BEFORE.min(self.length() / 2)).unwrap_or(self.until)
    }
}

/// Absences that overlap or touch: several instances noticed the same, or one began and ended at once, again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsenceGroup {
    /// All of them as one.
    pub absence: Absence,
    /// The slots that got their outcome at the end of each absence.
    pub ranges: Vec<LateRange>,
}

/// Slots that got their outcome at the end of an absence. No slot is in two ranges of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateRange {
    /// The first instant at which a gap may begin that reaches `slots_from`.
    pub gaps_from: Timestamp,
    /// The first instant of a slot.
    pub slots_from: Timestamp,
    /// The end of the slots, exclusive.
    pub until: Timestamp,
    /// The first instant at which their outcomes were written.
    pub decided_from: Timestamp,
    /// The end of that time, exclusive.
    pub decided_until: Timestamp,
}

impl AbsenceGroup {
    /// Groups absences. The earliest first.
    pub fn from_absences(mut absences: Vec<Absence>) -> Vec<AbsenceGroup> {
        absences.sort_unstable();
        let mut groups: Vec<(Absence, Vec<Absence>)> = Vec::new();
        for absence in absences {
            match groups.last_mut() {
                Some((whole, parts)) if absence.from <= whole.until => {
                    whole.until = whole.until.max(absence.until);
                    parts.push(absence);
                }
                _ => groups.push((absence, vec![absence])),
            }
        }
        groups.into_iter().map(|(absence, parts)| AbsenceGroup { absence, ranges: ranges(absence, parts) }).collect()
    }
}

/// The slots of each part begin with the whole, because the instance that ended an earlier part may have ended before it
/// planned them. Each part has the outcomes that were written at its end and before the end of the next one.
fn ranges(whole: Absence, mut parts: Vec<Absence>) -> Vec<LateRange> {
    parts.sort_unstable_by_key(|part| (part.decided_from(), part.until));
    let before = |slack| whole.from.checked_sub(slack).unwrap_or(whole.from);
    let (gaps_from, slots_from) = (before(GAP_SLACK), before(SLACK));
    let ends = parts.iter().skip(1).map(Absence::decided_from).chain([LATEST]).collect::<Vec<_>>();
    // A short part inside of a longer one is decided later, but ends earlier: slots of the longer one still belong to it.
    let mut until = whole.from;
    let ranges = parts.iter().zip(ends).map(|(part, decided_until)| {
        until = until.max(part.until);
        LateRange { gaps_from, slots_from, until, decided_from: part.decided_from(), decided_until }
    });
    ranges.filter(|range| range.decided_from < range.decided_until).collect()
}

/// Joins absences that overlap or touch. The earliest first.
pub fn merge_absences(absences: Vec<Absence>) -> Vec<Absence> {
    AbsenceGroup::from_absences(absences).into_iter().map(|group| group.absence).collect()
}

/// The outcome of a slot that passed while no instance scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LateOutcome {
    /// No run, because the job does not catch up, or not so much.
    Missed,
    /// No run, because the slot was older than the catch-up window.
    Expired,
    /// Folded into the run of a later slot.
    Coalesced,
    /// A late run.
    Ran,
    /// A run that was skipped, because of another run or a dependency.
    Skipped,
    /// A run of a backfill that was not canceled. The slot counts as missed, expired or coalesced as well.
    Backfilled,
}
words!(LateOutcome {
    Missed = "missed",
    Expired = "expired",
    Coalesced = "coalesced",
    Ran = "ran",
    Skipped = "skipped",
    Backfilled = "backfilled",
});

/// Slots of a job in an absence that have the same outcome.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LateSlots {
    /// The job, in any version.
    pub job_key: JobKey,
    /// Their outcome.
    pub outcome: LateOutcome,
    /// How many there are.
    pub slots: u64,
    /// The first of them.
    pub first_slot_at: Timestamp,
    /// The last of them.
    pub last_slot_at: Timestamp,
}

/// The effect of an outage on a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOutage {
    /// The job.
    pub job_key: JobKey,
    /// Its first slot in the outage.
    pub first_slot_at: Timestamp,
    /// Its last slot in the outage.
    pub last_slot_at: Timestamp,
    counts: BTreeMap<LateOutcome, u64>,
}

impl JobOutage {
    /// Returns how many of its slots have this outcome.
    pub fn count(&self, outcome: LateOutcome) -> u64 {
        self.counts.get(&outcome).copied().unwrap_or(0)
    }

    /// Returns how many slots passed.
    pub fn slots(&self) -> u64 {
        let first = self.counts.iter().filter(|(outcome, _)| **outcome != LateOutcome::Backfilled);
        first.fold(0, |sum, (_, slots)| sum.saturating_add(*slots))
    }

    /// Returns how many slots have no run, neither a late one nor one that covers them.
    pub fn missed(&self) -> u64 {
        self.count(LateOutcome::Missed).saturating_add(self.count(LateOutcome::Expired))
    }

    /// Whether each of its slots ran late, was folded into a run that was not skipped, or was backfilled.
    pub fn is_caught_up(&self) -> bool {
        let count = |outcome| self.count(outcome);
        let coalesced = count(LateOutcome::Coalesced);
        let is_covered = self.missed() == 0 && (coalesced == 0 || count(LateOutcome::Ran) > 0);
        // A backfill fills missed and coalesced slots alike, and no skipped ones.
        let is_backfilled = self.missed().saturating_add(coalesced) <= count(LateOutcome::Backfilled);
        self.slots() > 0 && count(LateOutcome::Skipped) == 0 && (is_covered || is_backfilled)
    }

    /// Whether a backfill would create runs.
    pub fn can_backfill(&self) -> bool {
        self.missed().saturating_add(self.count(LateOutcome::Coalesced)) > self.count(LateOutcome::Backfilled)
    }
}

/// A time in which no instance scheduled anything, and what it cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// From when until when.
    pub absence: Absence,
    /// The jobs with slots in it, those with the most missed slots first.
    pub jobs: Vec<JobOutage>,
}

impl Outage {
    /// Adds up the outcomes of the slots of an absence.
    pub fn new(absence: Absence, late: &[LateSlots]) -> Outage {
        let mut jobs: BTreeMap<&JobKey, JobOutage> = BTreeMap::new();
        for slots in late {
            let job = jobs.entry(&slots.job_key).or_insert_with(|| JobOutage {
                job_key: slots.job_key.clone(),
                first_slot_at: slots.first_slot_at,
                last_slot_at: slots.last_slot_at,
                counts: BTreeMap::new(),
            });
            job.first_slot_at = job.first_slot_at.min(slots.first_slot_at);
            job.last_slot_at = job.last_slot_at.max(slots.last_slot_at);
            let count = job.counts.entry(slots.outcome).or_default();
            *count = count.saturating_add(slots.slots);
        }
        // A backfill of a job that had no slot in it, such as one from before the job existed, is no cost of the outage.
        let mut jobs: Vec<JobOutage> = jobs.into_values().filter(|job| job.slots() > 0).collect();
        jobs.sort_by(|a, b| {
            let cost = |job: &JobOutage| (job.missed(), job.slots());
            cost(b).cmp(&cost(a)).then_with(|| a.job_key.cmp(&b.job_key))
        });
        Outage { absence, jobs }
    }

    /// Returns how many slots passed.
    pub fn slots(&self) -> u64 {
        self.jobs.iter().fold(0, |sum, job| sum.saturating_add(job.slots()))
    }

    /// Returns how many slots of all jobs have this outcome.
    pub fn count(&self, outcome: LateOutcome) -> u64 {
        self.jobs.iter().fold(0, |sum, job| sum.saturating_add(job.count(outcome)))
    }

    /// Returns how many jobs are caught up.
    pub fn caught_up(&self) -> usize {
        self.jobs.iter().filter(|job| job.is_caught_up()).count()
    }
}
