//! Jobs and orgs together: what an org wants of a job, how they stand, what a move would do.

use everbell::core::org::Override;
use everbell::core::store::JobOrgFilter;
use everbell::{JobKey, OrgId, OverrideWrite, StoreError};
use everbell_core::Zone;

use super::actions::REASON;
use super::questions::of_query;
use crate::form::job::{EXPRESSION, ZONE, expression_fault};
use crate::form::{Fault, Field, Form, Kind as Value, TEXT, optional, required};
use crate::http::call::{Answer, Call, shown};
use crate::http::model::{Items, JobOrgsDocument, OrgJobDocument, OrgOverrideDocument, SweepDocument, WhatIfDocument};
use crate::http::page::{self, CURSOR, LIMIT};
use crate::http::problem::{Kind, Problem};

pub(crate) const OVERRIDE: &[Field] = &[
    optional("enabled", Value::Flag, "Whether the job fires for the org; it does if absent."),
    optional("cronExpression", EXPRESSION, "Another local time than the job's."),
    optional(
        "localTime",
        Value::Text { min: 1, max: 20 },
        "The same in short: `HH:MM` instead of the job's minute and hour.",
    ),
    optional("reason", REASON, "Why, for the audit trail."),
];

pub(crate) const CLEAR: &[Field] = &[optional("reason", REASON, "Why, for the audit trail.")];

pub(crate) const OF_JOB: &[Field] = &[
    optional("text", TEXT, "Id or name of the org contains this, in any case."),
    optional("errored", Value::Flag, "Whether the job cannot fire for it."),
    optional("armed", Value::Flag, "Whether the job has a next fire for it."),
    LIMIT,
    CURSOR,
];

pub(crate) const WHAT_IF: &[Field] = &[
    required("timezone", ZONE, "Where the org would move."),
    optional("count", Value::Integer { min: 1, max: 100 }, "How many fires of each job; 3 if absent."),
];

/// The jobs that fire for orgs, as one sees them.
pub(crate) async fn list(call: Call) -> Result<Answer, Problem> {
    let id = call.org()?;
    let org = call.orgs().get(&id).await?;
    let rows = call.orgs().jobs_of(&id).await?;
    Answer::ok(&Items { items: rows.iter().map(|row| OrgJobDocument::of_org(&org, row)).collect::<Vec<_>>() })
}

/// The orgs, as a job sees them.
pub(crate) async fn of_job(call: Call) -> Result<Answer, Problem> {
    let filter = filter(&call.query(OF_JOB));
    let row = call.jobs().get(call.job()?).await?;
    let id = row.job.definition.id;
    let page = call.orgs().of_job(id, &filter, &page::request(&call)?).await.map_err(of_query)?;
    let sweeps = call.orgs().sweeps().await?;
    let document = JobOrgsDocument {
        items: page.items.iter().map(|own| OrgJobDocument::of_job(&row.job, own)).collect(),
        next_cursor: page::next(&call, page.next.as_ref()),
        unreadable: page.unreadable,
        sweeps: sweeps.iter().filter(|sweep| sweep.job == id).map(SweepDocument::from).collect(),
    };
    let path = format!("/jobs/{}/orgs", page::encoded(call.part("jobId")));
    Ok(page::linked(&call, &path, document.next_cursor.as_deref(), Answer::ok(&document)?))
}

/// Which orgs of a job a query asks for.
pub(crate) fn filter(form: &Form<'_>) -> JobOrgFilter {
    JobOrgFilter {
        text: form.text("text").map(str::to_owned),
        errored: form.answer("errored"),
        armed: form.answer("armed"),
    }
}

pub(crate) async fn get(call: Call) -> Result<Answer, Problem> {
    let (org, key) = named(&call)?;
    answered(&call, &org, &key, None).await
}

pub(crate) async fn put(call: Call) -> Result<Answer, Problem> {
    let (org, job_key) = named(&call)?;
    let mut form = call.body(OVERRIDE);
    if !["enabled", "cronExpression", "localTime"].iter().any(|name| form.has(name)) {
        form.note(Fault::new("", "required", "say `enabled`, `cronExpression` or `localTime`"));
    }
    if form.has("cronExpression") && form.has("localTime") {
        form.fault("localTime", "invalid", "is the same as `cronExpression` in short: say one of them");
    }
    let expression = match form.text("localTime").map(str::to_owned) {
        Some(time) => at_local_time(&call, &job_key, &time, &mut form).await?,
        None => form.text("cronExpression").map(str::to_owned),
    };
    if let Some(Err(error)) = form.text("cronExpression").map(everbell_core::cron::Expression::parse) {
        form.fault("cronExpression", error.code(), expression_fault(&error));
    }
    let faults = std::mem::take(form.faults_mut());
    if !faults.is_empty() {
        return Err(Problem::body(faults));
    }
    let enabled = form.answer("enabled").unwrap_or(true);
    let write = OverrideWrite { job_key: job_key.clone(), enabled, expression };
    let before = call.orgs().jobs_of(&org).await?;
    call.orgs_because(form.text("reason")).set_override(&org, &write).await?;
    let now = call.orgs().fires_now(&org, &before).await?;
    answered(&call, &org, &job_key, Some(now.contains(&job_key))).await
}

pub(crate) async fn delete(call: Call) -> Result<Answer, Problem> {
    let (org, key) = named(&call)?;
    call.orgs_because(call.query(CLEAR).text("reason")).clear_override(&org, &key).await?;
    Ok(Answer::nothing())
}

fn named(call: &Call) -> Result<(OrgId, JobKey), Problem> {
    let name = call.part("jobKey");
    let missing = |_| Problem::new(Kind::NotFound, format!("There is no job `{}`.", shown(name)));
    Ok((call.org()?, JobKey::new(name).map_err(missing)?))
}

/// What the org wants of the job, and how they stand. Neither is nothing.
async fn answered(call: &Call, org: &OrgId, key: &JobKey, fires_now: Option<bool>) -> Result<Answer, Problem> {
    let place = call.orgs().get(org).await?;
    let rows = call.orgs().jobs_of(org).await?;
    let job = rows.iter().find(|row| row.job.definition.key == *key).map(|row| OrgJobDocument::of_org(&place, row));
    let wishes: Vec<Override> = call.orgs().overrides(org).await?;
    let wish = wishes.iter().find(|wish| wish.job_key == *key);
    if job.is_none() && wish.is_none() {
        let detail = format!("There is no job `{key}` that fires for orgs, and org `{org}` overrides none.");
        return Err(Problem::new(Kind::NotFound, detail));
    }
    Answer::ok(&OrgOverrideDocument {
        org_id: org.to_string(),
        job_key: key.to_string(),
        r#override: wish.map(Into::into),
        job,
        fires_now,
    })
}

/// The expression of the job with another minute and hour.
async fn at_local_time(call: &Call, key: &JobKey, time: &str, form: &mut Form<'_>) -> Result<Option<String>, Problem> {
    let Some((hour, minute)) = hour_and_minute(time) else {
        form.fault("localTime", "invalid", "must be a time of the day such as `08:30`, with two digits each");
        return Ok(None);
    };
    let row = match call.jobs().get(key).await {
        Err(StoreError::NotFound { .. }) => {
            let detail = format!("there is no job `{key}` whose expression could be moved: say `cronExpression`");
            form.fault("localTime", "invalid", detail);
            return Ok(None);
        }
        answer => answer?,
    };
    let own = row.job.definition.spec.as_ref().ok().and_then(|spec| spec.expression());
    let moved = own.and_then(|own| with_time(own.as_str(), hour, minute));
    if moved.is_none() {
        let shown = own.map_or_else(|| "no expression".to_owned(), |own| format!("`{own}`"));
        let detail = format!("the job has {shown}, which has no minute and hour to replace: say `cronExpression`");
        form.fault("localTime", "invalid", detail);
    }
    Ok(moved)
}

/// `08:30`.
pub(crate) fn hour_and_minute(text: &str) -> Option<(u8, u8)> {
    let (hour, minute) = text.split_once(':')?;
    let number = |part: &str| part.parse::<u8>().ok().filter(|_| part.len() == 2 && !part.starts_with('+'));
    let (hour, minute) = (number(hour)?, number(minute)?);
    (hour < 24 && minute < 60).then_some((hour, minute))
}

/// An expression of five fields, or of six with seconds, at another time of the day.
pub(crate) fn with_time(expression: &str, hour: u8, minute: u8) -> Option<String> {
    let mut fields: Vec<String> = expression.split_whitespace().map(str::to_owned).collect();
    let first = fields.len().checked_sub(5).filter(|first| *first <= 1)?;
    fields[first] = minute.to_string();
    fields[first + 1] = hour.to_string();
    Some(fields.join(" "))
}

/// What a move to another zone would do. Nothing is written.
pub(crate) async fn what_if(call: Call) -> Result<Answer, Problem> {
    let form = call.query(WHAT_IF);
    let id = call.org()?;
    let org = call.orgs().get(&id).await?;
    let unknown = |error: everbell_core::UnknownZone| {
        Problem::query(vec![Fault::new("/timezone", "unknown_zone", error.to_string())])
    };
    let zone = Zone::get(form.text("timezone").unwrap_or_default()).map_err(unknown)?;
    let count = form.count("count").unwrap_or(3) as usize;
    let told = call.orgs().what_if(&id, zone.name(), count).await?;
    Answer::ok(&WhatIfDocument::of(&org, &zone, &told, call.app.bell.now()))
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
