//! Many orgs at once: lines of JSON or CSV. First what would become of them, then all of them or none.

use askama::Template;
use axum::http::{Method, StatusCode};
use serde::Serialize;

use crate::pages::action::{expect_operator, mendable, typed};
use crate::visit::{Reply, Visit};
use crate::{Frame, Section};
use everbell_http::internal_call::InternalCall;
use everbell_http::problem::{Kind, Problem};
use everbell_wire as wire;
use everbell_wire::org_csv::lines;

/// How many faults are shown.
const SHOWN: usize = 50;

#[derive(Template)]
#[template(path = "orgs/import.html")]
struct ImportPage {
    frame: Frame,
    text: String,
    reason: String,
    /// What would be done; nothing before somebody asked.
    planned: Option<wire::Imported>,
    /// What is wrong, line by line.
    faults: Vec<String>,
    more: usize,
}

impl ImportPage {
    /// How many orgs there are in the lines.
    fn total(planned: &wire::Imported) -> u64 {
        planned.created + planned.changed + planned.same
    }
}

pub(crate) async fn show(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    page(&visit, None, Vec::new(), StatusCode::OK).await
}

async fn page(
    visit: &Visit,
    planned: Option<wire::Imported>,
    mut faults: Vec<String>,
    status: StatusCode,
) -> Result<Reply, Problem> {
    let more = faults.len().saturating_sub(SHOWN);
    faults.truncate(SHOWN);
    let page = ImportPage {
        frame: visit.frame(Section::Orgs, "Import orgs").await,
        text: typed(visit, "text"),
        reason: typed(visit, "reason"),
        planned,
        faults,
        more,
    };
    Reply::refused(&page, status)
}

pub(crate) async fn send(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    let text = visit.sent("text").unwrap_or_default();
    let lines = if text.starts_with('{') { Ok(text.to_owned()) } else { lines(text) };
    let lines = match lines {
        Ok(lines) => lines,
        Err(error) => return page(&visit, None, vec![error.to_string()], StatusCode::BAD_REQUEST).await,
    };
    let import = visit.sent("do") == Some("import");
    match performed(&visit, &lines, import).await {
        Ok(done) if import => {
            let text = format!("{} orgs made, {} changed, {} as they were.", done.created, done.changed, done.same);
            Ok(Reply::done("/orgs", text))
        }
        Ok(planned) => page(&visit, Some(planned), Vec::new(), StatusCode::OK).await,
        Err(problem) => {
            let problem = mendable(problem)?;
            let mut faults: Vec<String> = problem.faults().into_iter().map(|(_, text)| text).collect();
            if faults.is_empty() {
                faults.push(problem.detail.clone());
            }
            page(&visit, None, faults, problem.status()).await
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
async fn performed(visit: &Visit, lines: &str, import: bool) -> Result<wire::Imported, Problem> {
    let query = Query { dry_run: (!import).then_some(true), reason: visit.sent("reason") };
    let call = InternalCall::new(Method::POST, "/orgs", &[]).with_query(&query)?;
    // Nothing is remembered of what was only asked.
    let once = visit.sent("once").filter(|_| import);
    let answer = visit.ask(InternalCall { once, ..call }, &lines).await;
    answer.map_err(|problem| match problem.kind {
        Kind::MalformedJson => Problem::new(Kind::InvalidInput, problem.detail),
        _ => problem,
    })
}
