//! `everbell doctor`, and the examples of commands that talk to a server, through the real binary.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::binary::{Ran, document, keys, ran, stdout};
use crate::server::{Folder, Server, TARGETS, quiet};

fn doctor(server: &Server, args: &[&str]) -> Ran {
    let mut command = quiet(server.folder.path());
    command.arg("doctor").args(args).env("LC_ALL", "C.UTF-8");
    command.env("EVERBELL_SERVER", format!("http://{}", server.address));
    ran(command.output().unwrap())
}

/// The checks with what was found, of a server that has been seen to be ready.
fn found(server: &Server) -> (bool, Vec<(String, String, String)>) {
    server.until("/status", |_| server.raw("GET", "/readyz", &[], b"").status == 200);
    let document = document(&doctor(server, &["--json"]).stdout);
    assert_eq!(keys(&document), ["findings", "ok"]);
    let member = |finding: &Value, name: &str| finding[name].as_str().unwrap().to_owned();
    let all = document["findings"].as_array().unwrap().iter();
    let all = all.map(|one| (member(one, "check"), member(one, "level"), member(one, "detail"))).collect();
    (document["ok"] == true, all)
}

fn is_well(server: &Server) {
    server.job("daily", &json!({}));
    let (ok, found) = found(server);
    assert!(ok && found.iter().all(|(_, level, _)| level == "ok"), "{found:?}");
    let checks: Vec<&str> = found.iter().map(|(check, ..)| check.as_str()).collect();
    let mut expected = vec!["server", "access"];
    expected.extend(["readiness"; 8]);
    expected.extend(["jobs", "backlog", "transactions", "timers", "instances", "clock", "targets", "leases"]);
    expected.extend(["slots", "dst"]);
    assert_eq!(checks, expected);
    let people = doctor(server, &[]);
    assert_eq!((people.code, people.stderr.as_str()), (Some(0), ""));
    let lines: Vec<&str> = people.stdout.lines().collect();
    assert!(lines.iter().all(|line| line.starts_with("✓ ")), "{}", people.stdout);
    assert!(lines[0].starts_with(&format!("✓ server http://{} answers (", server.address)), "{}", lines[0]);
    assert_eq!(lines[1], "✓ authenticated as token:admin, admin");
    let has_schema = lines.iter().any(|line| line.starts_with("✓ schema: version "));
    assert!(has_schema && lines.contains(&"✓ 1 instance live"), "{}", people.stdout);
    assert_eq!(doctor(server, &["--quiet"]).stdout, "");
}

#[test]
fn a_server_that_is_well_has_only_good_marks_on_sqlite() {
    is_well(&Server::start());
}

#[test]
fn a_server_that_is_well_has_only_good_marks_on_postgres() {
    is_well(&Server::postgres(TARGETS));
}

#[test]
fn a_job_whose_target_is_gone_is_an_error() {
    let mut server = Server::start();
    server.job("old-fax-report", &json!({ "target": "fail" }));
    // In good order: an instance that is killed counts as living for a while.
    assert!(Command::new("kill").args(["-TERM", &server.pid().to_string()]).status().unwrap().success());
    assert_eq!(server.ended(), Some(0));
    let folder = server.take_folder();
    fs::write(folder.path().join("everbell.toml"), TARGETS.replace("fail", "other")).unwrap();
    let mut server = Server::in_folder(folder, &[], &[]);
    server.token =
        fs::read_to_string(server.folder.path().join("everbell-data/admin-token")).unwrap().trim().to_owned();
    server.until("/status", |_| server.raw("GET", "/readyz", &[], b"").status == 200);
    let told = doctor(&server, &[]);
    assert_eq!(told.code, Some(1), "{}", told.stdout);
    let expected = "✕ 1 job targets `fail`, which no live instance serves: old-fax-report\n  \
                    start an instance that serves it, or change the target of these jobs\n";
    assert!(told.stdout.contains(expected), "{}", told.stdout);

    // Its jobs make it known, so more may be created meanwhile, with a warning.
    let more = server.job("new-fax-report", &json!({ "target": "fail" }));
    let detail = "no live instance serves target `fail`; the job does not fire until one does";
    assert_eq!(
        (&more["warnings"][0]["code"], &more["warnings"][0]["detail"]),
        (&json!("unserved_target"), &json!(detail))
    );
    let unknown = json!({ "jobKey": "a", "target": "fial", "cronExpression": "@daily" });
    assert_eq!(server.post("/jobs", &unknown).faults(), ["#/target"]);
}

#[test]
fn a_server_that_only_answers_claims_nothing_about_jobs_that_no_instance_fires() {
    let mut server = Server::start();
    server.job("every-second", &json!({ "cronExpression": "* * * * * *" }));
    assert!(Command::new("kill").args(["-TERM", &server.pid().to_string()]).status().unwrap().success());
    assert_eq!(server.ended(), Some(0));
    let token = server.token.clone();
    let mut server = Server::in_folder(server.take_folder(), &["--role", "api"], &[]);
    server.token = token;
    let (ok, found) = found(&server.registered());
    let of = |wanted: &str| -> Vec<&str> {
        found.iter().filter(|(_, level, _)| level == wanted).map(|(check, ..)| check.as_str()).collect()
    };
    assert_eq!((ok, of("error"), of("warning")), (false, vec!["instances", "targets"], vec![]), "{found:?}");
    let details = |wanted: &str| -> Vec<&str> {
        found.iter().filter(|(check, ..)| check == wanted).map(|(.., detail)| detail.as_str()).collect()
    };
    assert_eq!(details("instances"), ["no live instance fires jobs"]);
    assert_eq!(details("targets"), ["1 job targets `print`, which no live instance serves: every-second"]);
    // The database, its schema, the clock, the zone data and whether it drains.
    let readiness = details("readiness");
    assert_eq!(readiness.len(), 5, "{readiness:?}");
    assert!(!readiness.iter().any(|line| line.contains("due") || line.contains("accepts work")), "{readiness:?}");
}

#[test]
fn without_a_server_or_a_token_there_is_one_thing_to_do() {
    let server = Server::start();
    let folder = Folder::new();
    let ask = |address: &str| {
        let mut command = quiet(folder.path());
        ran(command.args(["doctor"]).env("LC_ALL", "C").env("EVERBELL_SERVER", address).output().unwrap())
    };
    let nobody = ask("http://127.0.0.1:1");
    assert_eq!((nobody.code, nobody.stderr.as_str()), (Some(1), ""));
    assert!(nobody.stdout.starts_with("x cannot reach the server at http://127.0.0.1:1: "), "{}", nobody.stdout);
    let stranger = ask(&format!("http://{}", server.address));
    let lines: Vec<&str> = stranger.stdout.lines().collect();
    assert_eq!((stranger.code, lines.len()), (Some(1), 3), "{}", stranger.stdout);
    assert_eq!(lines[0], format!("+ server http://{} answers", server.address));
    assert!(lines[1].starts_with("x cannot GET /api/v1/status: ") && lines[2].contains("EVERBELL_TOKEN"), "{lines:?}");
}

#[test]
fn a_viewer_is_told_what_could_not_be_looked_at() {
    let server = Server::launch(&format!("[auth]\nrun_history = \"admin\"\n{TARGETS}"), None, &[]);
    server.until("/status", |_| server.raw("GET", "/readyz", &[], b"").status == 200);
    let token = server.token_of("viewer");
    let mut command = quiet(server.folder.path());
    command.arg("doctor").env("LC_ALL", "C").env("EVERBELL_TOKEN", token);
    let told = ran(command.env("EVERBELL_SERVER", format!("http://{}", server.address)).output().unwrap());
    assert_eq!(told.code, Some(0), "{}", told.stdout);
    assert!(told.stdout.contains("\n! cannot check leases: cannot GET /api/v1/runs: "), "{}", told.stdout);
}

/// The pages of what looks at a server as a whole, and of jobs in files.
pub(crate) const ONLINE: [&[&str]; 10] = [
    &["doctor"],
    &["healthcheck"],
    &["jobs", "export"],
    &["jobs", "apply"],
    &["jobs", "diff"],
    &["jobs", "import-crontab"],
    &["import"],
    &["import", "crontab"],
    &["import", "cronjob"],
    &["import", "timers"],
];

#[test]
fn help_of_what_needs_a_server_begins_with_three_examples_that_work() {
    let server = Server::with(&format!("[shell]\nallow = true\n{TARGETS}"));
    server.job("daily-briefing", &json!({}));
    fs::write(server.folder.path().join("crontab.txt"), "@daily root rotate\n").unwrap();
    fs::write(server.folder.path().join("backup.timer"), "[Timer]\nOnCalendar=daily\nUnit=b.service\n").unwrap();
    fs::write(server.folder.path().join("b.service"), "[Service]\nExecStart=/bin/true\n").unwrap();
    let cronjob = |name: &str| {
        let containers = "{template: {spec: {containers: [{command: [/bin/true]}]}}}";
        format!(
            "{{kind: CronJob, metadata: {{name: {name}}}, spec: {{schedule: '@daily', jobTemplate: {{spec: {containers}}}}}}}"
        )
    };
    fs::write(server.folder.path().join("cronjobs.yaml"), cronjob("report")).unwrap();
    fs::write(server.folder.path().join("piped.yaml"), cronjob("other-report")).unwrap();
    server.post("/jobs/key:daily-briefing/new-version", &json!({ "description": "changed" })).expect(201);
    let job = "[[job]]\njob_key = \"other\"\ntarget = \"print\"\ncron_expression = \"@daily\"\n";
    fs::write(server.folder.path().join("jobs.toml"), job).unwrap();
    server.until("/status", |_| server.raw("GET", "/readyz", &[], b"").status == 200);
    let address = format!("http://{}", server.address);
    let bin = Path::new(env!("CARGO_BIN_EXE_everbell")).parent().unwrap();
    let path = std::env::join_paths([bin, Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    for page in ONLINE {
        let help = stdout(&[page, &["--help"]].concat());
        let mut lines = help.lines();
        assert_eq!(lines.next(), Some("Examples:"), "{page:?}");
        let examples: Vec<&str> = lines.map_while(|line| line.strip_prefix("  ")).collect();
        assert_eq!(examples.len(), 3, "{help}");
        for example in examples {
            let mut shell = Command::new("sh");
            // Not every machine has a crontab.
            let example = example.replace("/etc/crontab /etc/cron.d/*", "crontab.txt");
            let example = example.replace("/etc/systemd/system/*.timer", "backup.timer");
            let example = example.replace("kubectl get cronjobs -o yaml", "cat piped.yaml");
            let example = example.replace("crontab -l", "echo @daily sync all");
            let example = example.replace("/etc/crontab", "crontab.txt").replace("http://127.0.0.1:7070", &address);
            shell.arg("-c").arg(&example).env("PATH", &path);
            let tried = ran(shell.env("EVERBELL_SERVER", &address).current_dir(server.folder.path()).output().unwrap());
            assert_eq!(tried.code, Some(0), "{example}: {}{}", tried.stdout, tried.stderr);
            assert!(page == ["healthcheck"] || !tried.stdout.is_empty(), "{example}");
        }
    }
}
