//! Probes, metrics and documentation.

use axum::http::{StatusCode, header};
use everbell_wire::problem::ProblemKind;

use crate::is_local;
use crate::pipeline::authenticate;
use crate::problem::{CATALOG, Kind, Problem};
use crate::request::{ApiRequest, ApiResponse};
use crate::{App, docs, openapi};
use everbell_wire::form::{Field, Kind as Value, optional};

pub(crate) const READY: &[Field] = &[optional(
    "verbose",
    Value::Flag,
    "List every check. Details are shown only to this machine and with a valid token.",
)];

/// Reports that the process responds. It depends on nothing, so a database outage never causes a restart.
pub async fn live(_: ApiRequest) -> Result<ApiResponse, Problem> {
    Ok(ApiResponse::text("text/plain; charset=utf-8", "ok\n"))
}

/// Reports whether the server can do its work.
pub async fn ready(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let verbose = request.query(READY).flag("verbose");
    let report = request.app.readiness().await;
    let mut text = String::new();
    if verbose || !report.ok {
        let is_trusted = is_trusted(&request).await;
        for check in &report.checks {
            let sign = if check.ok { '+' } else { '-' };
            let detail = if is_trusted { format!(": {}", check.detail) } else { String::new() };
            text.extend([format!("[{sign}] {}{detail}\n", check.name)]);
        }
    }
    text.push_str(if report.ok { "ok\n" } else { "not ready\n" });
    let mut response = ApiResponse::text("text/plain; charset=utf-8", text);
    if !report.ok {
        response.status = StatusCode::SERVICE_UNAVAILABLE;
    }
    Ok(response)
}

/// Whether the caller may know versions and file names: from this machine, or with a token.
async fn is_trusted(request: &ApiRequest) -> bool {
    if is_local(&request.headers, request.peer) {
        return true;
    }
    let header = request.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    header.is_some() && authenticate(&request.app, header, &request.headers, request.peer).await.is_ok()
}

/// Returns the metrics in the text format of Prometheus.
pub async fn metrics(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let text = request.app.metrics.render(&request.app.bell).await;
    Ok(ApiResponse::text("text/plain; version=0.0.4; charset=utf-8", text))
}

/// The OpenAPI document, and the page that shows it.
fn documented(app: &App) -> &(String, String) {
    app.documented.get_or_init(|| {
        let document = openapi::document(&app.options());
        (document.to_string(), docs::page(&document))
    })
}

pub(crate) async fn openapi(request: ApiRequest) -> Result<ApiResponse, Problem> {
    Ok(ApiResponse::text("application/json", documented(&request.app).0.as_str()))
}

pub(crate) async fn docs(request: ApiRequest) -> Result<ApiResponse, Problem> {
    if !request.app.options().settings.docs {
        return Err(Problem::new(Kind::NotFound, "The API reference is disabled."));
    }
    let page = documented(&request.app).1.as_str();
    Ok(ApiResponse::text("text/html; charset=utf-8", page).header("content-security-policy", docs::POLICY))
}

/// Redirects a browser to the API reference.
pub async fn home(request: ApiRequest) -> Result<ApiResponse, Problem> {
    if !request.app.options().settings.docs {
        return Err(Problem::new(Kind::NotFound, "There is no page at `/`."));
    }
    let mut response = ApiResponse::nothing().header("location", "/docs/api");
    response.status = StatusCode::SEE_OTHER;
    Ok(response)
}

pub(crate) async fn style(_: ApiRequest) -> Result<ApiResponse, Problem> {
    Ok(ApiResponse::text("text/css; charset=utf-8", docs::STYLE))
}

/// Describes a kind of problem. The `type` of problems points here.
pub async fn problem(request: ApiRequest) -> Result<ApiResponse, Problem> {
    let slug = request.part("problem");
    let about = CATALOG.iter().find(|about| about.slug == slug);
    let about = about.ok_or_else(|| Problem::new(Kind::NotFound, "There is no problem of this kind."))?;
    ApiResponse::ok(&ProblemKind {
        r#type: format!("{}/docs/problems/{}", request.prefix, about.slug),
        title: about.title.to_owned(),
        status: about.status,
        code: about.code.clone(),
        help: about.help.to_owned(),
    })
}
