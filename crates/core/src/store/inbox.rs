//! The inbox: requests that others write with plain SQL, inside of their own transactions.

use jiff::Timestamp;

use crate::change::NewJob;
use crate::ids::{JobId, JobKey};
use crate::job::Definition;

/// A request as it was written: nothing of it is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InboxRequest {
    /// Grows with each request.
    pub id: i64,
    /// The label of a target.
    pub target: String,
    /// The text of the payload's JSON; `{}` if absent.
    pub payload: Option<String>,
    /// The key of the job; made up for a job that is enqueued, if absent.
    pub key: Option<String>,
    /// When the job is due, in RFC 3339; at once if absent.
    pub run_at: Option<String>,
    /// The cron expression of a job that is scheduled instead of enqueued.
    pub cron: Option<String>,
    /// The time zone of the expression.
    pub timezone: Option<String>,
    /// The role of the database that wrote it, where there are any.
    pub role: Option<String>,
    /// The W3C `traceparent` of the program that wrote it.
    pub traceparent: Option<String>,
    /// The priority of the job; 0 if absent.
    pub priority: Option<i64>,
    /// The word for the choice about an unfinished job of the key: see
    /// [`IfUnfinished::parse`](crate::enqueue::IfUnfinished::parse).
    pub if_unfinished: Option<String>,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InboxAnswer {
    /// This job is created.
    Create(Box<NewJob>),
    /// An unfinished job gives way to this one.
    Replace(Box<Replacement>),
    /// The unfinished job of this key stays as it is.
    Keep(JobKey),
    /// Nothing is created, for this reason.
    Refuse(String),
}

/// An unfinished job, and what takes its place by [`replace`](crate::enqueue::replace).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The job that was read.
    pub job: JobId,
    /// Its revision at that moment.
    pub revision: u64,
    /// The payload, time and settings of the request.
    pub definition: Definition,
}

/// A request that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRequest {
    /// The request.
    pub request: InboxRequest,
    /// The reason why it was refused.
    pub reason: String,
    /// The time of the refusal.
    pub at: Timestamp,
}
