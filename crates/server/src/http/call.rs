//! [`Call`]: a request as a handler sees it, everything about it read and checked; and [`Answer`]: what it says.

use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;
use everbell::client::IntoJobRef;
use everbell::core::store::{JobRef, RequestKey};
use everbell::{JobId, Jobs, OrgId, Orgs, RunId, Runs};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::App;
use super::access::Actor;
use super::model::{JobDocument, RunDocument};
use super::problem::{Kind, Problem};
use crate::form::{Fault, Field, Form, Naming};

/// A request.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) app: Arc<App>,
    pub(crate) actor: Actor,
    /// Where the API is mounted, for links: `/api/v1`.
    pub(crate) mount: String,
    pub(crate) path: Vec<(String, String)>,
    /// Held against the fields of the route already.
    pub(crate) query: Value,
    /// The same; `{}` without a body.
    pub(crate) body: Value,
    /// The body as it was sent.
    pub(crate) text: String,
    pub(crate) if_match: Option<u64>,
    pub(crate) headers: axum::http::HeaderMap,
    /// Who is at the other end of the connection; nothing for a page that calls.
    pub(crate) peer: Option<std::net::IpAddr>,
    /// The request that is carried out, if it has a key: it may be sent again.
    pub(crate) request: Option<RequestKey>,
}

impl Call {
    /// Jobs, in the name of who calls.
    pub(crate) fn jobs(&self) -> Jobs {
        self.actor.jobs(&self.app.bell).once(self.request.as_ref())
    }

    /// The same for a reason, if one is given.
    pub(crate) fn jobs_because(&self, reason: Option<&str>) -> Jobs {
        reason.map_or_else(|| self.jobs(), |reason| self.jobs().because(reason))
    }

    /// Runs, in the name of who calls.
    pub(crate) fn runs(&self) -> Runs {
        self.actor.runs(&self.app.bell).once(self.request.as_ref())
    }

    /// The same for a reason, if one is given.
    pub(crate) fn runs_because(&self, reason: Option<&str>) -> Runs {
        reason.map_or_else(|| self.runs(), |reason| self.runs().because(reason))
    }

    /// Orgs, in the name of who calls.
    pub(crate) fn orgs(&self) -> Orgs {
        self.actor.orgs(&self.app.bell).once(self.request.as_ref())
    }

    /// The same for a reason, if one is given.
    pub(crate) fn orgs_because(&self, reason: Option<&str>) -> Orgs {
        reason.map_or_else(|| self.orgs(), |reason| self.orgs().because(reason))
    }

    /// Whether the caller may read runs, which the configuration says.
    pub(crate) fn may_read_runs(&self) -> bool {
        self.actor.role >= self.app.options.run_history
    }

    /// A job as the caller may see it: its last run is a part of the run history.
    pub(crate) fn visible(&self, mut job: JobDocument) -> JobDocument {
        job.last_run = job.last_run.filter(|_| self.may_read_runs());
        job
    }

    /// A run that the caller acted on, as they may see it.
    pub(crate) fn visible_run(&self, run: RunDocument) -> RunDocument {
        if self.may_read_runs() { run } else { run.without_contents() }
    }

    /// The body, which fits its fields.
    pub(crate) fn body(&self, fields: &'static [Field]) -> Form<'_> {
        Form::read(&self.body, fields, Naming::Camel)
    }

    /// The query, which fits its fields.
    pub(crate) fn query(&self, fields: &'static [Field]) -> Form<'_> {
        Form::read(&self.query, fields, Naming::Camel)
    }

    /// A member of the body as it was written, so that no number loses a digit; `null` is nothing.
    pub(crate) fn raw(&self, name: &str) -> Option<Box<RawValue>> {
        member(&self.text, name)
    }

    /// A part of the path.
    pub(crate) fn part(&self, name: &str) -> &str {
        self.path.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value.as_str())
    }

    /// The job that the path names: an id, `key:NAME` or `key:NAME@VERSION`.
    pub(crate) fn job(&self) -> Result<JobRef, Problem> {
        let name = self.part("jobId");
        let missing = || Problem::new(Kind::NotFound, format!("There is no job `{}`.", shown(name)));
        match name.strip_prefix("key:") {
            Some(key) => key.into_job_ref().map_err(|_| missing()),
            None => name.parse::<JobId>().map(JobRef::Id).map_err(|_| missing()),
        }
    }

    /// The org that the path names.
    pub(crate) fn org(&self) -> Result<OrgId, Problem> {
        let name = self.part("orgId");
        OrgId::new(name).map_err(|_| Problem::new(Kind::NotFound, format!("There is no org `{}`.", shown(name))))
    }

    /// The run that the path names.
    pub(crate) fn run(&self) -> Result<RunId, Problem> {
        let name = self.part("runId");
        name.parse().map_err(|_| Problem::new(Kind::NotFound, format!("There is no run `{}`.", shown(name))))
    }
}

/// A member of a JSON object as it was written; `null` is nothing.
pub(crate) fn member(object: &str, name: &str) -> Option<Box<RawValue>> {
    let members: std::collections::BTreeMap<String, Box<RawValue>> = serde_json::from_str(object).ok()?;
    members.into_iter().find(|(own, _)| own == name).map(|(_, value)| value).filter(|value| value.get() != "null")
}

/// A text of somebody else's, cut to a printable length.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(100).flat_map(char::escape_debug).collect()
}

/// Many problems of a body as one.
pub(crate) fn refuse(faults: Vec<Fault>) -> Result<(), Problem> {
    if faults.is_empty() { Ok(()) } else { Err(Problem::body(faults)) }
}

/// What is answered when all is well.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Payload,
}

/// What an answer holds.
pub(crate) enum Payload {
    Nothing,
    /// A document, and its media type.
    Text(&'static str, String),
    /// Events without an end.
    Events(Body),
}

impl Answer {
    /// A JSON document.
    pub(crate) fn json(status: StatusCode, document: &impl Serialize) -> Result<Answer, Problem> {
        let text = serde_json::to_string(document).map_err(|error| {
            tracing::error!(%error, "an answer cannot be written as JSON");
            Problem::new(Kind::Internal, "The answer cannot be written.")
        })?;
        Ok(Answer { status, headers: Vec::new(), body: Payload::Text("application/json", text) })
    }

    pub(crate) fn ok(document: &impl Serialize) -> Result<Answer, Problem> {
        Answer::json(StatusCode::OK, document)
    }

    pub(crate) fn text(kind: &'static str, text: impl Into<String>) -> Answer {
        Answer { status: StatusCode::OK, headers: Vec::new(), body: Payload::Text(kind, text.into()) }
    }

    pub(crate) fn nothing() -> Answer {
        Answer { status: StatusCode::NO_CONTENT, headers: Vec::new(), body: Payload::Nothing }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Answer {
        self.headers.push((name, value.into()));
        self
    }
}
