//! The document of the API: committed, served, and true.

use std::fs;
use std::path::Path;

use serde_json::Value;

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

/// Every reference leads somewhere, every operation says what it does and has an id of its own.
#[test]
fn the_document_is_whole() {
    let server = Server::start();
    let document = server.raw("GET", "/openapi.json", &[], b"").expect(200);
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 50);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    let mut ids = std::collections::BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            assert!(ids.insert(operation["operationId"].to_string()), "{method} {path}");
            assert!(operation["summary"].as_str().is_some_and(|text| text.len() > 5), "{method} {path}");
        }
    }
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
    assert!(
        page.text.contains("/api/v1/jobs/{jobId}/run-now")
            && page.headers["content-security-policy"].contains("'none'")
    );
    assert!(!page.text.contains("http://") && !page.text.contains("https://") && !page.text.contains("<script"));
    assert!(server.raw("GET", "/docs/style.css", &[], b"").text.contains("color-scheme"));
    let problem = server.raw("GET", "/docs/problems/invalid-input", &[], b"").expect(200);
    assert_eq!(problem["status"], 400);
    server.raw("GET", "/docs/problems/nothing", &[], b"").problem(404, "NotFound");
}
