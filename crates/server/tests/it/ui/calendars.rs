//! Calendars and freezes as people see and change them.

use jiff::SignedDuration;
use serde_json::json;

use super::browser::Browser;
use super::visitor::{Visitor, assert_has};
use crate::server::{Server, TARGETS};

#[test]
fn a_calendar_is_created_used_edited_and_deleted() {
    let server = Server::with(TARGETS).registered();
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/calendars"));
    browser.see("There are no calendars yet");
    browser.flawless();
    browser.click("New calendar");
    browser.fill("Name", "holidays");
    let refused = Visitor::admin(&server).post("/new-calendar", &[("name", "a"), ("dates", "2190-01-01\n2190-13-01")]);
    assert!(refused.status == 400 && refused.text.contains("2190-13-01"), "{}", refused.text);
    browser.fill("Days", "2190-01-01 New Year");
    browser.click("Save calendar");
    browser.see("Calendar holidays saved.");
    let job = json!({"policies": {"calendar": {"exclude": ["holidays"]}}});
    server.job("nightly", &job);
    browser.visit(&server.url("/calendars"));
    browser.see("2190-01-01 New Year");
    browser.see("nightly");
    browser.flawless();
    browser.screenshot("calendars-1280-light");
    browser.click("holidays");
    browser.fill("Days", "*-01-01 New Year\n*-12-25 Christmas");
    browser.click("Show what changes");
    browser.see("in the next 90 days");
    browser.flawless();
    browser.click("Save calendar");
    browser.see("1 job has a new version.");
    assert_eq!(server.get("/jobs/key:nightly").expect(200)["version"], 2);
    assert_eq!(
        server.get("/calendars/holidays").expect(200)["dates"],
        json!(["*-01-01 New Year", "*-12-25 Christmas"])
    );
    browser.finish();
}

#[test]
fn a_freeze_is_announced_and_ended() {
    let server = Server::with(TARGETS).registered();
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/freezes/new"));
    browser.see("No schedule fires during the freeze");
    browser.flawless();
    let admin = Visitor::admin(&server);
    let until = (everbell_cli::clock::wall() + SignedDuration::from_hours(50)).strftime("%Y-%m-%dT%H:%M").to_string();
    let refused = admin.post("/freezes/new", &[("until", &until), ("reason", "x")]);
    assert_eq!(refused.status, 400);
    let fields = [("until", until.as_str()), ("reason", "release weekend"), ("label", "env=prod"), ("except", "a, b")];
    assert_eq!(admin.post("/freezes/new", &fields).status, 303);
    let freeze = server.get("/freezes").expect(200)["items"][0].clone();
    assert_eq!((&freeze["label"], &freeze["except"]), (&json!("env=prod"), &json!(["a", "b"])));
    browser.visit(&server.url("/calendars"));
    browser.see("release weekend");
    browser.see("jobs with env=prod");
    browser.flawless();
    browser.click("End the freeze of jobs with env=prod: release weekend");
    browser.see("The freeze has ended.");
    assert_eq!(server.get("/freezes").expect(200)["items"], json!([]));
    browser.finish();
}

#[test]
fn viewers_see_calendars_and_change_nothing() {
    let server =
        Server::with(&format!("{TARGETS}[[calendar]]\nname = \"weekend\"\nweekly = [\"sat\", \"sun\"]\n")).registered();
    let viewer = Visitor::sign_in(&server, "viewer");
    assert_has(&viewer.page("/calendars"), &["weekend", "sat, sun", "declared in config", "disabled"]);
    for path in ["/new-calendar", "/calendars/weekend", "/freezes/new"] {
        assert_eq!(viewer.get(path).status, 403, "{path}");
    }
    let admin = Visitor::admin(&server);
    assert_has(&admin.page("/calendars/weekend"), &["declared in the configuration"]);
    let refused = admin.post("/calendars/weekend", &[("weekly", "mon")]);
    assert!(refused.status == 400 && refused.text.contains("[[calendar]]"), "{}", refused.text);
    assert_eq!(admin.get("/calendars/nothing").status, 404);
}
