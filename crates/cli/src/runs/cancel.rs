//! `everbell runs cancel` and `everbell runs rerun`.

use clap::Args;
use everbell_wire as wire;
use everbell_wire::run::CancelOutcome;
use jiff::Timestamp;

use super::exact_id;
use super::requested_run::{RequestedRun, WaitArgs};
use super::rerun_many::{self, ManyArgs};
use crate::error::RefusalContext;
use crate::output::{Mark, Output};
use crate::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell runs cancel \"$ACTIVE\"
  everbell runs cancel \"$ACTIVE\" --reason \"wrong payload\"
  everbell runs cancel \"$ACTIVE\" --json";

pub(super) const RERUN_EXAMPLES: &str = "\
Examples:
  everbell runs rerun \"$RUN\" --wait
  everbell runs rerun \"$RUN\" --reason \"the mail server is back\" -o name
  everbell runs rerun --status failed --from -1d --label team=data --dry-run";

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The id of the run, or the beginning of it.
    #[arg(value_name = "RUN")]
    run: String,
    /// The reason, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RerunArgs {
    /// The id of the run, or the beginning of it.
    #[arg(value_name = "RUN", required_unless_present_any = ["job", "label", "status", "target", "org", "failure_code", "from", "to"])]
    run: Option<String>,
    #[command(flatten)]
    many: ManyArgs,
    #[command(flatten)]
    wait: WaitArgs,
    /// The reason, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &CancelArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let id = exact_id(&session.client, &args.run)?;
    let answer = session
        .client
        .send(session.client.runs().cancel(&id, args.reason.as_deref()))
        .with_action(|| format!("cancel run `{}`", args.run))
        .or_list()
        .or_hint(409, || format!("see how it ended: everbell runs show {}", args.run))?;
    let answered = session.for_people(answer, |canceled| canceled.outcome.as_str())?;
    let Some(wire::Canceled { outcome, run: wire::Run { id, .. } }) = answered else { return Ok(Exit::Success) };
    if outcome == CancelOutcome::Canceled {
        session.done(Mark::Canceled, &format!("Canceled run {id} before it started"))?;
    } else {
        session.done(Mark::Canceled, &format!("Asked run {id} to stop"))?;
        session.advise(&format!("follow it: everbell runs watch {id}"))?;
    }
    Ok(Exit::Success)
}

pub(super) fn rerun(args: &RerunArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let Some(run) = &args.run else {
        return rerun_many::run(&args.many, args.reason.clone(), &mut session);
    };
    let id = exact_id(&session.client, run)?;
    let call = session.client.runs().rerun(&id, args.reason.as_deref());
    let response = session.client.send(call.read_as()).with_action(|| format!("run `{run}` again")).or_list();
    let if_skipped = "wait until it ends, or cancel it: everbell runs cancel RUN";
    RequestedRun { response, if_skipped }.report(&mut session, &args.wait)
}
