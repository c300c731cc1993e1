//! Questions about runs, skips and gaps, for tests.

use everbell_core::store::{GapFilter, JobFilter, PageRequest, RunFilter};
use everbell_core::{JobKey, Run as Record, RunStatus, nearest};

use super::bell::TestBell;
use super::ran::{Drained, Gaps, Ran};
use crate::client::listed;

/// The most keys that a refusal names.
const MAX_NAMED_JOBS: usize = 10;

impl TestBell {
    /// Returns the runs of this job that started, with their output, for assertions. Fails the test if there is no such
    /// job.
    pub async fn assert_ran(&self, key: &str) -> Ran {
        let mut runs = Vec::new();
        for run in self.records(key).await.into_iter().filter(|run| run.attempt > 0) {
            runs.push(self.store.get_run(run.id).await.unwrap_or_else(|error| panic!("{error}")));
        }
        Ran { key: key.to_owned(), verb: "ran", runs }
    }

    /// Returns the runs of this job that were skipped, because of an overlap, a dependency or an operator, for
    /// assertions. Fails the test if there is no such job.
    pub async fn assert_skipped(&self, key: &str) -> Ran {
        let runs = self.records(key).await.into_iter().filter(|run| run.skip.is_some()).collect();
        Ran { key: key.to_owned(), verb: "was skipped", runs }
    }

    /// Returns the slots of this job that got no run at all: missed, folded into a later one, paused. For assertions.
    /// Fails the test if there is no such job.
    pub async fn assert_gaps(&self, key: &str) -> Gaps {
        let job = JobKey::new(key).unwrap_or_else(|error| panic!("{error}"));
        self.expect_job(&job).await;
        let filter = GapFilter { job_key: Some(job), ..GapFilter::default() };
        let (mut gaps, mut page) = (Vec::new(), PageRequest { limit: 1_000, after: None });
        loop {
            let found = self.store.list_gaps(&filter, &page).await.unwrap_or_else(|error| panic!("{error}"));
            gaps.extend(found.items.into_iter().map(|(_, _, gap)| gap));
            page.after = found.next;
            if page.after.is_none() {
                gaps.reverse();
                return Gaps { key: key.to_owned(), gaps };
            }
        }
    }

    /// Fails the test if a run is still pending or running.
    pub async fn assert_settled(&self) {
        let filter = RunFilter { status: vec![RunStatus::Pending, RunStatus::Running], ..RunFilter::default() };
        let runs = self.list(&filter).await;
        assert!(runs.is_empty(), "not settled:{}", Ran { key: String::new(), verb: "ran", runs });
    }

    /// Fails the test if no version of a job exists, and names those that do.
    pub(super) async fn expect_job(&self, key: &JobKey) {
        let filter = JobFilter { key: Some(key.clone()), ..JobFilter::default() };
        let page = PageRequest { limit: 1, after: None };
        let found = self.store.list_jobs(&filter, &page).await.unwrap_or_else(|error| panic!("{error}"));
        if found.items.is_empty() {
            let known = self.jobs().stream(JobFilter::default()).all().await.unwrap_or_else(|error| panic!("{error}"));
            let known: std::collections::BTreeSet<&str> = known.iter().map(|row| row.key().as_str()).collect();
            let names = listed(&nearest(key.as_str(), known.iter().copied(), MAX_NAMED_JOBS));
            panic!("there is no job `{key}`; known: {names}");
        }
    }

    pub(super) async fn ended(&self) -> Drained {
        let filter = RunFilter {
            status: vec![RunStatus::Succeeded, RunStatus::Failed, RunStatus::Canceled],
            ..RunFilter::default()
        };
        let runs = self.list(&filter).await;
        let count = |status| runs.iter().filter(|run| run.status == status).count();
        Drained {
            succeeded: count(RunStatus::Succeeded),
            failed: count(RunStatus::Failed),
            canceled: count(RunStatus::Canceled),
        }
    }

    async fn records(&self, key: &str) -> Vec<Record> {
        let key = JobKey::new(key).unwrap_or_else(|error| panic!("{error}"));
        self.expect_job(&key).await;
        self.list(&RunFilter { job_key: Some(key), ..RunFilter::default() }).await
    }

    /// Returns all runs that match, oldest first.
    pub(super) async fn list(&self, filter: &RunFilter) -> Vec<Record> {
        let runs = self.runs().stream(filter.clone()).page_rows(1_000).all().await;
        let mut runs = runs.unwrap_or_else(|error| panic!("{error}"));
        runs.reverse();
        runs
    }
}
