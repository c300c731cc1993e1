//! `everbell orgs rebuild` and `everbell orgs stop`: updates of every org of a job.

use clap::Args;
use everbell_client::{JobOrgQuery, WithJson};
use everbell_wire as wire;
use everbell_wire::org_job::OrgUpdateWork;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::error::RefusalContext;
use crate::online::Format;
use crate::output::{Mark, Output, printable};
use crate::{CliError, Exit, OnlineArgs, Session};

pub(super) const REBUILD_EXAMPLES: &str = "\
Examples:
  everbell orgs rebuild org-briefing
  everbell orgs rebuild org-briefing --reason \"after a restore\"
  everbell orgs rebuild org-briefing -o json";

pub(super) const STOP_EXAMPLES: &str = "\
Examples:
  everbell orgs stop org-briefing
  everbell orgs stop org-briefing --reason \"the payload was wrong\"
  everbell orgs stop org-briefing -o json";

#[derive(Debug, Args)]
pub(crate) struct OrgUpdateArgs {
    /// The job: its key or its id.
    #[arg(value_name = "JOB")]
    job: String,
    /// The reason, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn rebuild(args: &OrgUpdateArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let answer = session.client.send(session.client.jobs().rebuild_orgs(&args.job, args.reason.as_deref()));
    let answer = answer.with_action(|| format!("rebuild the timers of job `{}`", args.job)).or_list()?;
    let Some(started) = session.for_people(answer, |started| &started.id)? else { return Ok(Exit::Success) };
    let how = if started.done { "are rebuilt" } else { "are being rebuilt, some orgs at a time" };
    session.done(Mark::Good, &format!("The timers of {} {how}", printable(&args.job)))?;
    Ok(Exit::Success)
}

/// Stops updates that create runs for every org of a job. Succeeds if there are none.
pub(super) fn stop(args: &OrgUpdateArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let jobs = session.client.jobs();
    let action = || format!("stop creating runs for the orgs of job `{}`", args.job);
    let query = JobOrgQuery { limit: Some(1), ..JobOrgQuery::default() };
    let found = session.client.send(jobs.orgs(&args.job, &query)).with_action(action).or_list()?.document;
    let makes_runs =
        |org_update: &&wire::OrgUpdate| matches!(org_update.work, OrgUpdateWork::RunNow | OrgUpdateWork::Backfill);
    let mut stopped: Vec<WithJson<wire::OrgUpdate>> = Vec::new();
    for org_update in found.org_updates.iter().filter(makes_runs) {
        let call = jobs.stop_org_update(&args.job, &org_update.id, args.reason.as_deref());
        match session.client.send(call.read_as()).with_action(action) {
            Ok(answer) => stopped.push(answer.document),
            // It ended meanwhile.
            Err(CliError::Refused(refusal)) if refusal.status() == 404 => {}
            Err(error) => return Err(error),
        }
    }
    match session.format {
        Some(Format::Json) => {
            let items: Vec<&Value> = stopped.iter().map(|org_update| &org_update.json).collect();
            session.out.json(&json!({ "items": items }))?;
        }
        Some(Format::Jsonl) => stopped.iter().try_for_each(|org_update| session.out.json(&org_update.json))?,
        Some(Format::Name) => stopped.iter().try_for_each(|org_update| session.out.line(&org_update.document.id))?,
        Some(Format::Table | Format::Plain) | None => report(&mut session, &args.job, &stopped)?,
    }
    Ok(Exit::Success)
}

fn report(session: &mut Session<'_>, job: &str, stopped: &[WithJson<wire::OrgUpdate>]) -> Result<(), CliError> {
    for WithJson { document: org_update, .. } in stopped {
        let words = format!("Stopped {} of {} after {} orgs", org_update.work, printable(job), org_update.seen);
        session.done(Mark::Ended, &words)?;
    }
    if stopped.is_empty() {
        return session.done(Mark::Good, &format!("No runs are being created for the orgs of {}", printable(job)));
    }
    session.detail("runs that were created stay")
}
