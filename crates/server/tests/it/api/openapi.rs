//! The document of the API: committed, served, and true.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::server::{Server, TARGETS};

#[test]
fn the_committed_document_is_the_served_one() {
    let server = Server::start();
    let document = server.raw("GET", "/openapi.json", &[], b"").expect(200);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let text = serde_json::to_string_pretty(&document).unwrap() + "\n";
    if std::env::var_os("EVERBELL_BLESS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "docs/openapi.json is not what the server says; EVERBELL_BLESS=1 writes it anew");
    assert_eq!(document["openapi"], "3.1.0");
}

/// Every reference leads somewhere, and every operation says what it does.
#[test]
fn the_document_is_whole() {
    let document = document();
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 50);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    for (name, operation) in operations(&document) {
        assert!(operation["summary"].as_str().is_some_and(|text| text.len() > 5), "{name}");
    }
}

/// The first words of operation ids.
const VERBS: &[&str] = &[
    "acknowledge",
    "add",
    "append",
    "apply",
    "cancel",
    "check",
    "compare",
    "complete",
    "create",
    "delete",
    "drain",
    "end",
    "explain",
    "fail",
    "get",
    "heartbeat",
    "import",
    "list",
    "mute",
    "open",
    "pause",
    "preview",
    "purge",
    "put",
    "rebuild",
    "reload",
    "replace",
    "report",
    "rerun",
    "reschedule",
    "restore",
    "resume",
    "retire",
    "revoke",
    "run",
    "skip",
    "stop",
    "stream",
    "test",
    "try",
    "undrain",
    "unmute",
    "update",
];

#[test]
fn operation_ids_read_as_methods() {
    let document = document();
    let mut ids = std::collections::BTreeSet::new();
    for (name, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap();
        let verb = id.split(|letter: char| letter.is_ascii_uppercase()).next().unwrap();
        assert!(VERBS.contains(&verb) && verb.len() < id.len(), "{name}: {id}");
        assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{name}: {id}");
        assert!(ids.insert(id), "{name}: {id} is taken");
    }
    assert_eq!(ids.len(), 109);
    for id in ["listJobs", "createJob", "getJob", "updateJob", "retireJob", "runJobNow", "listRuns", "previewCron"] {
        assert!(ids.contains(id), "{id}");
    }
}

#[test]
fn deprecated_operations_name_their_replacement() {
    let document = document();
    let mut deprecated = Vec::new();
    for (name, operation) in operations(&document).filter(|(_, operation)| operation["deprecated"] == true) {
        let description = operation["description"].as_str().unwrap();
        let instead = description.strip_prefix("Deprecated: use `").and_then(|rest| rest.split('`').next()).unwrap();
        let found = operations(&document).find(|(_, other)| other["operationId"] == instead);
        assert!(found.is_some_and(|(_, other)| other["deprecated"].is_null()), "{name}: {description}");
        deprecated.push(operation["operationId"].as_str().unwrap());
    }
    deprecated.sort_unstable();
    let aliases = ["checkHealth", "createSchedule", "getSchedule", "listSchedules", "listSchedulesUnversioned"];
    assert_eq!(deprecated[..5], aliases);
    assert_eq!(deprecated[5..], ["pauseJobWithPatch", "replaceSchedule", "resumeJobWithPatch", "updateSchedule"]);
}

#[test]
fn tags_are_declared_in_order_with_a_description() {
    let document = document();
    let declared: Vec<&str> = document["tags"].as_array().unwrap().iter().map(|tag| text(&tag["name"])).collect();
    assert_eq!(declared[..3], ["jobs", "runs", "orgs"]);
    assert!(document["tags"].as_array().unwrap().iter().all(|tag| text(&tag["description"]).ends_with('.')));
    let mut used: Vec<&str> = operations(&document).map(|(_, operation)| text(&operation["tags"][0])).collect();
    used.sort_unstable();
    used.dedup();
    let mut sorted = declared.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, used);
}

/// A generator names types after components, so each object and each choice of words is one, and only one.
#[test]
fn bodies_are_named_components() {
    let document = document();
    for (name, operation) in operations(&document) {
        for (_, content) in operation["requestBody"]["content"].as_object().into_iter().flatten() {
            let schema = &content["schema"];
            assert!(text(&schema["$ref"]).starts_with("#/components/schemas/"), "{name}: {schema}");
        }
    }
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let without_description = |schema: &Value| {
        let mut schema = schema.clone();
        schema.as_object_mut().unwrap().remove("description");
        schema
    };
    for (name, schema) in schemas {
        let twin = schemas
            .iter()
            .find(|(other, own)| *other > name && without_description(own) == without_description(schema));
        assert!(twin.is_none(), "{name} is the same as {}", twin.unwrap().0);
        for (member, property) in schema["properties"].as_object().into_iter().flatten() {
            assert!(property["properties"].is_null(), "{name}.{member} is an object without a name");
        }
    }
    for name in ["JobCreate", "JobPatch", "PoliciesInput", "PauseRequest", "RunNowRequest", "TokenCreate", "JobPage"] {
        assert!(schemas.contains_key(name), "{name}");
    }
    let policies = &schemas["PoliciesInput"]["properties"];
    assert_eq!(policies["overlap"]["oneOf"][1]["$ref"], "#/components/schemas/Overlap");
    assert_eq!(policies["retry"]["oneOf"][1]["$ref"], "#/components/schemas/RetryInput");
}

#[test]
fn operations_have_examples() {
    let document = document();
    for (name, operation) in operations(&document) {
        for (_, content) in operation["requestBody"]["content"].as_object().into_iter().flatten() {
            assert!(!content["example"].is_null(), "{name}");
        }
        let responses = operation["responses"].as_object().unwrap();
        let good = responses.iter().filter(|(status, _)| status.starts_with('2'));
        for (_, content) in good.flat_map(|(_, response)| response["content"].as_object().into_iter().flatten()) {
            assert!(!content["example"].is_null(), "{name}");
        }
    }
}

/// Names of members that usually have few values.
const CHOICES: [&str; 8] = ["status", "type", "kind", "role", "code", "source", "reason", "outcome"];

/// Members with such a name that may hold any text, and why.
const OPEN: [(&str, &str); 7] = [
    (".reason", "a person or an error says it in prose"),
    ("Problem.type", "an address"),
    ("ProblemKind.type", "an address"),
    ("RunFail.code", "a stable word, which the remote side chooses"),
    ("Schedule.kind", "a label, which a user chooses"),
    ("ScheduleCreate.kind", "a label, which a user chooses"),
    ("SchedulePatch.kind", "a label, which a user chooses"),
];

#[test]
fn members_with_few_values_are_enums() {
    let document = document();
    let mut open = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let members = schema["properties"].as_object().into_iter().flatten();
        for (member, schema) in members.filter(|(member, _)| CHOICES.contains(&member.as_str())) {
            let is_text = schema["type"] == "string" || schema["type"] == json!(["string", "null"]);
            if is_text && schema.get("enum").is_none() {
                open.push(format!("{name}.{member}"));
            }
        }
    }
    let covers = |known: &str, member: &str| member == known || known.starts_with('.') && member.ends_with(known);
    let closed: Vec<&String> =
        open.iter().filter(|member| !OPEN.iter().any(|(known, _)| covers(known, member))).collect();
    assert_eq!(closed, [""; 0], "give them an enum made with `words!`");
    for (known, why) in OPEN {
        assert!(open.iter().any(|member| covers(known, member)), "{known} ({why}) is no exception any more");
    }
}

#[test]
fn codes_of_problems_are_those_of_the_catalog() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    let words: Vec<&str> = schemas["ProblemCode"]["enum"].as_array().unwrap().iter().map(text).collect();
    let catalog: Vec<&str> = everbell_http::problem::CATALOG.iter().map(|about| about.code.as_str()).collect();
    assert_eq!(words, catalog);
    for member in [&schemas["Problem"]["properties"]["code"], &schemas["ProblemKind"]["properties"]["code"]] {
        assert!(member.to_string().contains("#/components/schemas/ProblemCode"), "{member}");
    }
}

/// Phrases that a native speaker would not write here.
const ODD: [&str; 9] = ["Tell ", "Make ", "What ", "Who ", "Whatever ", " anew", "by itself", "nobody", "somebody"];

#[test]
fn everything_is_described_in_plain_words() {
    let document = document();
    let check = |name: &str, words: &Value| {
        let words = text(words);
        assert!(words.len() > 5 && words.starts_with(|first: char| !first.is_lowercase()), "{name}: {words:?}");
        let odd =
            ODD.iter().find(|odd| if odd.starts_with(' ') { words.contains(**odd) } else { words.starts_with(**odd) });
        assert_eq!(odd, None, "{name}: {words}");
    };
    for (name, operation) in operations(&document) {
        check(&name, &operation["summary"]);
        assert!(!text(&operation["summary"]).ends_with('.'), "{name}");
        for parameter in operation["parameters"].as_array().unwrap() {
            check(&format!("{name} {}", parameter["name"]), &parameter["description"]);
        }
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        for (member, property) in schema["properties"].as_object().into_iter().flatten() {
            check(&format!("{name}.{member}"), &property["description"]);
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The document that a server serves.
fn document() -> Value {
    Server::start().raw("GET", "/openapi.json", &[], b"").expect(200)
}

/// Every operation, with its method and path.
fn operations(document: &Value) -> impl Iterator<Item = (String, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, operations)| {
        let operations = operations.as_object().unwrap().iter();
        operations.map(move |(method, operation)| (format!("{method} {path}"), operation))
    })
}

fn collect(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(reference) if name == "$ref" => references.push(reference.clone()),
                    value => collect(value, references),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        _ => {}
    }
}

#[test]
fn the_page_for_people_loads_nothing_from_elsewhere() {
    // Without pages the first address leads to the documentation.
    let bare = Server::with(&format!("{TARGETS}\n[ui]\nenabled = false"));
    for (server, place) in [(&bare, "/docs/api"), (&Server::start(), "/sign-in")] {
        let home = server.raw("GET", "/", &[], b"");
        assert_eq!((home.status, home.headers["location"].as_str()), (303, place));
    }
    bare.raw("GET", "/jobs", &[], b"").problem(404, "NotFound");
    let server = bare;
    let page = server.raw("GET", "/docs/api", &[], b"");
    assert_eq!(page.status, 200);
    // The members of a body, and a link to what is inside of them.
    assert!(page.text.contains("<code>pauseReason</code>") && page.text.contains("href=\"#PoliciesInput\""));
    assert!(page.text.contains("Deprecated: use `pauseJob`") && page.text.contains("The board needs the report today"));
    assert!(
        page.text.contains("/api/v1/jobs/{jobId}/run-now")
            && page.headers["content-security-policy"].contains("'none'")
    );
    let outside = ["src=\"http", "href=\"http", "url(http", "@import", "<script"];
    assert!(!outside.iter().any(|loaded| page.text.contains(loaded)), "{}", page.text);
    assert!(server.raw("GET", "/docs/style.css", &[], b"").text.contains("color-scheme"));
    let problem = server.raw("GET", "/docs/problems/invalid-input", &[], b"").expect(200);
    assert_eq!(problem["status"], 400);
    server.raw("GET", "/docs/problems/nothing", &[], b"").problem(404, "NotFound");
}
