//! Chains: the jobs that start when runs end, as both databases find them, and what they are asked.

use std::collections::BTreeMap;

use everbell_core::after::After;
use everbell_core::chain::{ChainLink, EndedRun};
use everbell_core::plan::Plan;
use everbell_core::store::{Due, StoreError, StoreResult};
use everbell_core::{JobKey, RunId, RunStatus};
use jiff::Timestamp;
use uuid::Uuid;

use super::corrupt;
use super::from_row::by_name;

/// A run that is about to end, and a current job that starts after its job.
#[derive(Clone, Debug)]
pub(crate) struct FollowerColumns {
    pub(crate) run_id: Uuid,
    pub(crate) trigger: String,
    pub(crate) job_id: Uuid,
    pub(crate) is_paused: bool,
}

by_name!(FollowerColumns { run_id, trigger, job_id, is_paused });

/// The jobs that may start when these runs end.
#[derive(Debug, Default)]
pub(crate) struct Followers(Vec<FollowerColumns>);

/// How a run ended.
pub(crate) type End = (Uuid, RunStatus, Timestamp);

impl Followers {
    pub(crate) fn new(rows: Vec<FollowerColumns>) -> Followers {
        Followers(rows)
    }

    /// The jobs, each once, in order.
    pub(crate) fn jobs(&self) -> Vec<Uuid> {
        let mut jobs: Vec<Uuid> = self.0.iter().map(|row| row.job_id).collect();
        jobs.sort_unstable();
        jobs.dedup();
        jobs
    }

    /// Takes the runs that really ended.
    pub(crate) fn ended(&self, ends: &[End]) -> StoreResult<Starting> {
        let ends: BTreeMap<Uuid, (RunStatus, Timestamp)> =
            ends.iter().map(|(run, to, at)| (*run, (*to, *at))).collect();
        let mut starting = BTreeMap::<Uuid, (bool, Vec<EndedRun>)>::new();
        for row in &self.0 {
            let Some((status, finished_at)) = ends.get(&row.run_id).copied() else { continue };
            let id = RunId::from_uuid(row.run_id);
            let trigger = super::run::trigger(&row.trigger).map_err(|why| corrupt("runs", id, why))?;
            let (is_paused, ended) = starting.entry(row.job_id).or_default();
            *is_paused = row.is_paused;
            ended.push(EndedRun { id, status, trigger, finished_at });
        }
        Ok(Starting(starting))
    }
}

/// The runs that ended, by the job that starts after them.
#[derive(Debug)]
pub(crate) struct Starting(BTreeMap<Uuid, (bool, Vec<EndedRun>)>);

impl Starting {
    pub(crate) fn contains(&self, job: Uuid) -> bool {
        self.0.contains_key(&job)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The decision about one of the jobs.
    pub(crate) fn plan(&self, due: &Due) -> Plan {
        match self.0.get(&due.job.id.as_uuid()) {
            Some((is_paused, ended)) => due.follow(*is_paused, ended),
            None => Plan::nothing(&due.timer),
        }
    }
}

/// A current job that starts after another one: its key and its stored schedule.
pub(crate) type LinkColumns = (String, String);

/// Reads links. One that cannot be read is left out: it starts nothing, and its job is errored.
pub(crate) fn links(rows: Vec<LinkColumns>) -> Vec<ChainLink> {
    let link = |(key, text): LinkColumns| {
        Some(ChainLink { job_key: JobKey::new(&key).ok()?, after: After::parse(&text)?.ok()? })
    };
    rows.into_iter().filter_map(link).collect()
}

/// The first and the last id of the runs that start when a run ends at this time, and their trigger.
pub(crate) fn ids_after(ended: RunId, finished_at: Timestamp) -> (Uuid, Uuid, String) {
    let first = RunId::first_at(finished_at).as_uuid();
    let last = Uuid::from_u128(first.as_u128() | ((1 << 80) - 1));
    (first, last, everbell_core::Trigger::After(ended).to_string())
}

/// The jobs after these runs were changed each time that they were locked.
pub(crate) fn changing() -> StoreError {
    StoreError::Conflict { what: "the jobs that start after these runs are changing at this moment".to_owned() }
}
