//! Groups of runs that a job waits for.

use std::collections::BTreeMap;

use everbell_core::chain::{GroupedRun, REMEMBERED, RunGroup, expire_all};
use everbell_core::plan::Plan;
use everbell_core::store::{Due, StoreResult};
use everbell_core::{Gap, Invalid, JobKey, RunId, RunStatus};
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use super::corrupt;
use super::from_row::by_name;
use crate::micros::Micros;

/// A row of `run_groups`.
#[derive(Clone, Debug)]
pub(crate) struct RunGroupColumns {
    pub(crate) job_key: String,
    pub(crate) name: String,
    pub(crate) opened_at: Micros,
    pub(crate) deadline: Micros,
    pub(crate) closed_at: Option<Micros>,
    pub(crate) started: Option<Uuid>,
    pub(crate) runs: String,
}

by_name!(RunGroupColumns { job_key, name, opened_at, deadline, closed_at, started, runs });

/// A run of a group: job, run, status, and whether it counts.
type RunColumns = (String, String, String, bool);

impl RunGroupColumns {
    pub(crate) fn new(group: &RunGroup) -> RunGroupColumns {
        let run = |run: &GroupedRun| {
            json!([run.job_key.to_string(), run.run_id.to_string(), run.status.to_string(), run.counts])
        };
        RunGroupColumns {
            job_key: group.job_key.to_string(),
            name: group.name.clone(),
            opened_at: group.opened_at.into(),
            deadline: group.deadline.into(),
            closed_at: group.closed_at.map(Into::into),
            started: group.started.map(|run| run.as_uuid()),
            runs: Value::Array(group.runs.iter().map(run).collect()).to_string(),
        }
    }

    pub(crate) fn read(self) -> StoreResult<RunGroup> {
        let id = format!("{} {}", self.job_key, self.name);
        self.try_read().map_err(|why| corrupt("run_groups", id, why))
    }

    fn try_read(self) -> Result<RunGroup, Invalid> {
        let runs: Vec<RunColumns> =
            serde_json::from_str(&self.runs).map_err(|error| Invalid::new("runs", error.to_string()))?;
        let run = |(job, run, status, counts): RunColumns| {
            let unknown = || Invalid::new("status", format!("`{status}` is not known"));
            let status = RunStatus::from_word(&status).ok_or_else(unknown)?;
            let run: Uuid = run.parse().map_err(|_| Invalid::new("run", format!("`{run}` is no id")))?;
            Ok(GroupedRun { job_key: JobKey::new(&job)?, run_id: RunId::from_uuid(run), status, counts })
        };
        Ok(RunGroup {
            job_key: JobKey::new(&self.job_key)?,
            name: self.name,
            opened_at: self.opened_at.into(),
            deadline: self.deadline.into(),
            closed_at: self.closed_at.map(Into::into),
            started: self.started.map(RunId::from_uuid),
            runs: runs.into_iter().map(run).collect::<Result<_, Invalid>>()?,
        })
    }
}

/// A group whose wait is over, and the current version of its job.
#[derive(Clone, Debug)]
pub(crate) struct OverdueColumns {
    pub(crate) group: RunGroupColumns,
    pub(crate) job_id: Option<Uuid>,
    pub(crate) is_paused: bool,
}

by_name!(OverdueColumns { job_id, is_paused } flatten { group });

/// The outcome of groups whose wait is over.
#[derive(Debug, Default)]
pub(crate) struct Overdue {
    /// The closed groups.
    pub(crate) closed: Vec<RunGroupColumns>,
    gaps: BTreeMap<Uuid, Vec<Gap>>,
}

impl Overdue {
    /// Decides about groups of the jobs that are locked, and of jobs that are gone. The others are asked about again.
    pub(crate) fn new(rows: Vec<OverdueColumns>, locked: &[Uuid], now: Timestamp) -> Overdue {
        let mut overdue = Overdue::default();
        let mut by_job: BTreeMap<Uuid, (bool, Vec<RunGroup>)> = BTreeMap::new();
        for row in rows {
            let close = RunGroupColumns { closed_at: Some(row.group.deadline), ..row.group.clone() };
            match (row.job_id, row.group.read()) {
                (Some(job), Ok(group)) if locked.contains(&job) => {
                    let (is_paused, groups) = by_job.entry(job).or_default();
                    *is_paused = row.is_paused;
                    groups.push(group);
                }
                (Some(job), Ok(_)) if !locked.contains(&job) => {}
                _ => overdue.closed.push(close),
            }
        }
        for (job, (is_paused, mut groups)) in by_job {
            let gaps = expire_all(&mut groups, is_paused, now);
            overdue.closed.extend(groups.iter().map(RunGroupColumns::new));
            overdue.gaps.insert(job, gaps);
        }
        overdue
    }

    /// The gaps of a job.
    pub(crate) fn plan(&self, due: &Due) -> Plan {
        let gaps = self.gaps.get(&due.job.id.as_uuid()).cloned().unwrap_or_default();
        Plan { gaps, ..Plan::nothing(&due.timer) }
    }
}

/// Groups that were closed before this time are deleted.
pub(crate) fn forgotten(now: Timestamp) -> Micros {
    let remembered = now.saturating_sub(REMEMBERED).unwrap_or(Timestamp::MIN);
    remembered.into()
}
