//! What operators do with a job: pause, resume, reschedule, skip, retire.

use clap::Args;
use everbell_core::Zone;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::show::{fires, next_in_words};
use crate::cli::client::{Answer, Asked, job_path, segment};
use crate::cli::confirm::confirmed;
use crate::cli::document::{number, text, texts, time};
use crate::cli::online::ZoneArgs;
use crate::cli::output::{Mark, Output, counted, printable};
use crate::cli::times::{away, spoken};
use crate::cli::words::shell;
use crate::cli::{CliError, Exit, OnlineArgs, Session};
use crate::time_input::TimeReader;

pub(super) const PAUSE_EXAMPLES: &str = "\
Examples:
  everbell jobs pause daily-briefing --reason \"SMTP down, INC-88\"
  everbell jobs pause daily-briefing --reason \"moving the office\" --until \"tomorrow 08:00\"
  everbell jobs pause daily-briefing --reason \"release freeze\" --until +2h --json";

pub(super) const RESUME_EXAMPLES: &str = "\
Examples:
  everbell jobs resume daily-briefing
  everbell jobs resume daily-briefing --run-missed
  everbell jobs resume daily-briefing --reason \"SMTP is back\" --json";

pub(super) const RESCHEDULE_EXAMPLES: &str = "\
Examples:
  everbell jobs reschedule daily-briefing --to +2h
  everbell jobs reschedule daily-briefing --to \"tomorrow 09:30\" --reason \"late data\"
  everbell jobs reschedule daily-briefing --to +90m --json";

pub(super) const SKIP_EXAMPLES: &str = "\
Examples:
  everbell jobs skip daily-briefing
  everbell jobs skip daily-briefing --count 2 --reason \"public holidays\"
  everbell jobs skip daily-briefing --json";

pub(super) const RETIRE_EXAMPLES: &str = "\
Examples:
  everbell jobs retire nightly --yes
  everbell jobs retire pulse --yes --reason \"replaced by report\"
  everbell jobs retire report --yes --json";

#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB")]
    job: String,
    /// Why: 3 to 500 characters, kept and shown.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Resume by itself then: RFC 3339, `today 18:00`, `+2h`.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,
    /// Cancel the runs that have not begun. Otherwise they wait until the job is resumed.
    #[arg(long)]
    cancel_pending: bool,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB")]
    job: String,
    /// Run once for the slots that went by.
    #[arg(long)]
    run_missed: bool,
    /// Why, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RescheduleArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB")]
    job: String,
    /// For this org, of a job that fires for each.
    #[arg(long, value_name = "ORG")]
    org: Option<String>,
    /// Fire next then: RFC 3339, `today 18:00`, `+2h`.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: String,
    /// Why, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SkipArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB")]
    job: String,
    /// For this org, of a job that fires for each.
    #[arg(long, value_name = "ORG")]
    org: Option<String>,
    /// Pass over so many fires.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u8).range(1..=100))]
    count: u8,
    /// Why, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RetireArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB")]
    job: String,
    /// Do not ask.
    #[arg(short, long)]
    yes: bool,
    /// Why, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

/// Members of a body that are there only if they were given.
pub(super) fn given<'a>(members: impl IntoIterator<Item = (&'a str, Option<Value>)>) -> Value {
    let members = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(members.collect::<Map<_, _>>())
}

/// The job of a command that wants to know more than its name.
pub(super) fn known_job(session: &Session<'_>, job: &str) -> Result<Value, CliError> {
    let known = session.client.get(&job_path(job), &[]).asked(|| format!("read job `{job}`"));
    known.or_list()?.value()
}

/// Where the times of flags are read: in the zone of the org that is named, or else of the job.
pub(super) fn zone_for(session: &Session<'_>, job: &str, org: Option<&str>) -> Result<Zone, CliError> {
    let Some(org) = org else { return zone_of(&known_job(session, job)?) };
    let known = session.client.get(&format!("/orgs/{}", segment(org)), &[]).asked(|| format!("read org `{org}`"));
    zone_of(&known.or_list()?.value()?)
}

/// A time of a flag.
pub(super) fn moment_in(zone: &Zone, now: Timestamp, flag: &str, text: &str) -> Result<Timestamp, CliError> {
    TimeReader { now, zone }.read(flag, text)
}

pub(super) fn zone_of(job: &Value) -> Result<Zone, CliError> {
    Ok((ZoneArgs { tz: None }).read()?.zone(job))
}

/// Sends an action and says no in the words of the command.
fn act(session: &Session<'_>, job: &str, verb: &str, action: &str, body: &Value) -> Result<Answer, CliError> {
    let answer = session.client.post(&format!("{}/{action}", job_path(job)), body);
    answer.asked(|| format!("{verb} job `{job}`")).or_list()
}

/// `Next   Mon 2026-11-16 08:00 CET (in 17h 18m), then …`
pub(super) fn tell_next(session: &mut Session<'_>, job: &Value) -> Result<(), CliError> {
    let words = next_in_words(job, &fires(&session.client, job), &zone_of(job)?, session.now);
    session.detail(&format!("Next   {words}"))
}

pub(super) fn pause(args: &PauseArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let Some(reason) = &args.reason else {
        return Err(CliError::invalid(format!(
            "a reason is required\n  everbell jobs pause {} --reason \"SMTP down, INC-88\" [--until \"today 18:00\"]",
            shell(&args.job)
        )));
    };
    let mut session = Session::new(&args.online, now, output)?;
    let until = match &args.until {
        Some(text) => Some(moment_in(&zone_for(&session, &args.job, None)?, now, "--until", text)?),
        None => None,
    };
    let body = given([
        ("reason", Some(json!(reason))),
        ("until", until.map(|at| json!(at.to_string()))),
        ("cancelPending", args.cancel_pending.then_some(json!(true))),
    ]);
    let answer = act(&session, &args.job, "pause", "pause", &body)?;
    let Some(job) = session.for_people(&answer, "jobKey")? else { return Ok(Exit::Success) };
    let (key, reason) = (printable(text(&job, "jobKey")), printable(text(&job, "pauseReason")));
    session.done(Mark::Paused, &format!("Paused {key}: {reason}"))?;
    match time(&job, "pausedUntil") {
        Some(until) => {
            let zone = zone_of(&job)?;
            session.detail(&format!(
                "until {} ({}), then it goes on by itself",
                spoken(until, &zone),
                away(until, now)
            ))?;
        }
        None => session.detail("until somebody resumes it")?,
    }
    let runs = |name: &str| job.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0) as usize;
    if runs("heldRuns") > 0 {
        let waiting = counted(runs("heldRuns"), "run");
        session
            .detail(&format!("{waiting} not begun: held until the job is resumed (--cancel-pending cancels them)"))?;
    }
    if runs("canceledRuns") > 0 {
        session.detail(&format!("{} not begun: canceled", counted(runs("canceledRuns"), "run")))?;
    }
    session.advise(&format!("resume it: everbell jobs resume {}", shell(text(&job, "jobKey"))))?;
    Ok(Exit::Success)
}

pub(super) fn resume(args: &ResumeArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let missed = args.run_missed.then(|| json!("fire_once"));
    let body = given([("missed", missed), ("reason", args.reason.as_ref().map(|text| json!(text)))]);
    let answer = act(&session, &args.job, "resume", "resume", &body)?;
    let Some(job) = session.for_people(&answer, "jobKey")? else { return Ok(Exit::Success) };
    let key = text(&job, "jobKey");
    let is_over = text(&job, "status") == "retired";
    let resumed = job.get("resumed").unwrap_or(&Value::Null);
    let slots = number(resumed, "missedSlots").unwrap_or_default();
    let runs = texts(resumed, "runIds");
    if is_over && runs.is_empty() {
        return passed_by(&mut session, &job);
    }
    session.done(Mark::Good, &format!("Resumed {}", printable(key)))?;
    if slots > 0 {
        let what = runs.first().map_or_else(|| "not run".to_owned(), |run| format!("run once: {run}"));
        session.detail(&format!("{} went by while it was paused, {what}", counted(slots as usize, "slot")))?;
    }
    tell_next(&mut session, &job)?;
    let advice = runs.first().map(|run| format!("follow it: everbell runs watch {run}"));
    session.advise(&advice.unwrap_or_else(|| format!("see it: everbell jobs show {}", shell(key))))?;
    Ok(Exit::Success)
}

/// A one-time job whose time went by while it was paused has nothing left to do.
fn passed_by(session: &mut Session<'_>, job: &Value) -> Result<Exit, CliError> {
    let (key, target) = (text(job, "jobKey"), shell(text(job, "target")));
    let when = time(job, "runAt")
        .map_or_else(String::new, |at| zone_of(job).map_or_else(|_| at.to_string(), |zone| spoken(at, &zone)));
    session.done(
        Mark::Ended,
        &format!("Retired {}: its only time, {when}, went by while it was paused", printable(key)),
    )?;
    session.detail("it was not run, and does not fire any more; --run-missed would have run it")?;
    session.advise(&format!("make it anew: everbell jobs once {} --target {target} --at +15m", shell(key)))?;
    Ok(Exit::Success)
}

pub(super) fn reschedule(args: &RescheduleArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let zone = zone_for(&session, &args.job, args.org.as_deref())?;
    let to = moment_in(&zone, now, "--to", &args.to)?;
    let reason = args.reason.as_ref().map(|text| json!(text));
    let org = args.org.as_ref().map(|org| json!(org));
    let body = given([("nextRunAt", Some(json!(to.to_string()))), ("reason", reason), ("orgId", org)]);
    let answer = act(&session, &args.job, "reschedule", "reschedule", &body)?;
    let Some(job) = session.for_people(&answer, "jobKey")? else { return Ok(Exit::Success) };
    session.done(Mark::Good, &format!("Moved the next fire of {}", printable(text(&job, "jobKey"))))?;
    tell_next(&mut session, &job)?;
    if let Some(from) = time(&job, "rescheduledFrom") {
        session.detail(&format!("instead of {}", spoken(from, &zone_of(&job)?)))?;
    }
    session.advise(&format!("see it: everbell jobs show {}", shell(text(&job, "jobKey"))))?;
    Ok(Exit::Success)
}

pub(super) fn skip(args: &SkipArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let (reason, org) = (args.reason.as_ref().map(|text| json!(text)), args.org.as_ref().map(|org| json!(org)));
    let body = given([("count", Some(json!(args.count))), ("reason", reason), ("orgId", org)]);
    let answer = act(&session, &args.job, "skip the next fire of", "skip-next", &body)?;
    let Some(job) = session.for_people(&answer, "jobKey")? else { return Ok(Exit::Success) };
    let (count, key) = (counted(args.count.into(), "fire"), printable(text(&job, "jobKey")));
    session.done(Mark::Skipped, &format!("Skipped the next {count} of {key}"))?;
    tell_next(&mut session, &job)?;
    session.advise(&format!("see the skipped runs: everbell runs list --job {}", shell(text(&job, "jobKey"))))?;
    Ok(Exit::Success)
}

pub(super) fn retire(args: &RetireArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let job = shell(&args.job);
    let question = format!("Retire job {job} for good? Its history stays.");
    if !args.yes && !confirmed(&question, &format!("everbell jobs retire {job} --yes"))? {
        return Ok(Exit::Failed);
    }
    let mut session = Session::new(&args.online, now, output)?;
    let query: Vec<_> = args.reason.iter().map(|reason| ("reason", reason.clone())).collect();
    let answer = session.client.delete(&job_path(&args.job), &query);
    let answer = answer.asked(|| format!("retire job `{}`", args.job)).or_list()?;
    let Some(job) = session.for_people(&answer, "jobKey")? else { return Ok(Exit::Success) };
    let (key, version) = (text(&job, "jobKey"), number(&job, "version").unwrap_or_default());
    session.done(Mark::Ended, &format!("Retired {} v{version}", printable(key)))?;
    session.detail("it does not fire any more; its runs stay")?;
    session.advise(&format!("see its runs: everbell runs list --job {}", shell(key)))?;
    Ok(Exit::Success)
}
