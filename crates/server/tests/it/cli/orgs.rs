//! `everbell orgs`, and other commands with orgs.

use std::fs;

use serde_json::json;

use super::{data, everbell, json as printed, on_terminal, refused};
use crate::halfway::halfway;
use crate::server::Server;

/// Three orgs, and a job that fires for each.
fn populated() -> Server {
    let server = Server::start();
    for (org, zone) in [("acme", "Europe/Paris"), ("bolt", "Asia/Tokyo"), ("cove", "UTC")] {
        server.put(&format!("/orgs/{org}"), &json!({ "timezone": zone, "name": format!("{org} Inc") })).expect(201);
    }
    let far = json!({ "scope": "per_org", "cronExpression": "0 8 * * *", "startAt": "2099-01-01T00:00:00Z" });
    server.job("briefing", &far);
    server
}

#[test]
fn orgs_are_listed_for_people_and_for_programs() {
    let server = populated();
    let shown = on_terminal(&server, 120, &["orgs"]);
    let mut lines = shown.stdout.lines();
    let header: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(header, ["ORG", "NAME", "TIMEZONE", "LOCAL", "STATE", "ERROR"]);
    let acme = lines.next().unwrap();
    assert!(acme.starts_with("acme  acme Inc  Europe/Paris  ") && acme.contains("  ● active"), "{acme}");
    assert_eq!(shown.stderr, "3 orgs · next: everbell orgs show acme\n");
    let fields: Vec<String> = data(&server, &["orgs", "list"])
        .lines()
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            format!("{} {} {}", fields[0], fields[2], fields[4])
        })
        .collect();
    assert_eq!(fields, ["acme Europe/Paris active", "bolt Asia/Tokyo active", "cove UTC active"]);
    assert_eq!(data(&server, &["orgs", "-o", "name", "--timezone", "asia/tokyo"]), "bolt\n");
    assert_eq!(data(&server, &["orgs", "-o", "name", "--disabled"]), "");
    assert_eq!(printed(&server, &["orgs", "--search", "OV"])["items"][0]["id"], "cove");
    let none = on_terminal(&server, 80, &["orgs", "--errored"]);
    assert_eq!((none.stdout.as_str(), none.stderr.as_str()), ("", "no org matches; list all: everbell orgs list\n"));
}

#[test]
fn an_org_is_set_shown_and_deleted() {
    let server = populated();
    let made = on_terminal(&server, 100, &["orgs", "set", "dune", "--timezone", "America/Lima"]);
    assert!(made.stdout.starts_with("✓ Created org dune\n  America/Lima, local time "), "{}", made.stdout);
    let set = printed(&server, &["orgs", "set", "dune", "--disable", "--settings", "{\"n\":1}", "--reason", "a test"]);
    assert_eq!(
        (&set["enabled"], &set["settings"], &set["timezone"]),
        (&json!(false), &json!({"n": 1}), &json!("America/Lima"))
    );
    let shown = on_terminal(&server, 120, &["orgs", "show", "dune"]);
    for wanted in ["‖ dune", "timezone  America/Lima", "settings  {\"n\":1}", "briefing", "off", "org_disabled"] {
        assert!(shown.stdout.contains(wanted), "{wanted}\n{}", shown.stdout);
    }
    assert!(
        data(&server, &["orgs", "show", "acme"]).contains("briefing\teligible\t0 8 * * *\t2099-01-01T08:00:00+01:00\t")
    );
    assert_eq!(data(&server, &["orgs", "delete", "dune", "--yes", "-o", "name"]), "dune\n");
    let said = refused(&server, &["orgs", "show", "dune"], 3);
    assert!(said.contains("everbell orgs list"), "{said}");
    let said = refused(&server, &["orgs", "set", "dune", "--timezone", "Europe/Pariss"], 2);
    assert!(said.contains("Europe/Paris`"), "{said}");
    let said = refused(&server, &["orgs", "delete", "acme"], 2);
    assert!(said.contains("everbell orgs delete acme --yes"), "{said}");
}

#[test]
fn a_move_is_checked_before_it_is_made() {
    let server = populated();
    let shown = on_terminal(&server, 120, &["orgs", "check", "acme", "--timezone", "Asia/Tokyo"]);
    assert!(
        shown.stdout.contains("2099-01-01 08:00 +01:00") && shown.stdout.contains("2099-01-02 08:00 +09:00"),
        "{}",
        shown.stdout
    );
    assert!(shown.stdout.contains("briefing: Would fire again today: no."), "{}", shown.stdout);
    assert!(shown.stderr.contains("everbell orgs set acme --timezone Asia/Tokyo"), "{}", shown.stderr);
    assert_eq!(printed(&server, &["orgs", "what-if", "acme", "--timezone", "UTC"])["timezoneAfter"], "UTC");
    assert_eq!(printed(&server, &["orgs", "show", "acme"])["timezone"], "Europe/Paris");
    refused(&server, &["orgs", "check", "nobody", "--timezone", "UTC"], 3);
}

#[test]
fn files_are_imported_or_refused_by_their_line() {
    let server = populated();
    let folder = server.folder.path();
    fs::write(folder.join("orgs.csv"), "id,timezone,name,enabled\nacme,Europe/Paris,\"Acme, Inc\",yes\nelm,UTC,,no\n")
        .unwrap();
    fs::write(
        folder.join("orgs.jsonl"),
        "{\"id\":\"elm\",\"enabled\":true}\n\n{\"id\":\"fir\",\"timezone\":\"Mars\"}\n",
    )
    .unwrap();
    let dry = on_terminal(&server, 100, &["orgs", "import", "orgs.csv", "--dry-run"]);
    assert_eq!(dry.stdout, "→ Would create 1 org, change 1; 0 unchanged\n");
    assert_eq!(printed(&server, &["orgs", "import", "orgs.csv"])["created"], 1);
    assert_eq!(printed(&server, &["orgs", "show", "acme"])["name"], "Acme, Inc");
    let said = refused(&server, &["orgs", "import", "orgs.jsonl"], 2);
    assert!(said.contains("line 3"), "{said}");
    assert_eq!(printed(&server, &["orgs", "show", "elm"])["enabled"], false, "nothing was written");
    fs::write(folder.join("bad.csv"), "id,zone\n").unwrap();
    assert!(refused(&server, &["orgs", "import", "bad.csv"], 2).contains("there is no column `zone`"));
    assert!(refused(&server, &["orgs", "import", "none.csv"], 2).contains("cannot read `none.csv`"));
}

#[test]
fn jobs_are_overridden_run_moved_and_skipped_for_orgs() {
    let server = populated();
    let at = on_terminal(&server, 100, &["orgs", "override", "acme", "briefing", "--at", "09:30"]);
    assert!(
        at.stdout.starts_with("✓ briefing fires at `30 9 * * *` for org acme\n  Next   Thu 2099-01-01 09:30 CET"),
        "{}",
        at.stdout
    );
    let off = printed(&server, &["orgs", "override", "bolt", "briefing", "--off"]);
    assert_eq!(off["job"]["why"], "override_off");
    assert_eq!(data(&server, &["orgs", "override", "acme", "briefing", "--clear", "-o", "name"]), "briefing\n");
    refused(&server, &["orgs", "override", "acme", "briefing", "--clear"], 3);
    refused(&server, &["orgs", "override", "acme", "briefing"], 2);

    let said = refused(&server, &["jobs", "run", "briefing"], 2);
    assert!(said.contains("name one in `--org`, or all of them with `--all-orgs`"), "{said}");
    let said = refused(&server, &["jobs", "skip", "briefing"], 2);
    assert!(said.contains("name the org in `--org`") && !said.contains("all of them"), "{said}");
    assert_eq!(printed(&server, &["jobs", "run", "briefing", "--org", "acme"])["run"]["orgId"], "acme");
    let named = everbell(&server, &["jobs", "run", "briefing", "--orgs", "nobody", "-o", "name"]);
    assert_eq!((named.code, named.stdout.as_str()), (Some(1), ""), "one that was refused has no run");
    let some = everbell(&server, &["jobs", "run", "briefing", "--orgs", "cove,nobody", "--force", "-o", "table"]);
    assert_eq!(some.code, Some(1));
    assert!(
        some.stdout.contains("→ cove started: run ")
            && some.stdout.contains("✕ nobody refused: there is no org `nobody`"),
        "{}",
        some.stdout
    );
    assert!(printed(&server, &["jobs", "run", "briefing", "--all-orgs", "--force"])["sweep"]["id"].is_string());
    assert_eq!(data(&server, &["runs", "list", "--org", "cove", "-o", "name"]).lines().count(), 2);

    data(&server, &["jobs", "reschedule", "briefing", "--org", "cove", "--to", "2099-05-01 12:00", "-o", "name"]);
    assert_eq!(server.get("/orgs/cove/jobs").expect(200)["items"][0]["nextRunAt"], "2099-05-01T12:00:00Z");
    data(&server, &["jobs", "skip", "briefing", "--org", "acme", "-o", "name"]);
    assert_eq!(server.get("/orgs/acme/jobs").expect(200)["items"][0]["nextRunAt"], "2099-01-02T07:00:00Z");
    data(
        &server,
        &["jobs", "create", "other", "--target", "print", "--cron", "@daily", "--scope", "per_org", "-o", "name"],
    );
    assert_eq!(server.get("/jobs/key:other").expect(200)["scope"], "per_org");
}

#[test]
fn a_job_that_fires_for_orgs_has_no_time_of_its_own() {
    let server = populated();
    let shown = data(&server, &["jobs", "show", "briefing"]);
    assert!(shown.contains("next\tfor each org at its own local time, first for acme at "), "{shown}");
    assert!(shown.contains(": everbell orgs show ORG\n"), "{shown}");
    let text = "[[target]]\nlabel = \"print\"\ntype = \"log\"\n[[job]]\njob_key = \"briefing\"\ntarget = \"print\"\n\
                cron_expression = \"0 8 * * *\"\nscope = \"per_org\"\n";
    fs::write(server.folder.path().join("per_org.toml"), text).unwrap();
    let checked = printed(&server, &["config", "check", "--config", "per_org.toml"]);
    assert_eq!((&checked["jobs"][0]["jobKey"], &checked["jobs"][0]["nextRunAt"]), (&json!("briefing"), &json!(null)));
    assert_eq!(checked["warnings"], json!([]), "{checked}");
}

#[test]
fn updates_of_every_org_are_started_and_stopped() {
    let server = populated();
    let said = on_terminal(&server, 100, &["orgs", "rebuild", "briefing"]).stdout;
    assert_eq!(said, "✓ The timers of briefing are rebuilt\n");
    let said = on_terminal(&server, 100, &["orgs", "stop", "briefing"]).stdout;
    assert_eq!(said, "✓ No runs are being created for the orgs of briefing\n");
    refused(&server, &["orgs", "rebuild", "nobody"], 3);

    let server = halfway();
    let said = on_terminal(&server, 100, &["orgs", "stop", "brief", "--reason", "too many"]).stdout;
    assert!(said.contains("Stopped run_now of brief after ") && said.contains("runs that were created stay"), "{said}");
    assert_eq!(printed(&server, &["orgs", "stop", "brief"]), json!({ "items": [] }));
}

#[test]
fn an_override_without_effect_is_no_plain_success() {
    let server = populated();
    server.job("for-all", &json!({}));
    for (job, why) in [
        ("for-all", "job for-all does not fire per org: its scope is global"),
        ("later", "there is no job later; the override waits for one that fires per org"),
    ] {
        let shown = on_terminal(&server, 120, &["orgs", "override", "acme", job, "--off"]);
        assert_eq!(shown.stdout, format!("⚠ Stored for org acme, no effect yet: {why}\n"));
        let document = everbell(&server, &["orgs", "override", "acme", job, "--off", "--json"]);
        assert_eq!((document.code, document.stderr), (Some(0), format!("warning: {why}\n")));
    }
}
