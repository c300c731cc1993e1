//! [`Event`]: what happens, as it happens, for logs, metrics and live pages.
//!
//! Every event is a line of the log and goes to everybody who listens. Events only tell: the truth is in the database,
//! and who is too slow to listen misses some of them.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::{Definition, FailureCode, Gap, JobId, JobKey, RunId, RunStatus, Target};
use jiff::Timestamp;
use tokio::sync::broadcast;
use tracing::{debug, error, info, warn};

/// How many events a listener may be behind before it misses some.
const BACKLOG: usize = 4_096;

/// Something that happened on this instance.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A slot became a run.
    Fired {
        /// The run.
        run: RunId,
        /// Of this job.
        job: Arc<Definition>,
        /// For this slot.
        slot: Option<Timestamp>,
        /// Why it will not start, if so: `overlap`, `dependency`, `operator`.
        skipped: Option<&'static str>,
    },
    /// Slots got no run.
    Gap {
        /// Of this job.
        job: JobId,
        /// Which, and why.
        gap: Gap,
    },
    /// The schedule of a job cannot be read.
    Errored {
        /// This job.
        job: JobId,
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
    },
    /// Too many failures in a row paused a job.
    Paused {
        /// Which.
        job: JobId,
        /// The reason that was written.
        reason: String,
    },
    /// The time until which a job was paused has come.
    Resumed {
        /// Which.
        job: JobId,
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
}

/// What events tell about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunInfo {
    /// Which.
    pub id: RunId,
    /// Of this job; `None` for a trial of a target.
    pub job: Option<JobKey>,
    /// What it does.
    pub target: Target,
    /// The attempt, from 1.
    pub attempt: u32,
}

impl RunInfo {
    fn job(&self) -> &str {
        self.job.as_ref().map_or("-", JobKey::as_str)
    }
}

/// Where events go.
#[derive(Clone, Debug)]
pub(crate) struct Events(broadcast::Sender<Arc<Event>>);

impl Events {
    pub(crate) fn new() -> Events {
        Events(broadcast::channel(BACKLOG).0)
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<Arc<Event>> {
        self.0.subscribe()
    }

    pub(crate) fn tell(&self, event: Event) {
        log(&event);
        // An error means that nobody listens.
        if self.0.receiver_count() > 0 {
            drop(self.0.send(Arc::new(event)));
        }
    }
}

/// One line for each event: what is usual at `debug`, what an operator may want to know at `info`, what asks for a look
/// at `warn`.
fn log(event: &Event) {
    match event {
        Event::Fired { run, job, slot, skipped: None } => {
            debug!(%run, job = %job.key, slot = slot.map(tracing::field::display), "fired");
        }
        Event::Fired { run, job, slot, skipped: Some(reason) } => {
            info!(%run, job = %job.key, slot = slot.map(tracing::field::display), reason, "skipped");
        }
        Event::Gap { job, gap } => {
            info!(job_id = %job, first = %gap.first_slot_at, last = %gap.last_slot_at, slots = gap.slots, reason = %gap.reason, "gap");
        }
        Event::Errored { job, reason } => error!(job_id = %job, reason, "job cannot be scheduled"),
        Event::Started { run, lag } => {
            debug!(run = %run.id, job = run.job(), target_label = %run.target, attempt = run.attempt, lag_ms = lag.as_secs_f64() * 1e3, "started");
        }
        Event::Progress { run, done, message } => debug!(run = %run.id, job = run.job(), done, message, "progress"),
        Event::Finished { run, status, code, took } => {
            let code = code.as_ref().map_or("-", FailureCode::as_str);
            let took_ms = took.as_secs_f64() * 1e3;
            if *status == RunStatus::Failed {
                warn!(run = %run.id, job = run.job(), target_label = %run.target, attempt = run.attempt, code, took_ms, "failed");
            } else {
                debug!(run = %run.id, job = run.job(), target_label = %run.target, attempt = run.attempt, %status, took_ms, "finished");
            }
        }
        Event::Retrying { run, code, not_before } => {
            info!(run = %run.id, job = run.job(), attempt = run.attempt, code = code.as_str(), %not_before, "will be tried again");
        }
        Event::LeaseLost { run } => {
            warn!(run = %run.id, job = run.job(), attempt = run.attempt, "lease lost: what this run does is not recorded");
        }
        Event::Reaped { run } => warn!(%run, "lost: its instance was not heard of until the lease ran out"),
        Event::Paused { job, reason } => warn!(job_id = %job, reason, "paused"),
        Event::Resumed { job } => info!(job_id = %job, "resumed: its pause is over"),
        Event::OutageBegan { error } => error!(error, "database unavailable; trying again"),
        Event::OutageEnded { after } => info!(after_s = after.as_secs_f64(), "database available again"),
        Event::Draining(true) => info!("draining: taking no more work"),
        Event::Draining(false) => info!("taking work again"),
    }
}
