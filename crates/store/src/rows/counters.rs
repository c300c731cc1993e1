//! Counters of runs: groups of runs as a statement counts them, and hours as they are stored.

use std::collections::BTreeMap;
use std::time::Duration;

use everbell_core::store::{Bucket, CounterGroup, CounterKey, RunCounters, StoreResult, TimeCounts};
use everbell_core::{Invalid, JobKey, RunStatus, Target};

use super::from_row::by_name;
use super::{corrupt, count, readable, word};
use crate::micros::Micros;

/// Runs of a job and target that ended alike. Times in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct EndedColumns {
    job_key: String,
    target: String,
    status: String,
    failure_code: Option<String>,
    took_place: Option<i32>,
    delay_place: Option<i32>,
    runs: i64,
    took: Option<i64>,
    longest_took: Option<i64>,
    delay: Option<i64>,
    longest_delay: Option<i64>,
}

by_name!(EndedColumns {
    job_key,
    target,
    status,
    failure_code,
    took_place,
    delay_place,
    runs,
    took,
    longest_took,
    delay,
    longest_delay,
});

/// The counters of a job and target: of an hour, or of several, whose texts follow each other. Times in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct CounterColumns {
    pub(crate) job_key: String,
    pub(crate) target: String,
    pub(crate) succeeded: i64,
    pub(crate) failed: i64,
    pub(crate) canceled: i64,
    pub(crate) skipped: i64,
    pub(crate) took_runs: i64,
    pub(crate) took_total: i64,
    pub(crate) took_longest: i64,
    pub(crate) delay_runs: i64,
    pub(crate) delay_total: i64,
    pub(crate) delay_longest: i64,
    /// `<bucket>:<runs>`, separated by spaces.
    pub(crate) took_places: String,
    pub(crate) delay_places: String,
    /// `<code>:<runs>`, separated by spaces.
    pub(crate) failures: String,
}

by_name!(CounterColumns {
    job_key,
    target,
    succeeded,
    failed,
    canceled,
    skipped,
    took_runs,
    took_total,
    took_longest,
    delay_runs,
    delay_total,
    delay_longest,
    took_places,
    delay_places,
    failures,
});

/// How many runs of a job ended in an hour.
#[derive(Clone, Debug)]
pub(crate) struct HourColumns {
    hour: Micros,
    succeeded: i64,
    failed: i64,
    canceled: i64,
    skipped: i64,
}

by_name!(HourColumns { hour, succeeded, failed, canceled, skipped });

/// The hours as buckets.
pub(crate) fn hours(rows: Vec<HourColumns>) -> Vec<Bucket> {
    let bucket = |row: HourColumns| {
        let mut bucket = Bucket::of_hour(row.hour.into());
        for (status, runs) in [
            (RunStatus::Succeeded, row.succeeded),
            (RunStatus::Failed, row.failed),
            (RunStatus::Canceled, row.canceled),
            (RunStatus::Skipped, row.skipped),
        ] {
            bucket.add(status, count(runs));
        }
        bucket
    };
    rows.into_iter().map(bucket).collect()
}

fn group((job_key, target): (&str, &str)) -> Result<CounterGroup, Invalid> {
    if job_key.is_empty() {
        let target = Target::new(target)?;
        return Ok(CounterGroup { key: CounterKey::OneTime(target.clone()), target: Some(target) });
    }
    let target = if target.is_empty() { None } else { Some(Target::new(target)?) };
    Ok(CounterGroup { key: CounterKey::Job(JobKey::new(job_key)?), target })
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

fn time(micros: i64) -> Duration {
    Duration::from_micros(count(micros))
}

fn add(counts: &mut TimeCounts, place: Option<i32>, runs: u64, (total, longest): (Option<i64>, Option<i64>)) {
    let Some(place) = place else { return };
    counts.totals.add(runs, time(total.unwrap_or(0)), time(longest.unwrap_or(0)));
    counts.add_place(u8::try_from(place).unwrap_or(u8::MAX), runs);
}

/// Adds up groups of runs. Groups that cannot be read are left out and reported.
pub(crate) fn ended_runs(rows: Vec<EndedColumns>) -> Vec<(CounterGroup, RunCounters)> {
    let name = |row: &EndedColumns| format!("{}{}", row.job_key, row.target);
    let read = |row: EndedColumns| -> StoreResult<(CounterGroup, RunStatus, EndedColumns)> {
        let group = group((&row.job_key, &row.target)).map_err(|why| corrupt("runs", &row.job_key, why))?;
        let status = word(RunStatus::ALL, RunStatus::as_str, &row.status);
        Ok((group, status.map_err(|why| corrupt("runs", &row.job_key, why))?, row))
    };
    let mut counted: BTreeMap<CounterGroup, RunCounters> = BTreeMap::new();
    for (group, status, row) in readable(rows, name, read).0 {
        let (counters, runs) = (counted.entry(group).or_default(), count(row.runs));
        counters.add(status, runs);
        row.failure_code.iter().for_each(|code| counters.add_failures(code, runs));
        add(&mut counters.took, row.took_place, runs, (row.took, row.longest_took));
        add(&mut counters.delays, row.delay_place, runs, (row.delay, row.longest_delay));
    }
    counted.into_iter().collect()
}

impl CounterColumns {
    pub(crate) fn new(group: &CounterGroup, counters: &RunCounters) -> CounterColumns {
        let (job_key, target) = match &group.key {
            CounterKey::Job(key) => (key.to_string(), group.target.as_ref().map(ToString::to_string)),
            CounterKey::OneTime(target) => (String::new(), Some(target.to_string())),
        };
        let number = |runs: u64| i64::try_from(runs).unwrap_or(i64::MAX);
        let places = |counts: &TimeCounts| text(counts.places());
        let (took, delays) = (&counters.took, &counters.delays);
        CounterColumns {
            job_key,
            target: target.unwrap_or_default(),
            succeeded: number(counters.succeeded),
            failed: number(counters.failed),
            canceled: number(counters.canceled),
            skipped: number(counters.skipped),
            took_runs: number(took.totals.runs),
            took_total: micros(took.totals.total),
            took_longest: micros(took.totals.longest),
            delay_runs: number(delays.totals.runs),
            delay_total: micros(delays.totals.total),
            delay_longest: micros(delays.totals.longest),
            took_places: places(took),
            delay_places: places(delays),
            failures: text(counters.failures.iter().map(|(code, runs)| (code, *runs))),
        }
    }

    fn read(self) -> StoreResult<(CounterGroup, RunCounters)> {
        let name = format!("{}{}", self.job_key, self.target);
        self.try_read().map_err(|why| corrupt("run_counters", name, why))
    }

    fn try_read(self) -> Result<(CounterGroup, RunCounters), Invalid> {
        let mut counters = RunCounters {
            succeeded: count(self.succeeded),
            failed: count(self.failed),
            canceled: count(self.canceled),
            skipped: count(self.skipped),
            ..RunCounters::default()
        };
        counters.took.totals.add(count(self.took_runs), time(self.took_total), time(self.took_longest));
        counters.delays.totals.add(count(self.delay_runs), time(self.delay_total), time(self.delay_longest));
        let place = |text: &str| text.parse::<u8>().map_err(|_| Invalid::new("places", "is no histogram"));
        for pair in pairs(&self.took_places) {
            let (text, runs) = pair?;
            counters.took.add_place(place(text)?, runs);
        }
        for pair in pairs(&self.delay_places) {
            let (text, runs) = pair?;
            counters.delays.add_place(place(text)?, runs);
        }
        for pair in pairs(&self.failures) {
            let (code, runs) = pair?;
            counters.add_failures(code, runs);
        }
        Ok((group((&self.job_key, &self.target))?, counters))
    }
}

/// The counters of stored rows, by group.
pub(crate) fn counters(rows: Vec<CounterColumns>) -> Vec<(CounterGroup, RunCounters)> {
    let name = |row: &CounterColumns| format!("{}{}", row.job_key, row.target);
    let mut read = readable(rows, name, CounterColumns::read).0;
    read.sort_by(|a, b| a.0.cmp(&b.0));
    read
}

/// `<name>:<runs>`, separated by spaces.
fn text(pairs: impl Iterator<Item = (impl std::fmt::Display, u64)>) -> String {
    pairs.map(|(name, runs)| format!("{name}:{runs}")).collect::<Vec<_>>().join(" ")
}

fn pairs(text: &str) -> impl Iterator<Item = Result<(&str, u64), Invalid>> {
    text.split_ascii_whitespace().map(|pair| {
        let read = pair.split_once(':').and_then(|(name, runs)| Some((name, runs.parse().ok()?)));
        read.ok_or_else(|| Invalid::new("counters", format!("`{pair}` is no counter")))
    })
}
