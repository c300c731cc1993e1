//! Facts about the runs of a job for single orgs, for rules that look at orgs one by one.

use std::collections::{BTreeMap, BTreeSet};

use everbell::StoreError;
use everbell_core::alert::{FailureFact, JobFacts, Kind, OrgFact, Problem, Rule};
use everbell_core::store::{JobRow, PageRequest, RunFilter, Store, StoreResult};
use everbell_core::{JobKey, OrgId, Run, RunStatus};

use super::facts::failure;

/// The most orgs with failures that are looked at. Those with an open problem come first, so that each of them ends.
const MAX_ORGS: usize = 1_000;
/// The least runs that are read to count failures in a row.
const MIN_COUNTED: u32 = 20;

/// Facts about each org that failed lately or has an open problem, as far as rules ask about it.
pub(super) async fn gather(
    store: &dyn Store,
    rules: &[Rule],
    problems: &[Problem],
    rows: &BTreeMap<JobKey, JobRow>,
    failures: &BTreeMap<(JobKey, OrgId), FailureFact>,
) -> StoreResult<Vec<JobFacts>> {
    let open: BTreeMap<(&JobKey, &OrgId), &Problem> = problems
        .iter()
        .filter(|problem| problem.is_open())
        .filter_map(|problem| Some(((problem.job()?, problem.subject.org()?), problem)))
        .collect();
    let failed = failures.keys().map(|(key, org)| (key, org)).filter(|pair| !open.contains_key(pair));
    let mut standing: BTreeMap<&OrgId, bool> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut facts = Vec::new();
    for (key, org) in open.keys().copied().chain(failed) {
        let Some(row) = rows.get(key) else { continue };
        let labels = &row.job.definition.labels;
        let covering = rules.iter().filter(|rule| rule.covers(Kind::Failed, key, labels, Some(org)));
        let patience = covering.map(|rule| rule.after).max();
        let problem = open.get(&(key, org)).copied();
        if (patience.is_none() && problem.is_none()) || !seen.insert((key, org)) {
            continue;
        }
        if seen.len() > MAX_ORGS {
            break;
        }
        let fires = match standing.get(org) {
            Some(fires) => *fires,
            None => *standing.entry(org).or_insert(fires(store, org).await?),
        };
        let limit = patience.unwrap_or_default().max(MIN_COUNTED);
        let runs = ended_runs(store, key, org, limit).await?;
        let known = runs.first().filter(|run| run.status == RunStatus::Failed).and_then(|run| failure(run, false));
        let mut job = row.job.clone();
        job.state.consecutive_failures = in_a_row(&runs, limit, problem);
        facts.push(JobFacts {
            org: Some(OrgFact { id: org.clone(), fires }),
            last_failure: failures.get(&(key.clone(), org.clone())).cloned().or(known),
            ..JobFacts::new(job)
        });
    }
    Ok(facts)
}

/// Whether jobs fire for an org.
async fn fires(store: &dyn Store, org: &OrgId) -> StoreResult<bool> {
    match store.get_org(org).await {
        Ok(org) => Ok(org.place.enabled && !org.place.deleted),
        Err(StoreError::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The newest runs that count: those that were canceled or skipped neither succeeded nor failed.
async fn ended_runs(store: &dyn Store, key: &JobKey, org: &OrgId, limit: u32) -> StoreResult<Vec<Run>> {
    let filter = RunFilter {
        job_key: Some(key.clone()),
        org: Some(org.clone()),
        status: vec![RunStatus::Failed, RunStatus::Succeeded],
        ..RunFilter::default()
    };
    Ok(store.list_runs(&filter, &PageRequest { limit, after: None }).await?.items)
}

/// How many of the newest runs failed in a row. Beyond those that were read, an open problem knows how many there were.
fn in_a_row(runs: &[Run], limit: u32, open: Option<&Problem>) -> u32 {
    let failed = runs.iter().take_while(|run| run.status == RunStatus::Failed);
    let found = u32::try_from(failed.clone().count()).unwrap_or(u32::MAX);
    let Some(open) = open.filter(|_| found == limit) else { return found };
    let is_new = |run: &&Run| run.finished_at.is_some_and(|at| at > open.mark_at);
    let before = u32::try_from(open.count).unwrap_or(u32::MAX);
    found.max(before.saturating_add(u32::try_from(failed.filter(is_new).count()).unwrap_or(u32::MAX)))
}
