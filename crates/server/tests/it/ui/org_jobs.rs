//! Jobs that fire for each org: what their pages say, and what is done for one org, for some and for all.

use everbell_store::testing::{TestDatabase, execute};
use serde_json::{Value, json};

use super::orgs::world;
use super::visitor::{Visitor, assert_has, led};
use crate::halfway::halfway;
use crate::server::{Server, TARGETS};

fn runs(server: &Server) -> Vec<String> {
    let list = server.get("/runs?jobKey=brief&limit=50").expect(200);
    let mut orgs: Vec<String> =
        list["items"].as_array().unwrap().iter().map(|run| run["orgId"].as_str().unwrap().to_owned()).collect();
    orgs.sort();
    orgs
}

fn acted(server: &Server) {
    world(server);
    let ana = Visitor::admin(server);
    let page = ana.page("/jobs/brief/orgs");
    assert_has(
        &page,
        &["Acme SARL", "Europe/Paris", "08:00 <span class=\"tz\">CE", "08:00 <span class=\"tz\">JST", ">On</span>"],
    );

    // Without an org the page asks, and is no dead end.
    let asked = ana.page("/jobs/brief/run-now");
    assert_has(
        &asked,
        &["choose an org", "<option value=\"acme\">Acme SARL", "orgs/run-now?all=true", "/jobs/brief/orgs"],
    );
    for path in ["reschedule", "skip-next", "backfill"] {
        assert_has(&ana.page(&format!("/jobs/brief/{path}")), &["choose an org"]);
    }
    let missing = ana.get("/jobs/brief/run-now?orgId=nobody");
    assert_eq!(missing.status, 404);
    assert_has(&missing.text, &["There is no org <code dir=\"auto\">nobody</code>.", "value=\"nobody\"", "Continue"]);

    let open = ana.page("/jobs/brief/run-now?orgId=acme");
    assert_has(&open, &["now for <span dir=\"auto\">Acme SARL", "08:00 <span class=\"tz\">CE", "--org acme"]);
    let (place, said) = led(&ana.submit("/jobs/brief/run-now", &open, &[("orgId", "acme"), ("payload", "{}")]));
    assert_eq!(said, "+brief for acme is running. Its next scheduled run does not change.");
    assert_has(&ana.page(&place), &["<a href=\"/orgs/acme\" dir=\"auto\">acme</a>"]);
    assert_eq!(runs(server), ["acme"]);
    server.until("/runs?status=pending,running", |runs| runs["items"].as_array().unwrap().is_empty());

    let none = ana.page("/jobs/brief/orgs/run-now");
    assert_has(&none, &["No orgs selected"]);
    let picked = ana.page("/jobs/brief/orgs/run-now?orgId=bolt&orgId=cove");
    assert_has(&picked, &["for 2 orgs", "bolt", "cove"]);
    let fields = [("orgId", "bolt"), ("orgId", "cove"), ("orgId", "nobody")];
    let (place, said) = led(&ana.submit("/jobs/brief/orgs/run-now", &picked, &fields));
    assert_eq!(place, "/jobs/brief/orgs");
    assert!(said.starts_with("-brief is running for 2 orgs. Refused for 1: nobody:"), "{said}");
    assert_eq!(runs(server), ["acme", "bolt", "cove"]);
    server.until("/runs?status=pending,running", |runs| runs["items"].as_array().unwrap().is_empty());

    assert_has(&ana.page("/jobs/brief/orgs/run-now?all=true"), &["at most 3 orgs"]);
    let (_, said) = led(&ana.send("/jobs/brief/orgs/run-now?all=true", &[("all", "true")]));
    assert!(said.starts_with("+Every org that brief is on for"), "{said}");
    server.until("/runs?jobKey=brief", |list| list["items"].as_array().unwrap().len() == 6);
    assert_has(&ana.page("/runs"), &["<th scope=\"col\">Org</th>", "orgId=bolt", "href=\"/orgs/cove\""]);
}

#[test]
fn a_job_is_run_for_one_org_for_some_and_for_all() {
    acted(&Server::start());
}

#[test]
fn a_job_is_run_for_one_org_for_some_and_for_all_on_postgres() {
    acted(&Server::postgres(TARGETS));
}

#[test]
fn the_next_fire_of_an_org_is_moved_and_skipped_on_its_own_clock() {
    let server = Server::start();
    world(&server);
    let ana = Visitor::admin(&server);
    let next = |org: &str| {
        let row = server.get(&format!("/orgs/{org}/jobs/brief")).expect(200)["job"].clone();
        row["nextRunAtLocal"].as_str().unwrap().to_owned()
    };
    let before = next("bolt");
    let open = ana.page("/jobs/brief/reschedule?orgId=bolt");
    assert_has(&open, &["Next run, in Asia/Tokyo", "T08:00\"", "name=\"orgId\" value=\"bolt\""]);
    let fields = [("orgId", "bolt"), ("nextRunAt", "2030-05-06T07:08")];
    let preview = ana.submit("/jobs/brief/reschedule/preview", &open, &fields);
    assert_has(&preview.text, &["Only this run moves", "07:08 <span class=\"tz\">JST"]);
    let (place, said) = led(&ana.submit("/jobs/brief/reschedule", &open, &fields));
    assert_eq!(place, "/orgs/bolt");
    assert_eq!(said, "+The next run of brief for bolt is at 2030-05-06 07:08 in Asia/Tokyo.");
    assert!(next("bolt").starts_with("2030-05-06T07:08:00+09:00"), "{}", next("bolt"));
    assert_has(&ana.page("/orgs/bolt"), &["moved from"]);

    let before_paris = next("acme");
    let open = ana.page("/jobs/brief/skip-next?orgId=acme");
    assert_has(&open, &["This run is skipped", "08:00 <span class=\"tz\">CE"]);
    let (place, said) = led(&ana.submit("/jobs/brief/skip-next", &open, &[("orgId", "acme"), ("count", "2")]));
    assert_eq!((place.as_str(), said.as_str()), ("/orgs/acme", "+Skipped the next 2 runs of brief for acme."));
    assert!(next("acme") > before_paris && before != next("bolt"));

    let open = ana.page("/jobs/brief/backfill?orgId=acme");
    assert_has(&open, &["In Europe/Paris."]);
    let range = [("orgId", "acme"), ("from", "2020-01-01T00:00"), ("to", "2020-01-02T00:00")];
    assert_has(&ana.submit("/jobs/brief/backfill", &open, &range).text, &["1 slot will get a run."]);
    let open = ana.page("/jobs/brief/backfill?orgs=all");
    assert_has(&open, &["For every org", "name=\"orgs\" value=\"all\""]);
    let range = [("orgs", "all"), ("from", "2020-01-01T00:00"), ("to", "2020-01-02T00:00")];
    let counted = ana.submit("/jobs/brief/backfill", &open, &range).text;
    assert_has(&counted, &["slots of 3 orgs will each get a run, unless they already have one.", "Create runs"]);
    let range = [&range[..], &[("begin", "yes")]].concat();
    let (place, _) = led(&ana.submit("/jobs/brief/backfill", &counted, &range));
    assert_eq!(place, "/jobs/brief/orgs");
}

#[test]
fn a_job_that_fires_for_each_org_shows_no_fires_of_its_own() {
    let server = Server::start();
    world(&server);
    server.job("alone", &json!({}));
    let ana = Visitor::admin(&server);
    assert_has(
        &ana.page("/jobs/brief"),
        &["Fires for each org at its local time", "in each org's time zone", "Show orgs", "Local time"],
    );
    assert_has(&ana.page("/jobs"), &[", first for ", "<a href=\"/jobs/brief/orgs\"", "in each org's time zone"]);
    // The fires of its own zone are nobody's.
    server.job("hourly", &json!({ "scope": "per_org", "cronExpression": "0 * * * *" }));
    server.until("/next?limit=50", |list| list["items"].to_string().contains("hourly"));
    assert_has(&ana.page("/timeline?q=hourly"), &["1 job fires for each org at its local time.", "planned for 3 orgs"]);
    assert_has(&ana.page("/jobs/brief/pause"), &["While it is paused, it fires for none"]);
    assert_has(&ana.page("/jobs/brief/retire"), &["for any org"]);
    led(&ana.send("/jobs/brief/pause", &[("reason", "a long holiday")]));
    assert_has(&ana.page("/orgs/acme"), &["the job is paused"]);
    assert_has(&ana.page("/jobs/brief/resume"), &["The job fires again for each org"]);
    assert_has(&ana.page("/jobs/alone/orgs"), &["It fires once for all"]);
    assert!(!ana.page("/runs").contains("<th scope=\"col\">Org</th>"), "nobody has orgs in their runs yet");

    let asked = ana.page("/jobs/brief?orgId=acme&at=2020-01-01T08:00:00");
    assert_has(&asked, &["The job did not exist yet"]);
    let made = ana.send(
        "/new",
        &[
            ("jobKey", "third"),
            ("target", "print"),
            ("how", "cron"),
            ("cronExpression", "0 9 * * *"),
            ("scope", "per_org"),
        ],
    );
    assert_has(&ana.follow(&made), &["Fires for each org"]);
    assert_eq!(server.get("/jobs/key:third").expect(200)["scope"], "per_org");
    assert_has(&ana.page("/jobs/third/new-version"), &["value=\"per_org\" checked"]);
}

#[test]
fn an_org_whose_zone_is_no_more_is_counted_and_shown() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let database = runtime.block_on(TestDatabase::create());
    let url = database.url().to_owned();
    let server = Server::launch(TARGETS, Some(database), &[]);
    world(&server);
    let ana = Visitor::admin(&server);
    assert!(!ana.page("/").contains("/orgs?errored=true"));
    runtime
        .block_on(execute(&url, "update everbell.orgs set timezone = 'Mars/Base', waiting = true where id = 'acme'"));
    // Whoever writes next lets timers follow.
    server.patch("/orgs/cove", &json!({ "name": "Cove" })).expect(200);
    let errored = |list: &Value| list["items"].as_array().unwrap().len() == 1;
    server.until("/orgs?errored=true", errored);
    let entry = &server.get("/audit?object=job:brief&limit=1").expect(200)["items"][0];
    assert_eq!((&entry["actor"], &entry["action"]), (&json!("everbell"), &json!("org.errored")));
    assert_eq!(entry["after"], json!({ "first": ["acme"], "orgs": 1 }));
    assert_has(&ana.page("/"), &["1 org timer", "href=\"/orgs?errored=true\""]);
    let list = ana.page("/orgs?errored=true");
    assert_has(&list, &["Mars/Base", "Unknown zone", "unknown time zone `Mars/Base`", "data-row=\"acme\""]);
    assert!(!list.contains("data-row=\"bolt\""));
    assert_has(&ana.page("/orgs"), &["1 org timer cannot fire"]);
    assert_has(&ana.page("/orgs/acme"), &["No job can fire for this org", "Cannot fire", "Choose another time zone"]);
    assert_has(&ana.page("/jobs/brief/orgs?errored=true"), &["Cannot fire", "data-row=\"acme\""]);
    // A broken org does not hide the others.
    runtime.block_on(execute(&url, "update everbell.orgs set settings = '{' where id = 'bolt'"));
    for path in ["/orgs", "/jobs/brief/orgs"] {
        let page = ana.page(path);
        assert_has(&page, &["Not shown", ">bolt</span>", "data-row=\"acme\"", "data-row=\"cove\""]);
    }
    let list = server.get("/jobs/key:brief/orgs").expect(200);
    assert_eq!((&list["unreadable"], list["items"].as_array().unwrap().len()), (&json!(["bolt"]), 2));
    server.get("/orgs/bolt").problem(500, "Internal");
    // The rest of it can still be mended, and the zone itself.
    led(&ana.send("/orgs/acme/edit", &[("name", "Acme"), ("timezone", "Mars/Base")]));
    led(&ana.send("/orgs/acme/edit", &[("name", "Acme"), ("timezone", "Europe/Paris")]));
    assert!(!ana.page("/orgs/acme").contains("Cannot fire"));
}

#[test]
fn runs_that_are_being_made_for_all_orgs_are_stopped() {
    let server = halfway();
    let ana = Visitor::admin(&server);
    let page = ana.page("/jobs/brief/orgs");
    assert_has(&page, &["Creating manual runs", "data-dialog>Stop…</a>"]);
    let place = super::visitor::between(&page, "href=\"/jobs/brief/sweeps/", "\"");
    let place = format!("/jobs/brief/sweeps/{place}");
    let open = ana.page(&place);
    assert_has(&open, &["done so far", "Runs that were created stay", "Go back", "everbell orgs stop brief"]);
    let (to, said) = led(&ana.submit(&place, &open, &[("reason", "too many")]));
    assert_eq!(to, "/jobs/brief/orgs");
    assert!(said.starts_with("+Stopped after ") && said.ends_with(" Runs that were created are kept."), "{said}");
    assert!(!ana.page("/jobs/brief/orgs").contains("Creating manual runs"));
    assert_eq!(ana.get(&place).status, 404);
}
