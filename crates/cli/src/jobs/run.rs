//! `everbell jobs run`.

use clap::Args;
use everbell_client::{OrgSelection, Response, RunNowRequest};
use everbell_wire as wire;
use everbell_wire::run::RunNowOutcome;
use jiff::Timestamp;

use super::bulk;
use super::definition_args::payload;
use crate::confirm::YesArgs;
use crate::error::RefusalContext;
use crate::online::Format;
use crate::output::{Mark, Output, printable};
use crate::runs::requested_run::{RequestedRun, WaitArgs};
use crate::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell jobs run daily-briefing --wait
  everbell jobs run daily-briefing --queue --payload '{\"kind\":\"again\"}'
  everbell jobs run daily-briefing --force -o name";

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB", required_unless_present = "label", conflicts_with = "label")]
    job: Option<String>,
    /// Select all jobs with this label instead: `name` or `name=value`.
    #[arg(long, value_name = "LABEL", conflicts_with_all = ["org", "orgs", "all_orgs", "wait", "force", "queue", "payload"])]
    label: Option<String>,
    /// The org, for a job that fires per org.
    #[arg(long, value_name = "ORG", conflicts_with_all = ["orgs", "all_orgs"])]
    org: Option<String>,
    /// Run for each of these orgs, at most 100.
    #[arg(long, value_name = "ORG", value_delimiter = ',', conflicts_with_all = ["all_orgs", "wait"])]
    orgs: Vec<String>,
    /// Run for every org for which the job is on.
    #[arg(long, conflicts_with = "wait")]
    all_orgs: bool,
    #[command(flatten)]
    wait: WaitArgs,
    /// Start immediately, even if other runs are active.
    #[arg(long, conflicts_with = "queue")]
    force: bool,
    /// Wait for active runs to end instead of being skipped.
    #[arg(long)]
    queue: bool,
    /// Use this payload instead of the job's: JSON, `@FILE`, or `-` for standard input.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    payload: Option<String>,
    /// The reason, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    yes: YesArgs,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &RunArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let payload = args.payload.as_deref().map(payload).transpose()?;
    let mut session = Session::new(&args.online, now, output)?;
    if let Some(label) = &args.label {
        return bulk::run_now(&mut session, label, args.reason.clone());
    }
    let name = args.job.as_deref().unwrap_or_default();
    let orgs = match args.orgs.as_slice() {
        _ if args.all_orgs => Some(OrgSelection::All),
        [] => None,
        ids => Some(OrgSelection::Named(ids.to_vec())),
    };
    let (org_id, note) = (args.org.clone(), args.reason.clone());
    let request = RunNowRequest { org_id, payload, force: args.force, queue: args.queue, note };
    let (jobs, action) = (session.client.jobs(), || format!("run job `{name}`"));
    if let Some(orgs) = orgs {
        let call = jobs.run_now_for_orgs(name, &orgs, &request);
        let response = session.client.send(call).with_action(action).or_list()?;
        return report_for_orgs(&mut session, &response);
    }
    let response = session.client.send(jobs.run_now(name, &request).read_as()).with_action(action).or_list();
    let ways = format!("everbell jobs run {}", everbell_wire::shell(name));
    let if_skipped = if args.queue {
        // At most one run waits.
        format!("another run is already queued; start anyway: {ways} --force")
    } else {
        format!("start anyway: {ways} --force, or wait for it: {ways} --queue")
    };
    RequestedRun { response, if_skipped: &if_skipped }.report(&mut session, &args.wait)
}

/// Prints the outcome for each org. The command fails if one was refused.
fn report_for_orgs(session: &mut Session<'_>, answer: &Response<wire::RunNowOrgs>) -> Result<Exit, CliError> {
    let wire::RunNowOrgs { items, org_update } = &answer.document;
    let failed = items.iter().any(|item| item.outcome == RunNowOutcome::Refused);
    let exit = if failed { Exit::Failed } else { Exit::Success };
    match session.format {
        Some(Format::Json | Format::Jsonl) => session.out.line(answer.text.trim_end())?,
        Some(Format::Name) => {
            items.iter().filter_map(|item| item.run.as_ref()).try_for_each(|run| session.out.line(&run.id))?;
        }
        Some(Format::Table | Format::Plain) | None => {
            for wire::OrgRun { org_id, outcome, run, detail } in items {
                let (mark, more) = match outcome {
                    RunNowOutcome::Refused => (Mark::Bad, printable(detail.as_deref().unwrap_or_default())),
                    RunNowOutcome::Skipped => (Mark::Skipped, "another run is active".to_owned()),
                    _ => (Mark::Arrow, format!("run {}", run.as_ref().map_or("", |run| &run.id))),
                };
                session.done(mark, &format!("{} {outcome}: {more}", printable(org_id)))?;
            }
            if let Some(org_update) = org_update {
                let how = if org_update.done { "has a run" } else { "gets a run shortly" };
                session.done(Mark::Arrow, &format!("Every org for which the job is on {how}"))?;
            }
        }
    }
    Ok(exit)
}
