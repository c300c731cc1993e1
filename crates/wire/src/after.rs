//! The rule by which a job starts after another one.

use everbell_core as core;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::words::words;

words!(
    /// The outcomes of a run that start the next job.
    ChainOn from core::after::ChainOn {
        /// It succeeded.
        Success = "success",
        /// It failed, after its last attempt.
        Failure = "failure",
        /// It ended: it succeeded, failed, or was canceled while it was at work.
        Any = "any",
    }
);

/// The job whose runs start this one, and which of them do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct After {
    /// The key of that job.
    pub job: String,
    /// The outcomes that count.
    pub on: ChainOn,
    /// Whether manual runs, reruns and backfills of that job start this one too.
    pub manual: bool,
}

impl From<&core::after::After> for After {
    fn from(after: &core::after::After) -> After {
        After { job: after.job_key.to_string(), on: after.on.into(), manual: after.manual }
    }
}

/// The text with a capital first letter.
pub(crate) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
