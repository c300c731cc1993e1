//! Every kind of problem, with what is documented about it.

/// What can go wrong, for programs: stable words, each with a page of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A field, a parameter or a header is not valid.
    InvalidInput,
    /// The body is not JSON.
    MalformedJson,
    /// A token or session is missing or unknown.
    Unauthenticated,
    /// The role of the caller is too small.
    Forbidden,
    /// The object does not exist.
    NotFound,
    /// The path has no such method.
    MethodNotAllowed,
    /// The request took too long to arrive.
    RequestTimeout,
    /// The object is in a state that does not allow the request.
    Conflict,
    /// A job with this key exists.
    JobKeyExists,
    /// An active run keeps another from starting.
    OverlapSkipped,
    /// The job is retired.
    JobRetired,
    /// The job has as many pending runs as it may have.
    TooManyPendingRuns,
    /// The first request with this idempotency key is still being answered.
    IdempotencyInProgress,
    /// The job is no longer at the revision of `If-Match`.
    RevisionMismatch,
    /// The body is too large.
    PayloadTooLarge,
    /// The body has another media type than the route reads.
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

/// What the documentation says about a kind.
pub struct About {
    /// The kind of problem.
    pub kind: Kind,
    /// The last part of its `type`.
    pub slug: &'static str,
    /// The HTTP status.
    pub status: u16,
    pub(crate) code: &'static str,
    /// A short title for people.
    pub title: &'static str,
    /// An explanation with what to do.
    pub help: &'static str,
}

const fn row(
    kind: Kind,
    status: u16,
    [slug, code]: [&'static str; 2],
    title: &'static str,
    help: &'static str,
) -> About {
    About { kind, slug, status, code, title, help }
}

/// Every kind, in the order of their statuses.
pub const CATALOG: [About; 22] = [
    row(
        Kind::InvalidInput,
        400,
        ["invalid-input", "InvalidInput"],
        "The request is not valid",
        "`errors` names every member or parameter at fault and what is allowed. Nothing was changed.",
    ),
    row(
        Kind::MalformedJson,
        400,
        ["malformed-json", "MalformedJson"],
        "The body is not JSON",
        "`detail` says where the body stops being JSON. Nothing was changed.",
    ),
    row(
        Kind::Unauthenticated,
        401,
        ["unauthenticated", "Unauthenticated"],
        "A valid token is needed",
        "Send `Authorization: Bearer evb_…`. The first start of a server writes an admin token into its data folder.",
    ),
    row(
        Kind::Forbidden,
        403,
        ["forbidden", "Forbidden"],
        "This token may not do that",
        "`detail` names the role that is needed; an admin makes tokens of that role.",
    ),
    row(
        Kind::NotFound,
        404,
        ["not-found", "NotFound"],
        "There is no such thing",
        "Jobs are named by their id, by `key:NAME` or by `key:NAME@VERSION`.",
    ),
    row(
        Kind::MethodNotAllowed,
        405,
        ["method-not-allowed", "MethodNotAllowed"],
        "This path does not take this method",
        "The `Allow` header names the methods that it takes.",
    ),
    row(
        Kind::RequestTimeout,
        408,
        ["request-timeout", "RequestTimeout"],
        "The body did not arrive in time",
        "Send the whole body within 30 seconds. Nothing was changed.",
    ),
    row(
        Kind::Conflict,
        409,
        ["conflict", "Conflict"],
        "The state of the job or run does not allow that",
        "Read it again and decide again.",
    ),
    row(
        Kind::JobKeyExists,
        409,
        ["job-key-exists", "JobKeyExists"],
        "A living job has this key",
        "Make its next version, or retire it first. `jobId` is the living version.",
    ),
    row(
        Kind::OverlapSkipped,
        409,
        ["overlap-skipped", "OverlapSkipped"],
        "A run of this job is already active",
        "`run` is the skipped run that was recorded, `activeRun` the one in the way. `queue` waits for it, `force` does not mind it.",
    ),
    row(
        Kind::JobRetired,
        409,
        ["job-retired", "JobRetired"],
        "The job is retired",
        "Retired is final. Make a new job with the same key: it goes on with the next version.",
    ),
    row(
        Kind::TooManyPendingRuns,
        409,
        ["too-many-pending-runs", "TooManyPendingRuns"],
        "The job has too many runs that have not ended",
        "`detail` names how many there are and how many are allowed. Nothing was changed: wait until some have ended, or cancel them.",
    ),
    row(
        Kind::IdempotencyInProgress,
        409,
        ["idempotency-in-progress", "IdempotencyInProgress"],
        "A request with this key is being answered",
        "Wait and send the same again: the answer will be that of the first.",
    ),
    row(
        Kind::RevisionMismatch,
        412,
        ["revision-mismatch", "RevisionMismatch"],
        "The job has changed since it was read",
        "Read it again; its `ETag` is the revision to send as `If-Match`.",
    ),
    row(
        Kind::PayloadTooLarge,
        413,
        ["payload-too-large", "PayloadTooLarge"],
        "The body is too large",
        "A body may have 1 MiB.",
    ),
    row(
        Kind::UnsupportedMediaType,
        415,
        ["unsupported-media-type", "UnsupportedMediaType"],
        "The body must be JSON",
        "Send `Content-Type: application/json`.",
    ),
    row(
        Kind::Misdirected,
        421,
        ["misdirected", "Misdirected"],
        "This server does not answer for that host",
        "Ask for `localhost` or a loopback address, or configure a token for metrics.",
    ),
    row(
        Kind::IdempotencyKeyReused,
        422,
        ["idempotency-key-reused", "IdempotencyKeyReused"],
        "The key belongs to another request",
        "An `Idempotency-Key` names one request with one body. Take another key.",
    ),
    row(
        Kind::PreconditionRequired,
        428,
        ["precondition-required", "PreconditionRequired"],
        "If-Match is needed",
        "This server changes jobs only for who says which revision they have read.",
    ),
    row(
        Kind::RateLimited,
        429,
        ["rate-limited", "RateLimited"],
        "Too many requests",
        "`Retry-After` says how many seconds to wait; `RateLimit` says how much a token may write.",
    ),
    row(
        Kind::Internal,
        500,
        ["internal", "Internal"],
        "Something is broken here",
        "The log of the server has the details under the request id.",
    ),
    row(
        Kind::NotReady,
        503,
        ["not-ready", "NotReady"],
        "The server cannot answer now",
        "The database is away, locked, read-only or full, or the server is starting or stopping; `detail` says which. \
         `Retry-After` says when to try again.",
    ),
];

impl Kind {
    /// Returns what is documented about this kind.
    pub fn about(self) -> &'static About {
        // A test sees that every kind is there.
        CATALOG.iter().find(|about| about.kind == self).unwrap_or(&CATALOG[19])
    }
}
