//! The form of a job simulates the last seven days with its schedule, and saves nothing.

use serde_json::json;

use super::browser::Browser;
use super::visitor::{Visitor, assert_has};
use crate::server::Server;

/// The form of the job `hourly` with this schedule, whose simulation is asked for.
fn form<'f>(schedule: &[(&'f str, &'f str)]) -> Vec<(&'f str, &'f str)> {
    let usual = [("target", "print"), ("how", "cron"), ("timezone", "UTC"), ("do", "simulate")];
    usual.into_iter().chain(schedule.iter().copied()).collect()
}

#[test]
fn the_last_week_is_simulated_with_the_schedule_of_the_form() {
    let server = Server::start();
    server.job("hourly", &json!({"cronExpression": "0 * * * *"}));
    let admin = Visitor::admin(&server);
    let simulated = |schedule: &[(&str, &str)]| {
        let page = admin.post("/jobs/hourly/new-version", &form(schedule));
        assert_eq!(page.status, 200, "{}", page.text);
        page.text.split_once("id=\"past-week\"").unwrap_or_else(|| panic!("{}", page.text)).1.to_owned()
    };
    let week = simulated(&[("scheduleType", "recurring"), ("cronExpression", "*/30 * * * *")]);
    let slots = "<th scope=\"row\">Slots</th><td>168</td><td><b>336</b></td>";
    let ran = "<th scope=\"row\">Ran</th><td>168</td><td><b>336</b></td>";
    assert_has(&week, &[slots, ran, "<th scope=\"col\">Version 1</th>", "succeeded<b>336</b>", "no run has ended yet"]);
    let week = simulated(&[("scheduleType", "recurring"), ("cronExpression", "0 9 * * *")]);
    assert_has(&week, &["<td>168</td><td><b>7</b></td>"]);
    for (schedule, reason) in [
        (
            [("scheduleType", "recurring"), ("cronExpression", "* * * * * *")],
            "This schedule has 604,800 slots in a week",
        ),
        ([("scheduleType", "recurring"), ("cronExpression", "61 * * * *")], "The form has errors"),
        ([("scheduleType", "after"), ("afterJob", "other")], "The job starts after other jobs"),
    ] {
        assert_has(&simulated(&schedule), &[reason]);
    }
    let job = server.get("/jobs/key:hourly").expect(200);
    assert_eq!((&job["version"], &job["cronExpression"]), (&json!(1), &json!("0 * * * *")), "nothing was saved");
}

#[test]
fn outages_and_durations_of_the_week_count() {
    let server = Server::start();
    let past = json!({
        "cronExpression": "0 * * * *", "target": "sleep", "startAt": "2020-01-01T00:00:00Z",
        "policies": { "timeout": "2s", "retry": { "maxAttempts": 1 } },
    });
    server.job("hourly", &past);
    let admin = Visitor::admin(&server);
    for _ in 0..2 {
        let run = server.post("/jobs/key:hourly/run-now", &json!({})).expect(202);
        let path = format!("/runs/{}", run["run"]["id"].as_str().unwrap());
        server.until(&path, |run| run["status"] == "failed");
    }
    let schedule = [("scheduleType", "recurring"), ("cronExpression", "*/20 * * * *"), ("policies/timeout", "1s")];
    let page = admin.post("/jobs/hourly/new-version", &form(&schedule)).text;
    let week = page.split_once("id=\"past-week\"").unwrap().1;
    // Each attempt would take as long as those that the old timeout stopped, and the new timeout is shorter.
    assert_has(week, &["the median of the last 2 runs", "<th scope=\"row\">Failed</th>", "<td><b>504</b></td>"]);
}

#[test]
fn the_simulation_is_beside_the_form() {
    let server = Server::start();
    server.job("hourly", &json!({"cronExpression": "0 * * * *", "timezone": "Europe/Paris"}));
    let browser = Browser::admin(&server);
    browser.visit(&server.url("/jobs/hourly/new-version"));
    browser.fill("Expression", "*/20 8-18 * * mon-fri");
    browser.click("Simulate last 7 days");
    browser.see("Last 7 days with this schedule");
    browser.see("Simulated, and nothing was saved.");
    assert!(browser.url().ends_with("#past-week"), "{}", browser.url());
    browser.see_count("#past-week .c-main", 1);
    browser.flawless();
    browser.passes_axe();
    browser.pictures("past-week");
    browser.finish();
}
