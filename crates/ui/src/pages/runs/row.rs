//! [`Row`]: a run in a list.

use everbell::{RunRecord, RunStatus};
use everbell_core::store::Instance;
use everbell_core::{SkipReason, Trigger, TriggerType, Zone};
use jiff::Timestamp;

use crate::badge;
use crate::clock::{Clock, lasted};
use crate::markup::{Markup, url_part};
use everbell_wire::elapsed::took;

/// Starts with a longer delay are marked as late.
pub(crate) const LATE_START_MS: i64 = 1_000;
/// How much of a reason is in a list; its run has all of it.
const MAX_REASON_CHARS: usize = 160;
/// How much of its beginning stays, if it is longer.
const REASON_HEAD_CHARS: usize = 50;
/// Longer paths are cut at their beginning.
const MAX_PATH_CHARS: usize = 28;
const MAX_TITLE_CHARS: usize = 2_000;

/// A run in a list.
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) target: String,
    pub(crate) status: Markup,
    /// A note about the status.
    pub(crate) about: Option<String>,
    pub(crate) scheduled: Markup,
    /// How long ago that was.
    pub(crate) away: Markup,
    pub(crate) started: Option<Markup>,
    /// How late it started, if that is worth a word.
    pub(crate) late: Option<String>,
    pub(crate) duration: Markup,
    pub(crate) reason: Option<Reason>,
    pub(crate) job: Option<JobName>,
    pub(crate) trigger: (&'static str, &'static str),
    /// The actor or the cause, beyond the trigger type.
    pub(crate) triggered_by: Option<String>,
    /// Its id and its name.
    pub(crate) instance: Option<(String, String)>,
    pub(crate) lag: String,
    /// For whom, of a job that fires for each org.
    pub(crate) org: Option<OrgName>,
}

/// The org of a run.
pub(crate) struct OrgName {
    pub(crate) id: String,
    /// The id as a part of a path.
    pub(crate) part: String,
    /// The local date that the run is for.
    pub(crate) date: Option<String>,
}

impl OrgName {
    pub(crate) fn new(run: &RunRecord) -> Option<OrgName> {
        let id = run.org.as_ref()?.to_string();
        Some(OrgName { part: url_part(&id), id, date: run.local_date.map(|date| date.to_string()) })
    }
}

/// The job of a run.
pub(crate) struct JobName {
    pub(crate) key: String,
    /// The key as a part of a path.
    pub(crate) part: String,
    pub(crate) version: u32,
}

/// Why a run did not succeed, on one line.
pub(crate) struct Reason {
    /// A word to filter by.
    pub(crate) code: Option<String>,
    pub(crate) text: String,
    /// More of it.
    pub(crate) title: String,
    /// The run in the way.
    pub(crate) blocking: Option<String>,
}

/// The names of instances: `host·pid`.
#[derive(Default)]
pub(crate) struct Hosts(pub(crate) Vec<(String, String)>);

impl Hosts {
    pub(crate) fn new(instances: &[Instance]) -> Hosts {
        let name = |one: &Instance| (one.id.to_string(), format!("{}·{}", one.host, one.pid));
        Hosts(instances.iter().map(name).collect())
    }

    /// The name of an instance; the end of its id if it is gone, which differs where beginnings are alike.
    pub(crate) fn name(&self, id: &str) -> String {
        let known = self.0.iter().find(|(own, _)| own == id).map(|(_, name)| name.clone());
        known.unwrap_or_else(|| format!("…{}", id.get(id.len().saturating_sub(8)..).unwrap_or(id)))
    }

    pub(crate) fn knows(&self, id: &str) -> bool {
        self.0.iter().any(|(own, _)| own == id)
    }
}

impl JobName {
    pub(crate) fn new(run: &RunRecord) -> Option<JobName> {
        let key = run.job_key.as_ref()?.to_string();
        Some(JobName { part: url_part(&key), key, version: run.job_version.unwrap_or_default() })
    }
}

impl Row {
    pub(crate) fn new(run: &RunRecord, clock: &Clock, zone: Option<&Zone>, hosts: &Hosts) -> Row {
        let beside = |at: Timestamp| clock.beside(at, run.scheduled_at, zone);
        let lag = lag_ms(run);
        // Its slots are in the past on purpose.
        let is_backfill = matches!(run.trigger, Trigger::Backfill(_));
        let instance = run.claimed.filter(|_| !run.is_handed_over()).map(|(_, instance)| instance.to_string());
        Row {
            id: run.id.to_string(),
            target: run.target.to_string(),
            status: badge::run(run.status),
            about: about(run),
            scheduled: clock.at(run.scheduled_at, zone),
            away: clock.away(run.scheduled_at),
            started: run.started_at.map(beside),
            late: lag
                .filter(|ms| *ms > LATE_START_MS && run.attempt <= 1 && !is_backfill)
                .map(|ms| format!("+{} late", took(ms))),
            duration: duration(run, clock),
            reason: Reason::new(run),
            job: JobName::new(run),
            trigger: (run.trigger.kind().as_str(), trigger_label(run.trigger.kind())),
            triggered_by: triggered_by(run),
            instance: instance.map(|id| (id.clone(), hosts.name(&id))),
            org: OrgName::new(run),
            lag: lag.map_or_else(|| "–".to_owned(), took),
        }
    }
}

impl Reason {
    fn new(run: &RunRecord) -> Option<Reason> {
        let blocking = match &run.skip {
            Some(SkipReason::Overlap { blocking }) => Some(blocking.to_string()),
            _ => None,
        };
        let whole = match (&run.failure, &run.skip) {
            (Some(failure), _) => {
                let code = failure.code.as_str().to_owned();
                let text = in_short(last_words(&failure.message).unwrap_or(&failure.message));
                let title = cut(&failure.message, MAX_TITLE_CHARS);
                return Some(Reason { code: Some(code), text, title, blocking });
            }
            (None, Some(SkipReason::Overlap { .. })) => "an earlier run".to_owned(),
            (None, Some(skip)) => skip.to_string(),
            (None, None) => return None,
        };
        Some(Reason { code: None, text: in_short(&whole), title: cut(&whole, MAX_TITLE_CHARS), blocking })
    }
}

/// Why a run failed, in short: the code and the message.
pub(crate) fn failure_text(run: &RunRecord) -> Option<String> {
    run.failure.as_ref().map(|failure| brief_failure(failure.code.as_str(), &failure.message))
}

/// A failure for one line. What a program wrote last comes before the name of the program:
/// `exit code 2: psql: connection refused`.
pub(crate) fn brief_failure(code: &str, message: &str) -> String {
    match last_words(message) {
        Some(end) => format!("exit code {}", in_short(end)),
        None => format!("{code}: {}", in_short(message)),
    }
}

/// `2: psql: connection refused` of a program that ended so and wrote something; `None` of other failures.
fn last_words(message: &str) -> Option<&str> {
    let (_, end) = message.strip_prefix('`')?.split_once("` ended with the exit code ")?;
    Some(end).filter(|end| end.contains(": "))
}

/// A message on one line. Of long paths the end is kept, and of a long message the beginning and the end, because the
/// end says what went wrong.
fn in_short(text: &str) -> String {
    let line = text.split_whitespace().map(short_path).collect::<Vec<_>>().join(" ");
    let count = line.chars().count();
    if count <= MAX_REASON_CHARS {
        return line;
    }
    let head: String = line.chars().take(REASON_HEAD_CHARS).collect();
    let tail: String = line.chars().skip(count - (MAX_REASON_CHARS - REASON_HEAD_CHARS)).collect();
    format!("{head}…{tail}")
}

/// `…/bin/report.sh` for a long path; other words as they are.
fn short_path(word: &str) -> String {
    let parts: Vec<&str> = word.rsplitn(3, '/').collect();
    match parts.as_slice() {
        [last, folder, rest] if word.chars().count() > MAX_PATH_CHARS && !rest.is_empty() && !word.contains("://") => {
            format!("…/{folder}/{last}")
        }
        _ => word.to_owned(),
    }
}

fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn about(run: &RunRecord) -> Option<String> {
    let waits = match run.status {
        RunStatus::Pending if run.held => Some("waiting for another run"),
        RunStatus::Pending if run.attempt > 0 => Some("waiting for a retry"),
        RunStatus::Running if run.cancel_by.is_some() => Some("stop requested"),
        _ => None,
    };
    let attempt = (run.attempt > 1).then(|| format!("attempt {}", run.attempt));
    let parts: Vec<String> = attempt.into_iter().chain(waits.map(str::to_owned)).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// How long the last attempt took, or is taking.
fn duration(run: &RunRecord, clock: &Clock) -> Markup {
    match run.started_at.filter(|_| run.status == RunStatus::Running) {
        Some(at) => clock.since(at),
        None => Markup::from_html(lasted(run.started_at, run.finished_at)),
    }
}

/// How long after it was meant to it started.
pub(crate) fn lag_ms(run: &RunRecord) -> Option<i64> {
    let started = run.started_at?;
    Some(((started.as_microsecond() - run.scheduled_at.as_microsecond()) / 1_000).max(0))
}

/// A kind of trigger for people.
pub(crate) const fn trigger_label(trigger: TriggerType) -> &'static str {
    match trigger {
        TriggerType::Scheduled => "schedule",
        TriggerType::Manual => "manual",
        TriggerType::AdHoc => "trial",
        TriggerType::After => "after a run",
    }
}

fn triggered_by(run: &RunRecord) -> Option<String> {
    match &run.trigger {
        Trigger::Schedule(_) if run.catch_up => Some("caught up".to_owned()),
        Trigger::Manual(actor) | Trigger::AdHoc(actor) => Some(actor.clone()),
        Trigger::Backfill(_) => Some("backfill".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_line() {
        assert_eq!(in_short("a\n\tb  c"), "a b c");
        assert_eq!(cut("\u{1f4a5}\u{1f4a5}\u{1f4a5}", 2), "\u{1f4a5}\u{1f4a5}…");
        assert_eq!(cut("abc", 3), "abc");
    }

    #[test]
    fn words_of_a_program_come_before_its_name() {
        let message = "`sh` ended with the exit code 2: psql: connection refused";
        assert_eq!(brief_failure("exit_code", message), "exit code 2: psql: connection refused");
        let silent = "`false` ended with the exit code 1";
        assert_eq!(brief_failure("exit_code", silent), format!("exit_code: {silent}"));
        assert_eq!(brief_failure("http_status", "503 from host"), "http_status: 503 from host");
    }

    #[test]
    fn the_end_of_a_reason_is_kept() {
        let long = format!("cannot start {}/bin/report.sh: not found", "/srv/data/releases".repeat(3));
        assert_eq!(in_short(&long), "cannot start …/bin/report.sh: not found");
        assert_eq!(in_short("/usr/bin/env"), "/usr/bin/env");
        let address = "https://status.example.com/a/b/c/d/e/f";
        assert_eq!(in_short(address), address, "an address is no path");
        let words = format!("first {} last", "\u{1f4a5}\u{1f4a5} ".repeat(200));
        let short = in_short(&words);
        assert!(short.starts_with("first ") && short.ends_with(" last") && short.contains('…'), "{short}");
        assert_eq!(short.chars().count(), MAX_REASON_CHARS + 1);
    }

    #[test]
    fn an_instance_that_is_gone_has_a_name() {
        let hosts = Hosts(vec![("019a".to_owned(), "node-a·7".to_owned())]);
        assert_eq!(hosts.name("019a"), "node-a·7");
        assert_eq!(hosts.name("019a0000-0000-7000-8000-00000000abcd"), "…0000abcd");
        assert_eq!(hosts.name("é"), "…é");
    }
}
