//! What machines ask: alive, ready, metrics; and what people read: the documentation.

use axum::http::{StatusCode, header};
use serde_json::json;

use crate::form::{Field, Kind as Value, optional};
use crate::http::call::{Answer, Call};
use crate::http::docs;
use crate::http::is_local;
use crate::http::pipeline::let_in;
use crate::http::problem::{CATALOG, Kind, Problem};

pub(crate) const READY: &[Field] =
    &[optional("verbose", Value::Flag, "List every check; with details only for this machine and for a valid token.")];

/// The process answers. Depends on nothing, so that a database that is away never restarts it.
pub(crate) async fn live(_: Call) -> Result<Answer, Problem> {
    Ok(Answer::text("text/plain; charset=utf-8", "ok\n"))
}

/// Whether it can do its work.
pub(crate) async fn ready(call: Call) -> Result<Answer, Problem> {
    let verbose = call.query(READY).flag("verbose");
    let report = call.app.readiness().await;
    let mut text = String::new();
    if verbose || !report.ok {
        let is_trusted = is_trusted(&call).await;
        for check in &report.checks {
            let sign = if check.ok { '+' } else { '-' };
            let detail = if is_trusted { format!(": {}", check.detail) } else { String::new() };
            text.extend([format!("[{sign}] {}{detail}\n", check.name)]);
        }
    }
    text.push_str(if report.ok { "ok\n" } else { "not ready\n" });
    let mut answer = Answer::text("text/plain; charset=utf-8", text);
    if !report.ok {
        answer.status = StatusCode::SERVICE_UNAVAILABLE;
    }
    Ok(answer)
}

/// Whether the caller may know versions and file names: from this machine, or with a token.
async fn is_trusted(call: &Call) -> bool {
    if is_local(&call.headers, call.peer) {
        return true;
    }
    let header = call.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    header.is_some() && let_in(&call.app, header, &call.headers, call.peer).await.is_ok()
}

pub(crate) async fn metrics(call: Call) -> Result<Answer, Problem> {
    let text = call.app.metrics.render(&call.app.bell).await;
    Ok(Answer::text("text/plain; version=0.0.4; charset=utf-8", text))
}

pub(crate) async fn openapi(call: Call) -> Result<Answer, Problem> {
    Ok(Answer::text("application/json", call.app.documented().0.as_str()))
}

pub(crate) async fn docs(call: Call) -> Result<Answer, Problem> {
    if !call.app.options.settings.docs {
        return Err(Problem::new(Kind::NotFound, "The documentation is switched off."));
    }
    let page = call.app.documented().1.as_str();
    Ok(Answer::text("text/html; charset=utf-8", page).header("content-security-policy", docs::POLICY))
}

/// Who comes with a browser and nothing else is led on.
pub(crate) async fn home(call: Call) -> Result<Answer, Problem> {
    if !call.app.options.settings.docs {
        return Err(Problem::new(Kind::NotFound, "There is nothing at `/`."));
    }
    let mut answer = Answer::nothing().header("location", "/docs/api");
    answer.status = StatusCode::SEE_OTHER;
    Ok(answer)
}

pub(crate) async fn style(_: Call) -> Result<Answer, Problem> {
    Ok(Answer::text("text/css; charset=utf-8", docs::STYLE))
}

/// What a kind of problem means: where its `type` points to.
pub(crate) async fn problem(call: Call) -> Result<Answer, Problem> {
    let slug = call.part("problem");
    let about = CATALOG.iter().find(|about| about.slug == slug);
    let about = about.ok_or_else(|| Problem::new(Kind::NotFound, "There is no such problem."))?;
    let document = json!({
        "type": format!("/docs/problems/{}", about.slug),
        "title": about.title,
        "status": about.status,
        "code": about.code,
        "help": about.help,
    });
    Answer::ok(&document)
}
