//! Many jobs at once, through pages.

use serde_json::json;

use super::visitor::{Visitor, assert_has, between, hidden, led};
use crate::server::{Server, TARGETS};

fn keys(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"keys\"").unwrap();
    let (_, rest) = rest.split_once(">\n").unwrap();
    rest.split("</textarea>").next().unwrap().to_owned()
}

fn status(server: &Server, key: &str) -> String {
    server.get(&format!("/jobs/key:{key}")).expect(200)["status"].as_str().unwrap().to_owned()
}

fn many(server: &Server) {
    server.job("a", &json!({ "cronExpression": "* * * * *" }));
    server.job("b,c", &json!({}));
    server.job("d", &json!({ "target": "fail" }));
    server.patch("/jobs/key:d/pause", &json!({ "reason": "before" })).expect(200);
    let ana = Visitor::admin(server);
    let picked = "/bulk/pause?q=&key=a&key=b%2Cc&key=d";
    let page = ana.page(picked);
    let message = "This pauses 2 active jobs; 1 of them runs within the next hour. 1 job is unchanged.";
    assert_has(&page, &[message, "Will be paused", "Unchanged", "it is paused", "Pause 2 jobs"]);
    assert_eq!(keys(&page), "a\nb,c");

    let refused = ana.send(picked, &[("keys", "a\r\nb,c"), ("until", "2030-01-01T00:00")]);
    assert_eq!(refused.status, 400);
    assert_has(&refused.text, &["is required to pause", "value=\"2030-01-01T00:00\"", "Pause 2 jobs"]);
    let refused = ana.send(picked, &[("keys", "a"), ("reason", "release"), ("until", "soon")]);
    assert_has(&refused.text, &["is not a time", "value=\"soon\"", "value=\"release\""]);
    assert_eq!(status(server, "a"), "active");

    let sent = [("keys", "a\r\nb,c"), ("reason", "release"), ("back", "/jobs?q=x")];
    let (place, said) = led(&ana.send(picked, &sent));
    assert_eq!((place.as_str(), said.as_str()), ("/jobs?q=x", "+2 jobs paused."));
    assert_eq!((status(server, "a"), status(server, "b,c")), ("paused".to_owned(), "paused".to_owned()));

    let partly = ana.send("/bulk/resume?all=true&target=print", &[("keys", "a\r\nb,c"), ("missed", "skip")]);
    assert_eq!(led(&partly).1, "+2 jobs resumed.");
    assert_eq!(status(server, "d"), "paused");
}

#[test]
fn picked_jobs_are_paused_and_resumed() {
    many(&Server::start());
}

#[test]
fn picked_jobs_are_paused_and_resumed_on_postgres() {
    many(&Server::postgres(TARGETS));
}

#[test]
fn all_that_match_are_meant_as_they_were_shown() {
    let server = Server::start();
    for key in ["a", "b", "c"] {
        server.job(key, &json!({ "target": if key == "c" { "fail" } else { "print" } }));
    }
    let ana = Visitor::admin(&server);
    let page = ana.page("/bulk/pause?all=true&target=print&scheduleType=recurring&status=active&errored=false");
    assert_eq!(keys(&page), "a\nb");
    server.patch("/jobs/key:a/pause", &json!({ "reason": "faster" })).expect(200);
    let partly = ana.send("/bulk/pause?all=true&target=print", &[("keys", "a\nb"), ("reason", "release")]);
    assert_eq!(partly.status, 200);
    assert_has(&partly.text, &["1 job paused.", "1 job is unchanged.", "Back to list"]);
    assert_eq!(status(&server, "c"), "active");
    assert_eq!(server.get("/jobs/key:a").expect(200)["pauseReason"], "faster");

    server.job("labelled", &json!({ "labels": { "team": "ops" } }));
    assert_eq!(keys(&ana.page("/bulk/pause?all=true&label=team%3Dops")), "labelled");
    assert_has(&ana.page("/bulk/pause?all=true&failing=true"), &["No jobs selected, or none match"]);

    assert_has(&ana.page("/bulk/pause"), &["No jobs selected"]);
    assert_has(&ana.page("/bulk/resume?all=true&q=nothing"), &["No jobs selected, or none match"]);
    assert_has(&ana.page("/bulk/pause?key=a"), &["Nothing would change."]);
    assert_eq!(ana.get("/bulk/pause?key=nobody").status, 400);
}

#[test]
fn a_whole_page_of_jobs_can_be_picked() {
    let server = Server::start();
    let keys: Vec<String> = (0..200).map(|number| format!("job-{number:03}")).collect();
    for key in &keys {
        server.job(key, &json!({}));
    }
    let ana = Visitor::admin(&server);
    let picked: Vec<String> = keys.iter().map(|key| format!("key={key}")).collect();
    let place = format!("/bulk/pause?{}", picked.join("&"));
    assert_has(&ana.page(&place), &["Pause 200 jobs"]);
    let sent = [("keys", keys.join("\n")), ("reason", "release".to_owned())];
    let sent: Vec<(&str, &str)> = sent.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(led(&ana.send(&place, &sent)).1, "+200 jobs paused.");
}

#[test]
fn each_job_is_told_in_its_own_zone_and_the_list_comes_back_as_it_was() {
    let server = Server::start();
    server.job("tokyo", &json!({ "cronExpression": "0 9 * * *", "timezone": "Asia/Tokyo" }));
    server.job("paris", &json!({ "cronExpression": "0 9 * * *", "timezone": "Europe/Paris" }));
    let ana = Visitor::admin(&server);
    let list = "/jobs?sort=jobKey&status=active";
    let page = ana.page(list);
    assert_has(&page, &["Paused <span class=\"count\">0</span>"]);
    let link = between(&page, "All 2 matching jobs: <a href=\"", "\">pause").replace("&#38;", "&");
    let page = ana.page(&link);
    assert_has(&page, &["09:00 <span class=\"tz\">JST</span>", "09:00 <span class=\"tz\">C"]);
    let back = |page: &str| hidden(between(page, "<main", "</main>"), "back").replace("&#38;", "&");
    assert_eq!(back(&page), list);
    let sent = [("keys", "paris\ntokyo"), ("reason", "release"), ("back", list)];
    let after = ana.follow(&ana.submit("/bulk/pause", &page, &sent));
    assert_has(&after, &["Paused <span class=\"count\">2</span>", "Active <span class=\"count\">0</span>"]);
    ana.post("/choices", &[("face", "utc"), ("back", "/")]);
    assert_has(&ana.page("/bulk/resume?key=tokyo"), &["00:00 <span class=\"tz\">UTC</span>"]);
    let elsewhere = ana.page("/bulk/resume?key=tokyo&back=https%3A%2F%2Fevil.example");
    assert_eq!(back(&elsewhere), "/");
}

#[test]
fn selected_jobs_run_now_skip_their_next_runs_and_retire() {
    let server = Server::start();
    for key in ["a", "b"] {
        server.job(key, &json!({}));
    }
    let ana = Visitor::admin(&server);
    let run = ana.page("/bulk/run-now?key=a&key=b");
    assert_has(&run, &["This runs 2 jobs now.", "Run 2 jobs", "Will run now"]);
    assert_eq!(ana.submit("/bulk/run-now", &run, &[("keys", "a\nb"), ("reason", "after the fix")]).status, 303);
    server.until("/runs?status=succeeded", |page| page["items"].as_array().unwrap().len() == 2);

    let next = server.get("/jobs/key:a").expect(200)["nextRunAt"].clone();
    let skip = ana.page("/bulk/skip-next?key=a");
    assert_has(&skip, &["This skips the next runs of 1 active job;", "Skip next runs of 1 job"]);
    let wrong = ana.submit("/bulk/skip-next", &skip, &[("keys", "a"), ("count", "many")]);
    assert_eq!(wrong.status, 400);
    assert_has(&wrong.text, &["must be a number from 1 to 100"]);
    assert_eq!(ana.submit("/bulk/skip-next", &skip, &[("keys", "a"), ("count", "2")]).status, 303);
    assert_ne!(server.get("/jobs/key:a").expect(200)["nextRunAt"], next);

    let retire = ana.page("/bulk/retire?key=b");
    assert_has(&retire, &["This retires 1 job, which is final;"]);
    assert_eq!(ana.submit("/bulk/retire", &retire, &[("keys", "b")]).status, 400, "it must be confirmed");
    assert_eq!(status(&server, "b"), "active");
    assert_eq!(ana.submit("/bulk/retire", &retire, &[("keys", "b"), ("confirm", "yes")]).status, 303);
    assert_eq!(status(&server, "b"), "retired");
    let operator = Visitor::sign_in(&server, "operator");
    assert_eq!(operator.get("/bulk/retire?key=a").status, 403);
    assert!(!operator.page("/jobs").contains("/bulk/retire"));
}

#[test]
fn selected_jobs_are_edited_after_a_preview_of_each() {
    let server = Server::start();
    server.job("a", &json!({ "labels": {"tier": "1"}, "policies": {"timeout": "5m"} }));
    server.job("b", &json!({ "policies": {"timeout": "10m"}, "labels": {"team": "data"} }));
    let ana = Visitor::admin(&server);
    let form = ana.page("/bulk/edit?key=a&key=b");
    assert_has(&form, &["Edit 2 jobs", "Preview changes"]);
    let wrong = ana.submit("/bulk/edit", &form, &[("keys", "a\nb"), ("edit/policies/timeout", "soon")]);
    assert!(wrong.status == 400 && wrong.text.contains("id=\"edit/policies/timeout-note\""), "{}", wrong.text);
    let nothing = ana.submit("/bulk/edit", &form, &[("keys", "a\nb")]);
    assert!(nothing.status == 400 && nothing.text.contains("change at least one field"), "{}", nothing.text);
    let fields =
        [("keys", "a\nb"), ("edit/labels", "team=data"), ("removed", "tier"), ("edit/policies/timeout", "10m")];
    let preview = ana.submit("/bulk/edit", &form, &fields);
    assert_eq!(preview.status, 200, "{}", preview.text);
    assert_has(
        &preview.text,
        &["This changes 1 of 2 jobs.", "<code>labels.tier</code>", "PT5M", "PT10M", "Edit 1 job"],
    );
    assert_eq!(server.get("/jobs/key:a").expect(200)["version"], 1);
    let saved = ana.submit("/bulk/edit", &preview.text, &[&fields[..], &[("do", "save")]].concat());
    assert_eq!(saved.status, 303, "{}", saved.text);
    let (a, b) = (server.get("/jobs/key:a").expect(200), server.get("/jobs/key:b").expect(200));
    assert_eq!((&a["labels"], &a["policies"]["timeout"]), (&json!({"team": "data"}), &json!("PT10M")));
    assert_eq!((&a["version"], &b["version"]), (&json!(2), &json!(1)));
    assert_eq!(Visitor::sign_in(&server, "operator").get("/bulk/edit?key=a").status, 403);
}
