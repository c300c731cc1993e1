//! `everbell jobs edit`: fields that are not named keep their values; without flags, the editor opens.

use clap::Args;
use everbell_core::Zone;
use everbell_wire as wire;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::bulk;
use super::definition_args::{DefinitionArgs, TimingArgs};
use super::editor;
use super::policy_args::{flags, put};
use super::show::{fires, next_in_words, print_warnings};
use crate::error::RefusalContext;
use crate::online::own_zone;
use crate::output::{Mark, Output, printable};
use crate::times::spoken;
use crate::{CliError, Exit, OnlineArgs, Program, Session};
use everbell_wire::JobBody;
use everbell_wire::shell;
use everbell_wire::time_input::TimeReader;

pub(super) const EXAMPLES: &str = "\
Examples:
  EDITOR=nano everbell jobs edit daily-briefing
  everbell jobs edit daily-briefing --cron \"30 7 * * 1-5\" --label team=field --clear description
  everbell jobs edit --where team=field --timeout 10m --dry-run";

/// The names that `--clear` takes besides the flags of policies, and the member that each clears.
const CLEARED: &[(&str, &str)] = &[
    ("payload", "payload"),
    ("description", "description"),
    ("labels", "labels"),
    ("tz", "timezone"),
    ("start-at", "startAt"),
    ("end-at", "endAt"),
];

#[derive(Debug, Args)]
pub(crate) struct NewVersionArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB", required_unless_present = "label_of_jobs")]
    job: Option<String>,
    /// Edit all jobs with this label, `NAME=VALUE` or `NAME`: their target, labels and policies.
    #[arg(long = "where", value_name = "LABEL", conflicts_with_all = ["job", "activate"], id = "label_of_jobs")]
    label_of_jobs: Option<String>,
    /// Show the changes of all jobs with `--where` without applying them.
    #[arg(long, requires = "label_of_jobs")]
    dry_run: bool,
    /// Change the target.
    #[arg(long, value_name = "LABEL")]
    target: Option<String>,
    /// Change to a one-time job that fires at this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with_all = ["cron", "every", "after"], help_heading = "Schedule")]
    at: Option<String>,
    /// Change the IANA time zone.
    #[arg(long, value_name = "ZONE", help_heading = "Schedule")]
    tz: Option<String>,
    #[command(flatten)]
    timing: TimingArgs,
    #[command(flatten)]
    definition: DefinitionArgs,
    /// Reset a field to its default: the name of its flag, such as `timeout`, or `label:NAME`. Repeatable.
    #[arg(long, value_name = "FIELD")]
    clear: Vec<String>,
    /// Activate the new version even if the job is paused.
    #[arg(long)]
    activate: bool,
    /// The reason, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

impl NewVersionArgs {
    fn names_times(&self) -> bool {
        [&self.at, &self.timing.start_at, &self.timing.end_at].into_iter().any(Option::is_some)
    }

    fn write_times(&self, body: &mut JobBody, zone: &Zone, now: Timestamp) -> Result<(), CliError> {
        self.timing.write_to(body, zone, now)?;
        if let Some(at) = &self.at {
            body.put("runAt", TimeReader { now, zone }.read("--at", at)?.to_string());
        }
        Ok(())
    }
}

pub(super) fn run(
    args: &NewVersionArgs,
    program: Program,
    now: Timestamp,
    output: &mut Output,
) -> Result<Exit, CliError> {
    let named = args.tz.as_deref().map(Zone::get).transpose()?;
    if let Some(label) = &args.label_of_jobs {
        let mut patch = body(args, &named.clone().unwrap_or_else(Zone::utc), named.is_some(), now)?.members;
        patch.remove("reason");
        let mut session = Session::new(&args.online, now, output)?;
        return bulk::edit(&mut session, label, Value::Object(patch), args.reason.clone(), args.dry_run);
    }
    let job = args.job.as_deref().unwrap_or_default();
    let zone = named.clone().unwrap_or_else(Zone::utc);
    if only_reason(&body(args, &zone, named.is_some(), now)?) && editor::is_available() {
        let mut session = Session::new(&args.online, now, output)?;
        return editor::edit(&mut session, job, args.reason.as_deref(), program);
    }
    let mut session = Session::new(&args.online, now, output)?;
    let jobs = session.client.jobs();
    let action = || format!("create a new version of job `{job}`");
    // A mistake in the flags is reported without asking the server.
    let mut request = body(args, &zone, named.is_some(), now)?;
    if only_reason(&request) {
        return Err(CliError::invalid(format!(
            "nothing to change\n  everbell jobs edit {0} --cron \"30 7 * * 1-5\"\n  everbell jobs edit --help\n  \
             set EDITOR to edit all of it as a file",
            shell(job)
        )));
    }
    if named.is_none() && args.names_times() {
        // A time without an offset is in the zone of the job.
        let job = session.client.send(jobs.get(job)).with_action(action).or_list()?.document;
        args.write_times(&mut request, &own_zone(&job), now)?;
    }
    let answer = session.client.send(jobs.create_version(job, &request)).with_action(action).or_list()?;
    let Some(created) = session.for_people(answer, |created| &created.job.job_key)? else { return Ok(Exit::Success) };
    report(&mut session, &created, true)?;
    Ok(Exit::Success)
}

/// Whether a body changes nothing.
fn only_reason(body: &JobBody) -> bool {
    body.members.keys().all(|name| name == "reason") && body.payload.is_none()
}

fn body(args: &NewVersionArgs, zone: &Zone, zone_named: bool, now: Timestamp) -> Result<JobBody, CliError> {
    let mut body = JobBody::default();
    args.write_times(&mut body, zone, now)?;
    args.definition.write_to(&mut body)?;
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
    if args.activate {
        body.put("activate", true);
    }
    Ok(body)
}

fn clear(body: &mut JobBody, field: &str) -> Result<(), CliError> {
    if let Some(label) = field.strip_prefix("label:") {
        let labels = body.members.entry("labels").or_insert_with(|| json!({}));
        labels[label] = Value::Null;
        return Ok(());
    }
    let policies = flags().map(|(policy, flag)| (flag.name, policy.flag_clears()));
    let known: Vec<(&str, &str)> = CLEARED.iter().copied().chain(policies).collect();
    let Some((_, path)) = known.iter().find(|(name, _)| *name == field.trim_start_matches("--")) else {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        return Err(CliError::Invalid {
            message: format!("--clear: `{}` cannot be cleared", field.escape_debug()),
            hint: Some(format!("use label:NAME or one of {}", names.join(", "))),
        });
    };
    put(body, path, Value::Null);
    Ok(())
}

/// Prints the new version with the effect on the next run, and with the changes unless they were shown before.
pub(super) fn report(session: &mut Session<'_>, created: &wire::NewVersion, changed: bool) -> Result<(), CliError> {
    let wire::NewVersion { job, superseded, changes } = created;
    let wire::Job { job_key: key, version, status, .. } = job;
    let replaces = superseded.version;
    session
        .done(Mark::Good, &format!("Created {} v{version} ({status}), which replaces v{replaces}", printable(key)))?;
    if changed {
        print_changes(session, changes)?;
    }
    let zone = own_zone(job);
    let before = superseded.next_run_at.map_or_else(|| "none".to_owned(), |at| spoken(at, &zone));
    let after = next_in_words(job, &fires(&session.client, job), &zone, session.now);
    session.detail(&format!("Next   {after}; before: {before}"))?;
    session.out.flush()?;
    print_warnings(job);
    session
        .advise(&format!("see its versions: everbell jobs versions {0}; undo: everbell jobs rollback {0}", shell(key)))
}

/// Prints a line for each field that differs.
pub(super) fn print_changes(session: &mut Session<'_>, changes: &[wire::ChangedField]) -> Result<(), CliError> {
    for wire::ChangedField { field, from, to } in changes {
        let arrow = session.out.symbols.symbol(Mark::Arrow);
        session.detail(&printable(&format!("{field}: {} {arrow} {}", plain(from), plain(to))))?;
    }
    if changes.is_empty() {
        session.detail("no differences")?;
    }
    Ok(())
}

/// A JSON value; texts without quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if !text.is_empty() => text.clone(),
        other => other.to_string(),
    }
}
