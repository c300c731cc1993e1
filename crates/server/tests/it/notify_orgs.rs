//! Rules that look at orgs one by one, as a receiver of their messages sees them.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::notify::{Got, Receiver};
use crate::server::Server;

/// A target that fails for the orgs that have a file. The rule is about two of them, after two failures.
fn config(port: u16) -> String {
    format!(
        r#"
[[target]]
label = "fragile"
type = "command"
argv = ["sh", "-c", "test ! -e broken-$EVERBELL_ORG_ID"]
[[notify]]
name = "orgs"
type = "webhook"
url = "http://127.0.0.1:{port}/orgs"
[[rule]]
when = ["failed", "recovered"]
jobs = {{ all = true }}
orgs = ["ac*", "bolt"]
after = 2
to = ["orgs"]
"#
    )
}

fn run(server: &Server, org: &str, status: &str) {
    let started = server.post("/jobs/key:brief/run-now", &json!({ "orgId": org })).expect(202);
    let id = started["run"]["id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
    server.until(&format!("/runs/{id}"), |run| run["status"] == status);
}

fn changes(got: &[Got]) -> BTreeSet<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    got.iter().map(|got| (text(&got.body["type"]), text(&got.body["data"]["problem"]["orgId"]))).collect()
}

fn messages_name_their_org(server: &Server, receiver: &Receiver) {
    for org in ["acme", "bolt", "cove"] {
        server.put(&format!("/orgs/{org}"), &json!({ "timezone": "UTC" })).expect(201);
    }
    server.job("brief", &json!({ "target": "fragile", "scope": "per_org" }));
    let file = |org: &str| server.folder.path().join(format!("broken-{org}"));
    for org in ["acme", "bolt", "cove"] {
        fs::write(file(org), "").unwrap();
    }
    for org in ["acme", "cove", "bolt", "cove", "acme"] {
        run(server, org, "failed");
    }
    let first = receiver.until(1);
    assert_eq!(changes(&first), BTreeSet::from([("problem.opened".to_owned(), "acme".to_owned())]));
    let data = &first[0].body["data"];
    assert_eq!(
        (&data["title"], &data["problem"]["count"]),
        (&json!("brief for acme is failing: 2 failures in a row"), &json!(2))
    );
    assert_eq!((&data["run"]["orgId"], &data["problem"]["jobKey"]), (&json!("acme"), &json!("brief")));
    // The success of another org is none of this one.
    fs::remove_file(file("cove")).unwrap();
    run(server, "cove", "succeeded");
    run(server, "bolt", "failed");
    let second = receiver.until(2);
    assert_eq!(changes(&second[1..]), BTreeSet::from([("problem.opened".to_owned(), "bolt".to_owned())]));
    let open = server.get("/problems?open=true&jobKey=brief").expect(200);
    let open: BTreeSet<&str> =
        open["items"].as_array().unwrap().iter().map(|problem| problem["orgId"].as_str().unwrap()).collect();
    assert_eq!(open, BTreeSet::from(["acme", "bolt"]));
    let acme = server.get("/problems?orgId=acme").expect(200);
    assert_eq!((acme["items"].as_array().unwrap().len(), &acme["items"][0]["count"]), (1, &json!(2)));
    // One ends with a success, the other one because nothing fires for it any more.
    fs::remove_file(file("acme")).unwrap();
    run(server, "acme", "succeeded");
    server.patch("/orgs/bolt", &json!({ "enabled": false })).expect(200);
    let ends = receiver.until(4);
    let over = |org: &str| ("problem.recovered".to_owned(), org.to_owned());
    assert_eq!(changes(&ends[2..]), BTreeSet::from([over("acme"), over("bolt")]));
    server.until("/problems?orgId=bolt", |list| list["items"][0]["closedBecause"] == "the org is disabled or deleted");
}

#[test]
fn each_org_has_problems_of_its_own() {
    let receiver = Receiver::start(&[]);
    messages_name_their_org(&Server::with(&config(receiver.port)).registered(), &receiver);
}

#[test]
fn each_org_has_problems_of_its_own_on_postgresql() {
    let receiver = Receiver::start(&[]);
    messages_name_their_org(&Server::postgres(&config(receiver.port)).registered(), &receiver);
}
