//! The command palette, and the page that it shows.

use serde_json::json;

use super::browser::Browser;
use super::runs::{id, run_now};
use super::visitor::{Visitor, assert_has};
use crate::server::Server;

#[test]
fn everything_is_found_without_scripts() {
    let server = Server::start();
    server.job("nightly-backup", &json!({ "description": "All databases" }));
    server.job("held", &json!({}));
    server.patch("/jobs/key:held/pause", &json!({ "reason": "a release" })).expect(200);
    let run = run_now(&server, "nightly-backup", "succeeded");
    let ana = Visitor::admin(&server);
    assert_has(
        &ana.page("/find?q=BACKUP"),
        &["href=\"/jobs/nightly-backup\"", "href=\"/jobs/nightly-backup/run-now\""],
    );
    assert_has(&ana.page("/find?q=held"), &["href=\"/jobs/held/resume\"", "paused · "]);
    assert_has(&ana.page(&format!("/find?q={}", &id(&run)[..13])), &[&format!("href=\"/runs/{}\"", id(&run))]);
    assert_has(&ana.page("/find?q=time"), &["href=\"/timeline\""]);
    assert_has(&ana.page("/find?q=%3Cb%3E"), &["Nothing found for <b dir=\"auto\">&#60;b&#62;</b>"]);
    let (pause, resume) = ("href=\"/jobs/nightly-backup/pause\"", "href=\"/jobs/held/resume\"");
    let named = ana.page("/find?q=pause+night");
    assert!(named.contains(pause) && !named.contains("nightly-backup/run-now"), "{named}");
    let named = ana.page("/find?q=resume+h");
    assert!(named.contains(resume), "{named}");
    assert_has(&ana.page("/find?q=freeze"), &["data-found href=\"/freezes/new\""]);
    // Without a text, the actions on the job whose page is open come first.
    let open = ana.page("/find?job=nightly-backup");
    let first = open.split("data-found ").nth(1).unwrap();
    assert!(first.starts_with("href=\"/jobs/nightly-backup/run-now\""), "{first}");
    assert_has(
        &open,
        &["<h2>This job</h2>", pause, "nightly-backup/skip-next", "href=\"/jobs/nightly-backup/new-version\""],
    );
    let paused = ana.page("/find?q=res&job=held");
    assert!(paused.contains(resume) && !paused.contains("/jobs/held/pause"), "{paused}");
    for path in ["/find?q=time&job=held", "/find?q=pause&job=nothing", "/find?job=not+a+key"] {
        assert!(!ana.page(path).contains("This job"), "{path}");
    }
    let eve = Visitor::sign_in(&server, "viewer");
    let viewer = eve.page("/find?q=pause+nightly&job=nightly-backup");
    assert!(!viewer.contains("This job") && !viewer.contains("/pause\""), "{viewer}");
    let viewer = eve.page("/find?q=nightly");
    assert!(viewer.contains("/jobs/nightly-backup") && !viewer.contains("run-now"), "{viewer}");
    let viewer = Visitor::new(&server, &server.token_of("operator")).page("/find");
    assert!(!viewer.contains("data-found href=\"/new\"") && viewer.contains("href=\"/audit\""), "{viewer}");
}

#[test]
fn a_palette_is_used_by_keys_alone() {
    let server = Server::start();
    server.job("nightly-backup", &json!({}));
    server.job("report", &json!({}));
    let browser = Browser::admin(&server);
    browser.press("Control+k");
    browser.until("return document.activeElement.getAttribute('role') === 'combobox'");
    browser.press("n i g h t l y");
    browser.until(
        "return /^nightly-backup/.test(document.querySelector('[aria-selected=true]')?.innerText)
        && document.querySelectorAll('[role=option]').length === 3",
    );
    browser.flawless();
    browser.press("Down");
    browser.until("return /Run now/.test(document.querySelector('[aria-selected=true]').innerText)");
    browser.press("Up Enter");
    browser.until("return location.pathname === '/jobs/nightly-backup'");
    // An action opens as a dialog, and Escape closes the palette.
    browser.press("Control+k");
    browser.until("return document.activeElement.getAttribute('role') === 'combobox'");
    browser.press("Escape");
    browser.until("return !document.querySelector('dialog.palette')");
    browser.click("Search everything, Ctrl K");
    browser.until("return /^Run now: nightly-backup/.test(document.querySelector('[aria-selected=true]')?.innerText)");
    browser.press("r e p o r t");
    browser.until("return /Pause report/.test(document.querySelector('#palette-list').innerText)");
    browser.press("Down Down Enter");
    browser.see("These runs will not happen");
    browser.finish();
}

#[test]
fn the_very_key_comes_first_among_many() {
    let server = Server::start();
    for number in 0..9 {
        server.job(&format!("a-sync-{number}"), &json!({}));
    }
    server.job("sync", &json!({}));
    let page = Visitor::admin(&server).page("/find?q=sync");
    let first = page.split("data-found ").nth(1).unwrap();
    assert!(first.starts_with("href=\"/jobs/sync\""), "{first}");
}
