//! Importing orgs from JSON lines or CSV: a check first, then all or none of them.

use askama::Template;
use axum::http::{Method, StatusCode};
use serde::Serialize;

use crate::pages::action::{correctable, expect_operator, typed};
use crate::request::{UiRequest, UiResponse};
use crate::{Frame, Section};
use everbell_http::internal_call::InternalCall;
use everbell_http::problem::{Kind, Problem};
use everbell_wire as wire;
use everbell_wire::org_csv::lines;

/// How many faults are shown.
const MAX_LISTED_FAULTS: usize = 50;

#[derive(Template)]
#[template(path = "orgs/import.html")]
struct ImportPage {
    frame: Frame,
    text: String,
    reason: String,
    /// The result of the check, if there was one.
    planned: Option<wire::Imported>,
    /// The errors by line.
    faults: Vec<String>,
    more: usize,
}

impl ImportPage {
    /// How many orgs there are in the lines.
    fn total(planned: &wire::Imported) -> u64 {
        planned.created + planned.changed + planned.same
    }
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    page(&request, None, Vec::new(), StatusCode::OK).await
}

async fn page(
    request: &UiRequest,
    planned: Option<wire::Imported>,
    mut faults: Vec<String>,
    status: StatusCode,
) -> Result<UiResponse, Problem> {
    let more = faults.len().saturating_sub(MAX_LISTED_FAULTS);
    faults.truncate(MAX_LISTED_FAULTS);
    let page = ImportPage {
        frame: request.frame(Section::Orgs, "Import orgs").await,
        text: typed(request, "text"),
        reason: typed(request, "reason"),
        planned,
        faults,
        more,
    };
    UiResponse::with_status(&page, status)
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_operator(&request)?;
    let text = request.sent("text").unwrap_or_default();
    let lines = if text.starts_with('{') { Ok(text.to_owned()) } else { lines(text) };
    let lines = match lines {
        Ok(lines) => lines,
        Err(error) => return page(&request, None, vec![error.to_string()], StatusCode::BAD_REQUEST).await,
    };
    let import = request.sent("do") == Some("import");
    match performed(&request, &lines, import).await {
        Ok(done) if import => {
            let text = format!("{} orgs created, {} changed, {} unchanged.", done.created, done.changed, done.same);
            Ok(UiResponse::done("/orgs", text))
        }
        Ok(planned) => page(&request, Some(planned), Vec::new(), StatusCode::OK).await,
        Err(problem) => {
            let problem = correctable(problem)?;
            let mut faults: Vec<String> = problem.faults().into_iter().map(|(_, text)| text).collect();
            if faults.is_empty() {
                faults.push(problem.detail.clone());
            }
            page(&request, None, faults, problem.status()).await
        }
    }
}

/// The query of the request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Query<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    dry_run: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

/// Has the lines checked, or imported.
async fn performed(request: &UiRequest, lines: &str, import: bool) -> Result<wire::Imported, Problem> {
    let query = Query { dry_run: (!import).then_some(true), reason: request.sent("reason") };
    let call = InternalCall::new(Method::POST, "/orgs", &[]).with_query(&query)?;
    // Nothing is remembered of what was only asked.
    let once = request.sent("once").filter(|_| import);
    let answer = request.ask(InternalCall { once, ..call }, &lines).await;
    answer.map_err(|problem| match problem.kind {
        Kind::MalformedJson => Problem::new(Kind::InvalidInput, problem.detail),
        _ => problem,
    })
}
