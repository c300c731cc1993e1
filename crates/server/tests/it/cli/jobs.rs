//! `everbell jobs`.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{data, everbell, json as printed, loose, masked, on_terminal, refused, time, until_reached};
use crate::server::{Server, TARGETS};

/// Two jobs whose next fires are known: one in a zone with summer time, one that is paused.
fn populated() -> Server {
    let server = Server::start();
    let far = json!({"startAt": "2099-01-01T00:00:00Z", "cronExpression": "0 8 * * 1-5", "timezone": "Europe/Paris"});
    server.job("daily-briefing", &far);
    server.job("email-digest-of-the-whole-company", &json!({"description": "Mails."}));
    server.post("/jobs/key:email-digest-of-the-whole-company/pause", &json!({"reason": "SMTP down"})).expect(200);
    server
}

#[test]
fn the_list_fits_the_terminal() {
    let server = populated();
    let narrow = on_terminal(&server, 80, &["jobs"]);
    assert_eq!(
        masked(&narrow.stdout),
        "JOB KEY             SCHEDULE     STATUS    LAST  NEXT                     LEFT\n\
         daily-briefing      0 8 * * 1-5  ● active  -     2099-01-01 CLOCK +01:00  SPAN\n\
         email-digest-of-t…  0 0 1 1 *    ‖ paused  -     -                        -\n"
    );
    assert_eq!(narrow.stderr, "2 jobs (1 active, 1 paused) · next: everbell jobs show daily-briefing\n");
    let wide = on_terminal(&server, 120, &["jobs", "list"]);
    assert_eq!(
        masked(&wide.stdout),
        "JOB KEY                          VER  TARGET  SCHEDULE     TZ            STATUS    LAST  NEXT                     LEFT\n\
         daily-briefing                     1  print   0 8 * * 1-5  Europe/Paris  ● active  -     2099-01-01 CLOCK +01:00  SPAN\n\
         email-digest-of-the-whole-comp…    1  print   0 0 1 1 *    UTC           ‖ paused  -     -                        -\n"
    );
    // Quiet is the table alone.
    assert_eq!(on_terminal(&server, 120, &["jobs", "-q"]).stderr, "");
}

#[test]
fn pipe_gets_untruncated_values() {
    let server = populated();
    assert_eq!(
        masked(&data(&server, &["jobs"])),
        "daily-briefing\t1\tprint\t0 8 * * 1-5\tEurope/Paris\tactive\t\t2099-01-01T08:00:00+01:00\tSPAN\n\
         email-digest-of-the-whole-company\t1\tprint\t0 0 1 1 *\tUTC\tpaused\t\t\t\n"
    );
    assert_eq!(data(&server, &["jobs", "-o", "name", "--status", "paused"]), "email-digest-of-the-whole-company\n");
    assert!(data(&server, &["jobs", "--tz", "Asia/Tokyo"]).contains("\t2099-01-01T16:00:00+09:00\t"));
    assert_eq!(data(&server, &["jobs", "list", "--search", "nothing"]), "");
}

#[test]
fn lists_are_filtered_by_label_and_failure() {
    let server = Server::start();
    server.job("labeled", &json!({"labels": {"team": "ops"}}));
    server.job("bad", &json!({"target": "fail"}));
    server.post("/jobs/key:bad/run-now", &json!({})).expect(202);
    server.until("/jobs/key:bad", |job| job["consecutiveFailures"] == 1);
    let names = |flags: &[&str]| data(&server, &[&["jobs", "list", "-o", "name"], flags].concat());
    assert_eq!(names(&[]), "bad\nlabeled\n");
    assert_eq!(
        (names(&["--label", "team"]), names(&["--label", "team=ops"])),
        ("labeled\n".into(), "labeled\n".into())
    );
    assert_eq!((names(&["--label", "team=web"]), names(&["--failing"])), (String::new(), "bad\n".into()));
}

#[test]
fn json_is_the_response_of_the_api() {
    let server = populated();
    assert_eq!(data(&server, &["jobs", "--json"]), format!("{}\n", server.get("/jobs?limit=200").text));
    let shown = data(&server, &["jobs", "show", "daily-briefing", "--json"]);
    assert_eq!(shown, format!("{}\n", server.get("/jobs/key:daily-briefing").text));
    let versions = data(&server, &["jobs", "versions", "daily-briefing", "--json"]);
    assert_eq!(versions, format!("{}\n", server.get("/jobs/key:daily-briefing/versions").text));
    // More than a page is one document as well, and a line each with jsonl.
    (0..205).for_each(|n| drop(server.job(&format!("n-{n:03}"), &json!({}))));
    let all = printed(&server, &["jobs"]);
    assert_eq!((all["items"].as_array().unwrap().len(), &all["nextCursor"]), (207, &Value::Null));
    let lines = data(&server, &["jobs", "-o", "jsonl"]);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, *all["items"].as_array().unwrap());
    let first = printed(&server, &["jobs", "--limit", "3"]);
    assert_eq!(first["items"].as_array().unwrap().len(), 3);
    assert!(first["nextCursor"].is_string());
}

#[test]
fn a_job_is_shown_with_all_that_matters() {
    let server = populated();
    assert_eq!(
        loose(&on_terminal(&server, 80, &["jobs", "show", "daily-briefing"]).stdout).replace(", now,", ", SPAN ago,"),
        "● daily-briefing v1 (active)\n\
         At CLOCK on weekdays, Europe/Paris\n\
         target print\n\
         schedule 0 8 * * 1-5\n\
         time zone Europe/Paris\n\
         next Thu 2099-01-01 CLOCK CET (in SPAN), then Fri 02, Mon 05\n\
         last run none yet\n\
         payload {}\n\
         policies timeout SPAN · overlap skip · catch-up once · retries 0\n\
         created by token:admin, SPAN ago, source api\n\
         id ID"
    );
    let paused = data(&server, &["jobs", "show", "email-digest-of-the-whole-company"]);
    let paused = masked(&paused);
    assert!(
        paused.starts_with("key\temail-digest-of-the-whole-company\nversion\t1\nstatus\tpaused\ndescription\tMails.\n")
    );
    assert!(paused.contains("\nnext\tnone\n") && paused.contains(": SMTP down\n"), "{paused}");
}

#[test]
fn created_job_is_shown_with_its_next_runs() {
    let server = Server::start();
    let made = on_terminal(
        &server,
        120,
        &[
            "jobs",
            "create",
            "briefing",
            "--target",
            "print",
            "--cron",
            "0 8 * * 1-5",
            "--tz",
            "Europe/Paris",
            "--start-at",
            "2099-01-01",
            "--payload",
            "{\"kind\":1.10}",
            "--label",
            "team=ops",
            "--retries",
            "2",
            "--timeout",
            "5m",
            "--depends-on",
            "import=6h",
            "--description",
            "For all.",
        ],
    );
    assert_eq!(
        masked(&made.stdout),
        "✓ Created briefing v1 (active)\n  At CLOCK on weekdays, Europe/Paris\n  \
         Next   Thu 2099-01-01 CLOCK CET (in SPAN), then Fri 02, Mon 05\n"
    );
    assert_eq!(
        made.stderr,
        "warning: it depends on `import`, which is not a current job; every slot is skipped until that job succeeds\n\
         see it: everbell jobs show briefing · try it now: everbell jobs run briefing --wait\n"
    );
    let job = server.get("/jobs/key:briefing").expect(200);
    assert_eq!(job["startAt"], "2098-12-31T23:00:00Z");
    assert!(server.get("/jobs/key:briefing").text.contains("{\"kind\":1.10}"));
    let policies = &job["policies"];
    assert_eq!((&policies["retry"]["maxAttempts"], &policies["timeout"]), (&json!(3), &json!("PT5M")));
    assert_eq!(policies["dependsOn"], json!({"jobKey": "import", "within": "PT6H"}));
    assert_eq!((&job["labels"], &job["description"]), (&json!({"team": "ops"}), &json!("For all.")));
    let every = printed(&server, &["jobs", "create", "pulse", "--target", "print", "--every", "90s"]);
    assert_eq!(every["cronExpression"], "@every 90s");
    let once = ["jobs", "once", "later", "--target", "print", "--at", "2099-06-01 08:00", "--tz", "Europe/Paris"];
    assert_eq!(printed(&server, &once)["runAt"], "2099-06-01T06:00:00Z");
    // What surprises is output beside the data.
    let night = ["jobs", "create", "night", "--target", "print", "--cron", "30 2 * * *", "--tz", "America/New_York"];
    let night = everbell(&server, &night);
    assert!(night.stderr.starts_with("warning: 02:30 does not exist on "), "{}", night.stderr);
    assert_eq!(night.code, Some(0));
}

#[test]
fn a_new_version_changes_only_what_is_named() {
    let server = populated();
    let args = ["jobs", "new-version", "daily-briefing", "--cron", "30 7 * * 1-5", "--label", "team=ops"];
    let made = on_terminal(&server, 120, &args);
    assert_eq!(
        masked(&made.stdout),
        "✓ Created daily-briefing v2 (active), which replaces v1\n  cronExpression: 0 8 * * 1-5 → 30 7 * * 1-5\n  \
         labels.team: - → ops\n  \
         Next   Thu 2099-01-01 CLOCK CET (in SPAN), then Fri 02, Mon 05; before: Thu 2099-01-01 CLOCK CET\n"
    );
    assert_eq!(
        made.stderr,
        "see its versions: everbell jobs versions daily-briefing; undo: everbell jobs rollback daily-briefing\n"
    );
    let reads = |server: &Server| {
        let metrics = server.raw("GET", "/metrics", &[], b"").text;
        let read = "everbell_http_requests_total{method=\"GET\",route=\"/api/v1/jobs/{jobId}\"";
        metrics.lines().filter(|line| line.starts_with(read)).count()
    };
    assert_eq!(reads(&server), 0, "the job is not read for an edit without a time");
    let args = ["jobs", "new-version", "daily-briefing", "--clear", "label:team", "--clear", "start-at"];
    assert_eq!(printed(&server, &args)["labels"], json!({}));
    let versions = on_terminal(&server, 80, &["jobs", "versions", "daily-briefing", "--tz", "UTC"]).stdout;
    assert_eq!(
        loose(&versions),
        "VER STATUS TARGET SCHEDULE CREATED BY\n\
         3 ● active print 30 7 * * 1-5 DATE CLOCK +00:00 token:admin\n\
         2 ■ retired print 30 7 * * 1-5 DATE CLOCK +00:00 token:admin\n\
         1 ■ retired print 0 8 * * 1-5 DATE CLOCK +00:00 token:admin"
    );
    assert_eq!(
        refused(&server, &["jobs", "new-version", "daily-briefing"], 2),
        "error: nothing to change\n  everbell jobs edit daily-briefing --cron \"30 7 * * 1-5\"\n  \
         everbell jobs edit --help\n  set EDITOR to edit all of it as a file\n"
    );
    let clear = refused(&server, &["jobs", "new-version", "daily-briefing", "--clear", "all"], 2);
    assert!(clear.starts_with("error: --clear: `all` cannot be cleared\n  hint: use label:NAME or one of payload, "));
}

/// Runs every action, on both databases.
fn actions(server: &Server) {
    server.job("daily-briefing", &json!({"startAt": "2099-01-01T00:00:00Z", "cronExpression": "0 8 * * *"}));
    let output = |args: &[&str]| {
        let shown = on_terminal(server, 120, args);
        assert_eq!(shown.code, Some(0), "{}", shown.stderr);
        masked(&format!("{}{}", shown.stdout, shown.stderr))
    };
    assert_eq!(
        refused(server, &["jobs", "pause", "daily-briefing"], 2),
        "error: a reason is required\n  \
         everbell jobs pause daily-briefing --reason \"SMTP down, INC-88\" [--until \"today 18:00\"]\n"
    );
    assert_eq!(
        output(&["jobs", "pause", "daily-briefing", "--reason", "SMTP down", "--until", "2099-03-01 18:00"]),
        "‖ Paused daily-briefing: SMTP down\n  until Sun 2099-03-01 CLOCK UTC (in SPAN), then it resumes automatically\n\
         resume it: everbell jobs resume daily-briefing\n"
    );
    let next = "  Next   Thu 2099-01-01 CLOCK UTC (in SPAN), then Fri 02, Sat 03\n";
    assert_eq!(
        output(&["jobs", "resume", "daily-briefing"]),
        format!("✓ Resumed daily-briefing\n{next}see it: everbell jobs show daily-briefing\n")
    );
    assert_eq!(
        output(&["jobs", "reschedule", "daily-briefing", "--to", "2098-12-31 09:30", "--reason", "late data"]),
        "✓ Moved the next run of daily-briefing\n  \
         Next   Wed 2098-12-31 CLOCK UTC (in SPAN), then Fri 01-02 CLOCK, Sat 03\n  \
         instead of Thu 2099-01-01 CLOCK UTC\nsee it: everbell jobs show daily-briefing\n"
    );
    assert_eq!(
        output(&["jobs", "skip", "daily-briefing", "--count", "2"]),
        "⤼ Skipped the next 2 runs of daily-briefing\n  \
         Next   Sat 2099-01-03 CLOCK UTC (in SPAN), then Sun 04, Mon 05\n\
         see the skipped runs: everbell runs list --job daily-briefing\n"
    );
    assert_eq!(
        refused(server, &["jobs", "retire", "daily-briefing"], 2),
        "error: no terminal to ask for confirmation: Retire job daily-briefing permanently? Its history stays.\n  \
         everbell jobs retire daily-briefing --yes\n"
    );
    assert_eq!(
        output(&["jobs", "retire", "daily-briefing", "--yes", "--reason", "done"]),
        "■ Retired daily-briefing v1\n  it will not fire again; its runs stay\n\
         see its runs: everbell runs list --job daily-briefing\n"
    );
    let again = refused(server, &["jobs", "pause", "daily-briefing@1", "--reason", "again"], 5);
    assert!(again.starts_with("error: cannot pause job `daily-briefing@1`: "), "{again}");
    assert_eq!(
        refused(server, &["jobs", "purge", "daily-briefing"], 2),
        "error: no terminal to ask for confirmation: Delete job daily-briefing with all its versions, payloads and runs? \
         This cannot be undone.\n  everbell jobs purge daily-briefing --yes\n"
    );
    let purged = output(&["jobs", "purge", "daily-briefing", "--yes", "--reason", "erasure request"]);
    assert!(purged.starts_with("■ Deleted daily-briefing\n  1 version, "), "{purged}");
    assert!(purged.ends_with("see who did what: everbell audit --object job:daily-briefing\n"), "{purged}");
    refused(server, &["jobs", "show", "daily-briefing"], 3);
}

#[test]
fn one_time_job_that_was_missed_is_retired() {
    let server = Server::start();
    let mut due = Timestamp::MIN;
    for key in ["lost", "kept"] {
        due = time(&printed(&server, &["jobs", "once", key, "--target", "print", "--at", "+2s"])["runAt"]);
        server.post(&format!("/jobs/key:{key}/pause"), &json!({"reason": "not now"})).expect(200);
    }
    until_reached(&server, due);
    let lost = on_terminal(&server, 120, &["jobs", "resume", "lost"]);
    assert!(lost.stdout.starts_with("■ Retired lost: its only run, "), "{}", lost.stdout);
    assert!(lost.stdout.contains(", was missed while it was paused\n  it did not run and will not fire again; "));
    assert_eq!(lost.stderr, "create it again: everbell jobs once lost --target print --at +15m\n");
    let kept = on_terminal(&server, 120, &["jobs", "resume", "kept", "--run-missed"]);
    assert!(
        kept.stdout.starts_with("✓ Resumed kept\n  1 slot missed while it was paused, run once: "),
        "{}",
        kept.stdout
    );
}

#[test]
fn actions_report_their_result() {
    actions(&Server::start());
}

#[test]
fn actions_report_their_result_on_postgres() {
    actions(&Server::postgres(TARGETS));
}
