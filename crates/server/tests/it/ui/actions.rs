//! Actions on a job, through pages.

use serde_json::{Value, json};

use super::visitor::{NASTY, Visitor, assert_has, assert_shown, led, part};
use crate::server::{Server, TARGETS};

fn daily(server: &Server) {
    server.job("daily", &json!({ "cronExpression": "0 8 * * *", "timezone": "Europe/Paris" }));
}

fn job(server: &Server, key: &str) -> Value {
    server.get(&format!("/jobs/key:{key}")).expect(200)
}

fn pausing(server: &Server) {
    daily(server);
    let ana = Visitor::admin(server);
    assert_has(&ana.page("/jobs/daily/pause"), &["These runs will not happen", "In Europe/Paris.", "08:00 <span"]);

    let refused = ana.send("/jobs/daily/pause", &[("reason", "no"), ("until", "2030-01-02T03:04")]);
    assert_eq!(refused.status, 400);
    assert_has(
        &refused.text,
        &["value=\"no\"", "value=\"2030-01-02T03:04\"", "aria-invalid=\"true\"", "class=\"fault\""],
    );

    let chosen = ana.send("/jobs/daily/pause", &[("reason", "SMTP is down"), ("set", "tomorrow")]);
    assert_eq!(chosen.status, 200);
    assert_has(&chosen.text, &["value=\"SMTP is down\"", "T08:00\"", "The job resumes automatically at"]);
    assert_eq!(job(server, "daily")["status"], "active");

    let (place, said) = led(&ana.send("/jobs/daily/pause", &[("reason", "SMTP is down")]));
    assert_eq!((place.as_str(), said.as_str()), ("/jobs/daily", "+daily is paused."));
    assert_eq!(job(server, "daily")["pauseReason"], "SMTP is down");
    assert_has(&ana.page("/jobs/daily/pause"), &["Paused by", "SMTP is down", "Change reason", "<datalist"]);
    led(&ana.send("/jobs/daily/pause", &[("reason", "it is the network")]));
    assert_eq!(job(server, "daily")["pauseReason"], "it is the network");

    assert_has(&ana.page("/jobs/daily/resume"), &["No slots were missed", "Resuming does not change the schedule"]);
    let (_, said) = led(&ana.send("/jobs/daily/resume", &[("missed", "skip")]));
    assert_eq!(said, "+daily is active again.");
    assert_has(&ana.page("/jobs/daily/resume"), &["The job is already active"]);
    assert_eq!(ana.send("/jobs/daily/resume", &[]).status, 409);
}

#[test]
fn a_job_is_paused_and_resumed() {
    pausing(&Server::start());
}

#[test]
fn a_job_is_paused_and_resumed_on_postgres() {
    pausing(&Server::postgres(TARGETS));
}

#[test]
fn what_was_missed_is_run_once_if_wanted() {
    let server = Server::start();
    server.job("tick", &json!({ "cronExpression": "* * * * * *" }));
    server.patch("/jobs/key:tick/pause", &json!({ "reason": "for a moment" })).expect(200);
    let ana = Visitor::admin(&server);
    let seen = |_: &Value| ana.page("/jobs/tick/resume").contains("Run once now");
    server.until("/jobs/key:tick", seen);
    let (_, said) = led(&ana.send("/jobs/tick/resume", &[("missed", "fire_once")]));
    assert!(said.starts_with("+tick is active again. One run was created for the "), "{said}");
}

#[test]
fn a_job_runs_now_beside_or_behind_what_is_active() {
    let server = Server::start();
    server.job("long", &json!({ "target": "sleep", "payload": {"n": 12_345_678_901_234_567_890_u64} }));
    let ana = Visitor::admin(&server);
    let page = ana.page("/jobs/long/run-now");
    assert_has(
        &page,
        &["The run starts now.", "&#34;n&#34;: 12345678901234567890", "next scheduled run does not change"],
    );
    assert!(!page.contains("Queue"));

    let (place, said) = led(&ana.send("/jobs/long/run-now", &[("payload", "{ \"n\":12345678901234567890\r\n}")]));
    assert!(place.starts_with("/runs/") && said.starts_with("+long is running."), "{place} {said}");
    let first = place.trim_start_matches("/runs/").to_owned();
    server.until(&format!("/runs/{first}"), |run| run["status"] == "running");
    let page = ana.page("/jobs/long/run-now");
    assert_has(&page, &["recorded as skipped", &format!("href=\"/runs/{first}\""), "Queue", "Run anyway"]);

    let (place, said) = led(&ana.send("/jobs/long/run-now", &[]));
    assert!(said.starts_with('-') && said.contains(&first), "{said}");
    assert_eq!(server.get(&place).expect(200)["status"], "skipped");
    let (_, said) = led(&ana.send("/jobs/long/run-now", &[("how", "queue")]));
    assert!(said.starts_with("+long is queued"), "{said}");
    let (place, said) = led(&ana.send("/jobs/long/run-now", &[("how", "force"), ("payload", "{\"n\": 2}")]));
    assert!(said.starts_with("+long is running"), "{said}");
    assert_eq!(server.get(&place).expect(200)["payloadSnapshot"], json!({"n": 2}));

    let refused = ana.send("/jobs/long/run-now", &[("payload", "{\n  \"n\": x\n}"), ("note", "why not")]);
    assert_eq!(refused.status, 400);
    assert_has(&refused.text, &["at line 2 column 8", "&#34;n&#34;: x", "value=\"why not\""]);
}

#[test]
fn a_double_click_is_one_run() {
    let server = Server::start();
    server.job("a", &json!({}));
    let ana = Visitor::admin(&server);
    let (csrf_token, once) = (ana.csrf_token(), "the-same");
    let fields = [("csrf", csrf_token.as_str()), ("once", once)];
    let (first, second) = (ana.post_exactly("/jobs/a/run-now", &fields), ana.post_exactly("/jobs/a/run-now", &fields));
    assert_eq!(led(&first), led(&second));
}

#[test]
fn the_next_fire_is_moved_and_skipped() {
    let server = Server::start();
    daily(&server);
    let ana = Visitor::admin(&server);
    let before = job(&server, "daily")["nextRunAt"].as_str().unwrap().to_owned();
    assert_has(&ana.page("/jobs/daily/reschedule"), &["Next run, in Europe/Paris", "T08:00\"", "The next run is"]);

    let chosen = ana.send("/jobs/daily/reschedule", &[("nextRunAt", "2030-01-02T03:04"), ("set", "+1h")]);
    assert_has(
        &chosen.text,
        &["value=\"2030-01-02T04:04\"", "Only this run moves", "later runs, which are", "as scheduled"],
    );
    let past = ana.send("/jobs/daily/reschedule", &[("nextRunAt", "2020-01-02T03:04")]);
    assert_eq!(past.status, 400);
    assert_has(&past.text, &["must not be in the past", "value=\"2020-01-02T03:04\""]);
    let never = ana.send("/jobs/daily/reschedule", &[("nextRunAt", "soon"), ("reason", "late data")]);
    assert_has(&never.text, &["is not a time", "value=\"soon\"", "value=\"late data\""]);
    assert_eq!(job(&server, "daily")["nextRunAt"], before.as_str());

    let (_, said) = led(&ana.send("/jobs/daily/reschedule", &[("nextRunAt", "2030-01-02T03:04")]));
    assert_eq!(said, "+The next run of daily is at 2030-01-02 03:04 in Europe/Paris.");
    assert_eq!(job(&server, "daily")["nextRunAt"], "2030-01-02T02:04:00Z");
    assert_has(&ana.page("/jobs/daily/reschedule"), &["It was moved before"]);

    let shown = ana.post_exactly("/jobs/daily/skip-next/preview", &[("csrf", &ana.csrf_token()), ("count", "12")]);
    assert_eq!(shown.status, 200);
    assert_has(&shown.text, &["These runs are skipped", "and 4 more until", "Next run after that"]);
    assert_eq!(ana.send("/jobs/daily/skip-next", &[("count", "0")]).status, 400);
    assert_has(&ana.send("/jobs/daily/skip-next", &[("count", "many")]).text, &["value=\"many\"", "class=\"fault\""]);
    let (_, said) = led(&ana.send("/jobs/daily/skip-next", &[("count", "2")]));
    assert_eq!(said, "+Skipped the next 2 runs of daily.");
    let runs = server.get("/runs?jobKey=daily&status=skipped").expect(200);
    assert_eq!(runs["items"].as_array().unwrap().len(), 2);

    led(&ana.send("/jobs/daily/pause", &[("reason", "no more")]));
    assert_has(&ana.page("/jobs/daily/reschedule"), &["There is no next run to move: the job is paused"]);
    assert_has(&ana.page("/jobs/daily/skip-next"), &["There is no next run to skip: the job is paused"]);
}

#[test]
fn who_retires_a_job_that_ran_names_it() {
    let server = Server::start();
    server.job("idle", &json!({}));
    server.job("used", &json!({}));
    server.post("/jobs/key:used/run-now", &json!({})).expect(202);
    let ana = Visitor::admin(&server);
    assert!(!ana.page("/jobs/idle/retire").contains("to confirm"));
    assert_eq!(ana.send("/jobs/idle/retire", &[("reason", "x")]).status, 400);
    let (_, said) = led(&ana.send("/jobs/idle/retire", &[("reason", "not needed")]));
    assert_eq!(said, "+idle is retired. Its history is kept.");

    assert_has(&ana.page("/jobs/used/retire"), &["This is final", "to confirm"]);
    let refused = ana.send("/jobs/used/retire", &[("confirm", "Used")]);
    assert_eq!(refused.status, 400);
    assert_has(&refused.text, &["Type used to confirm.", "value=\"Used\""]);
    assert_eq!(job(&server, "used")["status"], "active");
    led(&ana.send("/jobs/used/retire", &[("confirm", "used")]));
    assert_eq!(job(&server, "used")["status"], "retired");
    for action in ["pause", "resume", "run-now", "reschedule", "skip-next", "retire", "backfill"] {
        assert_eq!(ana.get(&format!("/jobs/used/{action}")).status, 409, "{action}");
        assert_eq!(ana.get(&format!("/jobs/nobody/{action}")).status, 404, "{action}");
    }
}

#[test]
fn slots_that_have_gone_by_are_run() {
    let server = Server::start();
    // Hourly, but on a day that is not today: a slot of its own would be one run more.
    server.job("hourly", &json!({ "cronExpression": "0 0-2 1 1 *", "target": "sleep", "timezone": "Asia/Tokyo" }));
    let ana = Visitor::admin(&server);
    assert_has(&ana.page("/jobs/hourly/backfill"), &["In Asia/Tokyo.", "Preview slots"]);
    let range = [("from", "2026-01-01T00:00"), ("to", "2026-01-01T02:00"), ("reason", "lost data")];
    let refused = ana.send("/jobs/hourly/backfill", &[("from", "2026-01-02T00:00"), ("to", "2026-01-01T00:00")]);
    assert_eq!(refused.status, 400);
    assert_has(&refused.text, &["must not be before", "value=\"2026-01-02T00:00\""]);
    let planned = ana.send("/jobs/hourly/backfill", &range);
    assert_has(
        &planned.text,
        &["3 slots will each get a run.", "Start backfill of 3 slots", "value=\"lost data\"", "will run"],
    );
    assert_eq!(server.get("/runs?jobKey=hourly").expect(200)["items"], json!([]));

    let begin: Vec<_> = range.iter().copied().chain([("begin", "yes")]).collect();
    let (place, said) = led(&ana.send("/jobs/hourly/backfill", &begin));
    assert_eq!(
        (place.as_str(), said.as_str()),
        ("/jobs/hourly/backfills", "+Started the backfill of hourly: 3 slots to run.")
    );
    server.until("/runs?jobKey=hourly&status=running", |runs| !runs["items"].as_array().unwrap().is_empty());
    let page = ana.page(&place);
    assert_has(&page, &["1 running", "2 left", "3 total", "lost data", "/stop\""]);
    assert_has(
        &ana.send("/jobs/hourly/backfill", &range).text,
        &["1 slot already has a run and is skipped.", ">skipped<"],
    );

    let stop = page.split("action=\"").find(|part| part.contains("/stop\"")).unwrap().split('"').next().unwrap();
    let (_, said) = led(&ana.post_exactly(stop, &[("csrf", &ana.csrf_token())]));
    assert_eq!(said, "+The backfill is stopped. 2 slots will not run.");
    assert_has(&ana.page(&place), &["Stopped", "1 running"]);
}

#[test]
fn a_job_that_changed_meanwhile_is_looked_at_again() {
    let server = Server::start();
    daily(&server);
    let ana = Visitor::admin(&server);
    let stale = [("csrf", &*ana.csrf_token()), ("revision", "1"), ("reason", "too late")];
    server.patch("/jobs/key:daily/pause", &json!({ "reason": "somebody was faster" })).expect(200);
    let refused = ana.post_exactly("/jobs/daily/pause", &stale);
    assert_eq!(refused.status, 412);
    assert_has(&refused.text, &["has changed in the meantime", "somebody was faster", "value=\"too late\""]);
    assert_eq!(job(&server, "daily")["pauseReason"], "somebody was faster");
}

#[test]
fn only_who_may_acts_and_only_with_their_own_form() {
    let server = Server::start();
    daily(&server);
    let (eve, bob) = (Visitor::sign_in(&server, "viewer"), Visitor::sign_in(&server, "operator"));
    let eves = eve.csrf_token();
    let pages = ["pause", "resume", "run-now", "reschedule", "skip-next", "retire", "backfill"];
    let paths = pages.iter().map(|action| format!("/jobs/daily/{action}"));
    for path in paths.chain(["/bulk/pause".to_owned(), "/bulk/resume".to_owned()]) {
        assert_eq!(eve.get(&path).status, 403, "{path}");
        assert_eq!(eve.post_exactly(&path, &[("csrf", &eves), ("reason", "let me")]).status, 403, "{path}");
        assert_eq!(
            bob.post_exactly(&path, &[("csrf", &eves), ("reason", "let me")]).status,
            403,
            "{path} with the token of another session"
        );
        assert_eq!(bob.post_exactly(&path, &[("reason", "let me")]).status, 403, "{path} without a CSRF token");
    }
    assert_eq!(bob.get("/jobs/daily/pause").status, 200);
    assert_eq!(bob.get("/jobs/daily/retire").status, 403);
    assert_has(&eve.page("/jobs/daily/backfills"), &["disabled title=\"Requires the operator role"]);
    assert_eq!(job(&server, "daily")["revision"], 1);
}

#[test]
fn text_stays_text() {
    let server = Server::start();
    server.job(NASTY, &json!({ "payload": {"text": NASTY}, "cronExpression": "@hourly" }));
    let ana = Visitor::admin(&server);
    let place = format!("/jobs/{}", part(NASTY));
    for action in ["resume", "run-now", "reschedule", "skip-next", "retire", "backfill", "backfills"] {
        assert_shown(&ana.page(&format!("{place}/{action}")), NASTY);
    }
    let fields = [("reason", NASTY), ("until", NASTY), ("from", NASTY), ("note", NASTY), ("payload", NASTY)];
    for action in ["pause", "reschedule", "skip-next", "backfill", "run-now"] {
        let refused = ana.send(&format!("{place}/{action}"), &[&fields[..], &[("count", NASTY)]].concat());
        assert_eq!(refused.status, 400, "{action}");
        assert_shown(&refused.text, NASTY);
    }
    led(&ana.send(&format!("{place}/pause"), &[("reason", NASTY)]));
    assert_shown(&ana.page(&format!("{place}/pause")), NASTY);
    assert_shown(&ana.page("/jobs"), NASTY);
    assert_shown(&ana.page(&format!("/bulk/resume?key={}", part(NASTY))), NASTY);
}
