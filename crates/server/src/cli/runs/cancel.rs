//! `everbell runs cancel` and `everbell runs rerun`.

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::begun::{Begun, WaitArgs, told};
use super::run_path;
use crate::cli::client::Asked;
use crate::cli::document::text;
use crate::cli::output::{Mark, Output};
use crate::cli::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell runs cancel \"$ACTIVE\"
  everbell runs cancel \"$ACTIVE\" --reason \"wrong payload\"
  everbell runs cancel \"$ACTIVE\" --json";

pub(super) const RERUN_EXAMPLES: &str = "\
Examples:
  everbell runs rerun \"$RUN\" --wait
  everbell runs rerun \"$RUN\" --reason \"the mail server is back\"
  everbell runs rerun \"$RUN\" -o name";

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The id of the run.
    #[arg(value_name = "RUN")]
    run: String,
    /// Why, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RerunArgs {
    /// The id of the run.
    #[arg(value_name = "RUN")]
    run: String,
    #[command(flatten)]
    wait: WaitArgs,
    /// Why, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

fn because(reason: Option<&String>) -> Value {
    reason.map_or_else(|| json!({}), |reason| json!({ "reason": reason }))
}

pub(super) fn run(args: &CancelArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let answer = session.client.post(&format!("{}/cancel", run_path(&args.run)), &because(args.reason.as_ref()));
    let answer = answer
        .asked(|| format!("cancel run `{}`", args.run))
        .or_list()
        .or_try(409, || format!("see how it ended: everbell runs show {}", args.run))?;
    let Some(canceled) = session.for_people(&answer, "outcome")? else { return Ok(Exit::Success) };
    let id = canceled.get("run").map(|run| text(run, "id")).unwrap_or_default();
    if text(&canceled, "outcome") == "canceled" {
        session.done(Mark::Canceled, &format!("Canceled run {id} before it started"))?;
    } else {
        session.done(Mark::Canceled, &format!("Asked run {id} to stop"))?;
        session.advise(&format!("see it end: everbell runs watch {id}"))?;
    }
    Ok(Exit::Success)
}

pub(super) fn rerun(args: &RerunArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let answer = session.client.post(&format!("{}/rerun", run_path(&args.run)), &because(args.reason.as_ref()));
    let answer = answer.asked(|| format!("run `{}` again", args.run)).or_list();
    let begun = Begun { answer, again: "wait until it has ended, or cancel it: everbell runs cancel RUN" };
    told(&mut session, begun, &args.wait)
}
