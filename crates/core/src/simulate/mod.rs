//! [`simulate`]: the decisions of production on a virtual clock.
//!
//! ```text
//!   from                    outage                                to
//!   ├──│──────│──────│─────▒▒▒▒▒▒▒▒▒▒▒▒▒│──────│──────│──────│────┤
//!      plan   plan   plan   nothing is   plan: catch-up
//!      start  start  start  planned      start
//! ```
//!
//! Each slot of `[from, to)` ends in exactly one [`SlotRecord`]. [`plan`](crate::plan::plan) decides about slots that are
//! due, [`settle`](crate::settle::settle) about runs that end. The rest is a model of the engine:
//!
//! - A timer is planned at the instant at which it is due, and a run starts at once if a place is free, also one of its
//!   target if that has a limit. At the same instant, attempts end first, then runs that wait start, then timers are planned.
//! - Each attempt takes the time that the caller names, and succeeds; one that would take longer than the timeout is
//!   stopped then, and may be retried.
//! - During an outage no instance plans or runs anything. Runs that were at work when it began are lost. The first
//!   instance that comes back settles them after [`REAPER_PATIENCE`], and not before the lease of [`LEASE`] has ended:
//!   until then they count as active, as they do in production.
//! - Nothing is active at `from`. A job that another one depends on counts as having succeeded at `from`; one that is not
//!   simulated counts as having succeeded just now.

mod engine;
mod job_state;
mod places;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::ids::{Invalid, Target};
use crate::job::Definition;
use crate::plan::just_before;
use crate::run::{GapReason, SkipReason};

/// The most slots that one simulation holds.
pub const MAX_SIMULATED_SLOTS: u64 = 500_000;
/// The most steps of one simulation. Retries and waits take steps as well as slots do.
const MAX_STEPS: u64 = 10_000_000;
/// How long an instance holds a run without a heartbeat, by default.
pub const LEASE: Duration = Duration::from_mins(1);
/// How long an instance waits after its start before it settles the runs of others as lost: two heartbeats.
pub const REAPER_PATIENCE: Duration = Duration::from_secs(10);

/// A job, and how long each of its attempts takes.
#[derive(Clone, Debug)]
pub struct SimulatedJob {
    /// The job. Its id decides about jitter, so two jobs must not share one.
    pub definition: Definition,
    /// How long each attempt takes.
    pub duration: Duration,
}

/// A time in which no instance is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outage {
    /// Its first instant.
    pub from: Timestamp,
    /// The instant at which instances are back.
    pub to: Timestamp,
}

/// The window of a simulation and its conditions.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The first instant.
    pub from: Timestamp,
    /// The instant at which it ends, which is not part of it.
    pub to: Timestamp,
    /// The times without an instance, in any order.
    pub outages: Vec<Outage>,
    /// How many runs all instances together have places for.
    pub places: u32,
    /// How many runs of a target they have places for, of those targets that have a limit.
    pub target_places: BTreeMap<Target, u32>,
}

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simulation {
    /// The results of the jobs, in the order in which they were given.
    pub jobs: Vec<JobSimulation>,
    /// The most runs at work at once, of all jobs.
    pub peak: u32,
    /// When there were that many for the first time.
    pub peak_at: Option<Timestamp>,
}

/// The result of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobSimulation {
    /// How many slots the window has.
    pub slots: u64,
    /// The status of each slot, in the order of slots. Slots that a gap left out together are one record.
    pub records: Vec<SlotRecord>,
    /// Local times that did not exist and were left out. They are no slots.
    pub dst_gaps: Vec<Timestamp>,
    /// The most runs of the job at work at once.
    pub peak: u32,
    /// The longest time between the moment at which a run should have started and its start.
    pub longest_wait: Duration,
    /// When consecutive failures paused the job.
    pub paused_at: Option<Timestamp>,
    /// Why the schedule cannot be read.
    pub error: Option<String>,
}

/// One slot, or a row of slots without runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotRecord {
    /// The slot, or the first of them.
    pub first_slot_at: Timestamp,
    /// The last of them.
    pub last_slot_at: Timestamp,
    /// How many there are.
    pub slots: u64,
    /// Their status at the end of the window.
    pub status: SlotStatus,
    /// The run of the slot, unless it was skipped or has none.
    pub run: Option<SimulatedRun>,
}

/// The status of a slot at the end of the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotStatus {
    /// Its run succeeded.
    Succeeded,
    /// Its run failed, with this code.
    Failed(String),
    /// Its run was canceled because a later one took its place.
    Canceled,
    /// Its run is at work.
    Running,
    /// Its run waits: for a place, for others of its job, or for another attempt.
    Waiting,
    /// Its run was skipped.
    Skipped(SkipReason),
    /// It has no run.
    Gap(GapReason),
    /// The window ends before anything is decided about it.
    Undecided,
}

impl SlotStatus {
    /// A stable word for programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            SlotStatus::Succeeded => "succeeded",
            SlotStatus::Failed(_) => "failed",
            SlotStatus::Canceled => "canceled",
            SlotStatus::Running => "running",
            SlotStatus::Waiting => "waiting",
            SlotStatus::Skipped(_) => "skipped",
            SlotStatus::Gap(reason) => reason.as_str(),
            SlotStatus::Undecided => "undecided",
        }
    }
}

/// The run of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedRun {
    /// When it should have started.
    pub scheduled_at: Timestamp,
    /// When its first attempt started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// The times in which an attempt was at work; the last one may not have ended.
    pub attempts: Vec<(Timestamp, Option<Timestamp>)>,
    /// It is for a slot older than the grace.
    pub catch_up: bool,
    /// How many earlier slots were folded into it.
    pub folded: u64,
}

impl SlotRecord {
    /// Whether a run of it started.
    pub fn ran(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.started_at.is_some())
    }

    /// How long after its time the run started.
    pub fn wait(&self) -> Duration {
        let wait = self.run.as_ref().and_then(|run| Some(run.started_at?.duration_since(run.scheduled_at)));
        wait.and_then(|wait| Duration::try_from(wait).ok()).unwrap_or_default()
    }

    /// Whether anything else happened than one attempt that started in time and succeeded.
    pub fn is_notable(&self) -> bool {
        let usual = |run: &SimulatedRun| run.attempts.len() == 1 && !run.catch_up && run.folded == 0;
        self.status != SlotStatus::Succeeded || !self.run.as_ref().is_some_and(usual) || !self.wait().is_zero()
    }
}

impl JobSimulation {
    /// How many slots have each status: `ran` for those whose run started, else the word of the status. Each slot is
    /// counted once.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        for record in &self.records {
            let word = if record.ran() { "ran" } else { record.status.as_str() };
            *counts.entry(word).or_default() += record.slots;
        }
        counts
    }

    /// How many runs failed.
    pub fn failed(&self) -> usize {
        self.records.iter().filter(|record| matches!(record.status, SlotStatus::Failed(_))).count()
    }
}

impl Scenario {
    /// The outages that touch the window, in order, each with at least an instant between it and the next.
    pub fn merged_outages(&self) -> Vec<Outage> {
        let mut all: Vec<Outage> = self.outages.iter().copied().filter(|one| one.from < self.to).collect();
        all.retain(|one| one.to > self.from);
        all.sort_unstable();
        let mut merged: Vec<Outage> = Vec::with_capacity(all.len());
        for outage in all {
            match merged.last_mut() {
                Some(last) if outage.from <= last.to => last.to = last.to.max(outage.to),
                _ => merged.push(outage),
            }
        }
        merged
    }

    fn check(&self, jobs: &[SimulatedJob]) -> Result<(), Invalid> {
        if self.to <= self.from {
            return Err(Invalid::new("to", format!("must be after `from`, which is {}", self.from)));
        }
        if self.places == 0 {
            return Err(Invalid::new("places", "must be at least 1"));
        }
        if let Some((target, _)) = self.target_places.iter().find(|(_, places)| **places == 0) {
            return Err(Invalid::new("targetPlaces", format!("`{target}` must have at least 1")));
        }
        if let Some(outage) = self.outages.iter().find(|outage| outage.to <= outage.from) {
            let Outage { from, to } = outage;
            return Err(Invalid::new("outage", format!("must end after it begins, not from {from} to {to}")));
        }
        let slots: u64 = jobs.iter().map(|job| slots_between(&job.definition, self.from, self.to)).sum();
        if slots > MAX_SIMULATED_SLOTS {
            let reason = format!(
                "the window has {slots} slots, and at most {MAX_SIMULATED_SLOTS} are simulated: choose a shorter one, \
                 or fewer jobs"
            );
            return Err(Invalid::new("to", reason));
        }
        Ok(())
    }
}

/// How many slots a job has in `[from, to)`.
fn slots_between(job: &Definition, from: Timestamp, to: Timestamp) -> u64 {
    job.spec.as_ref().map_or(0, |spec| spec.count_between(just_before(from), just_before(to)))
}

/// Simulates the jobs, which share the places of the instances.
///
/// A scenario that has no window, or too many slots, is refused.
pub fn simulate(jobs: &[SimulatedJob], scenario: &Scenario) -> Result<Simulation, Invalid> {
    scenario.check(jobs)?;
    let mut engine = engine::Engine::new(jobs, scenario);
    engine.run()?;
    Ok(engine.finish())
}
