//! The pictures of the README, taken by `scripts/pictures`. Without it these are tests like the others: each page is good
//! for everybody, light and dark, wide and narrow.

use serde_json::{Value, json};

use super::browser::Browser;
use crate::server::Server;

/// The targets of a small company.
const TARGETS: &str = r#"
[ui]
environment = "staging"
[[target]]
label = "briefing.send"
type = "log"
[[target]]
label = "report.build"
type = "command"
argv = ["sh", "-c", "sleep 0.$(shuf -i 1-9 -n 1)"]
[[target]]
label = "email.digest"
type = "command"
argv = ["sh", "-c", "echo 'connect to smtp:25 timed out' >&2; exit 3"]
[[target]]
label = "warehouse.sync"
type = "command"
argv = ["sleep", "30"]
"#;

/// A server with jobs that have a past.
fn company() -> Server {
    let server = Server::with(TARGETS);
    let make = |key: &str, target: &str, expression: &str, zone: &str| {
        server.job(key, &json!({"target": target, "cronExpression": expression, "timezone": zone}));
    };
    make("daily-briefing", "briefing.send", "0 8 * * mon-fri", "Europe/Paris");
    make("email-digest", "email.digest", "@hourly", "America/New_York");
    make("report-5m", "report.build", "*/5 * * * *", "UTC");
    make("night-audit", "briefing.send", "30 2 * * *", "America/New_York");
    make("month-end", "report.build", "0 18 L * *", "Australia/Lord_Howe");
    make("stock-sync", "warehouse.sync", "*/10 * * * *", "Asia/Tokyo");
    make("newsletter", "email.digest", "0 9 * * tue", "Europe/Berlin");
    server.job("launch", &json!({"target": "briefing.send", "cronExpression": null, "runAt": "2030-01-01T09:00:00Z"}));
    let run = |key: &str, times: usize| {
        for _ in 0..times {
            server.post(&format!("/jobs/key:{key}/run-now"), &json!({"force": true})).expect(202);
        }
    };
    run("daily-briefing", 24);
    run("report-5m", 40);
    run("night-audit", 12);
    run("email-digest", 6);
    let over = |runs: &Value| runs["items"].as_array().unwrap().is_empty();
    server.until("/runs?status=pending,running&limit=1", over);
    run("stock-sync", 1);
    server.post("/jobs/key:stock-sync/run-now", &json!({})).problem(409, "OverlapSkipped");
    server.patch("/jobs/key:newsletter/pause", &json!({"reason": "SMTP down, INC-88"})).expect(200);
    server
        .patch(
            "/jobs/key:report-5m",
            &json!({"description": "What the board looks at", "policies": {"timeout": "10m"}}),
        )
        .expect(200);
    server
}

#[test]
fn every_page() {
    let server = company();
    let failed = server.get("/runs?status=failed&limit=1").expect(200)["items"][0]["id"].as_str().unwrap().to_owned();
    let browser = Browser::admin(&server);
    let run = format!("/runs/{failed}");
    for (name, path) in [
        ("overview", "/"),
        ("jobs", "/jobs"),
        ("job", "/jobs/report-5m"),
        ("pause", "/jobs/daily-briefing/pause"),
        ("run-now", "/jobs/stock-sync/run-now"),
        ("new-version", "/jobs/daily-briefing/new-version"),
        ("new-job", "/new"),
        ("runs", "/runs"),
        ("run", &run),
        ("timeline", "/timeline?range=1h"),
        ("cluster", "/cluster"),
        ("targets", "/targets"),
        ("audit", "/audit"),
        ("settings", "/settings"),
    ] {
        browser.visit(&server.url(path));
        browser.flawless();
        browser.passes_axe();
        browser.pictures(name);
    }
    browser.finish();
}

/// Pages without a picture.
const OTHERS: [&str; 26] = [
    "/jobs/chain-report",
    "/sign-in",
    "/problems",
    "/calendars",
    "/new-calendar",
    "/freezes/new",
    "/timeline/herd?at=2099-01-01T18%3A00%3A00Z",
    "/timeline/month",
    "/orgs",
    "/new-org",
    "/import-orgs",
    "/import",
    "/find?q=report",
    "/jobs/newsletter/resume",
    "/jobs/daily-briefing/reschedule",
    "/jobs/daily-briefing/skip-next",
    "/jobs/daily-briefing/retire",
    "/jobs/daily-briefing/backfill",
    "/jobs/daily-briefing/backfills",
    "/jobs/daily-briefing/orgs",
    "/bulk/pause",
    "/orgs/acme",
    "/orgs/acme/edit",
    "/orgs/acme/disable",
    "/orgs/acme/delete",
    "/jobs?status=retired",
];

#[test]
fn axe_finds_nothing_on_the_other_pages() {
    let server = company();
    server.put("/orgs/acme", &json!({"timezone": "Asia/Tokyo", "name": "Acme"})).expect(201);
    let parents = json!([{ "job": "report-5m" }, { "job": "stock-sync", "on": "any" }]);
    server.job("chain-report", &json!({ "after": parents, "cronExpression": null, "target": "report.build" }));
    let failed = server.get("/runs?status=failed&limit=1").expect(200)["items"][0]["id"].as_str().unwrap().to_owned();
    let browser = Browser::admin(&server);
    let of_run = ["rerun", "output"].map(|page| format!("/runs/{failed}/{page}"));
    for path in OTHERS.into_iter().chain(of_run.iter().map(String::as_str)) {
        browser.visit(&server.url(path));
        browser.passes_axe();
    }
    browser.finish();
}

/// The reference has hundreds of operations and documents, all alike, for which axe would take 10 s. One of each of the first
/// parts and of the last is enough, with what it shows when it is open.
const OPEN_SOME: &str = "
const parts = [...document.querySelectorAll('section')];
parts.slice(4, -1).forEach(part => part.remove());
for (const part of document.querySelectorAll('section'))
    [...part.querySelectorAll('details')].forEach((one, at) => { if (at === 0) one.open = true; else one.remove(); });";

#[test]
fn documentation() {
    let server = Server::start();
    let browser = Browser::start();
    browser.visit(&server.url("/docs/api"));
    browser.see("everbell API");
    browser.pictures("docs-api");
    browser.execute(OPEN_SOME, &json!([]));
    browser.passes_axe();
    browser.finish();
}
