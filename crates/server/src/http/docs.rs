//! The OpenAPI document as a page for people: nothing is loaded from elsewhere, and it needs no JavaScript.

use std::fmt::Write;

use serde_json::Value;

use super::body::LINES;

/// What the page may load: its own style sheet.
pub(crate) const POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What the page looks like.
pub(crate) const STYLE: &str = "\
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; overflow-wrap: anywhere; }
.skip { position: absolute; left: -99rem; } .skip:focus { left: 1rem; top: 1rem; padding: .3rem .7rem; background: Canvas; }
nav { text-transform: capitalize; } nav a { display: inline-block; margin-right: .7rem; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); text-transform: capitalize; }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .4rem 0; padding: .3rem .7rem; }
summary { cursor: pointer; } summary b { display: inline-block; min-width: 4.2rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0; } th, td { text-align: left; vertical-align: top; overflow-wrap: anywhere; padding: .25rem .5rem; border-top: 1px solid var(--line); }
.role { float: right; font-size: .85em; background: var(--soft); border-radius: .3rem; padding: 0 .4rem; }
";

/// The sections that come first; others stand behind them.
const ORDER: [&str; 12] = [
    "jobs",
    "runs",
    "orgs",
    "cron",
    "templates",
    "targets",
    "events",
    "audit",
    "instances",
    "tokens",
    "status",
    "server",
];

/// The page.
pub(crate) fn page(document: &Value) -> String {
    let text = |value: &Value| escaped(value.as_str().unwrap_or_default());
    let sections = sections(document);
    let mut html = String::from(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><title>everbell API</title>\
         <link rel=\"stylesheet\" href=\"/docs/style.css\"></head><body>\
         <a class=\"skip\" href=\"#content\">Skip to the content</a><header><nav>",
    );
    for (name, _) in &sections {
        put(&mut html, format_args!("<a href=\"#section-{name}\">{name}</a> "));
    }
    let info = &document["info"];
    put(
        &mut html,
        format_args!(
            "</nav></header><main id=\"content\"><h1>everbell API</h1><p>Version {}. {}</p>\
             <p>The same for programs: <a href=\"/openapi.json\">OpenAPI 3.1</a>. \
             Send <code>Authorization: Bearer evb_…</code>.</p>",
            text(&info["version"]),
            text(&info["description"])
        ),
    );
    for (name, section) in sections {
        put(&mut html, format_args!("<section id=\"section-{name}\"><h2>{name}</h2>{section}</section>"));
    }
    html.push_str("</main></body></html>");
    html
}

/// The parts of the page with their names: operations by what they are about, then the documents.
fn sections(document: &Value) -> Vec<(String, String)> {
    let mut sections: Vec<(String, String)> = Vec::new();
    for (path, operations) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in operations.as_object().into_iter().flatten() {
            let tag = escaped(operation["tags"][0].as_str().unwrap_or_default());
            let shown = self::operation(path, method, operation);
            match sections.iter_mut().find(|(name, _)| *name == tag) {
                Some((_, section)) => section.push_str(&shown),
                None => sections.push((tag, shown)),
            }
        }
    }
    let place = |name: &str| ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
    sections.sort_by_key(|(name, _)| place(name));
    let mut documents = String::new();
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        put(
            &mut documents,
            format_args!(
                "<details id=\"{0}\"><summary><code>{0}</code></summary>{1}</details>",
                escaped(name),
                members(schema)
            ),
        );
    }
    sections.push(("documents".to_owned(), documents));
    sections
}

fn operation(path: &str, method: &str, operation: &Value) -> String {
    let text = |value: &Value| escaped(value.as_str().unwrap_or_default());
    let mut html = String::new();
    let role = operation["x-role"].as_str().map(|role| format!("<span class=\"role\">{}</span>", escaped(role)));
    put(
        &mut html,
        format_args!(
            "<details><summary>{}<b>{}</b> <code>{}</code> {}</summary>",
            role.unwrap_or_default(),
            escaped(&method.to_uppercase()),
            escaped(path),
            text(&operation["summary"])
        ),
    );
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let rows: String = parameters
        .map(|parameter| {
            row(
                &text(&parameter["name"]),
                &parameter["schema"],
                &text(&parameter["in"]),
                &text(&parameter["description"]),
            )
        })
        .collect();
    if !rows.is_empty() {
        put(
            &mut html,
            format_args!(
                "<table><tr><th scope=\"col\">Parameter<th scope=\"col\">Kind<th scope=\"col\">In<th scope=\"col\">Meaning{rows}</table>"
            ),
        );
    }
    let content = &operation["requestBody"]["content"];
    for body in [&content["application/json"]["schema"], &content[LINES]["schema"]["x-line"]] {
        if body.is_object() {
            html.push_str(&members(body));
        }
    }
    html.push_str("<table><tr><th scope=\"col\">Status<th scope=\"col\">Answer<th scope=\"col\">Document");
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        let schemas =
            response["content"].as_object().into_iter().flatten().map(|(_, content)| kind(&content["schema"]));
        let schemas: Vec<String> = schemas.collect();
        put(
            &mut html,
            format_args!("<tr><td>{status}<td>{}<td>{}", text(&response["description"]), schemas.join(", ")),
        );
    }
    html.push_str("</table></details>");
    html
}

/// The members of an object as a table.
fn members(schema: &Value) -> String {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut rows = String::new();
    collect(schema, "", &required, &mut rows);
    for part in schema["allOf"].as_array().into_iter().flatten() {
        if part["properties"].is_object() {
            collect(part, "", &required, &mut rows);
        } else {
            put(&mut rows, format_args!("<tr><td colspan=\"4\">everything of {}", kind(part)));
        }
    }
    format!(
        "<table><tr><th scope=\"col\">Member<th scope=\"col\">Kind<th scope=\"col\">Needed<th scope=\"col\">Meaning{rows}</table>"
    )
}

fn collect(schema: &Value, path: &str, required: &[&str], rows: &mut String) {
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let needed = if required.contains(&name.as_str()) { "yes" } else { "" };
        let name = format!("{path}{name}");
        let about = escaped(member["description"].as_str().unwrap_or_default());
        rows.push_str(&row(&escaped(&name), member, needed, &about));
        if member["properties"].is_object() {
            collect(member, &format!("{name}."), &[], rows);
        }
    }
}

fn row(name: &str, schema: &Value, third: &str, about: &str) -> String {
    format!("<tr><td><code>{name}</code><td>{}<td>{third}<td>{about}", kind(schema))
}

/// What a schema says, in a few words.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = escaped(reference.rsplit('/').next().unwrap_or_default());
        return format!("<a href=\"#{name}\"><code>{name}</code></a>");
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> =
            words.iter().filter_map(Value::as_str).map(|word| format!("<code>{}</code>", escaped(word))).collect();
        return words.join(" or ");
    }
    if let Some(parts) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
        let parts: Vec<String> = parts.iter().filter(|part| part["type"] != "null").map(kind).collect();
        return parts.join(" or ");
    }
    let name = match &schema["type"] {
        Value::String(name) => name.as_str(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).find(|name| *name != "null").unwrap_or("any"),
        _ => "any",
    };
    match (name, schema["format"].as_str()) {
        ("array", _) => format!("list of {}", kind(&schema["items"])),
        (_, Some(format)) => escaped(format),
        (name, None) => escaped(name),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Writing into a text cannot fail.
fn put(html: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = html.write_fmt(text);
}
