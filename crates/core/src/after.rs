//! [`After`]: the schedule of a job without a clock, which starts when a run of another job ends.

use std::fmt;

use crate::ids::{Invalid, JobKey};
use crate::policy::words;
use crate::run::{RunStatus, Trigger};

/// The outcomes of a run that start the next job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChainOn {
    /// It succeeded.
    #[default]
    Success,
    /// It failed, after its last attempt.
    Failure,
    /// It ended: it succeeded, failed, or was canceled while it was running.
    Any,
}
words!(ChainOn { Success = "success", Failure = "failure", Any = "any" });

impl ChainOn {
    /// Whether a run that ended like this starts the next job.
    pub const fn includes(self, status: RunStatus) -> bool {
        match status {
            RunStatus::Succeeded => !matches!(self, ChainOn::Failure),
            RunStatus::Failed => !matches!(self, ChainOn::Success),
            RunStatus::Canceled => matches!(self, ChainOn::Any),
            RunStatus::Pending | RunStatus::Running | RunStatus::Skipped => false,
        }
    }
}

/// The job whose runs start this one, and which of them do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct After {
    /// The key of that job, in whatever version.
    pub job_key: JobKey,
    /// The outcomes that count.
    pub on: ChainOn,
    /// Whether manual runs, reruns and backfills of that job start this one too.
    pub manual: bool,
}

/// The first word of the text of a schedule that follows another job.
const WORD: &str = "@after";

/// Added to the outcome, if runs by hand count.
const MANUAL: &str = "+manual";

impl After {
    /// Reads the text that [`Display`](fmt::Display) writes, as databases keep it. `None` for any other schedule.
    pub fn parse(text: &str) -> Option<Result<After, Invalid>> {
        let rest = text.strip_prefix(WORD)?.strip_prefix(' ')?;
        let unknown = || Invalid::new("after", format!("`{text}` is not known"));
        Some(rest.split_once(' ').ok_or_else(unknown).and_then(|(outcome, key)| After::from_words(outcome, key)))
    }

    /// Reads an [outcome](After::outcome) and a key.
    pub fn from_words(outcome: &str, key: &str) -> Result<After, Invalid> {
        let (on, manual) = outcome.strip_suffix(MANUAL).map_or((outcome, false), |on| (on, true));
        let unknown = || Invalid::new("after", format!("the outcome `{outcome}` is not known"));
        Ok(After { job_key: JobKey::new(key)?, on: ChainOn::from_word(on).ok_or_else(unknown)?, manual })
    }

    /// The outcome that counts, as it is stored: `success`, or `any+manual`.
    pub fn outcome(&self) -> String {
        format!("{}{}", self.on, if self.manual { MANUAL } else { "" })
    }

    /// Returns the rule in English, such as `after each successful run of extract`.
    pub fn describe(&self) -> String {
        let which = match self.on {
            ChainOn::Success => "successful run",
            ChainOn::Failure => "failed run",
            ChainOn::Any => "run",
        };
        let also = if self.manual { ", including manual runs" } else { "" };
        format!("after each {which} of {}{also}", self.job_key)
    }

    /// The refusal of a job that would start after itself.
    pub(crate) fn to_itself(job: &JobKey) -> Invalid {
        Invalid::new("after.job", format!("`{job}` cannot start after itself: name another job"))
    }

    /// Whether runs with this cause may start the job.
    pub(crate) fn heeds(&self, trigger: &Trigger) -> bool {
        self.manual || !matches!(trigger, Trigger::Manual(_) | Trigger::Backfill(_))
    }
}

impl fmt::Display for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{WORD} {} {}", self.outcome(), self.job_key)
    }
}
