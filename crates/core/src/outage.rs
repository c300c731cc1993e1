//! [`Outage`]: a time in which no instance scheduled anything, and what became of the slots in it.
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

use crate::ids::JobKey;
use crate::policy::words;

/// The shortest absence that is written down: restarts and upgrades that are quicker cost nothing but a little lag.
pub const MIN_ABSENCE: Duration = Duration::from_secs(20);

/// An instance that is alive may be late by this many heartbeats.
const LATE_BEATS: u32 = 4;

/// Slots this long before the last heartbeat belong to the absence: the instance may have died before it planned them.
const SLACK: SignedDuration = SignedDuration::from_secs(5);

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

    /// Returns the first instant whose slots belong to it.
    pub fn slots_from(&self) -> Timestamp {
        self.from.checked_sub(SLACK).unwrap_or(self.from)
    }

    /// Returns the time from which on outcomes of its slots were written. An instance lives on for at most a heartbeat after
    /// its last one, which is less than half of an absence, and plans shortly before its first one.
    pub fn decided_from(&self) -> Timestamp {
        let half = self.length() / 2;
        self.from.checked_add(half).unwrap_or(self.until)
    }
}

/// Joins absences that overlap or touch, which instances noticed on their own. The earliest first.
pub fn merge_absences(mut absences: Vec<Absence>) -> Vec<Absence> {
    absences.sort_unstable();
    let mut merged: Vec<Absence> = Vec::with_capacity(absences.len());
    for absence in absences {
        match merged.last_mut() {
            Some(last) if absence.from <= last.until => last.until = last.until.max(absence.until),
            _ => merged.push(absence),
        }
    }
    merged
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
    /// A run of a backfill. The slot counts as missed, expired or coalesced as well.
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

/// The cost of an outage for a job.
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

    /// Whether each of its slots ran late, was folded into a run, or was backfilled.
    pub fn is_caught_up(&self) -> bool {
        self.slots() > 0 && self.missed() <= self.count(LateOutcome::Backfilled)
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
    /// Adds up what became of the slots of an absence.
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
