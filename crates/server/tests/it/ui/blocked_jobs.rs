//! Jobs that do not fire say why.

use serde_json::json;

use super::browser::Browser;
use super::visitor::{Visitor, assert_has, between};
use crate::server::{Server, TARGETS};

#[test]
fn a_job_whose_target_nobody_serves_says_so() {
    // It knows its targets, and works on none of them.
    let server = Server::with(&format!("[server]\nrole = \"api\"\n{TARGETS}"));
    server.job("tick", &json!({ "cronExpression": "* * * * * *" }));
    server.job("held", &json!({}));
    server.patch("/jobs/key:held/pause", &json!({ "reason": "SMTP is down" })).expect(200);
    server.until("/status", |status| status["dueTimers"].as_u64().is_some_and(|due| due > 0));
    let ana = Visitor::admin(&server);
    let page = ana.page("/jobs/tick");
    assert_has(&page, &["<b>Does not fire:</b> no live instance serves its target <b dir=\"auto\">print</b>"]);
    let fires = between(&page, "id=\"coming\"", "</section>");
    assert_eq!(fires.matches("late").count(), 1, "only the first is late, the others are still to come: {fires}");
    assert!(fires.matches(" ago").count() <= 1, "{fires}");
    assert_has(&ana.page("/jobs/tick/run-now"), &["No live instance serves the target. The run waits"]);
    assert!(!ana.page("/jobs/held").contains("Does not fire"), "a paused job does not fire anyway");

    let browser = Browser::admin(&server);
    browser.visit(&server.url("/jobs/tick"));
    browser.see("Does not fire:");
    browser.flawless();
    browser.finish();
}

#[test]
fn a_job_that_somebody_serves_does_not() {
    let server = Server::start();
    server.job("daily", &json!({}));
    let ana = Visitor::admin(&server);
    assert!(!ana.page("/jobs/daily").contains("Does not fire"));
    assert_has(&ana.page("/jobs/daily/run-now"), &["The run starts now."]);
}

#[test]
fn a_pause_that_ends_tells_the_first_fire_after_it() {
    let server = Server::start();
    server.job("yearly", &json!({}));
    let until = json!({ "reason": "SMTP is down", "until": "2090-06-01T00:00:00Z" });
    server.patch("/jobs/key:yearly/pause", &until).expect(200);
    let ana = Visitor::admin(&server);
    assert_has(&ana.page("/jobs"), &["title=\"2091-01-01 00:00 UTC\">will be <span class=\"away\""]);
    let facts = ana.page("/jobs/yearly");
    assert_has(between(&facts, "<dt>Next run</dt>", "<dt>Last run</dt>"), &["2091-01-01", "after the pause"]);
    server.patch("/jobs/key:yearly/pause", &json!({ "reason": "still down" })).expect(200);
    assert_has(&ana.page("/jobs"), &[">would be <span class=\"away\""]);
    assert_has(&ana.page("/jobs/yearly"), &["none while paused"]);
}

#[test]
fn a_pause_names_the_run_that_goes_on() {
    let server = Server::start();
    server.job("long", &json!({ "target": "sleep" }));
    let ana = Visitor::admin(&server);
    assert_has(&ana.page("/jobs/long/pause"), &["Runs that have started continue."]);
    let run = server.post("/jobs/key:long/run-now", &json!({})).expect(202)["run"]["id"].as_str().unwrap().to_owned();
    server.until(&format!("/runs/{run}"), |run| run["status"] == "running");
    let page = ana.page("/jobs/long/pause");
    assert_has(&page, &[&format!("href=\"/runs/{run}/cancel\""), "to stop it"]);
}

#[test]
fn a_fire_that_was_moved_is_told_in_the_chosen_zone() {
    let server = Server::start();
    server.job("tokyo", &json!({ "cronExpression": "0 9 1 1 *", "timezone": "Asia/Tokyo" }));
    server.post("/jobs/key:tokyo/reschedule", &json!({ "nextRunAt": "2089-06-01T00:00:00Z" })).expect(200);
    let ana = Visitor::admin(&server);
    let coming = |ana: &Visitor<'_>| between(&ana.page("/jobs/tokyo"), "id=\"coming\"", "</section>").to_owned();
    assert_has(&coming(&ana), &["moved from", "01-01 09:00</span>"]);
    ana.post("/choices", &[("face", "utc"), ("back", "/")]);
    assert_has(&coming(&ana), &["moved from", "01-01 00:00</span>"]);
}
