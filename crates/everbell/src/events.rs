//! [`Event`]: what happens, as it happens, for logs, metrics and live pages.
//!
//! Every event is a line of the log, is shown to every observer, and goes to everybody who listens. An observer
//! ([`Builder::observe`](crate::Builder::observe)) is called on the spot and misses nothing; a listener
//! ([`Everbell::events`](crate::Everbell::events)) takes its time, and who is too slow misses some. Events only tell: the
//! truth is in the database.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use everbell_core::repair::Repair;
use everbell_core::store::{Changed, Rearmed};
use everbell_core::{
    Definition, FailureCode, Gap, InstanceId, JobId, JobKey, OrgId, RunId, RunStatus, SkipReason, Target, TriggerType,
};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::broadcast;
use tracing::{debug, error, info, trace, warn};

/// How many jobs a line names.
const MAX_NAMED: usize = 20;

/// How many events a listener may be behind before it misses some.
const BACKLOG: usize = 4_096;

/// Something that happened on this instance.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A slot became a run, or somebody asked for one.
    Fired {
        /// The run.
        run: RunId,
        /// Of this job.
        job: Arc<Definition>,
        /// For this slot; `None` for a run by hand.
        slot: Option<Timestamp>,
        /// Why it will not start, if so: `overlap`, `dependency`, `operator`.
        skipped: Option<&'static str>,
    },
    /// Slots got no run.
    Gap {
        /// Of this job.
        job: JobId,
        /// Its key, where that is known.
        key: Option<JobKey>,
        /// Which, and why.
        gap: Gap,
    },
    /// The schedule of a job cannot be read.
    Errored {
        /// This job.
        job: JobId,
        /// Its key, where that is known.
        key: Option<JobKey>,
        /// Why.
        reason: String,
    },
    /// A job cannot fire for an org: its zone or override cannot be read. It fires for the others.
    OrgErrored {
        /// Which job.
        job: JobId,
        /// Its key, where that is known.
        key: Option<JobKey>,
        /// For which org.
        org: OrgId,
        /// Why.
        reason: String,
    },
    /// A handler began.
    Started {
        /// What it works on.
        run: RunInfo,
        /// How long after it was meant to.
        lag: Duration,
    },
    /// A handler tells how far it is.
    Progress {
        /// What it works on.
        run: RunInfo,
        /// From 0 to 1.
        done: f64,
        /// In words.
        message: String,
    },
    /// A run ended.
    Finished {
        /// Which.
        run: RunInfo,
        /// How.
        status: RunStatus,
        /// Why not well.
        code: Option<FailureCode>,
        /// The same in words.
        message: Option<String>,
        /// How long the last attempt took.
        took: Duration,
    },
    /// A run failed and will be tried again.
    Retrying {
        /// Which.
        run: RunInfo,
        /// Why it failed.
        code: FailureCode,
        /// Not before this.
        not_before: Timestamp,
    },
    /// A run does not belong to this instance any more; what its handler did is not recorded.
    LeaseLost {
        /// Which.
        run: RunInfo,
    },
    /// A run of an instance that was not heard of any more was ended as lost.
    Reaped {
        /// Which.
        run: RunId,
        /// What is known about it; nothing if it could not be read.
        info: Option<RunInfo>,
    },
    /// Failures paused a job: too many in a row, or one whose handler asked for it.
    Paused {
        /// Which.
        job: JobId,
        /// Its key.
        key: JobKey,
        /// The reason that was written.
        reason: String,
    },
    /// The time until which a job was paused has come.
    Resumed {
        /// Which.
        job: JobId,
        /// Its key.
        key: JobKey,
    },
    /// Active jobs were looked through for those that would never fire again, and these were brought back.
    Repaired {
        /// Their keys and what each needed; most often none.
        jobs: Vec<(JobKey, Repair)>,
    },
    /// The database cannot be reached.
    OutageBegan {
        /// What it says.
        error: String,
    },
    /// The database can be reached again.
    OutageEnded {
        /// How long it could not.
        after: Duration,
    },
    /// Somebody asked this instance to take no more work, or to take work again.
    Draining(bool),
    /// The database's clock was set, or another database answers. The clock of this instance follows it.
    ClockStepped {
        /// How far it was set forward; negative if it was set back.
        by: SignedDuration,
        /// When that was noticed, by [`Clock::monotonic`](crate::clock::Clock::monotonic).
        noticed: Duration,
    },
    /// A clock that was ahead had moved timers into the future; they are armed from the present again.
    TimersRearmed {
        /// How many timers, gaps and leases.
        rearmed: Rearmed,
        /// How many runs of that future were still pending, and were canceled.
        canceled: u32,
    },
    /// The database has entries that are younger than its clock: that clock, or the one before, was wrong.
    FutureEntries {
        /// The youngest.
        newest: Timestamp,
    },
    /// Whether history is kept longer than the retention, because the clock leapt and is not trusted yet.
    PruningHeld {
        /// The time that is trusted; `None` if the clock is trusted again.
        trusted: Option<Timestamp>,
    },
    /// This instance wrote that it is alive, or could not. There are many of these, so only observers hear of them.
    Heartbeat {
        /// When it began, by [`Clock::monotonic`](crate::clock::Clock::monotonic).
        begun: Duration,
        /// Why it failed.
        error: Option<String>,
    },
    /// A loop looked for work. There are many of these, so only observers hear of them.
    Round {
        /// Who looked.
        instance: InstanceId,
        /// For what.
        round: Round,
        /// When it began.
        at: Timestamp,
        /// When it began, by [`Clock::monotonic`](crate::clock::Clock::monotonic).
        begun: Duration,
        /// How much it took: due timers, or pending runs. `None`: the database could not be asked.
        claimed: Option<u32>,
        /// How long that took.
        took: Duration,
    },
}

impl Event {
    /// Whether there are many of these that say nothing new, so that only observers hear of them.
    fn is_routine(&self) -> bool {
        match self {
            Event::Round { .. } | Event::Heartbeat { .. } => true,
            Event::Repaired { jobs } => jobs.is_empty(),
            _ => false,
        }
    }
}

/// What a loop looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Round {
    /// Timers that are due, to plan runs.
    Plan,
    /// Runs that are pending, to start them.
    Start,
}

impl Round {
    /// `plan` or `start`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Round::Plan => "plan",
            Round::Start => "start",
        }
    }
}

/// What events tell about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunInfo {
    /// Which.
    pub id: RunId,
    /// Of this job; `None` for a trial of a target.
    pub job: Option<JobKey>,
    /// For this org.
    pub org: Option<OrgId>,
    /// What it does.
    pub target: Target,
    /// What made it.
    pub trigger: TriggerType,
    /// The attempt, from 1.
    pub attempt: u32,
}

impl RunInfo {
    fn job(&self) -> &str {
        self.job.as_ref().map_or("-", JobKey::as_str)
    }
}

/// Somebody who is shown every event.
pub(crate) type Observer = Box<dyn Fn(&Event) + Send + Sync>;

/// Where events go.
#[derive(Clone)]
pub(crate) struct Events {
    listeners: broadcast::Sender<Arc<Event>>,
    observers: Arc<[Observer]>,
}

impl Events {
    pub(crate) fn new(observers: Vec<Observer>) -> Events {
        Events { listeners: broadcast::channel(BACKLOG).0, observers: observers.into() }
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<Arc<Event>> {
        self.listeners.subscribe()
    }

    pub(crate) fn tell(&self, event: Event) {
        log(&event);
        self.show(&event);
        // An error means that nobody listens.
        if self.listeners.receiver_count() > 0 && !event.is_routine() {
            drop(self.listeners.send(Arc::new(event)));
        }
    }

    /// Everything that a change of a job made of its slots.
    pub(crate) fn tell_change(&self, changed: &Changed) {
        let definition = &changed.job.job.definition;
        for run in &changed.runs {
            let skipped = run.skip.as_ref().map(SkipReason::as_str);
            self.tell(Event::Fired { run: run.id, job: Arc::clone(definition), slot: run.slot_at, skipped });
        }
        for gap in &changed.gaps {
            self.tell(Event::Gap { job: definition.id, key: Some(definition.key.clone()), gap: gap.clone() });
        }
    }

    /// Events are told by loops that must go on, so whoever panics over one does that alone.
    fn show(&self, event: &Event) {
        for observer in &*self.observers {
            if catch_unwind(AssertUnwindSafe(|| observer(event))).is_err() {
                error!("an observer of events panicked; it is shown the next one all the same");
            }
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("observers", &self.observers.len()).finish_non_exhaustive()
    }
}

/// One line for each event: what goes on all the time at `trace`, what is usual at `debug`, what an operator may want to know at `info`, what asks for a look
/// at `warn`.
fn log(event: &Event) {
    match event {
        Event::Fired { run, job, slot, skipped: None } => {
            debug!(%run, job = %job.key, slot = slot.map(tracing::field::display), "fired");
        }
        Event::Fired { run, job, slot, skipped: Some(reason) } => {
            info!(%run, job = %job.key, slot = slot.map(tracing::field::display), reason, "skipped");
        }
        Event::Gap { job, key, gap } => {
            info!(job = key.as_ref().map(JobKey::as_str), job_id = %job, first = %gap.first_slot_at, last = %gap.last_slot_at, slots = gap.slots, reason = %gap.reason, "gap");
        }
        Event::Errored { job, key, reason } => {
            error!(job = key.as_ref().map(JobKey::as_str), job_id = %job, reason, "job cannot be scheduled");
        }
        Event::OrgErrored { job, key, org, reason } => {
            warn!(job = key.as_ref().map(JobKey::as_str), job_id = %job, org = %org, reason, "job cannot be scheduled for this org; it is for the others");
        }
        Event::Started { run, lag } => {
            debug!(run = %run.id, job = run.job(), target_label = %run.target, attempt = run.attempt, lag_ms = lag.as_secs_f64() * 1e3, "started");
        }
        Event::Progress { run, done, message } => debug!(run = %run.id, job = run.job(), done, message, "progress"),
        Event::Finished { run, status, code, message, took } => {
            let code = code.as_ref().map_or("-", FailureCode::as_str);
            let org = run.org.as_ref().map(tracing::field::display);
            let took_ms = took.as_secs_f64() * 1e3;
            if *status == RunStatus::Failed {
                warn!(run = %run.id, job = run.job(), org, target_label = %run.target, attempt = run.attempt, code, error = message, took_ms, "failed");
            } else {
                info!(run = %run.id, job = run.job(), org, target_label = %run.target, attempt = run.attempt, %status, took_ms, "finished");
            }
        }
        Event::Retrying { run, code, not_before } => {
            info!(run = %run.id, job = run.job(), attempt = run.attempt, code = code.as_str(), %not_before, "will be tried again");
        }
        Event::LeaseLost { run } => {
            warn!(run = %run.id, job = run.job(), attempt = run.attempt, "lease lost: what this run does is not recorded");
        }
        Event::Reaped { run, info } => {
            warn!(%run, job = info.as_ref().map(RunInfo::job), "lost: its instance was not heard of until the lease ran out");
        }
        Event::Paused { job, key, reason } => warn!(job = %key, job_id = %job, reason, "paused"),
        Event::Resumed { job, key } => info!(job = %key, job_id = %job, "resumed: its pause is over"),
        Event::Repaired { jobs } => log_repaired(jobs),
        Event::OutageBegan { error } => error!(error, "database unavailable; trying again"),
        Event::OutageEnded { after } => info!(after_s = after.as_secs_f64(), "database available again"),
        Event::Draining(true) => info!("draining: taking no more work"),
        Event::Draining(false) => info!("taking work again"),
        Event::ClockStepped { by, .. } => {
            let direction = if by.is_negative() { "back" } else { "forward" };
            warn!(by_s = by.as_secs_f64(), "the database's clock was set {direction}; schedules follow it");
        }
        Event::TimersRearmed { rearmed, canceled } => {
            warn!(%rearmed, canceled, "a clock was ahead: timers that it had moved into the future are armed from now again");
        }
        Event::FutureEntries { newest } => {
            warn!(%newest, "the database has entries from the future: its clock is behind, or was ahead when they were written");
        }
        Event::PruningHeld { trusted: Some(trusted) } => {
            warn!(%trusted, "the clock leapt: history is not pruned by it until it has been steady for a day");
        }
        Event::PruningHeld { trusted: None } => info!("the clock is trusted again: history is pruned by it"),
        Event::Heartbeat { error, .. } => trace!(error, "heartbeat"),
        Event::Round { round, claimed, took, .. } => {
            trace!(round = round.as_str(), claimed, took_ms = took.as_secs_f64() * 1e3, "looked for work");
        }
    }
}

fn log_repaired(jobs: &[(JobKey, Repair)]) {
    if jobs.is_empty() {
        return trace!("no job needs a repair");
    }
    let named: Vec<String> = jobs.iter().take(MAX_NAMED).map(|(key, repair)| format!("{key} ({repair})")).collect();
    warn!(
        jobs = jobs.len(),
        named = named.join(", "),
        "active jobs had no next fire although their schedules go on; they fire again"
    );
}

#[cfg(test)]
mod tests;
