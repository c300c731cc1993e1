//! Pages that show the whole: every one of them is good for everybody, light and dark, wide and narrow.

use serde_json::json;

use super::browser::Browser;
use super::visitor::{Visitor, assert_has};
use crate::server::{Server, eventually, time};

/// A server on which something has happened: runs that ended well and badly, a paused job, two versions.
fn lively() -> Server {
    let server = Server::start();
    server.job(
        "daily",
        &json!({"cronExpression": "0 8 * * mon-fri", "timezone": "Europe/Paris", "labels": {"team": "a"}}),
    );
    server.job("night", &json!({"cronExpression": "30 2 * * *", "timezone": "America/New_York"}));
    server.job("broken", &json!({"target": "fail"}));
    server.job("stopped", &json!({}));
    server.patch("/jobs/key:stopped/pause", &json!({"reason": "SMTP down, INC-88"})).expect(200);
    server.patch("/jobs/key:daily", &json!({"description": "What happens today"})).expect(200);
    for key in ["daily", "broken"] {
        server.post(&format!("/jobs/key:{key}/run-now"), &json!({})).expect(202);
    }
    let ended = |runs: &serde_json::Value| {
        let runs = runs["items"].as_array().unwrap();
        runs.len() == 2 && runs.iter().all(|run| !run["finishedAt"].is_null())
    };
    server.until("/runs", ended);
    server
}

#[test]
fn the_overview_tells_what_needs_attention() {
    let server = lively();
    let browser = Browser::admin(&server);
    browser.see("1 problem since");
    browser.see("4 jobs, 2 runs in 24 h, 50% ok");
    browser.see("ended with the exit code");
    browser.see("Every day at 02:30");
    browser.flawless();
    browser.click("1 failed");
    browser.see("Runs");
    browser.finish();
}

#[test]
fn a_job_is_shown_with_everything_about_it() {
    let server = lively();
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/jobs/daily"));
    for text in [
        "At 08:00 on weekdays",
        "team=a",
        "What happens today",
        "v2",
        "description",
        "job.new_version",
        "100% of 1 run succeeded in 7 days",
    ] {
        browser.see(text);
    }
    browser.flawless();
    browser.visit(&server.url("/jobs/night"));
    browser.see("02:30 does not exist on");
    browser.fill("Time in America/New_York", "2026-01-01T02:30");
    browser.click("Explain");
    browser.see("The job did not exist yet");
    browser.visit(&server.url("/jobs/stopped"));
    browser.see("SMTP down, INC-88");
    browser.flawless();
    browser.finish();
}

#[test]
fn the_timeline_has_a_row_for_each_job_and_a_table_for_who_cannot_see_it() {
    let server = lively();
    let browser = Browser::admin(&server);
    browser.click("Timeline");
    // For half of the day, `night` has no slot among those of 24 hours.
    browser.click("7 days");
    for key in ["daily", "night", "broken"] {
        browser.see(key);
    }
    browser.not_see("stopped");
    browser.click("Show it too");
    browser.see("stopped");
    browser.click("Timeline");
    browser.click("7 days");
    browser.until("return location.search === '?range=7d'");
    browser.not_see("more often than can be shown");
    browser.click("Show as table");
    browser.see("planned");
    browser.flawless();
    browser.finish();
}

#[test]
fn the_house_shows_itself() {
    let server = lively();
    let browser = Browser::admin(&server);
    for (link, text) in [("Targets", "1 instance"), ("Cluster", "1 of 1 instance alive"), ("Audit", "job.pause")] {
        browser.click(link);
        browser.see(text);
        browser.flawless();
    }
    browser.visit(&server.url("/settings"));
    browser.fill("Name", "ana");
    browser.click("Create token");
    browser.see("it is not shown again");
    browser.flawless();
    browser.click("Revoke ana");
    browser.see("This cannot be undone");
    browser.click("Revoke token");
    browser.see("Token ana revoked.");
    browser.finish();
}

#[test]
fn drained_instances_take_no_work_until_they_are_asked_again() {
    let server = lively();
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/cluster"));
    browser.click("Drain");
    browser.see("The instance accepts no work until it is undrained.");
    browser.click("Drain instance");
    browser.see("Draining");
    browser.click("Undrain");
    browser.see("The instance accepts work again.");
    browser.finish();
}

#[test]
fn the_overview_does_not_contradict_itself() {
    let server = Server::start();
    server.job("slow", &json!({"target": "sleep"}));
    server.job("broken", &json!({"target": "fail"}));
    server.post("/jobs/key:broken/run-now", &json!({})).expect(202);
    server.until("/runs?status=failed", |runs| !runs["items"].as_array().unwrap().is_empty());
    server.patch("/jobs/key:broken/pause", &json!({"reason": "it is being mended"})).expect(200);
    let ana = Visitor::admin(&server);
    assert_has(&ana.page("/"), &["No runs are active.", ">paused; exit_code: ", "1 problem"]);
    server.post("/jobs/key:slow/run-now", &json!({})).expect(202);
    server.until("/runs?status=running", |runs| !runs["items"].as_array().unwrap().is_empty());
    assert_has(&ana.page("/"), &["Cancel the run of slow"]);
}

#[test]
fn every_number_of_the_overview_is_of_the_same_day() {
    let server = Server::start();
    let every = json!({"cronExpression": "*/5 * * * *", "startAt": "2020-01-01T00:00:00Z", "target": "fail"});
    server.job("gone", &every);
    // Failures around the moment 24 hours ago, which lies within an hour of the chart.
    let now = time(&server.get("/status").expect(200)["now"]);
    let ago = |minutes: i64| (now - jiff::SignedDuration::from_mins(minutes)).to_string();
    let begun = server.post("/jobs/key:gone/backfills", &json!({"from": ago(25 * 60), "to": ago(22 * 60)})).expect(202);
    let backfill = format!("/jobs/key:gone/backfills/{}", begun["id"].as_str().unwrap());
    server.until(&backfill, |backfill| backfill["status"] == "done");
    server.delete("/jobs/key:gone").expect(200);
    let page = Visitor::admin(&server).page("/");
    let number = |end: &str| -> usize {
        let before = page.split_once(end).unwrap_or_else(|| panic!("no {end}: {page}")).0;
        before.rsplit('>').next().unwrap().trim().parse().unwrap()
    };
    let failed = number(" failed</a>");
    assert!((12..=25).contains(&failed), "{failed}");
    assert_eq!(number(" other failures in 24 hours"), failed);
    let link = page.split_once(" failed</a>").unwrap().0.rsplit_once("from=").unwrap().1.split_once('"').unwrap().0;
    let listed = server.get(&format!("/runs?status=failed&limit=200&from={link}")).expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), failed);
}

#[test]
fn jobs_that_fail_for_one_reason_are_one_problem() {
    let server = Server::start();
    for key in ["one", "two", "three"] {
        server.job(key, &json!({"target": "fail"}));
        server.post(&format!("/jobs/key:{key}/run-now"), &json!({})).expect(202);
    }
    server.until("/runs?status=failed", |runs| runs["items"].as_array().unwrap().len() == 3);
    let ana = Visitor::admin(&server);
    let page = ana.page("/");
    assert_has(&page, &["<b>1 problem since ", "3 jobs, 3 runs in 24 h, 0% ok", ">3 jobs</a>", "and 1 more"]);
    // A job that succeeds again is no problem any more.
    server.patch("/jobs/key:one", &json!({"target": "print"})).expect(200);
    server.post("/jobs/key:one/run-now", &json!({})).expect(202);
    server.until("/runs?status=succeeded", |runs| runs["items"].as_array().unwrap().len() == 1);
    assert_has(&ana.page("/"), &["<b>1 problem since ", ">2 jobs</a>", "3 jobs, 4 runs in 24 h, 25% ok"]);
}

#[test]
fn a_new_server_shows_where_to_start() {
    let server = Server::start();
    let ana = Visitor::admin(&server);
    assert_has(&ana.page("/"), &["No jobs yet", "href=\"/import\"", "href=\"/targets\"", "All well:"]);
    server.job("first", &json!({"payload": {"message": "hello world"}}));
    server.post("/jobs/key:first/run-now", &json!({})).expect(202);
    server.until("/runs?status=succeeded", |runs| runs["items"].as_array().unwrap().len() == 1);
    assert_has(&ana.page("/"), &["It already works", "id=\"first-output\"", "hello world"]);
    for key in ["second", "third"] {
        server.job(key, &json!({}));
    }
    // Pages count jobs every two seconds.
    let gone = eventually(|| Some(ana.page("/")).filter(|page| !page.contains("Import your crontab")));
    assert!(gone.is_some_and(|page| !page.contains("It already works")));
}

#[test]
fn the_overview_is_filtered_and_counted_by_label() {
    let server = Server::start();
    server.job("mine", &json!({ "target": "fail", "labels": {"team": "data"} }));
    server.job("theirs", &json!({ "target": "fail", "labels": {"team": "ops"} }));
    server.job("nobodys", &json!({}));
    for key in ["mine", "theirs"] {
        server.post(&format!("/jobs/key:{key}/run-now"), &json!({})).expect(202);
    }
    server.until("/runs?status=failed", |page| page["items"].as_array().unwrap().len() == 2);
    let admin = Visitor::admin(&server);
    let page = admin.page("/?label=team%3Ddata");
    assert!(page.contains("id=\"clear-label\"") && page.contains("/jobs/mine\"") && page.contains("1 job"), "{page}");
    assert!(!page.contains("/jobs/theirs\"") && !page.contains("/jobs/nobodys\""), "{page}");
    let page = admin.page("/?group=team");
    let card = page.split_once("id=\"groups\"").unwrap().1.split_once("</section>").unwrap().0;
    for text in ["href=\"/?label=team%3Ddata\"", "team=ops", "without team", "/jobs?label=team%3Dops&amp;failing=true"]
    {
        assert!(card.contains(text), "{text}: {card}");
    }
}
