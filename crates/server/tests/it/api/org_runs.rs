//! Every run to come of jobs that fire for each org: the lists of next fires, the calendar feed and the command line.

use serde_json::{Value, json};

use crate::cli::everbell;
use crate::server::{Server, TARGETS};

/// Five orgs in four zones, of which one wants another time and one is off.
fn world(server: &Server) {
    let orgs = [
        ("acme", "Europe/Paris"),
        ("bolt", "Asia/Tokyo"),
        ("cove", "UTC"),
        ("dune", "Europe/Berlin"),
        ("ease", "Europe/Berlin"),
        ("fern", "UTC"),
    ];
    for (org, zone) in orgs {
        server.put(&format!("/orgs/{org}"), &json!({ "timezone": zone })).expect(201);
    }
    server.job("brief", &json!({ "scope": "per_org", "cronExpression": "0 8 1 1 *" }));
    server.put("/orgs/ease/jobs/brief", &json!({ "localTime": "09:30", "reason": "late" })).expect(200);
    server.put("/orgs/fern/jobs/brief", &json!({ "enabled": false })).expect(200);
    server.until("/jobs/key:brief/orgs?armed=true", |list| list["items"].as_array().unwrap().len() == 5);
}

/// `01-01T07:00 2 orgs 2 zones acme`, without the year.
fn lines(list: &Value) -> Vec<String> {
    let line = |item: &Value| {
        let at = item["at"].as_str().unwrap();
        let org = item["orgId"].as_str().unwrap_or("-");
        format!("{} {} orgs {} zones {org}", &at[5..16], item["orgs"], item["zones"])
    };
    list["items"].as_array().unwrap().iter().map(line).collect()
}

const YEAR: [&str; 4] = [
    "12-31T23:00 1 orgs 1 zones bolt",
    "01-01T07:00 2 orgs 2 zones acme",
    "01-01T08:00 1 orgs 1 zones cove",
    "01-01T08:30 1 orgs 1 zones ease",
];

fn runs_to_come(server: &Server) {
    world(server);
    let two_years = server.get("/next?within=700d").expect(200);
    // In the second year it is not known whether the first org of a zone is one of those with an override.
    let later = [
        "12-31T23:00 1 orgs 1 zones bolt",
        "01-01T07:00 2 orgs 2 zones -",
        "01-01T08:00 1 orgs 1 zones -",
        "01-01T08:30 1 orgs 1 zones ease",
    ];
    assert_eq!(lines(&two_years), [YEAR, later].concat());
    assert_eq!((&two_years["complete"], &two_years["more"]), (&json!(true), &json!(false)));
    assert_eq!(two_years["items"][1]["jobKey"], "brief");
    assert!(lines(&server.get("/next?limit=2").expect(200)) == YEAR[..2]);

    let own = server.get("/jobs/key:brief/next?count=5").expect(200);
    assert_eq!((lines(&own)[..4].to_vec(), lines(&own).len()), (YEAR.map(str::to_owned).to_vec(), 5));
    let from = own["items"][4]["at"].as_str().unwrap();
    assert_eq!(lines(&server.get(&format!("/jobs/key:brief/next?from={from}&count=1")).expect(200)), [later[0]]);
    let alone = server.get("/jobs/key:brief/next?orgId=acme&count=1").expect(200);
    assert_eq!((&alone["items"][0]["at"], alone["items"][0].get("orgs")), (&own["items"][1]["at"], None));

    // One org skips a year; the others do not.
    server.post("/jobs/key:brief/skip-next", &json!({ "orgId": "dune", "reason": "closed" })).expect(200);
    let skipped = lines(&server.get("/next?within=700d").expect(200));
    assert_eq!((skipped[1].as_str(), skipped[5].as_str()), ("01-01T07:00 1 orgs 1 zones acme", later[1]));
    server.put("/orgs/bolt", &json!({ "timezone": "Mars/Base" })).problem(400, "InvalidInput");
    server.delete("/orgs/bolt").expect(204);
    server.until("/next", |list| lines(list)[0] == "01-01T07:00 1 orgs 1 zones acme");

    let bearer = format!("Bearer {}", server.token);
    let feed = server.raw("GET", "/api/v1/next/calendar.ics?within=366d", &[("authorization", &bearer)], b"").text;
    let titles: Vec<&str> = feed.lines().filter_map(|line| line.strip_prefix("SUMMARY:")).collect();
    assert_eq!(titles[..3], ["brief for acme", "brief for cove", "brief for ease"], "{feed}");
    let listed = everbell(server, &["next", "--within", "700d"]);
    assert!(listed.stdout.contains("for 2 orgs in 2 zones") && listed.stderr.is_empty(), "{listed:?}");
    let named = everbell(server, &["next", "brief", "-n", "4"]);
    assert!(named.stdout.contains("for org ease") && named.stdout.lines().count() == 4, "{named:?}");
}

#[test]
fn every_run_of_every_org_is_listed() {
    runs_to_come(&Server::start());
}

#[test]
fn every_run_of_every_org_is_listed_on_postgres() {
    runs_to_come(&Server::postgres(TARGETS));
}

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
