//! [`Subject`]: a job or an instance.

use std::fmt;

use crate::ids::{InstanceId, JobKey};

/// The job or the instance that a problem is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A job, all versions of it.
    Job(JobKey),
    /// An instance, and the name of its host.
    Instance(InstanceId, String),
}

impl Subject {
    /// The key, if it is a job.
    pub fn job(&self) -> Option<&JobKey> {
        match self {
            Subject::Job(key) => Some(key),
            Subject::Instance(..) => None,
        }
    }

    /// The id and the host, if it is an instance.
    pub fn instance(&self) -> Option<(InstanceId, &str)> {
        match self {
            Subject::Job(_) => None,
            Subject::Instance(id, host) => Some((*id, host)),
        }
    }

    /// The text that identifies it among the subjects of problems of one kind: the key, or the id.
    pub fn identity(&self) -> String {
        match self {
            Subject::Job(key) => key.to_string(),
            Subject::Instance(id, _) => id.to_string(),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Job(key) => fmt::Display::fmt(key, f),
            Subject::Instance(id, host) => write!(f, "instance {id} on {host}"),
        }
    }
}
