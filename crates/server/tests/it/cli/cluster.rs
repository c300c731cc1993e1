//! `everbell next|targets|instances|tokens|audit|status|api`.

use serde_json::{Value, json};

use super::{data, everbell, json as printed, loose, masked, on_terminal, prepared, refused, registered};
use crate::binary::ran;
use crate::server::{Server, TARGETS};

#[test]
fn next_runs_of_all_jobs_are_listed() {
    let server = Server::start();
    let at =
        |cron: &str, zone: &str| json!({"cronExpression": cron, "timezone": zone, "startAt": "2099-01-01T00:00:00Z"});
    server.job("b", &at("0 8 * * *", "Europe/Paris"));
    server.job("a", &at("30 7 1,3 * *", "UTC"));
    server.post("/jobs/key:a/reschedule", &json!({"nextRunAt": "2098-12-01T00:00:00Z"})).expect(200);
    let shown = on_terminal(&server, 80, &["next", "--limit", "4"]).stdout;
    assert_eq!(
        masked(&shown),
        "WHEN                     LEFT    JOB KEY  TARGET  NOTE\n\
         2098-12-01 CLOCK +00:00  SPAN  a        print   moved from Thu 2099-01-01 07:…\n\
         2099-01-01 CLOCK +01:00  SPAN  b        print\n\
         2099-01-02 CLOCK +01:00  SPAN  b        print\n\
         2099-01-03 CLOCK +01:00  SPAN  b        print\n"
    );
    let one = printed(&server, &["next", "b", "--limit", "1"]);
    let fire = json!({"at": "2099-01-01T07:00:00Z", "local": "2099-01-01T08:00:00+01:00[Europe/Paris]", "jobKey": "b", "target": "print"});
    assert_eq!(one["items"], json!([fire]));
    assert_eq!(data(&server, &["next", "--within", "1h"]), "");
    assert_eq!(data(&server, &["next", "-n", "2", "-o", "name"]), "a\nb\n");
    assert!(
        refused(&server, &["next", "nope"], 3)
            .starts_with("error: cannot list the next runs of job `nope`: there is no")
    );
}

#[test]
fn runs_that_next_leaves_out_are_mentioned() {
    let server = Server::start();
    server.job("pulse", &json!({"cronExpression": "* * * * *"}));
    assert_eq!(on_terminal(&server, 80, &["next", "-n", "3"]).stderr, "");
    let cut = on_terminal(&server, 80, &["next", "--within", "24h"]);
    assert_eq!(
        (cut.stdout.lines().count(), cut.stderr.as_str()),
        (21, "20 shown; raise --limit to see more within 1d\n")
    );
    assert_eq!(printed(&server, &["next", "--within", "1h", "-n", "5"])["more"], true);
    let all = on_terminal(&server, 80, &["next", "--within", "10m"]);
    assert_eq!(
        (all.stderr.as_str(), printed(&server, &["next", "--within", "10m"])["more"].clone()),
        ("", json!(false))
    );
    server.job("org-briefing", &json!({"scope": "per_org"}));
    server.put("/orgs/acme", &json!({"timezone": "Asia/Tokyo"})).expect(201);
    server.until("/jobs/key:org-briefing/orgs", |list| list["items"][0]["nextRunAt"].is_string());
    let first = printed(&server, &["jobs", "show", "org-briefing"]);
    assert_eq!((first["nextOrgId"].as_str(), first["nextRunAt"].is_string()), (Some("acme"), true));
    let listed = printed(&server, &["next", "org-briefing", "--quiet"]);
    assert_eq!((&listed["items"][0]["at"], &listed["items"][0]["orgId"]), (&first["nextRunAt"], &json!("acme")));
    let alone = on_terminal(&server, 120, &["next", "org-briefing"]);
    assert_eq!(alone.stderr, everbell(&server, &["next", "org-briefing"]).stderr);
    let named = everbell(&server, &["next", "org-briefing"]);
    assert!(named.stdout.contains("for org acme"), "{}", named.stdout);
    assert_eq!(
        (named.code, named.stderr.as_str()),
        (Some(0), "job org-briefing fires for each org at its own local time; see when: everbell orgs show ORG\n")
    );
}

/// Revokes the last admin, on both databases.
fn last_admin(server: &Server) {
    let warning = "warning: admin is the last admin token: without it, no client can create tokens or jobs\n  \
                   hint: create another one first: everbell tokens create NAME --role admin; or regain access later by \
                   starting a server with EVERBELL_ADMIN_TOKEN\n";
    let asked = refused(server, &["tokens", "revoke", "admin"], 2);
    assert!(asked.starts_with(warning) && asked.contains("everbell tokens revoke admin --yes"), "{asked}");
    let problem = server.delete("/tokens/admin").problem(409, "Conflict");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("is the last admin") && detail.contains("EVERBELL_ADMIN_TOKEN"), "{detail}");
    // One that has ended or was revoked is none.
    server.post("/tokens", &json!({"name": "gone", "role": "admin"})).expect(201);
    server.delete("/tokens/gone").expect(204);
    server.delete("/tokens/admin").problem(409, "Conflict");
    let other = data(server, &["tokens", "create", "other", "--role", "admin"]);
    assert_eq!(data(server, &["tokens", "revoke", "admin", "--yes"]), "⊘ Revoked token admin\n");
    let mut last = prepared(server, &["tokens", "revoke", "other", "--yes"]);
    let last = ran(last.env("EVERBELL_TOKEN", other.trim()).output().unwrap());
    assert_eq!((last.code, last.stdout.as_str()), (Some(0), "⊘ Revoked token other\n"));
    assert_eq!(last.stderr, warning.replace("admin is", "other is"));
}

#[test]
fn revoking_the_last_admin_needs_confirmation() {
    last_admin(&Server::start());
}

#[test]
fn revoking_the_last_admin_needs_confirmation_on_postgres() {
    last_admin(&Server::postgres(TARGETS));
}

#[test]
fn targets_are_listed_and_tried() {
    let server = registered();
    assert_eq!(
        on_terminal(&server, 80, &["targets"]).stdout,
        "TARGET  TYPE     SERVED BY   JOBS  RUNS  FAILED  FAILED %  P95  WAITING JOBS\n\
         fail    command  1 instance     0     0       0         -    -  -\n\
         print   log      1 instance     0     0       0         -    -  -\n\
         sleep   command  1 instance     0     0       0         -    -  -\n"
    );
    assert_eq!(
        data(&server, &["targets"]),
        "fail\tcommand\tfalse\t1\t0\t0\t0\t\t\t\nprint\tlog\t\t1\t0\t0\t0\t\t\t\nsleep\tcommand\tsleep\t1\t0\t0\t0\t\t\t\n"
    );
    assert_eq!(data(&server, &["targets", "list", "--json"]), format!("{}\n", server.get("/targets").text));
    let tried = everbell(&server, &["targets", "try", "print", "--payload", "{\"a\":1}", "--wait"]);
    assert_eq!((tried.code, masked(&tried.stdout)), (Some(0), "✓ run ID succeeded in SPAN\n".to_owned()));
    assert_eq!(everbell(&server, &["targets", "try", "fail", "--wait"]).code, Some(6));
    let unknown = refused(&server, &["targets", "try", "nope"], 3);
    assert!(
        unknown.starts_with("error: cannot try target `nope`: ")
            && unknown.ends_with("hint: list them: everbell targets\n")
    );
    let payload = refused(&server, &["targets", "try", "print", "--payload", "{a}"], 2);
    assert!(payload.starts_with("error: --payload: invalid JSON: key must be a string at column 2\n"), "{payload}");
}

#[test]
fn instances_drain_and_come_back() {
    let server = registered();
    assert_eq!(data(&server, &["instances", "-o", "name"]).lines().count(), 1);
    let id = data(&server, &["instances", "-o", "name"]).trim().to_owned();
    assert!(on_terminal(&server, 80, &["instances"]).stdout.contains("● alive"));
    assert!(on_terminal(&server, 120, &["instances"]).stdout.starts_with("INSTANCE "));
    assert_eq!(
        masked(&data(&server, &["instances", "drain", &id])),
        "✓ Instance ID is draining: it finishes its runs and accepts no others\n"
    );
    assert!(on_terminal(&server, 80, &["instances"]).stdout.contains("⚠ draining"));
    assert_eq!(masked(&data(&server, &["instances", "undrain", &id])), "✓ Instance ID accepts work again\n");
    assert_eq!(
        refused(&server, &["instances", "drain", "nope"], 3),
        "error: cannot drain instance `nope`: there is no instance `nope`\n  hint: list them: everbell instances\n"
    );
}

#[test]
fn a_token_goes_alone_into_a_pipe() {
    let server = Server::start();
    let token = data(&server, &["tokens", "create", "ci", "--role", "viewer"]);
    assert!(token.starts_with("evb_") && token.lines().count() == 1, "{}", token.len());
    let file = server.folder.path().join("ci.token");
    std::fs::write(&file, &token).unwrap();
    let mut as_viewer = prepared(&server, &["status", "--json", "--token-file", "ci.token"]);
    let status: Value = serde_json::from_str(&ran(as_viewer.output().unwrap()).stdout).unwrap();
    assert_eq!((&status["actor"], &status["role"]), (&json!("token:ci"), &json!("viewer")));
    let denied = refused(&server, &["tokens", "--token-file", "ci.token"], 4);
    assert!(
        denied.starts_with("error: cannot list tokens: ")
            && denied.contains("the role of the token in `ci.token` is too low"),
        "{denied}"
    );
    let exists = refused(&server, &["tokens", "create", "ci", "--role", "viewer"], 5);
    assert!(exists.starts_with("error: cannot create token `ci`: "), "{exists}");
    let shown = on_terminal(&server, 80, &["tokens"]).stdout;
    assert!(
        loose(&shown)
            .starts_with("NAME ROLE STATE CREATED EXPIRES LAST USED\nadmin admin ✓ valid DATE CLOCK +00:00 never ")
    );
    assert!(refused(&server, &["tokens", "revoke", "ci"], 2).contains("everbell tokens revoke ci --yes"));
    assert_eq!(data(&server, &["tokens", "revoke", "ci", "--yes"]), "⊘ Revoked token ci\n");
    assert!(data(&server, &["tokens"]).contains("ci\tviewer\trevoked\t"));
    let role = refused(&server, &["tokens", "create", "x", "--role", "king"], 2);
    assert!(role.contains("[possible values: viewer, operator, admin]"), "{role}");
}

#[test]
fn audit_trail_and_status_are_shown() {
    let server = Server::start();
    server.job("daily-briefing", &json!({}));
    server.post("/jobs/key:daily-briefing/pause", &json!({"reason": "SMTP down"})).expect(200);
    let trail = on_terminal(&server, 80, &["audit", "--job", "daily-briefing"]);
    assert_eq!(
        loose(&trail.stdout),
        "TIME ACTOR ACTION OBJECT REASON\n\
         DATE CLOCK +00:00 token:admin job.pause job:daily-brief… SMTP down\n\
         DATE CLOCK +00:00 token:admin job.create job:daily-brief… -"
    );
    assert_eq!(trail.stderr, "2 entries\n");
    let one = data(&server, &["audit", "-n", "1", "--json"]);
    assert_eq!(one, format!("{}\n", server.get("/audit?limit=1").text));
    let status = data(&server, &["status"]);
    let expected = format!("server\thttp://{} · everbell {}\n", server.address, env!("CARGO_PKG_VERSION"));
    assert!(status.starts_with(&expected) && status.contains("\njobs\t0 active, 1 paused, 0 errored\n"), "{status}");
}

#[test]
fn any_call_can_be_sent() {
    let server = Server::start();
    server.job("daily-briefing", &json!({}));
    let jobs = data(&server, &["api", "get", "/jobs", "-f", "limit=1"]);
    assert_eq!(jobs, format!("{}\n", server.get("/jobs?limit=1").text));
    assert_eq!(data(&server, &["api", "GET", "/api/v1/jobs", "-f", "limit=1"]), jobs);
    assert!(data(&server, &["api", "GET", "/livez", "--include"]).starts_with("HTTP 200\n"));
    let paused = data(&server, &["api", "POST", "/jobs/key:daily-briefing/pause", "-f", "reason=by hand"]);
    assert!(paused.contains("\"pauseReason\":\"by hand\""));
    std::fs::write(server.folder.path().join("body.json"), "{\"cronExpression\":\"@daily\"}").unwrap();
    let preview = data(&server, &["api", "POST", "/cron/preview", "--input", "body.json"]);
    assert!(preview.contains("\"valid\":true"));
    let wrong = refused(&server, &["api", "POST", "/jobs", "-f", "jobKey=x"], 2);
    assert!(wrong.starts_with("error: cannot POST /api/v1/jobs\n") && wrong.contains("\n  #/target: "), "{wrong}");
    assert!(refused(&server, &["api", "GET", "jobs"], 2).starts_with("error: the path must begin with `/`"));
}
