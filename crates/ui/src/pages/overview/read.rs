//! Loads the data of the overview with a fixed number of queries.

use std::collections::BTreeSet;

use everbell::{JobFilter, JobRow, JobStatus, RunFilter, RunRecord, RunStatus};
use everbell_core::alert;
use everbell_core::store::{Bucket, JobSort, PageRequest, ProblemFilter, RecentRuns, RunSummary};

use super::attention::{Usual, count_overlaps};
use super::charts;
use crate::request::UiRequest;
use everbell_http::api::top::labeled;
use everbell_http::problem::Problem;

/// How many of each kind of concern are named.
const MAX_LISTED_CONCERNS: u32 = 10;
/// How many failing jobs are grouped by cause.
const MAX_FAILING: u32 = 200;
const MAX_LISTED_FIRES: u32 = 10;
pub(super) const MAX_LISTED_RUNNING: u32 = 8;
/// The number of runs that usual durations are based on.
const SAMPLED_RUNS_PER_JOB: u32 = 50;
/// How many failures are grouped.
const MAX_GROUPED_FAILURES: u32 = 500;
/// How many open problems of rules are read.
const MAX_OPEN_PROBLEMS: u32 = 200;

/// The data of the overview.
pub(super) struct OverviewData {
    pub(super) failing: Vec<JobRow>,
    pub(super) errored: Vec<JobRow>,
    pub(super) unarmed: Vec<JobRow>,
    pub(super) next: Vec<JobRow>,
    /// Targets that no live instance serves, and the number of jobs that need each.
    pub(super) unserved: Vec<(String, u64)>,
    /// How many timers of orgs cannot fire.
    pub(super) errored_orgs: u32,
    /// `None` if the role may not read runs.
    pub(super) history: Option<History>,
    /// Whether there are more concerns than were read, besides jobs that cannot fire, which are counted elsewhere.
    pub(super) more: bool,
    /// Whether there are more jobs that cannot fire.
    pub(super) more_errored: bool,
    /// How many current jobs have the label, if only those are read.
    pub(super) labeled_jobs: Option<u64>,
}

/// Past and active runs.
pub(super) struct History {
    /// The last day by the hour.
    pub(super) buckets: Vec<Bucket>,
    pub(super) running: Vec<RunRecord>,
    /// Whether there are more of them.
    more_running: bool,
    pub(super) failed: Vec<RunRecord>,
    /// Current jobs with slots that were skipped because a run was still active, and how many, the most first.
    pub(super) too_slow: Vec<(String, usize)>,
    /// Problems that rules found and that are not muted.
    pub(super) open: Vec<alert::Problem>,
    /// Whether there are more failures than were read, so that the first of them is not known.
    pub(super) more_failed: bool,
    /// Whether there are more open problems, or more jobs that are too slow.
    more_concerns: bool,
    summaries: Vec<RunSummary>,
}

fn page(limit: u32) -> PageRequest {
    PageRequest { limit, after: None }
}

impl OverviewData {
    /// Reads everything, or what is about jobs with a label.
    pub(super) async fn load(request: &UiRequest, label: Option<&str>) -> Result<OverviewData, Problem> {
        let jobs = request.jobs();
        let wanted = match label {
            Some(label) => Some(labeled(&request.app, label).await?),
            None => None,
        };
        let label = label.map(everbell_http::api::jobs::label);
        let any = || JobFilter { label: label.clone(), ..JobFilter::default() };
        let living = || JobFilter { status: vec![JobStatus::Active, JobStatus::Paused], ..any() };
        let active = || JobFilter { status: vec![JobStatus::Active], ..any() };
        let (failing, errored, unarmed, next) = (
            JobFilter { failing: Some(true), ..living() },
            JobFilter { errored: Some(true), ..living() },
            JobFilter { scheduled: Some(false), errored: Some(false), ..active() },
            JobFilter { sort: JobSort::NextRunAt, scheduled: Some(true), ..active() },
        );
        let (named, fires, many) = (page(MAX_LISTED_CONCERNS), page(MAX_LISTED_FIRES), page(MAX_FAILING));
        let orgs = request.orgs();
        let (failing, errored, unarmed, next, targets, counts, history) = tokio::join!(
            jobs.list(&failing, &many),
            jobs.list(&errored, &named),
            jobs.list(&unarmed, &named),
            jobs.list(&next, &fires),
            request.app.bell.targets_naming(0),
            orgs.counts(),
            History::load(request, label.as_ref(), wanted.as_ref()),
        );
        let (failing, errored, unarmed, history) = (failing?, errored?, unarmed?, history?);
        Ok(OverviewData {
            more: failing.next.is_some()
                || unarmed.next.is_some()
                || history.as_ref().is_some_and(|history| history.more_concerns),
            failing: failing.items,
            more_errored: errored.next.is_some(),
            errored: errored.items,
            unarmed: unarmed.items,
            next: next?.items,
            // Neither targets nor org timers have labels.
            unserved: match wanted {
                None => targets?.unserved.iter().map(|one| (one.target.to_string(), one.count)).collect(),
                Some(_) => Vec::new(),
            },
            errored_orgs: if wanted.is_none() { counts?.errored } else { 0 },
            labeled_jobs: wanted.map(|wanted| wanted.len() as u64),
            history,
        })
    }
}

impl History {
    async fn load(
        request: &UiRequest,
        label: Option<&(String, Option<String>)>,
        wanted: Option<&BTreeSet<String>>,
    ) -> Result<Option<History>, Problem> {
        if !request.may_read_runs() {
            return Ok(None);
        }
        let (runs, store) = (request.runs(), request.app.bell.store());
        let since = charts::since(request.now);
        let any = || RunFilter { label: label.cloned(), ..RunFilter::default() };
        let of_status = |status| RunFilter { status: vec![status], from: Some(since), ..any() };
        let now_running = RunFilter { status: vec![RunStatus::Running], ..any() };
        let (failed, skipped) = (of_status(RunStatus::Failed), of_status(RunStatus::Skipped));
        let (few, many, hours) = (page(MAX_LISTED_RUNNING), page(MAX_GROUPED_FAILURES), charts::hours(request.now));
        let (is_open, most) = (ProblemFilter { open: Some(true), ..ProblemFilter::default() }, page(MAX_OPEN_PROBLEMS));
        let (buckets, running, failed, skipped, open) = tokio::try_join!(
            request.cache.hours.read(&runs, &hours),
            runs.list(&now_running, &few),
            runs.list(&failed, &many),
            runs.list(&skipped, &many),
            store.list_problems(&is_open, &most),
        )?;
        let keys: Vec<_> = running.items.iter().filter_map(|run| run.job_key.clone()).collect();
        let summaries = if keys.is_empty() {
            Vec::new()
        } else {
            runs.recent_runs(&RecentRuns::new(keys, SAMPLED_RUNS_PER_JOB)?).await?
        };
        let more_running = running.next.is_some();
        let mut too_slow = Vec::new();
        let overlaps = count_overlaps(&skipped.items);
        let more_concerns = open.next.is_some() || overlaps.len() > MAX_LISTED_CONCERNS as usize;
        for (key, count) in overlaps.into_iter().take(MAX_LISTED_CONCERNS as usize) {
            if request.jobs().get(key.as_str()).await?.job.state.status != JobStatus::Retired {
                too_slow.push((key, count));
            }
        }
        let (running, more_failed, failed) = (running.items, failed.next.is_some(), failed.items);
        let is_wanted = |problem: &alert::Problem| {
            wanted.is_none_or(|wanted| problem.job().is_some_and(|job| wanted.contains(job.as_str())))
        };
        let mut open = open.items;
        open.retain(|problem| !problem.is_muted(request.now) && is_wanted(problem));
        Ok(Some(History {
            buckets,
            running,
            more_running,
            failed,
            too_slow,
            open,
            more_failed,
            more_concerns,
            summaries,
        }))
    }

    /// Whether more runs are running than were read.
    pub(super) fn has_more_running(&self) -> bool {
        self.more_running
    }

    /// Returns the usual durations of a job.
    pub(super) fn usual(&self, key: &str) -> Option<Usual> {
        Usual::from_runs(self.summaries.iter().filter(|run| run.job_key.as_str() == key))
    }
}
