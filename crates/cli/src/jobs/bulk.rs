//! Actions on all jobs with a label.

use everbell_client::{BulkAction, BulkActionRequest, BulkFilter, JobQuery, MissedSlots};
use everbell_wire as wire;
use everbell_wire::bulk::BulkOutcome;
use everbell_wire::crontab::PAUSE_REASON;
use everbell_wire::job::JobStatus;
use jiff::Timestamp;
use serde_json::Value;

use super::new_version::print_changes;
use crate::error::{RefusalContext, warn};
use crate::output::{Mark, counted, printable};
use crate::{CliError, Exit, Session};

/// The most jobs of an import that are resumed at once.
const MAX_IMPORTED_JOBS: usize = 10_000;

pub(super) fn pause(
    session: &mut Session<'_>,
    label: &str,
    reason: &str,
    until: Option<Timestamp>,
) -> Result<Exit, CliError> {
    let request = BulkActionRequest { until, ..request(BulkAction::Pause, label, Some(reason.to_owned())) };
    change(session, label, &request)
}

pub(super) fn resume(
    session: &mut Session<'_>,
    label: &str,
    keys: Option<Vec<String>>,
    reason: Option<String>,
    missed: Option<MissedSlots>,
) -> Result<Exit, CliError> {
    let mut request = BulkActionRequest { missed, ..request(BulkAction::Resume, label, reason) };
    if let Some(keys) = keys {
        (request.job_keys, request.filter) = (Some(keys), None);
    }
    change(session, label, &request)
}

/// Returns the jobs with a label that an import paused, and that nobody paused or resumed later.
pub(super) fn paused_by_import(session: &Session<'_>, label: &str) -> Result<Vec<String>, CliError> {
    let query = JobQuery { status: vec![JobStatus::Paused], label: Some(label.to_owned()), ..JobQuery::default() };
    let listed = session.client.take(session.client.jobs().list(&query), MAX_IMPORTED_JOBS);
    let listed = listed.with_action(|| format!("list the jobs with the label `{}`", printable(label)))?;
    let is_new = |job: &&wire::Job| job.pause_reason.as_deref() == Some(PAUSE_REASON);
    let keys: Vec<String> = listed.items.iter().filter(is_new).map(|job| job.job_key.clone()).collect();
    if keys.is_empty() {
        let label = printable(label);
        return Err(CliError::invalid(format!("no job with the label `{label}` is still paused by an import")));
    }
    Ok(keys)
}

pub(super) fn run_now(session: &mut Session<'_>, label: &str, reason: Option<String>) -> Result<Exit, CliError> {
    change(session, label, &request(BulkAction::RunNow, label, reason))
}

pub(super) fn skip_next(
    session: &mut Session<'_>,
    label: &str,
    count: u32,
    reason: Option<String>,
) -> Result<Exit, CliError> {
    let request = BulkActionRequest { count: Some(count), ..request(BulkAction::SkipNext, label, reason) };
    change(session, label, &request)
}

pub(super) fn retire(session: &mut Session<'_>, label: &str, reason: Option<String>) -> Result<Exit, CliError> {
    change(session, label, &request(BulkAction::Retire, label, reason))
}

/// Edits the jobs, or shows what would change about each.
pub(super) fn edit(
    session: &mut Session<'_>,
    label: &str,
    patch: Value,
    reason: Option<String>,
    dry_run: bool,
) -> Result<Exit, CliError> {
    let request = BulkActionRequest { edit: Some(patch), dry_run, ..request(BulkAction::Edit, label, reason) };
    change(session, label, &request)
}

/// Counts the jobs that would be retired.
pub(super) fn count_retired(session: &Session<'_>, label: &str) -> Result<u64, CliError> {
    let request = BulkActionRequest { dry_run: true, ..request(BulkAction::Retire, label, None) };
    let answer = session.client.send(session.client.jobs().bulk(&request));
    let answer = answer.with_action(|| format!("retire the jobs with the label `{}`", printable(label)))?;
    Ok(answer.document.changed)
}

fn request(action: BulkAction, label: &str, reason: Option<String>) -> BulkActionRequest {
    let filter = BulkFilter { label: Some(label.to_owned()), ..BulkFilter::default() };
    BulkActionRequest {
        action,
        job_keys: None,
        filter: Some(filter),
        reason,
        until: None,
        missed: None,
        count: None,
        edit: None,
        dry_run: false,
    }
}

/// Changes the jobs, and prints the outcome of each.
fn change(session: &mut Session<'_>, label: &str, request: &BulkActionRequest) -> Result<Exit, CliError> {
    let (doing, done, mark) = match request.action {
        BulkAction::Pause => ("pause", "Paused", Mark::Paused),
        BulkAction::Resume => ("resume", "Resumed", Mark::Good),
        BulkAction::RunNow => ("run", "Started", Mark::Arrow),
        BulkAction::SkipNext => ("skip the next runs of", "Skipped the next runs of", Mark::Skipped),
        BulkAction::Retire => ("retire", "Retired", Mark::Ended),
        BulkAction::Edit if request.dry_run => ("edit", "Would edit", Mark::Arrow),
        BulkAction::Edit => ("edit", "Edited", Mark::Good),
    };
    let label = printable(label);
    let answer = session.client.send(session.client.jobs().bulk(request));
    let answer = answer.with_action(|| format!("{doing} the jobs with the label `{label}`"))?;
    let items = answer.document.items.clone();
    if items.is_empty() {
        return Err(CliError::invalid(format!(
            "no current job has the label `{label}`; `everbell jobs` lists the jobs"
        )));
    }
    let failed = items.iter().any(|item| item.outcome == BulkOutcome::Failed);
    if session.for_people(answer, |_| "")?.is_some() {
        report(session, &items, (done, mark))?;
    }
    Ok(if failed { Exit::Failed } else { Exit::Success })
}

fn report(session: &mut Session<'_>, items: &[wire::BulkItem], (done, mark): (&str, Mark)) -> Result<(), CliError> {
    let is_changed = |item: &&wire::BulkItem| matches!(item.outcome, BulkOutcome::Changed | BulkOutcome::WouldChange);
    let changed = items.iter().filter(is_changed).count();
    session.done(mark, &format!("{done} {}", counted(changed, "job")))?;
    for item in items {
        let (key, detail) = (printable(&item.job_key), item.detail.as_deref().map(printable).unwrap_or_default());
        match (&item.outcome, item.next_run_at) {
            (BulkOutcome::Failed, _) => {
                session.out.flush()?;
                warn(format!("job `{key}`: {detail}"));
            }
            _ if !item.changes.is_empty() => {
                session.detail(&key)?;
                print_changes(session, &item.changes)?;
            }
            (BulkOutcome::Unchanged, _) => session.detail(&format!("{key}: unchanged, {detail}"))?,
            _ if item.run_id.is_some() => {
                session.detail(&format!("{key}: run {}", item.run_id.as_deref().unwrap_or_default()))?;
            }
            (_, Some(next)) => session.detail(&format!("{key}: next run {next}"))?,
            (_, None) => session.detail(&key)?,
        }
    }
    Ok(())
}
