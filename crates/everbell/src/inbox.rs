//! The inbox: requests that other programs write with plain SQL, in their own transactions.
//!
//! An instance reads them, checks each as [`Jobs::enqueue`](crate::Jobs::enqueue) and [`Jobs::create`](crate::Jobs::create)
//! would, and answers: it creates the job, replaces or keeps an unfinished one, or refuses the request with a reason. The answer and the job are one transaction,
//! so each request is answered once, however many instances there are.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use everbell_core::enqueue::IfUnfinished;
use everbell_core::store::{AuditEntry, InboxAnswer, InboxRequest, StoreError, StoreResult};
use everbell_core::{Invalid, MAX_PRIORITY, TraceContext, storable_text};
use jiff::Timestamp;
use tracing::{debug, warn};

use crate::client::{Context, Enqueue, Jobs};
use crate::parts::Parts;
use crate::schedule::Schedule;

/// How many requests whose keys are locked a look waits for, before it reads again without them.
const MAX_LOCKED: usize = 3;
/// How many of those that were locked a look tries again, after all others.
const MAX_TRIED_AGAIN: usize = 3;
/// How many requests are left out at most because they were locked.
const MAX_LEFT_OUT: usize = 10_000;

/// How many requests are read at once.
const MAX_READ_REQUESTS: u32 = 100;
/// The wait between two looks, however often the store wakes.
const MIN_PAUSE: Duration = Duration::from_millis(100);
/// How often to look for requests where no notification arrives.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often to look where notifications do.
const IDLE_INTERVAL: Duration = Duration::from_mins(1);
/// The longest reason of a refusal that is stored, in bytes.
const MAX_REASON_BYTES: usize = 2_000;

/// The longest part of a target that the log shows, in bytes: that of a request may be of any length.
const MAX_SHOWN_TARGET_BYTES: usize = 200;

/// Answers requests until it is dropped.
pub(crate) async fn serve(parts: &Arc<Parts>) -> Infallible {
    let mut inbox = Inbox::default();
    loop {
        let woken = parts.store.woken();
        let left = match inbox.answer_some(parts).await {
            Ok(left) => left,
            Err(error) => {
                // The other loops report an outage.
                debug!(%error, "the inbox cannot be read");
                Left::Some
            }
        };
        if left == Left::More {
            continue;
        }
        parts.clock.sleep(MIN_PAUSE).await;
        let may_rest = left == Left::None && parts.store.hears_others();
        let idle = if may_rest { IDLE_INTERVAL } else { POLL_INTERVAL };
        tokio::select! {
            () = woken => {}
            () = parts.clock.sleep(idle) => {}
        }
    }
}

/// The requests that a look leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    None,
    /// Some that could not be answered yet: nothing wakes the next look for them.
    Some,
    /// Some that were not tried.
    More,
}

/// An instance's knowledge of the inbox between two looks.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    /// Requests whose keys a transaction of an application has locked, the one that was tried longest ago first. Each costs a
    /// wait, so the others are read without them.
    locked: VecDeque<i64>,
}

/// How one request ended.
enum Outcome {
    /// By this instance, or by a faster one.
    Answered,
    /// Not now: its key was taken meanwhile, and the next look sees by whom.
    Open,
    /// A transaction of an application has its key.
    Locked,
}

impl Inbox {
    /// Answers the oldest requests.
    pub(crate) async fn answer_some(&mut self, parts: &Arc<Parts>) -> StoreResult<Left> {
        let again: Vec<i64> = self.locked.drain(..self.locked.len().min(MAX_TRIED_AGAIN)).collect();
        let mut requests = parts.store.open_inbox(MAX_READ_REQUESTS, self.locked.make_contiguous()).await?;
        requests.sort_by_key(|request| again.contains(&request.id));
        let (mut answered, mut locked) = (0, 0);
        for request in &requests {
            match answer(parts, request).await? {
                Outcome::Answered => answered += 1,
                Outcome::Open => {}
                Outcome::Locked => {
                    self.leave_out(request.id);
                    locked += 1;
                    let is_new = !again.contains(&request.id);
                    if locked == MAX_LOCKED && is_new {
                        // These come after all others, so it was not their turn.
                        again.into_iter().rev().for_each(|id| self.locked.push_front(id));
                        return Ok(Left::More);
                    }
                }
            }
        }
        Ok(if answered > 0 && requests.len() == MAX_READ_REQUESTS as usize {
            Left::More
        } else if answered < requests.len() || !self.locked.is_empty() {
            Left::Some
        } else {
            Left::None
        })
    }

    /// Leaves a request out until it is its turn again.
    fn leave_out(&mut self, id: i64) {
        if self.locked.len() == MAX_LEFT_OUT {
            self.locked.pop_front();
        }
        self.locked.push_back(id);
    }
}

/// Answers a request, unless its key is locked or taken.
async fn answer(parts: &Arc<Parts>, request: &InboxRequest) -> StoreResult<Outcome> {
    let actor = request.role.as_ref().map_or_else(|| "sql".to_owned(), |role| format!("sql:{role}"));
    // One that is no `traceparent` is none, as in a header: the job is worth more than its telemetry.
    let traceparent = request.traceparent.as_deref();
    let trace_context = traceparent.and_then(|text| TraceContext::parse(text, None).ok());
    let jobs = Jobs::new(Context::new(parts).accept_any_target()).by(&actor).trace_context(trace_context);
    let (mut answer, mut audit) = match prepare(&jobs, request).await {
        Ok(prepared) => prepared,
        Err(error) if error.is_transient() => return Err(error),
        Err(error) => refuse(&jobs, request, &error),
    };
    let mut done = parts.store.answer_inbox(request.id, &answer, &audit).await;
    // The job that it replaces may have been deleted at this moment: only the second refusal is the database's own.
    for is_last in [false, true] {
        let Some(error) = done.as_ref().err().filter(|error| !error.is_transient() && !error.is_conflict()) else {
            break;
        };
        if matches!(answer, InboxAnswer::Refuse(_)) {
            break;
        }
        (answer, audit) = match prepare(&jobs, request).await {
            Ok(prepared) if !is_last => prepared,
            _ => refuse(&jobs, request, error),
        };
        done = parts.store.answer_inbox(request.id, &answer, &audit).await;
    }
    match done {
        Ok(true) => {
            if let InboxAnswer::Refuse(reason) = &answer {
                let target = storable_text(&request.target, MAX_SHOWN_TARGET_BYTES);
                warn!(request = request.id, %actor, target_label = %target, %reason, "refused a request of the inbox");
            }
            Ok(Outcome::Answered)
        }
        Ok(false) => Ok(Outcome::Answered),
        Err(error) if error.is_conflict() => Ok(Outcome::Open),
        Err(error) if error.is_locked() => {
            debug!(request = request.id, %error, "a request of the inbox waits");
            Ok(Outcome::Locked)
        }
        Err(error) if error.is_transient() => Err(error),
        Err(error) => {
            warn!(request = request.id, %error, "cannot answer a request of the inbox");
            Ok(Outcome::Open)
        }
    }
}

/// Refuses a request for this reason. Every request gets an answer: one that stays open would be read again and again, and
/// many of them would keep the others from being read.
fn refuse(jobs: &Jobs, request: &InboxRequest, error: &StoreError) -> (InboxAnswer, AuditEntry) {
    let reason = storable_text(&error.to_string(), MAX_REASON_BYTES);
    let audit = jobs.entry_of_refusal(request.id, &reason);
    (InboxAnswer::Refuse(reason), audit)
}

/// Returns the answer to a request that is not refused.
async fn prepare(jobs: &Jobs, request: &InboxRequest) -> StoreResult<(InboxAnswer, AuditEntry)> {
    let payload = request.payload.clone().unwrap_or_else(|| "{}".to_owned());
    let priority = request.priority.map(priority).transpose()?;
    if let Some(cron) = &request.cron {
        if cron.trim().is_empty() {
            // `everbell.schedule` writes an empty one for a null.
            let reason = "is required for a schedule: `everbell.enqueue` creates a job that runs once";
            return Err(Invalid::new("cronExpression", reason).into());
        }
        if request.run_at.is_some() {
            return Err(Invalid::new("runAt", "cannot be combined with a cron expression").into());
        }
        if request.if_unfinished.is_some() {
            return Err(Invalid::new("ifUnfinished", "cannot be combined with a cron expression").into());
        }
        let key = request.key.clone().ok_or_else(|| Invalid::new("jobKey", "is required for a cron expression"))?;
        let schedule = Schedule::cron(key, cron).target(&request.target).with_payload_text(Ok(payload));
        let schedule = request.timezone.iter().fold(schedule, Schedule::tz);
        let (job, audit) = jobs.prepare_new(&priority.into_iter().fold(schedule, Schedule::priority)).await?;
        return Ok((InboxAnswer::Create(Box::new(job)), audit));
    }
    if request.timezone.is_some() {
        // A schedule with a null by mistake: without this it would enqueue a run.
        return Err(Invalid::new("cronExpression", "is required beside a time zone").into());
    }
    let mut enqueue = jobs.enqueue_text(&request.target, payload);
    if let Some(text) = &request.run_at {
        let at: Timestamp = text.parse().map_err(|_| {
            Invalid::new("runAt", format!("must be a time with its offset, such as 2027-01-31T08:00:00Z, not `{text}`"))
        })?;
        enqueue = enqueue.at(at);
    }
    if let Some(word) = &request.if_unfinished {
        let choice = IfUnfinished::parse(word)?;
        if choice != IfUnfinished::Refuse && request.key.is_none() {
            let reason = format!("`{word}` needs a key: a job with a made-up key is the only one of its key");
            return Err(Invalid::new("ifUnfinished", reason).into());
        }
        enqueue = enqueue.if_unfinished(choice);
    }
    let enqueue = priority.into_iter().fold(enqueue, Enqueue::priority);
    request.key.iter().fold(enqueue, Enqueue::key).answer(request.id).await
}

/// Reads a priority, whose bounds are those of the policy.
fn priority(number: i64) -> Result<i32, Invalid> {
    i32::try_from(number).map_err(|_| {
        Invalid::new("policies.priority", format!("must be from -{MAX_PRIORITY} to {MAX_PRIORITY}, not {number}"))
    })
}
