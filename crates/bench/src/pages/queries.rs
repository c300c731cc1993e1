//! The queries, and how long each takes.

use everbell_core::store::{JobFilter, JobSort, PageRequest, RecentRuns, RunFilter, RunHistogram, Store, StoreResult};
use everbell_core::{InstanceId, JobKey, JobStatus, RunStatus, Target};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::{Amount, fill};
use crate::engine::Outcome;
use crate::measure::Stopwatch;

/// How often each is asked.
pub(super) const TIMES: usize = 20;

/// A query, how many rows the answer has, and its milliseconds.
pub(super) struct TimedQuery {
    pub(super) query: &'static str,
    pub(super) rows: usize,
    pub(super) median: f64,
    pub(super) p95: f64,
}

async fn ask<F>(query: &'static str, answer: impl Fn() -> F) -> Outcome<TimedQuery>
where
    F: Future<Output = StoreResult<usize>>,
{
    let rows = answer().await?;
    let mut times = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let watch = Stopwatch::start();
        answer().await?;
        times.push(1e3 * watch.seconds());
    }
    times.sort_by(f64::total_cmp);
    Ok(TimedQuery { query, rows, median: times[TIMES / 2], p95: times[TIMES * 95 / 100 - 1] })
}

fn page(limit: u32) -> PageRequest {
    PageRequest { limit, after: None }
}

/// Pages of 50 jobs, in each order and with each filter, and how many there are.
pub(super) async fn about_jobs(store: &dyn Store) -> Outcome<Vec<TimedQuery>> {
    let living = JobFilter { status: vec![JobStatus::Active, JobStatus::Paused], ..JobFilter::default() };
    let like = |change: &dyn Fn(&mut JobFilter)| {
        let mut filter = living.clone();
        change(&mut filter);
        filter
    };
    let end = fill::END;
    let target = Target::new("target-3")?;
    let mut answers = Vec::new();
    for (query, filter) in [
        ("jobs by key", living.clone()),
        ("jobs by next run", like(&|filter| filter.sort = JobSort::NextRunAt)),
        ("jobs by creation", like(&|filter| filter.sort = JobSort::CreatedAt)),
        ("jobs by target", like(&|filter| filter.sort = JobSort::Target)),
        ("jobs by last run", like(&|filter| filter.sort = JobSort::LastRun)),
        ("jobs, paused", like(&|filter| filter.status = vec![JobStatus::Paused])),
        ("jobs of a target", like(&|filter| filter.target = vec![target.clone()])),
        ("jobs with a text", like(&|filter| filter.text = Some("number 77".to_owned()))),
        ("jobs, failing", like(&|filter| filter.failing = Some(true))),
        ("jobs without a next run", like(&|filter| filter.scheduled = Some(false))),
        ("jobs with a label", like(&|filter| filter.label = Some(("team".to_owned(), Some("3".to_owned()))))),
        ("jobs, last run failed", like(&|filter| filter.last_status = vec![RunStatus::Failed])),
    ] {
        let list = || async { Ok(store.list_jobs(&filter, &page(50)).await?.items.len()) };
        answers.push(ask(query, list).await?);
    }
    for (query, filter) in [
        ("count of jobs", living.clone()),
        ("count of jobs, failing", like(&|filter| filter.failing = Some(true))),
        ("count of jobs with a text", like(&|filter| filter.text = Some("number 77".to_owned()))),
        ("count of jobs, last run failed", like(&|filter| filter.last_status = vec![RunStatus::Failed])),
    ] {
        answers.push(ask(query, || async { Ok(store.count_jobs(&filter, 10_000).await? as usize) }).await?);
    }
    answers.push(ask("counts", || async { Ok(store.counts(end).await?.jobs.len()) }).await?);
    Ok(answers)
}

/// Pages of 50 runs with each filter, how many there are, and the audit trail.
pub(super) async fn about_runs(store: &dyn Store) -> Outcome<Vec<TimedQuery>> {
    let end = fill::END;
    let all = RunFilter::default();
    let of = |status| RunFilter { status: vec![status], ..RunFilter::default() };
    let busy = RunFilter { job_key: Some(JobKey::new("job-00001")?), ..all.clone() };
    let mut answers = Vec::new();
    for (query, filter) in [
        ("runs", all.clone()),
        ("runs, running", of(RunStatus::Running)),
        ("runs, succeeded", of(RunStatus::Succeeded)),
        ("runs, failed", of(RunStatus::Failed)),
        ("runs, skipped", of(RunStatus::Skipped)),
        ("runs of a busy job", busy.clone()),
        ("runs of a busy job, failed", RunFilter { status: vec![RunStatus::Failed], ..busy }),
        ("runs of a target", RunFilter { target: vec![Target::new("target-3")?], ..all.clone() }),
        ("runs of an instance", RunFilter { instance: Some(InstanceId::from_uuid(Uuid::from_u128(1))), ..all.clone() }),
        ("runs with a code", RunFilter { failure_code: Some("handler_error".to_owned()), ..all.clone() }),
        ("runs of 24 hours", RunFilter { from: Some(end - SignedDuration::from_hours(24)), ..all.clone() }),
    ] {
        let list = || async { Ok(store.list_runs(&filter, &page(50)).await?.items.len()) };
        answers.push(ask(query, list).await?);
    }
    for (query, filter) in [("count of runs", all), ("count of runs, failed", of(RunStatus::Failed))] {
        answers.push(ask(query, || async { Ok(store.count_runs(&filter, 1_000).await? as usize) }).await?);
    }
    let audit = || async { Ok(store.list_audit(None, &page(50)).await?.items.len()) };
    answers.push(ask("audit trail", audit).await?);
    let audit = || async { Ok(store.list_audit(Some("job:7"), &page(50)).await?.items.len()) };
    answers.push(ask("audit trail of a job", audit).await?);
    Ok(answers)
}

/// Recent runs and histograms.
pub(super) async fn in_small(store: &dyn Store, amount: Amount) -> Outcome<Vec<TimedQuery>> {
    let end = amount.end;
    let keys = |count: u32| -> Result<Vec<JobKey>, _> {
        (1..=count).map(|number| JobKey::new(&format!("job-{number:05}"))).collect()
    };
    let back = |spans: i64, length: SignedDuration| -> Vec<Timestamp> {
        (0..=spans).rev().map(|number| end - length * i32::try_from(number).unwrap_or(i32::MAX)).collect()
    };
    let (hours, days) = (back(24, SignedDuration::from_hours(1)), back(182, SignedDuration::from_hours(24)));
    let day = RecentRuns::new(keys(100)?, 200)?.from(hours[0]).to(end);
    let mut answers = Vec::new();
    for (query, recent_runs) in [
        ("recent_runs at 30 runs of 50 jobs", RecentRuns::new(keys(50)?, 30)?),
        ("recent_runs at 90 runs of a job", RecentRuns::new(keys(1)?, 90)?),
        ("recent_runs at 1,000 runs of a job", RecentRuns::new(keys(1)?, 1_000)?),
        ("recent_runs at 24 hours of 100 jobs", day),
    ] {
        answers.push(ask(query, || async { Ok(store.recent_runs(&recent_runs).await?.len()) }).await?);
    }
    let busy = JobKey::new("job-00001")?;
    let quiet = JobKey::new(&format!("job-{:05}", amount.jobs / 2))?;
    for (query, histogram) in [
        ("histogram of 24 hours", RunHistogram::new(hours.clone())?),
        ("histogram of 24 hours with times", RunHistogram::new(hours.clone())?.with_times()),
        (
            "histogram of 24 hours of a target",
            RunHistogram::new(hours)?.of_target(Target::new("target-3")?).with_times(),
        ),
        ("histogram of 182 days", RunHistogram::new(days.clone())?),
        ("histogram of 182 days of a job", RunHistogram::new(days.clone())?.of_job(quiet)),
        ("histogram of 182 days of a busy job", RunHistogram::new(days)?.of_job(busy)),
    ] {
        answers.push(ask(query, || async { Ok(store.count_runs_by_time(&histogram).await?.len()) }).await?);
    }
    Ok(answers)
}
