//! The inbox: requests that others write with plain SQL, inside of their own transactions.

use jiff::Timestamp;

use crate::change::NewJob;

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
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InboxAnswer {
    /// This job is created.
    Create(Box<NewJob>),
    /// Nothing is created, for this reason.
    Refuse(String),
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
