//! Facts about the jobs that rules ask about. Only jobs that may have a problem are read, kind by kind.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use everbell::{StoreError, Timestamp};
use everbell_core::alert::{FailureFact, JobFacts, Kind, MissedFact, Problem, Rule, RuleScope};
use everbell_core::freeze::frozen_spans;
use everbell_core::store::{GapFilter, JobFilter, JobRef, JobRow, PageRequest, RunFilter, Store, StoreResult};
use everbell_core::{Gap, GapReason, JobId, JobKey, JobStatus, OrgId, Run, RunStatus};

use super::evaluator::{Look, by_key, earlier};
use super::orgs;
use super::timing::{Timing, UsualTimes};

/// How long before its end a run may have been planned to count as news.
pub(super) const MAX_NEWS_AGE: Duration = Duration::from_mins(10);
/// How late the miss of a slot may be noted: after an outage the slots of all of it are.
const MAX_GAP_DELAY: Duration = Duration::from_hours(24);
/// How long ago a freeze may have ended to explain why a success is missing.
const MAX_FREEZE_AGE: Duration = Duration::from_hours(31 * 24);
/// Rows of one page, and the most pages of a list.
pub(super) const PAGE_LIMIT: u32 = 500;
const MAX_PAGES: usize = 40;

/// Facts for a decision, and the rows behind them.
pub(super) struct Facts {
    pub(super) jobs: Vec<JobFacts>,
    pub(super) rows: BTreeMap<JobKey, JobRow>,
    /// Jobs with a problem that do not exist any more.
    pub(super) gone: Vec<JobKey>,
}

/// Reads what the rules need. Failures and gaps since the last look count even if they are over.
pub(super) async fn gather(
    store: &dyn Store,
    rules: &[Rule],
    problems: &[Problem],
    look: &Look,
    usual: &mut UsualTimes,
) -> StoreResult<Facts> {
    let since = look.since;
    let asks = |kind: Kind| rules.iter().any(|rule| rule.kinds.contains(&kind));
    let mut rows = BTreeMap::new();
    for filter in filters(rules) {
        read_jobs(store, &filter, &mut rows).await?;
    }
    let Failures { jobs: failures, orgs: org_failures } =
        if asks(Kind::Failed) { failures(store, since).await? } else { Failures::default() };
    let missed = if asks(Kind::Missed) { missed(store, since).await? } else { BTreeMap::new() };
    let timing = Timing::gather(store, rules, problems, look, &mut rows).await?;
    let open = problems.iter().filter(|problem| problem.is_open()).filter_map(Problem::job);
    let wanted: BTreeSet<JobKey> =
        failures.keys().chain(missed.keys()).chain(timing.keys()).chain(open).cloned().collect();
    let mut gone = Vec::new();
    for key in wanted.into_iter().filter(|key| !rows.contains_key(key)).collect::<Vec<_>>() {
        match store.get_job(&by_key(&key)).await {
            Ok(row) => drop(rows.insert(key, row)),
            Err(StoreError::NotFound { .. }) => gone.push(key),
            Err(error) => return Err(error),
        }
    }
    let is_asked = |key: &JobKey, row: &mut JobRow| {
        let labels = &row.job.definition.labels;
        let covers = |rule: &Rule| {
            rule.looks_at_orgs_of(key, labels) || Kind::ALL.iter().any(|kind| rule.covers(*kind, key, labels, None))
        };
        rules.iter().any(covers) || problems.iter().any(|problem| problem.is_open() && problem.job() == Some(key))
    };
    rows.retain(is_asked);
    let freezes = if asks(Kind::NoSuccess) { store.freezes(earlier(since, MAX_FREEZE_AGE)).await? } else { Vec::new() };
    let successes = last_successes(store, rules, &rows).await?;
    let mut jobs = Vec::with_capacity(rows.len());
    for (key, row) in &rows {
        let definition = &row.job.definition;
        let news = failures.get(key).cloned();
        let last_failure = match news {
            Some(news) => Some(news),
            None if row.job.state.consecutive_failures > 0 => last_failure(store, key, row).await?,
            None => None,
        };
        let last_run = row.last_run.as_ref().filter(|run| run.status != RunStatus::Skipped);
        let last_run_at = last_run.map(|run| run.id.time());
        let running = timing.running.get(key).cloned();
        jobs.push(JobFacts {
            last_failure,
            last_success_at: successes.get(key).copied(),
            missed: missed.get(key).and_then(|gaps| missed_fact(gaps, last_run_at, since)),
            last_run_at,
            frozen: frozen_spans(&freezes, definition),
            skipped: timing.skipped.get(key).cloned(),
            runs_since_skip: timing.runs_since_skip.get(key).copied().unwrap_or_default(),
            waiting: timing.waiting.get(key).cloned(),
            started_late: timing.started_late.get(key).cloned(),
            usual: if running.is_some() { usual.usual_time(store, rules, row, look.now).await? } else { None },
            running,
            ..JobFacts::new(row.job.clone())
        });
    }
    jobs.extend(orgs::gather(store, rules, problems, &rows, &org_failures).await?);
    Ok(Facts { jobs, rows, gone })
}

/// The lists of jobs that may have a problem.
fn filters(rules: &[Rule]) -> Vec<JobFilter> {
    let current = || JobFilter { status: vec![JobStatus::Active, JobStatus::Paused], ..JobFilter::default() };
    let active = || JobFilter { status: vec![JobStatus::Active], ..JobFilter::default() };
    let mut filters: Vec<JobFilter> = Vec::new();
    let mut add = |filter: JobFilter| {
        if !filters.contains(&filter) {
            filters.push(filter);
        }
    };
    for rule in rules {
        for kind in &rule.kinds {
            match kind {
                Kind::Failed => add(JobFilter { failing: Some(true), ..current() }),
                Kind::JobError => add(JobFilter { errored: Some(true), ..active() }),
                Kind::AutoPaused => add(JobFilter { status: vec![JobStatus::Paused], ..JobFilter::default() }),
                // Found by their runs, gaps and timers.
                Kind::Missed | Kind::Skipped | Kind::LateStart | Kind::TooLong | Kind::InstanceLost => {}
                Kind::NoSuccess => match &rule.scope {
                    RuleScope::Label(name, value) => {
                        add(JobFilter { label: Some((name.clone(), value.clone())), ..active() });
                    }
                    RuleScope::Keys(keys) if keys.iter().all(|key| !key.contains('*')) => {
                        let keys = keys.iter().filter_map(|key| JobKey::new(key).ok());
                        keys.for_each(|key| add(JobFilter { key: Some(key), ..active() }));
                    }
                    RuleScope::Keys(_) | RuleScope::All => add(active()),
                },
            }
        }
    }
    filters
}

async fn read_jobs(store: &dyn Store, filter: &JobFilter, rows: &mut BTreeMap<JobKey, JobRow>) -> StoreResult<()> {
    let mut page = PageRequest { limit: PAGE_LIMIT, after: None };
    for _ in 0..MAX_PAGES {
        let read = store.list_jobs(filter, &page).await?;
        rows.extend(read.items.into_iter().map(|row| (row.key().clone(), row)));
        page.after = read.next;
        if page.after.is_none() {
            break;
        }
    }
    Ok(())
}

/// The newest runs that failed since a time.
#[derive(Default)]
struct Failures {
    /// Of each job.
    jobs: BTreeMap<JobKey, FailureFact>,
    /// Of each job and org.
    orgs: BTreeMap<(JobKey, OrgId), FailureFact>,
}

async fn failures(store: &dyn Store, since: Timestamp) -> StoreResult<Failures> {
    let from = Some(earlier(since, MAX_NEWS_AGE));
    let filter = RunFilter { status: vec![RunStatus::Failed], from, ..RunFilter::default() };
    let mut found = Failures::default();
    let mut page = PageRequest { limit: PAGE_LIMIT, after: None };
    for _ in 0..MAX_PAGES {
        let read = store.list_runs(&filter, &page).await?;
        for run in &read.items {
            let Some((key, failure)) = run.job_key.as_ref().zip(failure(run, true)) else { continue };
            if failure.at < since {
                continue;
            }
            if let Some(org) = &run.org {
                keep_newer(found.orgs.entry((key.clone(), org.clone())), failure.clone());
            }
            keep_newer(found.jobs.entry(key.clone()), failure);
        }
        page.after = read.next;
        if page.after.is_none() {
            break;
        }
    }
    Ok(found)
}

fn keep_newer<K: Ord>(entry: Entry<'_, K, FailureFact>, failure: FailureFact) {
    let known = entry.or_insert_with(|| failure.clone());
    if known.at < failure.at {
        *known = failure;
    }
}

pub(super) fn failure(run: &Run, is_news: bool) -> Option<FailureFact> {
    let failure = run.failure.as_ref()?;
    let reason = format!("{}: {}", failure.code.as_str(), failure.message.trim());
    Some(FailureFact { run: run.id, at: run.finished_at?, reason, is_news })
}

async fn newest(store: &dyn Store, key: &JobKey, status: RunStatus) -> StoreResult<Option<Run>> {
    let filter = RunFilter { job_key: Some(key.clone()), status: vec![status], ..RunFilter::default() };
    Ok(store.list_runs(&filter, &PageRequest { limit: 1, after: None }).await?.items.into_iter().next())
}

async fn last_failure(store: &dyn Store, key: &JobKey, row: &JobRow) -> StoreResult<Option<FailureFact>> {
    match row.last_run.as_ref().filter(|run| run.status == RunStatus::Failed) {
        Some(run) => Ok(failure(run, false)),
        None => Ok(newest(store, key, RunStatus::Failed).await?.and_then(|run| failure(&run, false))),
    }
}

/// The last successes of the jobs that a rule expects one of. Those whose last run did not succeed are asked for at once.
async fn last_successes(
    store: &dyn Store,
    rules: &[Rule],
    rows: &BTreeMap<JobKey, JobRow>,
) -> StoreResult<BTreeMap<JobKey, Timestamp>> {
    let (mut found, mut wanted) = (BTreeMap::new(), Vec::new());
    for (key, row) in rows {
        if !rules.iter().any(|rule| rule.covers(Kind::NoSuccess, key, &row.job.definition.labels, None)) {
            continue;
        }
        let last = row.last_run.as_ref().filter(|run| run.status == RunStatus::Succeeded);
        match last.and_then(|run| run.finished_at) {
            Some(at) => drop(found.insert(key.clone(), at)),
            None => wanted.push(key.clone()),
        }
    }
    if !wanted.is_empty() {
        found.extend(store.last_successes(&wanted).await?);
    }
    Ok(found)
}

/// The key of a version, unless it was deleted.
async fn key_of(store: &dyn Store, job: JobId) -> StoreResult<Option<JobKey>> {
    match store.get_job(&JobRef::Id(job)).await {
        Ok(row) => Ok(Some(row.key().clone())),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Joins gaps of a job, without those that are old news: a run followed.
fn missed_fact(gaps: &[Gap], last_run_at: Option<Timestamp>, since: Timestamp) -> Option<MissedFact> {
    let matters = |gap: &&Gap| gap.last_slot_at >= since || last_run_at.is_none_or(|at| gap.last_slot_at > at);
    let gaps: Vec<&Gap> = gaps.iter().filter(matters).collect();
    let first_at = gaps.iter().map(|gap| gap.first_slot_at).min()?;
    let last_at = gaps.iter().map(|gap| gap.last_slot_at).max()?;
    let slots = gaps.iter().map(|gap| gap.slots).sum();
    Some(MissedFact { first_at, last_at, slots, is_news: last_at >= since })
}

/// Slots of each job that were missed since a time, or shortly before: that may have been noted since.
async fn missed(store: &dyn Store, since: Timestamp) -> StoreResult<BTreeMap<JobKey, Vec<Gap>>> {
    let from = Some(earlier(since, MAX_GAP_DELAY));
    let mut found: BTreeMap<JobKey, Vec<Gap>> = BTreeMap::new();
    for reason in [GapReason::Missed, GapReason::Incomplete] {
        let filter = GapFilter { reason: Some(reason), from, ..GapFilter::default() };
        add_missed(store, &filter, &mut found).await?;
    }
    Ok(found)
}

async fn add_missed(store: &dyn Store, filter: &GapFilter, found: &mut BTreeMap<JobKey, Vec<Gap>>) -> StoreResult<()> {
    let mut keys: BTreeMap<JobId, Option<JobKey>> = BTreeMap::new();
    let mut page = PageRequest { limit: PAGE_LIMIT, after: None };
    for _ in 0..MAX_PAGES {
        let read = store.list_gaps(filter, &page).await?;
        for (job, _, gap) in read.items {
            let key = match keys.entry(job) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(new) => new.insert(key_of(store, job).await?).clone(),
            };
            if let Some(key) = key {
                found.entry(key).or_default().push(gap);
            }
        }
        page.after = read.next;
        if page.after.is_none() {
            break;
        }
    }
    Ok(())
}
