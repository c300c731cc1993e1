//! Facts about slots that were skipped, start late, or take too long. Only runs and timers that may be a problem are read.

use std::collections::BTreeMap;
use std::time::Duration;

use everbell::Timestamp;
use everbell_core::alert::{Kind, LateStartFact, Problem, Rule, RunningFact, SkippedFact, TimeLimit, WaitingFact};
use everbell_core::store::{
    CounterKey, JobFilter, JobRow, JobSort, PageRequest, RecentRuns, RunFilter, Store, StoreError, StoreResult,
    counters_by_owner,
};
use everbell_core::{JobKey, JobStatus, Run, RunStatus, SkipReason, TriggerType};
use tokio::time::Instant;

use super::evaluator::{Look, earlier};
use super::facts::{MAX_NEWS_AGE, PAGE_LIMIT};

/// The most pages of runs that are read at a look.
const MAX_RUN_PAGES: usize = 10;
/// Jobs of one page of those that fire next: mostly none of them is late.
const DUE_PAGE: u32 = 100;
/// How many of the newest runs of a job are read for those since it was skipped.
const RECENT_RUNS: u32 = 10;
/// The history that is usual, how many runs it must have, and how long it is kept in memory.
const USUAL_WINDOW: Duration = Duration::from_hours(7 * 24);
const MIN_USUAL_RUNS: u64 = 20;
const USUAL_AGE: Duration = Duration::from_mins(10);

/// Facts by job.
#[derive(Default)]
pub(super) struct Timing {
    pub(super) skipped: BTreeMap<JobKey, SkippedFact>,
    pub(super) runs_since_skip: BTreeMap<JobKey, u32>,
    pub(super) waiting: BTreeMap<JobKey, WaitingFact>,
    pub(super) started_late: BTreeMap<JobKey, LateStartFact>,
    pub(super) running: BTreeMap<JobKey, RunningFact>,
}

impl Timing {
    /// Reads what the rules need. Jobs that were read on the way are added to `rows`.
    pub(super) async fn gather(
        store: &dyn Store,
        rules: &[Rule],
        problems: &[Problem],
        look: &Look,
        rows: &mut BTreeMap<JobKey, JobRow>,
    ) -> StoreResult<Timing> {
        let mut timing = Timing::default();
        if rules.iter().any(|rule| rule.kinds.contains(&Kind::Skipped)) {
            timing.read_skipped(store, look.since).await?;
            let is_open = |problem: &&Problem| problem.kind == Kind::Skipped && problem.is_open();
            let open = problems.iter().filter(is_open).filter_map(Problem::job);
            let keys: Vec<JobKey> = timing.skipped.keys().chain(open).cloned().collect();
            timing.read_runs_since_skip(store, keys).await?;
        }
        if let Some(before) = rules.iter().filter_map(|rule| rule.late_since(look.now)).max() {
            timing.read_waiting(store, before).await?;
            timing.read_due(store, before, rows).await?;
            if look.was_away {
                timing.read_started_late(store, look.since).await?;
            }
        }
        if let Some(before) = rules.iter().filter_map(|rule| rule.long_since(look.now)).max() {
            timing.read_running(store, before).await?;
        }
        Ok(timing)
    }

    /// The jobs that there are facts about.
    pub(super) fn keys(&self) -> impl Iterator<Item = &JobKey> {
        let timing = self.waiting.keys().chain(self.started_late.keys()).chain(self.running.keys());
        self.skipped.keys().chain(timing)
    }

    async fn read_skipped(&mut self, store: &dyn Store, since: Timestamp) -> StoreResult<()> {
        let from = Some(earlier(since, MAX_NEWS_AGE));
        let filter = RunFilter { status: vec![RunStatus::Skipped], from, ..RunFilter::default() };
        for run in read_runs(store, &filter).await? {
            let (Some(key), Some(reason)) = (run.job_key, run.skip) else { continue };
            if matches!(reason, SkipReason::Operator { .. }) {
                continue;
            }
            let is_news = run.created_at >= since;
            // The newest comes first.
            let known = self.skipped.entry(key).or_insert_with(|| SkippedFact {
                run: run.id,
                at: run.id.time(),
                reason,
                slots: 0,
                is_news,
            });
            known.slots += u64::from(is_news);
        }
        Ok(())
    }

    async fn read_runs_since_skip(&mut self, store: &dyn Store, keys: Vec<JobKey>) -> StoreResult<()> {
        let is_skipped =
            |skip: &Option<SkipReason>| skip.as_ref().map(|why| !matches!(why, SkipReason::Operator { .. }));
        for keys in keys.chunks(RecentRuns::MAX_KEYS) {
            let recent = RecentRuns::new(keys.to_vec(), RECENT_RUNS).map_err(StoreError::from)?;
            let runs = store.recent_runs(&recent).await?;
            for own in runs.chunk_by(|one, other| one.job_key == other.job_key) {
                let slots = own.iter().filter(|run| has_slot(run.trigger) && is_skipped(&run.skip) != Some(false));
                let ran = slots.take_while(|run| run.skip.is_none()).filter(|run| run.started_at.is_some());
                self.runs_since_skip.insert(own[0].job_key.clone(), ran.count() as u32);
            }
        }
        Ok(())
    }

    /// Runs of slots before this time that have not started.
    async fn read_waiting(&mut self, store: &dyn Store, before: Timestamp) -> StoreResult<()> {
        let filter = RunFilter {
            status: vec![RunStatus::Pending],
            trigger: Some(TriggerType::Scheduled),
            to: Some(before),
            ..RunFilter::default()
        };
        for run in read_runs(store, &filter).await? {
            // One that was tried has started, in time or not.
            let Some(key) = run.job_key.filter(|_| run.attempt == 0) else { continue };
            self.add_waiting(key, WaitingFact { run: Some(run.id), due_at: run.scheduled_at });
        }
        Ok(())
    }

    /// Timers that should have fired before this time, such as those of a target that no live instance serves.
    async fn read_due(
        &mut self,
        store: &dyn Store,
        before: Timestamp,
        rows: &mut BTreeMap<JobKey, JobRow>,
    ) -> StoreResult<()> {
        let filter = JobFilter {
            status: vec![JobStatus::Active],
            errored: Some(false),
            scheduled: Some(true),
            sort: JobSort::NextRunAt,
            ..JobFilter::default()
        };
        let mut page = PageRequest { limit: DUE_PAGE, after: None };
        for _ in 0..MAX_RUN_PAGES {
            let read = store.list_jobs(&filter, &page).await?;
            for row in read.items {
                let Some(due_at) = row.next_run_at().filter(|at| *at < before) else { return Ok(()) };
                self.add_waiting(row.key().clone(), WaitingFact { run: None, due_at });
                rows.insert(row.key().clone(), row);
            }
            page = PageRequest { limit: PAGE_LIMIT, after: read.next };
            if page.after.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn add_waiting(&mut self, key: JobKey, fact: WaitingFact) {
        let known = self.waiting.entry(key).or_insert_with(|| fact.clone());
        if fact.due_at < known.due_at {
            *known = fact;
        }
    }

    /// Slots that started since a time, the one of each job that waited longest.
    async fn read_started_late(&mut self, store: &dyn Store, since: Timestamp) -> StoreResult<()> {
        let status = vec![RunStatus::Running, RunStatus::Succeeded, RunStatus::Failed, RunStatus::Canceled];
        let trigger = Some(TriggerType::Scheduled);
        let filter = RunFilter { status, trigger, from: Some(earlier(since, MAX_NEWS_AGE)), ..RunFilter::default() };
        for run in read_runs(store, &filter).await? {
            let is_first = run.earlier_attempts.is_empty();
            let started_at = run.started_at.filter(|at| is_first && *at >= since);
            let Some((key, started_at)) = run.job_key.zip(started_at) else { continue };
            let fact = LateStartFact { run: run.id, due_at: run.scheduled_at, started_at };
            let waited = |fact: &LateStartFact| fact.started_at.duration_since(fact.due_at);
            let known = self.started_late.entry(key).or_insert_with(|| fact.clone());
            if waited(known) < waited(&fact) {
                *known = fact;
            }
        }
        Ok(())
    }

    /// Runs that are at work since before this time.
    async fn read_running(&mut self, store: &dyn Store, before: Timestamp) -> StoreResult<()> {
        let filter = RunFilter { status: vec![RunStatus::Running], ..RunFilter::default() };
        for run in read_runs(store, &filter).await? {
            let started_at = run.started_at.filter(|at| *at <= before);
            let Some((key, started_at)) = run.job_key.zip(started_at) else { continue };
            let fact = RunningFact { run: run.id, started_at };
            let known = self.running.entry(key).or_insert_with(|| fact.clone());
            if fact.started_at < known.started_at {
                *known = fact;
            }
        }
        Ok(())
    }
}

/// Whether it is a run that the job has by itself, and that its policies may skip.
fn has_slot(trigger: TriggerType) -> bool {
    matches!(trigger, TriggerType::Scheduled | TriggerType::After)
}

/// The newest runs, as many as a look can afford.
async fn read_runs(store: &dyn Store, filter: &RunFilter) -> StoreResult<Vec<Run>> {
    let mut page = PageRequest { limit: PAGE_LIMIT, after: None };
    let mut runs = Vec::new();
    for _ in 0..MAX_RUN_PAGES {
        let read = store.list_runs(filter, &page).await?;
        runs.extend(read.items);
        page.after = read.next;
        if page.after.is_none() {
            break;
        }
    }
    Ok(runs)
}

/// How long runs usually take, as the counters say, for some minutes each.
#[derive(Default)]
pub(super) struct UsualTimes(BTreeMap<JobKey, (Instant, Option<Duration>)>);

impl UsualTimes {
    /// How long 95% of the runs of the job take at most, if a rule compares with that and there is enough history.
    pub(super) async fn usual_time(
        &mut self,
        store: &dyn Store,
        rules: &[Rule],
        row: &JobRow,
        now: Timestamp,
    ) -> StoreResult<Option<Duration>> {
        let key = row.key();
        let compares = |rule: &Rule| {
            let is_usual = |limit: &TimeLimit| matches!(limit, TimeLimit::TimesUsual(_));
            rule.covers(Kind::TooLong, key, &row.job.definition.labels, None) && rule.takes_at_most.iter().any(is_usual)
        };
        if !rules.iter().any(compares) {
            return Ok(None);
        }
        self.0.retain(|_, (read, _)| read.elapsed() < USUAL_AGE);
        if let Some((_, known)) = self.0.get(key) {
            return Ok(*known);
        }
        let counters = store.read_counters(earlier(now, USUAL_WINDOW), now, Some(key)).await?;
        let own = counters_by_owner(counters).remove(&CounterKey::Job(key.clone()));
        let took = own.map(|counters| counters.took).filter(|took| took.totals.runs >= MIN_USUAL_RUNS);
        let usual = took.and_then(|took| took.quantile(0.95));
        self.0.insert(key.clone(), (Instant::now(), usual));
        Ok(usual)
    }
}
