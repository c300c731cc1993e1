//! `everbell jobs show`.

use clap::Args;
use everbell_core::Zone;
use everbell_wire as wire;
use everbell_wire::job::{After, Chain, ChainJob, ChainOn, JobStatus, Parents, RunGroup, ScheduleType, Scope};
use jiff::Timestamp;

use super::list::schedule;
use super::restore_declaration::in_words as in_words_of;
use crate::connection::Connection;
use crate::error::{RefusalContext, warn};
use crate::online::ZoneArgs;
use crate::output::{Mark, Output, aligned, clock_face, printable};
use crate::times::{away, local, spoken};
use crate::words::{filled, joined};
use crate::{CliError, Exit, OnlineArgs, Session};
use everbell_wire::elapsed::took;
use everbell_wire::shell;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell jobs show daily-briefing
  everbell jobs show daily-briefing@1 --tz UTC
  everbell jobs show daily-briefing --json";

const SHOWN_FIRES: usize = 3;

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
    let answer = session.client.send(session.client.jobs().get(&args.job));
    let answer = answer.with_action(|| format!("show job `{}`", args.job)).or_list()?;
    let Some(job) = session.for_people(answer, |job| &job.job_key)? else { return Ok(Exit::Success) };
    let zone = shown.zone(&job);
    let fires = fires(&session.client, &job);
    let mut rows = rows(&job, &fires, &zone, &session);
    // A token that may not read runs sees no chain.
    if let Ok(answer) = session.client.send(session.client.jobs().chain(&job.id)) {
        let words = chain(&answer.document, &job).into_iter().enumerate();
        rows.extend(words.map(|(n, line)| vec![if n == 0 { "chain" } else { "" }.to_owned(), printable(&line)]));
        let open = answer.document.groups.iter().filter(|group| group.closed_at.is_none());
        rows.extend(open.map(|group| vec!["waits".to_owned(), printable(&waits(group, &zone))]));
    }
    if session.out.is_for_people() {
        let status = job.status.as_str();
        let (mark, key) = (session.out.mark(Mark::from_status(status)), printable(&job.job_key));
        session.out.line(&format!("{mark} {key} v{} ({status})", job.version))?;
        session.out.line(&format!("  {}", in_words(&job)))?;
        for line in aligned(&rows, &[2]) {
            session.out.line(&format!("  {line}"))?;
        }
    } else {
        session.out.table(&rows, &[2])?;
    }
    session.out.flush()?;
    print_warnings(&job);
    let edited = job.declaration.as_ref().is_some_and(|declaration| declaration.edited);
    let next = match job.status {
        JobStatus::Paused => "jobs resume",
        JobStatus::Active if edited => "jobs restore-declaration",
        _ => "runs list --job",
    };
    session.advise(&format!("next: everbell {next} {}", shell(&job.job_key)))?;
    Ok(Exit::Success)
}

/// Prints warnings about a schedule.
pub(super) fn print_warnings(job: &wire::Job) {
    for warning in job.warnings.iter().flatten() {
        warn(printable(&warning.detail));
    }
}

/// `Weekdays at 08:00, Europe/Paris`.
pub(super) fn in_words(job: &wire::Job) -> String {
    let schedule = &job.schedule_text;
    match (&job.schedule_type, &job.scope) {
        (ScheduleType::OneTime | ScheduleType::After, _) => printable(schedule),
        (_, Scope::PerOrg) => printable(&format!("{schedule}, local time of each org")),
        _ => printable(&format!("{schedule}, {}", job.timezone)),
    }
}

/// The next times of a job. They are shown after a change: if the server does not respond any more, the first one must do,
/// because an error would look as if the change had failed.
pub(super) fn fires(client: &Connection, job: &wire::Job) -> Vec<Timestamp> {
    let Some(next) = job.next_run_at else { return Vec::new() };
    if job.schedule_type == ScheduleType::OneTime || job.scope == Scope::PerOrg {
        return vec![next];
    }
    let answer = client.send(client.jobs().next(&job.id, SHOWN_FIRES));
    answer.map_or_else(|_| vec![next], |answer| answer.document.items.iter().map(|fire| fire.at).collect())
}

/// The next times of a job in words. A job that fires per org has one for each org.
pub(super) fn next_in_words(job: &wire::Job, fires: &[Timestamp], zone: &Zone, now: Timestamp) -> String {
    if job.scope == Scope::PerOrg {
        let first = job.next_run_at.map(|at| {
            let org = printable(job.next_org_id.as_deref().unwrap_or_default());
            format!(", first for {org} at {} ({})", spoken(at, &Zone::utc()), away(at, now))
        });
        let first = first.unwrap_or_default();
        return format!("for each org at its own local time{first}: everbell orgs show ORG");
    }
    match &job.after {
        Some(Parents::One(after)) => return format!("when a run of {} {}", printable(&after.job), ends(&after.on)),
        Some(Parents::All(_)) => return printable(&job.schedule_text).replacen("When", "when", 1),
        None => {}
    }
    let frozen = job.next_run_frozen_until.map(|until| format!("; frozen until {}", spoken(until, zone)));
    format!("{}{}", fires_in_words(fires, zone, now), frozen.unwrap_or_default())
}

fn ends(on: &ChainOn) -> &'static str {
    match on {
        ChainOn::Success => "succeeds",
        ChainOn::Failure => "fails",
        ChainOn::Any | ChainOn::Other(_) => "ends",
    }
}

/// Describes the jobs before and after a job, one line each: `load  when extract succeeds`.
fn chain(chain: &Chain, job: &wire::Job) -> Vec<String> {
    let rule = |parent: &After| format!("{} {}", parent.job, ends(&parent.on));
    let line = |one: &ChainJob| {
        let own = if one.job_key == job.job_key { " (this job)" } else { "" };
        let rules: Vec<String> = one.after.iter().map(rule).collect();
        if rules.is_empty() {
            format!("{}{own}", one.job_key)
        } else {
            format!("{}{own} \u{2190} {}", one.job_key, rules.join(" and "))
        }
    };
    chain.jobs.iter().map(line).collect()
}

/// Describes a group of runs that the job waits for.
fn waits(group: &RunGroup, zone: &Zone) -> String {
    format!("until {} for runs of {}: {}", spoken(group.deadline, zone), group.name, group.missing.join(", "))
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

fn rows(job: &wire::Job, fires: &[Timestamp], zone: &Zone, session: &Session<'_>) -> Vec<Vec<String>> {
    let mut rows: Vec<(&str, String)> = Vec::new();
    if !session.out.is_for_people() {
        rows.push(("key", job.job_key.clone()));
        rows.push(("version", job.version.to_string()));
        rows.push(("status", job.status.to_string()));
    }
    rows.extend(filled(Some(&job.description)).map(|text| ("description", text.to_owned())));
    rows.extend(filled(job.error.as_ref()).map(|text| ("error", text.to_owned())));
    rows.push(("target", job.target.clone()));
    rows.push(("schedule", schedule(job).to_owned()));
    rows.push(("time zone", job.timezone.clone()));
    rows.push(("next", next_in_words(job, fires, zone, session.now)));
    rows.extend(job.rescheduled_from.map(|from| ("moved", format!("from {}", spoken(from, zone)))));
    rows.push(("last run", last_run(job, session)));
    if job.consecutive_failures > 0 {
        rows.push(("failures", format!("{} consecutive", job.consecutive_failures)));
    }
    rows.extend(paused(job, zone, session.now).map(|words| ("paused", words)));
    rows.push(("payload", job.payload.as_ref().map_or("null", wire::Raw::as_str).to_owned()));
    let policies = job.policies.summary();
    let policies: Vec<&str> = policies.iter().map(String::as_str).collect();
    rows.push(("policies", joined(&policies, session.out.symbols)));
    if !job.labels.is_empty() {
        let labels: Vec<String> = job.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        rows.push(("labels", labels.join(" ")));
    }
    let created = away(job.created_at, session.now);
    rows.push(("created", format!("by {}, {created}, source {}", job.created_by, job.source)));
    rows.extend(job.declaration.as_ref().map(|declaration| ("declared", in_words_of(declaration))));
    rows.push(("id", job.id.clone()));
    rows.into_iter().map(|(name, value)| vec![name.to_owned(), printable(&value)]).collect()
}

fn last_run(job: &wire::Job, session: &Session<'_>) -> String {
    let Some(last) = &job.last_run else { return "none yet".to_owned() };
    let status = last.status.as_str();
    let mark = if session.out.is_for_people() { session.out.symbols.symbol(Mark::from_status(status)) } else { "" };
    let at = away(last.scheduled_at, session.now);
    let took = last.duration_ms.map_or_else(String::new, |ms| format!(", took {}", took(ms)));
    let code = filled(last.failure_code.as_ref()).map_or_else(String::new, |code| format!(", {code}"));
    format!("{mark} {status} {at}{took}{code}, run {}", last.id).trim_start().to_owned()
}

/// The actor, the end and the reason of the pause.
fn paused(job: &wire::Job, zone: &Zone, now: Timestamp) -> Option<String> {
    let reason = filled(job.pause_reason.as_ref())?;
    let by = job.paused_by.as_deref().unwrap_or_default();
    let until =
        job.paused_until.map_or_else(String::new, |at| format!(", until {} ({})", spoken(at, zone), away(at, now)));
    let since = job.paused_at.map_or_else(String::new, |at| format!(" {}", away(at, now)));
    Some(format!("by {by}{since}{until}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_times_repeat_no_date_or_time() {
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
