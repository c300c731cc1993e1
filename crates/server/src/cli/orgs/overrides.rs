//! `everbell orgs override`.

use clap::Args;
use jiff::Timestamp;
use reqwest::Method;
use serde_json::Value;

use super::org_path;
use crate::cli::client::{Asked, job_path, segment};
use crate::cli::document::{flag, some_text, text, time};
use crate::cli::error::warn;
use crate::cli::jobs::Body;
use crate::cli::online::{Format, ZoneArgs};
use crate::cli::output::{Mark, Output, printable};
use crate::cli::times::{away, spoken};
use crate::cli::words::shell;
use crate::cli::{CliError, Exit, OnlineArgs, Session};

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
    /// Fire by this expression instead of the job's.
    #[arg(long, value_name = "EXPR", allow_hyphen_values = true, conflicts_with = "clear")]
    cron: Option<String>,
    /// Do not fire for this org.
    #[arg(long, conflicts_with_all = ["on", "clear"])]
    off: bool,
    /// Fire for this org, also if it was off.
    #[arg(long, conflicts_with = "clear")]
    on: bool,
    /// Fire as for all.
    #[arg(long)]
    clear: bool,
    /// Why, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &OverrideArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    if !(args.at.is_some() || args.cron.is_some() || args.off || args.on || args.clear) {
        let call = format!("everbell orgs override {} {}", shell(&args.org), shell(&args.job));
        return Err(CliError::invalid(format!(
            "say what is different for the org\n  {call} --at 09:30\n  {call} --cron \"0 9 * * 1-5\"\n  {call} --off, --on or --clear"
        )));
    }
    let mut session = Session::new(&args.online, now, output)?;
    let path = format!("{}/jobs/{}", org_path(&args.org), segment(&args.job));
    if args.clear {
        return clear(args, &path, &mut session);
    }
    let mut body = Body::default();
    let texts = [("localTime", &args.at), ("cronExpression", &args.cron), ("reason", &args.reason)];
    for (name, value) in texts {
        if let Some(value) = value {
            body.put(name, value.as_str());
        }
    }
    if args.on || args.off {
        body.put("enabled", args.on);
    }
    let body = serde_json::to_string(&body).map_err(|error| CliError::invalid(error.to_string()))?;
    let answer = session.client.call(Method::PUT, &path, &[], Some(body));
    let answer = answer.asked(|| what(args)).or_list()?;
    let fires_for_orgs = answer.value()?.get("job").is_some_and(Value::is_object);
    let Some(told) = session.for_people(&answer, "jobKey")? else {
        session.out.flush()?;
        if !fires_for_orgs {
            warn(without_effect(&session, &args.job));
        }
        return Ok(Exit::Success);
    };
    if !fires_for_orgs {
        let words = without_effect(&session, &args.job);
        session.done(Mark::Warning, &format!("Kept for org {}, without effect yet: {words}", printable(&args.org)))?;
        return Ok(Exit::Success);
    }
    let wish = told.get("override").unwrap_or(&Value::Null);
    let how = match (flag(wish, "enabled"), some_text(wish, "cronExpression")) {
        (false, _) => "does not fire".to_owned(),
        (true, Some(expression)) => format!("fires by `{}`", printable(expression)),
        (true, None) => "fires as for all".to_owned(),
    };
    session.done(Mark::Good, &format!("{} {how} for org {}", printable(&args.job), printable(&args.org)))?;
    let job = told.get("job").unwrap_or(&Value::Null);
    if let Some(next) = time(job, "nextRunAt") {
        let zone = (ZoneArgs { tz: None }).read()?.zone(job);
        session.detail(&format!("Next   {} ({})", spoken(next, &zone), away(next, now)))?;
    }
    Ok(Exit::Success)
}

/// Why an override changes nothing: the job fires once for all, or there is none.
fn without_effect(session: &Session<'_>, key: &str) -> String {
    let job = session.client.get(&job_path(key), &[]).and_then(|answer| answer.value()).unwrap_or_default();
    let key = printable(key);
    if job.is_object() && text(&job, "status") != "retired" {
        return format!("job {key} fires once for all, not for each org; its scope is global");
    }
    format!("there is no job {key}; it holds when one comes that fires for each org")
}

fn what(args: &OverrideArgs) -> String {
    format!("override job `{}` for org `{}`", args.job, args.org)
}

fn clear(args: &OverrideArgs, path: &str, session: &mut Session<'_>) -> Result<Exit, CliError> {
    let query: Vec<_> = args.reason.iter().map(|reason| ("reason", reason.clone())).collect();
    let answer = session.client.delete(path, &query);
    answer.asked(|| format!("clear the override of job `{}` for org `{}`", args.job, args.org))?;
    match session.format {
        Some(Format::Name) => session.out.line(&printable(&args.job))?,
        Some(Format::Json | Format::Jsonl) => {}
        Some(Format::Table | Format::Plain) | None => {
            let words = format!("{} fires for org {} as for all", printable(&args.job), printable(&args.org));
            session.done(Mark::Good, &words)?;
        }
    }
    Ok(Exit::Success)
}
