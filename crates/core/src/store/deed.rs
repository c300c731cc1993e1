//! Requests that may be sent again, and what they did: the deed and its memory are written by one transaction.

use uuid::Uuid;

use super::PurgedJob;
use crate::ids::{JobId, JobKey, RunId};
use crate::run::Gap;

/// Names a request that its sender may send again, or one part of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestKey {
    /// Unique for each request. Keys of different senders must differ.
    pub key: String,
    /// A hash of what is asked for, so that a key that is used for something else is noticed.
    pub fingerprint: [u8; 32],
}

impl RequestKey {
    /// The key of one part of a request that is carried out in several transactions.
    #[must_use]
    pub fn part(&self, name: &str) -> RequestKey {
        RequestKey { key: format!("{}/{name}", self.key), fingerprint: self.fingerprint }
    }
}

/// The effects of a request: enough to answer it again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deed {
    /// Its entry in the audit trail.
    pub entry: Uuid,
    /// The job that it created or changed.
    pub job: Option<JobId>,
    /// The version that took over.
    pub successor: Option<JobId>,
    /// The runs that it inserted or canceled.
    pub runs: Vec<RunId>,
    /// The gaps that it wrote.
    pub gaps: Vec<Gap>,
    /// How many runs that had not begun it held or canceled.
    pub pending: u64,
    /// The job that it deleted, and the rows that went with it.
    pub purged: Option<(JobKey, PurgedJob)>,
}

/// The memory of an earlier request with the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remembered {
    /// None: carry out the request.
    New,
    /// The key belongs to another request.
    Different,
    /// It was carried out, but its answer is not known: read back what it did.
    Done(Deed),
    /// Its answer: status and body.
    Answered(u16, String),
    /// A release that did not write deed and memory together started it, so it is unknown whether it was carried out.
    InDoubt,
}
