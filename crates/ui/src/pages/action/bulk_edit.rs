//! Editing many jobs: the selected ones, or all that match a filter. What differs about each job is shown before it is saved.

use std::collections::BTreeMap;

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell_core::store::PageRequest;
use serde::Serialize;
use serde_json::{Value, json};

use super::bulk::selected_keys;
use super::{Refusal, correctable, typed};
use crate::equivalent::Equivalent;
use crate::links::Links;
use crate::markup::url_part;
use crate::pages::job_form::{expect_admin, policy_value};
use crate::pages::jobs::targets;
use crate::request::{UiRequest, UiResponse, safe_return_path};
use crate::{Frame, Section};
use everbell_http::api::jobs::filter;
use everbell_http::internal_call::InternalCall;
use everbell_http::problem::Problem;
use everbell_wire as wire;
use everbell_wire::JobBody;
use everbell_wire::bulk::BulkOutcome;
use everbell_wire::policies::{GROUPS, POLICIES, PolicyKind};

const ROUTE: &str = "/jobs/bulk";
/// The most jobs of one request, as in the API.
const MAX_JOBS: u32 = 1_000;

#[derive(Template)]
#[template(path = "action/bulk_edit.html")]
struct BulkEditPage {
    frame: Frame,
    refusal: Refusal,
    /// The jobs, a line each.
    keys: String,
    jobs: usize,
    targets: Vec<String>,
    /// The fields as they were sent.
    sent: BTreeMap<String, String>,
    /// The changes, once they were asked for.
    rows: Vec<Row>,
    changing: usize,
    done: bool,
    back: String,
    same: Option<Equivalent>,
}

/// The changes of a job.
struct Row {
    key: String,
    part: String,
    class: &'static str,
    word: &'static str,
    detail: Option<String>,
    /// The field, its value before and after.
    changes: Vec<(String, String, String)>,
}

impl Row {
    fn new(item: &wire::BulkItem) -> Row {
        let (class, word) = match item.outcome {
            BulkOutcome::WouldChange => ("ok", "Will be edited"),
            BulkOutcome::Changed => ("ok", "Edited"),
            BulkOutcome::Failed => ("bad", "Failed"),
            BulkOutcome::Unchanged | BulkOutcome::Other(_) => ("wait", "Unchanged"),
        };
        let plain = |value: &Value| match value {
            Value::Null => "–".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let changes = item.changes.iter();
        Row {
            key: item.job_key.clone(),
            part: url_part(&item.job_key),
            class,
            word,
            detail: item.detail.clone(),
            changes: changes.map(|change| (change.field.clone(), plain(&change.from), plain(&change.to))).collect(),
        }
    }
}

impl BulkEditPage {
    /// The text that was sent for a field.
    fn text(&self, name: &str) -> &str {
        self.sent.get(name).map_or("", String::as_str)
    }

    /// Whether any policy was sent, so that the fields of policies are open.
    fn names_policies(&self) -> bool {
        self.sent.iter().any(|(name, text)| name.starts_with("edit/policies/") && !text.is_empty())
    }
}

/// The body of the request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    action: &'static str,
    job_keys: &'a [&'a str],
    edit: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dry_run: Option<bool>,
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_admin(&request)?;
    let query = request.query(super::bulk::QUERY);
    let keys = if query.flag("all") {
        let api_request = request.to_api_request();
        let page = PageRequest { limit: MAX_JOBS, after: None };
        let jobs = request.jobs().list(&filter(&api_request, &api_request.query(super::bulk::QUERY))?, &page).await?;
        jobs.items.iter().map(|row| row.job.definition.key.to_string()).collect()
    } else {
        selected_keys(&request)
    };
    let mut filters = request.query.as_object().cloned().unwrap_or_default();
    filters.retain(|name, _| !["key", "all", "back"].contains(&name.as_str()));
    let list = Links::new("/jobs", &Value::Object(filters)).here();
    let back = query.text("back").map_or(list, str::to_owned);
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    page(&request, &keys, None, &back, Refusal::default(), StatusCode::OK).await
}

async fn page(
    request: &UiRequest,
    keys: &[&str],
    answer: Option<(&wire::Bulk, &Value)>,
    back: &str,
    refusal: Refusal,
    status: StatusCode,
) -> Result<UiResponse, Problem> {
    let rows: Vec<Row> = answer.map_or_else(Vec::new, |(answer, _)| answer.items.iter().map(Row::new).collect());
    let same = match answer {
        Some((_, patch)) => Some(same(request, keys, patch)?),
        None => None,
    };
    let page = BulkEditPage {
        frame: request.frame(Section::Jobs, "Edit jobs").await,
        refusal,
        keys: keys.join("\n"),
        jobs: keys.len(),
        targets: targets(request, &[]).await?,
        sent: fields().into_iter().map(|name| (name.clone(), typed(request, &name))).collect(),
        changing: answer.map_or(0, |(answer, _)| answer.changed as usize),
        done: answer.is_some_and(|(answer, _)| !answer.dry_run),
        rows,
        back: safe_return_path(back).to_owned(),
        same,
    };
    UiResponse::with_status(&page, status)
}

/// The names of all fields.
fn fields() -> Vec<String> {
    let policies = POLICIES.iter().map(|policy| format!("edit/{}", policy.field_name()));
    ["edit/target", "edit/labels", "removed", "reason"].map(str::to_owned).into_iter().chain(policies).collect()
}

fn same(request: &UiRequest, keys: &[&str], patch: &Value) -> Result<Equivalent, Problem> {
    let body = Body { action: "edit", job_keys: keys, edit: patch, reason: None, dry_run: None };
    let fields = ["action=edit".to_owned(), format!("jobKeys={}", json!(keys)), format!("edit={patch}")];
    let mut words = vec!["api", "POST", ROUTE];
    words.extend(fields.iter().flat_map(|field| ["-f", field.as_str()]));
    Equivalent::with_body(&request.api_base(), "POST", ROUTE, &body, &words)
}

/// The merge patch of the form; an error names the field.
fn patch(request: &UiRequest) -> Result<Value, (&'static str, String)> {
    let mut body = JobBody::default();
    if let Some(target) = request.sent("edit/target") {
        body.put("target", target);
    }
    let parts = |name: &str| {
        let text = request.sent(name).unwrap_or_default().to_owned();
        text.split([',', '\n']).map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect::<Vec<_>>()
    };
    let mut labels = serde_json::Map::new();
    for part in parts("edit/labels") {
        let (name, value) =
            part.split_once('=').ok_or_else(|| ("edit/labels", format!("`{part}`: use the format name=value")))?;
        labels.insert(name.trim().to_owned(), json!(value.trim()));
    }
    for name in parts("removed") {
        if labels.insert(name.clone(), Value::Null).is_some() {
            return Err(("removed", format!("`{name}` is set above")));
        }
    }
    if !labels.is_empty() {
        body.put("labels", labels);
    }
    for policy in POLICIES {
        if let Some(text) = request.sent(&format!("edit/{}", policy.field_name())) {
            body.put_policy(policy.member(), policy_value(policy, text));
        }
    }
    if body.members.is_empty() {
        return Err(("edit/target", "change at least one field".to_owned()));
    }
    Ok(Value::Object(body.members))
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_admin(&request)?;
    let keys: Vec<&str> = request.sent("keys").unwrap_or_default().lines().filter(|line| !line.is_empty()).collect();
    let back = typed(&request, "back");
    let patch = match patch(&request) {
        Ok(patch) => patch,
        Err((name, why)) => {
            let refusal = Refusal::at_field(name, why);
            return page(&request, &keys, None, &back, refusal, StatusCode::BAD_REQUEST).await;
        }
    };
    let saves = request.sent("do") == Some("save");
    let dry_run = (!saves).then_some(true);
    let body = Body { action: "edit", job_keys: &keys, edit: &patch, reason: request.sent("reason"), dry_run };
    let answer: Result<wire::Bulk, Problem> = if saves {
        request.perform(Method::POST, ROUTE, &[], &body).await
    } else {
        request.ask(InternalCall::new(Method::POST, ROUTE, &[]), &body).await
    };
    match answer {
        Ok(answer) if saves && answer.items.iter().all(|item| item.outcome != BulkOutcome::Failed) => {
            let jobs = if answer.changed == 1 { "1 job".to_owned() } else { format!("{} jobs", answer.changed) };
            Ok(UiResponse::done(safe_return_path(&back), format!("{jobs} edited.")))
        }
        Ok(answer) => page(&request, &keys, Some((&answer, &patch)), &back, Refusal::default(), StatusCode::OK).await,
        Err(problem) => {
            let problem = correctable(problem)?;
            let fields = fields();
            let names: Vec<&str> = fields.iter().map(String::as_str).collect();
            let refusal = Refusal::from_problem(Some(&problem), &names);
            page(&request, &keys, None, &back, refusal, problem.status()).await
        }
    }
}
