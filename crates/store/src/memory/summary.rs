//! Runs in small and in numbers.

use everbell_core::store::{Bucket, Glance, RunGlimpse, Tally};
use everbell_core::{Run, RunId};

use super::state::State;

impl State {
    pub(super) fn glance(&self, glance: &Glance) -> Vec<RunGlimpse> {
        let (from, to) = glance.window();
        let is_wanted = |run: &RunGlimpse| {
            from.is_none_or(|from| run.id >= RunId::first_from(from))
                && to.is_none_or(|to| run.id < RunId::first_from(to))
        };
        let mut runs: Vec<RunGlimpse> = self.runs().filter_map(glimpse).filter(is_wanted).collect();
        runs.sort_by_key(|run| std::cmp::Reverse(run.id));
        let mut seen = Vec::new();
        for key in glance.keys() {
            seen.extend(runs.iter().filter(|run| run.job_key == *key).take(glance.each() as usize).cloned());
        }
        seen
    }

    pub(super) fn tally(&self, tally: &Tally) -> Vec<Bucket> {
        let is_wanted = |run: &&Run| {
            tally.job_key().is_none_or(|key| run.job_key.as_ref() == Some(key))
                && tally.target().is_none_or(|target| run.target == *target)
        };
        let mut buckets = tally.buckets();
        for run in self.runs().filter(is_wanted) {
            if let Some(bucket) = tally.place(run.id).and_then(|place| buckets.get_mut(place)) {
                bucket.add_run(run, tally.has_times());
            }
        }
        buckets
    }
}

/// A run of a job, in small.
fn glimpse(run: &Run) -> Option<RunGlimpse> {
    Some(RunGlimpse {
        id: run.id,
        job_id: run.job_id?,
        job_key: run.job_key.clone()?,
        job_version: run.job_version?,
        status: run.status,
        trigger: run.trigger.kind(),
        scheduled_at: run.scheduled_at,
        created_at: run.created_at,
        started_at: run.started_at,
        finished_at: run.finished_at,
        failure_code: run.failure.as_ref().map(|failure| failure.code.clone()),
        skip: run.skip.clone(),
        attempt: run.attempt,
    })
}
