//! [`Subject`]: a job, a job for one org, or an instance.

use std::fmt;

use crate::ids::{InstanceId, JobKey, OrgId};

/// The job, with its org if rules look at that, or the instance that a problem is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A job, all versions of it.
    Job(JobKey),
    /// The runs of a job for one org.
    JobOfOrg(JobKey, OrgId),
    /// An instance, and the name of its host.
    Instance(InstanceId, String),
}

impl Subject {
    /// The key, if it is a job.
    pub fn job(&self) -> Option<&JobKey> {
        match self {
            Subject::Job(key) | Subject::JobOfOrg(key, _) => Some(key),
            Subject::Instance(..) => None,
        }
    }

    /// The org, if it is about the runs for one.
    pub fn org(&self) -> Option<&OrgId> {
        match self {
            Subject::JobOfOrg(_, org) => Some(org),
            Subject::Job(_) | Subject::Instance(..) => None,
        }
    }

    /// The id and the host, if it is an instance.
    pub fn instance(&self) -> Option<(InstanceId, &str)> {
        match self {
            Subject::Job(_) | Subject::JobOfOrg(..) => None,
            Subject::Instance(id, host) => Some((*id, host)),
        }
    }

    /// The text that identifies it among the subjects of problems of one kind: the key, with the org on a line of its own, or
    /// the id.
    pub fn identity(&self) -> String {
        match self {
            Subject::Job(key) => key.to_string(),
            Subject::JobOfOrg(key, org) => format!("{key}\n{org}"),
            Subject::Instance(id, _) => id.to_string(),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Job(key) => fmt::Display::fmt(key, f),
            Subject::JobOfOrg(key, org) => write!(f, "{key} for {org}"),
            Subject::Instance(id, host) => write!(f, "instance {id} on {host}"),
        }
    }
}
