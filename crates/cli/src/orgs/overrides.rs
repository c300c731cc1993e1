//! `everbell orgs override`.

use clap::Args;
use everbell_client::OverridePut;
use everbell_wire::job::JobStatus;
use jiff::Timestamp;

use crate::error::{RefusalContext, warn};
use crate::online::{Format, own_zone};
use crate::output::{Mark, Output, printable};
use crate::times::{away, spoken};
use crate::{CliError, Exit, OnlineArgs, Session};
use everbell_wire::shell;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell orgs override acme daily-briefing --at 09:30
  everbell orgs override acme daily-briefing --off --reason \"they asked for it\"
  everbell orgs override acme daily-briefing --clear";

#[derive(Debug, Args)]
pub(crate) struct OverrideArgs {
    /// The id of the org.
    #[arg(value_name = "ORG")]
    org: String,
    /// The key of the job.
    #[arg(value_name = "JOB")]
    job: String,
    /// Fire at this local time, `HH:MM`, on the days of the job.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["cron", "clear"])]
    at: Option<String>,
    /// Use this cron expression instead of the job's.
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true, conflicts_with = "clear")]
    cron: Option<String>,
    /// Do not fire for this org.
    #[arg(long, conflicts_with_all = ["on", "clear"])]
    off: bool,
    /// Fire for this org again.
    #[arg(long, conflicts_with = "clear")]
    on: bool,
    /// Remove the override.
    #[arg(long)]
    clear: bool,
    /// The reason, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &OverrideArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    if !(args.at.is_some() || args.cron.is_some() || args.off || args.on || args.clear) {
        let call = format!("everbell orgs override {} {}", shell(&args.org), shell(&args.job));
        return Err(CliError::invalid(format!(
            "name what to override\n  {call} --at 09:30\n  {call} --cron \"0 9 * * 1-5\"\n  {call} --off, --on or --clear"
        )));
    }
    let mut session = Session::new(&args.online, now, output)?;
    if args.clear {
        return clear(args, &mut session);
    }
    let body = OverridePut {
        enabled: (args.on || args.off).then_some(args.on),
        cron_expression: args.cron.clone(),
        local_time: args.at.clone(),
        reason: args.reason.clone(),
    };
    let answer = session.client.send(session.client.orgs().put_override(&args.org, &args.job, &body));
    let action = || format!("override job `{}` for org `{}`", args.job, args.org);
    let answer = answer.with_action(action).or_list()?;
    let fires_for_orgs = answer.document.job.is_some();
    let Some(written) = session.for_people(answer, |written| &written.job_key)? else {
        session.out.flush()?;
        if !fires_for_orgs {
            warn(without_effect(&session, &args.job));
        }
        return Ok(Exit::Success);
    };
    if !fires_for_orgs {
        let words = without_effect(&session, &args.job);
        session.done(Mark::Warning, &format!("Stored for org {}, no effect yet: {words}", printable(&args.org)))?;
        return Ok(Exit::Success);
    }
    let how = match written.r#override.as_ref().map(|own| (own.enabled, own.cron_expression.as_deref())) {
        None | Some((false, _)) => "does not fire".to_owned(),
        Some((true, Some(expression))) => format!("fires at `{}`", printable(expression)),
        Some((true, None)) => "fires as usual".to_owned(),
    };
    session.done(Mark::Good, &format!("{} {how} for org {}", printable(&args.job), printable(&args.org)))?;
    if let Some((job, next)) = written.job.as_ref().and_then(|job| Some((job, job.next_run_at?))) {
        session.detail(&format!("Next   {} ({})", spoken(next, &own_zone(job)), away(next, now)))?;
    }
    Ok(Exit::Success)
}

/// Why an override has no effect: the job does not fire per org, or there is none.
fn without_effect(session: &Session<'_>, key: &str) -> String {
    let job = session.client.send(session.client.jobs().get(key));
    let key = printable(key);
    if job.is_ok_and(|job| job.document.status != JobStatus::Retired) {
        return format!("job {key} does not fire per org: its scope is global");
    }
    format!("there is no job {key}; the override waits for one that fires per org")
}

fn clear(args: &OverrideArgs, session: &mut Session<'_>) -> Result<Exit, CliError> {
    let call = session.client.orgs().delete_override(&args.org, &args.job, args.reason.as_deref());
    let answer = session.client.send(call);
    answer.with_action(|| format!("clear the override of job `{}` for org `{}`", args.job, args.org))?;
    match session.format {
        Some(Format::Name) => session.out.line(&printable(&args.job))?,
        Some(Format::Json | Format::Jsonl) => {}
        Some(Format::Table | Format::Plain) | None => {
            let words = format!("Removed the override of {} for org {}", printable(&args.job), printable(&args.org));
            session.done(Mark::Good, &words)?;
        }
    }
    Ok(Exit::Success)
}
