//! The OpenAPI 3.1 document, generated from the table of routes.

use everbell_wire as wire;
use std::collections::{BTreeMap, BTreeSet};

use axum::http::Method;
use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

use super::examples;
use super::options::ApiOptions;
use super::problem::Kind;
use super::route::{Access, DocumentedResponse, Route, Shape};
use super::{compat_routes, mounted_routes, root_routes};
use everbell_wire::form::{Field, schema};

/// The document. Every mount serves the same routes, so it describes only the first.
pub(crate) fn document(options: &ApiOptions) -> Value {
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    let mut schemas: BTreeMap<String, Value> = BTreeMap::new();
    add_schema::<wire::Problem>(&mut schemas);
    let first = options.settings.mounts.first().map_or("", String::as_str);
    let below = mounted_routes().into_iter().map(|route| (first, route));
    let compat = options.settings.compat.then(compat_routes).into_iter().flatten();
    let routes: Vec<_> = below.chain(root_routes(options).into_iter().chain(compat).map(|route| ("", route))).collect();
    for (mount, route) in &routes {
        for DocumentedResponse { parts, .. } in route.documented_responses() {
            for (name, part) in parts {
                schemas.insert(component(&name), tidy(part));
            }
        }
        if let Some(fields) = route.body {
            schema::add_component(route.body_name, fields, &mut schemas);
        }
        if route.shape == Shape::Lines {
            schemas.insert(lines_of(route.body_name), lines(route.body_name));
        }
        let path = format!("{mount}{}", route.path);
        let mut operation = operation(mount, route);
        describe(&mut operation, route, &routes);
        paths.entry(path).or_default().insert(route.method.as_str().to_lowercase(), operation);
    }
    share_words(&mut paths, &mut schemas);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "everbell",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Durable, distributed cron. Times are RFC 3339 in UTC with as many decimals as needed: \
                            parse them before comparing; do not compare strings. Durations are ISO 8601. Every error is a problem \
                            document (RFC 9457). Send an Idempotency-Key with POST requests to repeat them safely. \
                            A request with the headers traceparent and tracestate (W3C Trace Context) passes its trace on \
                            to the runs and one-time jobs that it creates.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "tags": tags(&paths),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                "runToken": { "type": "http", "scheme": "bearer", "description": "The run token that a target received with its call." },
                "password": { "type": "http", "scheme": "basic", "description": "A token as the password, with any user name." },
            },
        },
    })
}

fn add_schema<T: ToSchema + PartialSchema>(schemas: &mut BTreeMap<String, Value>) {
    let mut parts = Vec::new();
    T::schemas(&mut parts);
    parts.push((T::name().into_owned(), T::schema()));
    for (name, part) in parts {
        schemas.insert(component(&name), tidy(serde_json::to_value(part).unwrap_or_default()));
    }
}

/// A name that may stand in a reference.
pub(crate) fn component(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

/// Replaces choices of words by references to the component that has the same words.
fn share_words(paths: &mut BTreeMap<String, Map<String, Value>>, schemas: &mut BTreeMap<String, Value>) {
    let named = schemas.iter().filter(|(_, schema)| schema["enum"].is_array());
    let components: Vec<(BTreeSet<String>, String)> =
        named.map(|(name, schema)| (words(schema), name.clone())).collect();
    let parameters = paths.values_mut().flat_map(Map::values_mut).map(|operation| &mut operation["parameters"]);
    let members = schemas.values_mut().filter_map(|schema| schema.get_mut("properties"));
    parameters.chain(members).for_each(|schema| share_words_in(schema, &components));
}

fn share_words_in(schema: &mut Value, components: &[(BTreeSet<String>, String)]) {
    let own = words(schema);
    if let Some((_, name)) = components.iter().find(|(words, _)| *words == own) {
        let mut shared = schema::reference(name);
        if let Some(description) = schema.get("description") {
            shared["description"] = description.clone();
        }
        *schema = shared;
        return;
    }
    match schema {
        Value::Object(members) => members.values_mut().for_each(|value| share_words_in(value, components)),
        Value::Array(items) => items.iter_mut().for_each(|item| share_words_in(item, components)),
        _ => {}
    }
}

/// The words that a schema allows.
fn words(schema: &Value) -> BTreeSet<String> {
    let words = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    words.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// References name components as they are named here, and a member that may be null is described beside its choices.
fn tidy(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(members) => {
            if let Some(Value::Array(choices)) = members.get_mut("oneOf")
                && choices.iter().any(|choice| choice["type"] == "null")
                && let Some(named) = choices.iter_mut().find(|choice| choice.get("$ref").is_some())
                && let Some(description) = named.as_object_mut().and_then(|named| named.remove("description"))
            {
                members.insert("description".to_owned(), description);
            }
            if let Some(Value::String(reference)) = members.get_mut("$ref")
                && let Some((path, name)) = reference.rsplit_once('/')
            {
                *reference = format!("{path}/{}", component(name));
            }
            for value in members.values_mut() {
                *value = tidy(value.take());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = tidy(item.take())),
        _ => {}
    }
    schema
}

fn operation(mount: &str, route: &Route) -> Value {
    let mut parameters: Vec<Value> = path_parameters(route.path).collect();
    parameters.extend(route.query.iter().map(query_parameter));
    if route.revised {
        parameters.push(header(
            "If-Match",
            "The `ETag` of the version that the client has read. If it is not the current one, the request is refused.",
            "^\"[0-9]{1,18}\"$",
        ));
    }
    if route.method == Method::POST && route.remembered && !matches!(route.access, Access::Open) {
        parameters.push(header("Idempotency-Key", "A key that the client chooses. A request that is sent again with the same key is not repeated, and gets the same response.", "^[!-~]{1,100}$"));
    }
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "tags": [tag(mount, route.path)],
        "parameters": parameters,
        "responses": responses(route),
        "security": security(route.access),
    });
    if let Some(fields) = route.body {
        operation["requestBody"] = request_body(route, fields);
    }
    match route.access {
        Access::Role(role) | Access::Feed(role) => operation["x-role"] = json!(role.as_str()),
        Access::RunHistory => operation["x-role"] = json!("viewer"),
        Access::RunToken => operation["x-role"] = json!("operator"),
        Access::Open | Access::Metrics => {}
    }
    operation
}

fn request_body(route: &Route, fields: &[Field]) -> Value {
    let (body, example) = (schema::reference(route.body_name), examples::request(route.body_name));
    if route.shape == Shape::Lines {
        let content =
            json!({ "schema": schema::reference(&lines_of(route.body_name)), "example": format!("{example}\n") });
        return json!({ "required": true, "content": { (wire::JSON_LINES): content } });
    }
    let content = json!({ "schema": body, "example": example });
    let is_required = fields.iter().any(|field| field.required);
    json!({ "required": is_required, "content": { "application/json": content } })
}

/// The name of a text that has one of these objects on each line.
fn lines_of(name: &str) -> String {
    format!("{name}s")
}

/// The schema of a text that has one of these objects on each line.
fn lines(name: &str) -> Value {
    let about = format!("JSON lines: one `{name}` on each line.");
    json!({ "type": "string", "format": "binary", "description": about, "x-line": schema::reference(name) })
}

fn security(access: Access) -> Value {
    match access {
        Access::Open | Access::Metrics => json!([]),
        Access::Role(_) | Access::RunHistory => json!([{ "token": [] }]),
        Access::RunToken => json!([{ "runToken": [] }, { "token": [] }]),
        Access::Feed(_) => json!([{ "token": [] }, { "password": [] }]),
    }
}

/// Adds the description of a route, which names the route to use instead of a deprecated one.
fn describe(operation: &mut Value, route: &Route, routes: &[(&str, Route)]) {
    let mut sentences = Vec::new();
    if let Some((mount, other)) = routes.iter().find(|(_, other)| Some(other.id) == route.replaced_by) {
        operation["deprecated"] = json!(true);
        sentences.push(format!("Deprecated: use `{}` (`{} {mount}{}`) instead.", other.id, other.method, other.path));
    }
    sentences.extend(Some(route.details.to_owned()).filter(|details| !details.is_empty()));
    if !sentences.is_empty() {
        operation["description"] = json!(sentences.join(" "));
    }
}

/// The sections of the documentation, in this order.
const TAGS: [(&str, &str); 25] = [
    ("jobs", "Create, change and inspect jobs."),
    ("runs", "List, cancel and rerun runs."),
    ("orgs", "Manage orgs, for which jobs fire in their own time zones."),
    ("top", "List the jobs that run, fail or cost the most."),
    ("problems", "List problems of jobs, and acknowledge or mute them."),
    ("notify", "List and test notification channels, and list their messages."),
    ("cron", "Explain cron expressions."),
    ("templates", "List cron expressions to start from."),
    ("targets", "List and try the targets that jobs run."),
    ("events", "Follow events as they happen."),
    ("calendars", "Manage calendars of days on which jobs do or do not fire."),
    ("gaps", "List slots that got no run, for all jobs."),
    ("outages", "List outages and their effect on jobs."),
    ("next", "List the next times at which jobs fire."),
    ("backfills", "List the backfills of all jobs."),
    ("stats", "Show statistics of all jobs."),
    ("freezes", "Manage freezes, during which schedules do not fire."),
    ("audit", "List audit entries: who did what, and when."),
    ("instances", "List and drain the instances of the cluster."),
    ("tokens", "Manage access tokens."),
    ("sessions", "List and end browser sessions."),
    ("config", "Reload the configuration of the server."),
    ("status", "Show the state of the server and its database."),
    ("server", "Probes, metrics and documentation."),
    ("schedules", "The compatibility API for programs that know schedules instead of jobs."),
];

/// The tags that operations use.
fn tags(paths: &BTreeMap<String, Map<String, Value>>) -> Value {
    let used = |tag: &str| paths.values().flat_map(Map::values).any(|operation| operation["tags"][0] == tag);
    let tags = TAGS.iter().filter(|(name, _)| used(name));
    tags.map(|(name, description)| json!({ "name": name, "description": description })).collect()
}

/// The section of the documentation: the first word of a route below a mount.
fn tag<'a>(mount: &str, path: &'a str) -> &'a str {
    if mount.is_empty() && !path.starts_with("/api/") {
        return "server";
    }
    let mut words = path.split('/').filter(|word| !word.is_empty() && *word != "api" && *word != "v1");
    words.next().unwrap_or("server")
}

fn path_parameters(path: &str) -> impl Iterator<Item = Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names.map(move |name| {
        let about = match name {
            "jobId" => "The job: its id, `key:NAME` or `key:NAME@VERSION`.",
            "runId" => "The id of a run.",
            "instanceId" => "The id of an instance.",
            "orgId" => "The id of an org.",
            "jobKey" => "The key of a job.",
            "backfillId" => "The id of a backfill.",
            "sweepId" => "The id of an org update.",
            "sessionId" => "The id of a session.",
            "target" => "The label of a target.",
            "problem" => "The last part of the `type` of a problem.",
            "freezeId" => "The id of a freeze.",
            "problemId" => "The id of a problem.",
            _ if path.starts_with("/calendars/") => "The name of a calendar.",
            _ if path.starts_with("/notify/channels/") => "The name of a channel.",
            _ => "The name of a token.",
        };
        let schema = json!({ "type": "string", "minLength": 1 });
        json!({ "name": name, "in": "path", "required": true, "description": about, "schema": schema })
    })
}

fn query_parameter(field: &Field) -> Value {
    let mut parameter = json!({
        "name": field.name,
        "in": "query",
        "required": field.required,
        "description": field.doc,
        "schema": schema::kind(&field.kind),
    });
    if matches!(field.kind, everbell_wire::form::Kind::List { .. }) {
        parameter["explode"] = json!(false);
    }
    parameter
}

fn header(name: &str, about: &str, pattern: &str) -> Value {
    let schema = json!({ "type": "string", "pattern": pattern });
    json!({ "name": name, "in": "header", "required": false, "description": about, "schema": schema })
}

fn responses(route: &Route) -> Value {
    let mut responses = Map::new();
    for DocumentedResponse { status, about, media, schema, example, .. } in route.documented_responses() {
        let mut response = json!({ "description": about });
        if !schema.is_null() {
            response["content"] = json!({ (media): { "schema": tidy(schema), "example": example } });
        }
        responses.insert(status.to_string(), response);
    }
    for kind in problems(route) {
        let about = kind.about();
        let content = json!({ "schema": { "$ref": "#/components/schemas/Problem" } });
        let name = about.status.to_string();
        let described = responses.get(&name).and_then(|response| response["description"].as_str()).map(str::to_owned);
        let description =
            described.map_or_else(|| about.title.to_owned(), |described| format!("{described}; {}", about.title));
        let response = responses.entry(name).or_insert_with(|| json!({}));
        response["description"] = json!(description);
        response["content"]["application/problem+json"] = content;
    }
    Value::Object(responses)
}

/// The problems that a route can have: its own, and those of the pipeline.
fn problems(route: &Route) -> Vec<Kind> {
    let mut kinds = vec![Kind::InvalidInput];
    if !matches!(route.access, Access::Open) {
        kinds.extend([Kind::Unauthenticated, Kind::Forbidden, Kind::RateLimited, Kind::NotReady]);
    }
    if route.body.is_some() {
        kinds.extend([Kind::MalformedJson, Kind::RequestTimeout, Kind::PayloadTooLarge, Kind::UnsupportedMediaType]);
    }
    if route.revised {
        kinds.extend([Kind::RevisionMismatch, Kind::PreconditionRequired]);
    }
    if route.method == Method::POST && route.remembered {
        kinds.extend([Kind::IdempotencyInProgress, Kind::IdempotencyKeyReused]);
    }
    kinds.extend(&route.problems);
    kinds.push(Kind::Internal);
    kinds
}
