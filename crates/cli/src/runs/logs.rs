//! `everbell runs logs`.

use clap::Args;
use jiff::Timestamp;

use super::output_follower::OutputFollower;
use super::run_id;
use super::show::log;
use super::watch::follow_with;
use crate::error::RefusalContext;
use crate::output::Output;
use crate::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell runs logs \"$RUN\"
  everbell runs logs daily-briefing
  everbell runs logs \"$RUN\" --follow";

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The id of the run or the beginning of it, or the key of a job for its newest run.
    #[arg(value_name = "RUN")]
    run: String,
    /// Print the output as it grows, until the run ends; then exit with its result.
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &LogsArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let id = run_id(&session.client, &args.run)?;
    if args.follow {
        return follow_with(&mut session, &id, None, Some(OutputFollower::default()));
    }
    let answer = session.client.send(session.client.runs().get(&id));
    let answer = answer.with_action(|| format!("show the output of run `{}`", args.run)).or_list()?;
    let Some(run) = session.for_people(answer, |run| &run.id)? else { return Ok(Exit::Success) };
    log(&mut session, &run)
}
