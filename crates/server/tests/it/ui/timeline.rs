//! The timeline as people read it: dense jobs, freezes, the load, and minutes in which too many jobs start.

use serde_json::json;

use super::browser::Browser;
use super::visitor::{Visitor, assert_has, between, led};
use crate::server::Server;

/// A whole day in the future, in which nothing else happens.
const DAY: &str = "range=24h&around=2099-01-01T12:00:00Z";

/// A job that fires from the beginning of that day on.
fn job(server: &Server, key: &str, cron: &str) {
    server.job(key, &json!({ "cronExpression": cron, "startAt": "2099-01-01T00:00:00Z", "labels": { "is": key } }));
}

#[test]
fn a_dense_job_is_a_band_to_the_edge_and_a_freeze_a_hole_in_it() {
    let server = Server::start();
    job(&server, "dense", "*/2 * * * * *");
    job(&server, "rare", "0 9 * * *");
    server.job("elsewhere", &json!({ "cronExpression": "0 0 1 7 *", "startAt": "2099-01-01T00:00:00Z" }));
    let ana = Visitor::admin(&server);
    let plain = |page: String| page.replace('\u{a0}', " ");
    let page = plain(ana.page(&format!("/timeline?{DAY}")));
    // In the picture, in the table, and in the list of narrow screens.
    assert_has(
        &page,
        &["43,200 planned · 30/min", ">30/min</text>", "43,200 until 00:00 · 30/min", "0 missed, 43201 planned."],
    );
    // Every fire of five minutes is in the load, one more with the job at nine.
    assert_has(
        &page,
        &["2099-01-01 09:00–09:05 · 151 runs planned", "150 runs planned in each 5 m", "runs that start per 5 m"],
    );
    assert_has(&page, &["1 job has no runs in this time.", "Show it too"]);
    assert!(!page.contains("/jobs/elsewhere"), "{page}");
    assert_has(&ana.page(&format!("/timeline?{DAY}&empty=true")), &["/jobs/elsewhere"]);
    let freeze = json!({ "from": "2099-01-01T06:00:00Z", "until": "2099-01-01T10:00:00Z", "reason": "a release" });
    server.post("/freezes", &freeze).expect(201);
    let page = plain(ana.page(&format!("/timeline?{DAY}")));
    assert_has(&page, &["06:00–10:00 · 7,200 frozen · a release", ">frozen</text>", "7201 frozen, 36000 planned."]);
    assert_has(&page, &["00:00–06:00 · 10,800 planned · 30/min", "10:00–00:00 · 25,200 planned · 30/min"]);
    assert!(!page.contains("09:00–09:05 · "), "nothing starts in the freeze: {page}");
    let browser = Browser::admin(&server);
    browser.visit(&server.url(&format!("/timeline?{DAY}")));
    browser.flawless();
    browser.finish();
}

#[test]
fn a_minute_in_which_many_jobs_start_is_named_and_spread_after_a_preview() {
    let server = Server::start();
    for number in 1..=6 {
        job(&server, &format!("report-{number}"), "0 18 * * *");
    }
    job(&server, "dense", "*/2 * * * * *");
    let ana = Visitor::admin(&server);
    let href = "/timeline/herd?at=2099-01-01T18%3A00%3A00Z";
    assert_has(&ana.page(&format!("/timeline?{DAY}")), &["6 jobs start at 2099-01-01 18:00 UTC", href]);
    let page = ana.page(&format!("{href}&jitter=PT30M"));
    assert_has(
        &page,
        &["Now <b>6 runs</b> start in this minute", "up to 30 minutes of jitter", "report-6", "about 18:"],
    );
    assert!(!page.contains("/jobs/dense"), "it fires all the time: {page}");
    let version = |key: &str| server.get(&format!("/jobs/key:{key}")).expect(200)["version"].clone();
    assert_eq!(version("report-1"), 1, "a preview changes nothing");
    let viewer = Visitor::sign_in(&server, "viewer");
    assert_has(&viewer.page(href), &["Requires the admin role."]);
    let fields = [("at", "2099-01-01T18:00:00Z"), ("jitter", "PT30M"), ("key", "report-1"), ("key", "report-2")];
    assert_eq!(viewer.post("/timeline/herd", &fields).status, 403);
    let browser = Browser::admin(&server);
    browser.visit(&server.url(href));
    browser.flawless();
    browser.screenshot("herd-1280-light");
    browser.finish();
    led(&ana.post("/timeline/herd", &fields));
    for (key, jitter, next) in [("report-1", "PT30M", 2), ("report-2", "PT30M", 2), ("report-3", "PT0S", 1)] {
        let job = server.get(&format!("/jobs/key:{key}")).expect(200);
        assert_eq!((&job["policies"]["jitter"], &job["version"]), (&json!(jitter), &json!(next)), "{job}");
    }
    let gone = [("at", "2099-01-01T18:00:00Z"), ("jitter", "PT30M"), ("key", "nothing")];
    let refused = ana.post("/timeline/herd", &gone);
    assert_has(&refused.text, &["Not changed:", "nothing"]);
}

#[test]
fn orgs_are_in_the_load_and_in_the_row_of_their_job() {
    let server = Server::start();
    server
        .job("each", &json!({ "cronExpression": "0 9 * * *", "scope": "per_org", "startAt": "2099-01-01T00:00:00Z" }));
    for number in 1..=7 {
        server.put(&format!("/orgs/org-{number}"), &json!({ "timezone": "Asia/Tokyo" })).expect(201);
    }
    server.until("/next?limit=1", |list| list["items"][0]["orgs"] == 7);
    let page = Visitor::admin(&server).page(&format!("/timeline?{DAY}"));
    let parts = ["planned for 7 orgs", "00:00–00:05 · 7 runs planned", "7 runs of 1 job start at 2099-01-01 00:00 UTC"];
    assert_has(&page, &parts);
}

#[test]
fn a_month_counts_what_runs_and_what_freezes_and_calendars_stop() {
    let server = Server::start();
    job(&server, "daily", "0 8 * * *");
    server.put("/calendars/weekend", &json!({ "weekly": ["sat", "sun"] })).expect(200);
    let workdays = json!({
        "cronExpression": "0 9 * * *",
        "startAt": "2099-01-01T00:00:00Z",
        "policies": { "calendar": { "exclude": ["weekend"] } },
    });
    server.job("workdays", &workdays);
    let freeze = json!({ "from": "2099-01-13T00:00:00Z", "until": "2099-01-14T00:00:00Z", "reason": "a release" });
    server.post("/freezes", &freeze).expect(201);
    let ana = Visitor::admin(&server);
    let page = ana.page("/timeline/month?month=2099-01");
    let day = |name: &str| between(&page, &format!("{name} January 2099</span>"), "</td>").to_owned();
    assert_has(&day("Friday, 9"), &["2 runs planned"]);
    assert!(!day("Friday, 9").contains("excluded") && !day("Friday, 9").contains("frozen"), "{page}");
    assert_has(&day("Saturday, 10"), &["1 run planned", "1 excluded by calendars"]);
    assert_has(&day("Tuesday, 13"), &["a release", "2 frozen"]);
    assert!(!day("Tuesday, 13").contains("planned"), "{page}");
    assert_has(&ana.page("/timeline"), &["href=\"/timeline/month\""]);
    for wrong in ["2099-13", "January", "2300-01"] {
        let refused = ana.get(&format!("/timeline/month?month={wrong}"));
        assert!(refused.status == 400 && refused.text.contains("must be a month"), "{}", refused.text);
    }
    // A day that is over has its runs: this one, which was run by hand.
    server.post("/jobs/key:daily/run-now", &json!({})).expect(202);
    server.until("/runs", |runs| runs["items"][0]["finishedAt"].is_string());
    assert_has(&ana.page("/timeline/month"), &["aria-current=\"date\"", ">1 run<"]);
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/timeline/month?month=2099-01"));
    browser.flawless();
    browser.screenshot("month-1280-light");
    browser.finish();
}

#[test]
fn a_label_selects_the_jobs_of_the_timeline() {
    let server = Server::start();
    server.job("mine", &json!({ "cronExpression": "@hourly", "labels": {"team": "data"} }));
    server.job("theirs", &json!({ "cronExpression": "@hourly", "labels": {"team": "ops"} }));
    let visitor = Visitor::admin(&server);
    let page = visitor.page("/timeline?label=team%3Ddata");
    assert!(page.contains("/jobs/mine") && !page.contains("/jobs/theirs"), "{page}");
    assert!(page.contains("id=\"clear-label\"") && page.contains("value=\"team=data\""), "{page}");
    assert!(page.contains("The load counts the jobs that are listed."), "{page}");
    assert!(visitor.page("/timeline").contains("/jobs/theirs"));
}
