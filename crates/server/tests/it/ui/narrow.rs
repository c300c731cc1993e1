//! Narrow screens, and words that are longer than a page is wide.

use serde_json::json;

use super::browser::Browser;
use crate::server::{Server, TARGETS};

/// Lists elements that are wider than their container.
const TOO_WIDE: &str = "const page = document.scrollingElement, wide = [];
    if (page.scrollWidth > innerWidth) wide.push(`page ${page.scrollWidth} > ${innerWidth}`);
    document.querySelectorAll('.scroll').forEach(node => {
        if (node.scrollWidth > node.clientWidth + 1) wide.push(`${node.innerText.slice(0, 30)} ${node.scrollWidth}`)
    });
    return wide";

#[test]
fn long_words_break() {
    let label = "t".repeat(120);
    let server = Server::with(&format!("{TARGETS}[[target]]\nlabel = \"{label}\"\ntype = \"log\"\n")).registered();
    server.job("held", &json!({ "labels": { "team": "l".repeat(60) } }));
    let reason = format!("see https://status.example.com/{}", "x".repeat(200));
    server.patch("/jobs/key:held/pause", &json!({ "reason": reason })).expect(200);
    server.job(&"k".repeat(200), &json!({}));
    let ana = json!({ "name": "ana", "role": "viewer", "expiresAt": "2090-01-01T00:00:01Z" });
    server.post("/tokens", &ana).expect(201);
    let browser = Browser::admin(&server);
    for path in ["/jobs/held", "/jobs/held/resume", "/jobs/held/pause", "/jobs", "/targets", "/audit", "/settings"] {
        browser.visit(&server.url(path));
        for width in [1280, 390, 320] {
            browser.resize(width, 800);
            assert_eq!(browser.execute(TOO_WIDE, &json!([])), json!([]), "{path} at {width}");
        }
        browser.resize(1280, 800);
    }
    browser.finish();
}

#[test]
fn filters_fold_on_a_phone() {
    let server = Server::start();
    server.job("daily", &json!({}));
    let browser = Browser::admin(&server);
    for (path, filtered, label) in [("/jobs", "/jobs?target=print", "Any type"), ("/runs", "/runs?target=x", "Trigger")]
    {
        browser.visit(&server.url(path));
        browser.see(label);
        browser.resize(390, 800);
        browser.not_see(label);
        browser.flawless();
        browser.resize(390, 800);
        browser.click("Filters");
        browser.see(label);
        // What is set is seen.
        browser.visit(&server.url(filtered));
        browser.see(label);
        browser.flawless();
    }
    browser.resize(390, 800);
    browser.visit(&server.url("/jobs"));
    browser.press("/");
    browser.until("return document.activeElement.id === 'q'");
    browser.finish();
}
