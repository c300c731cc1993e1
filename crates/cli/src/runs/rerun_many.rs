//! `everbell runs rerun` with a filter: all runs that match.

use clap::Args;
use everbell_client::{RerunFilter, RerunRequest};
use everbell_core::Zone;
use everbell_wire as wire;
use everbell_wire::Reruns;
use everbell_wire::bulk::RerunOutcome;
use everbell_wire::run::RunStatus;
use everbell_wire::time_input::TimeReader;

use crate::confirm::confirmed;
use crate::error::{RefusalContext, warn};
use crate::output::{Mark, counted, printable};
use crate::{CliError, Exit, Session};

/// Selects the runs that run again.
#[derive(Debug, Args)]
pub(crate) struct ManyArgs {
    /// Rerun all runs of this job that match.
    #[arg(long, value_name = "KEY", conflicts_with = "run")]
    job: Option<String>,
    /// Rerun all runs of jobs with this label that match.
    #[arg(long, value_name = "NAME[=VALUE]", conflicts_with = "run")]
    label: Option<String>,
    /// Rerun all runs with these statuses that match; default: failed.
    #[arg(long, value_name = "STATUS", value_delimiter = ',', conflicts_with = "run", value_parser = ["succeeded", "failed", "canceled", "skipped"])]
    status: Vec<String>,
    /// Rerun all runs of these targets that match.
    #[arg(long, value_name = "LABEL", value_delimiter = ',', conflicts_with = "run")]
    target: Vec<String>,
    /// Rerun all runs for this org that match.
    #[arg(long, value_name = "ORG", conflicts_with = "run")]
    org: Option<String>,
    /// Rerun all runs that failed with this code and match.
    #[arg(long, value_name = "CODE", conflicts_with = "run")]
    failure_code: Option<String>,
    /// Only runs that were scheduled or requested at or after this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with = "run")]
    from: Option<String>,
    /// Only runs that were scheduled or requested before this time.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with = "run")]
    to: Option<String>,
    /// Include runs already rerun this way in the last 24 hours.
    #[arg(long, conflicts_with = "run")]
    again: bool,
    /// Show which runs would be rerun.
    #[arg(long, conflicts_with_all = ["run", "wait"])]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(short, long, conflicts_with = "run")]
    yes: bool,
}

pub(super) fn run(args: &ManyArgs, reason: Option<String>, session: &mut Session<'_>) -> Result<Exit, CliError> {
    let utc = Zone::utc();
    let times = TimeReader { now: session.now, zone: &utc };
    let time = |flag, text: &Option<String>| text.as_ref().map(|text| times.read(flag, text)).transpose();
    let filter = RerunFilter {
        job_key: args.job.clone(),
        label: args.label.clone(),
        status: args.status.iter().map(|word| RunStatus::from_word(word)).collect(),
        target: args.target.clone(),
        org_id: args.org.clone(),
        failure_code: args.failure_code.clone(),
        from: time("--from", &args.from)?,
        to: time("--to", &args.to)?,
    };
    let mut request = RerunRequest { filter, reason, dry_run: true, again: args.again };
    let action = || "run runs again".to_owned();
    if !args.dry_run {
        let planned = session.client.send(session.client.runs().rerun_many(&request)).with_action(action)?;
        let Reruns { matched, started, .. } = planned.document;
        let runs = counted(started as usize, "run");
        if matched == 0 {
            session.advise("no run matches")?;
            return Ok(Exit::Success);
        }
        let call = "everbell runs rerun --status failed --from TIME --yes";
        if !args.yes && !confirmed(&format!("Run {runs} again?"), call)? {
            return Ok(Exit::Failed);
        }
        request.dry_run = false;
    }
    let answer = session.client.send(session.client.runs().rerun_many(&request)).with_action(action)?;
    let is_refused = |outcome: &RerunOutcome| matches!(outcome, RerunOutcome::Failed | RerunOutcome::Skipped);
    let failed = answer.document.items.iter().any(|item| is_refused(&item.outcome));
    if let Some(reruns) = session.for_people(answer, |_| "")? {
        report(session, &reruns)?;
    }
    Ok(if failed { Exit::Failed } else { Exit::Success })
}

fn report(session: &mut Session<'_>, reruns: &wire::Reruns) -> Result<(), CliError> {
    let verb = if reruns.dry_run { "Would rerun" } else { "Rerunning" };
    let matched = counted(reruns.matched as usize, "run");
    session.done(Mark::Arrow, &format!("{verb} {} of {matched} that match", reruns.started))?;
    for item in &reruns.items {
        let job = printable(item.job_key.as_deref().unwrap_or("-"));
        let detail = item.detail.as_deref().map(printable).unwrap_or_default();
        match (&item.outcome, &item.new_run_id) {
            (RerunOutcome::Failed, _) => {
                session.out.flush()?;
                warn(format!("run {} of {job}: {detail}", item.run_id));
            }
            (RerunOutcome::Skipped, _) => session.detail(&format!("{} of {job}: skipped, {detail}", item.run_id))?,
            (RerunOutcome::AlreadyRerun, _) => {
                session.detail(&format!("{} of {job}: left out, {detail}", item.run_id))?;
            }
            (_, Some(new)) => session.detail(&format!("{} of {job}: run {new}", item.run_id))?,
            (_, None) => session.detail(&format!("{} of {job}, {}", item.run_id, item.scheduled_at))?,
        }
    }
    Ok(())
}
