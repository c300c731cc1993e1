//! State that survives live updates: messages, opened sections and typed text.

use serde_json::json;

use super::browser::Browser;
use super::visitor::{Visitor, assert_has, hidden, part};
use crate::server::Server;

const OUR_FORM: [(&str, &str); 2] =
    [("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", "same-origin")];

#[test]
fn what_was_said_stays_until_it_is_dismissed() {
    let server = Server::start();
    server.job("daily", &json!({}));
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/jobs/daily"));
    browser.click("Pause…");
    browser.fill("Reason", "moving house");
    browser.click("Pause daily");
    browser.see("daily is paused");
    assert_eq!(browser.execute("return scrollY", &json!([])), json!(0), "it is above what is seen");
    // The page is asked for again, more than once.
    for reason in ["still moving", "nearly there"] {
        server.patch("/jobs/key:daily/pause", &json!({ "reason": reason })).expect(200);
        browser.see(reason);
    }
    browser.see("daily is paused");
    browser.flawless();
    browser.click("Dismiss");
    browser.not_see("daily is paused");
    browser.finish();
}

#[test]
fn what_was_opened_stays_open() {
    let server = Server::start();
    server.job("often", &json!({"cronExpression": "* * * * * *"}));
    server.until("/runs?status=succeeded", |runs| !runs["items"].as_array().unwrap().is_empty());
    let browser = Browser::admin(&server);
    for path in ["/", "/timeline", "/jobs/often", "/jobs", "/runs", "/audit", "/targets", "/cluster", "/orgs"] {
        browser.visit(&server.url(path));
        // An open menu keeps its region as it is.
        let nameless = "[data-region] details:not([id], .drop)";
        assert_eq!(browser.count(nameless), 0, "{path}: a refresh would close these");
    }
    browser.visit(&server.url("/"));
    browser.click("#runs-details > summary");
    browser.execute(
        "document.querySelector('#day').addEventListener('swapped', () => { window.swapped = true })",
        &json!([]),
    );
    browser.until("return window.swapped === true");
    browser.until("return document.querySelector('#runs-details').open");
    browser.finish();
}

/// A person whose token ends while they fill in a form.
fn interrupted(server: &Server) -> Browser {
    server.job("daily", &json!({}));
    let token = server.post("/tokens", &json!({"name": "ana", "role": "operator"})).expect(201);
    let browser = Browser::with_token(server, token["token"].as_str().unwrap());
    browser.visit(&server.url("/jobs/daily/pause"));
    browser.fill("Reason", "moving house");
    assert_eq!(server.delete("/tokens/ana").status, 204);
    server.post("/jobs/key:daily/run-now", &json!({})).expect(202);
    browser.see("Your session has ended. Sign in again in another tab, then continue here.");
    assert_eq!(browser.value_of("Reason"), "moving house");
    browser
}

/// Signs in as another tab of the same browser would.
fn signed_in_elsewhere(browser: &Browser, server: &Server) {
    let enter = "fetch('/sign-in', { method: 'POST', body: new URLSearchParams({ token: arguments[0] }) })
        .then(() => { window.entered = true })";
    browser.execute(enter, &json!([server.token]));
    browser.until("return window.entered === true");
}

#[test]
fn what_was_typed_outlives_its_session() {
    let server = Server::start();
    let browser = interrupted(&server);
    browser.flawless();
    signed_in_elsewhere(&browser, &server);
    server.post("/jobs/key:daily/run-now", &json!({"force": true})).expect(202);
    browser.not_see("Your session has ended");
    assert_eq!(browser.value_of("Reason"), "moving house");
    browser.click("Pause daily");
    browser.see("daily is paused");
    browser.forgive("401 (Unauthorized)");
    browser.finish();
}

#[test]
fn a_form_that_is_sent_without_a_session_is_kept() {
    let server = Server::start();
    let browser = interrupted(&server);
    browser.click("Pause daily");
    browser.see("Your input is kept.");
    assert_eq!(browser.attribute("main a", "href").as_deref(), Some("/sign-in?to=%2Fjobs%2Fdaily%2Fpause"));
    browser.flawless();
    signed_in_elsewhere(&browser, &server);
    browser.click("Submit again");
    browser.see("This form belongs to another session");
    browser.see("Nothing was changed.");
    browser.flawless();
    browser.click("Submit again");
    browser.see("daily is paused");
    browser.see("moving house");
    browser.forgive("401 (Unauthorized)");
    browser.forgive("403 (Forbidden)");
    browser.finish();
}

#[test]
fn a_form_of_another_session_or_site_says_so_and_does_nothing() {
    let server = Server::start();
    server.job("daily", &json!({}));
    let (old, new) = (Visitor::admin(&server), Visitor::admin(&server));
    let csrf_token = hidden(&old.page("/jobs/daily/pause"), "csrf");
    let reply = new.post_exactly("/jobs/daily/pause", &[("csrf", &csrf_token), ("reason", "<b>moving</b>")]);
    assert_eq!(reply.status, 403, "{}", reply.text);
    assert_has(
        &reply.text,
        &["This form belongs to another session", "Go back, reload the page and submit the form again."],
    );
    assert!(!reply.text.contains("moving") && !reply.text.contains('`'), "{}", reply.text);
    // Without a session, of our own page and of another's.
    let body = format!("reason={}", part("<b>moving</b>"));
    let reply = server.raw("POST", "/jobs/daily/pause", &OUR_FORM, body.as_bytes());
    assert_eq!(reply.status, 401, "{}", reply.text);
    assert_has(&reply.text, &["name=\"reason\" value=\"&#60;b&#62;moving", "Sign in again</a> in another tab"]);
    let reply = server.raw("POST", "/jobs/daily/pause", &OUR_FORM[..1], body.as_bytes());
    assert_eq!(reply.status, 401, "{}", reply.text);
    assert!(!reply.text.contains("moving"), "{}", reply.text);
    assert_eq!(server.get("/jobs/key:daily").expect(200)["status"], "active");
}
