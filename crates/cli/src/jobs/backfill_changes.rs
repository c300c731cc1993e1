//! Changes of running backfills: `everbell jobs backfill-pause`, `backfill-resume` and `backfill-set`.

use clap::{Args, Subcommand};
use everbell_client::{BackfillSettings, Call};
use everbell_wire as wire;
use everbell_wire::backfill::BackfillStatus;
use everbell_wire::shell;
use jiff::Timestamp;

use super::backfill::parse_rate;
use crate::error::RefusalContext;
use crate::output::{Mark, Output, counted, printable};
use crate::{CliError, Exit, OnlineArgs, Session};

const PAUSE_EXAMPLES: &str = "\
Examples:
  everbell jobs backfill-pause metrics
  everbell jobs backfill-pause metrics --reason \"the warehouse is slow\"
  everbell jobs backfill-pause metrics --json";

const RESUME_EXAMPLES: &str = "\
Examples:
  everbell jobs backfill-resume metrics
  everbell jobs backfill-resume metrics --reason \"the warehouse is back\"
  everbell jobs backfill-resume metrics --json";

const SET_EXAMPLES: &str = "\
Examples:
  everbell jobs backfill-set metrics --parallel 8
  everbell jobs backfill-set metrics --rate 10/m --reason \"office hours\"
  everbell jobs backfill-set metrics --rate off --parallel 0";

#[derive(Debug, Subcommand)]
pub(crate) enum BackfillCommand {
    /// Pause a backfill
    ///
    /// Runs that have not started are withdrawn until it is resumed. Runs that have started continue.
    #[command(name = "backfill-pause", before_help = PAUSE_EXAMPLES)]
    Pause(ChangeArgs),
    /// Resume a paused backfill
    #[command(name = "backfill-resume", before_help = RESUME_EXAMPLES)]
    Resume(ChangeArgs),
    /// Change the parallelism or the rate of a backfill
    #[command(name = "backfill-set", before_help = SET_EXAMPLES)]
    Set(SetArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ChangeArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB")]
    job: String,
    /// The id of the backfill; default: the only one of the job that can be changed.
    #[arg(value_name = "BACKFILL")]
    backfill: Option<String>,
    /// The reason, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
#[group(id = "settings", required = true, multiple = true, args = ["parallel", "rate", "paused_ok"])]
pub(crate) struct SetArgs {
    /// Maximum concurrent runs of the backfill; 0: the job's limit.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1_000))]
    parallel: Option<u32>,
    /// Maximum rate of new runs, such as `10/m`; `off`: no limit.
    #[arg(long, value_name = "RATE", value_parser = rate_or_off)]
    rate: Option<String>,
    /// Whether to continue while the job is paused.
    #[arg(long, value_name = "BOOL")]
    paused_ok: Option<bool>,
    #[command(flatten)]
    change: ChangeArgs,
}

fn rate_or_off(text: &str) -> Result<String, String> {
    if text == "off" { Ok(text.to_owned()) } else { parse_rate(text) }
}

pub(super) fn run(command: &BackfillCommand, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    match command {
        BackfillCommand::Pause(args) => {
            change(args, now, output, ("pause", "Paused"), &[BackfillStatus::Running], |session, id| {
                session.client.jobs().pause_backfill(&args.job, id, args.reason.as_deref())
            })
        }
        BackfillCommand::Resume(args) => {
            change(args, now, output, ("resume", "Resumed"), &[BackfillStatus::Paused], |session, id| {
                session.client.jobs().resume_backfill(&args.job, id, args.reason.as_deref())
            })
        }
        BackfillCommand::Set(set) => {
            let settings = BackfillSettings {
                parallel: set.parallel,
                rate: set.rate.clone(),
                paused_ok: set.paused_ok,
                reason: set.change.reason.clone(),
            };
            let open = [BackfillStatus::Running, BackfillStatus::Paused];
            change(&set.change, now, output, ("change", "Changed"), &open, |session, id| {
                session.client.jobs().update_backfill(&set.change.job, id, &settings)
            })
        }
    }
}

/// Sends a change of one backfill, and prints how it is afterwards.
fn change(
    args: &ChangeArgs,
    now: Timestamp,
    output: &mut Output,
    (verb, done): (&str, &str),
    possible: &[BackfillStatus],
    call: impl Fn(&Session<'_>, &str) -> Call<wire::BackfillReport>,
) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let action = || format!("{verb} a backfill of job `{}`", args.job);
    let id = match &args.backfill {
        Some(id) => id.clone(),
        None => only_one(&session, args, possible, verb)?,
    };
    let answer = session.client.send(call(&session, &id)).with_action(action);
    let answer = answer.or_hint(404, || format!("list them: everbell jobs backfills {}", shell(&args.job)))?;
    let Some(backfill) = session.for_people(answer, |backfill| &backfill.id)? else { return Ok(Exit::Success) };
    session.done(Mark::Good, &format!("{done} backfill {} of {}", backfill.id, printable(&args.job)))?;
    session.detail(&summary(&backfill))?;
    Ok(Exit::Success)
}

/// `240 done, 1 failed, 1195 left; 4 at once, 10/m`.
fn summary(backfill: &wire::BackfillReport) -> String {
    let parallel =
        backfill.parallel.map_or_else(|| "as many at once as the job allows".to_owned(), |n| format!("{n} at once"));
    let rate = backfill.rate.as_deref().map(|rate| format!(", {rate}")).unwrap_or_default();
    let left = counted((backfill.pending + backfill.running) as usize, "slot");
    format!("{} succeeded, {} failed, {left} left; {parallel}{rate}", backfill.succeeded, backfill.failed)
}

/// The backfill that is meant if none is named.
fn only_one(
    session: &Session<'_>,
    args: &ChangeArgs,
    possible: &[BackfillStatus],
    verb: &str,
) -> Result<String, CliError> {
    let list = session.client.send(session.client.jobs().backfills(&args.job));
    let list = list.with_action(|| format!("list the backfills of job `{}`", args.job)).or_list()?;
    let mut found = list.document.items.into_iter().filter(|backfill| possible.contains(&backfill.status));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one.id),
        (None, _) => Err(CliError::invalid(format!("job {} has no backfill to {verb}", shell(&args.job)))),
        (Some(_), Some(_)) => {
            let message = format!("job {} has several backfills to {verb}", shell(&args.job));
            let hint = Some(format!("name one of: everbell jobs backfills {}", shell(&args.job)));
            Err(CliError::Invalid { message, hint })
        }
    }
}
