//! Every link of every page leads somewhere.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::visitor::Visitor;
use crate::server::{Server, TARGETS};

/// More pages would be the same ones with other filters.
const MAX_PAGES: usize = 700;
/// As many pages of one kind are looked at.
const MAX_OF_A_KIND: usize = 6;

/// A server with something to show on each page.
fn server() -> Server {
    let server = Server::with(&format!(
        "[shell]\nallow = true\n{TARGETS}\n[[notify]]\nname = \"ops\"\ntype = \"command\"\nargv = [\"true\"]\n\
         [[rule]]\nwhen = [\"failed\"]\njobs = {{ all = true }}\nto = [\"ops\"]\n"
    ))
    .registered();
    server.job("ok-job", &json!({ "labels": { "team": "data & co" }, "description": "a <b>" }));
    server.job("bad", &json!({ "target": "fail", "labels": { "team": "ops" } }));
    server.job("after", &json!({ "after": { "job": "ok-job", "on": "success" }, "cronExpression": null }));
    server.job("paused", &json!({}));
    server.post("/jobs/key:paused/pause", &json!({ "reason": "a test" })).expect(200);
    server.put("/orgs/acme", &json!({ "timezone": "Europe/Paris" }));
    server.job("each", &json!({ "scope": "per_org", "cronExpression": "0 9 * * *" }));
    for key in ["ok-job", "bad"] {
        server.post(&format!("/jobs/key:{key}/run-now"), &json!({})).expect(202);
    }
    server.patch("/jobs/key:bad", &json!({ "description": "second version" })).expect(200);
    server.post("/jobs/key:paused/retire", &json!({}));
    server.until("/runs?status=succeeded,failed", |page| page["items"].as_array().is_some_and(|runs| runs.len() >= 2));
    server
}

/// The paths of a page's links within the server.
fn links(page: &str) -> BTreeSet<String> {
    let hrefs = page.split(" href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let inside = hrefs.filter(|href| href.starts_with('/') && !href.starts_with("//"));
    let address = |href: &str| href.replace("&amp;", "&").replace("&#38;", "&");
    let path = |href: &str| address(href).split('#').next().unwrap_or_default().to_owned();
    inside.map(path).collect()
}

/// The kind of a page: its path without names and ids, and the names of its filters.
fn kind(path: &str) -> String {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut parts: Vec<&str> = path.split('/').collect();
    // The names and ids follow the noun.
    if let Some(name) = parts.get_mut(2) {
        *name = "*";
    }
    let names: Vec<&str> = query.split('&').filter_map(|pair| pair.split('=').next()).collect();
    format!("{}?{}", parts.join("/"), names.join("&"))
}

#[test]
fn no_link_of_any_page_is_dead() {
    let server = server();
    let visitor = Visitor::admin(&server);
    let mut waiting: Vec<(String, String)> =
        ["/", "/settings"].map(|path| (path.to_owned(), "the start".to_owned())).to_vec();
    let mut seen: BTreeSet<String> = waiting.iter().map(|(path, _)| path.clone()).collect();
    let (mut kinds, mut dead): (BTreeMap<String, usize>, Vec<String>) = (BTreeMap::new(), Vec::new());
    let mut looked_at = 0;
    while let Some((path, from)) = waiting.pop() {
        let of_kind = kinds.entry(kind(&path)).or_default();
        *of_kind += 1;
        if *of_kind > MAX_OF_A_KIND || looked_at >= MAX_PAGES {
            continue;
        }
        looked_at += 1;
        let reply = visitor.get(&path);
        if reply.status >= 400 {
            dead.push(format!("{path} on {from}: {}", reply.status));
            continue;
        }
        let is_page = reply.headers.get("content-type").is_some_and(|kind| kind.starts_with("text/html"));
        if !is_page {
            continue;
        }
        for link in links(&reply.text) {
            if seen.insert(link.clone()) {
                waiting.push((link, path.clone()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
    assert!(looked_at > 60, "only {looked_at} pages were found");
}
