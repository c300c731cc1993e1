//! Chains: what starts when runs end, and which jobs may follow each other.

use std::collections::BTreeMap;

use everbell_core::chain::{ChainLink, EndedRun, FanInEnd, REMEMBERED, RunGroup, check_chain, expire_all, join};
use everbell_core::fan_in::FanIn;
use everbell_core::plan::{Plan, REPLACER};
use everbell_core::store::StoreResult;
use everbell_core::{Definition, Job, JobKey, JobStatus, Run, RunId, Spec, Zone};
use jiff::Timestamp;

use super::state::{Owner, State};

impl State {
    /// The current jobs that start after another one, by key.
    pub(super) fn chain_links(&self) -> Vec<ChainLink> {
        let links = |job: &Job| -> Vec<ChainLink> {
            let parents = job.definition.spec.as_ref().map_or(&[][..], Spec::parents);
            let link = |after| ChainLink { job_key: job.definition.key.clone(), after };
            parents.iter().cloned().map(link).collect()
        };
        let current = self.jobs.values().filter(|job| job.state.status != JobStatus::Retired);
        let mut links: Vec<ChainLink> = current.flat_map(links).collect();
        links.sort_by(|a, b| a.job_key.cmp(&b.job_key));
        links
    }

    /// Refuses a job that starts after one that does not exist, or in a circle.
    pub(super) fn check_links(&self, definition: &Definition) -> StoreResult<()> {
        let Some(spec) = definition.spec.as_ref().ok().filter(|spec| spec.is_following()) else { return Ok(()) };
        let scope = |key: &JobKey| self.current_job(key).map(|job| job.definition.scope);
        Ok(check_chain(&definition.key, spec.parents(), scope, &self.chain_links())?)
    }

    fn current_job(&self, key: &JobKey) -> Option<&Job> {
        self.jobs.values().find(|job| job.definition.key == *key && job.state.status != JobStatus::Retired)
    }

    /// Starts the jobs that follow runs which have ended together.
    pub(super) fn start_followers(&mut self, runs: &[RunId], now: Timestamp) {
        let ended: Vec<&Run> = runs.iter().filter_map(|id| self.ended.get(id)).collect();
        let mut followers: Vec<(Owner, bool, Vec<EndedRun>)> = Vec::new();
        for job in self.jobs.values().filter(|job| job.state.status != JobStatus::Retired) {
            let Some(after) = job.definition.spec.as_ref().ok().and_then(|spec| spec.after()) else { continue };
            let of_parent = ended.iter().filter(|run| run.job_key.as_ref() == Some(&after.job_key));
            let ended: Vec<EndedRun> = of_parent.filter_map(|run| ended_run(run)).collect();
            if !ended.is_empty() {
                followers.push(((job.definition.id, None), job.state.status == JobStatus::Paused, ended));
            }
        }
        for (owner, is_paused, ended) in followers {
            if let Some(due) = self.due_of(&owner) {
                self.write_plan(&owner, &due.follow(is_paused, &ended), REPLACER, now);
            }
        }
        self.join_groups(runs, now);
    }

    /// Takes runs that have ended into the groups of the jobs that wait for several, and starts these.
    fn join_groups(&mut self, runs: &[RunId], now: Timestamp) {
        let ended = runs.iter().filter_map(|id| self.ended.get(id));
        let end = |run: &Run| {
            let (job_key, org) = (run.job_key.clone()?, run.org.clone());
            Some(FanInEnd { ended: ended_run(run)?, job_key, org, origin: self.origin(run) })
        };
        let ends: Vec<FanInEnd> = ended.filter_map(end).collect();
        let current = self.jobs.values().filter(|job| job.state.status != JobStatus::Retired);
        let waiting: Vec<Job> = current.filter(|job| fan_in_of(job).is_some()).cloned().collect();
        for job in waiting {
            let Some((fan_in, zone)) = fan_in_of(&job) else { continue };
            let key = &job.definition.key;
            let own = self.run_groups.iter().filter(|((waiting, _), _)| waiting == key);
            let mut groups: BTreeMap<String, RunGroup> =
                own.map(|((_, name), group)| (name.clone(), group.clone())).collect();
            let starts = join(key, fan_in, zone, &ends, &mut groups);
            self.run_groups.extend(groups.into_iter().map(|(name, group)| ((key.clone(), name), group)));
            let owner = (job.definition.id, None);
            if let Some(due) = self.due_of(&owner).filter(|_| !starts.is_empty()) {
                let plan = due.start_runs(job.state.status == JobStatus::Paused, &starts);
                self.write_plan(&owner, &plan, REPLACER, now);
            }
        }
    }

    /// When the chain of a run began: the slot of its first run that is left.
    fn origin(&self, run: &Run) -> Timestamp {
        let before = run.trigger.upstream().first();
        let before = before.and_then(|id| self.ended.get(id));
        before.map_or_else(|| run.slot_at.unwrap_or(run.scheduled_at), |before| self.origin(before))
    }

    pub(super) fn groups_of(&self, job: &JobKey, until: Option<Timestamp>, limit: u32) -> Vec<RunGroup> {
        let own = self.run_groups.values().filter(|group| group.job_key == *job);
        let mut own: Vec<RunGroup> =
            own.filter(|group| until.is_none_or(|until| group.opened_at <= until)).cloned().collect();
        own.sort_by(|a, b| b.opened_at.cmp(&a.opened_at).then_with(|| a.name.cmp(&b.name)));
        own.truncate(limit as usize);
        own
    }

    pub(super) fn expire_groups(&mut self, limit: u32, now: Timestamp) -> Option<Timestamp> {
        let overdue = self.run_groups.values().filter(|group| group.closed_at.is_none() && group.deadline <= now);
        let mut overdue: Vec<RunGroup> = overdue.cloned().collect();
        overdue.sort_by(|a, b| (a.deadline, &a.job_key, &a.name).cmp(&(b.deadline, &b.job_key, &b.name)));
        overdue.truncate(limit as usize);
        let mut by_job: BTreeMap<JobKey, Vec<RunGroup>> = BTreeMap::new();
        for group in overdue {
            by_job.entry(group.job_key.clone()).or_default().push(group);
        }
        for (key, mut groups) in by_job {
            let job = self.current_job(&key).map(|job| (job.definition.id, job.state.status));
            let gaps = expire_all(&mut groups, job.is_some_and(|(_, status)| status == JobStatus::Paused), now);
            self.run_groups.extend(groups.into_iter().map(|group| ((key.clone(), group.name.clone()), group)));
            if let Some((owner, due)) = job.and_then(|(id, _)| Some(((id, None), self.due_of(&(id, None))?))) {
                let plan = Plan { gaps, ..Plan::nothing(&due.timer) };
                self.write_plan(&owner, &plan, REPLACER, now);
            }
        }
        let forgotten = now.saturating_sub(REMEMBERED).unwrap_or(Timestamp::MIN);
        self.run_groups.retain(|_, group| group.closed_at.is_none_or(|closed| closed >= forgotten));
        let open = self.run_groups.values().filter(|group| group.closed_at.is_none());
        open.map(|group| group.deadline).min()
    }

    /// The runs that this one started when it ended.
    pub(super) fn runs_after(&self, ended: RunId, limit: u32) -> Vec<Run> {
        let mut runs: Vec<Run> = self
            .runs()
            .filter(|run| run.trigger.upstream().first() == Some(&ended))
            .map(|run| self.with_lease(run))
            .collect();
        runs.sort_by_key(|run| run.id);
        runs.truncate(limit as usize);
        runs
    }
}

/// The rule and the zone of a job that starts after several others.
fn fan_in_of(job: &Job) -> Option<(&FanIn, &Zone)> {
    let spec = job.definition.spec.as_ref().ok()?;
    Some((spec.fan_in()?, spec.zone()))
}

fn ended_run(run: &Run) -> Option<EndedRun> {
    let finished_at = run.finished_at?;
    Some(EndedRun { id: run.id, status: run.status, trigger: run.trigger.clone(), finished_at })
}
