//! The history of slots, and runs for past slots.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{data, everbell, json as printed, loose, masked, on_terminal, refused, time, until_reached};
use crate::server::{Server, TARGETS};

/// Both streams on a terminal, from a command that must succeed.
#[track_caller]
fn output(server: &Server, args: &[&str]) -> String {
    let shown = on_terminal(server, 160, args);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    loose(&format!("{}{}", shown.stdout, shown.stderr))
}

/// Backfills past slots, and explains them.
fn check_backfill(server: &Server) {
    server.job("daily", &json!({"cronExpression": "0 8 * * *", "timezone": "Europe/Paris"}));
    let range = ["jobs", "backfill", "daily", "--from", "2026-11-02", "--to", "2026-11-04 23:59"];
    let with = |more: &[&'static str]| [&range[..], more].concat();
    assert_eq!(
        output(server, &with(&["--dry-run"])),
        "3 slots, 3 to run, from Mon DATE CLOCK CET to Wed DATE CLOCK CET\n\
         SLOT PLAN RUN\n\
         DATE CLOCK +01:00 would run -\n\
         DATE CLOCK +01:00 would run -\n\
         DATE CLOCK +01:00 would run -\n\
         to create the runs, replace --dry-run with --yes"
    );
    assert_eq!(
        data(server, &with(&["--dry-run"])),
        "2026-11-02T08:00:00+01:00\tcreate\t\n2026-11-03T08:00:00+01:00\tcreate\t\n\
         2026-11-04T08:00:00+01:00\tcreate\t\n"
    );
    assert_eq!(printed(server, &with(&["--dry-run"]))["toCreate"], 3);
    assert_eq!(data(server, &with(&["--dry-run", "-o", "name"])), "", "a plan has no id");
    assert_eq!(
        refused(server, &with(&[]), 2),
        "error: no terminal to ask for confirmation: Create 3 runs of job daily for past slots?\n  \
         add `--yes`, or preview with `--dry-run`\n"
    );
    assert_eq!(server.get("/jobs/key:daily/backfills").expect(200)["items"], json!([]));
    assert_eq!(
        output(server, &["jobs", "backfills", "daily"]),
        "no backfills; create one: everbell jobs backfill daily --from TIME --to TIME"
    );

    let begun = output(server, &with(&["--yes", "--reason", "ETL was down"]));
    assert!(begun.contains("\n✓ Started backfill ID of daily: 3 runs\nfollow it: everbell jobs backfills daily · "));
    let done = server.until("/jobs/key:daily/backfills", |list| list["items"][0]["status"] == "done");
    assert_eq!(done["items"][0]["reason"], "ETL was down");
    let listed = data(server, &["jobs", "backfills", "daily", "--tz", "UTC"]);
    assert_eq!(
        masked(&listed),
        "id\tID\njob\tdaily\nstatus\tdone\nasked\tTIME\nby\ttoken:admin\nfrom\tTIME\nto\tTIME\npending\t0\nrunning\t0\n\
         succeeded\t3\nfailed\t0\ncanceled\t0\nexisting\t0\nleft\t0\nparallel\t\nrate\t\ndoneAt\t\nwaitsFor\t\n"
    );
    assert_eq!(printed(server, &["jobs", "backfills", "daily"]), done);
    server.patch("/jobs/key:daily", &json!({ "labels": { "team": "data" } })).expect(200);
    let labeled = data(server, &["jobs", "backfills", "--label", "team=data"]);
    assert!(labeled.contains("job\tdaily\nstatus\tdone"), "{labeled}");
    assert!(output(server, &["jobs", "backfills", "--label", "team=data"]).contains("JOB BACKFILL STATUS"));
    assert_eq!(data(server, &["jobs", "backfills", "--label", "team=ops"]), "");
    // What ran is left out, so nothing is left to be made.
    let again = output(server, &with(&["--yes"]));
    assert!(again.starts_with("3 slots, 0 to run, from ") && again.ends_with("\nevery slot has a run"), "{again}");
    assert!(again.contains("\nDATE CLOCK +01:00 already succeeded ID\n"), "{again}");
    assert_eq!(server.get("/jobs/key:daily/backfills").expect(200), done);
    check_explanation(server);
}

fn check_explanation(server: &Server) {
    let at = |time: &'static str| ["jobs", "explain", "daily", time];
    let run = output(server, &at("2026-11-03 08:00"));
    assert!(
        run.starts_with("✓ This slot has a run; its status is succeeded\ntime Tue DATE CLOCK CET\nrun ID\n"),
        "{run}"
    );
    assert!(run.ends_with("\nnext: everbell runs show ID"), "{run}");
    let plain = data(server, &at("2026-11-03T07:00:00Z"));
    assert!(
        plain.starts_with("outcome\trun\ndetail\tThis slot has a run; its status is succeeded.\ntime\t2026-11-03T08:")
    );
    assert_eq!(data(server, &[&at("2026-11-03 08:01")[..], &["-o", "name"]].concat()), "no_slot\n");
    let document = printed(server, &at("2026-11-03 08:00"));
    assert_eq!(document, server.get("/jobs/key:daily/explain?at=2026-11-03T07:00:00Z").expect(200));
    assert!(output(server, &at("2099-01-01 08:00")).starts_with("○ This slot is in the future"));
    // A time before now begins like a flag.
    assert_eq!(everbell(server, &at("-2h")).code, Some(0));
    assert!(refused(server, &at("soon"), 2).starts_with("error: TIME: `soon` is not a time\n  hint: use RFC 3339"));

    let stats = output(server, &["jobs", "stats", "daily", "--window", "3650d"]);
    assert!(stats.starts_with("3 runs of daily\nsince "), "{stats}");
    assert!(stats.contains("\nsucceeded 3\nsuccess rate 100.0%\ntook SPAN (p50), "), "{stats}");
    let plain = data(server, &["jobs", "stats", "daily", "--window", "3650d"]);
    assert!(plain.contains("\nruns\t3\ncomplete\ttrue\nsucceeded\t3\n"), "{plain}");
    assert_eq!(printed(server, &["jobs", "stats", "daily", "--window", "3650d"])["runs"], 3);
    assert_eq!(data(server, &["jobs", "stats", "daily", "-o", "name"]), "");
}

#[test]
fn past_slots_get_runs() {
    check_backfill(&Server::start());
}

#[test]
fn past_slots_get_runs_on_postgres() {
    check_backfill(&Server::postgres(TARGETS));
}

#[test]
fn a_backfill_is_stopped() {
    let server = Server::start();
    server.job("slow", &json!({"cronExpression": "0 * 2 11 *", "target": "sleep"}));
    assert_eq!(output(&server, &["jobs", "backfill-stop", "slow"]), "✓ No backfill of slow is running");
    let range = ["--from", "2026-11-02T00:00:00Z", "--to", "2026-11-02T09:00:00Z", "--yes"];
    let id = data(&server, &[&["jobs", "backfill", "slow", "-o", "name"], &range[..]].concat());
    server.until("/jobs/key:slow/backfills", |list| list["items"][0]["running"] == 1);
    assert_eq!(
        output(&server, &["jobs", "backfill-stop", "slow", id.trim()]),
        "■ Stopped backfill ID of slow\n9 slots will not run; runs that have started continue"
    );
    let nobody = refused(&server, &["jobs", "backfill-stop", "slow", "none"], 3);
    assert!(nobody.ends_with("there is no backfill `none`\n  hint: list them: everbell jobs backfills slow\n"));
}

#[test]
fn a_backfill_may_be_of_one_org_or_of_all() {
    let server = Server::start();
    server.job("brief", &json!({"scope": "per_org", "cronExpression": "0 8 * * *"}));
    assert_eq!(everbell(&server, &["orgs", "set", "acme", "--timezone", "Asia/Tokyo"]).code, Some(0));
    let range = ["jobs", "backfill", "brief", "--from", "2026-11-02", "--to", "2026-11-04 00:00", "--dry-run"];
    let plain = data(&server, &[&range[..], &["--org", "acme"]].concat());
    assert_eq!(plain, "2026-11-02T08:00:00+09:00\tcreate\t\n2026-11-03T08:00:00+09:00\tcreate\t\n");
    let all = output(&server, &[&range[..], &["--all-orgs"]].concat());
    assert!(all.starts_with("At most 2 runs for 1 of 1 orgs from Mon DATE "), "{all}");
    assert!(refused(&server, &range, 2).contains("`--all-orgs`"));
    let nobody = refused(&server, &[&range[..], &["--org", "nope"]].concat(), 3);
    assert!(nobody.ends_with("\n  hint: list them: everbell orgs list\n"), "{nobody}");
}

#[test]
fn gaps_are_listed_with_their_reasons() {
    let server = Server::start();
    server.job("pulse", &json!({"cronExpression": "* * * * * *"}));
    assert_eq!(output(&server, &["jobs", "gaps", "pulse", "--reason", "paused"]), "no gap matches");
    let paused = server.post("/jobs/key:pulse/pause", &json!({"reason": "SMTP down"})).expect(200);
    until_reached(&server, time(&paused["pausedAt"]) + SignedDuration::from_secs(1));
    server.post("/jobs/key:pulse/resume", &json!({})).expect(200);
    server.until("/jobs/key:pulse/gaps?reason=paused", |list| list["items"] != json!([]));
    let gaps = output(&server, &["jobs", "gaps", "pulse", "--reason", "paused", "--from", "-1h"]);
    assert!(
        gaps.starts_with("FIRST SLOT LAST SLOT SLOTS REASON ORG BY RUN\nDATE CLOCK +00:00 DATE CLOCK +00:00 "),
        "{gaps}"
    );
    assert!(gaps.contains(" in 1 gap · run them now: everbell jobs backfill pulse --from TIME --to TIME"), "{gaps}");
    let document = printed(&server, &["jobs", "gaps", "pulse", "--reason", "paused"]);
    let slot = document["items"][0]["firstSlotAt"].as_str().unwrap();
    assert_eq!(document["items"][0]["reason"], "paused");
    let why = output(&server, &["jobs", "explain", "pulse", slot]);
    assert!(why.starts_with("⤼ This slot has no run: paused"), "{why}");
    assert!(why.contains("\nrun it now: everbell jobs backfill pulse --from "), "{why}");
    assert_eq!(data(&server, &["jobs", "gaps", "pulse", "--to", "2020-01-01"]), "");
}

#[test]
fn waits_between_attempts_have_flags() {
    let server = Server::start();
    let create = ["jobs", "create", "again", "--target", "print", "--cron", "@daily", "--retries", "2"];
    let waits = ["--retry-initial", "30s", "--retry-max", "10m"];
    let retry = |document: Value| document["policies"]["retry"].clone();
    let made = printed(&server, &[&create[..], &waits].concat());
    assert_eq!(retry(made), json!({"maxAttempts": 3, "initial": "PT30S", "max": "PT10M"}));
    let cleared = printed(&server, &["jobs", "new-version", "again", "--clear", "retry-max", "--retry-initial", "1m"]);
    assert_eq!(retry(cleared), json!({"maxAttempts": 3, "initial": "PT1M", "max": "PT1H"}));
    let output = refused(&server, &["jobs", "new-version", "again", "--retry-max", "9d"], 2);
    assert!(output.contains("\n  --retry-max: must be "), "{output}");
}
