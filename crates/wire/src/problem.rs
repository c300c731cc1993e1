//! Errors, as RFC 9457 describes them.

use everbell_core::cron::ParseError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Run;
use crate::access::Role;
use crate::run::RunStatus;
use crate::words::words;

words!(
    /// The code of a kind of problem.
    ProblemCode {
        /// A field, a parameter or a header is not valid.
        InvalidInput = "InvalidInput",
        /// The body is not valid JSON.
        MalformedJson = "MalformedJson",
        /// A token or session is missing or unknown.
        Unauthenticated = "Unauthenticated",
        /// The caller lacks the required role.
        Forbidden = "Forbidden",
        /// The object does not exist.
        NotFound = "NotFound",
        /// The path has no such method.
        MethodNotAllowed = "MethodNotAllowed",
        /// The request took too long to arrive.
        RequestTimeout = "RequestTimeout",
        /// The object is in a state that does not allow the request.
        Conflict = "Conflict",
        /// A job with this key already exists.
        JobKeyExists = "JobKeyExists",
        /// An active run keeps another from starting.
        OverlapSkipped = "OverlapSkipped",
        /// The job is retired.
        JobRetired = "JobRetired",
        /// The job has reached its limit of pending runs.
        TooManyPendingRuns = "TooManyPendingRuns",
        /// The first request with this idempotency key is still in progress.
        IdempotencyInProgress = "IdempotencyInProgress",
        /// The object is no longer at the revision of `If-Match`.
        RevisionMismatch = "RevisionMismatch",
        /// The body is too large.
        PayloadTooLarge = "PayloadTooLarge",
        /// The body has a media type that the route does not accept.
        UnsupportedMediaType = "UnsupportedMediaType",
        /// The request names another host.
        Misdirected = "Misdirected",
        /// The idempotency key belongs to another request.
        IdempotencyKeyReused = "IdempotencyKeyReused",
        /// `If-Match` is missing.
        PreconditionRequired = "PreconditionRequired",
        /// The caller sent too many requests.
        RateLimited = "RateLimited",
        /// The server failed.
        Internal = "Internal",
        /// The server or its database is not available.
        NotReady = "NotReady",
    }
);

/// The code of an answer without one, as a proxy may send it.
impl Default for ProblemCode {
    fn default() -> ProblemCode {
        ProblemCode::Other(String::new())
    }
}

words!(
    /// The kind of a fault: of a member, a parameter or a header.
    FaultCode {
        /// The value is not allowed; `detail` says what is.
        Invalid = "invalid",
        /// It is required and missing.
        Required = "required",
        /// The value has another type.
        WrongType = "wrong_type",
        /// The value is too small, too large, too short or too long.
        OutOfRange = "out_of_range",
        /// No member or parameter has this name here.
        UnknownField = "unknown_field",
        /// No IANA time zone has this name.
        UnknownZone = "unknown_zone",
        /// No live instance serves this target.
        UnknownTarget = "unknown_target",
        /// The object does not exist.
        NotFound = "not_found",
        /// The text is not valid JSON.
        Malformed = "malformed",
        /// The member occurs twice.
        Duplicate = "duplicate",
        /// It contradicts another member.
        Conflict = "conflict",
        /// The name belongs to another object.
        Taken = "taken",
        /// The cron expression is empty.
        Empty = "empty",
        /// The cron expression is too long.
        TooLong = "too_long",
        /// The cron expression has too few or too many fields.
        FieldCount = "field_count",
        /// The cron expression names an unknown month or weekday.
        UnknownName = "unknown_name",
        /// The cron expression has a character that does not belong there.
        Unexpected = "unexpected",
        /// A value of the cron expression is missing.
        MissingValue = "missing_value",
        /// A step of the cron expression is not valid.
        BadStep = "bad_step",
        /// The count after `#` is not valid.
        BadCount = "bad_count",
        /// A part of the cron expression belongs in another field.
        Misplaced = "misplaced",
        /// No macro has this name.
        UnknownMacro = "unknown_macro",
        /// The interval of `@every` is not valid.
        BadInterval = "bad_interval",
        /// The cron expression never fires.
        NeverFires = "never_fires",
    }
);

impl Default for FaultCode {
    fn default() -> FaultCode {
        FaultCode::Other(String::new())
    }
}

impl From<&ParseError> for FaultCode {
    fn from(error: &ParseError) -> FaultCode {
        let code = FaultCode::from_word(error.code());
        debug_assert!(!matches!(code, FaultCode::Other(_)), "`{}` is not a fault code", error.code());
        code
    }
}

/// The response to a request that failed.
///
/// RFC 9457 requires no member, and a proxy may respond in place of the server: a client treats absent members as empty.
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
    /// A stable word for programs.
    #[serde(default)]
    #[schema(required = true)]
    pub code: ProblemCode,
    /// The cause of this problem, and how to fix it.
    #[serde(default)]
    #[schema(required = true)]
    pub detail: String,
    /// The id of the request, which is also in the server's log.
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
    pub needed_role: Option<Role>,
    /// With `OverlapSkipped`: the skipped run that was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub run: Option<Box<Run>>,
    /// With `OverlapSkipped`: the active run that caused the skip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false, nullable = false)]
    pub active_run: Option<Box<Run>>,
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
    /// A stable word for programs.
    pub code: ProblemCode,
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
    pub code: FaultCode,
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
