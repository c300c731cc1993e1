//! `everbell jobs show`.

use clap::Args;
use everbell_core::Zone;
use jiff::Timestamp;
use serde_json::Value;

use super::list::schedule;
use crate::cli::client::{Asked, Client, job_path};
use crate::cli::document::{items, number, some_text, text, time};
use crate::cli::error::warn;
use crate::cli::online::ZoneArgs;
use crate::cli::output::{Mark, Output, aligned, clock_face, printable};
use crate::cli::times::{away, local, spoken};
use crate::cli::words::{joined, shell};
use crate::cli::{CliError, Exit, OnlineArgs, Session};
use crate::elapsed::took;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell jobs show daily-briefing
  everbell jobs show daily-briefing@1 --tz UTC
  everbell jobs show daily-briefing --json";

/// How many fires are told.
const FIRES: usize = 3;

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The job: its key, its key and version as in `daily-briefing@2`, or its id.
    #[arg(value_name = "JOB")]
    job: String,
    #[command(flatten)]
    zone: ZoneArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &ShowArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let shown = args.zone.read()?;
    let mut session = Session::new(&args.online, now, output)?;
    let answer = session.client.get(&job_path(&args.job), &[]);
    let answer = answer.asked(|| format!("show job `{}`", args.job)).or_list()?;
    let Some(job) = session.for_people(&answer, "jobKey")? else { return Ok(Exit::Success) };
    let zone = shown.zone(&job);
    let fires = fires(&session.client, &job);
    let rows = rows(&job, &fires, &zone, &session);
    if session.out.is_for_people() {
        let status = text(&job, "status");
        let (mark, key) = (session.out.mark(Mark::of_status(status)), printable(text(&job, "jobKey")));
        session.out.line(&format!("{mark} {key} v{} ({status})", number(&job, "version").unwrap_or_default()))?;
        session.out.line(&format!("  {}", in_words(&job)))?;
        for line in aligned(&rows, &[2]) {
            session.out.line(&format!("  {line}"))?;
        }
    } else {
        session.out.table(&rows, &[2])?;
    }
    session.out.flush()?;
    told_warnings(&job);
    let key = shell(text(&job, "jobKey"));
    let next = if text(&job, "status") == "paused" { "jobs resume" } else { "runs list --job" };
    session.advise(&format!("next: everbell {next} {key}"))?;
    Ok(Exit::Success)
}

/// What may surprise about a schedule.
pub(super) fn told_warnings(job: &Value) {
    for warning in items(job, "warnings") {
        warn(printable(text(warning, "detail")));
    }
}

/// `Weekdays at 08:00, Europe/Paris`.
pub(super) fn in_words(job: &Value) -> String {
    match text(job, "scheduleType") {
        "one_time" => printable(text(job, "scheduleText")),
        _ if text(job, "scope") == "per_org" => {
            printable(&format!("{}, for each org where it is", text(job, "scheduleText")))
        }
        _ => printable(&format!("{}, {}", text(job, "scheduleText"), text(job, "timezone"))),
    }
}

/// The next fires of a job that fires. They are told after something was done: that a server does not answer any more must
/// not look as if it was not done, so then the first is enough.
pub(super) fn fires(client: &Client, job: &Value) -> Vec<Timestamp> {
    let Some(next) = time(job, "nextRunAt") else { return Vec::new() };
    if text(job, "scheduleType") == "one_time" || text(job, "scope") == "per_org" {
        return vec![next];
    }
    let path = format!("{}/next", job_path(text(job, "id")));
    let answer = client.get(&path, &[("count", FIRES.to_string())]).and_then(|answer| answer.value());
    let fires = |answer: Value| items(&answer, "items").iter().filter_map(|fire| time(fire, "at")).collect();
    answer.map_or_else(|_| vec![next], fires)
}

/// When a job fires next; one that fires for orgs does that for each at another time.
pub(super) fn next_in_words(job: &Value, fires: &[Timestamp], zone: &Zone, now: Timestamp) -> String {
    if text(job, "scope") == "per_org" {
        let first = time(job, "nextRunAt").map(|at| {
            let org = printable(text(job, "nextOrgId"));
            format!(", first for {org} at {} ({})", spoken(at, &Zone::utc()), away(at, now))
        });
        let first = first.unwrap_or_default();
        return format!("for each org at its own local time{first}: everbell orgs show ORG");
    }
    fires_in_words(fires, zone, now)
}

/// `Mon 2026-11-16 08:00 CET (in 17h 18m), then Tue 17, Wed 18`.
fn fires_in_words(fires: &[Timestamp], zone: &Zone, now: Timestamp) -> String {
    let [first, rest @ ..] = fires else { return "none".to_owned() };
    let mut words = format!("{} ({})", spoken(*first, zone), away(*first, now));
    let mut before = local(*first, zone);
    for (at, word) in rest.iter().zip([", then ", ", "]) {
        let there = local(*at, zone);
        let same_time = there.time() == before.time();
        let day = match (there.date() == before.date(), there.month() == before.month()) {
            (true, _) => String::new(),
            (false, true) => there.strftime("%a %d").to_string(),
            (false, false) => there.strftime("%a %m-%d").to_string(),
        };
        let clock = if same_time && !day.is_empty() { String::new() } else { clock_face(there.time()) };
        let parts: Vec<String> = [day, clock].into_iter().filter(|part| !part.is_empty()).collect();
        words.extend([word, &parts.join(" ")]);
        before = there;
    }
    words
}

fn rows(job: &Value, fires: &[Timestamp], zone: &Zone, session: &Session<'_>) -> Vec<Vec<String>> {
    let mut rows: Vec<(&str, String)> = Vec::new();
    if !session.out.is_for_people() {
        rows.push(("key", text(job, "jobKey").to_owned()));
        rows.push(("version", number(job, "version").unwrap_or_default().to_string()));
        rows.push(("status", text(job, "status").to_owned()));
    }
    rows.extend(some_text(job, "description").map(|text| ("about", text.to_owned())));
    rows.extend(some_text(job, "error").map(|text| ("error", text.to_owned())));
    rows.push(("target", text(job, "target").to_owned()));
    rows.push(("schedule", schedule(job).to_owned()));
    rows.push(("time zone", text(job, "timezone").to_owned()));
    rows.push(("next", next_in_words(job, fires, zone, session.now)));
    rows.extend(moved(job, zone).map(|words| ("moved", words)));
    rows.push(("last run", last_run(job, session)));
    if let Some(failures) = number(job, "consecutiveFailures").filter(|failures| *failures > 0) {
        rows.push(("failures", format!("{failures} in a row")));
    }
    rows.extend(paused(job, zone, session.now).map(|words| ("paused", words)));
    rows.push(("payload", job.get("payload").unwrap_or(&Value::Null).to_string()));
    rows.push(("policies", policies(job, session)));
    if let Some(labels) = job.get("labels").and_then(Value::as_object).filter(|labels| !labels.is_empty()) {
        let label = |(name, value): (&String, &Value)| format!("{name}={}", value.as_str().unwrap_or_default());
        rows.push(("labels", labels.iter().map(label).collect::<Vec<_>>().join(" ")));
    }
    let made = time(job, "createdAt").map_or_else(String::new, |at| format!(", {}", away(at, session.now)));
    rows.push(("made", format!("by {}{made}, kept by {}", text(job, "createdBy"), text(job, "source"))));
    rows.push(("id", text(job, "id").to_owned()));
    rows.into_iter().map(|(name, value)| vec![name.to_owned(), printable(&value)]).collect()
}

fn moved(job: &Value, zone: &Zone) -> Option<String> {
    time(job, "rescheduledFrom").map(|from| format!("from {}", spoken(from, zone)))
}

fn last_run(job: &Value, session: &Session<'_>) -> String {
    let Some(last) = job.get("lastRun").filter(|last| last.is_object()) else { return "none yet".to_owned() };
    let status = text(last, "status");
    let mark = if session.out.is_for_people() { session.out.symbols.of(Mark::of_status(status)) } else { "" };
    let at = time(last, "scheduledAt").map_or_else(String::new, |at| away(at, session.now));
    let took = number(last, "durationMs").map_or_else(String::new, |ms| format!(", took {}", took(ms)));
    let code = some_text(last, "failureCode").map_or_else(String::new, |code| format!(", {code}"));
    format!("{mark} {status} {at}{took}{code}, run {}", text(last, "id")).trim_start().to_owned()
}

/// By whom, until when, and why.
fn paused(job: &Value, zone: &Zone, now: Timestamp) -> Option<String> {
    let reason = some_text(job, "pauseReason")?;
    let until = time(job, "pausedUntil");
    let until = until.map_or_else(String::new, |at| format!(", until {} ({})", spoken(at, zone), away(at, now)));
    let since = time(job, "pausedAt").map_or_else(String::new, |at| format!(" {}", away(at, now)));
    Some(format!("by {}{since}{until}: {reason}", text(job, "pausedBy")))
}

/// What is not as usual comes with the rest: who asks, asks because something surprised.
fn policies(job: &Value, session: &Session<'_>) -> String {
    let policies = job.get("policies").unwrap_or(&Value::Null);
    let attempts = policies.get("retry").and_then(|retry| number(retry, "maxAttempts")).unwrap_or(1);
    let span = |name: &str| {
        let text = text(policies, name);
        let seconds = crate::form::parse_span(text).map(|span| span.as_secs() as i64);
        seconds.map_or_else(|_| text.to_owned(), crate::elapsed::wait)
    };
    let depends = policies.get("dependsOn").filter(|depends| depends.is_object());
    let depends = depends.map_or_else(String::new, |depends| format!("depends on {}", text(depends, "jobKey")));
    let pauses = number(policies, "pauseAfterFailures");
    let pauses = pauses.map_or_else(String::new, |failures| format!("pauses after {failures} failures"));
    let lease_loss = text(policies, "onLeaseLoss");
    let jitter = span("jitter");
    joined(
        &[
            &format!("timeout {}", span("timeout")),
            &format!("overlap {}", text(policies, "overlap")),
            &format!("catch-up {}", text(policies, "catchUp")),
            &format!("retries {}", attempts - 1),
            &if jitter == "0s" { String::new() } else { format!("jitter {jitter}") },
            &if lease_loss.is_empty() { String::new() } else { format!("on lease loss {lease_loss}") },
            &pauses,
            &depends,
        ],
        session.out.symbols,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fires_are_told_as_short_as_they_are_clear() {
        let words = |zone: &str, fires: &[&str]| {
            let fires: Vec<Timestamp> = fires.iter().map(|at| at.parse().unwrap()).collect();
            fires_in_words(&fires, &Zone::get(zone).unwrap(), "2026-11-15T13:41:48Z".parse().unwrap())
        };
        assert_eq!(
            words("Europe/Paris", &["2026-11-16T07:00:00Z", "2026-11-17T07:00:00Z", "2026-11-18T07:00:00Z"]),
            "Mon 2026-11-16 08:00 CET (in 17h 18m), then Tue 17, Wed 18"
        );
        assert_eq!(
            words("UTC", &["2026-11-15T23:50:00Z", "2026-11-15T23:55:00Z", "2026-11-16T00:00:00Z"]),
            "Sun 2026-11-15 23:50 UTC (in 10h 8m), then 23:55, Mon 16 00:00"
        );
        assert_eq!(
            words("UTC", &["2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"]),
            "Tue 2026-12-01 00:00 UTC (in 15d), then Fri 01-01"
        );
        assert_eq!(words("UTC", &[]), "none");
    }
}
