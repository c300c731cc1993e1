//! The OpenAPI 3.1 document, made from the table of routes.

use std::collections::BTreeMap;

use axum::http::Method;
use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

use super::body::LINES;
use super::model::ProblemDocument;
use super::problem::Kind;
use super::route::{Access, Route, Shape, Told};
use super::{ApiOptions, compat_routes, mounted_routes, root_routes};
use crate::form::{Field, schema};

/// The document. Every mount serves the same, so only the first is told.
pub(crate) fn document(options: &ApiOptions) -> Value {
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    let mut schemas: BTreeMap<String, Value> = BTreeMap::new();
    add_schema::<ProblemDocument>(&mut schemas);
    let first = options.settings.mounts.first().map_or("", String::as_str);
    let below = mounted_routes().into_iter().map(|route| (first, route));
    let compat = options.settings.compat.then(compat_routes).into_iter().flatten();
    for (mount, route) in below.chain(root_routes(options).into_iter().chain(compat).map(|route| ("", route))) {
        for Told { parts, .. } in &route.answers {
            for (name, part) in parts {
                schemas.insert(component(name), tidy(serde_json::to_value(part).unwrap_or_default()));
            }
        }
        let path = format!("{mount}{}", route.path);
        paths.entry(path).or_default().insert(route.method.as_str().to_lowercase(), operation(mount, &route));
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "everbell",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Durable, distributed cron. Times are RFC 3339 in UTC with as many decimals as they need \
                            (compare them as times, not as texts), durations of policies ISO 8601. \
                            Every error is a problem document (RFC 9457). POST takes an Idempotency-Key.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
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

/// References name components as they are named here.
fn tidy(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(members) => {
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
        parameters.push(header("If-Match", "The `ETag` of what was read.", "^\"[0-9]{1,18}\"$"));
    }
    if route.method == Method::POST && route.remembered && !matches!(route.access, Access::Open) {
        parameters.push(header("Idempotency-Key", "The same request again gets the same answer.", "^[!-~]{1,100}$"));
    }
    let mut operation = json!({
        "operationId": operation_id(mount, route),
        "summary": route.summary,
        "tags": [tag(mount, route.path)],
        "parameters": parameters,
        "responses": responses(route),
        "security": security(route.access),
    });
    if let (Some(fields), Shape::Lines) = (route.body, route.shape) {
        let lines = json!({ "type": "string", "description": "JSON lines: an object on each.", "x-line": schema::object(fields) });
        operation["requestBody"] = json!({ "required": true, "content": { (LINES): { "schema": lines } } });
    } else if let Some(fields) = route.body {
        let needed = fields.iter().any(|field| field.required);
        operation["requestBody"] =
            json!({ "required": needed, "content": { "application/json": { "schema": schema::object(fields) } } });
    }
    match route.access {
        Access::Role(role) => operation["x-role"] = json!(role.as_str()),
        Access::RunHistory => operation["x-role"] = json!("viewer"),
        Access::Open | Access::Metrics => {}
    }
    operation
}

fn security(access: Access) -> Value {
    match access {
        Access::Open | Access::Metrics => json!([]),
        Access::Role(_) | Access::RunHistory => json!([{ "token": [] }]),
    }
}

fn operation_id(mount: &str, route: &Route) -> String {
    let words: Vec<&str> = route.path.split(['/', '-', '{', '}', '.']).filter(|word| !word.is_empty()).collect();
    let below = if mount.is_empty() { "root_" } else { "" };
    format!("{below}{}_{}", route.method.as_str().to_lowercase(), words.join("_"))
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
    names.map(|name| {
        let about = match name {
            "jobId" => "An id, `key:NAME` or `key:NAME@VERSION`.",
            "runId" => "The id of a run.",
            "instanceId" => "The id of an instance.",
            "orgId" => "The id of an org.",
            "jobKey" => "The key of a job.",
            _ => "Its name.",
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
    if matches!(field.kind, crate::form::Kind::List { .. }) {
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
    for Told { status, about, media, schema, .. } in &route.answers {
        let mut response = json!({ "description": about });
        if !schema.is_null() {
            response["content"] = json!({ (*media): { "schema": tidy(schema.clone()) } });
        }
        responses.insert(status.to_string(), response);
    }
    for kind in problems(route) {
        let about = kind.about();
        let content = json!({ "schema": { "$ref": "#/components/schemas/ProblemDocument" } });
        let name = about.status.to_string();
        let told = responses.get(&name).and_then(|response| response["description"].as_str()).map(str::to_owned);
        let description = told.map_or_else(|| about.title.to_owned(), |told| format!("{told}; {}", about.title));
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
        kinds.push(Kind::PreconditionRequired);
    }
    if route.method == Method::POST && route.remembered {
        kinds.extend([Kind::IdempotencyInProgress, Kind::IdempotencyKeyReused]);
    }
    kinds.extend(&route.problems);
    kinds.push(Kind::Internal);
    kinds
}
