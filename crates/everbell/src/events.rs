//! [`Event`]: what happens, as it happens, for logs, metrics and live pages.
//!
//! Every event is logged, passed to every observer, and sent to every listener. An observer
//! ([`Builder::observe`](crate::Builder::observe)) is called synchronously and misses nothing; a listener
//! ([`Everbell::events`](crate::Everbell::events)) receives from a queue, and misses events if it is too slow. Events
//! only report: the truth is in the database.

mod info;
mod stream;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use everbell_core::repair::Repair;
use everbell_core::store::{Changed, Rearmed};
use everbell_core::{Definition, FailureCode, Gap, InstanceId, JobId, JobKey, OrgId, RunId, RunStatus, SkipReason};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::broadcast;
use tracing::{debug, error, info, trace, warn};

pub use info::{Round, RunInfo};
pub use stream::EventStream;

/// The most jobs that a log line names.
const MAX_NAMED_JOBS: usize = 20;

/// The number of events that a listener may fall behind before it misses some.
const MAX_LISTENER_BACKLOG: usize = 4_096;

/// An event on this instance.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A slot became a run, or a run was asked for.
    Fired {
        /// The run.
        run: RunId,
        /// Its job.
        job: Arc<Definition>,
        /// Its slot; `None` for a run by hand.
        slot: Option<Timestamp>,
        /// Why it is skipped, if it is: `overlap`, `dependency`, `operator`.
        skipped: Option<&'static str>,
    },
    /// Slots got no run.
    Gap {
        /// The job.
        job: JobId,
        /// Its key, if known.
        key: Option<JobKey>,
        /// The slots, and the reason.
        gap: Gap,
    },
    /// The schedule of a job cannot be read.
    Errored {
        /// The job.
        job: JobId,
        /// Its key, if known.
        key: Option<JobKey>,
        /// The error.
        reason: String,
    },
    /// A job cannot fire for an org: its zone or override cannot be read. It fires for the others.
    OrgErrored {
        /// The job.
        job: JobId,
        /// Its key, if known.
        key: Option<JobKey>,
        /// The org.
        org: OrgId,
        /// The error.
        reason: String,
    },
    /// A handler started.
    Started {
        /// Its run.
        run: RunInfo,
        /// How long after its scheduled time.
        lag: Duration,
    },
    /// A handler reported its progress.
    Progress {
        /// Its run.
        run: RunInfo,
        /// The fraction done, from 0 to 1.
        done: f64,
        /// A message for people.
        message: String,
    },
    /// A handler handed its run over to its remote side, which ends it later.
    HandedOver {
        /// The run.
        run: RunInfo,
    },
    /// A run ended.
    Finished {
        /// The run.
        run: RunInfo,
        /// Its final status.
        status: RunStatus,
        /// The failure code, unless it succeeded.
        code: Option<FailureCode>,
        /// The failure message.
        message: Option<String>,
        /// How long the last attempt took.
        took: Duration,
    },
    /// A run failed and will be retried.
    Retrying {
        /// The run.
        run: RunInfo,
        /// The failure code.
        code: FailureCode,
        /// The earliest time of the next attempt.
        not_before: Timestamp,
    },
    /// A run no longer belongs to this instance; the outcome of its handler is not recorded.
    LeaseLost {
        /// The run.
        run: RunInfo,
    },
    /// A run was lost because its instance stopped sending heartbeats. It has failed, or is retried if its job says so.
    /// One whose cancellation was asked for before is canceled instead of retried, and [`Event::Finished`] reports it.
    Reaped {
        /// The run.
        run: RunId,
        /// More about it; `None` if it could not be read.
        info: Option<RunInfo>,
        /// The earliest time of the next attempt; `None` if it has failed.
        retry_at: Option<Timestamp>,
    },
    /// Failures paused a job: too many in a row, or one whose handler asked for a pause.
    Paused {
        /// The job.
        job: JobId,
        /// Its key.
        key: JobKey,
        /// The reason, as recorded.
        reason: String,
    },
    /// A job was resumed because its pause expired.
    Resumed {
        /// The job.
        job: JobId,
        /// Its key.
        key: JobKey,
    },
    /// Active jobs that would never have fired again were repaired.
    Repaired {
        /// Their keys and repairs; usually none.
        jobs: Vec<(JobKey, Repair)>,
    },
    /// The database cannot be reached.
    OutageBegan {
        /// The error of the database.
        error: String,
    },
    /// The database can be reached again.
    OutageEnded {
        /// The length of the outage.
        after: Duration,
    },
    /// This instance was asked to stop taking work, or to take work again.
    Draining(bool),
    /// The database's clock was set, or another database answers. The clock of this instance follows it.
    ClockStepped {
        /// How far it was set forward; negative if it was set back.
        by: SignedDuration,
        /// When it was noticed, by [`Clock::monotonic`](crate::clock::Clock::monotonic).
        noticed: Duration,
    },
    /// A clock that was ahead had moved timers into the future; they are armed from the present again.
    TimersRearmed {
        /// The number of timers, gaps and leases.
        rearmed: Rearmed,
        /// The number of pending runs of that future that were canceled.
        canceled: u32,
    },
    /// The database has entries newer than its clock: that clock, or the previous one, was wrong.
    FutureEntries {
        /// The newest entry.
        newest: Timestamp,
    },
    /// History is kept beyond the retention because the clock jumped and is not trusted yet; or no longer is.
    PruningHeld {
        /// The time that is trusted; `None` if the clock is trusted again.
        trusted: Option<Timestamp>,
    },
    /// This instance wrote its heartbeat, or could not. Frequent, so only observers receive it.
    Heartbeat {
        /// When it started, by [`Clock::monotonic`](crate::clock::Clock::monotonic).
        begun: Duration,
        /// The error, if it failed.
        error: Option<String>,
    },
    /// A loop looked for work. Frequent, so only observers receive it.
    Round {
        /// The instance.
        instance: InstanceId,
        /// The loop.
        round: Round,
        /// When it started.
        at: Timestamp,
        /// When it started, by [`Clock::monotonic`](crate::clock::Clock::monotonic).
        begun: Duration,
        /// How much it claimed: due timers, or pending runs. `None` if the database could not be asked.
        claimed: Option<u32>,
        /// How long it took.
        took: Duration,
    },
}

impl Event {
    /// Whether the event is frequent and says nothing new, so that only observers receive it.
    fn is_routine(&self) -> bool {
        match self {
            Event::Round { .. } | Event::Heartbeat { .. } => true,
            Event::Repaired { jobs } => jobs.is_empty(),
            _ => false,
        }
    }
}

/// A function that is called with every event.
pub(crate) type Observer = Box<dyn Fn(&Event) + Send + Sync>;

/// The observers and listeners of events.
#[derive(Clone)]
pub(crate) struct Events {
    listeners: broadcast::Sender<Arc<Event>>,
    observers: Arc<[Observer]>,
}

impl Events {
    pub(crate) fn new(observers: Vec<Observer>) -> Events {
        Events { listeners: broadcast::channel(MAX_LISTENER_BACKLOG).0, observers: observers.into() }
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<Arc<Event>> {
        self.listeners.subscribe()
    }

    pub(crate) fn publish(&self, event: Event) {
        log(&event);
        self.notify_observers(&event);
        // Sending fails only if no listener is left.
        if self.listeners.receiver_count() > 0 && !event.is_routine() {
            drop(self.listeners.send(Arc::new(event)));
        }
    }

    /// Publishes the runs and gaps of a change of a job.
    pub(crate) fn publish_change(&self, changed: &Changed) {
        let definition = &changed.job.job.definition;
        for run in &changed.runs {
            let skipped = run.skip.as_ref().map(SkipReason::as_str);
            self.publish(Event::Fired { run: run.id, job: Arc::clone(definition), slot: run.slot_at, skipped });
        }
        for gap in &changed.gaps {
            self.publish(Event::Gap { job: definition.id, key: Some(definition.key.clone()), gap: gap.clone() });
        }
    }

    /// Calls the observers. One that panics must not stop the loop that publishes the event.
    fn notify_observers(&self, event: &Event) {
        for observer in &*self.observers {
            if catch_unwind(AssertUnwindSafe(|| observer(event))).is_err() {
                error!("an observer of events panicked; it still receives the next events");
            }
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("observers", &self.observers.len()).finish_non_exhaustive()
    }
}

/// One line for each event: routine at `trace`, usual at `debug`, for operators at `info`, asking for a look at `warn`.
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
            warn!(job = key.as_ref().map(JobKey::as_str), job_id = %job, org = %org, reason, "job cannot be scheduled for this org; other orgs are not affected");
        }
        Event::Started { run, lag } => {
            debug!(run = %run.id, job = run.job(), target_label = %run.target, attempt = run.attempt, lag_ms = lag.as_secs_f64() * 1e3, "started");
        }
        Event::Progress { run, done, message } => debug!(run = %run.id, job = run.job(), done, message, "progress"),
        Event::HandedOver { run } => {
            info!(run = %run.id, job = run.job(), target_label = %run.target, attempt = run.attempt, "handed over to its remote side");
        }
        Event::Finished { run, status, code, message, took } => {
            log_finished(run, *status, code.as_ref(), message.as_deref(), *took);
        }
        Event::Retrying { run, code, not_before } => {
            info!(run = %run.id, job = run.job(), attempt = run.attempt, code = code.as_str(), %not_before, "will be retried");
        }
        Event::LeaseLost { run } => {
            warn!(run = %run.id, job = run.job(), attempt = run.attempt, "lease lost: the outcome of this run will not be recorded");
        }
        Event::Reaped { run, info, retry_at } => {
            let (job, retry_at) = (info.as_ref().map(RunInfo::job), retry_at.map(tracing::field::display));
            warn!(%run, job, retry_at, "lost: its instance sent no heartbeat before the lease expired");
        }
        Event::Paused { job, key, reason } => warn!(job = %key, job_id = %job, reason, "paused"),
        Event::Resumed { job, key } => info!(job = %key, job_id = %job, "resumed: its pause expired"),
        Event::Repaired { jobs } => log_repaired(jobs),
        Event::OutageBegan { error } => error!(error, "database unavailable; retrying"),
        Event::OutageEnded { after } => info!(after_s = after.as_secs_f64(), "database available again"),
        Event::Draining(true) => info!("draining: taking no more work"),
        Event::Draining(false) => info!("taking work again"),
        Event::ClockStepped { by, .. } => {
            let direction = if by.is_negative() { "back" } else { "forward" };
            warn!(by_s = by.as_secs_f64(), "the database's clock was set {direction}; schedules follow it");
        }
        Event::TimersRearmed { rearmed, canceled } => {
            warn!(%rearmed, canceled, "a clock was ahead: timers that it had moved into the future are armed again from now");
        }
        Event::FutureEntries { newest } => {
            warn!(%newest, "the database has entries from the future: its clock is behind now, or was ahead when they were written");
        }
        Event::PruningHeld { trusted: Some(trusted) } => {
            warn!(%trusted, "the clock jumped: history is not pruned by it until it has been steady for a day");
        }
        Event::PruningHeld { trusted: None } => info!("the clock is trusted again: history is pruned as usual"),
        Event::Heartbeat { error, .. } => trace!(error, "heartbeat"),
        Event::Round { round, claimed, took, .. } => {
            trace!(round = round.as_str(), claimed, took_ms = took.as_secs_f64() * 1e3, "looked for work");
        }
    }
}

fn log_finished(run: &RunInfo, status: RunStatus, code: Option<&FailureCode>, message: Option<&str>, took: Duration) {
    let code = code.map_or("-", FailureCode::as_str);
    let org = run.org.as_ref().map(tracing::field::display);
    let took_ms = took.as_secs_f64() * 1e3;
    if status == RunStatus::Failed {
        warn!(run = %run.id, job = run.job(), org, target_label = %run.target, attempt = run.attempt, code, error = message, took_ms, "failed");
    } else {
        info!(run = %run.id, job = run.job(), org, target_label = %run.target, attempt = run.attempt, %status, took_ms, "finished");
    }
}

fn log_repaired(jobs: &[(JobKey, Repair)]) {
    if jobs.is_empty() {
        return trace!("no job needs a repair");
    }
    let named: Vec<String> =
        jobs.iter().take(MAX_NAMED_JOBS).map(|(key, repair)| format!("{key} ({repair})")).collect();
    warn!(
        jobs = jobs.len(),
        named = named.join(", "),
        "repaired active jobs that had no next run although their schedules continue"
    );
}

#[cfg(test)]
mod tests;
