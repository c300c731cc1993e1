//! Many orgs at once: lines of JSON or CSV. First what would become of them, then all of them or none.

use askama::Template;
use axum::http::{Method, StatusCode};
use serde_json::{Map, Value};

use crate::cli::orgs::import::lines;
use crate::http::inside::Inside;
use crate::http::problem::{Kind, Problem};
use crate::ui::pages::action::{expect_operator, mendable, typed};
use crate::ui::visit::{Reply, Visit};
use crate::ui::{Frame, Section};

/// How many faults are shown.
const SHOWN: usize = 50;

#[derive(Template)]
#[template(path = "orgs/import.html")]
struct ImportPage {
    frame: Frame,
    text: String,
    reason: String,
    /// What would be done; nothing before somebody asked.
    planned: Option<Planned>,
    /// What is wrong, line by line.
    faults: Vec<String>,
    more: usize,
}

/// How many orgs would be made, changed, and left as they are.
struct Planned {
    created: u64,
    changed: u64,
    same: u64,
}

impl Planned {
    fn of(answer: &Value) -> Planned {
        let count = |name: &str| answer[name].as_u64().unwrap_or(0);
        Planned { created: count("created"), changed: count("changed"), same: count("same") }
    }

    fn total(&self) -> u64 {
        self.created + self.changed + self.same
    }
}

pub(crate) async fn show(visit: Visit) -> Result<Reply, Problem> {
    expect_operator(&visit)?;
    page(&visit, None, Vec::new(), StatusCode::OK).await
}

async fn page(
    visit: &Visit,
    planned: Option<Planned>,
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
        Ok(answer) if import => {
            let done = Planned::of(&answer);
            let text = format!("{} orgs made, {} changed, {} as they were.", done.created, done.changed, done.same);
            Ok(Reply::done("/orgs", text))
        }
        Ok(answer) => page(&visit, Some(Planned::of(&answer)), Vec::new(), StatusCode::OK).await,
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

/// Has the lines checked, or imported.
async fn performed(visit: &Visit, lines: &str, import: bool) -> Result<Value, Problem> {
    let mut query = Map::new();
    if !import {
        query.insert("dryRun".to_owned(), Value::Bool(true));
    }
    if let Some(reason) = visit.sent("reason") {
        query.insert("reason".to_owned(), reason.into());
    }
    // Nothing is remembered of what was only asked.
    let once = visit.sent("once").filter(|_| import);
    let inside = Inside { query: Value::Object(query), once, ..Inside::new(Method::POST, "/orgs", &[]) };
    let answer = visit.ask(inside, &lines).await;
    answer.map_err(|problem| match problem.kind {
        Kind::MalformedJson => Problem::new(Kind::InvalidInput, problem.detail),
        _ => problem,
    })
}
