//! Schedules before they are jobs: what an expression means and when it fires, for the command line and the API alike.

mod fires;
mod notes;

use everbell_core::Spec;
use jiff::Timestamp;

pub(crate) use fires::{Fire, GAPS};

use crate::http::model::{PreviewDocument, WarningDocument};

/// What a schedule means and when it fires after `from`; nothing for one that fires once.
pub(crate) fn preview(spec: &Spec, from: Timestamp, count: u16) -> Option<PreviewDocument> {
    let expression = spec.expression()?;
    Some(PreviewDocument {
        valid: true,
        expression: expression.as_str().to_owned(),
        normalized: expression.normalized().to_owned(),
        description: expression.describe(),
        timezone: spec.zone().name().to_owned(),
        next: Fire::after(spec, from, count).into_iter().map(Fire::document).collect(),
        warnings: spec.warnings(from).iter().map(WarningDocument::from).collect(),
    })
}
