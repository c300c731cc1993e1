//! User journeys from the first click to the result, with and without JavaScript.

use serde_json::json;

use super::browser::Browser;
use crate::server::Server;

/// Makes a job by the form.
fn create(browser: &Browser, server: &Server, key: &str, expression: &str) {
    browser.visit(&server.url("/new"));
    browser.fill("Job key", key);
    browser.choose("Target", "print");
    browser.choose("Schedule format", "Cron expression");
    browser.fill("Expression", expression);
    browser.fill("Time zone", "America/New_York");
}

#[test]
fn enter_in_the_first_field_makes_nothing_yet() {
    let server = Server::start();
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/new"));
    browser.fill("Job key", "hasty");
    browser.press("Enter");
    browser.expect_console("400 (Bad Request)");
    browser.see("choose a target");
    assert_eq!(browser.value_of("Job key"), "hasty");
    browser.flawless();
    assert_eq!(server.get("/jobs/key:hasty").status, 404);
    browser.finish();
}

#[test]
fn a_job_is_made_with_a_live_preview_and_seen_to_fire() {
    let server = Server::start();
    let browser = Browser::admin(&server);
    browser.frame("1-overview");
    create(&browser, &server, "night-report", "30 2 * * *");
    browser.see("Every day at 02:30");
    browser.see("does not exist");
    browser.frame("2-preview");
    browser.fill("Expression", "61 2 * * *");
    browser.see("61 is outside 0-59");
    browser.frame("3-error");
    browser.flawless();
    browser.fill("Expression", "* * * * * *");
    browser.see("Every second");
    browser.frame("4-every-second");
    browser.click("Create job");
    browser.until("return location.pathname === '/jobs/night-report'");
    browser.execute("window.same = true", &json!([]));
    browser.frame("5-created");
    // Without loading the page again.
    browser.see("Succeeded");
    browser.frame("6-succeeded");
    assert_eq!(browser.execute("return window.same", &json!([])), json!(true));
    browser.finish();
}

#[test]
fn a_pause_needs_a_reason_and_a_resume_asks_about_the_missed() {
    let server = Server::start();
    server.job("daily", &json!({}));
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/jobs/daily"));
    browser.click("Pause…");
    browser.see("These runs will not happen");
    browser.execute("document.querySelector('#reason').removeAttribute('required'); document.querySelector('#reason').removeAttribute('minlength')", &json!([]));
    browser.click("Pause daily");
    browser.expect_console("400 (Bad Request)");
    browser.see("is required to pause a job");
    browser.fill("Reason", "SMTP is down");
    browser.click("Pause daily");
    browser.see("daily is paused.");
    browser.see("SMTP is down");
    browser.click("Resume…");
    browser.see("Resume daily");
    browser.until("return document.activeElement.id === 'reason'");
    browser.click("Resume daily");
    browser.see_count(".banner.warn", 0);
    browser.finish();
}

#[test]
fn a_run_now_says_what_the_active_run_means_for_it() {
    let server = Server::start();
    server.job("long", &json!({"target": "sleep"}));
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/jobs/long"));
    browser.click("Run now");
    browser.click("dialog .button.primary");
    browser.until("return location.pathname.startsWith('/runs/')");
    browser.see("Running");
    browser.visit(&server.url("/jobs/long"));
    browser.click("Run now");
    browser.see("skipped");
    browser.click("Queue");
    browser.until("return location.pathname.startsWith('/runs/')");
    browser.see("Pending");
    browser.click("Cancel…");
    browser.click("Cancel run");
    browser.see("Canceled");
    browser.finish();
}

#[test]
fn a_new_version_shows_what_changes_before_it_does() {
    let server = Server::start();
    server.job("daily", &json!({"cronExpression": "0 8 * * *"}));
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/jobs/daily"));
    browser.click("Edit…");
    browser.fill("Expression", "30 7 * * *");
    browser.see("cronExpression");
    browser.see("Every day at 07:30");
    browser.flawless();
    browser.click("Create version 2");
    browser.until("return location.pathname === '/jobs/daily'");
    browser.see("v2");
    browser.see("30 7 * * *");
    browser.finish();
}

#[test]
fn only_the_next_fire_moves() {
    let server = Server::start();
    server.job("daily", &json!({"cronExpression": "0 8 * * *"}));
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/jobs/daily"));
    browser.click("More actions");
    browser.click("Reschedule next run…");
    browser.fill("Next run, in UTC", "2035-01-02T03:04");
    browser.click("Move run");
    browser.see("moved from");
    browser.see("2035-01-02 03:04");
    browser.finish();
}

#[test]
fn many_jobs_are_paused_at_once() {
    let server = Server::start();
    for key in ["a", "b", "c"] {
        server.job(key, &json!({}));
    }
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/jobs"));
    browser.click("Select a");
    browser.click("Select b");
    browser.click("Pause selected…");
    browser.see("2");
    browser.fill("Reason", "moving house");
    browser.click("Pause 2 jobs");
    // The form leads back to the list: leaving before that would race with it.
    browser.see("2 jobs paused.");
    browser.visit(&server.url("/jobs?status=paused"));
    browser.see_count("[data-row]", 2);
    browser.finish();
}

#[test]
fn runs_are_filtered_and_paged() {
    let server = Server::start();
    server.job("good", &json!({}));
    server.job("bad", &json!({"target": "fail"}));
    for key in ["good", "bad"] {
        for _ in 0..30 {
            server.post(&format!("/jobs/key:{key}/run-now"), &json!({"force": true})).expect(202);
        }
    }
    server.until("/runs?status=pending,running&limit=1", |runs| runs["items"].as_array().unwrap().is_empty());
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/runs"));
    browser.see_count("[data-row]", 50);
    browser.flawless();
    browser.click("Next page");
    browser.see_count("[data-row]", 10);
    browser.visit(&server.url("/runs?status=failed"));
    browser.see_count("[data-row]", 30);
    browser.see("exit_code");
    browser.finish();
}

#[test]
fn the_main_things_work_without_javascript() {
    let server = Server::start();
    let browser = Browser::admin(&server);
    browser.without_javascript();
    create(&browser, &server, "plain", "0 8 * * *");
    browser.click("Preview");
    browser.see("Every day at 08:00");
    browser.click("Create job");
    browser.click("Pause…");
    browser.fill("Reason", "no scripts here");
    browser.click("Pause plain");
    browser.see("no scripts here");
    browser.click("Resume…");
    browser.click("Resume plain");
    browser.click("Run now");
    browser.click("main .button.primary");
    // Whoever leaves before the answer is there may leave before the question is sent.
    browser.see("Run of plain");
    browser.visit(&server.url("/runs"));
    browser.see_count("tbody tr", 1);
    browser.finish();
}

/// Text that must never be interpreted as markup.
const HOSTILE: &str =
    "<script>alert(1)</script> \"quoted\" 'single' &amp; \u{202e}turned\u{202c} 🔔 <img src=x onerror=alert(2)>";

#[test]
fn text_is_text_on_every_page() {
    let server = Server::start();
    server.job("odd", &json!({"description": HOSTILE, "payload": {"text": HOSTILE}, "labels": {"note": "<b>&\"'🔔"}}));
    server.patch("/jobs/key:odd/pause", &json!({"reason": HOSTILE})).expect(200);
    server.post("/jobs/key:odd/run-now", &json!({"note": HOSTILE})).expect(202);
    let runs = server.until("/runs?status=succeeded", |runs| !runs["items"].as_array().unwrap().is_empty());
    let run = runs["items"][0]["id"].as_str().unwrap().to_owned();
    let browser = Browser::admin(&server);
    let run_page = format!("/runs/{run}");
    for path in [
        "/",
        "/jobs",
        "/jobs/odd",
        "/jobs/odd/resume",
        "/jobs/odd/run-now",
        "/jobs/odd/new-version",
        "/runs",
        &run_page,
        "/timeline",
        "/audit",
        "/jobs?q=%3Cscript%3Ealert(1)%3C/script%3E",
    ] {
        browser.visit(&server.url(path));
        assert_eq!(browser.count("main script, main img, main b b"), 0, "{path}");
    }
    browser.visit(&server.url("/jobs/odd"));
    browser.see("<script>alert(1)</script>");
    browser.finish();
}
