//! Making jobs and versions, and importing a crontab.

use serde_json::json;

use super::visitor::{Visitor, hidden};
use crate::server::{Server, TARGETS};

const NASTY: &str = "<script>\"'& \u{202e}abc 🔔";

/// A form that says enough.
fn filled<'f>(more: &[(&'f str, &'f str)]) -> Vec<(&'f str, &'f str)> {
    let usual = [
        ("jobKey", "daily"),
        ("target", "print"),
        ("scheduleType", "recurring"),
        ("how", "cron"),
        ("cronExpression", "0 8 * * mon-fri"),
        ("timezone", "Europe/Paris"),
    ];
    let kept = usual.into_iter().filter(|(name, _)| !more.iter().any(|(own, _)| own == name));
    kept.chain(more.iter().copied()).collect()
}

fn makes_a_job(server: &Server) {
    // Its targets are known a moment after it listens.
    server.until("/instances", |list| list["items"].as_array().is_some_and(|items| !items.is_empty()));
    let admin = Visitor::admin(server);
    let page = admin.get("/new");
    assert_eq!(page.status, 200, "{}", page.text);
    for part in ["<h1>New job</h1>", "value=\"print\"", "Europe/Paris", "Weekdays 9 AM", "id=\"preview\""] {
        assert!(page.text.contains(part), "{part} is not in {}", page.text);
    }
    let made = admin.post(
        "/new",
        &filled(&[
            ("payload", "{\"n\": 12345678901234567890.10}"),
            ("labels", "team=ops\r\na=b"),
            ("policies/timeout", "5m"),
            ("policies/retry/maxAttempts", "3"),
            ("policies/overlap", "queue"),
            ("startAt", "2027-01-01 09:00"),
        ]),
    );
    assert_eq!((made.status, made.headers["location"].as_str()), (303, "/jobs/daily"), "{}", made.text);
    let job = server.get("/jobs/key:daily");
    assert!(job.text.contains("12345678901234567890.10"), "{}", job.text);
    let job = job.expect(200);
    assert_eq!(job["labels"], json!({"team": "ops", "a": "b"}));
    assert_eq!(job["startAt"], "2027-01-01T08:00:00Z");
    assert_eq!(
        [&job["policies"]["timeout"], &job["policies"]["overlap"], &job["policies"]["retry"]["maxAttempts"]],
        [&json!("PT5M"), &json!("queue"), &json!(3)]
    );
    // A second click on the same form gets the same response.
    for _ in 0..2 {
        let taken = admin.post("/new", &filled(&[("once", "a-word")]));
        assert_eq!(taken.status, 409);
        assert!(
            taken.text.contains("Job <code dir=\"auto\">daily</code> already exists: it is active at version 1."),
            "{}",
            taken.text
        );
    }
}

#[test]
fn a_form_makes_a_job_on_sqlite() {
    makes_a_job(&Server::start());
}

#[test]
fn a_form_makes_a_job_on_postgresql() {
    makes_a_job(&Server::postgres(TARGETS).registered());
}

#[test]
fn every_way_to_say_when_makes_a_job() {
    let server = Server::start();
    let admin = Visitor::admin(&server);
    for (key, more, member, expected) in [
        ("simple", vec![("how", "simple"), ("every", "weekdays"), ("time", "07:30")], "cronExpression", "30 7 * * 1-5"),
        ("line", vec![("how", "crontab"), ("line", "5 4 * * * /usr/bin/backup")], "cronExpression", "5 4 * * *"),
        (
            "once",
            vec![("scheduleType", "one_time"), ("runAt", "2099-11-07T09:30"), ("timezone", "Asia/Tokyo")],
            "runAt",
            "2099-11-07T00:30:00Z",
        ),
        (
            "waits",
            vec![
                ("scheduleType", "after"),
                ("afterJob", "simple"),
                ("afterOthers", "line any\r\n once "),
                ("afterGroup", "local_date"),
                ("afterWithin", "90m"),
            ],
            "scheduleText",
            "When simple and once have succeeded and line has ended on the same local date, at most 1h 30m after the first",
        ),
    ] {
        let more: Vec<_> = more.into_iter().chain([("jobKey", key)]).collect();
        let made = admin.post("/new", &filled(&more));
        assert_eq!(made.status, 303, "{}", made.text);
        assert_eq!(server.get(&format!("/jobs/key:{key}")).expect(200)[member], expected);
    }
    let page = admin.get("/jobs/waits/new-version").text;
    for part in ["line any\nonce success</textarea>", "value=\"1h 30m\"", "value=\"local_date\" selected"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let chain = admin.get("/jobs/once").text;
    for part in
        ["waits starts when line ends and once succeeds and simple succeeds.", "href=\"/jobs/simple\"", "c-this"]
    {
        assert!(chain.contains(part), "{part}: {chain}");
    }
    let job = server.get("/jobs/key:line").expect(200);
    assert_eq!(
        (&job["payload"], &job["description"]),
        (&json!({"command": "/usr/bin/backup"}), &json!("/usr/bin/backup"))
    );
}

#[test]
fn what_is_refused_is_shown_again_with_why() {
    let server = Server::start();
    let admin = Visitor::admin(&server);
    let wrong = filled(&[
        ("jobKey", ""),
        ("target", ""),
        ("anotherTarget", "prnt"),
        ("cronExpression", "61 25 * * *"),
        ("timezone", "Europe/Pari"),
        ("policies/timeout", "soon"),
        ("description", NASTY),
        ("labels", NASTY),
    ]);
    let page = admin.post("/new", &wrong);
    assert_eq!(page.status, 400);
    for part in [
        "is required",
        "unknown target `prnt`",
        "did you mean `Europe/Paris`",
        "id=\"f-policies-timeout\" name=\"policies/timeout\" aria-invalid=\"true\"",
        "is not a duration",
        "line 1: use the format name=value",
        "61 is outside 0-59",
        "25 is outside 0-23",
        "value=\"61 25 * * *\"",
        "value=\"prnt\"",
        "🔔",
    ] {
        assert!(page.text.contains(part), "{part} is not in {}", page.text);
    }
    assert!(!page.text.contains("<script>\"") && !page.text.contains(NASTY), "{}", page.text);
    let payload = admin.post("/new", &filled(&[("payload", "{\n  a}")]));
    assert_eq!(payload.status, 400);
    assert!(payload.text.contains("line 2, column 3"), "{}", payload.text);
    // 02:30 does not exist on that day, 01:30 happens twice on the other.
    for (time, part) in [("2099-03-08T02:30", "does not exist"), ("2099-11-01T01:30", "twice")] {
        let once = [("scheduleType", "one_time"), ("runAt", time), ("timezone", "America/New_York")];
        let page = admin.post("/new", &filled(&once));
        assert_eq!(page.status, 400, "{time}");
        assert!(page.text.contains(part), "{time}: {}", page.text);
    }
    let second = [("scheduleType", "one_time"), ("runAt", "2099-11-01T01:30"), ("offset", "-05:00")];
    let made = admin.post("/new", &filled(&[&second[..], &[("timezone", "America/New_York")]].concat()));
    assert_eq!(made.status, 303, "{}", made.text);
}

#[test]
fn a_panel_tells_what_a_form_means() {
    let server = Server::start();
    let admin = Visitor::admin(&server);
    let preview = |more: &[(&str, &str)]| {
        let reply = admin.post("/new/preview", &filled(more));
        assert_eq!(reply.status, 200, "{}", reply.text);
        assert!(reply.text.starts_with("<aside") && reply.text.contains("id=\"preview\""), "{}", reply.text);
        reply.text
    };
    let new_york = preview(&[("cronExpression", "30 2 * * *"), ("timezone", "America/New_York")]);
    for part in
        ["Every day at 02:30", "02:30 does not exist", "clocks go forward, 02:00 EST → 03:00 EDT", "it is skipped"]
    {
        assert!(new_york.contains(part), "{part} is not in {new_york}");
    }
    assert_eq!(new_york.matches("<tr><td><time").count(), 10, "{new_york}");
    let both = preview(&[("cronExpression", "0 0 13 * fri")]);
    assert!(both.contains("it runs when either matches"), "{both}");
    let wrong = preview(&[("cronExpression", "0 25 * * *"), ("jobKey", "")]);
    assert!(wrong.contains("0 <mark>25</mark> * * *") && wrong.contains("0-23"), "{wrong}");
    assert!(!wrong.contains("is required"), "{wrong}");
    // Without JavaScript the preview keeps the input.
    let page = admin.post("/new", &filled(&[("do", "preview"), ("description", "kept")]));
    assert_eq!(page.status, 200);
    assert!(page.text.contains("value=\"kept\"") && page.text.contains("At 08:00 on weekdays"), "{}", page.text);
    let template = admin.post("/new", &filled(&[("how", "simple"), ("use", "0 9 * * *")]));
    assert!(template.text.contains("Every day at 09:00"), "{}", template.text);
}

#[test]
fn a_form_makes_the_next_version_of_what_differs() {
    let server = Server::start();
    let admin = Visitor::admin(&server);
    server.job(
        "daily",
        &json!({
            "cronExpression": "0 8 * * 1-5", "timezone": "Europe/Paris", "payload": {"a": 1}, "description": NASTY,
            "policies": {"timeout": "PT1H"},
        }),
    );
    let page = admin.get("/jobs/daily/new-version");
    assert_eq!(page.status, 200);
    for part in ["<h1>Edit ", "value=\"0 8 * * 1-5\"", "No changes yet.", "value=\"1h\"", "Create version 2"] {
        assert!(page.text.contains(part), "{part} is not in {}", page.text);
    }
    assert!(!page.text.contains(NASTY));
    let revision = hidden(&page.text, "revision");
    let edit = |more: &[(&'static str, &'static str)]| {
        let own = [
            ("cronExpression", "0 8 * * 1-5"),
            ("payload", "{\"a\":1}"),
            ("description", NASTY),
            ("policies/timeout", "1h"),
            ("version", "1"),
            ("revision", revision.as_str()),
        ];
        let kept = own.into_iter().filter(|(name, _)| !more.iter().any(|(named, _)| named == name));
        let own: Vec<(&str, &str)> = kept.chain(more.iter().copied()).collect();
        filled(&own)
    };
    let same = admin.post("/jobs/daily/new-version", &edit(&[]));
    assert_eq!(same.status, 400);
    assert!(same.text.contains("There are no changes from version 1."), "{}", same.text);
    let change = edit(&[("cronExpression", "30 7 * * 1-5"), ("policies/timeout", ""), ("reason", "earlier")]);
    let preview = admin.post("/jobs/daily/new-version/preview", &change).text;
    for part in
        ["<del dir=\"auto\">0 8 * * 1-5</del>", "<ins dir=\"auto\">30 7 * * 1-5</ins>", "policies.timeout", "Next run"]
    {
        assert!(preview.contains(part), "{part} is not in {preview}");
    }
    let made = admin.post("/jobs/daily/new-version", &change);
    assert_eq!((made.status, made.headers["location"].as_str()), (303, "/jobs/daily"), "{}", made.text);
    let job = server.get("/jobs/key:daily").expect(200);
    assert_eq!((&job["version"], &job["cronExpression"]), (&json!(2), &json!("30 7 * * 1-5")));
    assert_eq!((&job["policies"]["timeout"], &job["description"]), (&json!("PT15M"), &json!(NASTY)));
    // A form that was opened before is refused.
    let late = admin.post("/jobs/daily/new-version", &edit(&[("cronExpression", "0 6 * * *")]));
    assert_eq!(late.status, 412, "{}", late.text);
    assert!(late.text.contains("href=\"/jobs/daily/new-version\">Reload the form"), "{}", late.text);
    assert_eq!(admin.get("/jobs/nothing/new-version").status, 404);
}

#[test]
fn a_paused_job_stays_paused_unless_it_is_activated() {
    let server = Server::start();
    let admin = Visitor::admin(&server);
    server.job("daily", &json!({}));
    server.patch("/jobs/key:daily/pause", &json!({"reason": "not now"})).expect(200);
    let form = |more: &[(&'static str, &'static str)]| filled(&[&[("timezone", "")], more].concat());
    let preview = admin.post("/jobs/daily/new-version/preview", &form(&[])).text;
    assert!(preview.contains("none while paused"), "{preview}");
    assert_eq!(admin.post("/jobs/daily/new-version", &form(&[])).status, 303);
    assert_eq!(server.get("/jobs/key:daily").expect(200)["status"], "paused");
    assert_eq!(admin.post("/jobs/daily/new-version", &form(&[("activate", "yes")])).status, 303);
    assert_eq!(server.get("/jobs/key:daily").expect(200)["status"], "active");
}

#[test]
fn a_copy_begins_as_its_original() {
    let server = Server::start();
    let admin = Visitor::admin(&server);
    server
        .job("nightly", &json!({"cronExpression": "30 2 * * *", "timezone": "Asia/Tokyo", "labels": {"team": "ops"}}));
    let page = admin.get("/new?from=nightly");
    for part in ["value=\"nightly-copy\"", "value=\"30 2 * * *\"", "value=\"Asia/Tokyo\"", "team=ops"] {
        assert!(page.text.contains(part), "{part} is not in {}", page.text);
    }
    assert_eq!(admin.get("/new?from=nothing").status, 404);
}

#[test]
fn a_schedule_that_its_runs_are_too_slow_for_is_told() {
    let slow = "[[target]]\nlabel = \"slow\"\ntype = \"command\"\nargv = [\"sleep\", \"1.1\"]\n";
    let server = Server::with(&format!("{TARGETS}{slow}")).registered();
    server.job("heavy", &json!({ "target": "slow" }));
    for _ in 0..5 {
        server.post("/jobs/key:heavy/run-now", &json!({ "force": true })).expect(202);
    }
    let all = |runs: &serde_json::Value| runs["items"].as_array().is_some_and(|items| items.len() == 5);
    server.until("/runs?jobKey=heavy&status=succeeded", all);
    let admin = Visitor::admin(&server);
    let preview = |expression| {
        admin
            .post("/jobs/heavy/new-version/preview", &filled(&[("target", "slow"), ("cronExpression", expression)]))
            .text
    };
    assert!(preview("* * * * * *").contains("they would overlap"), "{}", preview("* * * * * *"));
    assert!(!preview("* * * * *").contains("they would overlap"));
}

#[test]
fn an_earlier_version_is_restored_as_the_next() {
    let server = Server::start();
    server.job("daily", &json!({ "cronExpression": "0 8 * * *", "labels": {"team": "ops"} }));
    server.patch("/jobs/key:daily", &json!({ "cronExpression": "0 9 * * *", "labels": {} })).expect(200);
    let admin = Visitor::admin(&server);
    let job = admin.page("/jobs/daily");
    assert!(job.contains("href=\"/jobs/daily/rollback/1\""), "{job}");
    assert!(job.contains("not yet as v2"), "{job}");
    assert!(!job.contains("rollback/2"), "the living version needs no restoring: {job}");
    let confirm = admin.page("/jobs/daily/rollback/1");
    for part in
        ["<b>cronExpression</b>", "<del dir=\"auto\">0 9 * * *</del>", "Roll back to version 1", "new-version?from=1"]
    {
        assert!(confirm.contains(part), "{part} is not in {confirm}");
    }
    assert!(confirm.contains("everbell jobs rollback daily --to 1 --yes"), "{confirm}");
    assert_eq!(admin.get("/jobs/daily/rollback/7").status, 404);
    assert_eq!(admin.get("/jobs/daily/rollback/none").status, 404);
    let page = admin.page("/jobs/daily/new-version?from=1");
    for part in ["value=\"0 8 * * *\"", "team=ops", "Changes from version 2", "<del dir=\"auto\">0 9 * * *</del>"] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    assert_eq!(admin.get("/jobs/daily/new-version?from=7").status, 404);
    admin.post("/jobs/daily/rollback/1", &[("reason", "too late")]);
    let job = server.get("/jobs/key:daily").expect(200);
    assert_eq!((&job["version"], &job["cronExpression"]), (&json!(3), &json!("0 8 * * *")));
    assert_eq!(job["labels"], json!({"team": "ops"}));
    assert!(
        admin
            .page("/jobs/daily/rollback/1")
            .contains("already has the content of version 1: there is nothing to change")
    );
}

#[test]
fn a_job_of_the_configuration_is_said_to_be_one() {
    let job = "[[job]]\njob_key = \"owned\"\ntarget = \"print\"\ncron_expression = \"@daily\"\n";
    let server = Server::with(&format!("{TARGETS}{job}"));
    let page = Visitor::admin(&server).get("/jobs/owned/new-version");
    assert!(
        page.text.contains("This job is declared <span dir=\"auto\">in the configuration file of everbell</span>"),
        "{}",
        page.text
    );
}

#[test]
fn only_admins_make_jobs_and_only_with_their_own_forms() {
    let server = Server::start();
    server.job("daily", &json!({}));
    for role in ["viewer", "operator"] {
        let token = server.token_of(role);
        let other = Visitor::new(&server, &token);
        for path in ["/new", "/import", "/jobs/daily/new-version"] {
            let page = other.get(path);
            assert_eq!(page.status, 403, "{role} {path}");
            assert!(page.text.contains("admin"), "{}", page.text);
            assert_eq!(other.post(path, &filled(&[("do", "create"), ("crontab", "@daily a")])).status, 403);
        }
        assert_eq!(other.post("/new/preview", &filled(&[])).status, 403);
    }
    let admin = Visitor::admin(&server);
    for path in ["/new", "/import", "/jobs/daily/new-version", "/new/preview"] {
        assert_eq!(admin.post_exactly(path, &filled(&[("jobKey", "unsealed")])).status, 403, "{path}");
        assert_eq!(admin.post_exactly(path, &filled(&[("jobKey", "unsealed"), ("csrf", "wrong")])).status, 403);
    }
    server.get("/jobs/key:unsealed").problem(404, "NotFound");
    let stranger = server.raw("GET", "/new", &[], b"");
    assert_eq!((stranger.status, stranger.headers["location"].as_str()), (303, "/sign-in?to=%2Fnew"));
}

#[test]
fn a_target_is_chosen_by_who_makes_the_job() {
    let server = Server::start();
    let admin = Visitor::admin(&server);
    let page = admin.page("/new");
    assert!(page.contains("<option value=\"\" selected>Choose a target…</option>"), "{page}");
    let none = filled(&[("target", ""), ("anotherTarget", "")]);
    let refused = admin.post("/new", &none);
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert!(refused.text.contains("id=\"f-target-fault\" dir=\"auto\">choose a target</p>"), "{}", refused.text);
    let written = filled(&[("target", " "), ("anotherTarget", "print")]);
    assert_eq!(admin.post("/new", &written).status, 303);
    // Who copies a job comes with its target, and of one there is no choice.
    assert!(!admin.page("/new?from=daily").contains("Choose a target…"));
    let server = Server::with("[[target]]\nlabel = \"only\"\ntype = \"log\"\n").registered();
    let page = Visitor::admin(&server).page("/new");
    assert!(page.contains("<option value=\"only\" selected>") && !page.contains("Choose a target…"), "{page}");
}
