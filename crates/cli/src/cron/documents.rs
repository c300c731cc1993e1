//! The JSON of the cron commands, with the names of the API.

use everbell_core::cron::{FieldName, ParseError};
use serde::Serialize;

/// A list without pages.
#[derive(Serialize)]
pub(super) struct Items<T> {
    pub(super) items: Vec<T>,
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
