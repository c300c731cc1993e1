//! All kinds of problems and their documentation.

use everbell_wire::ProblemCode;

/// The kind of a problem: a stable code for programs, each with its own documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A field, a parameter or a header is not valid.
    InvalidInput,
    /// The body is not valid JSON.
    MalformedJson,
    /// A token or session is missing or unknown.
    Unauthenticated,
    /// The caller lacks the required role.
    Forbidden,
    /// The object does not exist.
    NotFound,
    /// The path has no such method.
    MethodNotAllowed,
    /// The request took too long to arrive.
    RequestTimeout,
    /// The object is in a state that does not allow the request.
    Conflict,
    /// A job with this key already exists.
    JobKeyExists,
    /// An active run keeps another from starting.
    OverlapSkipped,
    /// The job is retired.
    JobRetired,
    /// The job has reached its limit of pending runs.
    TooManyPendingRuns,
    /// The first request with this idempotency key is still in progress.
    IdempotencyInProgress,
    /// The job is no longer at the revision of `If-Match`.
    RevisionMismatch,
    /// The body is too large.
    PayloadTooLarge,
    /// The body has a media type that the route does not accept.
    UnsupportedMediaType,
    /// The request names another host.
    Misdirected,
    /// The idempotency key belongs to another request.
    IdempotencyKeyReused,
    /// `If-Match` is missing.
    PreconditionRequired,
    /// The caller sent too many requests.
    RateLimited,
    /// The server failed.
    Internal,
    /// The server or its database is not available.
    NotReady,
}

/// The documentation of a kind.
pub struct About {
    /// The kind of problem.
    pub kind: Kind,
    /// The last part of its `type`.
    pub slug: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// The stable word for programs.
    pub code: ProblemCode,
    /// A short title for people.
    pub title: &'static str,
    /// An explanation with what to do.
    pub help: &'static str,
}

const fn row(
    kind: Kind,
    status: u16,
    slug: &'static str,
    code: ProblemCode,
    title: &'static str,
    help: &'static str,
) -> About {
    About { kind, slug, status, code, title, help }
}

/// Every kind, in the order of their statuses.
pub static CATALOG: [About; 22] = [
    row(
        Kind::InvalidInput,
        400,
        "invalid-input",
        ProblemCode::InvalidInput,
        "The request is invalid",
        "`errors` lists every invalid member or parameter and the allowed values. Nothing was changed.",
    ),
    row(
        Kind::MalformedJson,
        400,
        "malformed-json",
        ProblemCode::MalformedJson,
        "The body is not valid JSON",
        "`detail` gives the position of the syntax error. Nothing was changed.",
    ),
    row(
        Kind::Unauthenticated,
        401,
        "unauthenticated",
        ProblemCode::Unauthenticated,
        "Authentication required",
        "Send a valid token as `Authorization: Bearer evb_…`. On its first start the server writes an admin token to its data folder.",
    ),
    row(
        Kind::Forbidden,
        403,
        "forbidden",
        ProblemCode::Forbidden,
        "Permission denied",
        "`detail` names the required role. An admin can create a token with that role.",
    ),
    row(
        Kind::NotFound,
        404,
        "not-found",
        ProblemCode::NotFound,
        "Not found",
        "Check the path. A job is identified by its id, `key:NAME` or `key:NAME@VERSION`.",
    ),
    row(
        Kind::MethodNotAllowed,
        405,
        "method-not-allowed",
        ProblemCode::MethodNotAllowed,
        "Method not allowed",
        "The `Allow` header lists the supported methods.",
    ),
    row(
        Kind::RequestTimeout,
        408,
        "request-timeout",
        ProblemCode::RequestTimeout,
        "Request timeout",
        "Send the whole body within 30 seconds. Nothing was changed.",
    ),
    row(
        Kind::Conflict,
        409,
        "conflict",
        ProblemCode::Conflict,
        "The current state does not allow this request",
        "Read the current state and try again.",
    ),
    row(
        Kind::JobKeyExists,
        409,
        "job-key-exists",
        ProblemCode::JobKeyExists,
        "A job with this key already exists",
        "Create a new version of it, or retire it first. `jobId` is its current version.",
    ),
    row(
        Kind::OverlapSkipped,
        409,
        "overlap-skipped",
        ProblemCode::OverlapSkipped,
        "Another run of this job is active",
        "`run` is the run that was recorded as skipped, `activeRun` is the active run. Set `queue` to wait for it, or `force` to run anyway.",
    ),
    row(
        Kind::JobRetired,
        409,
        "job-retired",
        ProblemCode::JobRetired,
        "The job is retired",
        "Retiring is final. Create a new job with the same key: it continues with the next version.",
    ),
    row(
        Kind::TooManyPendingRuns,
        409,
        "too-many-pending-runs",
        ProblemCode::TooManyPendingRuns,
        "The job has too many unfinished runs",
        "`detail` gives the number of runs and the limit. Nothing was changed. Wait until some runs have ended, or cancel them.",
    ),
    row(
        Kind::IdempotencyInProgress,
        409,
        "idempotency-in-progress",
        ProblemCode::IdempotencyInProgress,
        "A request with this key is in progress",
        "Send the same request again later to get the response of the first one.",
    ),
    row(
        Kind::RevisionMismatch,
        412,
        "revision-mismatch",
        ProblemCode::RevisionMismatch,
        "The resource has changed since it was read",
        "Read it again and send its new `ETag` as `If-Match`.",
    ),
    row(
        Kind::PayloadTooLarge,
        413,
        "payload-too-large",
        ProblemCode::PayloadTooLarge,
        "The body is too large",
        "The limit is 1 MiB, or 16 MiB for JSON lines.",
    ),
    row(
        Kind::UnsupportedMediaType,
        415,
        "unsupported-media-type",
        ProblemCode::UnsupportedMediaType,
        "Unsupported content type",
        "Send `Content-Type: application/json`, or the content type that `detail` names.",
    ),
    row(
        Kind::Misdirected,
        421,
        "misdirected",
        ProblemCode::Misdirected,
        "Unknown host",
        "Use `localhost` or a loopback address, or configure a metrics token.",
    ),
    row(
        Kind::IdempotencyKeyReused,
        422,
        "idempotency-key-reused",
        ProblemCode::IdempotencyKeyReused,
        "The idempotency key was used for another request",
        "An `Idempotency-Key` identifies one request with one body. Use another key.",
    ),
    row(
        Kind::PreconditionRequired,
        428,
        "precondition-required",
        ProblemCode::PreconditionRequired,
        "If-Match is required",
        "This server requires the revision of the job for every change. Send its `ETag` as `If-Match`.",
    ),
    row(
        Kind::RateLimited,
        429,
        "rate-limited",
        ProblemCode::RateLimited,
        "Too many requests",
        "`Retry-After` gives the number of seconds to wait. `RateLimit` shows the remaining quota of the token.",
    ),
    row(
        Kind::Internal,
        500,
        "internal",
        ProblemCode::Internal,
        "Internal server error",
        "See the server log for details; search for the request id.",
    ),
    row(
        Kind::NotReady,
        503,
        "not-ready",
        ProblemCode::NotReady,
        "Service unavailable",
        "The database is unreachable, locked, read-only or full, or the server is starting or stopping; `detail` says which. \
         Try again after `Retry-After` seconds.",
    ),
];

impl Kind {
    /// Returns what is documented about this kind.
    pub fn about(self) -> &'static About {
        // A test sees that every kind is there.
        CATALOG.iter().find(|about| about.kind == self).unwrap_or(&CATALOG[19])
    }
}
