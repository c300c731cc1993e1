//! User journeys with orgs in a browser, and the accessibility of their pages.

use serde_json::json;

use super::browser::Browser;
use super::orgs::world;
use crate::server::Server;

#[test]
fn an_org_is_made_and_moved_in_a_browser() {
    let server = Server::start();
    server.job("brief", &json!({ "scope": "per_org", "cronExpression": "0 8 * * *" }));
    let browser = Browser::admin(&server);
    browser.click("Orgs");
    browser.see("No orgs yet");
    browser.click(".head .button.primary");
    browser.fill("Id", "acme");
    browser.fill("Time zone", "Europe/Paris");
    browser.click("Create org");
    browser.until("return location.pathname === '/orgs/acme'");
    browser.see("Every day at 08:00");

    browser.click("Edit…");
    browser.fill("Time zone", "Asia/Tokio");
    browser.see("Unknown time zone");
    browser.fill("Time zone", "Asia/Tokyo");
    browser.see("Preview: move to Asia/Tokyo");
    browser.see("runs once, at 08:00");
    browser.see("Existing runs keep their local date.");
    browser.click("Save");
    browser.see("acme moved to Asia/Tokyo.");
    browser.see("moved from Europe/Paris");
    browser.finish();
}

#[test]
fn everybody_can_use_the_pages_of_orgs() {
    let server = Server::start();
    world(&server);
    server.put("/orgs/acme/jobs/brief", &json!({ "localTime": "09:30" })).expect(200);
    server.put("/orgs/bolt/jobs/brief", &json!({ "enabled": false })).expect(200);
    server.patch("/orgs/cove", &json!({ "enabled": false, "settings": { "tier": "gold" } })).expect(200);
    server.post("/jobs/key:brief/run-now", &json!({ "orgId": "acme" })).expect(202);
    let browser = Browser::admin(&server);
    for (name, path) in [
        ("orgs", "/orgs"),
        ("org", "/orgs/acme"),
        ("org-resting", "/orgs/cove"),
        ("org-new", "/new-org"),
        ("org-edit", "/orgs/acme/edit"),
        ("org-disable", "/orgs/acme/disable"),
        ("org-delete", "/orgs/acme/delete"),
        ("org-job-off", "/orgs/acme/jobs/brief/off"),
        ("org-job-time", "/orgs/acme/jobs/brief/time"),
        ("orgs-import", "/import-orgs"),
        ("job-orgs", "/jobs/brief/orgs"),
        ("job-orgs-run-now", "/jobs/brief/orgs/run-now?all=true"),
        ("job-for-each", "/jobs/brief"),
        ("run-now-for-which", "/jobs/brief/run-now"),
        ("run-now-for-one", "/jobs/brief/run-now?orgId=acme"),
        ("runs-of-orgs", "/runs"),
    ] {
        browser.visit(&server.url(path));
        browser.flawless();
        browser.pictures(name);
    }
    browser.visit(&server.url("/orgs/acme/edit"));
    browser.fill("Time zone", "Asia/Tokyo");
    browser.see("Preview: move to Asia/Tokyo");
    browser.flawless();
    browser.pictures("org-what-if");
    browser.press("Escape");
    browser.finish();
}

#[test]
fn an_org_is_moved_without_scripts() {
    let server = Server::start();
    world(&server);
    let browser = Browser::admin(&server);
    browser.without_javascript();
    browser.visit(&server.url("/orgs/acme"));
    browser.click("Edit…");
    browser.fill("Time zone", "Asia/Tokio");
    browser.click("Preview");
    browser.see("Unknown time zone");
    browser.click("Asia/Tokyo");
    browser.see("Preview: move to Asia/Tokyo");
    browser.click("Save");
    browser.see("acme moved to Asia/Tokyo.");
    browser.finish();
}
