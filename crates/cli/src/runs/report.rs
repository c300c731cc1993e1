//! `everbell runs complete` and `everbell runs fail`: how the remote side of a run ends it.

use clap::Args;
use everbell_client::{Call, RunComplete, RunFail, Runs};
use everbell_wire as wire;
use jiff::Timestamp;
use serde_json::value::RawValue;

use super::exact_id;
use crate::error::RefusalContext;
use crate::output::{Mark, Output};
use crate::{CliError, Exit, OnlineArgs, Session};

pub(super) const COMPLETE_EXAMPLES: &str = "\
Examples:
  everbell runs complete \"$RUN\"
  everbell runs complete \"$RUN\" --result '{\"reports\": 30}'
  everbell runs complete \"$RUN\" --add-output \"30 reports are written\" --attempt 2";

pub(super) const FAIL_EXAMPLES: &str = "\
Examples:
  everbell runs fail \"$RUN\" --message \"the disk is full\" --code no_disk
  everbell runs fail \"$RUN\" --message \"unknown customer\" --no-retry
  everbell runs fail \"$RUN\" --message \"no answer\" --add-output \"the last lines of the log\"";

#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    /// The id of the run, or the beginning of it.
    #[arg(value_name = "RUN")]
    run: String,
    /// The result of the run, in JSON.
    #[arg(long, value_name = "JSON")]
    result: Option<String>,
    #[command(flatten)]
    report: ReportArgs,
}

#[derive(Debug, Args)]
pub(crate) struct FailArgs {
    /// The id of the run, or the beginning of it.
    #[arg(value_name = "RUN")]
    run: String,
    /// Why it failed, in words.
    #[arg(long, value_name = "TEXT")]
    message: String,
    /// Why it failed, as a stable code of a-z, 0-9 and _.
    #[arg(long, value_name = "CODE")]
    code: Option<String>,
    /// Do not retry, whatever the policies of the job say.
    #[arg(long)]
    no_retry: bool,
    #[command(flatten)]
    report: ReportArgs,
}

/// The flags that both ends of a run share.
#[derive(Debug, Args)]
struct ReportArgs {
    /// Text to append to the output of the run.
    #[arg(long = "add-output", value_name = "TEXT")]
    add_output: Option<String>,
    /// End only this attempt, never a later one; default: the current one.
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn complete(args: &CompleteArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let result = args.result.clone().map(RawValue::from_string).transpose();
    let result = result.map_err(|error| CliError::Invalid {
        message: format!("--result is not valid JSON: {error}"),
        hint: Some("quote a text twice: --result '\"done\"'".to_owned()),
    })?;
    let body = RunComplete { result, output: args.report.add_output.clone(), attempt: args.report.attempt };
    report(&args.report, (&args.run, "complete"), |runs, id| runs.complete(id, &body), now, output)
}

pub(super) fn fail(args: &FailArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let body = RunFail {
        code: args.code.clone(),
        message: args.message.clone(),
        retryable: args.no_retry.then_some(false),
        output: args.report.add_output.clone(),
        attempt: args.report.attempt,
        ..RunFail::default()
    };
    report(&args.report, (&args.run, "fail"), |runs, id| runs.fail(id, &body), now, output)
}

/// Ends a run, and prints how it is now.
fn report(
    args: &ReportArgs,
    (run, verb): (&str, &str),
    call: impl FnOnce(Runs<'_>, &str) -> Call<wire::RemoteRun>,
    now: Timestamp,
    output: &mut Output,
) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let id = exact_id(&session.client, run)?;
    let answer = session.client.send(call(session.client.runs(), &id));
    let answer = answer.with_action(|| format!("{verb} run `{run}`")).or_list();
    let answer = answer.or_hint(409, || format!("see who executes it, or how it ended: everbell runs show {run}"))?;
    let answered = session.for_people(answer, |run| run.status.as_str())?;
    let Some(wire::RemoteRun { run_id, status, attempt, .. }) = answered else { return Ok(Exit::Success) };
    let mark = Mark::from_status(status.as_str());
    let what = match status.as_str() {
        "pending" => format!("Attempt {attempt} of run {run_id} has ended, and another one follows"),
        status => format!("Run {run_id} is {status}"),
    };
    session.done(mark, &what)?;
    Ok(Exit::Success)
}
