//! Coming in and going out.

use serde_json::json;

use super::browser::Browser;
use crate::server::Server;

#[test]
fn a_token_opens_the_page_that_was_asked_for() {
    let server = Server::start();
    server.job("daily", &json!({}));
    let browser = Browser::start();
    browser.visit(&server.url("/jobs?q=daily"));
    browser.see("Sign in");
    browser.flawless();
    browser.fill("Token", "evb_wrong");
    browser.click("Sign in");
    browser.expect_console("401 (Unauthorized)");
    browser.see("The token is unknown, expired or revoked.");
    browser.fill("Token", &server.token);
    browser.click("Sign in");
    browser.see("New job");
    assert!(browser.url().ends_with("/jobs?q=daily"), "{}", browser.url());
    // No script can read the session.
    assert_eq!(browser.execute("return document.cookie", &json!([])), json!(""));
    browser.click("token:admin, admin");
    browser.click("Sign out");
    browser.see("Signed out.");
    browser.visit(&server.url("/jobs"));
    browser.see("Sign in");
    browser.finish();
}

#[test]
fn a_revoked_token_ends_its_sessions() {
    let server = Server::start();
    let token = server.post("/tokens", &json!({"name": "ana", "role": "viewer"})).expect(201)["token"]
        .as_str()
        .unwrap()
        .to_owned();
    let browser = Browser::with_token(&server, &token);
    // A page without scripts: the others would report their refused requests in the console.
    browser.visit(&server.url("/docs/api"));
    assert_eq!(server.delete("/tokens/ana").status, 204);
    browser.visit(&server.url("/jobs"));
    browser.see("writes an admin token to its data folder");
    browser.finish();
}

#[test]
fn a_viewer_sees_everything_and_is_told_why_nothing_can_be_done() {
    let server = Server::start();
    server.job("daily", &json!({}));
    let browser = Browser::with_token(&server, &server.token_of("viewer"));
    browser.visit(&server.url("/jobs/daily"));
    let why = browser.attribute(".head .actions > button:nth-of-type(1)", "title").unwrap();
    assert_eq!(why, "Requires the operator role. Your role is viewer.");
    let why = browser.attribute("#nav [aria-disabled]", "title").unwrap();
    assert_eq!(why, "Requires the operator role. Your role is viewer.");
    browser.press("g a");
    assert!(browser.url().ends_with("/jobs/daily"), "{}", browser.url());
    let why = browser.attribute("#more [aria-disabled]", "title").unwrap();
    assert_eq!(why, "Requires the admin role. Your role is viewer.");
    browser.flawless();
    browser.visit(&server.url("/jobs/daily/pause"));
    browser.expect_console("403 (Forbidden)");
    browser.see("This requires the role operator");
    browser.visit(&server.url("/audit"));
    browser.expect_console("403 (Forbidden)");
    browser.see("Permission denied");
    browser.finish();
}

#[test]
fn there_is_a_page_where_nothing_is() {
    let server = Server::start();
    let browser = Browser::admin(&server);
    for path in ["/nothing", "/jobs/nothing", "/runs/01a1df71-ee39-8748-a1a4-e1b40c434091"] {
        browser.visit(&server.url(path));
        browser.expect_console("404 (Not Found)");
        browser.see("Not found");
    }
    browser.flawless();
    browser.finish();
}
