//! What machines ask: alive, ready, metrics; and what people read: the documentation.

use axum::http::{StatusCode, header};
use everbell_wire::problem::ProblemKind;

use crate::call::{Answer, Call};
use crate::docs;
use crate::is_local;
use crate::pipeline::let_in;
use crate::problem::{CATALOG, Kind, Problem};
use everbell_wire::form::{Field, Kind as Value, optional};

pub(crate) const READY: &[Field] = &[optional(
    "verbose",
    Value::Flag,
    "List every check. Details are shown only to this machine and with a valid token.",
)];

/// The process answers. Depends on nothing, so that a database that is away never restarts it.
pub async fn live(_: Call) -> Result<Answer, Problem> {
    Ok(Answer::text("text/plain; charset=utf-8", "ok\n"))
}

/// Whether it can do its work.
pub async fn ready(call: Call) -> Result<Answer, Problem> {
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

/// Returns the metrics in the text format of Prometheus.
pub async fn metrics(call: Call) -> Result<Answer, Problem> {
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
pub async fn home(call: Call) -> Result<Answer, Problem> {
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
pub async fn problem(call: Call) -> Result<Answer, Problem> {
    let slug = call.part("problem");
    let about = CATALOG.iter().find(|about| about.slug == slug);
    let about = about.ok_or_else(|| Problem::new(Kind::NotFound, "There is no such problem."))?;
    Answer::ok(&ProblemKind {
        r#type: format!("/docs/problems/{}", about.slug),
        title: about.title.to_owned(),
        status: about.status,
        code: about.code.to_owned(),
        help: about.help.to_owned(),
    })
}
