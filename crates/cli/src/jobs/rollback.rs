//! `everbell jobs rollback`: the next version of a job has the content of an older one.

use clap::Args;
use everbell_client::{Response, WithJson};
use everbell_wire as wire;
use everbell_wire::job_body::read_definition;
use everbell_wire::{JobBody, shell};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::files::plan::{Action, Step, plan};
use super::new_version::{print_changes, report};
use crate::confirm::agreed;
use crate::error::{RefusalContext, note};
use crate::online::{Format, own_zone};
use crate::output::{Output, printable};
use crate::times::spoken;
use crate::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell jobs rollback daily-briefing --dry-run
  everbell jobs rollback daily-briefing --yes --reason \"too early\"
  everbell jobs rollback daily-briefing --to 1 --yes";

#[derive(Debug, Args)]
pub(crate) struct RollbackArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB")]
    job: String,
    /// The version whose content to restore; default: the one before the current.
    #[arg(long, value_name = "VERSION", value_parser = clap::value_parser!(u32).range(1..))]
    to: Option<u32>,
    /// Show the changes without applying them.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
    /// The reason, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

/// A version of a job, and its payload as it was written.
struct Version {
    job: WithJson<wire::Job>,
    payload: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Payload {
    payload: Option<Box<RawValue>>,
}

pub(super) fn run(args: &RollbackArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let current = read(&session, &args.job)?;
    let (key, version) = (current.job.document.job_key.clone(), current.job.document.version);
    let to = match args.to {
        Some(to) if to == version => {
            return Err(CliError::invalid(format!("--to: v{to} is the current version of job `{}`", printable(&key))));
        }
        Some(to) => to,
        None => previous(&session, &key, version)?,
    };
    let older = read(&session, &format!("{key}@{to}"))?;
    let wanted = read_definition(&older.job.json, now).map_err(|why| {
        let (key, why) = (printable(&key), printable(&why));
        CliError::invalid(format!("v{to} of job `{key}` cannot be restored: {why}"))
    })?;
    let steps = plan(std::slice::from_ref(&wanted), std::slice::from_ref(&current.job), false, now);
    let Some(step) = steps.into_iter().next() else { return Ok(Exit::Success) };
    let text = |payload: &Option<Box<RawValue>>| payload.as_ref().map(|payload| payload.get().to_owned());
    let same_payload = text(&current.payload) == text(&older.payload);
    if step.action == Action::Unchanged && same_payload {
        note(format!("v{version} already has the content of v{to}; nothing was changed"));
        return Ok(Exit::Success);
    }
    if !for_programs(&session) {
        show(&mut session, &current.job.document, &step, to)?;
    }
    if args.dry_run {
        if for_programs(&session) {
            session.out.json(&step)?;
        }
        return Ok(Exit::Success);
    }
    session.out.flush()?;
    agreed(&format!("Roll back job {} from v{version} to the content of v{to}?", shell(&key)), args.yes)?;
    let body = JobBody::from(step.body.as_object().cloned().unwrap_or_default());
    let body = body.with("reason", args.reason.clone().unwrap_or_else(|| format!("rollback to v{to}")));
    // As it was written, so no number loses a digit.
    let payload = if same_payload { None } else { older.payload };
    let members = body.members.into_iter().filter(|(name, _)| name != "payload").collect();
    let body = JobBody { members, payload };
    let call = session.client.jobs().create_version(&key, &body).if_match(step.revision.unwrap_or_default());
    let answer = session.client.send(call).with_action(|| format!("roll back job `{key}`"))?;
    let Some(created) = session.for_people(answer, |created| &created.job.job_key)? else { return Ok(Exit::Success) };
    report(&mut session, &created, false)?;
    Ok(Exit::Success)
}

fn for_programs(session: &Session<'_>) -> bool {
    matches!(session.format, Some(Format::Json | Format::Jsonl | Format::Name))
}

fn read(session: &Session<'_>, name: &str) -> Result<Version, CliError> {
    let answer = session.client.send(session.client.jobs().get(name).read_as());
    let Response { document: job, text, .. } = answer.with_action(|| format!("roll back job `{name}`")).or_list()?;
    let Payload { payload } = serde_json::from_str(&text).map_err(|error| CliError::Failed {
        message: format!("the payload of job `{}` cannot be read: {error}", printable(name)),
        hint: None,
    })?;
    Ok(Version { job, payload })
}

/// The newest version before the current one.
fn previous(session: &Session<'_>, key: &str, current: u32) -> Result<u32, CliError> {
    let versions = session.client.send(session.client.jobs().versions(key));
    let versions = versions.with_action(|| format!("roll back job `{key}`"))?.document.items;
    let earlier = versions.iter().map(|job| job.version).filter(|version| *version < current).max();
    earlier.ok_or_else(|| CliError::Invalid {
        message: format!("job `{}` has one version, so there is none to go back to", printable(key)),
        hint: Some(format!("edit it: everbell jobs edit {}", shell(key))),
    })
}

/// Prints the changes and their effect on the next run.
fn show(session: &mut Session<'_>, current: &wire::Job, step: &Step, to: u32) -> Result<(), CliError> {
    let key = printable(&current.job_key);
    session.out.line(&format!("{key}: v{} would get the content of v{to}", current.version + 1))?;
    print_changes(session, &step.changes)?;
    let zone = own_zone(current);
    let spoken = |at: Option<&String>| {
        let at = at.and_then(|at| at.parse::<Timestamp>().ok());
        at.map_or_else(|| "none".to_owned(), |at| spoken(at, &zone))
    };
    if step.next_run_at != step.new_next_run_at {
        let (next, before) = (spoken(step.new_next_run_at.as_ref()), spoken(step.next_run_at.as_ref()));
        session.detail(&format!("Next   {next}; before: {before}"))?;
    }
    if let (Action::Conflict, Some(owner)) = (step.action, &step.owner) {
        session
            .advise(&format!("job {key} is declared in {owner}; a change of its declaration replaces this version"))?;
    }
    Ok(())
}
