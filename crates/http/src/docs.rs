//! The OpenAPI document as a page for people: nothing is loaded from elsewhere, and it needs no JavaScript.

use askama::Template;
use serde_json::Value;

use everbell_wire::JSON_LINES;

/// The content security policy of the page: only its own style sheet.
pub(crate) const POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The style sheet.
pub(crate) const STYLE: &str = "\
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
a { color: #4338ca; }
@media (prefers-color-scheme: dark) { :root { background: #0e1116; color: #e8ebf0; } a { color: #a5b0ff; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; background: var(--soft); border-radius: .3rem; padding: .4rem .7rem; }
.skip { position: absolute; left: -99rem; } .skip:focus { left: 1rem; top: 1rem; padding: .3rem .7rem; background: Canvas; }
nav { text-transform: capitalize; } nav a { display: inline-block; margin-right: .7rem; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); text-transform: capitalize; }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .4rem 0; padding: .3rem .7rem; }
summary { cursor: pointer; } summary b { display: inline-block; min-width: 4.2rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0; } th, td { text-align: left; vertical-align: top; overflow-wrap: anywhere; padding: .25rem .5rem; border-top: 1px solid var(--line); }
.role { float: right; font-size: .85em; background: var(--soft); border-radius: .3rem; padding: 0 .4rem; }
";

/// Renders the page.
pub(crate) fn page(document: &Value) -> String {
    let reference = ApiReference {
        version: text(&document["info"]["version"]),
        description: text(&document["info"]["description"]),
        sections: sections(document),
        documents: entries(&document["components"]["schemas"]).map(|(name, schema)| (name, members(schema))).collect(),
    };
    reference.render().unwrap_or_else(|error| format!("The API reference cannot be rendered: {error}"))
}

#[derive(Template)]
#[template(path = "api_reference.html")]
struct ApiReference<'a> {
    version: &'a str,
    description: &'a str,
    sections: Vec<Section<'a>>,
    documents: Vec<(&'a str, Vec<Row<'a>>)>,
}

/// The operations of one tag.
struct Section<'a> {
    name: &'a str,
    operations: Vec<Operation<'a>>,
}

struct Operation<'a> {
    method: String,
    path: &'a str,
    summary: &'a str,
    description: &'a str,
    role: Option<&'a str>,
    parameters: Vec<Row<'a>>,
    bodies: Vec<Vec<Row<'a>>>,
    example: Option<String>,
    responses: Vec<Response<'a>>,
}

struct Response<'a> {
    status: &'a str,
    meaning: &'a str,
    documents: Kind<'a>,
}

/// A row of a table of parameters or members.
enum Row<'a> {
    /// `detail` is where a parameter belongs, or whether a member is needed.
    Value { name: String, kind: Kind<'a>, detail: &'a str, meaning: &'a str },
    /// All members of another document.
    Inherited(Kind<'a>),
}

/// A schema in a few words.
type Kind<'a> = Vec<Part<'a>>;

enum Part<'a> {
    Text(&'a str),
    Code(&'a str),
    /// The name of a document of this page.
    Link(&'a str),
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn entries(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    object.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn sections(document: &Value) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for (path, operations) in entries(&document["paths"]) {
        for (method, operation) in entries(operations) {
            let name = text(&operation["tags"][0]);
            let operation = self::operation(document, path, method, operation);
            match sections.iter_mut().find(|section| section.name == name) {
                Some(section) => section.operations.push(operation),
                None => sections.push(Section { name, operations: vec![operation] }),
            }
        }
    }
    let order: Vec<&str> = items(&document["tags"]).map(|tag| text(&tag["name"])).collect();
    sections.sort_by_key(|section| order.iter().position(|known| *known == section.name));
    sections
}

fn operation<'a>(document: &'a Value, path: &'a str, method: &str, operation: &'a Value) -> Operation<'a> {
    let parameter = |parameter: &'a Value| Row::Value {
        name: text(&parameter["name"]).to_owned(),
        kind: kind(&parameter["schema"]),
        detail: text(&parameter["in"]),
        meaning: text(&parameter["description"]),
    };
    let content = &operation["requestBody"]["content"];
    let bodies = [&content["application/json"]["schema"], &content[JSON_LINES]["schema"]["x-line"]];
    let bodies = bodies.into_iter().filter_map(|body| document.pointer(body["$ref"].as_str()?.strip_prefix('#')?));
    let response = |(status, response): (&'a str, &'a Value)| Response {
        status,
        meaning: text(&response["description"]),
        documents: joined(entries(&response["content"]).map(|(_, content)| kind(&content["schema"])), ", "),
    };
    Operation {
        method: method.to_uppercase(),
        path,
        summary: text(&operation["summary"]),
        description: text(&operation["description"]),
        role: operation["x-role"].as_str(),
        parameters: items(&operation["parameters"]).map(parameter).collect(),
        bodies: bodies.map(members).collect(),
        example: Some(&content["application/json"]["example"]).filter(|example| !example.is_null()).map(pretty),
        responses: entries(&operation["responses"]).map(response).collect(),
    }
}

fn pretty(example: &Value) -> String {
    format!("{example:#}")
}

/// The members of an object, including those of its parts.
fn members(schema: &Value) -> Vec<Row<'_>> {
    let required: Vec<&str> = items(&schema["required"]).filter_map(Value::as_str).collect();
    let mut rows = Vec::new();
    collect(schema, "", &required, &mut rows);
    for part in items(&schema["allOf"]) {
        if part["properties"].is_object() {
            collect(part, "", &required, &mut rows);
        } else {
            rows.push(Row::Inherited(kind(part)));
        }
    }
    rows
}

fn collect<'a>(schema: &'a Value, path: &str, required: &[&str], rows: &mut Vec<Row<'a>>) {
    for (name, member) in entries(&schema["properties"]) {
        let detail = if required.contains(&name) { "yes" } else { "" };
        let name = format!("{path}{name}");
        let below = format!("{name}.");
        rows.push(Row::Value { name, kind: kind(member), detail, meaning: text(&member["description"]) });
        collect(member, &below, &[], rows);
    }
}

fn kind(schema: &Value) -> Kind<'_> {
    if let Some(reference) = schema["$ref"].as_str() {
        return vec![Part::Link(reference.rsplit('/').next().unwrap_or_default())];
    }
    if schema["enum"].is_array() {
        return joined(items(&schema["enum"]).filter_map(Value::as_str).map(|word| vec![Part::Code(word)]), " or ");
    }
    if let Some(parts) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
        return joined(parts.iter().filter(|part| part["type"] != "null").map(kind), " or ");
    }
    let name = match &schema["type"] {
        Value::String(name) => name.as_str(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).find(|name| *name != "null").unwrap_or("any"),
        _ => "any",
    };
    match (name, schema["format"].as_str()) {
        ("array", _) => [vec![Part::Text("list of ")], kind(&schema["items"])].into_iter().flatten().collect(),
        (_, Some(format)) => vec![Part::Text(format)],
        (name, None) => vec![Part::Text(name)],
    }
}

fn joined<'a>(kinds: impl Iterator<Item = Kind<'a>>, between: &'static str) -> Kind<'a> {
    let mut all = Vec::new();
    for kind in kinds {
        if !all.is_empty() {
            all.push(Part::Text(between));
        }
        all.extend(kind);
    }
    all
}
