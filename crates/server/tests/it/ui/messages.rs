//! Messages of empty pages and refused actions.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::runs::{id, run_now};
use super::visitor::{Visitor, assert_has, between};
use crate::server::Server;

fn main_of(page: &str) -> &str {
    between(page, "<main", "</main>")
}

#[test]
fn a_server_without_jobs_says_so_and_offers_to_make_one() {
    let server = Server::start();
    let (ana, bob) = (Visitor::admin(&server), Visitor::sign_in(&server, "viewer"));
    for path in ["/", "/timeline", "/timeline?range=7d", "/jobs", "/jobs?status=paused"] {
        let page = ana.page(path);
        assert_has(main_of(&page), &["No jobs yet", "href=\"/new\""]);
        assert!(!page.contains("No matching jobs"), "{path}");
        // Who may not make one is not led there.
        assert!(!main_of(&bob.page(path)).contains("href=\"/new\""), "{path}");
    }
    let server = Server::start();
    server.job("daily", &json!({}));
    for path in ["/timeline?q=nothing", "/jobs?status=paused"] {
        assert_has(&Visitor::admin(&server).page(path), &["No matching jobs"]);
    }
}

#[test]
fn the_audit_trail_takes_the_key_of_a_job() {
    let server = Server::start();
    server.job("daily", &json!({}));
    server.job("a:b", &json!({}));
    let ana = Visitor::admin(&server);
    for object in ["daily", "job:daily", "a:b", "job:a:b"] {
        assert_has(&ana.page(&format!("/audit?object={object}")), &["<code>job.create</code>"]);
    }
    assert_has(&ana.page("/audit?object=token:nobody"), &["There are no entries for token:nobody"]);
}

#[test]
fn a_version_of_what_has_changed_is_refused_in_one_voice() {
    let server = Server::start();
    server.job("daily", &json!({}));
    let ana = Visitor::admin(&server);
    let page = ana.page("/jobs/daily/new-version");
    server.patch("/jobs/key:daily", &json!({ "description": "faster" })).expect(200);
    let sent = [("target", "print"), ("how", "cron"), ("cronExpression", "0 9 * * *"), ("timezone", "UTC")];
    let refused = ana.submit("/jobs/daily/new-version", &page, &sent);
    assert_has(
        &refused.text,
        &["The job has changed in the meantime, and nothing was saved. <a", "Reload the form</a>"],
    );
    assert!(!refused.text.contains("This is its current state"), "{}", refused.text);
}

#[test]
fn what_is_retired_does_not_start_at_once() {
    let server = Server::start();
    server.job("daily", &json!({}));
    let run = run_now(&server, "daily", "succeeded");
    let ana = Visitor::admin(&server);
    let place = format!("/runs/{}/rerun", id(&run));
    assert_has(&ana.page(&place), &["The run starts now.", ">Run again</button>"]);
    server.delete("/jobs/key:daily").expect(200);
    let page = ana.page(&place);
    assert_has(&page, &["The job is retired and cannot run again."]);
    assert!(!page.contains("starts now") && !page.contains(">Run again</button>"), "{page}");
}

#[test]
fn what_the_api_says_in_backticks_is_code() {
    let server = Server::start();
    server.job("daily", &json!({}));
    let bob = Visitor::sign_in(&server, "viewer");
    let page = bob.get("/jobs/daily/pause").text;
    assert_has(&page, &["This requires the role <code dir=\"auto\">operator</code>"]);
    assert!(!main_of(&page).contains('`'), "{page}");
    let ana = Visitor::admin(&server);
    let nasty =
        [("jobKey", "new"), ("anotherTarget", "<script>`\"'&"), ("how", "cron"), ("cronExpression", "0 9 * * *")];
    let refused = ana.post("/new", &nasty);
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert!(!refused.text.contains("<script>`") && !refused.text.contains("<script>\""), "{}", refused.text);
    assert_has(&refused.text, &["<code dir=\"auto\">&lt;script&gt;"]);
}

#[test]
fn a_job_for_each_org_has_no_zone_of_its_own() {
    let server = Server::start();
    server.job("each", &json!({ "cronExpression": "0 9 * * *", "scope": "per_org" }));
    let ana = Visitor::admin(&server);
    let page = ana.page("/jobs/each");
    assert_has(between(&page, "id=\"versions\"", "</section>"), &["<small>in each org's time zone</small>"]);
    assert_has(&ana.page("/timeline"), &["1 job fires for each org at its local time."]);
}

#[test]
fn a_fire_is_not_moved_into_the_past() {
    let server = Server::start();
    server.job("daily", &json!({}));
    let ana = Visitor::admin(&server);
    let shown = |to: &str| ana.post("/jobs/daily/reschedule/preview", &[("nextRunAt", to)]).text;
    assert_has(&shown("2020-01-01T00:00"), &["is in the past", "is in the past"]);
    assert!(!shown("2020-01-01T00:00").contains("Only this run moves"));
    assert_has(&shown("2090-01-01T00:00"), &["Only this run moves"]);
    let refused = ana.send("/jobs/daily/reschedule", &[("nextRunAt", "2020-01-01T00:00")]);
    assert_eq!(refused.status, 400, "{}", refused.text);
}

#[test]
fn slots_of_a_pause_are_not_missed() {
    let server = Server::start();
    server.job("often", &json!({ "cronExpression": "* * * * * *" }));
    let paused = server.patch("/jobs/key:often/pause", &json!({ "reason": "SMTP is down" })).expect(200);
    let time = |value: &Value| value.as_str().unwrap().parse::<Timestamp>().unwrap();
    // By then a slot has passed during the pause.
    let later = time(&paused["pausedAt"]) + SignedDuration::from_secs(1);
    server.until("/status", |status| time(&status["now"]) > later);
    server.post("/jobs/key:often/resume", &json!({})).expect(200);
    server.until("/jobs/key:often/gaps", |gaps| !gaps["items"].as_array().unwrap().is_empty());
    let page = Visitor::admin(&server).page("/timeline?range=1h");
    assert_has(&page, &["class=\"c-held\"", "<td>paused</td>"]);
    assert!(!page.contains("<td>missed</td>"), "{page}");
}
