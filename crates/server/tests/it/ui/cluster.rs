//! The house itself: what is asked before an instance is drained or a token revoked, and what waits for a target.

use serde_json::json;

use super::visitor::{Visitor, assert_has, led, part};
use crate::server::{Server, TARGETS};

fn instance(server: &Server) -> String {
    server.get("/instances").expect(200)["items"][0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn an_instance_is_drained_after_it_was_asked() {
    let server = Server::start();
    let (admin, id) = (Visitor::admin(&server), instance(&server));
    let place = format!("/cluster/{id}/drain");
    assert_has(&admin.page("/cluster"), &[&format!("href=\"{place}\" data-dialog")]);
    let page = admin.page(&place);
    assert_has(
        &page,
        &["No runs are active there", "No other instance serves", "print", &format!("instances drain {id}")],
    );
    let draining = || server.get("/instances").expect(200)["items"][0]["draining"].clone();
    assert_eq!(draining(), false);
    assert_eq!(led(&admin.submit(&place, &page, &[])).0, "/cluster");
    assert_eq!(draining(), true);
    let page = admin.page("/cluster");
    assert_eq!(led(&admin.submit(&place, &page, &[("draining", "off")])).1, "+The instance accepts work again.");
    assert_eq!(draining(), false);
    assert_eq!(admin.get("/cluster/00000000-0000-7000-8000-000000000000/drain").status, 404);
    let operator = Visitor::sign_in(&server, "operator");
    assert_eq!(operator.get(&place).status, 403);
    assert_eq!(operator.post(&place, &[]).status, 403);
    assert_eq!(admin.post_exactly(&place, &[]).status, 403);
    assert_eq!(draining(), false);
}

#[test]
fn a_token_is_revoked_after_it_was_asked() {
    let server = Server::start();
    let admin = Visitor::admin(&server);
    let name = "ana <b>";
    server.post("/tokens", &json!({ "name": name, "role": "operator" })).expect(201);
    let place = format!("/settings/tokens/{}/revoke", part(name));
    let page = admin.page(&place);
    assert_has(&page, &["ana &#60;b&#62;", "role operator", "never used", "This cannot be undone"]);
    assert!(!page.contains("You are signed in with this token"), "{page}");
    assert_has(&admin.page("/settings/tokens/admin/revoke"), &["You are signed in with this token"]);
    assert_eq!(Visitor::sign_in(&server, "operator").get(&place).status, 403);
    assert_eq!(led(&admin.submit(&place, &page, &[])).1, "+Token ana <b> revoked.");
    assert_eq!(admin.get(&place).status, 404);
}

#[test]
fn targets_tell_how_many_jobs_wait() {
    let server = Server::start();
    for number in 0..7 {
        server.job(&format!("j{number}"), &json!({ "target": "fail" }));
    }
    let (token, folder) = (server.token.clone(), server.take_folder());
    let database = format!("sqlite:{}", folder.path().join("everbell-data/everbell.db").display());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(everbell_store::testing::execute(&database, "update everbell.jobs set target = 'fax'"));
    let server = Server::in_folder(folder, &[], &[]);
    let page = Visitor::new(&server, &token).page("/targets");
    assert_has(&page, &["7 jobs do not fire", ">j4</a>", "href=\"/jobs?target=fax\">all</a>"]);
    assert!(!page.contains(">j5</a>"), "{page}");
}

#[test]
fn canceling_tells_the_grace_that_is_configured() {
    let server = Server::with(&format!("[engine]\ncancel_grace = \"2s\"\n{TARGETS}"));
    server.job("slow", &json!({ "target": "sleep" }));
    let run = super::runs::run_now(&server, "slow", "running");
    let page = Visitor::admin(&server).page(&format!("/runs/{}/cancel", super::runs::id(&run)));
    assert_has(&page, &["after a grace period of 2.0s"]);
}

#[test]
fn the_audit_trail_of_the_longest_key_is_found() {
    let server = Server::start();
    let key = "k".repeat(200);
    server.job(&key, &json!({}));
    let page = Visitor::admin(&server).page(&format!("/audit?object=job:{key}"));
    assert_has(&page, &["<code>job.create</code>"]);
    assert_eq!(server.get(&format!("/audit?object=job:{key}")).expect(200)["items"].as_array().unwrap().len(), 1);
}

#[test]
fn a_job_that_cannot_be_read_has_a_page_that_says_so() {
    let server = Server::start();
    server.job("broken", &json!({}));
    let (token, folder) = (server.token.clone(), server.take_folder());
    let database = format!("sqlite:{}", folder.path().join("everbell-data/everbell.db").display());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let sql = "update everbell.jobs set payload = '{' where job_key = 'broken'";
    runtime.block_on(everbell_store::testing::execute(&database, sql));
    let server = Server::in_folder(folder, &[], &[]);
    let reply = Visitor::new(&server, &token).get("/jobs/broken");
    assert_eq!(reply.status, 409, "{}", reply.text);
    assert_has(&reply.text, &["is stored, but cannot be read", "payload", "Repair its row"]);
}
