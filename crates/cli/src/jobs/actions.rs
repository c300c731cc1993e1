//! Actions on a job: pause, resume, reschedule, skip, retire.

use clap::Args;
use everbell_client::{MissedSlots, PauseRequest, RescheduleRequest, ResumeRequest, SkipNextRequest};
use everbell_core::Zone;
use everbell_wire as wire;
use everbell_wire::job::JobStatus;
use jiff::Timestamp;

use super::bulk;
use super::show::{fires, next_in_words};
use crate::confirm::{YesArgs, confirmed};
use crate::error::RefusalContext;
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
  everbell jobs pause --label team=data --reason \"release freeze\" --until +2h";

pub(super) const RESUME_EXAMPLES: &str = "\
Examples:
  everbell jobs resume daily-briefing
  everbell jobs resume daily-briefing --run-missed
  everbell jobs resume --label imported=crontab.txt";

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
    #[arg(value_name = "JOB", required_unless_present = "label", conflicts_with = "label")]
    job: Option<String>,
    /// Select all jobs with this label instead: `name` or `name=value`.
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// The reason, from 3 to 500 characters, which is shown with the job.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Resume automatically at this time: RFC 3339, `today 18:00`, `+2h`.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,
    /// Cancel the runs that have not started. Otherwise they wait until the job is resumed.
    #[arg(long, conflicts_with = "label")]
    cancel_pending: bool,
    #[command(flatten)]
    yes: YesArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB", required_unless_present = "label", conflicts_with = "label")]
    job: Option<String>,
    /// Select all jobs with this label instead: `name` or `name=value`.
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// With `--label`: only jobs that an import paused, and that nobody paused later.
    #[arg(long, requires = "label")]
    imported: bool,
    /// Run once for the slots that were missed.
    #[arg(long)]
    run_missed: bool,
    /// The reason, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    yes: YesArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RescheduleArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB")]
    job: String,
    /// The org, for a job that fires per org.
    #[arg(long, value_name = "ORG")]
    org: Option<String>,
    /// The new time of the next run: RFC 3339, `today 18:00`, `+2h`.
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
    #[arg(value_name = "JOB", required_unless_present = "label", conflicts_with = "label")]
    job: Option<String>,
    /// Select all jobs with this label instead: `name` or `name=value`.
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// The org, for a job that fires per org.
    #[arg(long, value_name = "ORG", conflicts_with = "label")]
    org: Option<String>,
    /// How many runs to skip.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u8).range(1..=100))]
    count: u8,
    /// The reason, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    yes: YesArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RetireArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB", required_unless_present = "label", conflicts_with = "label")]
    job: Option<String>,
    /// Select all jobs with this label instead: `name` or `name=value`.
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
    /// The reason, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn get_job(session: &Session<'_>, job: &str) -> Result<wire::Job, CliError> {
    let response = session.client.send(session.client.jobs().get(job)).with_action(|| format!("read job `{job}`"));
    Ok(response.or_list()?.document)
}

/// The zone for the times of flags: that of the org if one is named, else that of the job.
pub(super) fn zone_for(session: &Session<'_>, job: &str, org: Option<&str>) -> Result<Zone, CliError> {
    let Some(org) = org else { return Ok(own_zone(&get_job(session, job)?)) };
    let response = session.client.send(session.client.orgs().get(org)).with_action(|| format!("read org `{org}`"));
    Ok(own_zone(&response.or_list()?.document))
}

/// Parses the time of a flag.
pub(super) fn parse_time(zone: &Zone, now: Timestamp, flag: &str, text: &str) -> Result<Timestamp, CliError> {
    Ok(TimeReader { now, zone }.read(flag, text)?)
}

/// `Next   Mon 2026-11-16 08:00 CET (in 17h 18m), then …`
fn print_next(session: &mut Session<'_>, job: &wire::Job) -> Result<(), CliError> {
    let words = next_in_words(job, &fires(&session.client, job), &own_zone(job), session.now);
    session.detail(&format!("Next   {words}"))
}

pub(super) fn pause(args: &PauseArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let job = args.job.as_deref().unwrap_or_default();
    let Some(reason) = &args.reason else {
        let which = args.label.as_ref().map_or_else(|| shell(job), |label| format!("--label {}", shell(label)));
        return Err(CliError::invalid(format!(
            "a reason is required\n  everbell jobs pause {which} --reason \"SMTP down, INC-88\" [--until \"today 18:00\"]"
        )));
    };
    let mut session = Session::new(&args.online, now, output)?;
    if let Some(label) = &args.label {
        let until = args.until.as_ref().map(|text| parse_time(&Zone::utc(), now, "--until", text)).transpose()?;
        return bulk::pause(&mut session, label, reason, until);
    }
    let until = match &args.until {
        Some(text) => Some(parse_time(&zone_for(&session, job, None)?, now, "--until", text)?),
        None => None,
    };
    let request = PauseRequest { reason: reason.clone(), until, cancel_pending: args.cancel_pending };
    let answer = session.client.send(session.client.jobs().pause(job, &request));
    let answer = answer.with_action(|| format!("pause job `{job}`")).or_list()?;
    let Some(paused) = session.for_people(answer, |paused| &paused.job.job_key)? else { return Ok(Exit::Success) };
    let wire::Paused { job, held_runs, canceled_runs } = paused;
    let reason = printable(job.pause_reason.as_deref().unwrap_or_default());
    session.done(Mark::Paused, &format!("Paused {}: {reason}", printable(&job.job_key)))?;
    match job.paused_until {
        Some(until) => {
            session.detail(&format!(
                "until {} ({}), then it resumes automatically",
                spoken(until, &own_zone(&job)),
                away(until, now)
            ))?;
        }
        None => session.detail("until it is resumed")?,
    }
    if held_runs > 0 {
        let waiting = counted(held_runs as usize, "run");
        session.detail(&format!(
            "{waiting} not started: on hold until the job is resumed (--cancel-pending cancels them)"
        ))?;
    }
    if canceled_runs > 0 {
        session.detail(&format!("{} not started: canceled", counted(canceled_runs as usize, "run")))?;
    }
    session.advise(&format!("resume it: everbell jobs resume {}", shell(&job.job_key)))?;
    Ok(Exit::Success)
}

pub(super) fn resume(args: &ResumeArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let missed = args.run_missed.then_some(MissedSlots::FireOnce);
    if let Some(label) = &args.label {
        let keys = if args.imported { Some(bulk::paused_by_import(&session, label)?) } else { None };
        return bulk::resume(&mut session, label, keys, args.reason.clone(), missed);
    }
    let job = args.job.as_deref().unwrap_or_default();
    let request = ResumeRequest { missed, reason: args.reason.clone() };
    let answer = session.client.send(session.client.jobs().resume(job, &request));
    let answer = answer.with_action(|| format!("resume job `{job}`")).or_list()?;
    let Some(resumed) = session.for_people(answer, |resumed| &resumed.job.job_key)? else { return Ok(Exit::Success) };
    let wire::Resumed { job, resumed: wire::Resumption { missed_slots, run_ids, .. } } = resumed;
    let (key, run) = (&job.job_key, run_ids.first());
    if job.status == JobStatus::Retired && run.is_none() {
        return report_missed(&mut session, &job);
    }
    session.done(Mark::Good, &format!("Resumed {}", printable(key)))?;
    if missed_slots > 0 {
        let what = run.map_or_else(|| "not run".to_owned(), |run| format!("run once: {run}"));
        session.detail(&format!("{} missed while it was paused, {what}", counted(missed_slots as usize, "slot")))?;
    }
    print_next(&mut session, &job)?;
    let advice = run.map(|run| format!("follow it: everbell runs watch {run}"));
    session.advise(&advice.unwrap_or_else(|| format!("see it: everbell jobs show {}", shell(key))))?;
    Ok(Exit::Success)
}

/// Reports a one-time job whose only run was missed while it was paused.
fn report_missed(session: &mut Session<'_>, job: &wire::Job) -> Result<Exit, CliError> {
    let (key, target) = (&job.job_key, shell(&job.target));
    let when = job.run_at.map_or_else(String::new, |at| spoken(at, &own_zone(job)));
    session.done(
        Mark::Ended,
        &format!("Retired {}: its only run, {when}, was missed while it was paused", printable(key)),
    )?;
    session.detail("it did not run and will not fire again; --run-missed would have run it")?;
    session.advise(&format!("create it again: everbell jobs once {} --target {target} --at +15m", shell(key)))?;
    Ok(Exit::Success)
}

pub(super) fn reschedule(args: &RescheduleArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let zone = zone_for(&session, &args.job, args.org.as_deref())?;
    let next_run_at = parse_time(&zone, now, "--to", &args.to)?;
    let request = RescheduleRequest { next_run_at, org_id: args.org.clone(), reason: args.reason.clone() };
    let answer = session.client.send(session.client.jobs().reschedule(&args.job, &request));
    let answer = answer.with_action(|| format!("reschedule job `{}`", args.job)).or_list()?;
    let Some(job) = session.for_people(answer, |job| &job.job_key)? else { return Ok(Exit::Success) };
    session.done(Mark::Good, &format!("Moved the next run of {}", printable(&job.job_key)))?;
    print_next(&mut session, &job)?;
    if let Some(from) = job.rescheduled_from {
        session.detail(&format!("instead of {}", spoken(from, &own_zone(&job))))?;
    }
    session.advise(&format!("see it: everbell jobs show {}", shell(&job.job_key)))?;
    Ok(Exit::Success)
}

pub(super) fn skip(args: &SkipArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let (org_id, reason) = (args.org.clone(), args.reason.clone());
    if let Some(label) = &args.label {
        return bulk::skip_next(&mut session, label, args.count.into(), reason);
    }
    let name = args.job.as_deref().unwrap_or_default();
    let request = SkipNextRequest { count: Some(args.count.into()), org_id, reason };
    let answer = session.client.send(session.client.jobs().skip_next(name, &request));
    let answer = answer.with_action(|| format!("skip the next runs of job `{name}`")).or_list()?;
    let Some(job) = session.for_people(answer, |job| &job.job_key)? else { return Ok(Exit::Success) };
    let (count, key) = (counted(args.count.into(), "run"), printable(&job.job_key));
    session.done(Mark::Skipped, &format!("Skipped the next {count} of {key}"))?;
    print_next(&mut session, &job)?;
    session.advise(&format!("see the skipped runs: everbell runs list --job {}", shell(&job.job_key)))?;
    Ok(Exit::Success)
}

pub(super) fn retire(args: &RetireArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    if let Some(label) = &args.label {
        return retire_labeled(args, label, now, output);
    }
    let name = args.job.as_deref().unwrap_or_default();
    let job = shell(name);
    let question = format!("Retire job {job} permanently? Its history stays.");
    if !args.yes && !confirmed(&question, &format!("everbell jobs retire {job} --yes"))? {
        return Ok(Exit::Failed);
    }
    let mut session = Session::new(&args.online, now, output)?;
    let answer = session.client.send(session.client.jobs().retire(name, args.reason.as_deref()));
    let answer = answer.with_action(|| format!("retire job `{name}`")).or_list()?;
    let Some(job) = session.for_people(answer, |job| &job.job_key)? else { return Ok(Exit::Success) };
    session.done(Mark::Ended, &format!("Retired {} v{}", printable(&job.job_key), job.version))?;
    session.detail("it will not fire again; its runs stay")?;
    session.advise(&format!("see its runs: everbell runs list --job {}", shell(&job.job_key)))?;
    Ok(Exit::Success)
}

/// Retires all jobs with a label, after a question that says how many.
fn retire_labeled(args: &RetireArgs, label: &str, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    if !args.yes {
        let jobs = counted(bulk::count_retired(&session, label)? as usize, "job");
        let question = format!("Retire {jobs} with the label {} permanently? Their history stays.", printable(label));
        if !confirmed(&question, &format!("everbell jobs retire --label {} --yes", shell(label)))? {
            return Ok(Exit::Failed);
        }
    }
    bulk::retire(&mut session, label, args.reason.clone())
}
