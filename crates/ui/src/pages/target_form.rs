//! Creating, editing and deleting a target, where the configuration allows it. A check without saving says what is wrong and
//! whether this instance could serve it.

use askama::Template;
use axum::http::{Method, StatusCode};
use everbell_http::access::{Role, expect_role};
use everbell_http::api::targets::{document, editable};
use everbell_http::internal_call::InternalCall;
use everbell_http::problem::{Kind, Problem};
use everbell_wire as wire;
use everbell_wire::FaultCode;
use everbell_wire::body::target::{value_from_text, value_to_text};
use everbell_wire::form::{Field, Kind as FieldKind, optional};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::equivalent::Equivalent;
use crate::markup::url_part;
use crate::pages::action::{Refusal, correctable, typed};
use crate::request::{Content, Flash};
use crate::{Frame, Section, UiRequest, UiResponse};

/// The query of the form for a new target.
pub(crate) const QUERY: &[Field] = &[optional("type", FieldKind::Word(&["http", "command"]), "The type.")];

/// The fields that faults are shown at. Those of the other type do not occur.
const FIELDS: [&str; 17] = [
    "target",
    "url",
    "method",
    "headers",
    "signingKeys",
    "allowPrivate",
    "argv",
    "cwd",
    "user",
    "group",
    "env",
    "passEnv",
    "success",
    "timeout",
    "concurrency",
    "reason",
    "type",
];
const METHODS: [&str; 5] = ["POST", "PUT", "PATCH", "GET", "DELETE"];

/// Members with one value per line, and whether a line is `name: value`, a value that may be a reference, or a text.
const LISTS: [(&str, Line); 5] = [
    ("headers", Line::Pair(':')),
    ("env", Line::Pair('=')),
    ("signingKeys", Line::Value),
    ("argv", Line::Text),
    ("passEnv", Line::Text),
];
const TEXTS: [&str; 5] = ["method", "cwd", "user", "group", "timeout"];

#[derive(Clone, Copy)]
enum Line {
    Pair(char),
    Value,
    Text,
}

#[derive(Template)]
#[template(path = "targets/edit.html")]
struct EditPage {
    frame: Frame,
    refusal: Refusal,
    /// The label and the revision of a target that exists.
    current: Option<(String, String)>,
    label: String,
    part: String,
    kind: String,
    kinds: Vec<String>,
    methods: Vec<(&'static str, bool)>,
    values: Values,
    /// The result of a check: whether all is well, and the words.
    checked: Option<(bool, String)>,
    same: Equivalent,
}

/// The texts of the fields.
struct Values(Map<String, Value>);

impl Values {
    fn get(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn is_set(&self, name: &str) -> bool {
        !self.get(name).is_empty()
    }

    /// Reads the typed values.
    fn sent(request: &UiRequest) -> Values {
        Values(FIELDS.iter().map(|name| ((*name).to_owned(), json!(typed(request, name)))).collect())
    }

    /// The fields of a definition.
    fn of_definition(definition: &Value) -> Values {
        let mut fields = Map::new();
        for (name, value) in definition.as_object().into_iter().flatten() {
            let text = match (LISTS.iter().find(|(list, _)| list == name), value) {
                (Some((_, Line::Pair(mark))), Value::Object(members)) => {
                    let space = if *mark == ':' { " " } else { "" };
                    let line =
                        |(name, value): (&String, &Value)| format!("{name}{mark}{space}{}", value_to_text(value));
                    members.iter().map(line).collect::<Vec<_>>().join("\n")
                }
                (_, Value::Array(items)) if name == "success" => {
                    let item = |item: &Value| item.as_str().map_or_else(|| item.to_string(), str::to_owned);
                    items.iter().map(item).collect::<Vec<_>>().join(", ")
                }
                (_, Value::Array(items)) => items.iter().map(value_to_text).collect::<Vec<_>>().join("\n"),
                (_, Value::Number(number)) => number.to_string(),
                (_, Value::Bool(flag)) => if *flag { "yes" } else { "" }.to_owned(),
                (_, value) => value_to_text(value),
            };
            fields.insert(name.clone(), json!(text));
        }
        Values(fields)
    }
}

/// The members of a definition that the page itself reads.
#[derive(Default, Deserialize)]
#[serde(default)]
struct DefinitionHead {
    #[serde(rename = "type")]
    kind: Option<String>,
    url: Value,
    argv: Vec<Value>,
}

impl DefinitionHead {
    /// Reads a definition. One whose members are of other types has no head.
    fn read(definition: &Value) -> DefinitionHead {
        DefinitionHead::deserialize(definition).unwrap_or_default()
    }
}

/// The definition of the form, over the members that the form has no field for.
fn definition(request: &UiRequest, kind: &str, current: Option<&Value>) -> Value {
    let kept = |name: &String| !FIELDS.contains(&name.as_str());
    let before = current.and_then(Value::as_object).cloned().unwrap_or_default();
    let mut members: Map<String, Value> = before.into_iter().filter(|(name, _)| kept(name)).collect();
    members.insert("type".to_owned(), json!(kind));
    for name in TEXTS {
        request.sent(name).into_iter().for_each(|text| drop(members.insert(name.to_owned(), json!(text))));
    }
    request.sent("url").into_iter().for_each(|url| drop(members.insert("url".to_owned(), value_from_text(url))));
    if let Some(runs) = request.sent("concurrency") {
        // A text that is no number is refused with its field.
        members.insert("concurrency".to_owned(), runs.parse::<i64>().map_or_else(|_| json!(runs), |runs| json!(runs)));
    }
    if request.sent("allowPrivate").is_some() {
        members.insert("allowPrivate".to_owned(), json!(true));
    }
    if let Some(success) = request.sent("success") {
        let item = |text: &str| text.trim().parse::<i64>().map_or_else(|_| json!(text.trim()), |code| json!(code));
        members.insert("success".to_owned(), success.split(',').map(item).collect());
    }
    for (name, line) in LISTS {
        let text = request.sent(name).unwrap_or_default();
        let lines = text.lines().map(|line| line.trim_end_matches('\r')).filter(|line| !line.trim().is_empty());
        let value: Value = match line {
            Line::Pair(mark) => {
                let pair = |line: &str| {
                    let (name, value) = line.split_once(mark).unwrap_or((line, ""));
                    (name.trim().to_owned(), value_from_text(value.trim()))
                };
                Value::Object(lines.map(pair).collect())
            }
            Line::Value => lines.map(|line| value_from_text(line.trim())).collect(),
            // Spaces may be a part of an argument.
            Line::Text => lines.map(|line| json!(line)).collect(),
        };
        if value.as_array().is_some_and(|items| !items.is_empty())
            || value.as_object().is_some_and(|all| !all.is_empty())
        {
            members.insert(name.to_owned(), value);
        }
    }
    Value::Object(members)
}

/// The target of the address, if an admin may edit it.
async fn current(request: &UiRequest) -> Result<Option<wire::Target>, Problem> {
    let label = request.part("label");
    if label.is_empty() {
        return Ok(None);
    }
    let target = document(&request.to_api_request(), label).await?;
    if target.source == Some(wire::Source::Api) && target.definition.is_some() {
        return Ok(Some(target));
    }
    Err(Problem::new(
        Kind::Conflict,
        format!("The target `{label}` is defined by a configuration or a program: change it there."),
    ))
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_role(&request.actor, Role::Admin)?;
    let current = current(&request).await?;
    form(&request, current, None, None).await
}

async fn form(
    request: &UiRequest,
    current: Option<wire::Target>,
    problem: Option<&Problem>,
    checked: Option<(bool, String)>,
) -> Result<UiResponse, Problem> {
    let kinds = editable(&request.app).await;
    let existing = current.as_ref().and_then(|target| target.definition.clone());
    let is_first = request.sent.is_empty();
    let kind = kind(request, existing.as_ref(), &kinds);
    let values = match &existing {
        Some(definition) if is_first => Values::of_definition(definition),
        _ => Values::sent(request),
    };
    let label = current.as_ref().map_or_else(|| typed(request, "target"), |target| target.target.clone());
    let shown = if label.is_empty() { "LABEL" } else { &label };
    let body = match &existing {
        Some(definition) if is_first => definition.clone(),
        _ => definition(request, &kind, existing.as_ref()),
    };
    let path = format!("/targets/{}", url_part(shown));
    let verb = if current.is_some() { "edit" } else { "add" };
    let mut words = vec!["targets", verb, shown];
    let head = DefinitionHead::read(&body);
    let url = value_to_text(&head.url);
    if !url.is_empty() {
        words.extend(["--url", &url]);
    }
    let argv: Vec<&str> = head.argv.iter().filter_map(Value::as_str).collect();
    if !argv.is_empty() {
        words.push("--");
        words.extend(argv);
    }
    let method = values.get("method").to_owned();
    let title = if current.is_some() { format!("Edit target {label}") } else { "New target".to_owned() };
    let page = EditPage {
        frame: request.frame(Section::Targets, title).await,
        refusal: Refusal::from_problem(problem, &FIELDS),
        methods: METHODS.iter().map(|word| (*word, *word == method)).collect(),
        same: Equivalent::with_body(&request.api_base(), "PUT", &path, &body, &words)?,
        current: current.map(|target| {
            let revision = target.revision.unwrap_or_default().to_string();
            (target.target, request.sent("revision").map_or(revision, str::to_owned))
        }),
        part: url_part(&label),
        label,
        kind,
        kinds,
        values,
        checked,
    };
    UiResponse::with_status(&page, problem.map_or(StatusCode::OK, Problem::status))
}

/// The type of a target that exists, of the form, of the address, or the first that is allowed.
fn kind(request: &UiRequest, existing: Option<&Value>, kinds: &[String]) -> String {
    let of_definition = existing.and_then(|definition| DefinitionHead::read(definition).kind);
    let form = request.query(QUERY);
    let first = kinds.first().map_or("http", String::as_str);
    of_definition.as_deref().or_else(|| request.sent("type")).or_else(|| form.text("type")).unwrap_or(first).to_owned()
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_role(&request.actor, Role::Admin)?;
    let current = current(&request).await?;
    let label = current.as_ref().map_or_else(|| typed(&request, "target"), |target| target.target.clone());
    if let Err(invalid) = everbell::Target::new(&label) {
        let fault = everbell_wire::form::Fault::new("/target", FaultCode::Invalid, invalid.reason);
        return form(&request, current, Some(&Problem::body(vec![fault])), None).await;
    }
    let existing = current.as_ref().and_then(|target| target.definition.clone());
    let kind = kind(&request, existing.as_ref(), &editable(&request.app).await);
    let mut body = definition(&request, &kind, existing.as_ref());
    request.sent("reason").into_iter().for_each(|reason| body["reason"] = json!(reason));
    let checks = request.sent("check").is_some();
    let path = [("target", label.as_str())];
    let call = InternalCall::new(Method::PUT, "/targets/{target}", &path);
    let call = if checks { call.with_query(&json!({ "dryRun": true }))? } else { call };
    // A new one must not replace one that somebody else has created meanwhile.
    let revision = if current.is_none() { Some(0) } else { request.revision() };
    let call = InternalCall { revision, once: request.sent("once"), ..call };
    match request.ask::<wire::TargetWritten>(call, &body).await {
        Ok(written) if checks => {
            let found = written.problem.map_or_else(
                || (true, "The definition is valid, and this instance can serve it.".to_owned()),
                |problem| (false, format!("The definition is valid, but this instance cannot serve it: {problem}")),
            );
            form(&request, current, None, Some(found)).await
        }
        Ok(written) => {
            let more = written
                .problem
                .map_or_else(String::new, |problem| format!(" This instance cannot serve it: {problem}"));
            Ok(UiResponse::done(format!("/targets/{}", url_part(&label)), format!("Target {label} saved.{more}")))
        }
        Err(problem) if problem.kind == Kind::RevisionMismatch => {
            let text = if current.is_none() {
                format!("A target named `{label}` already exists.")
            } else {
                "The target has changed in the meantime, and nothing was saved. Open it again.".to_owned()
            };
            form(&request, current, Some(&Problem::new(Kind::Conflict, text)), None).await
        }
        Err(problem) => form(&request, current, Some(&correctable(problem)?), None).await,
    }
}

#[derive(Template)]
#[template(path = "targets/delete.html")]
struct DeletePage {
    frame: Frame,
    label: String,
    part: String,
    jobs: u64,
    same: Equivalent,
}

pub(crate) async fn delete_form(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_role(&request.actor, Role::Admin)?;
    let Some(target) = current(&request).await? else {
        return Err(Problem::new(Kind::NotFound, "There is no such target."));
    };
    let label = target.target;
    let (query, flag) = if target.jobs > 0 { ("?force=true", &["--force"][..]) } else { ("", &[][..]) };
    let words: Vec<&str> = ["targets", "rm", label.as_str()].into_iter().chain(flag.iter().copied()).collect();
    let path = format!("/targets/{}{query}", url_part(&label));
    let page = DeletePage {
        frame: request.frame(Section::Targets, format!("Delete target {label}")).await,
        part: url_part(&label),
        jobs: target.jobs,
        same: Equivalent::new(&request.api_base(), "DELETE", &path, &words),
        label,
    };
    UiResponse::page(&page)
}

pub(crate) async fn delete(request: UiRequest) -> Result<UiResponse, Problem> {
    let label = request.part("label").to_owned();
    let path = [("target", label.as_str())];
    let call = InternalCall::new(Method::DELETE, "/targets/{target}", &path);
    let force = request.sent("force").is_some();
    let call = InternalCall { once: request.sent("once"), ..call.with_query(&json!({ "force": force }))? };
    match request.ask::<()>(call, &()).await {
        Ok(()) => Ok(UiResponse::done("/targets", format!("Target {label} deleted."))),
        Err(problem) => {
            let flash = Some(Flash { good: false, text: correctable(problem)?.detail });
            Ok(UiResponse::new(Content::Redirect { to: format!("/targets/{}", url_part(&label)), flash }))
        }
    }
}
