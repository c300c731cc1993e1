//! Jobs of orgs: overrides, status and previews of moves.

use everbell::client::freeze_at;
use everbell::core::org::Override;
use everbell::core::store::JobOrgFilter;
use everbell::{JobKey, OrgId, OverrideWrite, StoreError};
use everbell_core::freeze::Freeze;
use everbell_core::{Definition, Zone};
use everbell_wire as wire;

use super::actions::REASON;
use super::job_history::query_problem;
use crate::convert;
use crate::excerpt::excerpt;
use crate::page::{self, CURSOR, LIMIT};
use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResponse};
use everbell_wire::FaultCode;
use everbell_wire::body::job::{EXPRESSION, ZONE, expression_fault};
use everbell_wire::form::{Fault, Field, Form, Kind as Value, TEXT, optional, required};

pub(crate) const OVERRIDE: &[Field] = &[
    optional("enabled", Value::Flag, "Whether the job fires for the org. Default: true."),
    optional("cronExpression", EXPRESSION, "The cron expression for this org instead of the job's."),
    optional(
        "localTime",
        Value::Text { min: 1, max: 20 },
        "A short form of `cronExpression`: `HH:MM` replaces the hour and minute of the job's expression.",
    ),
    optional("reason", REASON, "The reason, for the audit trail."),
];

pub(crate) const CLEAR: &[Field] = &[optional("reason", REASON, "The reason, for the audit trail.")];

/// The query of the list of a job's orgs.
pub const OF_JOB: &[Field] = &[
    optional("text", TEXT, "Only orgs whose id or name contains this text, ignoring case."),
    optional("errored", Value::Flag, "Only orgs that the job cannot fire for because of an error, or only the others."),
    optional("armed", Value::Flag, "Only orgs that the job has a next run for, or only the others."),
    LIMIT,
    CURSOR,
];

pub(crate) const WHAT_IF: &[Field] = &[
    required("timezone", ZONE, "The IANA time zone that the org would move to."),
    optional("count", Value::Integer { min: 1, max: 100 }, "How many times to list for each job. Default: 3."),
];

/// The jobs that fire for orgs, as one sees them.
pub async fn list(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let id = request.org()?;
    let org = request.orgs().get(&id).await?;
    let (rows, freezes) = (request.orgs().jobs_of(&id).await?, request.freezes().list().await?);
    let document = |row| frozen_next(wire::OrgJob::from_org(&org, row), &row.job.definition, &freezes);
    ApiResponse::ok(&wire::Items { items: rows.iter().map(document).collect::<Vec<_>>() })
}

/// The orgs, as a job sees them.
pub async fn of_job(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let filter = filter(&request.query(OF_JOB));
    let row = request.jobs().get(request.job()?).await?;
    let id = row.job.definition.id;
    let page = request.orgs().of_job(id, &filter, &page::from_query(&request)?).await.map_err(query_problem)?;
    let org_updates = request.orgs().org_updates().await?;
    let freezes = request.freezes().list().await?;
    let item = |own| frozen_next(wire::OrgJob::from_job(&row.job, own), &row.job.definition, &freezes);
    let document = wire::JobOrgs {
        items: page.items.iter().map(item).collect(),
        next_cursor: page::next(&request, page.next.as_ref()),
        unreadable: page.unreadable,
        org_updates: org_updates.iter().filter(|org_update| org_update.job == id).map(wire::OrgUpdate::from).collect(),
    };
    let path = format!("/jobs/{}/orgs", page::encoded(request.part("jobId")));
    Ok(page::linked(&request, &path, document.next_cursor.as_deref(), ApiResponse::ok(&document)?))
}

/// The job with the freeze that keeps it from firing at its next time for the org, if there is one.
fn frozen_next(document: wire::OrgJob, job: &Definition, freezes: &[Freeze]) -> wire::OrgJob {
    let freeze = document.next_run_at.and_then(|at| freeze_at(freezes, job, at));
    document.frozen_by(freeze)
}

/// Reads the filter of a query.
pub fn filter(form: &Form<'_>) -> JobOrgFilter {
    JobOrgFilter {
        text: form.text("text").map(str::to_owned),
        errored: form.answer("errored"),
        armed: form.answer("armed"),
    }
}

pub(crate) async fn get(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let (org, key) = named(&request)?;
    override_response(&request, &org, &key, None).await
}

pub(crate) async fn put(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let (org, job_key) = named(&request)?;
    let mut form = request.body(OVERRIDE);
    if !["enabled", "cronExpression", "localTime"].iter().any(|name| form.has(name)) {
        form.note(Fault::new(
            "",
            FaultCode::Required,
            "one of `enabled`, `cronExpression` and `localTime` is required",
        ));
    }
    if form.has("cronExpression") && form.has("localTime") {
        form.fault("localTime", FaultCode::Invalid, "cannot be combined with `cronExpression`");
    }
    let expression = match form.text("localTime").map(str::to_owned) {
        Some(time) => at_local_time(&request, &job_key, &time, &mut form).await?,
        None => form.text("cronExpression").map(str::to_owned),
    };
    if let Some(Err(error)) = form.text("cronExpression").map(everbell_core::cron::Expression::parse) {
        form.fault("cronExpression", FaultCode::from(&error), expression_fault(&error));
    }
    let faults = std::mem::take(form.faults_mut());
    if !faults.is_empty() {
        return Err(Problem::body(faults));
    }
    let enabled = form.answer("enabled").unwrap_or(true);
    let write = OverrideWrite { job_key: job_key.clone(), enabled, expression };
    let before = request.orgs().jobs_of(&org).await?;
    request.orgs_because(form.text("reason")).set_override(&org, &write).await?;
    let now = request.orgs().fires_now(&org, &before).await?;
    override_response(&request, &org, &job_key, Some(now.contains(&job_key))).await
}

pub(crate) async fn delete(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let (org, key) = named(&request)?;
    request.orgs_because(request.query(CLEAR).text("reason")).clear_override(&org, &key).await?;
    Ok(ApiResponse::nothing())
}

fn named(request: &ApiRequest) -> Result<(OrgId, JobKey), Problem> {
    let name = request.part("jobKey");
    let missing = |_| Problem::not_found("job", &excerpt(name));
    Ok((request.org()?, JobKey::new(name).map_err(missing)?))
}

/// Responds with the override and its effect. Fails if the org has no override of the key and there is no such job.
async fn override_response(
    request: &ApiRequest,
    org: &OrgId,
    key: &JobKey,
    fires_now: Option<bool>,
) -> Result<ApiResponse, Problem> {
    let org_record = request.orgs().get(org).await?;
    let rows = request.orgs().jobs_of(org).await?;
    let job =
        rows.iter().find(|row| row.job.definition.key == *key).map(|row| wire::OrgJob::from_org(&org_record, row));
    let all: Vec<Override> = request.orgs().overrides(org).await?;
    let override_ = all.iter().find(|one| one.job_key == *key);
    if job.is_none() && override_.is_none() {
        let detail = format!("There is no per-org job `{key}`, and org `{org}` has no override of it.");
        return Err(Problem::new(Kind::NotFound, detail).with("subject", "job").with("name", key.as_str()));
    }
    ApiResponse::ok(&wire::OrgOverride {
        org_id: org.to_string(),
        job_key: key.to_string(),
        r#override: override_.map(Into::into),
        job,
        fires_now,
    })
}

/// The expression of the job with another minute and hour.
async fn at_local_time(
    request: &ApiRequest,
    key: &JobKey,
    time: &str,
    form: &mut Form<'_>,
) -> Result<Option<String>, Problem> {
    let Some((hour, minute)) = hour_and_minute(time) else {
        form.fault("localTime", FaultCode::Invalid, "must be a time of day such as `08:30`");
        return Ok(None);
    };
    let row = match request.jobs().get(key).await {
        Err(StoreError::NotFound { .. }) => {
            let detail = format!("there is no job `{key}` to take the expression from; send `cronExpression` instead");
            form.fault("localTime", FaultCode::Invalid, detail);
            return Ok(None);
        }
        result => result?,
    };
    let own = row.job.definition.spec.as_ref().ok().and_then(|spec| spec.expression());
    let moved = own.and_then(|own| with_time(own.as_str(), hour, minute));
    if moved.is_none() {
        let shown = own.map_or_else(|| "no expression".to_owned(), |own| format!("`{own}`"));
        let detail =
            format!("the job has {shown}, which has no minute and hour to replace; send `cronExpression` instead");
        form.fault("localTime", FaultCode::Invalid, detail);
    }
    Ok(moved)
}

/// `08:30`.
pub fn hour_and_minute(text: &str) -> Option<(u8, u8)> {
    let (hour, minute) = text.split_once(':')?;
    let number = |part: &str| part.parse::<u8>().ok().filter(|_| part.len() == 2 && !part.starts_with('+'));
    let (hour, minute) = (number(hour)?, number(minute)?);
    (hour < 24 && minute < 60).then_some((hour, minute))
}

/// An expression of five fields, or of six with seconds, at another time of the day.
pub fn with_time(expression: &str, hour: u8, minute: u8) -> Option<String> {
    let mut fields: Vec<String> = expression.split_whitespace().map(str::to_owned).collect();
    let first = fields.len().checked_sub(5).filter(|first| *first <= 1)?;
    fields[first] = minute.to_string();
    fields[first + 1] = hour.to_string();
    Some(fields.join(" "))
}

/// Previews a move to another time zone. Nothing is written.
pub async fn what_if(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.query(WHAT_IF);
    let id = request.org()?;
    let org = request.orgs().get(&id).await?;
    let unknown = |error: everbell_core::UnknownZone| {
        Problem::query(vec![Fault::new("/timezone", FaultCode::UnknownZone, error.to_string())])
    };
    let zone = Zone::get(form.text("timezone").unwrap_or_default()).map_err(unknown)?;
    let count = form.count("count").unwrap_or(3) as usize;
    let jobs = request.orgs().what_if(&id, zone.name(), count).await?;
    ApiResponse::ok(&convert::what_if(&org, &zone, &jobs, request.app.bell.now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_time_replaces_minute_and_hour_and_nothing_else() {
        assert_eq!(with_time("0 8 * * mon-fri", 9, 30).as_deref(), Some("30 9 * * mon-fri"));
        assert_eq!(with_time("15  */5 */2 1 * *", 0, 0).as_deref(), Some("15 0 0 1 * *"));
        for none in ["@daily", "@every 90s", "* * * *", ""] {
            assert_eq!(with_time(none, 9, 30), None, "{none}");
        }
        assert_eq!((hour_and_minute("08:05"), hour_and_minute("23:59")), (Some((8, 5)), Some((23, 59))));
        for none in ["24:00", "8:05", "08:60", "08-05", "+8:05", "08:5", ""] {
            assert_eq!(hour_and_minute(none), None, "{none}");
        }
    }
}
