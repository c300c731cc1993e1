//! Orgs: made, changed, found, imported, deleted.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::server::{Response, Server, TARGETS};

/// Sends lines, as the first admin.
pub(crate) fn import(server: &Server, query: &str, lines: &str) -> Response {
    let bearer = format!("Bearer {}", server.token);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/x-ndjson")];
    server.request("POST", &format!("/orgs{query}"), &headers, lines.as_bytes())
}

fn ids(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|org| org["id"].as_str().unwrap()).collect()
}

fn check_life(server: &Server) {
    let bearer = format!("Bearer {}", server.token);
    let body = br#"{"name":"Acme","timezone":"europe/paris","settings":{"n":1.50}}"#;
    let made = server.request("PUT", "/orgs/acme", &[("authorization", &bearer)], body);
    let org = made.expect(201);
    assert_eq!(made.headers["location"], "/api/v1/orgs/acme");
    assert_eq!(made.headers["etag"], "\"1\"");
    assert_eq!(
        (&org["timezone"], &org["enabled"], &org["revision"]),
        (&json!("Europe/Paris"), &json!(true), &json!(1))
    );
    assert_eq!(
        (&org["updatedBy"], &org["error"], &org["movedFrom"]),
        (&json!("token:admin"), &Value::Null, &Value::Null)
    );
    assert_eq!(org["localTime"].as_str().unwrap().len(), 8, "{org}");
    assert!(made.text.contains(r#""settings":{"n":1.50}"#), "as it was written: {}", made.text);

    // What is left out stays, in PUT and PATCH alike.
    let moved = server.put("/orgs/acme", &json!({ "timezone": "Asia/Tokyo", "reason": "they moved" })).expect(200);
    assert_eq!((&moved["name"], &moved["movedFrom"]), (&json!("Acme"), &json!("Europe/Paris")));
    let patched = server.patch("/orgs/acme", &json!({ "name": null, "settings": null, "enabled": false })).expect(200);
    assert_eq!((&patched["name"], &patched["settings"]), (&json!(""), &json!({})));
    assert_eq!((&patched["enabled"], &patched["timezone"]), (&json!(false), &json!("Asia/Tokyo")));
    let same = server.patch("/orgs/acme", &json!({})).expect(200);
    assert_eq!(same["revision"], patched["revision"]);
    assert_eq!(server.get("/orgs/acme").expect(200)["revision"], 3);

    let audit = server.get("/audit?object=org:acme").expect(200);
    let shown: Vec<String> =
        audit["items"].as_array().unwrap().iter().map(|e| format!("{} {}", e["action"], e["reason"])).collect();
    assert_eq!(shown, [r#""org.update" null"#, r#""org.update" "they moved""#, r#""org.create" null"#]);
    assert_eq!(audit["items"][1]["before"], json!({ "timezone": "Europe/Paris" }));

    let with_etag = |method: &str, etag: &str, body: &[u8]| {
        server.request(method, "/orgs/acme", &[("authorization", &bearer), ("if-match", etag)], body)
    };
    with_etag("PATCH", "\"1\"", b"{\"name\":\"x\"}").problem(412, "RevisionMismatch");
    with_etag("DELETE", "\"1\"", b"").problem(412, "RevisionMismatch");
    with_etag("PATCH", "\"3\"", b"{\"name\":\"x\"}").expect(200);
    with_etag("DELETE", "\"4\"", b"").expect(204);
    server.get("/orgs/acme").problem(404, "NotFound");
    server.delete("/orgs/acme").problem(404, "NotFound");
    server.patch("/orgs/acme", &json!({ "name": "x" })).problem(404, "NotFound");
    let gone = with_etag("PUT", "\"4\"", b"{\"timezone\":\"UTC\"}").problem(412, "RevisionMismatch");
    assert_eq!(gone["detail"], "org `acme` does not exist, so it is not at revision 4");
    // It may come back.
    assert_eq!(server.put("/orgs/acme", &json!({ "timezone": "UTC" })).expect(201)["name"], "");
}

#[test]
fn an_org_lives() {
    check_life(&Server::start());
}

#[test]
fn an_org_lives_on_postgres() {
    check_life(&Server::postgres(TARGETS));
}

#[test]
fn what_is_no_org_is_refused() {
    let server = Server::start();
    let reply = server.put("/orgs/acme", &json!({ "timezone": "Europe/Pariss", "nmae": "x", "enabled": "yes" }));
    assert_eq!(reply.faults(), ["#/enabled", "#/nmae"]);
    let reply = server.put("/orgs/acme", &json!({ "timezone": "Europe/Pariss" }));
    let problem = reply.problem(400, "InvalidInput");
    assert_eq!(problem["errors"][0]["code"], "unknown_zone");
    assert!(problem["detail"].as_str().unwrap().contains("did you mean `Europe/Paris`"), "{problem}");
    for (body, pointer) in [
        (json!({}), "#/timezone"),
        (json!({ "timezone": "UTC", "settings": [1] }), "#/settings"),
        (json!({ "timezone": "UTC", "settings": { "a": "x".repeat(70_000) } }), "#/settings"),
        (json!({ "timezone": "UTC", "name": "a\nb" }), "#/name"),
        (json!({ "timezone": "UTC", "reason": "x" }), "#/reason"),
    ] {
        assert_eq!(server.put("/orgs/acme", &body).faults(), [pointer], "{body}");
    }
    server.put("/orgs/acme", &json!({ "timezone": "UTC" })).expect(201);
    assert_eq!(server.patch("/orgs/acme", &json!({ "timezone": null })).faults(), ["#/timezone"]);
    server.get("/orgs/%20").problem(404, "NotFound");
    // Names with a slash are names.
    server.put("/orgs/a%2Fb", &json!({ "timezone": "UTC" })).expect(201);
    assert_eq!(server.get("/orgs/a%2Fb").expect(200)["id"], "a/b");
}

fn check_list(server: &Server) {
    let mut lines = String::new();
    for n in 0..12 {
        let zone = if n % 2 == 0 { "Asia/Tokyo" } else { "Europe/Paris" };
        let line =
            json!({ "id": format!("org-{n:02}"), "timezone": zone, "enabled": n != 5, "name": format!("No {n}") });
        writeln!(lines, "{line}\n").unwrap();
    }
    let would = import(server, "?dryRun=true", &lines).expect(200);
    assert_eq!(would, json!({ "dryRun": true, "created": 12, "changed": 0, "same": 0 }));
    assert_eq!(server.get("/orgs").expect(200)["items"], json!([]));
    let done = import(server, "?reason=a%20new%20region", &lines).expect(200);
    assert_eq!(done, json!({ "dryRun": false, "created": 12, "changed": 0, "same": 0 }));
    let again = lines.replace("No 11", "Eleven") + &json!({ "id": "more", "timezone": "UTC" }).to_string();
    let done = import(server, "", &again).expect(200);
    assert_eq!((&done["created"], &done["changed"], &done["same"]), (&json!(1), &json!(1), &json!(11)));

    let first = server.get("/orgs?limit=5&timezone=asia/tokyo").expect(200);
    assert_eq!(ids(&first), ["org-00", "org-02", "org-04", "org-06", "org-08"]);
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = server.get(&format!("/orgs?limit=5&timezone=asia/tokyo&cursor={cursor}")).expect(200);
    assert_eq!((ids(&second), &second["nextCursor"]), (vec!["org-10"], &Value::Null));
    assert_eq!(ids(&server.get("/orgs?text=ELEV").expect(200)), ["org-11"]);
    assert_eq!(ids(&server.get("/orgs?enabled=false").expect(200)), ["org-05"]);
    assert!(ids(&server.get("/orgs?errored=true").expect(200)).is_empty());
    server.get("/orgs?limit=0").problem(400, "InvalidInput");
    server.get("/orgs?zone=UTC").problem(400, "InvalidInput");
}

#[test]
fn orgs_are_imported_and_found() {
    check_list(&Server::start());
}

#[test]
fn orgs_are_imported_and_found_on_postgres() {
    check_list(&Server::postgres(TARGETS));
}

#[test]
fn a_bad_line_is_told_by_its_number_and_nothing_is_written() {
    let server = Server::start();
    let lines = "{\"id\":\"a\",\"timezone\":\"UTC\"}\n\n{\"id\":\"b\",\"timezone\":\"Mars\"}\n{\"id\":\nnull\n{\"id\":\" d\",\"zone\":1}\n";
    let reply = import(&server, "", lines);
    assert_eq!(reply.faults(), ["#/3/timezone", "#/4", "#/5", "#/6/id", "#/6/zone"]);
    assert!(reply.text.contains("line 3: "), "{}", reply.text);
    for (lines, pointer) in [
        ("", "#"),
        ("\n \n", "#"),
        // What only the store knows.
        ("{\"id\":\"a\",\"timezone\":\"UTC\"}\n{\"id\":\"b\"}", "#/2/timezone"),
        ("{\"id\":\"a\",\"timezone\":\"UTC\"}\n{\"id\":\"a\",\"timezone\":\"UTC\"}", "#/2/id"),
    ] {
        for query in ["", "?dryRun=true"] {
            assert_eq!(import(&server, query, lines).faults(), [pointer], "{lines}");
        }
    }
    assert_eq!(server.get("/orgs").expect(200)["items"], json!([]));
    let reply = server.post("/orgs", &json!({ "id": "a", "timezone": "UTC" }));
    assert!(reply.problem(415, "UnsupportedMediaType")["detail"].as_str().unwrap().contains("application/x-ndjson"));
}

#[test]
fn ten_thousand_orgs_come_at_once_and_no_more() {
    let server = Server::start();
    server.job("briefing", &json!({ "scope": "per_org", "cronExpression": "0 8 * * *" }));
    let settings = "x".repeat(500);
    let line = |n: usize| {
        json!({ "id": format!("o{n:05}"), "timezone": "UTC", "settings": { "s": settings } }).to_string() + "\n"
    };
    let lines: String = (0..10_000).map(line).collect();
    assert!(lines.len() > 5 << 20, "more than another route takes");
    assert_eq!(import(&server, "", &(lines.clone() + &line(10_000))).faults(), ["#"]);
    assert_eq!(import(&server, "", &lines).expect(200)["created"], 10_000);
    // The engine arms those that the request did not.
    server.until("/jobs/key:briefing/orgs?text=o09999", |list| list["items"][0]["nextRunAt"].is_string());
    let huge = "x".repeat((16 << 20) + 1);
    import(&server, "", &huge).problem(413, "PayloadTooLarge");
}

#[test]
fn the_same_import_sent_twice_is_done_once() {
    let server = Server::start();
    let bearer = format!("Bearer {}", server.token);
    let send = |lines: &str| {
        let headers =
            [("authorization", bearer.as_str()), ("content-type", "application/x-ndjson"), ("idempotency-key", "k1")];
        server.request("POST", "/orgs", &headers, lines.as_bytes())
    };
    let lines = "{\"id\":\"a\",\"timezone\":\"UTC\"}";
    assert_eq!(send(lines).expect(200)["created"], 1);
    let again = send(lines);
    assert_eq!((&again.expect(200)["created"], again.headers["idempotency-replayed"].as_str()), (&json!(1), "true"));
    send("{\"id\":\"b\",\"timezone\":\"UTC\"}").problem(422, "IdempotencyKeyReused");
}
