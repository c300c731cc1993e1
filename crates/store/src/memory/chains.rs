//! Chains: what starts when runs end, and which jobs may follow each other.

use everbell_core::chain::{ChainLink, EndedRun, check_chain};
use everbell_core::plan::REPLACER;
use everbell_core::store::StoreResult;
use everbell_core::{Definition, Job, JobStatus, Run, RunId, Trigger};
use jiff::Timestamp;

use super::state::{Owner, State};

impl State {
    /// The current jobs that start after another one, by key.
    pub(super) fn chain_links(&self) -> Vec<ChainLink> {
        let link = |job: &Job| {
            let after = job.definition.spec.as_ref().ok()?.after()?.clone();
            Some(ChainLink { job_key: job.definition.key.clone(), after })
        };
        let current = self.jobs.values().filter(|job| job.state.status != JobStatus::Retired);
        let mut links: Vec<ChainLink> = current.filter_map(link).collect();
        links.sort_by(|a, b| a.job_key.cmp(&b.job_key));
        links
    }

    /// Refuses a job that starts after one that does not exist, or in a circle.
    pub(super) fn check_links(&self, definition: &Definition) -> StoreResult<()> {
        let Some(after) = definition.spec.as_ref().ok().and_then(|spec| spec.after()) else { return Ok(()) };
        let is_parent = |job: &Job| job.definition.key == after.job_key && job.state.status != JobStatus::Retired;
        let exists = self.jobs.values().any(is_parent);
        Ok(check_chain(&definition.key, after, exists, &self.chain_links())?)
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
    }

    /// The runs that this one started when it ended.
    pub(super) fn runs_after(&self, ended: RunId, limit: u32) -> Vec<Run> {
        let mut runs: Vec<Run> =
            self.runs().filter(|run| run.trigger == Trigger::After(ended)).map(|run| self.with_lease(run)).collect();
        runs.sort_by_key(|run| run.id);
        runs.truncate(limit as usize);
        runs
    }
}

fn ended_run(run: &Run) -> Option<EndedRun> {
    let finished_at = run.finished_at?;
    Some(EndedRun { id: run.id, status: run.status, trigger: run.trigger.clone(), finished_at })
}
