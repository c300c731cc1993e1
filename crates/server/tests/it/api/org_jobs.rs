//! Jobs that fire for each org: how they stand, what orgs override, what is done for one or all of them.

use serde_json::{Value, json};

use crate::server::{Server, TARGETS};

fn world(server: &Server) -> Value {
    for (org, zone) in [("acme", "Europe/Paris"), ("bolt", "Asia/Tokyo"), ("cove", "UTC")] {
        server.put(&format!("/orgs/{org}"), &json!({ "timezone": zone })).expect(201);
    }
    server.job("briefing", &json!({ "scope": "per_org", "cronExpression": "0 8 1 1 *", "timezone": "America/Lima" }))
}

/// `org standing why expression local`.
fn standings(list: &Value) -> Vec<String> {
    let line = |row: &Value| {
        let text = |name: &str| row[name].as_str().unwrap_or("-").to_owned();
        let local =
            row["nextRunAtLocal"].as_str().and_then(|local| local.split_once('-')).map_or("-", |(_, rest)| rest);
        format!("{} {} {} {} {local}", text("orgId"), text("standing"), text("why"), text("cronExpression"))
    };
    list["items"].as_array().unwrap().iter().map(line).collect()
}

fn check_standings(server: &Server) {
    let job = world(server);
    assert_eq!((&job["scope"], &job["nextRunAt"]), (&json!("per_org"), &Value::Null));
    let list = server.get("/jobs/key:briefing/orgs").expect(200);
    let wanted = [
        "acme eligible - 0 8 1 1 * 01-01T08:00:00+01:00[Europe/Paris]",
        "bolt eligible - 0 8 1 1 * 01-01T08:00:00+09:00[Asia/Tokyo]",
        "cove eligible - 0 8 1 1 * 01-01T08:00:00+00:00[UTC]",
    ];
    assert_eq!((standings(&list), &list["sweeps"]), (wanted.map(str::to_owned).to_vec(), &json!([])));

    let path = "/orgs/acme/jobs/briefing";
    assert_eq!(server.get(path).expect(200)["override"], Value::Null);
    let set = server.put(path, &json!({ "localTime": "09:30", "reason": "they rise late" })).expect(200);
    assert_eq!((&set["override"]["cronExpression"], &set["override"]["enabled"]), (&json!("30 9 1 1 *"), &json!(true)));
    assert!(set["job"]["nextRunAtLocal"].as_str().unwrap().contains("-01-01T09:30:00+01:00"), "{set}");
    server.put("/orgs/bolt/jobs/briefing", &json!({ "enabled": false })).expect(200);
    server.patch("/orgs/cove", &json!({ "enabled": false })).expect(200);
    let wanted = [
        "acme eligible - 30 9 1 1 * 01-01T09:30:00+01:00[Europe/Paris]",
        "bolt off override_off 0 8 1 1 * -",
        "cove off org_disabled 0 8 1 1 * -",
    ];
    assert_eq!(standings(&server.get("/jobs/key:briefing/orgs").expect(200)), wanted);
    assert_eq!(standings(&server.get("/jobs/key:briefing/orgs?armed=true").expect(200)).len(), 1);
    assert_eq!(standings(&server.get("/jobs/key:briefing/orgs?text=OV").expect(200)), [wanted[2]]);
    assert_eq!(standings(&server.get("/orgs/acme/jobs").expect(200)), [wanted[0]]);
    let page = server.get("/jobs/key:briefing/orgs?limit=2").expect(200);
    let next = format!("/jobs/key:briefing/orgs?limit=2&cursor={}", page["nextCursor"].as_str().unwrap());
    assert_eq!(standings(&server.get(&next).expect(200)), [wanted[2]]);

    server.delete(path).expect(204);
    server.delete(path).problem(404, "NotFound");
    server.patch("/jobs/key:briefing/pause", &json!({ "reason": "for a while" })).expect(200);
    assert_eq!(standings(&server.get("/orgs/acme/jobs").expect(200)), ["acme off job_paused 0 8 1 1 * -"]);
    server.patch("/jobs/key:briefing/resume", &json!({})).expect(200);
    assert!(standings(&server.get("/orgs/acme/jobs").expect(200))[0].starts_with("acme eligible"));
}

#[test]
fn jobs_and_orgs_see_each_other() {
    check_standings(&Server::start());
}

#[test]
fn jobs_and_orgs_see_each_other_on_postgres() {
    check_standings(&Server::postgres(TARGETS));
}

#[test]
fn overrides_that_make_no_sense_are_refused() {
    let server = Server::start();
    world(&server);
    server.job("often", &json!({ "scope": "per_org", "cronExpression": "@every 90s" }));
    server.job("plain", &json!({}));
    for (path, body, pointer) in [
        ("briefing", json!({}), "#"),
        ("briefing", json!({ "localTime": "25:00" }), "#/localTime"),
        ("briefing", json!({ "localTime": "09:00", "cronExpression": "0 9 * * *" }), "#/localTime"),
        ("briefing", json!({ "cronExpression": "61 9 * * *" }), "#/cronExpression"),
        ("often", json!({ "localTime": "09:00" }), "#/localTime"),
        ("nothing", json!({ "localTime": "09:00" }), "#/localTime"),
    ] {
        assert_eq!(server.put(&format!("/orgs/acme/jobs/{path}"), &body).faults(), [pointer], "{path} {body}");
    }
    server.put("/orgs/nobody/jobs/briefing", &json!({ "enabled": false })).problem(404, "NotFound");
    server.get("/orgs/acme/jobs/nothing").problem(404, "NotFound");
    // A job may come later.
    let early = server.put("/orgs/acme/jobs/later", &json!({ "enabled": false })).expect(200);
    assert_eq!((&early["job"], &early["override"]["enabled"]), (&Value::Null, &json!(false)));
    server.job("later", &json!({ "scope": "per_org" }));
    assert_eq!(server.get("/orgs/acme/jobs/later").expect(200)["job"]["why"], "override_off");
    server.get("/jobs/key:plain/orgs").problem(400, "InvalidInput");
    server.get("/jobs/key:nothing/orgs").problem(404, "NotFound");
    let once = json!({ "jobKey": "once", "target": "print", "runAt": "2099-01-01T00:00:00Z", "scope": "per_org" });
    assert_eq!(server.post("/jobs", &once).faults(), ["#/scope"]);
}

fn check_actions(server: &Server) {
    world(server);
    server.job("plain", &json!({}));
    let path = "/jobs/key:briefing/run-now";
    let unnamed = server.post(path, &json!({}));
    assert!(unnamed.text.contains("in `orgId`, or all of them with `orgs`: `all`"), "{}", unnamed.text);
    assert_eq!(unnamed.faults(), ["#/orgId"]);
    assert_eq!(server.post("/jobs/key:plain/run-now", &json!({ "orgId": "acme" })).faults(), ["#/orgId"]);
    assert_eq!(server.post(path, &json!({ "orgId": "acme", "orgs": "all" })).faults(), ["#/orgs"]);
    for bad in [json!("some"), json!([]), json!([1]), json!(7)] {
        server.post(path, &json!({ "orgs": bad })).problem(400, "InvalidInput");
    }
    server.post(path, &json!({ "orgId": "nobody" })).problem(404, "NotFound");
    let one = server.post(path, &json!({ "orgId": "acme", "note": "asked for" })).expect(202);
    assert_eq!((&one["outcome"], &one["run"]["orgId"]), (&json!("started"), &json!("acme")));
    assert!(one["nextRunAt"].as_str().unwrap().ends_with("-01-01T07:00:00Z"), "{one}");
    let some = server.post(path, &json!({ "orgs": ["bolt", "nobody"], "force": true })).expect(202);
    let shown: Vec<String> =
        some["items"].as_array().unwrap().iter().map(|i| format!("{} {}", i["orgId"], i["outcome"])).collect();
    assert_eq!(shown, [r#""bolt" "started""#, r#""nobody" "refused""#]);
    let all = server.post(path, &json!({ "orgs": "all", "queue": true })).expect(202);
    assert!(all["sweep"]["id"].is_string() && all["items"] == json!([]), "{all}");
    server.until("/runs?orgId=cove&status=succeeded", |runs| runs["items"].as_array().unwrap().len() == 1);

    // The next fire of one org.
    let at = "2099-05-01T12:00:00";
    assert_eq!(server.post("/jobs/key:briefing/reschedule", &json!({ "nextRunAt": at })).faults(), ["#/orgId"]);
    server.post("/jobs/key:briefing/reschedule", &json!({ "nextRunAt": at, "orgId": "bolt" })).expect(200);
    let bolt = &server.get("/orgs/bolt/jobs").expect(200)["items"][0];
    assert_eq!(bolt["nextRunAtLocal"], "2099-05-01T12:00:00+09:00[Asia/Tokyo]", "read in the zone of the org");
    server.post("/jobs/key:briefing/skip-next", &json!({ "orgId": "cove", "reason": "a holiday" })).expect(200);
    let next = server.get("/jobs/key:briefing/next?count=2&orgId=acme").expect(200);
    assert!(next["items"][0]["local"].as_str().unwrap().ends_with("-01-01T08:00:00+01:00[Europe/Paris]"), "{next}");
    let year: i32 = next["items"][0]["at"].as_str().unwrap()[..4].parse().unwrap();
    let shown = server.get(&format!("/jobs/key:briefing/explain?orgId=cove&at={year}-01-01T08:00:00")).expect(200);
    assert_eq!((&shown["outcome"], &shown["run"]["skipReason"]), (&json!("run"), &json!("operator")));
    assert_eq!(shown["run"]["localDate"], format!("{year}-01-01"));
    assert_eq!(server.get("/jobs/key:briefing/gaps?orgId=acme").expect(200)["items"], json!([]));
    server.get("/jobs/key:plain/next?orgId=acme").problem(400, "InvalidInput");

    // Past slots.
    let range = json!({ "from": "2020-01-01T00:00:00", "to": "2022-12-31T00:00:00" });
    let with = |more: Value| {
        let mut body = range.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.post("/jobs/key:briefing/backfills", &body)
    };
    assert_eq!(with(json!({})).faults(), ["#/orgId"]);
    let dry = with(json!({ "orgs": "all", "dryRun": true })).expect(200);
    let counted = json!({ "lookedAt": 3, "more": false, "withSlots": 3 });
    assert_eq!((&dry["toCreate"], &dry["orgs"], &dry["id"]), (&json!(8), &counted, &Value::Null), "of the job's zone");
    let dry = with(json!({ "orgId": "bolt", "dryRun": true })).expect(200);
    assert_eq!(
        (&dry["toCreate"], &dry["slots"][0]["local"]),
        (&json!(3), &json!("2020-01-01T08:00:00+09:00[Asia/Tokyo]"))
    );
    assert_eq!(with(json!({ "orgId": "bolt" })).expect(202)["orgId"], "bolt");
    server.until("/jobs/key:briefing/backfills", |list| list["items"][0]["status"] == "done");
    let all = with(json!({ "orgs": "all" })).expect(202);
    assert_eq!((&all["toCreate"], all["sweep"]["id"].is_string()), (&Value::Null, true));
    let done = server.until("/jobs/key:briefing/backfills", |list| list["items"][0]["status"] == "done");
    assert_eq!((&done["items"][0]["succeeded"], &done["items"][1]["succeeded"]), (&json!(6), &json!(3)));
    let runs = server.get("/runs?orgId=bolt&from=2020-01-01T00:00:00Z&to=2020-12-31T00:00:00Z").expect(200);
    assert_eq!((&runs["items"][0]["localDate"], &runs["items"][0]["slotAt"]), (&Value::Null, &Value::Null));
}

#[test]
fn actions_are_for_one_org_or_for_all() {
    check_actions(&Server::start());
}

#[test]
fn actions_are_for_one_org_or_for_all_on_postgres() {
    check_actions(&Server::postgres(TARGETS));
}

#[test]
fn a_move_is_told_before_it_is_made() {
    let server = Server::start();
    world(&server);
    server.job("morning", &json!({ "scope": "per_org", "cronExpression": "0 8 * * *" }));
    server.job("often", &json!({ "scope": "per_org", "cronExpression": "*/15 * * * *" }));
    let shown = server.get("/orgs/acme/what-if?timezone=asia/tokyo&count=2").expect(200);
    assert_eq!((&shown["timezoneBefore"], &shown["timezoneAfter"]), (&json!("Europe/Paris"), &json!("Asia/Tokyo")));
    let keys: Vec<&Value> = shown["jobs"].as_array().unwrap().iter().map(|job| &job["jobKey"]).collect();
    assert_eq!(keys, ["briefing", "morning", "often"]);
    let morning = &shown["jobs"][1];
    assert!(
        morning["before"][0]["local"].as_str().unwrap().contains("T08:00:00+01:00[Europe/Paris]")
            || morning["before"][0]["local"].as_str().unwrap().contains("T08:00:00+02:00[Europe/Paris]"),
        "{morning}"
    );
    assert_eq!(morning["after"].as_array().unwrap().len(), 2);
    assert_eq!(morning["wouldFireAgain"], false);
    assert!(morning["sentence"].as_str().unwrap().starts_with("Would fire again today: no."), "{morning}");
    assert!(morning["days"].as_array().unwrap().iter().all(|day| day["verdict"] != "twice"), "{morning}");
    assert!(shown["jobs"][2]["sentence"].as_str().unwrap().starts_with("The job fires more than once a day."));
    assert_eq!(server.get("/orgs/acme").expect(200)["timezone"], "Europe/Paris", "nothing was written");
    let unknown = server.get("/orgs/acme/what-if?timezone=Asia/Tokio");
    assert!(unknown.problem(400, "InvalidInput")["detail"].as_str().unwrap().contains("Asia/Tokyo"));
    server.get("/orgs/acme/what-if").problem(400, "InvalidInput");
    server.get("/orgs/nobody/what-if?timezone=UTC").problem(404, "NotFound");
}

#[test]
fn the_scope_of_a_job_is_changed_by_an_edit() {
    let server = Server::start();
    world(&server);
    let edited = server.patch("/jobs/key:briefing", &json!({ "scope": "global" })).expect(200);
    assert_eq!((&edited["scope"], edited["nextRunAt"].is_string()), (&json!("global"), true));
    let back = server.post("/jobs/key:briefing/new-version", &json!({ "scope": "per_org" })).expect(201);
    assert_eq!((&back["scope"], &back["changes"][0]["field"]), (&json!("per_org"), &json!("scope")));
    assert_eq!(standings(&server.get("/jobs/key:briefing/orgs?armed=true").expect(200)).len(), 3);
    let metrics = server.raw("GET", "/metrics", &[], b"").text;
    for line in
        ["everbell_orgs 3\n", "everbell_org_timers_errored 0\n", "everbell_org_sweeps 0\n", "everbell_orgs_waiting 0\n"]
    {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
    assert_eq!(server.get("/status").expect(200)["orgs"], 3);
}

#[test]
fn answers_to_changes_say_what_fires_at_once() {
    let server = Server::start();
    server.job("daily", &json!({ "cronExpression": "0 0 * * *", "scope": "per_org" }));
    let made = server.put("/orgs/acme", &json!({ "timezone": "UTC" })).expect(201);
    assert_eq!(made["firesNow"], json!([]), "the job is younger than today's midnight: {made}");
    assert!(server.get("/orgs/acme").expect(200)["firesNow"].is_null(), "only the answer to a change says so");
    let wish = server.put("/orgs/acme/jobs/daily", &json!({ "cronExpression": "0 1 1 1 *" })).expect(200);
    assert_eq!(wish["firesNow"], json!(false), "{wish}");
}
