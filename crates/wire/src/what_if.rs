//! The effect of moving an org to another time zone.

use everbell_core::org;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Fire;
use crate::gap::GapReason;
use crate::words::words;

words!(
    /// The outcome of a local day after a move.
    Verdict from org::Verdict {
        /// It had its run before the move.
        RanAlready = "ran_already",
        /// It gets one run.
        Once = "once",
        /// It gets one run right after the move.
        AtOnce = "at_once",
        /// It gets two runs.
        Twice = "twice",
        /// It gets no run.
        NotAtAll = "not_at_all",
    }
);

/// The effect of moving an org to another time zone now.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhatIf {
    /// The org.
    pub org_id: String,
    /// When it would move: now.
    pub at: Timestamp,
    /// The zone before the move.
    pub timezone_before: String,
    /// The zone after the move.
    pub timezone_after: String,
    /// One entry for each job that fires for orgs.
    pub jobs: Vec<JobWhatIf>,
}

/// The effect of a move on one job of an org.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobWhatIf {
    /// The key of the job.
    pub job_key: String,
    /// The id of the job's version.
    pub job_id: String,
    /// The next runs without the move, in the zone before.
    pub before: Vec<Fire>,
    /// The next runs with the move, in the zone after.
    pub after: Vec<Fire>,
    /// The local days after the move, starting with the last that ran; only for schedules that fire at most once a day.
    pub days: Vec<WhatIfDay>,
    /// Whether a local day would fire twice.
    pub would_fire_again: bool,
    /// A summary in a sentence or two.
    pub sentence: String,
}

/// A local day of an org after a move.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhatIfDay {
    /// The day.
    #[schema(format = Date)]
    pub date: String,
    /// The outcome.
    pub verdict: Verdict,
    /// When it fires.
    pub at: Option<Timestamp>,
    /// Why its slot gets no run.
    pub gap: Option<GapReason>,
}

impl From<&org::Day> for WhatIfDay {
    fn from(day: &org::Day) -> WhatIfDay {
        WhatIfDay {
            date: day.date.to_string(),
            verdict: day.verdict.into(),
            at: day.at,
            gap: day.gap.map(GapReason::from),
        }
    }
}
