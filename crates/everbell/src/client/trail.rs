//! Facts about a job in the audit trail, and which of them changed.

use everbell_core::change::JobView;
use everbell_core::store::{AuditEntry, DecideFn, JobRow};
use everbell_core::{Definition, Invalid, JobState, Json, RunId, Timer, When, storable_text};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::engine::random;

/// Names and values, as the API spells them.
pub(crate) type Facts = Map<String, Value>;

/// Longer texts are cut: an entry shows what changed, the version has all of it.
const MAX_TEXT_BYTES: usize = 4_096;

/// Creates an audit entry about a change.
pub(crate) fn audit_entry(
    actor: &str,
    action: &str,
    object: String,
    reason: Option<&str>,
    at: Timestamp,
    (before, after): (Option<&Facts>, Option<&Facts>),
) -> AuditEntry {
    let (before, after) = changed(before, after);
    AuditEntry {
        id: RunId::by_hand(at, random()).as_uuid(),
        at,
        actor: actor.to_owned(),
        action: action.to_owned(),
        object,
        reason: reason.map(str::to_owned),
        before,
        after,
        request: None,
        origin: everbell_core::store::Origin::default(),
    }
}

/// The facts about a job that can change.
pub(crate) fn facts(job: &Definition, state: &JobState, next_run_at: Option<Timestamp>) -> Facts {
    let (schedule, timezone) = match &job.spec {
        Ok(spec) => match spec.when() {
            When::Cron(expression) | When::Every { expression, .. } => {
                (expression.as_str().to_owned(), spec.zone().name())
            }
            When::Once(at) => (format!("once {at}"), spec.zone().name()),
            When::After(after) => (after.describe(), spec.zone().name()),
            When::AfterAll(fan_in) => (fan_in.describe(), spec.zone().name()),
        },
        Err(broken) => {
            let once = || broken.run_at.map_or_else(|| "once".to_owned(), |at| format!("once {at}"));
            (broken.expression.clone().unwrap_or_else(once), broken.timezone.as_str())
        }
    };
    let (dst, (start_at, end_at)) = (job.dst(), job.bounds());
    let time = |at: Option<Timestamp>| at.map(|at| at.to_string());
    let policies: Map<String, Value> =
        job.policies.changed().into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    let facts = json!({
        "version": job.version,
        "status": state.status.as_str(),
        "error": state.error,
        "pauseReason": state.pause.as_ref().map(|pause| pause.reason.as_str()),
        "pausedUntil": time(state.pause.as_ref().and_then(|pause| pause.until)),
        "nextRunAt": time(next_run_at),
        "target": job.target.as_str(),
        "payload": storable_text(job.payload.as_str(), MAX_TEXT_BYTES),
        "schedule": schedule,
        "timezone": timezone,
        "dstGap": dst.gap.as_str(),
        "dstFold": dst.fold.as_str(),
        "startAt": time(start_at),
        "endAt": time(end_at),
        "policies": policies,
        "description": storable_text(&job.description, MAX_TEXT_BYTES),
        "labels": job.labels,
        "source": job.source.as_str(),
    });
    match facts {
        Value::Object(facts) => facts,
        _ => Map::new(),
    }
}

/// Like [`facts`], of a row.
pub(super) fn facts_of(row: &JobRow) -> Facts {
    let next_run_at = row.timer.as_ref().and_then(|timer| timer.next_run_at);
    facts(&row.job.definition, &row.job.state, next_run_at)
}

/// Returns the facts that differ, before and after.
fn changed(before: Option<&Facts>, after: Option<&Facts>) -> (Option<Json>, Option<Json>) {
    let differs = |own: &Facts, other: Option<&Facts>| -> Option<Json> {
        let differs = |name: &str, value: &Value| match other {
            Some(other) => other.get(name) != Some(value),
            None => !value.is_null(),
        };
        let own: Facts =
            own.iter().filter(|(name, value)| differs(name, value)).map(|(k, v)| (k.clone(), v.clone())).collect();
        // Every text in it was made fit to be stored, and is short.
        if own.is_empty() { None } else { Json::parse("audit", &Value::Object(own).to_string()).ok() }
    };
    (before.and_then(|own| differs(own, after)), after.and_then(|own| differs(own, before)))
}

/// Returns the facts before and after a change, for the audit trail, of a job that is still as it was read.
pub(crate) fn before_and_after(row: &JobRow, decide: &DecideFn<'_>) -> Result<(Facts, Facts), Invalid> {
    let planned = decide(&view_of(row))?;
    let after = match &planned.successor {
        Some(next) => facts(&next.definition, &next.state, next.next_run_at()),
        None => facts(&row.job.definition, &planned.state, planned.plan.timer.next_run_at),
    };
    Ok((facts_of(row), after))
}

/// A job as it was read, without its active runs: they affect runs, never the job.
fn view_of(row: &JobRow) -> JobView {
    let definition = &row.job.definition;
    let timer = row.timer.clone().unwrap_or_else(|| Timer::new(definition.id, definition.created_at));
    JobView { job: row.job.clone(), timer, org: None, active: Vec::new(), upstream_succeeded_at: None }
}
