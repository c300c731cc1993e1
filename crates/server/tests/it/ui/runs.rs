//! The list of runs: its filters, its files, and what is done to many.

use serde_json::{Value, json};

use super::visitor::{Visitor, between, part};
use crate::server::{Server, TARGETS};

/// Fails, and says what no page may take for its own.
const NASTY: &str = r#"
[[target]]
label = "nasty"
type = "command"
argv = ["sh", "-c", "echo '<script>alert(1)</script> \"quoted\" & שלום 💥' >&2; exit 3"]
"#;

/// A job may be called so.
const NAME: &str = "<i>\"k'&ש💥";

pub(super) fn nasty() -> String {
    format!("{TARGETS}{NASTY}")
}

/// Runs a job now and waits until its run is so.
pub(super) fn run_now(server: &Server, key: &str, status: &str) -> Value {
    let begun = server.post(&format!("/jobs/key:{}/run-now", part(key)), &json!({}));
    let path = begun.headers.get("location").unwrap_or_else(|| panic!("{}", begun.text)).clone();
    server.until(&path, |run| run["status"] == status)
}

/// A run that is recorded as skipped, because another is active.
pub(super) fn skipped(server: &Server, key: &str) -> Value {
    let refused = server.post(&format!("/jobs/key:{key}/run-now"), &json!({})).problem(409, "OverlapSkipped");
    refused["run"].clone()
}

pub(super) fn id(run: &Value) -> &str {
    run["id"].as_str().unwrap()
}

#[test]
fn the_list_shows_its_columns_in_their_order() {
    let server = Server::with(&nasty());
    let admin = Visitor::admin(&server);
    assert!(admin.page("/runs").contains("No runs yet"));
    server.job(NAME, &json!({ "target": "nasty", "timezone": "Europe/Paris" }));
    server.job("slow", &json!({ "target": "sleep" }));
    let failed = run_now(&server, NAME, "failed");
    let active = run_now(&server, "slow", "running");
    skipped(&server, "slow");
    let page = admin.page("/runs");
    let head = between(&page, "<thead>", "</thead>");
    let columns: Vec<&str> = head.split("<th scope=\"col\"").skip(1).map(|rest| between(rest, ">", "<")).collect();
    assert_eq!(columns, ["Status", "Job", "Reason", "When", "Took", "Target", "Trigger"]);
    for text in [
        "<code>exit_code</code></a>: <bdi>",
        "&#60;script&#62;alert(1)",
        "href=\"/jobs/%3Ci%3E%22k%27%26%D7%A9%F0%9F%92%A5\"",
        "&#60;i&#62;&#34;k&#39;&#38;ש💥",
        &format!("overlap: <a href=\"/runs/{}\" title=\"This run was still active\">an earlier run</a>", id(&active)),
        &format!("href=\"/runs/{}\"", id(&failed)),
        "<span class=\"tz\">UTC</span>",
    ] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    assert!(!page.contains("<script>alert") && !page.contains(NAME), "{page}");
}

#[test]
fn a_list_that_looks_for_something_rare_says_how_far_it_looked() {
    let server = Server::start();
    let admin = Visitor::admin(&server);
    server.job("good", &json!({}));
    run_now(&server, "good", "succeeded");
    let page = admin.page("/runs?target=nobody");
    // However long it took, it is empty and there is a way on, or there is nothing more.
    assert!(page.contains("<h2>No runs</h2>"), "{page}");
    assert_eq!(page.contains("Searched back to"), page.contains("Search older runs"), "{page}");
}

#[test]
fn filters_are_in_the_address_and_are_cleared_one_by_one() {
    let server = Server::start();
    let admin = Visitor::admin(&server);
    server.job("good", &json!({}));
    server.job("bad", &json!({ "target": "fail" }));
    let good = run_now(&server, "good", "succeeded");
    let bad = run_now(&server, "bad", "failed");
    let instance = good["runnerInstanceId"].as_str().unwrap();
    let shows =
        |query: &str, run: &Value| admin.page(&format!("/runs?{query}")).contains(&format!("data-row=\"{}\"", id(run)));
    for (query, has_good, has_bad) in [
        ("status=failed", false, true),
        ("jobKey=good", true, false),
        ("target=fail", false, true),
        ("triggerType=manual", true, true),
        ("triggerType=scheduled", false, false),
        ("failureCode=exit_code&jobKey=", false, true),
        (&format!("instanceId={instance}"), true, true),
        ("from=2020-01-01T00%3A00%3A00Z&to=2020-01-02T00%3A00%3A00Z", false, false),
    ] {
        assert_eq!((shows(query, &good), shows(query, &bad)), (has_good, has_bad), "{query}");
    }
    let page = admin.page("/runs?jobKey=bad&status=failed&triggerType=manual");
    assert!(
        page.contains("id=\"clear-jobKey\"") && page.contains("href=\"/runs?status=failed&#38;triggerType=manual\""),
        "{page}"
    );
    let page = admin.page("/runs?status=failed&jobKey=good");
    assert!(
        page.contains("No failed runs") && page.contains(&format!("href=\"/runs/{}\">Show it", id(&good))),
        "{page}"
    );
    let page = admin.page("/runs?to=2020-01-01T00%3A00%3A00Z");
    assert!(page.contains("No runs in this period") && page.contains("Show it"), "{page}");
    // What cannot be read is said where it was typed.
    let refused = admin.get("/runs?jobKey=%3Cb%3E%402&target=log");
    assert_eq!(refused.status, 400);
    assert!(
        refused.text.contains("value=\"&#60;b&#62;@2\"") && refused.text.contains("id=\"jobKey-fault\""),
        "{}",
        refused.text
    );
}

#[test]
fn a_period_is_typed_in_a_zone_and_kept_with_its_offset() {
    let server = Server::start();
    let admin = Visitor::admin(&server);
    let page = admin.page("/runs");
    admin.submit("/choices", &page, &[("mine", "Europe/Paris"), ("back", "/runs")]);
    let typed = admin.get("/runs?status=failed&from=2026-11-15T08%3A00&to=");
    assert_eq!(typed.status, 303);
    assert_eq!(typed.headers["location"], "/runs?from=2026-11-15T08%3A00%3A00%2B01%3A00&status=failed");
    let page = admin.follow(&typed);
    assert!(page.contains("name=\"from\" value=\"2026-11-15T08:00\"") && page.contains("in Europe/Paris"), "{page}");
    assert!(page.contains("2026-11-15 08:00 Europe/Paris"), "{page}");
}

#[test]
fn pages_follow_each_other() {
    let server = Server::start();
    let admin = Visitor::admin(&server);
    server.job("good", &json!({}));
    let runs: Vec<Value> = (0..3).map(|_| run_now(&server, "good", "succeeded")).collect();
    let page = admin.page("/runs?limit=2&jobKey=good");
    assert!(page.contains(id(&runs[2])) && page.contains(id(&runs[1])) && !page.contains(id(&runs[0])), "{page}");
    let next = between(&page, "<nav class=\"pager\" aria-label=\"Pages\">", "rel=\"next\"");
    let next = between(next, "href=\"", "\"").replace("&#38;", "&");
    let page = admin.page(&next);
    assert!(page.contains(id(&runs[0])) && !page.contains(id(&runs[1])) && page.contains("First page"), "{page}");
    assert_eq!(admin.get(&next.replace("jobKey=good", "jobKey=other")).status, 400);
}

#[test]
fn the_list_is_a_file() {
    let server = Server::with(&nasty());
    let admin = Visitor::admin(&server);
    server.job("bad", &json!({ "target": "nasty" }));
    server.job("good", &json!({}));
    let run = run_now(&server, "bad", "failed");
    run_now(&server, "good", "succeeded");
    let table = admin.get("/runs/export?format=csv&status=failed");
    assert!(table.headers["content-disposition"].starts_with("attachment; filename=\"runs-"), "{:?}", table.headers);
    assert!(table.headers["content-type"].starts_with("text/csv"));
    let lines: Vec<&str> = table.text.split("\r\n").collect();
    assert!(
        lines[0].starts_with("target,status,scheduledAt,startedAt,finishedAt,durationMs,failureCode,"),
        "{lines:?}"
    );
    assert!(lines[1].starts_with("nasty,failed,20") && lines[1].ends_with(id(&run)) && lines.len() == 3, "{lines:?}");
    assert!(lines[1].contains("\"\"quoted\"\""), "{lines:?}");
    let all = admin.get("/runs/export?format=jsonl");
    let documents: Vec<Value> = all.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((documents.len(), &documents[1]["id"]), (2, &run["id"]));
    assert_eq!(admin.get("/runs/export?format=xml").status, 400);
}

#[test]
fn many_are_canceled_and_run_again() {
    let server = Server::start();
    many(&server);
}

#[test]
fn many_are_canceled_and_run_again_on_postgres() {
    let server = Server::postgres(TARGETS);
    many(&server);
}

fn many(server: &Server) {
    let admin = Visitor::admin(server);
    server.job("slow", &json!({ "target": "sleep" }));
    server.job("good", &json!({}));
    let (slow, good) = (run_now(server, "slow", "running"), run_now(server, "good", "succeeded"));
    let back = "/runs?triggerType=manual";
    let address =
        |verb: &str| format!("/runs/picked?do={verb}&run={}&run={}&back={}", id(&slow), id(&good), part(back));
    let page = admin.page(&address("cancel"));
    assert!(page.contains("Cancel 2 runs") && page.contains("1 of the selected runs had already ended"), "{page}");
    let picked = [("run", id(&slow)), ("run", id(&good)), ("do", "cancel"), ("back", back)];
    // A reason that cannot be kept is refused before anything is done, with what was typed.
    let refused = admin.submit("/runs/picked", &page, &[&picked[..], &[("reason", "<b")]].concat());
    assert_eq!(refused.status, 400);
    assert!(
        refused.text.contains("value=\"&#60;b\"") && refused.text.contains("id=\"reason-fault\""),
        "{}",
        refused.text
    );
    let page = refused.text;
    let done = admin.submit("/runs/picked", &page, &[&picked[..], &[("reason", "not needed")]].concat());
    assert_eq!(done.headers["location"], back);
    assert!(admin.follow(&done).contains("1 asked to stop, 1 had already ended."));
    server.until(&format!("/runs/{}", id(&slow)), |run| run["status"] == "canceled");
    let page = admin.page(&address("rerun"));
    let picked = [("run", id(&slow)), ("run", id(&good)), ("do", "rerun"), ("back", back)];
    let done = admin.submit("/runs/picked", &page, &picked);
    assert!(admin.follow(&done).contains("2 started."));
    // The same form again does nothing again.
    let again = admin.submit("/runs/picked", &page, &picked);
    assert!(admin.follow(&again).contains("2 started."));
    assert_eq!(server.get("/runs").expect(200)["items"].as_array().unwrap().len(), 4);
    let none = admin.get(&format!("/runs/picked?do=cancel&back={}", part("https://evil.example")));
    assert_eq!((none.status, none.headers["location"].as_str()), (303, "/"));
}

#[test]
fn who_only_looks_cannot_act() {
    let server = Server::start();
    server.job("good", &json!({}));
    let run = run_now(&server, "good", "succeeded");
    let viewer = Visitor::sign_in(&server, "viewer");
    let page = viewer.page("/runs");
    assert!(page.contains("disabled title=\"Requires the operator role. Your role is viewer.\">Rerun…"), "{page}");
    assert!(!page.contains("name=\"run\""), "{page}");
    assert_eq!(viewer.get(&format!("/runs/picked?do=cancel&run={}", id(&run))).status, 403);
    let sent = viewer.submit("/runs/picked", &page, &[("run", id(&run)), ("do", "rerun")]);
    assert_eq!(sent.status, 403);
    let admin = Visitor::admin(&server);
    let unsealed = admin.post_exactly("/runs/picked", &[("run", id(&run)), ("do", "rerun")]);
    assert_eq!(unsealed.status, 403);
    assert_eq!(server.get("/runs").expect(200)["items"].as_array().unwrap().len(), 1);
}

#[test]
fn history_can_be_kept_from_viewers() {
    let server = Server::with(&format!("[auth]\nrun_history = \"operator\"\n{TARGETS}"));
    let viewer = Visitor::sign_in(&server, "viewer");
    for path in ["/runs", "/runs/export", "/runs/00000000-0000-7000-8000-000000000000"] {
        assert_eq!(viewer.get(path).status, 403, "{path}");
    }
}

#[test]
fn a_whole_page_of_runs_can_be_picked() {
    let server = Server::start();
    server.job("good", &json!({}));
    let run = run_now(&server, "good", "succeeded");
    let admin = Visitor::admin(&server);
    // As many as fit on a page. Unknown runs are refused one by one.
    let other = |number: u32| format!("00000000-0000-7000-8000-{number:012}");
    let ids: Vec<String> = (1..200).map(other).chain([id(&run).to_owned()]).collect();
    let picked: Vec<String> = ids.iter().map(|id| format!("run={id}")).collect();
    let page = admin.page(&format!("/runs/picked?do=rerun&back=%2Fruns&{}", picked.join("&")));
    assert!(page.contains("Run 200 runs again"), "{page}");
    let fields: Vec<(&str, &str)> = ids.iter().map(|id| ("run", id.as_str())).chain([("do", "rerun")]).collect();
    let done = admin.follow(&admin.submit("/runs/picked", &page, &fields));
    assert!(done.contains("199 refused, 1 started."), "{done}");
    let many: Vec<String> = (1..=201).map(|number| format!("run={}", other(number))).collect();
    let refused = admin.get(&format!("/runs/picked?do=rerun&{}", many.join("&")));
    assert_eq!(refused.status, 400);
    assert!(refused.text.contains("200"), "{}", refused.text);
}

#[test]
fn all_runs_that_match_run_again_after_a_dry_run() {
    let server = Server::start();
    server.job("bad", &json!({ "target": "fail", "labels": {"team": "data"} }));
    server.job("worse", &json!({ "target": "fail", "labels": {"team": "ops"} }));
    for key in ["bad", "bad", "worse"] {
        run_now(&server, key, "failed");
    }
    let admin = Visitor::admin(&server);
    let list = admin.page("/runs?label=team%3Ddata");
    assert!(list.contains("id=\"clear-label\"") && list.contains("All matching failed runs:"), "{list}");
    let link = between(&list, "All matching failed runs: <a href=\"", "\"").replace("&#38;", "&");
    let page = admin.page(&link);
    assert!(page.contains("This starts 2 of 2 matching runs again"), "{page}");
    assert!(page.contains("Run 2 runs again") && !page.contains("/jobs/worse"), "{page}");
    let filter = between(&page, "name=\"filter\" value=\"", "\"").replace("&#34;", "\"").replace("&quot;", "\"");
    assert!(page.contains("team=data"), "{page}");
    let sent = admin.submit("/runs/matching", &page, &[("filter", &filter), ("reason", "the disk is back")]);
    assert_eq!(sent.status, 303, "{}", sent.text);
    let ended = |page: &Value| page["items"].as_array().unwrap().iter().filter(|run| run["status"] == "failed").count();
    server.until("/runs?jobKey=bad&limit=200", |page| ended(page) == 4);
    assert_eq!(ended(&server.get("/runs?jobKey=worse").expect(200)), 1, "it has another label");
    assert!(!admin.page("/runs?status=running").contains("All matching"), "these have not ended");
}
