//! The rule by which a job starts after another one.

use everbell_core as core;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::run_status::RunStatus;
use crate::words::words;

words!(
    /// The outcomes of a run that start the next job.
    ChainOn from core::after::ChainOn {
        /// It succeeded.
        Success = "success",
        /// It failed, after its last attempt.
        Failure = "failure",
        /// It ended: it succeeded, failed, or was canceled while it was running.
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

words!(
    /// The property that the runs share that a job waits for together.
    GroupBy from core::fan_in::GroupBy {
        /// The slot at the beginning of their chains.
        Slot = "slot",
        /// The date of that slot, in the time zone of the job that waits.
        LocalDate = "local_date",
    }
);

/// The job that another one starts after, or the jobs that it waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Parents {
    /// Each counted run of this job starts it.
    One(After),
    /// Runs of all of these jobs start it together.
    All(Vec<After>),
}

impl Parents {
    /// The jobs.
    pub fn as_slice(&self) -> &[After] {
        match self {
            Parents::One(after) => std::slice::from_ref(after),
            Parents::All(all) => all,
        }
    }
}

/// A job, and the jobs before and after it in its chains.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Chain {
    /// The jobs of the chain, each after the jobs whose runs start it. At most 50, the nearest ones; none if the job is
    /// in no chain.
    pub jobs: Vec<ChainJob>,
    /// The last groups of runs that the job waits or waited for, if it starts after several jobs: at most 20, newest first.
    pub groups: Vec<RunGroup>,
}

/// A job of a chain.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChainJob {
    /// Its key.
    pub job_key: String,
    /// The jobs of the chain that it starts after.
    pub after: Vec<After>,
}

impl From<&core::chain::ChainJob> for ChainJob {
    fn from(job: &core::chain::ChainJob) -> ChainJob {
        ChainJob { job_key: job.job_key.to_string(), after: job.parents.iter().map(After::from).collect() }
    }
}

/// Runs that a job waits or waited for.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunGroup {
    /// The slot or the local date that they have in common.
    pub name: String,
    /// When the first of them ended.
    pub opened_at: Timestamp,
    /// When the wait ends.
    pub deadline: Timestamp,
    /// When all of them had ended with an outcome that counts, or the wait was over; null while the job waits.
    pub closed_at: Option<Timestamp>,
    /// The run that the group started; null if none.
    pub started_run_id: Option<String>,
    /// The runs that have ended.
    pub runs: Vec<GroupedRun>,
    /// A description of each run that is missing.
    pub missing: Vec<String>,
}

/// A run of a group.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GroupedRun {
    /// The key of its job.
    pub job_key: String,
    /// The run.
    pub run_id: String,
    /// How it ended.
    pub status: RunStatus,
    /// Whether it ended with an outcome that counts.
    pub counts: bool,
}

impl RunGroup {
    /// A group, and what is missing by the rule of the job now.
    pub fn new(group: &core::chain::RunGroup, fan_in: Option<&core::fan_in::FanIn>) -> RunGroup {
        let run = |run: &core::chain::GroupedRun| GroupedRun {
            job_key: run.job_key.to_string(),
            run_id: run.run_id.to_string(),
            status: run.status.into(),
            counts: run.counts,
        };
        let missing = fan_in.filter(|_| group.started.is_none()).map(|fan_in| group.missing(fan_in));
        RunGroup {
            name: group.name.clone(),
            opened_at: group.opened_at,
            deadline: group.deadline,
            closed_at: group.closed_at,
            started_run_id: group.started.map(|run| run.to_string()),
            runs: group.runs.iter().map(run).collect(),
            missing: missing.unwrap_or_default(),
        }
    }
}

/// The text with a capital first letter.
pub(crate) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
