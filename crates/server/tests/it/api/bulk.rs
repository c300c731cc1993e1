//! Bulk actions.

use serde_json::{Value, json};

use crate::server::Server;

fn outcomes(answer: &Value) -> Vec<(&str, &str)> {
    let items = answer["items"].as_array().unwrap().iter();
    items.map(|item| (item["jobKey"].as_str().unwrap(), item["outcome"].as_str().unwrap())).collect()
}

#[test]
fn many_jobs_are_paused_and_resumed() {
    let server = Server::start();
    for key in ["a", "b", "c"] {
        server.job(key, &json!({ "target": if key == "c" { "fail" } else { "print" } }));
    }
    server.patch("/jobs/key:b/pause", &json!({ "reason": "before" })).expect(200);
    let body = json!({ "action": "pause", "filter": {"target": ["print"]}, "reason": "release", "dryRun": true });
    let dry = server.post("/jobs/bulk", &body).expect(200);
    assert_eq!((&dry["dryRun"], &dry["changed"]), (&json!(true), &json!(1)));
    assert_eq!(outcomes(&dry), [("a", "would_change"), ("b", "unchanged")]);
    assert_eq!(dry["items"][0]["nextRunAt"], server.get("/jobs/key:a").expect(200)["nextRunAt"]);
    let never = json!({ "action": "resume", "filter": {"scheduleType": "one_time", "errored": false}, "dryRun": true });
    assert_eq!(server.post("/jobs/bulk", &never).expect(200)["items"], json!([]));
    assert_eq!(server.get("/jobs/key:a").expect(200)["status"], "active");

    let body = json!({ "action": "pause", "jobKeys": ["a", "b", "c"], "reason": "release" });
    let done = server.post("/jobs/bulk", &body).expect(200);
    assert_eq!(outcomes(&done), [("a", "changed"), ("b", "unchanged"), ("c", "changed")]);
    assert_eq!(done["items"][0]["nextRunAt"], Value::Null, "it is paused now");
    assert_eq!(server.get("/jobs/key:b").expect(200)["pauseReason"], "before");
    let done = server.post("/jobs/bulk", &json!({ "action": "resume", "filter": {"status": ["paused"]} })).expect(200);
    assert_eq!(done["changed"], 3);
    assert_eq!(server.get("/jobs?status=paused").expect(200)["items"], json!([]));
}

#[test]
fn bad_wishes_are_refused() {
    let server = Server::start();
    server.job("a", &json!({}));
    for (body, place) in [
        (json!({ "action": "pause", "jobKeys": ["a"] }), "#/reason"),
        (json!({ "action": "pause", "reason": "why not" }), "#/jobKeys"),
        (json!({ "action": "resume", "jobKeys": ["a"], "filter": {} }), "#/jobKeys"),
        (json!({ "action": "purge", "jobKeys": ["a"] }), "#/action"),
        (json!({ "action": "resume", "jobKeys": ["a", "nobody"] }), "#/jobKeys/1"),
        (json!({ "action": "resume", "filter": {"colour": "red"} }), "#/filter/colour"),
    ] {
        assert_eq!(server.post("/jobs/bulk", &body).faults(), [place], "{body}");
    }
}

#[test]
fn edit_of_many_jobs_shows_and_makes_what_differs_about_each() {
    let server = Server::start();
    server.job("a", &json!({ "labels": {"team": "data", "tier": "1"}, "policies": {"timeout": "5m"} }));
    server.job("b", &json!({ "labels": {"team": "data"}, "policies": {"timeout": "10m"}, "target": "sleep" }));
    server.job("c", &json!({ "labels": {"team": "ops"} }));
    let edit = json!({ "target": "sleep", "labels": {"tier": null}, "policies": {"timeout": "10m"} });
    let mut body = json!({ "action": "edit", "filter": {"label": "team=data"}, "edit": edit, "dryRun": true });
    let dry = server.post("/jobs/bulk", &body).expect(200);
    assert_eq!(outcomes(&dry), [("a", "would_change"), ("b", "unchanged")]);
    let expected = json!([
        { "field": "labels.tier", "from": "1", "to": null },
        { "field": "policies.timeout", "from": "PT5M", "to": "PT10M" },
        { "field": "target", "from": "print", "to": "sleep" },
    ]);
    assert_eq!(dry["items"][0]["changes"], expected);
    assert_eq!(server.get("/jobs/key:a").expect(200)["version"], 1);

    body["dryRun"] = json!(false);
    body["reason"] = json!("ten minutes for all");
    let done = server.post("/jobs/bulk", &body).expect(200);
    assert_eq!(
        (outcomes(&done), &done["items"][0]["changes"]),
        (vec![("a", "changed"), ("b", "unchanged")], &expected)
    );
    let (a, b) = (server.get("/jobs/key:a").expect(200), server.get("/jobs/key:b").expect(200));
    assert_eq!((&a["version"], &a["labels"], &a["target"]), (&json!(2), &json!({"team": "data"}), &json!("sleep")));
    assert_eq!((&a["policies"]["timeout"], &b["version"]), (&json!("PT10M"), &json!(1)));
    assert_eq!(server.get("/audit?object=job:a").expect(200)["items"][0]["reason"], "ten minutes for all");

    for (edit, place) in [
        (json!({}), "#/edit"),
        (json!({ "cronExpression": "@daily" }), "#/edit/cronExpression"),
        (json!({ "policies": {"timeout": "soon"} }), "#/edit/policies/timeout"),
    ] {
        let body = json!({ "action": "edit", "jobKeys": ["a"], "edit": edit });
        assert_eq!(server.post("/jobs/bulk", &body).faults(), [place], "{body}");
    }
    let unknown = json!({ "action": "edit", "jobKeys": ["a"], "edit": {"target": "nowhere"} });
    let refused = server.post("/jobs/bulk", &unknown).expect(200);
    assert_eq!(outcomes(&refused), [("a", "failed")]);
    assert!(refused["items"][0]["detail"].as_str().is_some_and(|why| why.starts_with("#/target: ")), "{refused}");
}
