//! Orgs: their pages, and what is changed by them.

use serde_json::{Value, json};

use super::visitor::{NASTY, Visitor, assert_has, assert_shown, between, led, part};
use crate::server::{Server, TARGETS, eventually};

/// Three orgs, and a job that fires for each at eight.
pub(super) fn world(server: &Server) {
    for (org, zone, name) in [("acme", "Europe/Paris", "Acme SARL"), ("bolt", "Asia/Tokyo", ""), ("cove", "UTC", "")] {
        server.put(&format!("/orgs/{org}"), &json!({ "timezone": zone, "name": name })).expect(201);
    }
    server.job("brief", &json!({ "scope": "per_org", "cronExpression": "0 8 * * *" }));
}

fn org(server: &Server, id: &str) -> Value {
    server.get(&format!("/orgs/{}", part(id))).expect(200)
}

fn made_and_moved(server: &Server) {
    server.job("brief", &json!({ "scope": "per_org", "cronExpression": "0 8 * * *" }));
    let ana = Visitor::admin(server);
    assert_has(&ana.page("/orgs"), &["No orgs yet", "everbell orgs set", "everbell orgs import", "href=\"/new-org\""]);

    let typed = [("id", "acme"), ("name", "Acme SARL"), ("timezone", "Europe/Pariss"), ("settings", "{\"a\": 1.50}")];
    let refused = ana.send("/new-org", &typed);
    assert_eq!(refused.status, 400);
    assert_has(
        &refused.text,
        &["Unknown time zone", "value=\"Europe/Paris\"", "value=\"acme\"", "Acme SARL", "{&#34;a&#34;: 1.50}"],
    );
    let chosen = ana.send("/new-org", &[&typed[..], &[("use", "Europe/Paris")]].concat());
    assert_eq!(chosen.status, 200);
    assert_has(&chosen.text, &["name=\"timezone\" type=\"text\" value=\"Europe/Paris\"", "value=\"acme\""]);
    assert_eq!(server.get("/orgs/acme").status, 404);
    let typed = [("id", "acme"), ("name", "Acme SARL"), ("timezone", "Europe/Paris"), ("settings", "{\"a\": 1.50}")];
    let (place, said) = led(&ana.send("/new-org", &typed));
    assert_eq!((place.as_str(), said.as_str()), ("/orgs/acme", "+acme created."));
    let page = ana.page("/orgs/acme");
    assert_has(&page, &["Acme SARL", "Europe/Paris", "1.50", "brief", "08:00 <span class=\"tz\">CE", "org.create"]);

    let again = ana.send("/new-org", &[("id", "acme"), ("timezone", "UTC")]);
    assert_eq!(again.status, 400);
    assert_has(&again.text, &["an org with this id already exists"]);
    assert_eq!(org(server, "acme")["timezone"], "Europe/Paris");

    let moving = [("name", "Acme"), ("timezone", "Asia/Tokyo"), ("settings", "{\"a\": 1.50}")];
    let what_if = ana.send("/orgs/acme/edit", &[&moving[..], &[("do", "preview")]].concat());
    assert_eq!(what_if.status, 200);
    assert_has(
        &what_if.text,
        &["Preview: move to Asia/Tokyo", "After the move", "JST", "runs once, at 08:00", "keep their local date"],
    );
    assert_eq!(org(server, "acme")["timezone"], "Europe/Paris");
    let (place, said) = led(&ana.send("/orgs/acme/edit", &moving));
    assert_eq!(place, "/orgs/acme");
    assert_eq!(said, "+acme moved to Asia/Tokyo. Existing runs keep their local date.");
    assert_has(&ana.page("/orgs/acme"), &["moved from", "Europe/Paris", "Asia/Tokyo", "08:00 <span class=\"tz\">JST"]);
}

#[test]
fn an_org_is_made_and_moved() {
    made_and_moved(&Server::start());
}

#[test]
fn an_org_is_made_and_moved_on_postgres() {
    made_and_moved(&Server::postgres(TARGETS));
}

#[test]
fn a_preview_tells_what_a_move_would_do_while_it_is_typed() {
    let server = Server::start();
    world(&server);
    let ana = Visitor::admin(&server);
    let said = ana.post("/orgs/acme/edit/preview", &[("timezone", "Asia/Kolkata")]);
    assert_has(between(&said.text, "id=\"what-if\"", "</section>"), &["Preview: move to Asia/Kolkata", "IST", "brief"]);
    let said = ana.post("/orgs/acme/edit/preview", &[("timezone", "Tokio")]);
    assert_has(between(&said.text, "id=\"what-if\"", "</div>"), &["Unknown time zone “Tokio”", "value=\"Asia/Tokyo\""]);
    let said = ana.post("/orgs/acme/edit/preview", &[("timezone", "europe/paris")]);
    assert_has(&said.text, &["to preview the move"]);
}

#[test]
fn what_was_changed_meanwhile_is_not_overwritten() {
    let server = Server::start();
    world(&server);
    let ana = Visitor::admin(&server);
    let page = ana.page("/orgs/acme/edit");
    server.patch("/orgs/acme", &json!({ "name": "Acme & Co" })).expect(200);
    let refused = ana.submit("/orgs/acme/edit", &page, &[("name", "Mine"), ("timezone", "Europe/Paris")]);
    assert_eq!(refused.status, 412);
    assert_has(&refused.text, &["The org has changed in the meantime", "value=\"Mine\""]);
    assert_eq!(org(&server, "acme")["name"], "Acme & Co");
    let refused = ana.send("/orgs/acme/edit", &[("timezone", "UTC"), ("settings", "[1]")]);
    assert_eq!(refused.status, 400);
    assert_has(&refused.text, &["[1]</textarea>", "id=\"settings-note\"", "class=\"fault\""]);
    let refused = ana.send("/orgs/acme/edit", &[("timezone", "UTC"), ("settings", "{")]);
    assert_has(&refused.text, &["is not JSON"]);
}

#[test]
fn orgs_are_searched_filtered_and_paged() {
    let server = Server::start();
    world(&server);
    server.patch("/orgs/bolt", &json!({ "enabled": false })).expect(200);
    let ana = Visitor::sign_in(&server, "viewer");
    let rows = |query: &str| {
        let page = ana.page(&format!("/orgs{query}"));
        ["acme", "bolt", "cove"].map(|id| page.contains(&format!("data-row=\"{id}\"")))
    };
    assert_eq!(rows(""), [true, true, true]);
    assert_eq!(rows("?text=SARL"), [true, false, false]);
    assert_eq!(rows("?timezone=asia/tokyo"), [false, true, false]);
    assert_eq!(rows("?enabled=false"), [false, true, false]);
    assert_eq!(rows("?errored=true"), [false, false, false]);
    assert_has(&ana.page("/orgs?text=nobody"), &["No matching orgs", "Clear filters"]);
    let first = ana.page("/orgs?limit=2");
    assert!(!first.contains("data-row=\"cove\""));
    let next = between(&first, "<a class=\"button\" href=\"", "\" rel=\"next\"").replace("&#38;", "&");
    assert_has(&ana.page(&next), &["data-row=\"cove\"", "First page"]);
    assert_has(&ana.page("/"), &["href=\"/orgs\""]);
}

fn overridden(server: &Server) {
    world(server);
    let ana = Visitor::admin(server);
    let standing = || server.get("/orgs/acme/jobs/brief").expect(200);

    assert_has(&ana.page("/orgs/acme/jobs/brief/off"), &["The job does not fire for this org", "08:00 <span", "None."]);
    let (place, said) = led(&ana.send("/orgs/acme/jobs/brief/off", &[("reason", "they asked for it")]));
    assert_eq!((place.as_str(), said.as_str()), ("/orgs/acme", "+brief turned off for acme."));
    assert_eq!(standing()["job"]["why"], "override_off");
    assert_has(&ana.page("/orgs/acme"), &["turned off for this org", "/jobs/brief/on\"", "/jobs/brief/clear\""]);
    assert_has(&ana.page("/orgs/acme/jobs/brief/off"), &["The job is already off for this org."]);
    led(&ana.send("/orgs/acme/jobs/brief/on", &[]));
    assert_eq!((&standing()["override"], &standing()["job"]["standing"]), (&Value::Null, &json!("eligible")));

    let path = "/orgs/acme/jobs/brief/time";
    assert_has(&ana.page(path), &["type=\"time\" value=\"08:00\"", "Every day at 08:00"]);
    let preview = ana.post(&format!("{path}/preview"), &[("how", "time"), ("localTime", "09:30")]);
    assert_has(between(&preview.text, "id=\"effect\"", "<form"), &["Every day at 09:30", "09:30 <span", "08:00 <span"]);
    let refused = ana.send(path, &[("how", "cron"), ("cronExpression", "0 25 * * *")]);
    assert_eq!(refused.status, 400);
    assert_has(&refused.text, &["value=\"0 25 * * *\"", "class=\"fault\" id=\"cronExpression-note\""]);
    led(&ana.send(path, &[("how", "time"), ("localTime", "09:30")]));
    assert_eq!(standing()["job"]["cronExpression"], "30 9 * * *");
    assert_has(&ana.page("/orgs/acme"), &["own schedule", "30 9 * * *"]);
    // The next run follows as soon as the engine has looked.
    let follows = eventually(|| ana.page("/orgs/acme").contains("09:30 <span").then_some(()));
    follows.expect("the next run is at the org's own time");

    // What is switched off and on again keeps its own time.
    led(&ana.send("/orgs/acme/jobs/brief/off", &[]));
    led(&ana.send("/orgs/acme/jobs/brief/on", &[]));
    assert_eq!(standing()["job"]["cronExpression"], "30 9 * * *");
    assert_has(&ana.page("/orgs/acme/jobs/brief/clear"), &["is removed", "30 9 * * *"]);
    led(&ana.send("/orgs/acme/jobs/brief/clear", &[]));
    assert_eq!(standing()["override"], Value::Null);
    assert_eq!(ana.get("/orgs/acme/jobs/nothing/off").status, 404);
}

#[test]
fn an_org_overrides_a_job() {
    overridden(&Server::start());
}

#[test]
fn an_org_overrides_a_job_on_postgres() {
    overridden(&Server::postgres(TARGETS));
}

#[test]
fn an_org_rests_and_ends() {
    let server = Server::start();
    world(&server);
    let ana = Visitor::admin(&server);
    assert_has(&ana.page("/orgs/acme/disable"), &["These runs will not happen", "brief", "08:00 <span"]);
    let (_, said) = led(&ana.send("/orgs/acme/disable", &[]));
    assert_eq!(said, "+acme disabled. No job fires for it.");
    assert_has(&ana.page("/orgs/acme"), &["This org is disabled", "the org is disabled", "href=\"/orgs/acme/enable\""]);
    assert_has(&ana.page("/orgs/acme/enable"), &["Jobs fire for this org again", "08:00 <span"]);
    led(&ana.send("/orgs/acme/enable", &[]));
    assert_eq!(org(&server, "acme")["enabled"], true);

    assert_has(&ana.page("/orgs/acme/delete"), &["1 job will no longer fire for this org", "Its runs stay"]);
    let refused = ana.send("/orgs/acme/delete", &[("confirm", "acne"), ("reason", "they left")]);
    assert_eq!(refused.status, 400);
    assert_has(&refused.text, &["Type acme to confirm.", "value=\"acne\"", "value=\"they left\""]);
    let (place, said) = led(&ana.send("/orgs/acme/delete", &[("confirm", "acme")]));
    assert_eq!((place.as_str(), said.as_str()), ("/orgs", "+acme deleted. Its runs are kept."));
    assert_eq!(ana.get("/orgs/acme").status, 404);
}

#[test]
fn many_orgs_are_imported_after_a_look() {
    let server = Server::start();
    world(&server);
    let ana = Visitor::admin(&server);
    let bad = "id,timezone,name\ndune,Mars/Base,Dune\nelk,UTC,\"Elk\"\n,UTC,\n";
    let refused = ana.send("/import-orgs", &[("text", bad), ("do", "check")]);
    assert_eq!(refused.status, 400);
    assert_has(&refused.text, &["line 2: unknown time zone", "line 4:", "Mars/Base,Dune", "Nothing was imported"]);
    let refused = ana.send("/import-orgs", &[("text", "id,zone\na,UTC"), ("do", "check")]);
    assert_has(&refused.text, &["there is no column `zone`"]);
    let good = "id,timezone,name\ndune,Australia/Sydney,Dune\nacme,Europe/Paris,Acme & Co\ncove,UTC,\n";
    let looked = ana.send("/import-orgs", &[("text", good), ("do", "check")]);
    assert_eq!(looked.status, 200);
    assert_has(&looked.text, &["3 orgs: <b>1</b> to create, <b>1</b> to change, 1 unchanged"]);
    assert_eq!(server.get("/orgs/dune").status, 404);
    let (place, said) = led(&ana.submit("/import-orgs", &looked.text, &[("text", good), ("do", "import")]));
    assert_eq!((place.as_str(), said.as_str()), ("/orgs", "+1 orgs created, 1 changed, 1 unchanged."));
    assert_eq!(org(&server, "dune")["timezone"], "Australia/Sydney");
    let lines = "{\"id\":\"elk\",\"timezone\":\"UTC\",\"settings\":{\"n\":1.50}}";
    led(&ana.send("/import-orgs", &[("text", lines), ("do", "import")]));
    assert_has(&ana.page("/orgs/elk"), &["1.50"]);
}

#[test]
fn texts_stay_texts() {
    let server = Server::start();
    let id = part(NASTY);
    server.put(&format!("/orgs/{id}"), &json!({ "timezone": "UTC", "name": NASTY })).expect(201);
    server.job(NASTY, &json!({ "scope": "per_org", "cronExpression": "0 8 * * *", "description": NASTY }));
    server.post(&format!("/jobs/key:{id}/run-now"), &json!({ "orgId": NASTY })).expect(202);
    server.put(&format!("/orgs/{id}/jobs/{id}"), &json!({ "localTime": "09:00", "reason": NASTY })).expect(200);
    let ana = Visitor::admin(&server);
    for path in [
        "/orgs".to_owned(),
        format!("/orgs?text={id}"),
        format!("/orgs/{id}"),
        format!("/orgs/{id}/edit"),
        format!("/orgs/{id}/delete"),
        format!("/orgs/{id}/disable"),
        format!("/orgs/{id}/jobs/{id}/off"),
        format!("/orgs/{id}/jobs/{id}/time"),
        format!("/orgs/{id}/jobs/{id}/clear"),
        format!("/jobs/{id}"),
        format!("/jobs/{id}/orgs"),
        format!("/jobs/{id}/orgs/run-now?orgId={id}"),
        format!("/jobs/{id}/run-now"),
        format!("/jobs/{id}/run-now?orgId={id}"),
        format!("/jobs/{id}/reschedule?orgId={id}"),
        format!("/jobs/{id}/skip-next?orgId={id}"),
        format!("/jobs/{id}/backfill?orgId={id}"),
        format!("/runs?orgId={id}"),
    ] {
        assert_shown(&ana.page(&path), NASTY);
    }
    let refused = ana.send("/new-org", &[("id", NASTY), ("name", NASTY), ("timezone", NASTY), ("settings", NASTY)]);
    assert_eq!(refused.status, 400);
    assert_shown(&refused.text, NASTY);
    assert_shown(&ana.send("/import-orgs", &[("text", NASTY), ("do", "check")]).text, NASTY);
}

#[test]
fn viewers_look_and_change_nothing() {
    let server = Server::start();
    world(&server);
    let viewer = Visitor::sign_in(&server, "viewer");
    let why = "Requires the operator role. Your role is viewer.";
    for path in ["/orgs", "/orgs/acme", "/jobs/brief/orgs"] {
        let page = viewer.page(path);
        assert_has(&page, &[&format!("disabled title=\"{why}\""), "acme"]);
        assert!(
            !page.contains("href=\"/new-org\"") && !page.contains("/run-now?") && !page.contains("/edit\""),
            "{path}"
        );
    }
    for path in [
        "/new-org",
        "/import-orgs",
        "/orgs/acme/edit",
        "/orgs/acme/disable",
        "/orgs/acme/delete",
        "/orgs/acme/jobs/brief/off",
        "/orgs/acme/jobs/brief/time",
        "/jobs/brief/orgs/run-now",
    ] {
        assert_eq!(viewer.get(path).status, 403, "{path}");
        assert_eq!(viewer.post(path, &[("id", "x"), ("timezone", "UTC"), ("confirm", "acme")]).status, 403, "{path}");
    }
    let ana = Visitor::admin(&server);
    assert_eq!(ana.post_exactly("/orgs/acme/disable", &[]).status, 403, "without a CSRF token");
    assert_eq!(ana.post_exactly("/orgs/acme/disable", &[("csrf", "wrong")]).status, 403);
    assert_eq!(org(&server, "acme")["enabled"], true);
}
