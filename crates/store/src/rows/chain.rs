//! Chains: the jobs that start when runs end, as both databases find them, and what they are asked.

use std::collections::{BTreeMap, BTreeSet};

use everbell_core::after::After;
use everbell_core::chain::{ChainLink, EndedRun, FanInEnd, RunGroup, Start, join};
use everbell_core::fan_in::FanIn;
use everbell_core::plan::Plan;
use everbell_core::store::{Due, StoreError, StoreResult};
use everbell_core::{JobKey, OrgId, RunId, RunStatus, Zone};
use jiff::Timestamp;
use uuid::Uuid;

use super::corrupt;
use super::from_row::by_name;
use super::origins::Origins;
use super::run_groups::RunGroupColumns;

/// A run that is about to end, and a current job that starts after its job.
#[derive(Clone, Debug)]
pub(crate) struct FollowerColumns {
    pub(crate) run_id: Uuid,
    pub(crate) trigger: String,
    pub(crate) job_id: Uuid,
    pub(crate) is_paused: bool,
    /// The key of the run's job, and the run's org or the empty text.
    pub(crate) parent_key: String,
    pub(crate) org_id: String,
    /// The key and zone of the job that starts.
    pub(crate) job_key: String,
    pub(crate) timezone: String,
    /// Its stored schedule, if it starts after several jobs.
    pub(crate) fan_in: Option<String>,
}

by_name!(FollowerColumns { run_id, trigger, job_id, is_paused, parent_key, org_id, job_key, timezone, fan_in });

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
        let mut starting = BTreeMap::<Uuid, Follower>::new();
        for row in &self.0 {
            let Some((status, finished_at)) = ends.get(&row.run_id).copied() else { continue };
            let id = RunId::from_uuid(row.run_id);
            let trigger = super::run::trigger(&row.trigger).map_err(|why| corrupt("runs", id, why))?;
            let ended = EndedRun { id, status, trigger, finished_at };
            let follower = starting.entry(row.job_id).or_insert_with(|| Follower::new(row));
            match (&follower.fan_in, JobKey::new(&row.parent_key)) {
                (Some(_), Ok(job_key)) => {
                    let org = OrgId::new(&row.org_id).ok();
                    follower.ends.push(FanInEnd { origin: finished_at, ended, job_key, org });
                }
                _ => follower.ended.push(ended),
            }
        }
        Ok(Starting(starting))
    }
}

/// A job that may start.
#[derive(Debug)]
struct Follower {
    is_paused: bool,
    /// The key, rule and zone of a job that starts after several.
    fan_in: Option<(JobKey, FanIn, Zone)>,
    /// The runs that ended, for a job that starts after a single one.
    ended: Vec<EndedRun>,
    /// The runs that ended, for a job that starts after several.
    ends: Vec<FanInEnd>,
    starts: Vec<Start>,
}

impl Follower {
    fn new(row: &FollowerColumns) -> Follower {
        // A rule that cannot be read starts nothing: its job is errored.
        let fan_in = || {
            let fan_in = FanIn::parse(row.fan_in.as_deref()?)?.ok()?;
            Some((JobKey::new(&row.job_key).ok()?, fan_in, Zone::get(&row.timezone).ok()?))
        };
        let (ended, ends, starts) = (Vec::new(), Vec::new(), Vec::new());
        Follower { is_paused: row.is_paused, fan_in: fan_in(), ended, ends, starts }
    }
}

/// The runs that ended, by the job that starts after them.
#[derive(Debug)]
pub(crate) struct Starting(BTreeMap<Uuid, Follower>);

impl Starting {
    pub(crate) fn contains(&self, job: Uuid) -> bool {
        self.0.contains_key(&job)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The runs that ended and that a job with several jobs before it waits for.
    pub(crate) fn origins(&self) -> Origins {
        Origins::new(self.0.values().flat_map(|follower| &follower.ends).map(|end| end.ended.id.as_uuid()))
    }

    /// The groups that these runs belong to: jobs and names.
    pub(crate) fn groups(&mut self, origins: &Origins) -> (Vec<String>, Vec<String>) {
        let mut names = BTreeSet::new();
        for follower in self.0.values_mut() {
            let Some((key, fan_in, zone)) = &follower.fan_in else { continue };
            for end in &mut follower.ends {
                end.origin = origins.origin_of(end.ended.id.as_uuid()).unwrap_or(end.origin);
                names.insert((key.to_string(), fan_in.group_of(end.origin, zone)));
            }
        }
        names.into_iter().unzip()
    }

    /// Takes the runs into their groups. Returns the groups to write.
    pub(crate) fn join(&mut self, rows: Vec<RunGroupColumns>) -> StoreResult<Vec<RunGroupColumns>> {
        let stored: Vec<RunGroup> = rows.into_iter().map(RunGroupColumns::read).collect::<StoreResult<_>>()?;
        let mut written = Vec::new();
        for follower in self.0.values_mut() {
            let Some((key, fan_in, zone)) = &follower.fan_in else { continue };
            let own = stored.iter().filter(|group| group.job_key == *key);
            let before: BTreeMap<String, RunGroup> = own.map(|group| (group.name.clone(), group.clone())).collect();
            let mut after = before.clone();
            follower.starts = join(key, fan_in, zone, &follower.ends, &mut after);
            let changed = after.values().filter(|group| before.get(&group.name) != Some(group));
            written.extend(changed.map(RunGroupColumns::new));
        }
        Ok(written)
    }

    /// The decision about one of the jobs.
    pub(crate) fn plan(&self, due: &Due) -> Plan {
        match self.0.get(&due.job.id.as_uuid()) {
            Some(follower) if follower.fan_in.is_some() => due.start_runs(follower.is_paused, &follower.starts),
            Some(follower) => due.follow(follower.is_paused, &follower.ended),
            None => Plan::nothing(&due.timer),
        }
    }
}

/// A current job that starts after another one: its key and its stored schedule.
pub(crate) type LinkColumns = (String, String);

/// Reads links. One that cannot be read is left out: it starts nothing, and its job is errored.
pub(crate) fn links(rows: Vec<LinkColumns>) -> Vec<ChainLink> {
    let links = |(key, text): LinkColumns| {
        let parents = match After::parse(&text) {
            Some(after) => vec![after.ok()?],
            None => FanIn::parse(&text)?.ok()?.parents,
        };
        let key = JobKey::new(&key).ok()?;
        Some(parents.into_iter().map(move |after| ChainLink { job_key: key.clone(), after }))
    };
    rows.into_iter().filter_map(links).flatten().collect()
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
