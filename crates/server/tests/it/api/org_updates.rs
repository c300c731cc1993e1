//! Org updates: rebuilding timers, and stopping an update.

use serde_json::{Value, json};

use crate::halfway::halfway;
use crate::server::{Server, TARGETS};

fn check_rebuild(server: &Server) {
    // An org may be called like the route.
    for org in ["acme", "rebuild"] {
        server.put(&format!("/orgs/{org}"), &json!({ "timezone": "UTC" })).expect(201);
    }
    server.job("brief", &json!({ "scope": "per_org" }));
    server.job("plain", &json!({}));
    let path = "/jobs/key:brief/orgs/rebuild";
    let token = format!("Bearer {}", server.token_of("operator"));
    let refused = server.raw("POST", &format!("/api/v1{path}"), &[("authorization", &token)], b"{}");
    refused.problem(403, "Forbidden");
    let begun = server.post(path, &json!({ "reason": "after a restore" })).expect(202);
    assert!(begun["id"].is_string(), "{begun}");
    let idle = |list: &Value| list["sweeps"] == json!([]);
    let list = server.until("/jobs/key:brief/orgs?armed=true", idle);
    assert_eq!(list["items"].as_array().unwrap().len(), 2, "{list}");
    let trail = server.get("/audit?object=job:brief&limit=1").expect(200);
    let entry = &trail["items"][0];
    assert_eq!((&entry["action"], &entry["reason"]), (&json!("job.rebuild"), &json!("after a restore")));
    assert_eq!(server.post("/jobs/key:plain/orgs/rebuild", &json!({})).faults(), ["#/orgId"]);
    server.post("/jobs/key:nobody/orgs/rebuild", &json!({})).problem(404, "NotFound");
}

#[test]
fn timers_are_made_anew() {
    check_rebuild(&Server::start());
}

#[test]
fn timers_are_made_anew_on_postgres() {
    check_rebuild(&Server::postgres(TARGETS));
}

#[test]
fn runs_that_are_being_made_for_all_orgs_are_stopped() {
    let server = halfway();
    let under_way = || server.get("/jobs/key:brief/orgs?limit=1").expect(200)["sweeps"].clone();
    let org_update = under_way()[0].clone();
    assert_eq!((&org_update["work"], org_update["seen"].as_u64() > Some(0)), (&json!("run_now"), true), "{org_update}");
    let path = format!("/jobs/key:brief/sweeps/{}/stop", org_update["id"].as_str().unwrap());
    let stopped = server.post(&path, &json!({ "reason": "the wrong payload" })).expect(200);
    assert_eq!((&stopped["id"], &stopped["seen"], under_way()), (&org_update["id"], &org_update["seen"], json!([])));
    let entry = server.get("/audit?object=job:brief&limit=1").expect(200)["items"][0].clone();
    assert_eq!((&entry["action"], &entry["reason"]), (&json!("job.stop_sweep"), &json!("the wrong payload")));
    assert_eq!(entry["after"], json!({ "sweepId": org_update["id"], "work": "run_now" }));
    assert_eq!(server.get("/runs?orgId=org-0000").expect(200)["items"].as_array().unwrap().len(), 1, "it stays");
    for gone in [path.as_str(), "/jobs/key:brief/sweeps/nothing/stop"] {
        server.post(gone, &json!({})).problem(404, "NotFound");
    }
    // Timers depend on this one.
    let begun = server.post("/jobs/key:brief/orgs/rebuild", &json!({})).expect(202);
    let path = format!("/jobs/key:brief/sweeps/{}/stop", begun["id"].as_str().unwrap());
    assert!(server.post(&path, &json!({})).text.contains("it ends by itself"));
    assert_eq!(under_way()[0]["id"], begun["id"]);
}
