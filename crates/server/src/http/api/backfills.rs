//! Backfills: runs for slots that have gone by.

use axum::http::StatusCode;
use everbell::{Invalid, JobRow, JobStatus, Scope};
use everbell_core::{BackfillId, Zone};

use super::actions::{ORG, REASON, org_of};
use super::questions::zone_for;
use crate::form::job::time;
use crate::form::{Fault, Field, Kind as Value, optional, required};
use crate::http::call::{Answer, Call, shown};
use crate::http::model::{BackfillDocument, BackfillReportDocument, Items, StoppedDocument};
use crate::http::problem::{Kind, Problem};

pub(crate) const CREATE: &[Field] = &[
    ORG,
    optional("orgs", Value::Word(&["all"]), "For every org, of a job that fires for each."),
    required("from", Value::Time, "The first time; without an offset it is read in the zone of the job or the org."),
    required("to", Value::Time, "The last time; slots that are still to come are left out."),
    optional("reason", REASON, "Why, for the audit trail."),
    optional("dryRun", Value::Flag, "Only tell which slots would get a run; for all orgs, how many."),
];

pub(crate) async fn create(call: Call) -> Result<Answer, Problem> {
    let mut form = call.body(CREATE);
    let job = call.job()?;
    let row = call.jobs().get(&job).await?;
    let org = org_of(&form)?;
    let zone = zone_for(&call, &row, org.as_ref()).await?.unwrap_or_else(Zone::utc);
    let for_all = form.has("orgs");
    if for_all && org.is_some() {
        form.fault("orgs", "invalid", "is for all: say either `orgId` or `orgs`");
    }
    let (from, to) = (time(&mut form, "from", &zone), time(&mut form, "to", &zone));
    let faults: Vec<Fault> = std::mem::take(form.faults_mut());
    let Some((from, to)) = from.zip(to).filter(|_| faults.is_empty()) else { return Err(Problem::body(faults)) };
    if form.flag("dryRun") {
        expect_possible(&row, for_all || org.is_some())?;
    }
    let jobs = call.jobs_because(form.text("reason"));
    if for_all && form.flag("dryRun") {
        let size = jobs.plan_backfill_for_all(&job, from, to).await?;
        return Answer::ok(&BackfillDocument::sized(size, from, to));
    }
    if for_all {
        let begun = jobs.backfill_for_all(&job, from, to).await?;
        return Answer::json(StatusCode::ACCEPTED, &BackfillDocument::of_all(&begun, from, to));
    }
    if form.flag("dryRun") {
        let plan = match &org {
            Some(org) => jobs.plan_backfill_for(&job, org, from, to).await?,
            None => jobs.plan_backfill(&job, from, to).await?,
        };
        return Answer::ok(&BackfillDocument::planned(&plan, from, to));
    }
    let begun = match &org {
        Some(org) => jobs.backfill_for(&job, org, from, to).await?,
        None => jobs.backfill(&job, from, to).await?,
    };
    Answer::json(StatusCode::ACCEPTED, &BackfillDocument::begun(&begun, from, to))
}

/// A plan is no plan if the runs would be refused.
fn expect_possible(row: &JobRow, names_orgs: bool) -> Result<(), Problem> {
    if row.job.state.status == JobStatus::Retired {
        return Err(Invalid::retired().into());
    }
    if row.job.definition.scope == Scope::PerOrg && !names_orgs {
        return Err(Invalid::for_whom().into());
    }
    Ok(())
}

pub(crate) async fn list(call: Call) -> Result<Answer, Problem> {
    let reports = call.jobs().backfills(call.job()?).await?;
    Answer::ok(&Items { items: reports.iter().map(BackfillReportDocument::from).collect::<Vec<_>>() })
}

pub(crate) async fn stop(call: Call) -> Result<Answer, Problem> {
    let name = call.part("backfillId");
    let missing = || Problem::new(Kind::NotFound, format!("There is no backfill `{}`.", shown(name)));
    let id: BackfillId = name.parse().map_err(|_| missing())?;
    let canceled = call.jobs().stop_backfill(call.job()?, id).await?;
    Answer::ok(&StoppedDocument { id: id.to_string(), canceled })
}
