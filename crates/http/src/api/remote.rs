//! Reports of the remote sides of runs.

use everbell::client::{RemoteAnswer, RemoteReport, Reporter};
use everbell::core::handover::Progress;
use everbell::core::remote::Refusal;
use everbell::core::settle::Then;
use everbell::core::{Failure, FailureCode, Json, MAX_OUTPUT_BYTES};
use everbell_wire as wire;

use crate::problem::{Kind, Problem};
use crate::request::{ApiRequest, ApiResponse};
use everbell_wire::FaultCode;
use everbell_wire::form::{Fault, Field, Form, Kind as Value, optional, required};

const ATTEMPT: Field = optional(
    "attempt",
    Value::Integer { min: 1, max: 1_000_000 },
    "The attempt that the report is about. Default: that of the run token, else the current one.",
);

/// The text that a report may print.
const PRINTED: Value = Value::Text { min: 0, max: MAX_OUTPUT_BYTES };

pub(crate) const HEARTBEAT: &[Field] = &[ATTEMPT];

pub(crate) const PROGRESS: &[Field] = &[
    optional("percent", Value::Integer { min: 0, max: 100 }, "The part that is done."),
    optional("message", Value::Text { min: 1, max: 500 }, "A message for people."),
    ATTEMPT,
];

pub(crate) const LOG: &[Field] =
    &[required("text", Value::Text { min: 1, max: MAX_OUTPUT_BYTES }, "The text, of any number of lines."), ATTEMPT];

pub(crate) const COMPLETE: &[Field] = &[
    optional("result", Value::Json, "The result of the run."),
    optional("output", PRINTED, "Text to append to the output of the run."),
    ATTEMPT,
];

pub(crate) const FAIL: &[Field] = &[
    optional("code", Value::Text { min: 1, max: 64 }, "Why it failed, as a stable word. Default: `handler_error`."),
    required("message", Value::Text { min: 1, max: 8_000 }, "Why it failed, in words."),
    optional("details", Value::Json, "More about the failure."),
    optional("retryable", Value::Flag, "Whether another attempt makes sense, if the job allows one. Default: true."),
    optional("retryAfter", Value::Span, "The shortest wait before the next attempt."),
    optional("output", PRINTED, "Text to append to the output of the run."),
    ATTEMPT,
];

pub(crate) async fn heartbeat(request: ApiRequest) -> Result<ApiResponse, Problem> {
    report(&request, HEARTBEAT, RemoteReport::default()).await
}

pub(crate) async fn progress(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.body(PROGRESS);
    let done = form.count("percent").map(|percent| f64::from(percent) / 100.0);
    let progress = Progress::new(done, form.text("message"))
        .map_err(|_| at("/percent", "`percent`, `message` or both are needed"))?;
    report(&request, PROGRESS, RemoteReport { progress: Some(progress), ..RemoteReport::default() }).await
}

pub(crate) async fn log(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let text = printed(&request, &request.body(LOG), "text");
    report(&request, LOG, RemoteReport { log: text, ..RemoteReport::default() }).await
}

pub(crate) async fn complete(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.body(COMPLETE);
    let result = json(&request, "result")?;
    let (by, output) = (reporter(&request, &form)?, printed(&request, &form, "output"));
    answered(&by, request.runs().complete(&by, result.as_ref(), &output).await?)
}

pub(crate) async fn fail(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let form = request.body(FAIL);
    let code = form.text("code").map_or(Ok(FailureCode::HANDLER_ERROR), FailureCode::from_handler);
    let code = code.map_err(|invalid| at("/code", invalid.reason))?;
    let message = printed(&request, &form, "message");
    let details = json(&request, "details")?;
    let failure = Failure { details, ..Failure::new(code, &message) };
    let then = match form.answer("retryable") {
        Some(false) => Then::GiveUp,
        _ => Then::Retry { after: form.span("retryAfter").unwrap_or_default() },
    };
    let (by, output) = (reporter(&request, &form)?, printed(&request, &form, "output"));
    answered(&by, request.runs().fail(&by, &failure, &then, &output).await?)
}

async fn report(request: &ApiRequest, fields: &'static [Field], report: RemoteReport) -> Result<ApiResponse, Problem> {
    let by = reporter(request, &request.body(fields))?;
    answered(&by, request.runs().report(&by, &report).await?)
}

/// Returns the one that reports about the run that the path names. A run token is for one run only.
fn reporter(request: &ApiRequest, form: &Form<'_>) -> Result<Reporter, Problem> {
    let run = request.run()?;
    match request.actor.handover() {
        Some(handover) if handover.run == run => Ok(Reporter::Token(handover)),
        Some(handover) => {
            let detail = format!("This run token is for run {}, not for run {run}.", handover.run);
            Err(Problem::new(Kind::Forbidden, detail))
        }
        None => Ok(Reporter::Operator { run, attempt: form.count("attempt") }),
    }
}

fn answered(by: &Reporter, answer: RemoteAnswer) -> Result<ApiResponse, Problem> {
    match answer {
        RemoteAnswer::Accepted(run) => ApiResponse::ok(&wire::RemoteRun::from(&*run)),
        RemoteAnswer::Refused(refusal, run) => {
            let attempt = match (refusal, by) {
                (Refusal::Superseded { attempt, .. } | Refusal::Waiting { attempt }, _) => attempt,
                (_, Reporter::Token(handover)) => handover.attempt,
                _ => run.attempt,
            };
            let detail = format!("Run {} does not accept this report: {refusal}.", run.id);
            let problem = Problem::new(Kind::Conflict, detail).with("runStatus", run.status.as_str());
            Err(problem.with("attempt", attempt).with("currentAttempt", run.attempt))
        }
    }
}

/// A member as it was written, so that no number loses a digit.
fn json(request: &ApiRequest, name: &'static str) -> Result<Option<Json>, Problem> {
    let Some(raw) = request.raw(name) else { return Ok(None) };
    let read = Json::parse(name, raw.get());
    read.map(Some).map_err(|invalid| at(&format!("/{name}"), invalid.reason))
}

/// A text without the token that the request was sent with, which must not be kept.
fn printed(request: &ApiRequest, form: &Form<'_>, name: &str) -> String {
    let text = form.text(name).unwrap_or_default();
    let header = request.headers.get(axum::http::header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    match header.and_then(crate::access::bearer) {
        Some(token) if !token.is_empty() => text.replace(token, "***"),
        _ => text.to_owned(),
    }
}

fn at(pointer: &str, detail: impl Into<String>) -> Problem {
    Problem::body(vec![Fault::new(pointer, FaultCode::Invalid, detail)])
}
