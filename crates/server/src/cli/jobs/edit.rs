//! `everbell jobs new-version`: what is not named stays as it is.

use clap::Args;
use everbell_core::Zone;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::definition::{Body, DefinitionArgs, TimingArgs};
use super::show::{fires, next_in_words, told_warnings};
use crate::cli::client::{Asked, job_path};
use crate::cli::document::{items, number, text, time};
use crate::cli::online::ZoneArgs;
use crate::cli::output::{Mark, Output, printable};
use crate::cli::times::spoken;
use crate::cli::words::shell;
use crate::cli::{CliError, Exit, OnlineArgs, Session};
use crate::time_input::TimeReader;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell jobs new-version daily-briefing --cron \"30 7 * * 1-5\" --reason \"earlier in winter\"
  everbell jobs new-version daily-briefing --timeout 10m --label team=field
  everbell jobs new-version daily-briefing --clear description --clear label:team";

/// What `--clear` takes, and the member that it clears.
const CLEARED: &[(&str, &str)] = &[
    ("payload", "payload"),
    ("description", "description"),
    ("labels", "labels"),
    ("tz", "timezone"),
    ("start-at", "startAt"),
    ("end-at", "endAt"),
    ("timeout", "policies.timeout"),
    ("overlap", "policies.overlap"),
    ("max-concurrent-runs", "policies.maxConcurrentRuns"),
    ("catch-up", "policies.catchUp"),
    ("catch-up-limit", "policies.catchUpLimit"),
    ("catch-up-window", "policies.catchUpWindow"),
    ("grace", "policies.grace"),
    ("jitter", "policies.jitter"),
    ("retries", "policies.retry"),
    ("retry-initial", "policies.retry.initial"),
    ("retry-max", "policies.retry.max"),
    ("on-lease-loss", "policies.onLeaseLoss"),
    ("pause-after-failures", "policies.pauseAfterFailures"),
    ("depends-on", "policies.dependsOn"),
    ("dst-gap", "policies.dst.gap"),
    ("dst-fold", "policies.dst.fold"),
];

#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB")]
    job: String,
    /// Another label of what to do.
    #[arg(long, value_name = "LABEL")]
    target: Option<String>,
    /// Fire once, then.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with_all = ["cron", "every"], help_heading = "When it fires")]
    at: Option<String>,
    /// Another IANA time zone.
    #[arg(long, value_name = "ZONE", help_heading = "When it fires")]
    tz: Option<String>,
    #[command(flatten)]
    timing: TimingArgs,
    #[command(flatten)]
    definition: DefinitionArgs,
    /// Take back what was said: the name of a flag, such as `timeout`, or `label:NAME`; may be given again.
    #[arg(long, value_name = "FIELD")]
    clear: Vec<String>,
    /// Make the new version active, also if the job is paused.
    #[arg(long)]
    activate: bool,
    /// Why, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &EditArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let named = args.tz.as_deref().map(Zone::get).transpose()?;
    let mut session = Session::new(&args.online, now, output)?;
    let path = job_path(&args.job);
    let asked = || format!("make a new version of job `{}`", args.job);
    let takes_time = [&args.at, &args.timing.start_at, &args.timing.end_at].iter().any(|text| text.is_some());
    let zone = match &named {
        Some(zone) => zone.clone(),
        // A time without an offset is one of the zone that the job has.
        None if takes_time => {
            let job = session.client.get(&path, &[]).asked(asked).or_list()?.value()?;
            (ZoneArgs { tz: None }).read()?.zone(&job)
        }
        None => Zone::utc(),
    };
    let body = body(args, &zone, named.is_some(), now)?;
    let answer = session.client.post(&format!("{path}/new-version"), &body).asked(asked).or_list()?;
    let Some(job) = session.for_people(&answer, "jobKey")? else { return Ok(Exit::Success) };
    told(&mut session, &job, now)?;
    Ok(Exit::Success)
}

fn body(args: &EditArgs, zone: &Zone, zone_named: bool, now: Timestamp) -> Result<Body, CliError> {
    let mut body = Body::default();
    body.time(&args.timing, zone, now)?;
    body.describe(&args.definition)?;
    if let Some(at) = &args.at {
        body.put("runAt", TimeReader { now, zone }.read("--at", at)?.to_string());
    }
    if zone_named {
        body.put("timezone", zone.name());
    }
    for (name, text) in [("target", &args.target), ("reason", &args.reason)] {
        if let Some(text) = text {
            body.put(name, text.as_str());
        }
    }
    for field in &args.clear {
        clear(&mut body, field)?;
    }
    let only_reason = body.members.keys().all(|name| name == "reason") && body.payload.is_none();
    if only_reason && !args.activate {
        return Err(CliError::invalid(format!(
            "nothing is to be changed\n  everbell jobs new-version {0} --cron \"30 7 * * 1-5\"\n  \
             everbell jobs new-version --help",
            shell(&args.job)
        )));
    }
    if args.activate {
        body.put("activate", true);
    }
    Ok(body)
}

fn clear(body: &mut Body, field: &str) -> Result<(), CliError> {
    if let Some(label) = field.strip_prefix("label:") {
        let labels = body.members.entry("labels").or_insert_with(|| json!({}));
        labels[label] = Value::Null;
        return Ok(());
    }
    let known = CLEARED.iter().find(|(name, _)| *name == field.trim_start_matches("--"));
    let Some((_, path)) = known else {
        let names: Vec<&str> = CLEARED.iter().map(|(name, _)| *name).collect();
        return Err(CliError::Invalid {
            message: format!("--clear: `{}` cannot be cleared", field.escape_debug()),
            hint: Some(format!("it takes label:NAME, {}", names.join(", "))),
        });
    };
    match path.strip_prefix("policies.") {
        Some(path) => body.put_policy(path, Value::Null),
        None => body.put(path, Value::Null),
    }
    Ok(())
}

/// What changed, and what that does to the next fire.
fn told(session: &mut Session<'_>, job: &Value, now: Timestamp) -> Result<(), CliError> {
    let (key, version) = (text(job, "jobKey"), number(job, "version").unwrap_or_default());
    let old = job.get("superseded").unwrap_or(&Value::Null);
    let status = text(job, "status");
    let replaces = number(old, "version").unwrap_or_default();
    session.done(Mark::Good, &format!("Made {} v{version} ({status}), which replaces v{replaces}", printable(key)))?;
    for change in items(job, "changes") {
        let part = |name: &str| change.get(name).map_or_else(String::new, plain);
        let arrow = session.out.symbols.of(Mark::Arrow);
        session.detail(&printable(&format!("{}: {} {arrow} {}", text(change, "field"), part("from"), part("to"))))?;
    }
    if items(job, "changes").is_empty() {
        session.detail("nothing differs")?;
    }
    let zone = (ZoneArgs { tz: None }).read()?.zone(job);
    let before = time(old, "nextRunAt").map_or_else(|| "none".to_owned(), |at| spoken(at, &zone));
    let after = next_in_words(job, &fires(&session.client, job), &zone, now);
    session.detail(&format!("Next   {after}; before: {before}"))?;
    session.out.flush()?;
    told_warnings(job);
    session.advise(&format!("see its versions: everbell jobs versions {}", shell(key)))
}

/// A value of JSON; texts without quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if !text.is_empty() => text.clone(),
        other => other.to_string(),
    }
}
