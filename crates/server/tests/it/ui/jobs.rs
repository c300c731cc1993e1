//! View A.

use serde_json::json;

use super::visitor::{Visitor, assert_has, led};
use crate::server::{Server, TARGETS};

/// The keys of the rows, in order.
fn rows(page: &str) -> Vec<&str> {
    page.split("data-row=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

fn listing(server: &Server) {
    server.job("soon", &json!({ "cronExpression": "0 * * * *", "target": "fail", "labels": { "team": "ops" } }));
    server.job("once", &json!({ "cronExpression": null, "runAt": "2040-01-02T03:04:00Z", "timezone": "Asia/Tokyo" }));
    server.job("late", &json!({}));
    server.job("gone", &json!({}));
    // A version that an edit replaced is not listed as a retired job.
    server.patch("/jobs/key:gone", &json!({ "description": "again" })).expect(200);
    server.delete("/jobs/key:gone").expect(200);
    server.patch("/jobs/key:late/pause", &json!({ "reason": "SMTP is down" })).expect(200);
    let ana = Visitor::admin(server);
    let page = ana.page("/jobs");
    assert_eq!(rows(&page), ["late", "once", "soon"]);
    assert_has(
        &page,
        &[
            "All <span class=\"count\">3</span>",
            "Active <span class=\"count\">2</span>",
            "Paused <span class=\"count\">1</span>",
            "Retired <span class=\"count\">1</span>",
            "All 3 matching jobs:",
            "2040-01-02 12:04 <span class=\"tz\">JST</span>",
            "SMTP is down",
            "would be ",
            "<td class=\"hist\"></td>",
            "href=\"/jobs/soon/new-version\"",
            "href=\"/jobs/soon/reschedule\"",
            "href=\"/jobs/late/resume\"",
            "aria-sort=\"ascending\"",
            "name=\"key\" value=\"soon\"",
        ],
    );
    assert!(!page.contains("T12:04:00+09:00"), "one-time jobs are shown by the clock");
    for (query, expected) in [
        ("scheduleType=one_time", vec!["once"]),
        ("scheduleType=recurring&sort=jobKey", vec!["late", "soon"]),
        ("target=fail", vec!["soon"]),
        ("status=paused", vec!["late"]),
        ("status=retired", vec!["gone"]),
        ("label=team%3Dops", vec!["soon"]),
        ("label=team", vec!["soon"]),
        ("q=SOO&lastRunStatus=&source=", vec!["soon"]),
        ("source=api&sort=-createdAt", vec!["late", "once", "soon"]),
        ("errored=false&status=active", vec!["once", "soon"]),
        ("sort=nextRunAt&status=active", vec!["soon", "once"]),
    ] {
        assert_eq!(rows(&ana.page(&format!("/jobs?{query}"))), expected, "{query}");
    }
    assert_has(&ana.page("/jobs?target=fail"), &["<option selected>fail</option>", "Clear filters"]);
    for (sort, header) in [
        ("jobKey", "aria-sort=\"ascending\"><a href=\"/jobs?sort=jobKey\">Job</a>"),
        (
            "-lastRunAt",
            "aria-sort=\"descending\"><a href=\"/jobs?sort=-lastRunAt\" title=\"Newest first\">Last run</a>",
        ),
        ("-createdAt", "<option value=\"-createdAt\" selected>Newest first</option>"),
    ] {
        let page = ana.page(&format!("/jobs?sort={sort}"));
        assert_has(&page, &[header]);
        assert_eq!(page.matches("aria-sort").count(), usize::from(header.starts_with("aria")), "{sort}");
    }
    let labeled = ana.page("/jobs?label=team%3Dops");
    assert_has(
        &labeled,
        &["Label: <b dir=\"auto\">team=ops</b>", "aria-label=\"Clear Label\"", "aria-current=\"true\">team=ops"],
    );
    assert_has(&ana.page("/jobs?errored=true"), &["No matching jobs", "There are 3 current jobs."]);
}

#[test]
fn jobs_are_listed_and_filtered() {
    listing(&Server::start());
}

#[test]
fn jobs_are_listed_and_filtered_on_postgres() {
    listing(&Server::postgres(TARGETS));
}

#[test]
fn a_list_has_pages() {
    let server = Server::start();
    for key in ["a", "b", "c"] {
        server.job(key, &json!({}));
    }
    let ana = Visitor::admin(&server);
    let page = ana.page("/jobs?limit=2&sort=jobKey");
    assert_eq!(rows(&page), ["a", "b"]);
    assert!(!page.contains("First page") && page.contains("All matching jobs:"));
    let next = page.split("href=\"").find(|part| part.contains("rel=\"next\"")).unwrap().split('"').next().unwrap();
    let page = ana.page(&next.replace("&#38;", "&"));
    assert_eq!(rows(&page), ["c"]);
    assert!(page.contains("rel=\"first\"") && !page.contains("rel=\"next\""));
}

#[test]
fn a_list_without_jobs_says_what_to_do() {
    let server = Server::start();
    let ana = Visitor::admin(&server);
    assert_has(&ana.page("/jobs"), &["No jobs yet", "everbell jobs create"]);
    let bare = Server::with("[server]\nrole = \"api\"\n");
    assert_has(&Visitor::admin(&bare).page("/jobs"), &["No targets are registered"]);
}

#[test]
fn viewers_see_why_they_may_not_act() {
    let server = Server::start();
    server.job("a", &json!({}));
    let page = Visitor::sign_in(&server, "viewer").page("/jobs");
    assert_has(&page, &["disabled title=\"Requires the operator role. Your role is viewer.\""]);
    assert!(!page.contains("/jobs/a/pause") && !page.contains("id=\"bulk\""));
    let page = Visitor::sign_in(&server, "operator").page("/jobs");
    assert_has(
        &page,
        &["/jobs/a/pause", "aria-disabled=\"true\" title=\"Requires the admin role. Your role is operator.\""],
    );
    let ana = Visitor::admin(&server);
    led(&ana.send("/jobs/a/pause", &[("reason", "to see it")]));
    assert_has(&ana.page("/jobs"), &["/jobs/a/resume", "Change reason"]);
}

#[test]
fn jobs_are_grouped_by_the_values_of_a_label() {
    let server = Server::start();
    server.job("z", &json!({ "labels": {"team": "data"} }));
    server.job("a", &json!({ "labels": {"team": "ops"} }));
    server.job("b", &json!({ "labels": {"team": "data"} }));
    server.job("none", &json!({}));
    let admin = Visitor::admin(&server);
    for path in ["/jobs?group=team&sort=jobKey", "/timeline?group=team&empty=true"] {
        let page = admin.page(path);
        let places =
            ["team=data</a>", "/jobs/b\"", "/jobs/z\"", "team=ops</a>", "/jobs/a\"", "without team", "/jobs/none\""];
        let body = page.split_once("<main").map_or(page.as_str(), |(_, main)| main);
        let found: Vec<Option<usize>> = places.iter().map(|text| body.find(text)).collect();
        assert!(found.iter().all(Option::is_some), "{path}: {found:?}");
        // The timeline keeps the order of the next runs inside of a group.
        let order = [0, 3, 5].map(|place| found[place]);
        assert!(
            order.is_sorted() && found[1] > found[0] && found[1] < found[3] && found[6] > found[5],
            "{path}: {found:?}"
        );
    }
    let page = admin.page("/jobs?label=team%3Ddata&target=print&errored=false");
    for chip in ["clear-label", "clear-target", "clear-errored"] {
        assert!(page.contains(&format!("id=\"{chip}\"")), "{chip}: {page}");
    }
}
