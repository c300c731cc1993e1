//! Schedules before they are jobs, and templates for them.

use everbell::{DstFold, DstGap};
use everbell_core::calendar::{CalendarNames, CalendarRules, Roll};
use everbell_core::cron::{Dst, Expression};
use everbell_core::freeze::Freeze;
use everbell_core::{Spec, SpecError, Zone};
use everbell_wire as wire;

use crate::problem::Problem;
use crate::request::{ApiRequest, ApiResponse};
use everbell_wire::FaultCode;
use everbell_wire::body::job::time;
use everbell_wire::form::{Field, Form, Kind as Value, optional, required};
use everbell_wire::policies::{CALENDAR, DST};

pub(crate) const PREVIEW: &[Field] = &[
    required("cronExpression", Value::Text { min: 1, max: 1_000 }, "The expression."),
    optional("timezone", Value::Text { min: 1, max: 100 }, "The IANA time zone of the expression. Default: UTC."),
    optional("from", Value::Time, "List times after this one. Default: now."),
    optional("count", Value::Integer { min: 1, max: 1_000 }, "How many times to list. Default: 10."),
    optional("startAt", Value::Time, "The schedule does not fire before this time."),
    optional("endAt", Value::Time, "The schedule does not fire after this time."),
    optional("dst", Value::Component("DstInput", DST), "How changes to and from daylight saving time are treated."),
    optional("calendar", Value::Component("CalendarRulesInput", CALENDAR), "Calendars that limit the days."),
];

pub(crate) async fn show(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let mut form = request.body(PREVIEW);
    let zone = form.text("timezone").map(Zone::get).transpose();
    let zone = zone.map_err(|error| form.fault("timezone", FaultCode::UnknownZone, error.to_string())).ok().flatten();
    let zone = zone.unwrap_or_else(Zone::utc);
    let now = request.app.bell.now();
    let from = time(&mut form, "from", &zone).unwrap_or(now);
    let (start_at, end_at) = (time(&mut form, "startAt", &zone), time(&mut form, "endAt", &zone));
    let dst = Dst {
        gap: form.word("dst.gap", DstGap::from_word).unwrap_or_default(),
        fold: form.word("dst.fold", DstFold::from_word).unwrap_or_default(),
    };
    let count = form.count("count").and_then(|count| u16::try_from(count).ok()).unwrap_or(10);
    let rules = calendars(&request, &mut form).await?;
    let expression = form.text("cronExpression").map(Expression::parse);
    let spec = match expression {
        Some(Ok(expression)) => {
            let spec = Spec::recurring(expression, zone, from)
                .with_dst(dst)
                .with_calendars(&rules)
                .with_bounds(start_at, end_at);
            spec.map_err(|error| match &error {
                SpecError::OutOfRange(field) => form.fault(field, FaultCode::OutOfRange, error.to_string()),
                SpecError::EmptyBounds => form.fault("endAt", FaultCode::Invalid, error.to_string()),
            })
            .ok()
        }
        Some(Err(error)) => {
            form.fault("cronExpression", FaultCode::from(&error), everbell_wire::body::job::expression_fault(&error));
            None
        }
        None => None,
    };
    let faults = form.faults();
    match spec.and_then(|spec| wire::Preview::new(&spec, from, count)).filter(|_| faults.is_empty()) {
        Some(mut document) => {
            let freezes = request.freezes().list().await?;
            document.next = document.next.into_iter().map(|fire| frozen(fire, &freezes)).collect();
            ApiResponse::ok(&document)
        }
        None => Err(Problem::body(faults)),
    }
}

/// The fire with the freeze of all jobs that keeps it from happening. A schedule alone has no labels, so those of labels
/// say nothing about it.
fn frozen(fire: wire::Fire, freezes: &[Freeze]) -> wire::Fire {
    let covers = |freeze: &&Freeze| freeze.label.is_none() && freeze.span().is_some_and(|span| span.contains(fire.at));
    let freeze = freezes.iter().filter(covers).max_by_key(|freeze| freeze.ends_at);
    fire.frozen_by(freeze)
}

/// The named calendars with their days. A name that is unknown is a fault.
async fn calendars(request: &ApiRequest, form: &mut Form<'_>) -> Result<CalendarRules, Problem> {
    let names = |path: &str| form.list(path).into_iter().map(str::to_owned).collect::<Vec<_>>();
    let unresolved = CalendarRules::from_names(&CalendarNames {
        exclude: names("calendar.exclude"),
        only: names("calendar.only"),
        roll: form.word("calendar.roll", Roll::from_word).unwrap_or_default(),
    });
    let resolved = match unresolved {
        Ok(rules) if rules.is_empty() => return Ok(rules),
        Ok(rules) => {
            let all = request.calendars().list().await?;
            rules.resolved(&all.into_iter().map(|stored| stored.calendar).collect::<Vec<_>>()).map_err(|one| vec![one])
        }
        Err(problems) => Err(problems),
    };
    Ok(resolved.unwrap_or_else(|problems| {
        for problem in problems {
            form.fault(problem.field.trim_start_matches("policies."), FaultCode::Invalid, problem.reason);
        }
        CalendarRules::default()
    }))
}

/// Lists the cron expression templates.
pub(crate) async fn templates(request: ApiRequest) -> Result<ApiResponse, Problem> {
    ApiResponse::ok(&wire::Items { items: request.app.options().templates.clone() })
}
