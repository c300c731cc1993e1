//! The JSON of the cron commands, with the names of the API.

use everbell_core::cron::{FieldName, ParseError, Warning};
use jiff::Timestamp;
use serde::Serialize;

/// A list; there is never a second page.
#[derive(Serialize)]
pub(super) struct Items<T> {
    pub(super) items: Vec<T>,
}

#[derive(Serialize)]
pub(super) struct FireDocument {
    pub(super) at: String,
    pub(super) local: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WarningDocument {
    code: &'static str,
    detail: String,
    local_date: Option<String>,
    at: Option<String>,
}

#[derive(Serialize)]
pub(super) struct ErrorDocument {
    code: &'static str,
    field: Option<&'static str>,
    /// The bytes at fault are `start..end` of the expression.
    start: usize,
    end: usize,
    detail: String,
    allowed: &'static str,
    hint: Option<&'static str>,
}

impl From<&Warning> for WarningDocument {
    fn from(warning: &Warning) -> Self {
        WarningDocument {
            code: warning.code.as_str(),
            detail: warning.detail.clone(),
            local_date: warning.local_date.map(|date| date.to_string()),
            at: warning.at.as_ref().map(Timestamp::to_string),
        }
    }
}

impl From<&ParseError> for ErrorDocument {
    fn from(error: &ParseError) -> Self {
        ErrorDocument {
            code: error.code(),
            field: error.field.map(FieldName::as_str),
            start: error.span.start,
            end: error.span.end,
            detail: error.to_string(),
            allowed: error.allowed(),
            hint: error.hint(),
        }
    }
}
