//! The page of problems: what is wrong, who takes care of it, and who was told.

use serde_json::{Value, json};

use super::browser::Browser;
use super::visitor::{Visitor, assert_has};
use crate::server::{Server, TARGETS};

const NOTIFY: &str = r#"
[[notify]]
name = "script"
type = "command"
argv = ["sh", "-c", "echo refused by the gateway >&2; exit 3"]
[[rule]]
when = ["failed", "recovered"]
jobs = { all = true }
to = ["script"]
"#;

fn has_items(list: &Value) -> bool {
    list["items"].as_array().is_some_and(|items| !items.is_empty())
}

#[test]
fn a_problem_is_seen_muted_and_acknowledged() {
    let server = Server::with(&format!("{TARGETS}{NOTIFY}")).registered();
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/problems"));
    browser.see("No open problems");
    browser.flawless();
    server.job("nightly-backup", &json!({ "target": "fail" }));
    server.post("/jobs/key:nightly-backup/run-now", &json!({})).expect(202);
    server.until("/problems?open=true", has_items);
    server.until("/notify/deliveries", |list| list["items"][0]["attempts"].as_u64() > Some(0));
    browser.visit(&server.url("/jobs/nightly-backup"));
    browser.see("is failing");
    browser.visit(&server.url("/problems"));
    browser.see("is failing");
    browser.flawless();
    browser.click("Mute problem of nightly-backup");
    browser.see("Muting stops messages and reminders");
    browser.fill("Reason", "SMTP is down, INC-88");
    browser.click("Mute problem");
    browser.see("muted by token:admin: SMTP is down, INC-88");
    browser.click("Acknowledge problem of nightly-backup");
    browser.see("no reminders follow");
    browser.click("Acknowledge problem");
    browser.see("acknowledged by token:admin");
    browser.flawless();
    browser.screenshot("problems-1280-light");
    browser.resize(390, 800);
    browser.dark();
    browser.screenshot("problems-390-dark");
    browser.resize(1280, 800);
    browser.light();
    browser.click("Unmute problem of nightly-backup");
    browser.see("no longer muted");
    browser.click("Send test through script");
    browser.see("A test message for script is on its way");
    server.until("/notify/deliveries?status=dead", has_items);
    browser.visit(&server.url("/problems"));
    browser.see("refused by the gateway");
    browser.finish();
}

#[test]
fn a_viewer_sees_problems_and_cannot_act() {
    let server = Server::with(&format!("{TARGETS}{NOTIFY}")).registered();
    server.job("nightly-backup", &json!({ "target": "fail" }));
    server.post("/jobs/key:nightly-backup/run-now", &json!({})).expect(202);
    let list = server.until("/problems?open=true", has_items);
    let viewer = Visitor::sign_in(&server, "viewer");
    let page = viewer.page("/problems");
    assert_has(&page, &["is failing", "nightly-backup", "disabled"]);
    let id = list["items"][0]["id"].as_str().unwrap();
    assert_eq!(viewer.get(&format!("/problems/{id}/mute")).status, 403);
    assert_eq!(viewer.post(&format!("/problems/{id}/unmute"), &[]).status, 403);
    assert_eq!(Visitor::admin(&server).get("/problems/nothing/mute").status, 404);
}
