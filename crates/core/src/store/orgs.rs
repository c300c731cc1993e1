//! Requests to stores about orgs, and their answers.

use crate::job::{Job, Timer};
use crate::org::{Org, Override};
use crate::store::Planned;

/// A filter of orgs. An org must fit every member that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrgFilter {
    /// Id or name contains this; letters of ASCII in any case.
    pub text: Option<String>,
    /// In this zone.
    pub timezone: Option<String>,
    /// Takes part.
    pub enabled: Option<bool>,
    /// Some job cannot fire for it: errored.
    pub errored: Option<bool>,
}

/// A filter of the orgs of a job. An org must fit every member that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobOrgFilter {
    /// Id or name contains this; letters of ASCII in any case.
    pub text: Option<String>,
    /// The job cannot fire for it: errored.
    pub errored: Option<bool>,
    /// The job has a next fire for it.
    pub armed: Option<bool>,
}

/// The result of writing an org.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OrgWritten {
    /// The org as it is now.
    pub org: Org,
    /// Whether it is new.
    pub created: bool,
    /// It is not as it was.
    pub changed: bool,
}

impl OrgWritten {
    /// An org that was created, changed, or left as it was.
    pub fn new(org: Org, created: bool, changed: bool) -> OrgWritten {
        OrgWritten { org, created, changed }
    }
}

/// An org, as a job sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOrg {
    /// The org.
    pub org: Org,
    /// Its override of the job.
    pub override_: Option<Override>,
    /// The timer of the job for this org.
    pub timer: Option<Timer>,
    /// Why the job cannot fire for it.
    pub error: Option<String>,
}

/// A job, as an org sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrgJob {
    /// The job.
    pub job: Job,
    /// The org's override of it.
    pub override_: Option<Override>,
    /// Its timer for the org.
    pub timer: Option<Timer>,
    /// Why it cannot fire for the org.
    pub error: Option<String>,
}

/// How many orgs there are, for gauges; no more than 10,000 of each are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrgCounts {
    /// The number of orgs.
    pub orgs: u32,
    /// Timers of orgs that are errored.
    pub errored: u32,
    /// Orgs that changed and whose timers are not reconciled yet.
    pub waiting: u32,
    /// Org updates that are not at their end.
    pub org_updates: u32,
}

/// The result of a step of an org update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrgUpdateProgress {
    /// Timers that were created, moved or removed, and runs and gaps that were written with them.
    pub planned: Planned,
    /// The number of orgs visited.
    pub orgs: u32,
    /// There is more to do.
    pub more: bool,
}
