//! What operators do with a job: pause, resume, reschedule, skip, retire.

use clap::Args;
use everbell_core::Zone;
use everbell_wire as wire;
use everbell_wire::job::JobStatus;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::show::{fires, next_in_words};
use crate::client::{Answer, Asked, job_path, segment};
use crate::confirm::confirmed;
use crate::online::own_zone;
use crate::output::{Mark, Output, counted, printable};
use crate::times::{away, spoken};
use crate::{CliError, Exit, OnlineArgs, Session};
use everbell_wire::shell;
use everbell_wire::time_input::TimeReader;

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
    /// The reason, for the audit trail.
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
    /// The reason, for the audit trail.
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
    /// The reason, for the audit trail.
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
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
    /// The reason, for the audit trail.
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
pub(super) fn known_job(session: &Session<'_>, job: &str) -> Result<wire::Job, CliError> {
    let known = session.client.get::<wire::Job>(&job_path(job), &[]).asked(|| format!("read job `{job}`"));
    Ok(known.or_list()?.document)
}

/// Where the times of flags are read: in the zone of the org that is named, or else of the job.
pub(super) fn zone_for(session: &Session<'_>, job: &str, org: Option<&str>) -> Result<Zone, CliError> {
    let Some(org) = org else { return Ok(own_zone(&known_job(session, job)?)) };
    let known = session.client.get::<wire::Org>(&format!("/orgs/{}", segment(org)), &[]);
    let known = known.asked(|| format!("read org `{org}`")).or_list()?;
    Ok(own_zone(&known.document))
}

/// A time of a flag.
pub(super) fn moment_in(zone: &Zone, now: Timestamp, flag: &str, text: &str) -> Result<Timestamp, CliError> {
    Ok(TimeReader { now, zone }.read(flag, text)?)
}

/// Sends an action and says no in the words of the command.
fn act<T: DeserializeOwned>(
    session: &Session<'_>,
    job: &str,
    verb: &str,
    action: &str,
    body: &Value,
) -> Result<Answer<T>, CliError> {
    let answer = session.client.post(&format!("{}/{action}", job_path(job)), body);
    answer.asked(|| format!("{verb} job `{job}`")).or_list()
}

/// `Next   Mon 2026-11-16 08:00 CET (in 17h 18m), then …`
fn tell_next(session: &mut Session<'_>, job: &wire::Job) -> Result<(), CliError> {
    let words = next_in_words(job, &fires(&session.client, job), &own_zone(job), session.now);
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
    let answer = act::<wire::Paused>(&session, &args.job, "pause", "pause", &body)?;
    let Some(paused) = session.for_people(answer, |paused| &paused.job.job_key)? else { return Ok(Exit::Success) };
    let wire::Paused { job, held_runs, canceled_runs } = paused;
    let reason = printable(job.pause_reason.as_deref().unwrap_or_default());
    session.done(Mark::Paused, &format!("Paused {}: {reason}", printable(&job.job_key)))?;
    match job.paused_until {
        Some(until) => {
            session.detail(&format!(
                "until {} ({}), then it goes on by itself",
                spoken(until, &own_zone(&job)),
                away(until, now)
            ))?;
        }
        None => session.detail("until somebody resumes it")?,
    }
    if held_runs > 0 {
        let waiting = counted(held_runs as usize, "run");
        session
            .detail(&format!("{waiting} not begun: held until the job is resumed (--cancel-pending cancels them)"))?;
    }
    if canceled_runs > 0 {
        session.detail(&format!("{} not begun: canceled", counted(canceled_runs as usize, "run")))?;
    }
    session.advise(&format!("resume it: everbell jobs resume {}", shell(&job.job_key)))?;
    Ok(Exit::Success)
}

pub(super) fn resume(args: &ResumeArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let missed = args.run_missed.then(|| json!("fire_once"));
    let body = given([("missed", missed), ("reason", args.reason.as_ref().map(|text| json!(text)))]);
    let answer = act::<wire::Resumed>(&session, &args.job, "resume", "resume", &body)?;
    let Some(resumed) = session.for_people(answer, |resumed| &resumed.job.job_key)? else { return Ok(Exit::Success) };
    let wire::Resumed { job, resumed: wire::Resumption { missed_slots, run_ids, .. } } = resumed;
    let (key, run) = (&job.job_key, run_ids.first());
    if job.status == JobStatus::Retired && run.is_none() {
        return passed_by(&mut session, &job);
    }
    session.done(Mark::Good, &format!("Resumed {}", printable(key)))?;
    if missed_slots > 0 {
        let what = run.map_or_else(|| "not run".to_owned(), |run| format!("run once: {run}"));
        session.detail(&format!("{} went by while it was paused, {what}", counted(missed_slots as usize, "slot")))?;
    }
    tell_next(&mut session, &job)?;
    let advice = run.map(|run| format!("follow it: everbell runs watch {run}"));
    session.advise(&advice.unwrap_or_else(|| format!("see it: everbell jobs show {}", shell(key))))?;
    Ok(Exit::Success)
}

/// A one-time job whose time went by while it was paused has nothing left to do.
fn passed_by(session: &mut Session<'_>, job: &wire::Job) -> Result<Exit, CliError> {
    let (key, target) = (&job.job_key, shell(&job.target));
    let when = job.run_at.map_or_else(String::new, |at| spoken(at, &own_zone(job)));
    session.done(
        Mark::Ended,
        &format!("Retired {}: its only time, {when}, went by while it was paused", printable(key)),
    )?;
    session.detail("it was not run, and does not fire any more; --run-missed would have run it")?;
    session.advise(&format!("create it again: everbell jobs once {} --target {target} --at +15m", shell(key)))?;
    Ok(Exit::Success)
}

pub(super) fn reschedule(args: &RescheduleArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let zone = zone_for(&session, &args.job, args.org.as_deref())?;
    let to = moment_in(&zone, now, "--to", &args.to)?;
    let reason = args.reason.as_ref().map(|text| json!(text));
    let org = args.org.as_ref().map(|org| json!(org));
    let body = given([("nextRunAt", Some(json!(to.to_string()))), ("reason", reason), ("orgId", org)]);
    let answer = act::<wire::Job>(&session, &args.job, "reschedule", "reschedule", &body)?;
    let Some(job) = session.for_people(answer, |job| &job.job_key)? else { return Ok(Exit::Success) };
    session.done(Mark::Good, &format!("Moved the next fire of {}", printable(&job.job_key)))?;
    tell_next(&mut session, &job)?;
    if let Some(from) = job.rescheduled_from {
        session.detail(&format!("instead of {}", spoken(from, &own_zone(&job))))?;
    }
    session.advise(&format!("see it: everbell jobs show {}", shell(&job.job_key)))?;
    Ok(Exit::Success)
}

pub(super) fn skip(args: &SkipArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let (reason, org) = (args.reason.as_ref().map(|text| json!(text)), args.org.as_ref().map(|org| json!(org)));
    let body = given([("count", Some(json!(args.count))), ("reason", reason), ("orgId", org)]);
    let answer = act::<wire::Job>(&session, &args.job, "skip the next fire of", "skip-next", &body)?;
    let Some(job) = session.for_people(answer, |job| &job.job_key)? else { return Ok(Exit::Success) };
    let (count, key) = (counted(args.count.into(), "fire"), printable(&job.job_key));
    session.done(Mark::Skipped, &format!("Skipped the next {count} of {key}"))?;
    tell_next(&mut session, &job)?;
    session.advise(&format!("see the skipped runs: everbell runs list --job {}", shell(&job.job_key)))?;
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
    let answer = session.client.delete::<wire::Job>(&job_path(&args.job), &query);
    let answer = answer.asked(|| format!("retire job `{}`", args.job)).or_list()?;
    let Some(job) = session.for_people(answer, |job| &job.job_key)? else { return Ok(Exit::Success) };
    session.done(Mark::Ended, &format!("Retired {} v{}", printable(&job.job_key), job.version))?;
    session.detail("it does not fire any more; its runs stay")?;
    session.advise(&format!("see its runs: everbell runs list --job {}", shell(&job.job_key)))?;
    Ok(Exit::Success)
}
