//! Schedules before they are jobs, and templates for them.

use everbell::{DstFold, DstGap};
use everbell_core::cron::{Dst, Expression};
use everbell_core::{Spec, SpecError, Zone};
use serde::Serialize;
use utoipa::ToSchema;

use crate::config;
use crate::form::job::{DST, time};
use crate::form::{Field, Kind as Value, optional, required};
use crate::http::call::{Answer, Call};
use crate::http::model::Items;
use crate::http::problem::Problem;
use crate::preview::preview;

pub(crate) const PREVIEW: &[Field] = &[
    required("cronExpression", Value::Text { min: 1, max: 1_000 }, "The expression."),
    optional("timezone", Value::Text { min: 1, max: 100 }, "The IANA time zone in which it is read; UTC if absent."),
    optional("from", Value::Time, "Fires after this; now if absent."),
    optional("count", Value::Integer { min: 1, max: 1_000 }, "How many fires; 10 if absent."),
    optional("startAt", Value::Time, "No fire before this."),
    optional("endAt", Value::Time, "No fire after this."),
    optional("dst", Value::Object(DST), "What happens when clocks change."),
];

pub(crate) async fn show(call: Call) -> Result<Answer, Problem> {
    let mut form = call.body(PREVIEW);
    let zone = form.text("timezone").map(Zone::get).transpose();
    let zone = zone.map_err(|error| form.fault("timezone", "unknown_zone", error.to_string())).ok().flatten();
    let zone = zone.unwrap_or_else(Zone::utc);
    let now = call.app.bell.now();
    let from = time(&mut form, "from", &zone).unwrap_or(now);
    let (start_at, end_at) = (time(&mut form, "startAt", &zone), time(&mut form, "endAt", &zone));
    let dst = Dst {
        gap: form.word("dst.gap", DstGap::from_word).unwrap_or_default(),
        fold: form.word("dst.fold", DstFold::from_word).unwrap_or_default(),
    };
    let count = form.count("count").and_then(|count| u16::try_from(count).ok()).unwrap_or(10);
    let expression = form.text("cronExpression").map(Expression::parse);
    let spec = match expression {
        Some(Ok(expression)) => {
            let spec = Spec::recurring(expression, zone, from).with_dst(dst).with_bounds(start_at, end_at);
            spec.map_err(|error| match &error {
                SpecError::OutOfRange(field) => form.fault(field, "out_of_range", error.to_string()),
                SpecError::EmptyBounds => form.fault("endAt", "invalid", error.to_string()),
            })
            .ok()
        }
        Some(Err(error)) => {
            form.fault("cronExpression", error.code(), crate::form::job::expression_fault(&error));
            None
        }
        None => None,
    };
    let faults = form.faults();
    match spec.and_then(|spec| preview(&spec, from, count)).filter(|_| faults.is_empty()) {
        Some(document) => Answer::ok(&document),
        None => Err(Problem::body(faults)),
    }
}

/// A named expression to begin with.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Template {
    pub(crate) name: String,
    pub(crate) cron_expression: String,
    pub(crate) description: String,
}

pub(crate) async fn templates(call: Call) -> Result<Answer, Problem> {
    let shown = |template: &config::Template| Template {
        name: template.name.clone(),
        cron_expression: template.cron_expression.clone(),
        description: template.description.clone(),
    };
    Answer::ok(&Items { items: call.app.options.templates.iter().map(shown).collect::<Vec<_>>() })
}
