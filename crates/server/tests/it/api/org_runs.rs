//! Every run to come of jobs that fire for each org: the lists of next fires, the calendar feed and the command line.

use serde_json::{Value, json};

use crate::cli::everbell;
use crate::server::Server;

#[test]
fn jitter_and_freezes_are_listed_for_all_orgs() {
    let server = Server::start();
    for org in ["acme", "bolt"] {
        server.put(&format!("/orgs/{org}"), &json!({ "timezone": "UTC" })).expect(201);
    }
    let policies = json!({ "jitter": "PT10M" });
    server.job("brief", &json!({ "scope": "per_org", "cronExpression": "0 8 1 1 *", "policies": policies }));
    server.until("/jobs/key:brief/orgs?armed=true", |list| list["items"].as_array().unwrap().len() == 2);
    let list = server.get("/next").expect(200);
    let item = &list["items"][0];
    assert_eq!((&item["orgs"], &item["spreadMs"], &item["frozen"]), (&json!(2), &json!(600_000), &Value::Null));
    let (from, until) = (item["at"].as_str().unwrap(), item["at"].as_str().unwrap().replace("08:00", "09:00"));
    server.post("/freezes", &json!({ "from": from, "until": until, "reason": "new year" })).expect(201);
    assert_eq!(server.get("/next").expect(200)["items"][0]["frozen"], "new year");
    assert_eq!(server.get("/jobs/key:brief/next").expect(200)["items"][0]["frozen"], "new year");
    let shown = everbell(&server, &["next", "-n", "1"]).stdout;
    assert!(shown.contains("new year; for 2 orgs, within 10m"), "{shown}");
}
