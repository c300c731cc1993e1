//! Documents about all jobs together: outages, next fires and statistics.

use std::collections::BTreeMap;

use everbell_core::outage::{self, LateOutcome};
use everbell_core::store::{Bucket, GapCount};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The most jobs that an outage lists.
pub const MAX_LISTED_JOBS: usize = 200;

/// An outage: a period with no scheduling instance, and the outcome of each slot in it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Outage {
    /// The last heartbeat before it.
    pub from: Timestamp,
    /// The first heartbeat after it.
    pub until: Timestamp,
    /// How many jobs had slots in it.
    pub jobs: u64,
    /// How many of these jobs are caught up: no slot is left without a run.
    pub jobs_caught_up: u64,
    /// How many slots passed.
    pub slots: u64,
    /// How many slots have no run: the job does not catch up, or they are older than its `catchUpWindow`.
    pub missed: u64,
    /// How many slots were folded into a later run.
    pub coalesced: u64,
    /// How many slots ran late.
    pub ran: u64,
    /// How many late runs were skipped, because of another run or a dependency.
    pub skipped: u64,
    /// How many slots have since got a run from a backfill.
    pub backfilled: u64,
    /// The jobs, those with the most missed slots first: 200 at most.
    pub items: Vec<OutageJob>,
}

/// The effect of an outage on a job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutageJob {
    /// The key of the job.
    pub job_key: String,
    /// How many slots passed.
    pub slots: u64,
    /// How many slots have no run.
    pub missed: u64,
    /// How many slots were folded into a later run.
    pub coalesced: u64,
    /// How many slots ran late.
    pub ran: u64,
    /// How many late runs were skipped.
    pub skipped: u64,
    /// How many slots have since got a run from a backfill.
    pub backfilled: u64,
    /// Whether no slot is left without a run.
    pub caught_up: bool,
    /// Whether a backfill would create runs.
    pub can_backfill: bool,
    /// The first slot.
    pub first_slot_at: Timestamp,
    /// The last slot.
    pub last_slot_at: Timestamp,
}

impl From<&outage::Outage> for Outage {
    fn from(outage: &outage::Outage) -> Outage {
        Outage {
            from: outage.absence.from,
            until: outage.absence.until,
            jobs: outage.jobs.len() as u64,
            jobs_caught_up: outage.caught_up() as u64,
            slots: outage.slots(),
            missed: outage.count(LateOutcome::Missed) + outage.count(LateOutcome::Expired),
            coalesced: outage.count(LateOutcome::Coalesced),
            ran: outage.count(LateOutcome::Ran),
            skipped: outage.count(LateOutcome::Skipped),
            backfilled: outage.count(LateOutcome::Backfilled),
            items: outage.jobs.iter().take(MAX_LISTED_JOBS).map(OutageJob::from).collect(),
        }
    }
}

impl From<&outage::JobOutage> for OutageJob {
    fn from(job: &outage::JobOutage) -> OutageJob {
        OutageJob {
            job_key: job.job_key.to_string(),
            slots: job.slots(),
            missed: job.missed(),
            coalesced: job.count(LateOutcome::Coalesced),
            ran: job.count(LateOutcome::Ran),
            skipped: job.count(LateOutcome::Skipped),
            backfilled: job.count(LateOutcome::Backfilled),
            caught_up: job.is_caught_up(),
            can_backfill: job.can_backfill(),
            first_slot_at: job.first_slot_at,
            last_slot_at: job.last_slot_at,
        }
    }
}

/// A time at which a job fires.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextFire {
    /// The time.
    pub at: Timestamp,
    /// The time in the zone of the job.
    pub local: String,
    /// The key of the job.
    pub job_key: String,
    /// The id of the job's version.
    pub job_id: String,
    /// The target.
    pub target: String,
    /// The slot that an operator moved to this time.
    pub moved_from: Option<Timestamp>,
    /// The org, for a job with scope `per_org`: the first one if it fires for several at this time. Absent if it is not
    /// known, as for a later run of orgs of which some have another local time.
    pub org_id: Option<String>,
    /// How many orgs it fires for, for a job with scope `per_org`.
    pub orgs: Option<u64>,
    /// How many runs it has, if that is neither 1 nor the number of orgs: each slot runs that calendars move to this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub runs: Option<u64>,
    /// In how many time zones these orgs are, if that is known.
    pub zones: Option<u64>,
    /// Jitter spreads the fires of these orgs over this many milliseconds from `at` on.
    pub spread_ms: Option<u64>,
    /// The reason of the freeze that keeps the job from firing at this time.
    pub frozen: Option<String>,
    /// When the freeze ends. A one-time job waits until then.
    pub frozen_until: Option<Timestamp>,
    /// The effect of daylight saving, if there is any.
    pub note: Option<String>,
}

/// The next times at which jobs fire.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NextFires {
    /// The times, earliest first.
    pub items: Vec<NextFire>,
    /// Whether there are more.
    pub more: bool,
    /// Whether everything was checked. For a later `from`, only 10,000 jobs are; and only 10,000 groups of orgs with the same
    /// time zone and the same override.
    pub complete: bool,
}

/// Statistics of the runs and gaps of all jobs.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStats {
    /// The start of the window.
    pub from: Timestamp,
    /// The end of the window.
    pub to: Timestamp,
    /// How many runs have a slot in the window, or were requested in it.
    pub runs: u64,
    /// How many runs have each status.
    pub by_status: BTreeMap<String, u64>,
    /// The share of runs that succeeded among those that succeeded or failed, from 0 to 1.
    pub success_rate: Option<f64>,
    /// How many scheduled runs started more than 5 seconds late.
    pub late_starts: u64,
    /// Half of the scheduled runs started at most this late.
    pub lag_ms_p50: Option<i64>,
    /// 95% of the scheduled runs started at most this late.
    pub lag_ms_p95: Option<i64>,
    /// The latest start.
    pub lag_ms_max: Option<i64>,
    /// How many slots got no run, by reason.
    pub gap_slots: BTreeMap<String, u64>,
    /// How many outages reach into the window.
    pub outages: u64,
}

impl ClusterStats {
    /// The statistics of a window.
    pub fn new(runs: &Bucket, gaps: &[GapCount], outages: usize) -> ClusterStats {
        use everbell_core::RunStatus;
        use everbell_core::store::Lags;
        let of_status = RunStatus::ALL.iter().map(|status| (status.to_string(), runs.count(*status)));
        let late = Lags::EDGES.partition_point(|edge| *edge <= std::time::Duration::from_secs(5));
        let millis = |lag: std::time::Duration| i64::try_from(lag.as_millis()).unwrap_or(i64::MAX);
        ClusterStats {
            from: runs.from,
            to: runs.to,
            runs: runs.total(),
            by_status: of_status.filter(|(_, count)| *count > 0).collect(),
            success_rate: runs.success_rate(),
            late_starts: runs.lags.counts().iter().skip(late).sum(),
            lag_ms_p50: runs.lag_quantile(0.5).map(millis),
            lag_ms_p95: runs.lag_quantile(0.95).map(millis),
            lag_ms_max: runs.lags.longest().map(millis),
            gap_slots: gaps.iter().map(|count| (count.reason.to_string(), count.slots)).collect(),
            outages: outages as u64,
        }
    }
}
