//! The jobs that run most often, fail most often or cost most time.

use std::time::Duration;

use everbell_core::store::{CounterKey, RunCounters};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::words::words;

words!(
    /// The order of the jobs.
    TopBy {
        /// Most runs first.
        Runs = "runs",
        /// Most failed runs first.
        Failures = "failures",
        /// Most time spent first, all runs together.
        Time = "time",
        /// Longest runs first, by the 95th percentile.
        P95 = "p95",
        /// Latest starts first, on average.
        Lag = "lag",
    }
);

/// The jobs of a window, in order.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Top {
    /// The start of the window, a whole hour.
    pub from: Timestamp,
    /// Every run that ended since this time is counted.
    pub counted_since: Timestamp,
    /// Whether every run of the window is counted. After an upgrade, past runs are counted in the background.
    pub complete: bool,
    /// The order.
    pub by: TopBy,
    /// The jobs. Jobs with a value of zero are left out.
    pub items: Vec<TopItem>,
}

/// The runs of a job that ended in the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopItem {
    /// The key of a recurring job, all versions and orgs together. Absent for one-time jobs.
    pub job_key: Option<String>,
    /// The target of one-time jobs, which are counted together. Absent for a recurring job.
    pub target: Option<String>,
    /// How many runs ended or were skipped.
    pub runs: u64,
    /// How many runs succeeded.
    pub succeeded: u64,
    /// How many runs failed.
    pub failed: u64,
    /// How many runs were canceled.
    pub canceled: u64,
    /// How many runs were skipped.
    pub skipped: u64,
    /// The share of failed runs among those that succeeded or failed, from 0 to 1.
    pub failure_rate: Option<f64>,
    /// The time that the last attempts of all runs took together.
    pub time_spent_ms: i64,
    /// About half of the runs took at most this long.
    pub p50_ms: Option<i64>,
    /// About 95% of the runs took at most this long.
    pub p95_ms: Option<i64>,
    /// The longest run.
    pub longest_ms: Option<i64>,
    /// How late scheduled runs started on average.
    pub mean_delay_ms: Option<i64>,
    /// The latest start of a scheduled run.
    pub max_delay_ms: Option<i64>,
}

pub(crate) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

impl TopItem {
    /// The runs of a job, or of the one-time jobs of a target.
    pub fn new(key: &CounterKey, counters: &RunCounters) -> TopItem {
        let (job_key, target) = match key {
            CounterKey::Job(key) => (Some(key.to_string()), None),
            CounterKey::OneTime(target) => (None, Some(target.to_string())),
        };
        let (took, delays) = (&counters.took, &counters.delays);
        TopItem {
            job_key,
            target,
            runs: counters.runs(),
            succeeded: counters.succeeded,
            failed: counters.failed,
            canceled: counters.canceled,
            skipped: counters.skipped,
            failure_rate: counters.failure_rate(),
            time_spent_ms: millis(took.totals.total),
            p50_ms: took.quantile(0.5).map(millis),
            p95_ms: took.quantile(0.95).map(millis),
            longest_ms: took.longest().map(millis),
            mean_delay_ms: delays.totals.mean().map(millis),
            max_delay_ms: delays.longest().map(millis),
        }
    }

    /// Its name: the key, or the target of one-time jobs.
    pub fn name(&self) -> &str {
        self.job_key.as_deref().or(self.target.as_deref()).unwrap_or_default()
    }

    /// The value that decides about its place.
    pub fn value(&self, by: &TopBy) -> u64 {
        let time = |millis: Option<i64>| u64::try_from(millis.unwrap_or(0)).unwrap_or(0);
        match by {
            TopBy::Failures => self.failed,
            TopBy::Time => time(Some(self.time_spent_ms)),
            TopBy::P95 => time(self.p95_ms),
            TopBy::Lag => time(self.mean_delay_ms),
            TopBy::Runs | TopBy::Other(_) => self.runs,
        }
    }
}

/// Orders items by a value, the largest first, and keeps the first `limit` that are not zero. Ties by time spent and name.
pub fn ranked(mut items: Vec<TopItem>, by: &TopBy, limit: usize) -> Vec<TopItem> {
    items.retain(|item| item.value(by) > 0);
    items.sort_by(|a, b| {
        let first = b.value(by).cmp(&a.value(by)).then(b.time_spent_ms.cmp(&a.time_spent_ms));
        first.then_with(|| (&a.job_key, &a.target).cmp(&(&b.job_key, &b.target)))
    });
    items.truncate(limit);
    items
}

#[cfg(test)]
mod tests {
    use everbell_core::{JobKey, RunStatus};

    use super::*;

    fn item(key: &str, succeeded: u64, failed: u64, took_ms: u64) -> TopItem {
        let mut counters = RunCounters::default();
        counters.add(RunStatus::Succeeded, succeeded);
        counters.add(RunStatus::Failed, failed);
        (0..succeeded + failed).for_each(|_| counters.took.add(Duration::from_millis(took_ms)));
        TopItem::new(&CounterKey::Job(JobKey::new(key).unwrap()), &counters)
    }

    #[test]
    fn the_largest_value_comes_first_and_zeros_are_left_out() {
        let items = || vec![item("calm", 3, 0, 10), item("noisy", 100, 5, 1), item("slow", 2, 1, 5_000)];
        let names = |by: &TopBy, limit| {
            ranked(items(), by, limit).iter().map(|item| item.name().to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(&TopBy::Runs, 10), "noisy slow calm");
        assert_eq!(names(&TopBy::Failures, 10), "noisy slow");
        assert_eq!(names(&TopBy::Time, 1), "slow");
        assert_eq!(names(&TopBy::P95, 10), "slow calm noisy");
        assert_eq!(names(&TopBy::Lag, 10), "", "no run was scheduled");
        assert_eq!(item("slow", 2, 1, 5_000).p95_ms, Some(5_000), "never more than the longest");
    }
}
