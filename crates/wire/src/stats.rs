//! Statistics of runs.

use std::collections::BTreeMap;

use everbell_core::Run;
use everbell_core::store::RunCounters;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::run::millis_between;
use crate::top::millis;

/// Statistics of a job's recent runs.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// Runs since this time are counted.
    pub from: Timestamp,
    /// How many runs are counted.
    pub runs: u64,
    /// Whether all runs since then are counted. For one version of a job only the newest thousand are; for a job by its key all
    /// are, except while past runs are being counted after an upgrade.
    pub complete: bool,
    /// How many runs have each status.
    pub by_status: BTreeMap<String, u64>,
    /// How many runs failed for each reason.
    pub by_failure_code: BTreeMap<String, u64>,
    /// The share of runs that succeeded among those that succeeded or failed, from 0 to 1.
    pub success_rate: Option<f64>,
    /// Half of the runs took at most this long. For more than 1,000 runs, estimated from a histogram, and off by at most 28%.
    pub duration_ms_p50: Option<i64>,
    /// 95% of the runs took at most this long.
    pub duration_ms_p95: Option<i64>,
    /// The longest run.
    pub duration_ms_max: Option<i64>,
    /// Half of the runs started at most this late. For more than 1,000 runs, only scheduled ones count.
    pub lag_ms_p50: Option<i64>,
    /// 95% of the runs started at most this late.
    pub lag_ms_p95: Option<i64>,
    /// The latest start.
    pub lag_ms_max: Option<i64>,
}

impl Stats {
    /// The statistics of these runs, the newest first.
    pub fn new(from: Timestamp, runs: &[Run], complete: bool) -> Stats {
        let mut by_status: BTreeMap<String, u64> = BTreeMap::new();
        let mut by_failure_code: BTreeMap<String, u64> = BTreeMap::new();
        for run in runs {
            *by_status.entry(run.status.to_string()).or_default() += 1;
            if let Some(failure) = &run.failure {
                *by_failure_code.entry(failure.code.as_str().to_owned()).or_default() += 1;
            }
        }
        let durations = sorted(runs.iter().filter_map(|run| millis_between(run.started_at, run.finished_at)));
        let first = |run: &&Run| run.attempt <= 1;
        let lags =
            sorted(runs.iter().filter(first).filter_map(|run| millis_between(Some(run.scheduled_at), run.started_at)));
        let count = |word: &str| by_status.get(word).copied().unwrap_or(0);
        let (good, bad) = (count("succeeded"), count("failed"));
        Stats {
            from,
            runs: runs.len() as u64,
            complete,
            success_rate: (good + bad > 0).then(|| share(good, good + bad)),
            by_status,
            by_failure_code,
            duration_ms_p50: quantile(&durations, 50),
            duration_ms_p95: quantile(&durations, 95),
            duration_ms_max: durations.last().copied(),
            lag_ms_p50: quantile(&lags, 50),
            lag_ms_p95: quantile(&lags, 95),
            lag_ms_max: lags.last().copied(),
        }
    }

    /// The statistics of a job with many runs: quantiles are read from histograms. `active` are runs that have not ended.
    pub fn from_counters(from: Timestamp, counters: &RunCounters, active: &[Run], complete: bool) -> Stats {
        let RunCounters { succeeded, failed, canceled, skipped, failures, took, delays } = counters;
        let (succeeded, failed) = (*succeeded, *failed);
        let ended = [("succeeded", succeeded), ("failed", failed), ("canceled", *canceled), ("skipped", *skipped)];
        let ended = ended.into_iter().filter(|(_, runs)| *runs > 0);
        let mut by_status: BTreeMap<String, u64> = ended.map(|(word, runs)| (word.to_owned(), runs)).collect();
        for run in active {
            *by_status.entry(run.status.to_string()).or_default() += 1;
        }
        let judged = succeeded + failed;
        Stats {
            from,
            runs: counters.runs() + active.len() as u64,
            complete,
            success_rate: (judged > 0).then(|| share(succeeded, judged)),
            by_status,
            by_failure_code: failures.clone(),
            duration_ms_p50: took.quantile(0.5).map(millis),
            duration_ms_p95: took.quantile(0.95).map(millis),
            duration_ms_max: took.longest().map(millis),
            lag_ms_p50: delays.quantile(0.5).map(millis),
            lag_ms_p95: delays.quantile(0.95).map(millis),
            lag_ms_max: delays.longest().map(millis),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of runs are far below 2^52")]
fn share(part: u64, all: u64) -> f64 {
    part as f64 / all as f64
}

fn sorted(values: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut values: Vec<i64> = values.collect();
    values.sort_unstable();
    values
}

/// The nearest-rank quantile of ascending values.
fn quantile(values: &[i64], percent: usize) -> Option<i64> {
    let rank = (values.len() * percent).div_ceil(100);
    values.get(rank.max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        assert_eq!(quantile(&[], 50), None);
        assert_eq!((quantile(&[7], 50), quantile(&[7], 95)), (Some(7), Some(7)));
        let values: Vec<i64> = (1..=100).collect();
        assert_eq!((quantile(&values, 50), quantile(&values, 95)), (Some(50), Some(95)));
    }
}
