//! Requests to a store.

use jiff::Timestamp;
use uuid::Uuid;

use super::deed::RequestKey;
use crate::ids::{InstanceId, JobId, JobKey, OrgId, Target};
use crate::job::{JobStatus, Source};
use crate::json::Json;
use crate::run::{GapReason, RunStatus, TriggerType};

/// How a job is named.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum JobRef {
    /// One version, by its id.
    Id(JobId),
    /// The living version of this key, or the newest when all are retired.
    Key(JobKey),
    /// This version of this key.
    Version(JobKey, u32),
}

/// A filter of jobs. A job must fit every member that is set; an empty list matches no job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// One of these.
    pub status: Vec<JobStatus>,
    /// One of these.
    pub target: Vec<Target>,
    /// All versions of this key.
    pub key: Option<JobKey>,
    /// Key, target or description contains this, in any case.
    pub text: Option<String>,
    /// Owned by this.
    pub source: Option<Source>,
    /// The last run ended so.
    pub last_status: Vec<RunStatus>,
    /// Cannot fire: errored.
    pub errored: Option<bool>,
    /// Failed since it last succeeded.
    pub failing: Option<bool>,
    /// Fires once.
    pub one_time: Option<bool>,
    /// Has a next fire. An active job without one is finished.
    pub scheduled: Option<bool>,
    /// Has this label, with this value if one is given.
    pub label: Option<(String, Option<String>)>,
    /// Only the newest version of each job, so that versions that an edit replaced are left out.
    pub latest: bool,
    /// How to order.
    pub sort: JobSort,
}

impl JobFilter {
    /// Marks a list of statuses for [`JobFilter::latest`]. No job has this status.
    pub const LATEST: &'static str = "latest";

    /// The words that a status must be one of; empty for any. They hold [`JobFilter::LATEST`] if only the newest
    /// versions are asked for, so that one parameter of a statement says both.
    pub fn status_words(&self) -> Vec<&'static str> {
        let any = self.latest && self.status.is_empty();
        let status = if any { JobStatus::ALL } else { self.status.as_slice() };
        status.iter().map(|status| status.as_str()).chain(self.latest.then_some(Self::LATEST)).collect()
    }
}

/// The order of a list of jobs; ties by id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobSort {
    /// By key, then newest version first.
    #[default]
    Key,
    /// The next to fire first, a job with a timer for each org by the first of them; those that never fire last.
    NextRunAt,
    /// The newest first.
    CreatedAt,
    /// By target.
    Target,
    /// By the newest last run first, by its slot or the time of its request; jobs that never ran come last.
    ///
    /// A job that runs while a client reads pages moves to the front. So a later page lacks it, the first page has it
    /// when it is read again, and no page shows it twice.
    LastRun,
}

/// The ages from which rows are deleted, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneBefore {
    /// Runs that ended, and gaps.
    pub history: Timestamp,
    /// Entries of the audit trail.
    pub audit: Timestamp,
    /// Requests with an idempotency key, by when they began, and sessions, by when they ended.
    pub requests: Timestamp,
}

impl PruneBefore {
    /// Everything from before this time.
    pub fn all(at: Timestamp) -> PruneBefore {
        PruneBefore { history: at, audit: at, requests: at }
    }
}

/// A filter of runs. A run must fit every member that is set; an empty list matches no run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Of this version.
    pub job_id: Option<JobId>,
    /// Of any version of this key.
    pub job_key: Option<JobKey>,
    /// One of these.
    pub status: Vec<RunStatus>,
    /// One of these.
    pub target: Vec<Target>,
    /// Made so.
    pub trigger: Option<TriggerType>,
    /// Of this org.
    pub org: Option<OrgId>,
    /// Executed there.
    pub instance: Option<InstanceId>,
    /// Failed with this code.
    pub failure_code: Option<String>,
    /// Of a job whose version has this label, with this value if one is given.
    pub label: Option<(String, Option<String>)>,
    /// The slot, or the time of the request of a run by hand ([`RunId::time`](crate::RunId::time)), at or after this.
    pub from: Option<Timestamp>,
    /// The upper bound of that time, exclusive.
    pub to: Option<Timestamp>,
}

/// A filter of gaps. A gap must fit every member that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GapFilter {
    /// Of this version.
    pub job_id: Option<JobId>,
    /// Of any version of this key.
    pub job_key: Option<JobKey>,
    /// Of this org.
    pub org: Option<OrgId>,
    /// For this reason.
    pub reason: Option<GapReason>,
    /// Of a job with this label, with this value if one is given.
    pub label: Option<(String, Option<String>)>,
    /// Ends at or after this.
    pub from: Option<Timestamp>,
    /// Begins before this.
    pub to: Option<Timestamp>,
}

/// How much of a list, and where to go on.
///
/// Pages are keyed by (time or text, id), so rows that come or go in between
/// neither repeat nor hide others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// 1 to 1,000.
    pub limit: u32,
    /// The `next` of the page before.
    pub after: Option<Cursor>,
}

impl Default for PageRequest {
    /// The first 100 rows.
    fn default() -> PageRequest {
        PageRequest { limit: 100, after: None }
    }
}

/// Behind which row a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The sort value of that row.
    pub value: String,
    /// Its id.
    pub id: Uuid,
}

/// An action of a person or a component, for the audit trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// The id; later entries have greater ones.
    pub id: Uuid,
    /// When it happened.
    pub at: Timestamp,
    /// The actor, such as `token:ops`.
    pub actor: String,
    /// The action, such as `job.pause`.
    pub action: String,
    /// The object, such as `job:daily-briefing`.
    pub object: String,
    /// The reason, if one was given.
    pub reason: Option<String>,
    /// The changed members before.
    pub before: Option<Json>,
    /// The changed members after.
    pub after: Option<Json>,
    /// The request that this carries out, if it can be retried. Written beside the entry; entries that are read back
    /// have none.
    pub request: Option<RequestKey>,
    /// The origin of the request; empty for everbell's own actions.
    pub origin: Origin,
}

/// Whether a token may be revoked when no other valid admin token remains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastAdmin {
    /// It is refused: afterwards no token could create tokens.
    Refuse,
    /// It is revoked all the same.
    Revoke,
}

/// The origin of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The address of the client.
    pub address: Option<String>,
    /// The id of the request, which is in its answer and in the log.
    pub request_id: Option<String>,
    /// The role of the caller: `viewer`, `operator` or `admin`.
    pub role: Option<String>,
}

/// A token to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// Unique, for people and the audit trail.
    pub name: String,
    /// SHA-256 of the token.
    pub hash: [u8; 32],
    /// `viewer`, `operator` or `admin`.
    pub role: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it expires, if ever.
    pub expires_at: Option<Timestamp>,
}
