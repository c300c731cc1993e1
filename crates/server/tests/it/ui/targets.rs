//! Targets as people see, create, edit and delete them.

use serde_json::json;

use super::browser::Browser;
use super::visitor::{Visitor, assert_has};
use crate::server::{Server, TARGETS};

const OPEN: &str = "[targets]\neditable = [\"http\", \"command\"]\nsecret_env = [\"HOOK_*\"]\n";

#[test]
fn a_target_is_created_checked_edited_and_deleted() {
    let server = Server::with(&format!("{OPEN}{TARGETS}")).registered();
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/targets"));
    browser.flawless();
    browser.click("New target");
    browser.flawless();
    browser.fill("Label", "hook");
    browser.fill("URL", "https://hooks.example/run");
    browser.fill("Headers (optional)", "Authorization: Bearer CANARY");
    browser.click("Save target");
    browser.see("must not be written here");
    browser.forgive("400 (Bad Request)");
    browser.fill("Headers (optional)", "Authorization: env:HOOK_AUTH");
    browser.click("Check without saving");
    browser.see("this instance cannot serve it");
    browser.see("HOOK_AUTH");
    browser.fill("Headers (optional)", "X-Team: billing");
    browser.click("Save target");
    browser.see("Target hook saved.");
    browser.see("https://hooks.example/");
    browser.flawless();
    browser.screenshot("target-1280-light");
    browser.click("Edit");
    browser.fill("Time limit (optional)", "2m");
    browser.click("Save target");
    browser.see("Target hook saved.");
    let stored = server.get("/targets/hook").expect(200);
    let definition = json!({
        "type": "http", "url": "https://hooks.example/run", "method": "POST", "headers": { "X-Team": "billing" },
        "timeout": "2m",
    });
    assert_eq!((&stored["revision"], &stored["definition"]), (&json!(2), &definition));
    browser.finish();
    let admin = Visitor::admin(&server);
    server.job("uses-it", &json!({ "target": "hook" }));
    assert_has(&admin.page("/targets/hook/delete"), &["1 current job names", "name=\"force\""]);
    assert_eq!(admin.post("/targets/hook/delete", &[("force", "yes")]).status, 303);
    server.get("/targets/hook").expect(200)["jobs"].as_u64().filter(|jobs| *jobs == 1).unwrap();
}

#[test]
fn only_admins_define_targets_and_only_where_the_configuration_allows_it() {
    let closed = Server::start();
    let page = Visitor::admin(&closed).page("/targets");
    assert_has(&page, &["not by the API", "command<small"]);
    assert!(!page.contains("/new-target"), "{page}");
    let open = Server::with(&format!("{OPEN}{TARGETS}")).registered();
    let operator = Visitor::new(&open, &open.token_of("operator"));
    assert!(!operator.page("/targets").contains("href=\"/new-target\""));
    assert_eq!(operator.get("/new-target").status, 403);
    let admin = Visitor::admin(&open);
    assert_has(&admin.page("/new-target?type=command"), &["Program and arguments", "/new-target?type=http"]);
    let shown = admin.page("/targets/fail");
    assert_has(&shown, &["argv = [&#34;false&#34;]", "Configuration block"]);
    assert!(!operator.page("/targets/fail").contains("Configuration block"));
}
