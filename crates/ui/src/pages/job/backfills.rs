//! Backfills of a job that are at work. They are found by their active runs, so finished ones cost nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use everbell::client::BackfillReport;
use everbell::{RunFilter, RunRecord, RunStatus};
use everbell_core::backfill::BackfillStatus;
use everbell_core::store::{AuditEntry, PageRequest};
use everbell_core::{Trigger, TriggerType};
use serde::Deserialize;

use crate::clock::Clock;
use crate::markup::Markup;
use crate::pages::action::Subject;
use crate::request::UiRequest;
use everbell_http::problem::Problem;

/// The most active runs that are read: as many as one backfill creates.
const MAX_ACTIVE_RUNS: u32 = 1_000;
/// How many audit entries are searched for the requests.
const MAX_SEARCHED_ENTRIES: u32 = 200;
/// The page does not wait longer for a banner.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// A backfill that is not done.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ActiveBackfill {
    pub(super) id: String,
    /// How many runs are pending or running.
    pub(super) left: u64,
    /// Whether more runs are left than were read.
    pub(super) more: bool,
    /// How many runs have ended, and how many there are, if the request is found.
    pub(super) progress: Option<(u64, u64)>,
    /// Whether runs are left that have not started.
    pub(super) can_stop: bool,
    /// `paused`, or why it waits.
    pub(super) note: Option<String>,
    /// When it will be done.
    pub(super) done_at: Option<Markup>,
}

/// Loads the backfills that are not done; none if the role may not read runs, or if they cannot be read soon.
pub(super) async fn active(request: &UiRequest, subject: &Subject) -> Vec<ActiveBackfill> {
    if !request.may_read_runs() {
        return Vec::new();
    }
    match tokio::time::timeout(MAX_WAIT, load(request, subject)).await {
        Ok(Ok(found)) => found,
        Ok(Err(problem)) => {
            tracing::warn!(job = %subject.key, ?problem, "a page could not read the active backfills");
            Vec::new()
        }
        Err(_) => {
            tracing::warn!(job = %subject.key, "reading the active backfills took too long for a page");
            Vec::new()
        }
    }
}

async fn load(request: &UiRequest, subject: &Subject) -> Result<Vec<ActiveBackfill>, Problem> {
    let key = &subject.row.job.definition.key;
    let stored = request.jobs().open_backfills(Some(key)).await?;
    let known: Vec<String> = stored.iter().map(|report| report.id.to_string()).collect();
    let mut active: Vec<ActiveBackfill> =
        stored.iter().filter_map(|report| ActiveBackfill::stored(report, &request.clock())).collect();
    let others = created_at_once(request, subject).await?;
    active.extend(others.into_iter().filter(|one| !known.contains(&one.id)));
    Ok(active)
}

/// Loads the backfills whose runs were all created at once: those of earlier releases and those for all orgs.
async fn created_at_once(request: &UiRequest, subject: &Subject) -> Result<Vec<ActiveBackfill>, Problem> {
    let filter = RunFilter {
        job_key: Some(subject.row.job.definition.key.clone()),
        status: vec![RunStatus::Pending, RunStatus::Running],
        trigger: Some(TriggerType::Manual),
        ..RunFilter::default()
    };
    let runs = request.runs().list(&filter, &PageRequest { limit: MAX_ACTIVE_RUNS, after: None }).await?;
    if !runs.items.iter().any(|run| matches!(run.trigger, Trigger::Backfill(_))) {
        return Ok(Vec::new());
    }
    let page = PageRequest { limit: MAX_SEARCHED_ENTRIES, after: None };
    let entries = request.app.bell.store().list_audit(Some(&format!("job:{}", subject.key)), &page).await?;
    Ok(grouped(&runs.items, runs.next.is_some(), &requested(&entries.items)))
}

/// The audit entry of a backfill.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestedBackfill {
    backfill_id: String,
    /// One for all orgs does not know how many runs it will create.
    slots: Option<u64>,
}

/// How many runs each backfill created, by its id, as the audit entries say.
fn requested(entries: &[AuditEntry]) -> BTreeMap<String, u64> {
    let asked = entries.iter().filter(|entry| entry.action == "job.backfill").filter_map(|entry| {
        let after: RequestedBackfill = serde_json::from_str(entry.after.as_ref()?.as_str()).ok()?;
        Some((after.backfill_id, after.slots?))
    });
    asked.collect()
}

/// The backfills of these active runs, the newest first.
fn grouped(runs: &[RunRecord], more: bool, requested: &BTreeMap<String, u64>) -> Vec<ActiveBackfill> {
    let mut counts: BTreeMap<String, (u64, bool)> = BTreeMap::new();
    for run in runs {
        if let Trigger::Backfill(id) = &run.trigger {
            let (left, can_stop) = counts.entry(id.to_string()).or_default();
            *left += 1;
            *can_stop |= run.status == RunStatus::Pending;
        }
    }
    let shown =
        |(id, (left, can_stop)): (String, (u64, bool))| ActiveBackfill::new(id, left, more, can_stop, requested);
    counts.into_iter().rev().map(shown).collect()
}

impl ActiveBackfill {
    fn new(id: String, left: u64, more: bool, can_stop: bool, requested: &BTreeMap<String, u64>) -> ActiveBackfill {
        let all = requested.get(&id).copied().filter(|all| !more && *all >= left);
        let progress = all.map(|all| (all - left, all));
        ActiveBackfill { progress, id, left, more, can_stop, note: None, done_at: None }
    }

    /// One that has a row; `None` if nothing of it is left.
    pub(super) fn stored(report: &BackfillReport, clock: &Clock) -> Option<ActiveBackfill> {
        let details = report.details.as_deref()?;
        let progress = &details.progress;
        let left = progress.left + progress.pending + progress.running;
        let done = progress.counts.ended() + progress.counts.existing;
        let paused = details.backfill.status == BackfillStatus::Paused;
        let note = if paused { Some("paused".to_owned()) } else { details.waits_for.map(str::to_owned) };
        (left > 0).then(|| ActiveBackfill {
            id: report.id.to_string(),
            left,
            more: false,
            progress: Some((done, done + left)),
            can_stop: !details.backfill.status.is_over(),
            note,
            done_at: progress.done_at.map(|at| clock.away(at)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_shown_only_where_it_is_known() {
        let requested = BTreeMap::from([("b".to_owned(), 10)]);
        let of = |id: &str, left, more| ActiveBackfill::new(id.to_owned(), left, more, true, &requested).progress;
        assert_eq!(of("b", 6, false), Some((4, 10)));
        assert_eq!(of("b", 6, true), None, "more are left than were read");
        assert_eq!(of("for all orgs", 6, false), None);
        assert_eq!(of("b", 11, false), None, "nothing is negative");
    }
}
