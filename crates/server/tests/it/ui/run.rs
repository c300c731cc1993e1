//! One run: what its page says, canceling it, running it again.

use serde_json::json;

use super::runs::{id, nasty, run_now, skipped};
use super::visitor::{Visitor, between};
use crate::server::{Server, TARGETS};

#[test]
fn a_failed_run_says_why() {
    let server = Server::with(&nasty());
    let admin = Visitor::admin(&server);
    server.job("bad", &json!({ "target": "nasty", "payload": {"n": 1, "text": "<b>שלום</b>"} }));
    let first = run_now(&server, "bad", "failed");
    let second = run_now(&server, "bad", "failed");
    let third = run_now(&server, "bad", "failed");
    let page = admin.page(&format!("/runs/{}", id(&second)));
    for text in [
        "<div class=\"banner bad run-notice\"><a href=\"/runs?failureCode=exit_code\"",
        "&#60;script&#62;alert(1)&#60;/script&#62; &#34;quoted&#34; &#38; שלום 💥",
        "\n  &#34;n&#34;: 1,\n  &#34;text&#34;: &#34;&#60;b&#62;שלום&#60;/b&#62;&#34;\n}",
        "&#34;exitCode&#34;: 3",
        "manual, token:admin",
        ">Created<",
        ">Claimed<",
        ">Started<",
        ">Failed<",
        &format!("href=\"/runs/{}\" rel=\"prev\"", id(&first)),
        &format!("href=\"/runs/{}\" rel=\"next\"", id(&third)),
        &format!("run:{}", id(&second)),
    ] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    assert!(!page.contains("<script>alert") && !page.contains("style="), "{page}");
    let output = admin.get(&format!("/runs/{}/output", id(&second)));
    assert!(output.headers["content-disposition"].starts_with("attachment"), "{:?}", output.headers);
    assert_eq!(output.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(output.text, "<script>alert(1)</script> \"quoted\" & שלום 💥\n");
    assert!(!admin.page(&format!("/runs/{}", id(&third))).contains("rel=\"next\""));
    for path in ["/runs/nonsense", "/runs/00000000-0000-7000-8000-000000000000", "/runs/nonsense/output"] {
        assert_eq!(admin.get(path).status, 404, "{path}");
    }
}

#[test]
fn a_run_is_canceled_and_run_again() {
    canceled_and_again(&Server::start());
}

#[test]
fn a_run_is_canceled_and_run_again_on_postgres() {
    canceled_and_again(&Server::postgres(TARGETS));
}

fn canceled_and_again(server: &Server) {
    let admin = Visitor::admin(server);
    server.job("slow", &json!({ "target": "sleep", "payload": {"n": 1} }));
    let run = run_now(server, "slow", "running");
    let place = format!("/runs/{}", id(&run));
    let page = admin.page(&place);
    assert!(page.contains("No output so far.") && page.contains(">Running<"), "{page}");

    // Beside an active run the next one is recorded as skipped, and says which is in the way.
    let page = admin.page(&format!("{place}/rerun"));
    assert!(
        page.contains("The overlap policy is skip") && page.contains(&format!("everbell runs rerun {}", id(&run))),
        "{page}"
    );
    let sent = admin.submit(&format!("{place}/rerun"), &page, &[]);
    let page = admin.follow(&sent);
    assert!(
        page.contains("recorded as skipped") && page.contains(&format!("<a href=\"{place}\">Show blocking run")),
        "{page}"
    );

    let page = admin.page(&format!("{place}/cancel"));
    assert!(page.contains("The run has been active for") && page.contains("curl -X POST"), "{page}");
    let refused = admin.submit(&format!("{place}/cancel"), &page, &[("reason", "x\"")]);
    assert_eq!(refused.status, 400);
    assert!(
        refused.text.contains("value=\"x&#34;\"") && refused.text.contains("id=\"reason-fault\""),
        "{}",
        refused.text
    );
    let sent = admin.submit(&format!("{place}/cancel"), &refused.text, &[("reason", "too <slow>")]);
    assert!(admin.follow(&sent).contains("The run was asked to stop."));
    server.until(&place, |run| run["status"] == "canceled");
    let page = admin.page(&place);
    assert!(page.contains("This run was canceled by token:admin: too &#60;slow&#62;."), "{page}");
    assert!(page.contains("<div class=\"banner off run-notice\">") && !page.contains("/cancel\""), "{page}");
    let late = admin.get(&format!("{place}/cancel"));
    assert!(admin.follow(&late).contains("This run has already ended: it is canceled."));

    let page = admin.page(&format!("{place}/rerun"));
    assert!(page.contains("The run starts now."), "{page}");
    let sent = admin.submit(&format!("{place}/rerun"), &page, &[("reason", "once more")]);
    let again = sent.headers["location"].clone();
    assert!(admin.follow(&sent).contains("slow is running again. This is the new run."));
    let again = server.until(&again, |run| run["status"] == "running");
    assert_eq!(
        (again["payloadSnapshot"]["n"].as_i64(), &again["triggerLabel"]),
        (Some(1), &json!("manual:token:admin"))
    );
}

#[test]
fn a_waiting_run_is_canceled_at_once() {
    let server = Server::start();
    let admin = Visitor::admin(&server);
    server.job("slow", &json!({ "target": "sleep", "policies": {"overlap": "queue"} }));
    run_now(&server, "slow", "running");
    let waiting = run_now(&server, "slow", "pending");
    let place = format!("/runs/{}", id(&waiting));
    assert!(admin.page(&place).contains("Waiting until the active runs of the job have ended."));
    let page = admin.page(&format!("{place}/cancel"));
    assert!(page.contains("It is canceled immediately"), "{page}");
    let sent = admin.submit(&format!("{place}/cancel"), &page, &[]);
    let page = admin.follow(&sent);
    assert!(page.contains("Run canceled.") && page.contains(">Canceled<"), "{page}");
}

#[test]
fn who_only_looks_sees_why_they_cannot_act() {
    let server = Server::start();
    server.job("slow", &json!({ "target": "sleep" }));
    let run = run_now(&server, "slow", "running");
    skipped(&server, "slow");
    let viewer = Visitor::sign_in(&server, "viewer");
    let place = format!("/runs/{}", id(&run));
    let page = viewer.page(&place);
    assert_eq!(
        page.matches("disabled title=\"Requires the operator role. Your role is viewer.\"").count(),
        2,
        "{page}"
    );
    for verb in ["cancel", "rerun"] {
        let path = format!("{place}/{verb}");
        assert_eq!(viewer.get(&path).status, 403);
        assert_eq!(viewer.submit(&path, &page, &[]).status, 403);
        let admin = Visitor::admin(&server);
        assert_eq!(admin.post_exactly(&path, &[("csrf", "wrong")]).status, 403);
    }
    assert_eq!(server.get(&place).expect(200)["cancelRequested"], false);
    assert_eq!(between(&page, "<h1>Run of <span dir=\"auto\">", "</span>"), "slow");
}

#[test]
fn a_run_that_waits_for_another_attempt_says_when_and_what_the_last_one_printed() {
    let server = Server::with(&nasty());
    let admin = Visitor::admin(&server);
    let retry = json!({ "maxAttempts": 3, "initial": "2h", "max": "2h" });
    server.job("bad", &json!({ "target": "nasty", "policies": { "retry": retry } }));
    let path = server.post("/jobs/key:bad/run-now", &json!({})).headers["location"].clone();
    let run = server.until(&path, |run| run["status"] == "pending" && run["attempt"] == 1);
    let page = admin.page(&format!("/runs/{}", id(&run)));
    for text in ["1 of 3 <span class=\"note\">· next attempt at</span> <time", ">Retry<", ">in 1h 59m<"] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    assert!(page.contains("Output of the last attempt") && page.contains("&#34;quoted&#34;"), "{page}");
}
