//! `everbell jobs apply`.

use std::path::PathBuf;

use clap::Args;
use everbell_client::{JobQuery, PauseRequest, WithJson};
use everbell_core::Definition;
use everbell_wire as wire;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::export::MAX_JOBS;
use super::plan::{Action, Step, add_pauses, plan};
use super::plan_check::{check_plan, known_targets};
use super::state::PausedJob;
use crate::Program;
use crate::confirm::agreed;
use crate::error::{RefusalContext, note, warn};
use crate::online::Format;
use crate::output::{Mark, Output, counted, printable};
use crate::progress::Progress;
use crate::{CliError, Exit, OnlineArgs, Session, api};
use everbell_wire::JobBody;
use everbell_wire::crontab::{CRONTAB_LABEL, IMPORTED_LABEL};
use everbell_wire::job_body::declared;

/// From this number of changes on, progress is shown.
const MIN_CHANGES_FOR_PROGRESS: usize = 20;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell jobs apply -f jobs.toml --dry-run
  everbell jobs apply -f jobs.toml --yes
  everbell jobs export --all | everbell jobs apply -f - --prune --dry-run";

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// The file with `[[job]]` blocks; `-` is standard input.
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Show the changes without applying them.
    #[arg(long)]
    dry_run: bool,
    /// Retire jobs that were created through the API and are not in the file.
    #[arg(long)]
    prune: bool,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &ApplyArgs, program: Program, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let (wanted, states) = read(args, program, now)?;
    let mut session = Session::new(&args.online, now, output)?;
    let ApplyArgs { prune, dry_run, yes, .. } = *args;
    let reason = format!("everbell jobs apply {}", args.file.display());
    let request = ApplyRequest { prune, dry_run, yes, reason, paused: None, states };
    let done = carry_out(&mut session, &wanted, &request)?;
    if is_for_programs(&session) {
        session.out.json(&done)?;
    }
    Ok(done.exit)
}

/// How jobs are applied.
pub(super) struct ApplyRequest {
    pub(super) prune: bool,
    pub(super) dry_run: bool,
    pub(super) yes: bool,
    /// For the audit trail.
    pub(super) reason: String,
    /// For an import: why new jobs are paused, and the value of their label. Jobs without that label are not changed.
    pub(super) paused: Option<(String, String)>,
    /// The jobs that the file says are paused.
    pub(super) states: Vec<PausedJob>,
}

/// The changes, made or planned.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Done {
    dry_run: bool,
    applied: usize,
    steps: Vec<Step>,
    #[serde(skip)]
    pub(crate) exit: Exit,
}

impl Done {
    /// Counts the jobs with this change, made or planned.
    pub(super) fn count(&self, action: Action) -> usize {
        self.steps.iter().filter(|step| step.action == action).count()
    }
}

pub(crate) fn is_for_programs(session: &Session<'_>) -> bool {
    matches!(session.format, Some(Format::Json | Format::Jsonl))
}

/// Shows the changes, asks for confirmation, and applies them.
pub(super) fn carry_out(
    session: &mut Session<'_>,
    wanted: &[Definition],
    request: &ApplyRequest,
) -> Result<Done, CliError> {
    let list = session
        .client
        .take(session.client.jobs().list(&JobQuery::default()).read_as(), MAX_JOBS)
        .with_action(|| "list the jobs".to_owned())?;
    if list.next_cursor.is_some() {
        return Err(CliError::invalid(format!("the server has more than {MAX_JOBS} jobs, too many to compare")));
    }
    let mut steps = plan(wanted, &list.items, request.prune, session.now);
    add_pauses(&mut steps, &list.items, &request.states, session.now);
    if let Some((_, label)) = &request.paused {
        expect_own(&steps, &list.items, label)?;
    }
    if !is_for_programs(session) {
        show(session, &steps, request.paused.is_some())?;
    }
    let conflicts: Vec<&Step> = steps.iter().filter(|step| step.action == Action::Conflict).collect();
    for step in &conflicts {
        let (key, owner) = (printable(&step.job_key), step.owner.as_deref().unwrap_or_default());
        let app = step.app.as_deref().map_or_else(|| "the server".to_owned(), |app| format!("`{}`", printable(app)));
        warn(format!("job `{key}` is declared by the {owner} of {app} and differs: change it there"));
    }
    let exit = if conflicts.is_empty() { Exit::Success } else { Exit::Conflict };
    let todo: Vec<&Step> = steps.iter().filter(|step| step.action.is_change() || step.pause.is_some()).collect();
    let mut applied = 0;
    if exit == Exit::Conflict {
        note("nothing was changed");
    } else if request.dry_run {
        session.out.flush()?;
        // The target of an import was checked once for all of its jobs.
        let known = if request.paused.is_some() { Vec::new() } else { known_targets(&session.client)? };
        check_plan(&known, wanted, &steps, session.now)?;
    } else if !todo.is_empty() {
        session.out.flush()?;
        let question = format!("Apply {} to {}?", counted(todo.len(), "change"), session.client.server());
        agreed(&question, request.yes)?;
        applied = apply(session, &todo, request)?;
    }
    // An import prints a sum of its own.
    if applied > 0 && request.paused.is_none() && !is_for_programs(session) {
        session.done(Mark::Good, &format!("Applied {}", counted(applied, "change")))?;
    }
    Ok(Done { dry_run: request.dry_run, applied, steps, exit })
}

/// Refuses an import that would change jobs that come from elsewhere.
fn expect_own(steps: &[Step], existing: &[WithJson<wire::Job>], label: &str) -> Result<(), CliError> {
    // Standard input and `/etc/crontab` have the same name on every machine.
    let is_clear = label != CRONTAB_LABEL;
    let is_own = |key: &str| {
        let job = existing.iter().map(|job| &job.document).find(|job| job.job_key == key);
        is_clear && job.is_some_and(|job| job.labels.get(IMPORTED_LABEL).is_some_and(|value| value == label))
    };
    let changed = steps.iter().filter(|step| step.action == Action::NewVersion && !is_own(&step.job_key));
    let foreign: Vec<String> = changed.map(|step| format!("`{}`", printable(&step.job_key))).collect();
    if foreign.is_empty() {
        return Ok(());
    }
    if !is_clear {
        return Err(CliError::invalid(format!(
            "these jobs exist with another definition, and may come from another machine: {}; \
             import the crontab from a file with another name",
            foreign.join(", ")
        )));
    }
    Err(CliError::invalid(format!(
        "these jobs exist, and were not imported from `{}`: {}; retire them or import the file under another name",
        printable(label),
        foreign.join(", ")
    )))
}

/// Reads the jobs of the file. An error lists every problem with its line.
fn read(args: &ApplyArgs, program: Program, now: Timestamp) -> Result<(Vec<Definition>, Vec<PausedJob>), CliError> {
    let name = if args.file.as_os_str() == "-" { "standard input".to_owned() } else { args.file.display().to_string() };
    let text = api::input(&args.file)?;
    let drafts = (program.read_jobs)(&name, &text)?;
    if drafts.is_empty() {
        return Err(CliError::invalid(format!("{name} has no `[[job]]` block")));
    }
    let wanted: Result<Vec<Definition>, CliError> =
        drafts.iter().map(|draft| declared(draft, now).map_err(CliError::invalid)).collect();
    let (wanted, states) = (wanted?, (program.read_states)(&name, &text)?);
    if let Some(state) = states.iter().find(|state| !wanted.iter().any(|job| job.key.as_str() == state.job_key)) {
        let key = printable(&state.job_key);
        return Err(CliError::invalid(format!(
            "{name} has a `[[job_state]]` of `{key}`, but no `[[job]]` block of it"
        )));
    }
    Ok((wanted, states))
}

/// Applies one change after the other. Changes before an error stay; applying the file again does the rest.
fn apply(session: &Session<'_>, todo: &[&Step], request: &ApplyRequest) -> Result<usize, CliError> {
    let mut progress = Progress::new();
    for (done, step) in todo.iter().enumerate() {
        if todo.len() >= MIN_CHANGES_FOR_PROGRESS {
            progress.show(&format!("{done} of {} done", todo.len()));
        }
        if let Err(error) = send(session, step, request) {
            drop(progress);
            note(format!(
                "{done} of {} changes were applied before this error; run the command again to apply the rest",
                todo.len()
            ));
            return Err(error);
        }
    }
    Ok(todo.len())
}

fn send(session: &Session<'_>, step: &Step, request: &ApplyRequest) -> Result<(), CliError> {
    let (key, reason) = (&step.job_key, request.reason.as_str());
    let (client, jobs, revision) = (&session.client, session.client.jobs(), step.revision.unwrap_or_default());
    let body = JobBody::from(step.body.as_object().cloned().unwrap_or_default());
    match step.action {
        Action::Create => {
            let why = request.paused.as_ref().map(|(why, _)| why.as_str());
            let why = why.or(step.pause.as_ref().map(|pause| pause.pause_reason.as_str()));
            let body = match why {
                Some(why) => body.with("pauseReason", why),
                None => body,
            };
            client.send(jobs.create(&body)).map(drop).with_action(|| format!("create job `{key}`"))?;
            pause(session, step.pause.as_ref().filter(|pause| pause.paused_until.is_some()))
        }
        Action::NewVersion => {
            let call = jobs.create_version(key, &body.with("reason", reason)).if_match(revision);
            client.send(call).map(drop).with_action(|| format!("change job `{key}`"))?;
            pause(session, step.pause.as_ref())
        }
        Action::Retire => {
            let call = jobs.retire(key, Some(reason)).if_match(revision);
            client.send(call).map(drop).with_action(|| format!("retire job `{key}`"))
        }
        Action::Unchanged | Action::Conflict => pause(session, step.pause.as_ref()),
    }
}

/// Pauses a job as its state says. One that was created paused gets the end of its pause.
fn pause(session: &Session<'_>, state: Option<&PausedJob>) -> Result<(), CliError> {
    let Some(PausedJob { job_key: key, pause_reason, paused_until }) = state else { return Ok(()) };
    let request = PauseRequest { reason: pause_reason.clone(), until: *paused_until, cancel_pending: false };
    let call = session.client.jobs().pause(key, &request);
    session.client.send(call).map(drop).with_action(|| format!("pause job `{key}`"))
}

fn show(session: &mut Session<'_>, steps: &[Step], paused: bool) -> Result<(), CliError> {
    for step in steps {
        let key = printable(&step.job_key);
        let version = step.version.unwrap_or_default();
        let next = step.new_next_run_at.as_deref().unwrap_or("never");
        match step.action {
            Action::Create if step.pause.is_some() => session.out.line(&format!("create {key}"))?,
            Action::Create if paused => session.out.line(&format!("create {key}: paused, would run next {next}"))?,
            Action::Create => session.out.line(&format!("create {key}: next run {next}"))?,
            Action::NewVersion => {
                session.out.line(&format!("change {key}: v{version} -> v{}", version + 1))?;
                step.changes.iter().try_for_each(|change| session.out.line(&changed(change)))?;
                let was = step.next_run_at.as_deref().unwrap_or("never");
                if was != next && step.pause.is_none() {
                    session.out.line(&format!("  next run: {was} -> {next}"))?;
                }
            }
            Action::Retire => session.out.line(&format!("retire {key}: v{version}"))?,
            Action::Unchanged | Action::Conflict => {}
        }
        if let Some(PausedJob { pause_reason, paused_until, .. }) = &step.pause {
            let until = paused_until.map_or_else(String::new, |until| format!(" until {until}"));
            session.out.line(&format!("pause {key}{until}: {}", printable(pause_reason)))?;
        }
    }
    let unchanged = steps.iter().filter(|step| step.action == Action::Unchanged && step.pause.is_none()).count();
    if unchanged > 0 && !paused {
        session.out.line(&format!("unchanged: {}", counted(unchanged, "job")))?;
    }
    Ok(())
}

fn changed(change: &wire::ChangedField) -> String {
    let text = |value: &Value| match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => printable(text),
        other => printable(&other.to_string()),
    };
    format!("  {}: {} -> {}", printable(&change.field), text(&change.from), text(&change.to))
}
