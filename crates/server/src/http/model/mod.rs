//! The documents of the API: the only place that knows their shapes.

mod backfill;
mod cluster;
mod job;
mod org;
mod org_job;
mod paused;
mod preview;
mod run;
mod what_if;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

pub(crate) use backfill::{BackfillDocument, BackfillReportDocument, StoppedDocument};
pub(crate) use cluster::{
    AuditDocument, InstanceDocument, NewTokenDocument, SessionDocument, TargetDocument, TargetsDocument, TokenDocument,
};
pub(crate) use job::{
    Bulk, BulkItem, ChangedField, Fires, JobDocument, NewVersionDocument, ResumedDocument, Resumption, Schedule,
    StatsDocument, Superseded,
};
pub(crate) use org::{ImportedDocument, OrgDocument};
pub(crate) use org_job::{JobOrgsDocument, OrgJobDocument, OrgOverrideDocument, SweepBegunDocument, SweepDocument};
pub(crate) use paused::PausedDocument;
pub(crate) use preview::{FireDocument, PreviewDocument, WarningDocument};
pub(crate) use run::{
    CanceledDocument, ExplanationDocument, GapDocument, OrgRunDocument, RunDocument, RunNowDocument,
    RunNowOrgsDocument, RunsNowDocument, in_words,
};
pub(crate) use what_if::WhatIfDocument;

/// A part of a list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// Where the next page begins; absent at the end.
    pub(crate) next_cursor: Option<String>,
    /// Ids of rows that could not be read and were left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unreadable: Vec<String>,
}

/// A whole list.
#[derive(Serialize)]
pub(crate) struct Items<T> {
    pub(crate) items: Vec<T>,
}

/// What every error looks like: RFC 9457.
#[derive(ToSchema)]
#[allow(dead_code, reason = "only its shape is wanted; `Problem` writes it")]
pub(crate) struct ProblemDocument {
    /// The page about this kind of problem.
    r#type: String,
    title: String,
    status: u16,
    /// A stable word for programs.
    code: String,
    detail: String,
    /// The request.
    instance: String,
    /// Every fault of the request.
    #[schema(required = false)]
    errors: Vec<FaultDocument>,
}

/// Something that is wrong with a request.
#[derive(ToSchema)]
#[allow(dead_code, reason = "only its shape is wanted; `Problem` writes it")]
pub(crate) struct FaultDocument {
    /// A JSON pointer into the body.
    #[schema(required = false)]
    pointer: String,
    /// A parameter of the query or the path.
    #[schema(required = false)]
    parameter: String,
    /// A header.
    #[schema(required = false)]
    header: String,
    code: String,
    detail: String,
}

/// RFC 3339 in UTC.
pub(super) fn time(at: Timestamp) -> String {
    at.to_string()
}

pub(crate) fn times(at: Option<Timestamp>) -> Option<String> {
    at.map(time)
}

/// Stored JSON in one line, so that a document is one too. Returns `None` if the stored text is not JSON.
pub(super) fn raw(json: &everbell::Json) -> Option<Box<RawValue>> {
    RawValue::from_string(json.to_single_line()).ok()
}

/// Text of JSON as a value.
pub(super) fn parsed(json: Option<&everbell::Json>) -> Option<Value> {
    json.and_then(|json| serde_json::from_str(json.as_str()).ok())
}
