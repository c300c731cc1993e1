//! [`ApiRequest`], a checked request as a handler sees it, and [`ApiResponse`], its response.

use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;
use everbell::client::IntoJobRef;
use everbell::core::store::{JobRef, RequestKey};
use everbell::{JobId, Jobs, OrgId, Orgs, RunId, Runs, TraceContext};
use everbell_wire as wire;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::App;
use super::access::{self, Actor};
use super::excerpt::excerpt;
use super::problem::{Kind, Problem};
use everbell_wire::form::{Fault, Field, Form, Naming};

/// A request.
#[derive(Clone)]
pub struct ApiRequest {
    /// The application that serves the request.
    pub app: Arc<App>,
    /// The caller.
    pub actor: Actor,
    /// The path below which another program has nested all routes: `/admin/cron`; empty in the server.
    pub prefix: String,
    /// Where the API is mounted, for links: `/api/v1`, behind the prefix.
    pub mount: String,
    /// The parameters of the path, by name.
    pub path: Vec<(String, String)>,
    /// The query, checked against the fields of the route.
    pub query: Value,
    /// The body, checked against the fields of the route; `{}` without one.
    pub body: Value,
    /// The body as it was sent.
    pub text: String,
    /// The revision of `If-Match`.
    pub if_match: Option<u64>,
    /// The headers of the request.
    pub headers: axum::http::HeaderMap,
    /// The peer address of the connection; `None` for an internal call.
    pub peer: Option<std::net::IpAddr>,
    /// The idempotency key, if the request has one.
    pub request_key: Option<RequestKey>,
}

impl ApiRequest {
    /// Returns the jobs client of the caller.
    pub fn jobs(&self) -> Jobs {
        let jobs = self.actor.jobs(&self.app.bell).once(self.request_key.as_ref());
        match self.trace_of_headers() {
            Some(context) => jobs.trace_context(context),
            None => jobs,
        }
    }

    /// Returns the client with an optional reason for the audit trail.
    pub fn jobs_because(&self, reason: Option<&str>) -> Jobs {
        reason.map_or_else(|| self.jobs(), |reason| self.jobs().because(reason))
    }

    /// Returns the runs client of the caller.
    pub fn runs(&self) -> Runs {
        let runs = self.actor.runs(&self.app.bell).once(self.request_key.as_ref());
        match self.trace_of_headers() {
            Some(context) => runs.trace_context(context),
            None => runs,
        }
    }

    /// Returns the trace that the headers name, unless the application traces the request itself: its own span is nearer.
    /// As W3C says, headers that cannot be read mean that there is none.
    fn trace_of_headers(&self) -> Option<TraceContext> {
        if self.app.bell.is_traced() {
            return None;
        }
        let mut parents = self.headers.get_all("traceparent").iter();
        let parent = parents.next().filter(|_| parents.next().is_none())?;
        let states: Option<Vec<&str>> =
            self.headers.get_all("tracestate").iter().map(|state| state.to_str().ok()).collect();
        let state = states.map(|states| states.join(","));
        TraceContext::parse(parent.to_str().ok()?, state.as_deref()).ok()
    }

    /// Returns the client with an optional reason for the audit trail.
    pub fn runs_because(&self, reason: Option<&str>) -> Runs {
        reason.map_or_else(|| self.runs(), |reason| self.runs().because(reason))
    }

    /// Returns the orgs client of the caller.
    pub fn orgs(&self) -> Orgs {
        self.actor.orgs(&self.app.bell).once(self.request_key.as_ref())
    }

    /// Returns the client with an optional reason for the audit trail.
    pub fn orgs_because(&self, reason: Option<&str>) -> Orgs {
        reason.map_or_else(|| self.orgs(), |reason| self.orgs().because(reason))
    }

    /// Fails if only an admin may choose the payload of a run of this target.
    pub(crate) fn expect_payload_allowed(&self, target: &str) -> Result<(), Problem> {
        if self.app.options().program_targets.iter().any(|one| one == target) {
            access::expect_role(&self.actor, access::Role::Admin)
        } else {
            Ok(())
        }
    }

    /// Whether the caller may read runs, which the configuration says.
    pub fn may_read_runs(&self) -> bool {
        self.actor.role >= self.app.options().run_history
    }

    /// A job as the caller may see it: its last run is a part of the run history.
    pub fn visible(&self, mut job: wire::Job) -> wire::Job {
        job.last_run = job.last_run.filter(|_| self.may_read_runs());
        job
    }

    /// A run that the caller acted on, as they may see it.
    pub fn visible_run(&self, run: wire::Run) -> wire::Run {
        if self.may_read_runs() { run } else { run.without_contents() }
    }

    /// The body, which fits its fields.
    pub fn body(&self, fields: &'static [Field]) -> Form<'_> {
        Form::read(&self.body, fields, Naming::Camel)
    }

    /// The query, which fits its fields.
    pub fn query(&self, fields: &'static [Field]) -> Form<'_> {
        Form::read(&self.query, fields, Naming::Camel)
    }

    /// A member of the body as it was written, so that no number loses a digit; `null` is nothing.
    pub fn raw(&self, name: &str) -> Option<Box<RawValue>> {
        member(&self.text, name)
    }

    /// A part of the path.
    pub fn part(&self, name: &str) -> &str {
        self.path.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value.as_str())
    }

    /// The job that the path names: an id, `key:NAME` or `key:NAME@VERSION`.
    pub fn job(&self) -> Result<JobRef, Problem> {
        let name = self.part("jobId");
        let missing = || Problem::not_found("job", &excerpt(name));
        match name.strip_prefix("key:") {
            Some(key) => key.into_job_ref().map_err(|_| missing()),
            None => name.parse::<JobId>().map(JobRef::Id).map_err(|_| missing()),
        }
    }

    /// The org that the path names.
    pub fn org(&self) -> Result<OrgId, Problem> {
        let name = self.part("orgId");
        OrgId::new(name).map_err(|_| Problem::not_found("org", &excerpt(name)))
    }

    /// The run that the path names.
    pub fn run(&self) -> Result<RunId, Problem> {
        let name = self.part("runId");
        name.parse().map_err(|_| Problem::not_found("run", &excerpt(name)))
    }
}

/// A member of a JSON object as it was written; `null` is nothing.
pub fn member(object: &str, name: &str) -> Option<Box<RawValue>> {
    let members: std::collections::BTreeMap<String, Box<RawValue>> = serde_json::from_str(object).ok()?;
    members.into_iter().find(|(own, _)| own == name).map(|(_, value)| value).filter(|value| value.get() != "null")
}

/// Many problems of a body as one.
pub fn refuse(faults: Vec<Fault>) -> Result<(), Problem> {
    if faults.is_empty() { Ok(()) } else { Err(Problem::body(faults)) }
}

/// A successful response.
pub struct ApiResponse {
    /// The status of the response.
    pub status: StatusCode,
    /// Headers besides those that every response has.
    pub headers: Vec<(&'static str, String)>,
    /// The body of the response.
    pub body: ResponseBody,
}

/// The body of a response.
pub enum ResponseBody {
    /// No body.
    Nothing,
    /// A document, and its media type.
    Text(&'static str, String),
    /// Events without an end.
    Events(Body),
}

impl ApiResponse {
    /// A JSON document.
    pub fn json(status: StatusCode, document: &impl Serialize) -> Result<ApiResponse, Problem> {
        let text = serde_json::to_string(document).map_err(|error| {
            tracing::error!(%error, "a response cannot be written as JSON");
            Problem::new(Kind::Internal, "The response cannot be written.")
        })?;
        Ok(ApiResponse { status, headers: Vec::new(), body: ResponseBody::Text("application/json", text) })
    }

    pub(crate) fn ok(document: &impl Serialize) -> Result<ApiResponse, Problem> {
        ApiResponse::json(StatusCode::OK, document)
    }

    pub(crate) fn text(kind: &'static str, text: impl Into<String>) -> ApiResponse {
        ApiResponse { status: StatusCode::OK, headers: Vec::new(), body: ResponseBody::Text(kind, text.into()) }
    }

    pub(crate) fn nothing() -> ApiResponse {
        ApiResponse { status: StatusCode::NO_CONTENT, headers: Vec::new(), body: ResponseBody::Nothing }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> ApiResponse {
        self.headers.push((name, value.into()));
        self
    }
}
