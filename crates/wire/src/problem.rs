//! Errors, as RFC 9457 describes them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Run;
use crate::run::RunStatus;

/// The answer to a request that failed.
///
/// RFC 9457 requires no member, and a proxy may answer in place of the server: a reader takes absent members as empty.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The page that describes this kind of problem.
    #[serde(default)]
    #[schema(required = true)]
    pub r#type: String,
    /// The kind of problem, in words.
    #[serde(default)]
    #[schema(required = true)]
    pub title: String,
    /// The HTTP status.
    #[serde(default)]
    #[schema(required = true)]
    pub status: u16,
    /// A stable word for programs, such as `NotFound`.
    #[serde(default)]
    #[schema(required = true)]
    pub code: String,
    /// The cause of this problem, and how to fix it.
    #[serde(default)]
    #[schema(required = true)]
    pub detail: String,
    /// The id of the request, which also is in the server's log.
    #[serde(default)]
    #[schema(required = true)]
    pub instance: String,
    /// Every fault of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<Fault>,
    /// With `NotFound`: the kind of object that is missing, such as `job` or `org`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub subject: Option<String>,
    /// With `NotFound`: the name of the object that is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub name: Option<String>,
    /// With `JobKeyExists`: the version that has the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub job_id: Option<String>,
    /// With `Conflict` about a run: its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub run_status: Option<RunStatus>,
    /// With `Forbidden`: the role that the request needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub needed_role: Option<String>,
    /// With `OverlapSkipped`: the skipped run that was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub run: Option<Box<Run>>,
    /// With `OverlapSkipped`: the active run because of which it was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub active_run: Option<Box<Run>>,
}

impl Problem {
    /// The code of a problem about an object that does not exist.
    pub const NOT_FOUND: &str = "NotFound";
    /// The code of a problem about a run that was skipped because another one is active.
    pub const OVERLAP_SKIPPED: &str = "OverlapSkipped";
}

/// The page of a kind of problem.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ProblemKind {
    /// The address of this page, which is the `type` of such problems.
    pub r#type: String,
    /// The kind of problem, in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// A stable word for programs, such as `NotFound`.
    pub code: String,
    /// How to avoid it.
    pub help: String,
}

/// One fault of a request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Fault {
    /// A JSON pointer into the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub pointer: Option<String>,
    /// A parameter of the query or the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub parameter: Option<String>,
    /// A header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub header: Option<String>,
    /// A stable word for programs.
    #[serde(default)]
    #[schema(required = true)]
    pub code: String,
    /// The fault, and what is allowed.
    #[serde(default)]
    #[schema(required = true)]
    pub detail: String,
}

impl Fault {
    /// The pointer, parameter or header that is wrong; empty if the fault is about the whole request.
    pub fn location(&self) -> &str {
        [&self.pointer, &self.parameter, &self.header].into_iter().find_map(Option::as_deref).unwrap_or_default()
    }
}
