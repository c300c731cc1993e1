//! Live updates: how little they send, and that nothing moves under the hand.

use serde_json::json;

use super::browser::Browser;
use super::runs::run_now;
use super::visitor::Visitor;
use crate::server::Server;

/// The hashes of the parts of a page.
pub(super) fn hashes(page: &str) -> String {
    let found = page.split("data-hash=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    found.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_refresh_sends_only_the_rows_that_changed() {
    let server = Server::start();
    for number in 0..50 {
        server.job(&format!("job-{number:02}"), &json!({}));
    }
    let ana = Visitor::admin(&server);
    let page = ana.page("/jobs");
    let have = hashes(&page);
    assert!(have.split(' ').count() >= 50, "{have}");
    let refreshed = |have: &str| {
        let headers = [("x-everbell", "live"), ("x-everbell-have", have), ("cookie", &ana.cookies())];
        let reply = server.raw("GET", "/jobs", &headers, b"");
        assert_eq!(reply.status, 200);
        reply.text
    };
    let same = refreshed(&have);
    assert!(same.len() < 1_000 && !same.contains("data-row"), "{same}");
    server.patch("/jobs/key:job-07/pause", &json!({ "reason": "a release" })).expect(200);
    let changed = refreshed(&have);
    assert!(changed.contains("a release") && changed.contains("data-row=\"job-08\""), "{changed}");
    assert!(!changed.contains("href=\"/jobs/job-08\""), "the neighbor did not change: {changed}");
    assert!(changed.len() * 5 < page.len(), "{} of {} bytes", changed.len(), page.len());
    // A page that has nothing gets everything.
    assert!(refreshed("").contains("href=\"/jobs/job-08\""));
}

#[test]
fn pages_and_scripts_are_compressed_and_streams_are_not() {
    let server = Server::start();
    for number in 0..20 {
        server.job(&format!("job-{number:02}"), &json!({}));
    }
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/jobs"));
    browser.see("job-19");
    let sizes = "const [page] = performance.getEntriesByType('navigation');
        const files = performance.getEntriesByType('resource').filter(file => /style|everbell/.test(file.name));
        return [page, ...files].every(one => one.encodedBodySize * 2 < one.decodedBodySize)";
    assert_eq!(browser.execute(sizes, &json!([])), json!(true));
    let encoding =
        "fetch('/ui/events').then(answer => { window.encoding = answer.headers.get('content-encoding') ?? 'none' })";
    browser.execute(encoding, &json!([]));
    browser.until("return window.encoding === 'none'");
    browser.finish();
}

#[test]
fn rows_do_not_move_while_the_focus_is_among_them() {
    let server = Server::start();
    for key in ["b", "c", "d"] {
        server.job(key, &json!({}));
    }
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/jobs"));
    browser.see("Live");
    browser.press("j");
    browser.until("return document.activeElement.closest('[data-row=b]') !== null");
    server.job("a", &json!({}));
    server.patch("/jobs/key:d/pause", &json!({ "reason": "a release" })).expect(200);
    browser.see("a release");
    let order = "return [...document.querySelectorAll('[data-row]')].map(row => row.dataset.row).join('')";
    assert_eq!(browser.execute(order, &json!([])), json!("bcd"));
    browser.click("4 moved · reorder");
    browser
        .until("return [...document.querySelectorAll('[data-row]')].map(row => row.dataset.row).join('') === 'abcd'");
    browser.not_see("reorder");
    browser.finish();
}

#[test]
fn eighteen_jobs_are_on_one_screen() {
    let server = Server::start();
    for number in 0..25 {
        let more = json!({ "description": "Sends the invoices of the last day", "labels": { "team": "billing" } });
        server.job(&format!("job-{number:02}"), &more);
    }
    let browser = Browser::admin(&server);
    browser.resize(1280, 900);
    browser.visit(&server.url("/jobs"));
    browser.see("job-17");
    let seen = "return [...document.querySelectorAll('[data-row]')].filter(row => row.getBoundingClientRect().bottom <= 900).length";
    let rows = browser.execute(seen, &json!([])).as_u64().unwrap();
    assert!(rows >= 18, "{rows} rows");
    browser.resize(390, 800);
    let heights = "return Math.max(...[...document.querySelectorAll('[data-row]')].map(row => row.offsetHeight))";
    let height = browser.execute(heights, &json!([])).as_f64().unwrap();
    assert!(height <= 73.0, "{height} px");
    browser.flawless();
    browser.finish();
}

#[test]
fn a_mark_of_a_chart_has_a_card_for_pointers_and_keys() {
    let server = Server::start();
    server.job("daily", &json!({ "target": "fail" }));
    run_now(&server, "daily", "failed");
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/jobs/daily"));
    browser.execute("document.querySelector('.c-strip a').focus()", &json!([]));
    browser.until("return /exit_code/.test(document.querySelector('.hover-card')?.innerText)");
    browser.flawless();
    browser.press("Escape");
    browser.until("return document.querySelector('.hover-card').hidden");
    let title = "return document.querySelector('.c-strip a > title').textContent";
    assert!(browser.execute(title, &json!([])).as_str().unwrap().contains("failed"));
    browser.finish();
}

#[test]
fn the_bulk_bar_is_there_only_when_something_is_selected() {
    let server = Server::start();
    server.job("a", &json!({}));
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/jobs"));
    browser.not_see("Pause selected…");
    browser.click("Select a");
    browser.see("Pause selected…");
    browser.see("All 1 matching jobs:");
    browser.flawless();
    browser.click("Select a");
    browser.not_see("Pause selected…");
    browser.finish();
}

#[test]
fn a_table_that_cannot_tell_of_a_new_order_is_not_held() {
    let server = Server::start();
    server.job("often", &json!({}));
    run_now(&server, "often", "succeeded");
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/runs"));
    browser.see("Live");
    browser.press("j");
    browser.until("return document.activeElement.closest('[data-row]') !== null");
    server.job("another", &json!({}));
    server.post("/jobs/key:another/run-now", &json!({})).expect(202);
    browser.see("another");
    browser.see_count("[data-row]", 2);
    browser.finish();
}

#[test]
fn versions_of_a_job_are_rows_of_their_own() {
    let server = Server::start();
    server.job("often", &json!({}));
    for description in ["second", "third"] {
        server.patch("/jobs/key:often", &json!({ "description": description })).expect(200);
    }
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/jobs?jobKey=often&status=retired"));
    browser.see_count("[data-row]", 2);
    browser.see("Live");
    server.patch("/jobs/key:often", &json!({ "description": "fourth" })).expect(200);
    browser.see_count("[data-row]", 3);
    let texts = "return [...document.querySelectorAll('[data-row]')].map(row => row.textContent.match(/v\\d/)[0]).sort().join(' ')";
    assert_eq!(browser.execute(texts, &json!([])), json!("v1 v2 v3"));
    browser.finish();
}
