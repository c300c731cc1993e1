//! The content of messages. It is fixed when the problem changes: a message that is sent late still says what happened.

use everbell::Timestamp;
use everbell_core::alert::{Change, Kind, Notice, Problem};
use everbell_core::store::JobRow;
use everbell_core::{JobKey, Json, OrgId, Run, storable_text};
use everbell_wire::percent;
use percent_encoding::AsciiSet;
use serde_json::{Value, json};

/// How much of an output a message shows: its end.
const MAX_OUTPUT_BYTES: usize = 1_000;
/// How much of a reason.
const MAX_REASON_BYTES: usize = 1_000;

/// Where links of messages lead.
#[derive(Clone, Debug)]
pub(super) struct Links {
    /// Where people reach this server, if that was said.
    pub(super) public_url: Option<String>,
}

impl Links {
    pub(super) fn page(&self, path: &str, id: &str) -> Option<String> {
        const ENCODED: &AsciiSet = &percent::reserved_except(b":");
        let base = self.public_url.as_ref()?.trim_end_matches('/');
        Some(format!("{base}{path}{}", percent::encode(id, ENCODED)))
    }
}

/// Returns the message of a notice. `job` and `run` are missing if they were deleted.
pub(super) fn compose(notice: &Notice, job: Option<&JobRow>, run: Option<&Run>, links: &Links) -> Json {
    let Notice { problem, change, rule, .. } = notice;
    let title = title(problem, *change);
    let url = match (run, problem.job()) {
        (Some(run), _) => links.page("/runs/", &run.id.to_string()),
        (None, Some(job)) => links.page("/jobs/", job.as_str()),
        (None, None) => links.page("/cluster", ""),
    };
    let local = |at: Timestamp| job.and_then(|job| local_time(job, at));
    let command = match (run, problem.job()) {
        (Some(run), _) => format!("everbell runs show {}", run.id),
        (None, Some(job)) if problem.kind == Kind::Missed => format!("everbell jobs gaps {}", quoted(job.as_str())),
        (None, Some(job)) => format!("everbell jobs show {}", quoted(job.as_str())),
        (None, None) => "everbell instances list".to_owned(),
    };
    // Of a job that fires for each org, this is the next run of any of them.
    let next = job.and_then(JobRow::next_run_at).filter(|_| problem.is_open() && problem.subject.org().is_none());
    let slot = run.and_then(|run| run.slot_at);
    let output = run.and_then(|run| run.output.as_deref()).map(|output| end_of(output, MAX_OUTPUT_BYTES));
    let reason = storable_text(&problem.reason, MAX_REASON_BYTES);
    let mut facts = vec![match &problem.closed_because {
        Some(because) => format!("Over: {because}. It was: {reason}"),
        None => reason.clone(),
    }];
    if let Some(slot) = slot {
        facts.push(format!("Slot: {slot}{}", local(slot).map_or_else(String::new, |local| format!(" ({local})"))));
    }
    facts.push(format!("Since: {}", problem.since));
    if let Some(next) = next {
        facts.push(format!("Next run: {next}{}", local(next).map_or_else(String::new, |at| format!(" ({at})"))));
    }
    if let Some(output) = output.as_ref().filter(|output| problem.is_open() && !output.trim().is_empty()) {
        facts.push(format!("Output: {}", output.trim()));
    }
    facts.push(format!("Details: {command}"));
    let message = json!({
        "change": change.as_str(),
        "title": title,
        "text": facts.join("\n"),
        "url": url,
        "command": command,
        "rule": rule,
        "problem": document(problem, &reason),
        "run": run.map(|run| json!({
            "id": run.id.to_string(),
            "slotAt": slot.map(|slot| slot.to_string()),
            "slotAtLocal": slot.and_then(local),
            "orgId": run.org.as_ref().map(ToString::to_string),
            "failureCode": run.failure.as_ref().map(|failure| failure.code.as_str().to_owned()),
            "output": output,
        })),
        "nextRunAt": next.map(|next| next.to_string()),
    });
    stored(&message)
}

/// The problem as programs read it.
pub(super) fn document(problem: &Problem, reason: &str) -> Value {
    json!({
        "id": problem.id.to_string(),
        "kind": problem.kind.as_str(),
        "jobKey": problem.job().map(JobKey::as_str),
        "orgId": problem.subject.org().map(OrgId::as_str),
        "instance": problem.subject.instance().map(|(id, host)| json!({ "id": id.to_string(), "host": host })),
        "since": problem.since.to_string(),
        "openedAt": problem.opened_at.to_string(),
        "closedAt": problem.closed_at.map(|at| at.to_string()),
        "closedBecause": problem.closed_because,
        "count": problem.count,
        "reason": reason,
    })
}

/// The name of what a problem is about.
pub(super) fn name(problem: &Problem) -> String {
    match problem.subject.instance() {
        Some((_, host)) => format!("the instance on {host}"),
        None => problem.subject.to_string(),
    }
}

/// Its texts are bounded and were storable before, or are made so.
pub(super) fn stored(message: &Value) -> Json {
    let text = storable_text(&message.to_string(), usize::MAX);
    Json::parse("message", &text).unwrap_or_else(|_| Json::empty())
}

fn title(problem: &Problem, change: Change) -> String {
    let key = name(problem);
    match (change, problem.count) {
        (Change::Recovered, _) => format!("{key} has recovered: it {}", past(problem)),
        (_, 2..) if problem.kind == Kind::Failed => {
            format!("{key} {}: {} failures in a row", problem.kind.summary(), problem.count)
        }
        (Change::Reminded, _) => format!("{key} still {}", problem.kind.summary()),
        _ => format!("{key} {}", problem.kind.summary()),
    }
}

fn past(problem: &Problem) -> String {
    match problem.kind {
        Kind::Failed => "was failing".to_owned(),
        Kind::NoSuccess => "had not succeeded in time".to_owned(),
        Kind::JobError => "could not fire".to_owned(),
        Kind::LateStart => "had not started in time".to_owned(),
        Kind::TooLong => "took too long".to_owned(),
        Kind::InstanceLost => "was lost".to_owned(),
        Kind::AutoPaused | Kind::Missed | Kind::Skipped => problem.kind.summary().to_owned(),
    }
}

fn local_time(job: &JobRow, at: Timestamp) -> Option<String> {
    let spec = job.job.definition.spec.as_ref().ok()?;
    Some(at.to_zoned(spec.zone().as_jiff().clone()).strftime("%Y-%m-%d %H:%M %Z").to_string())
}

/// The end of a text, from the beginning of a line if there is one.
fn end_of(text: &str, most: usize) -> String {
    let from = text.len().saturating_sub(most);
    let from = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let end = &text[from..];
    match end.split_once('\n') {
        Some((_, lines)) if from > 0 && !lines.trim().is_empty() => lines.to_owned(),
        _ => end.to_owned(),
    }
}

/// A key as one word of a shell.
fn quoted(key: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':');
    if key.chars().all(is_plain) { key.to_owned() } else { format!("'{}'", key.replace('\'', "'\\''")) }
}
