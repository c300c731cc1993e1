//! A crontab as it stands on a real machine: imported, started, and run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::binary::{Ran, ran};
use crate::server::{Server, TARGETS, quiet};
use crate::ui::visitor::Visitor;

/// Thirty lines of a user. `OUT` is the folder that the commands write to.
const CRONTAB: &str = r#"# Edit this file to introduce tasks to be run by cron.
#
# m h  dom mon dow   command

PATH=/usr/local/bin:/usr/bin:/bin
OUT="OUT"
MAILTO=ops@example.com

# Backup of the shop, every night
30 2 * * *   echo "backup of $(date +\%Y) by $LOGNAME" > $OUT/backup
# old one:
# 0 1 * * *  /opt/old/backup
0 3 * * 0    echo weekly > $OUT/weekly
*/15 * * * * echo $PATH > $OUT/path
@hourly      echo hourly > $OUT/hourly
@daily       cat > $OUT/stdin%first line%second line
0 9 1,15 * 1 echo either > $OUT/either

SHELL=/bin/bash
# arrays need bash
5 4 * * *    words=(one two three); echo "${words[2]} $SHELL" > $OUT/bash

HOME=OUT
10 4 * * *   pwd > $OUT/cwd
15 4 * * *   env > env.txt

MAILTO=""
CRON_TZ=Europe/Paris
TZ=Asia/Tokyo
20 4 * * *   date +\%Z > $OUT/zone
25 4 * * 1-5 echo failing >&2; exit 7
@reboot      /usr/local/bin/start-agent
61 4 * * *   never
"#;

fn server() -> Server {
    Server::with(&format!("[shell]\nallow = true\n{TARGETS}")).registered()
}

fn everbell(server: &Server, args: &[&str]) -> Ran {
    let mut command = quiet(server.folder.path());
    ran(command
        .args(args)
        .env("EVERBELL_SERVER", format!("http://{}", server.address))
        .output()
        .expect("the binary runs"))
}

/// Starts every job of the list by hand, and waits for the ends.
fn run_all(server: &Server) -> BTreeMap<String, Value> {
    let list = server.get("/jobs?label=imported").expect(200);
    let keys: Vec<String> = list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|job| Some(job["jobKey"].as_str()?.to_owned()))
        .collect();
    let started = keys.into_iter().map(|key| {
        let reply = server.post(&format!("/jobs/key:{key}/run-now"), &json!({}));
        (key, reply.headers["location"].clone())
    });
    let started: Vec<(String, String)> = started.collect();
    let ended =
        |place: &str| server.until(place, |run| ["succeeded", "failed"].iter().any(|end| run["status"] == *end));
    started.into_iter().map(|(key, place)| (key, ended(&place))).collect()
}

#[test]
fn only_admins_say_which_command_runs() {
    let mut server = server();
    let (admin, operator) = (server.token.clone(), server.token_of("operator"));
    let job = json!({ "target": "shell", "payload": { "command": "echo hello" } });
    server.job("hello", &job);
    server.token = operator;
    let other = json!({ "payload": { "command": "id" } });
    for path in ["/targets/shell/try", "/jobs/key:hello/run-now"] {
        server.post(path, &other).problem(403, "Forbidden");
    }
    // What an admin has written they may run, and other targets get any payload.
    server.post("/jobs/key:hello/run-now", &json!({})).expect(202);
    server.post("/targets/print/try", &other).expect(202);
    server.token = admin;
    server.post("/targets/shell/try", &other).expect(202);
}

#[test]
fn dry_run_needs_no_shell_and_shows_how_failures_are_mailed() {
    let server = Server::start().registered();
    fs::write(server.folder.path().join("a"), "MAILTO=root, ops@example.com\n@daily true\n").unwrap();
    let args = ["import", "crontab", "a", "--tz", "UTC", "--json"];
    let refused = everbell(&server, &[&args[..], &["--yes"]].concat());
    assert!(refused.stderr.contains("no live instance serves the target `shell`"), "{}", refused.stderr);
    let planned = everbell(&server, &[&args[..], &["--dry-run"]].concat());
    assert_eq!(planned.code, Some(0), "{}", planned.stderr);
    let document: Value = serde_json::from_str(&planned.stdout).expect("a document");
    let blocks = document["configuration"].as_str().expect("blocks");
    // The blocks are a part of a valid configuration.
    fs::write(server.folder.path().join("everbell.toml"), blocks).unwrap();
    let checked = everbell(&server, &["config", "check"]);
    assert_eq!(checked.code, Some(0), "{blocks}: {}{}", checked.stdout, checked.stderr);
    assert!(blocks.contains("to = [\"root@localhost\",\"ops@example.com\"]"), "{blocks}");
    assert!(blocks.contains("jobs = { label = \"mailto=root, ops@example.com\" }"), "{blocks}");
}

#[test]
fn users_of_the_shell_are_checked_when_a_job_is_written() {
    let server = Server::with(&format!("[shell]\nallow = true\nusers = [\"backup\"]\n{TARGETS}")).registered();
    let job = |user: &str| {
        json!({ "jobKey": "a", "target": "shell", "cronExpression": "@daily",
            "payload": { "command": "id", "user": user } })
    };
    let refused = server.post("/jobs", &job("nobody"));
    assert_eq!(refused.faults(), ["#/payload"], "{}", refused.text);
    assert!(refused.text.contains("commands may not run as `nobody` here; allowed: backup"), "{}", refused.text);
    server.post("/jobs", &job("backup")).expect(201);
}

#[test]
fn button_starts_only_jobs_that_the_import_paused() {
    let server = server();
    fs::write(server.folder.path().join("a"), "@yearly one\n@yearly two\n").unwrap();
    assert_eq!(everbell(&server, &["import", "crontab", "a", "--tz", "UTC", "--yes"]).code, Some(0));
    server.post("/jobs/key:two/resume", &json!({})).expect(200);
    server.post("/jobs/key:two/pause", &json!({ "reason": "the disk is full" })).expect(200);
    let visitor = Visitor::admin(&server);
    let page = visitor.post("/import", &[("file", "a"), ("zone", "UTC"), ("do", "start"), ("once", "1")]).text;
    assert!(page.contains("1 job started"), "{page}");
    assert_eq!(server.get("/jobs/key:one").expect(200)["status"], "active");
    assert_eq!(server.get("/jobs/key:two").expect(200)["status"], "paused");
}

#[test]
fn real_crontab_is_imported_and_runs_as_cron_would_run_it() {
    let server = server();
    let out = server.folder.path().join("out");
    fs::create_dir(&out).unwrap();
    let text = CRONTAB.replace("OUT=\"OUT\"", &format!("OUT=\"{}\"", out.display()));
    let text = text.replace("HOME=OUT", &format!("HOME={}", out.display()));
    fs::write(server.folder.path().join("ana.crontab"), text).unwrap();
    let imported = everbell(&server, &["import", "crontab", "ana.crontab", "--tz", "America/New_York", "--yes"]);
    assert_eq!(imported.code, Some(1), "two lines are left out: {}{}", imported.stdout, imported.stderr);
    for part in [
        "\trefused\t-\t@reboot: left out",
        "\trefused\t-\tminute: 61 is outside 0-59",
        "Every day at 02:30, America/New_York",
        "Every day at 04:20, Europe/Paris",
        "day-of-month and day-of-week are both set",
        "MAILTO: kept as the label `mailto`",
        "TZ: set for the commands below, but not for their times",
        " 11 jobs created, paused; 2 lines left out\n  start them: everbell jobs resume --label imported=ana.crontab --imported\n",
    ] {
        assert!(imported.stdout.contains(part), "{part}: {}", imported.stdout);
    }
    let list = server.get("/jobs?label=imported%3Dana.crontab").expect(200);
    let jobs = list["items"].as_array().unwrap();
    assert!(jobs.len() == 11 && jobs.iter().all(|job| job["status"] == "paused"), "{list}");
    let again = everbell(&server, &["import", "crontab", "ana.crontab", "--tz", "America/New_York", "--yes"]);
    assert!(again.stdout.ends_with(" 11 jobs unchanged; 2 lines left out\n"), "{}", again.stdout);
    let started = everbell(&server, &["jobs", "resume", "--label", "imported=ana.crontab", "--yes"]);
    assert!(started.code == Some(0) && started.stdout.contains("Resumed 11 jobs"), "{}", started.stdout);

    let runs = run_all(&server);
    let failed: Vec<&str> =
        runs.iter().filter(|(_, run)| run["status"] == "failed").map(|(key, _)| key.as_str()).collect();
    assert_eq!(failed, ["echo-failing-exit-7"], "{runs:#?}");
    assert_eq!(runs["echo-failing-exit-7"]["failureDetails"], json!({ "exitCode": 7 }));
    let written = |name: &str| fs::read_to_string(out.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let now = server.get("/status").expect(200)["now"].as_str().unwrap().to_owned();
    let year = &now[..4];
    assert!(written("backup").starts_with(&format!("backup of {year} by ")) && written("backup").len() > 18);
    assert_eq!(written("weekly"), "weekly\n");
    assert_eq!(written("path"), "/usr/local/bin:/usr/bin:/bin\n");
    assert_eq!(written("stdin"), "first line\nsecond line\n");
    assert_eq!(written("bash"), "three /bin/bash\n");
    assert_eq!(Path::new(written("cwd").trim()).canonicalize().unwrap(), out.canonicalize().unwrap());
    assert_eq!(written("zone"), "JST\n");
    let env = written("env.txt");
    let set: BTreeMap<&str, &str> = env.lines().filter_map(|line| line.split_once('=')).collect();
    assert_eq!((set["SHELL"], set["HOME"]), ("/bin/bash", out.to_str().unwrap()));
    assert!(set.contains_key("EVERBELL_RUN_ID") && !set.contains_key("EVERBELL_SERVER"), "{env}");
    let backup = jobs.iter().find(|job| job["description"] == "Backup of the shop, every night").unwrap();
    assert_eq!(backup["labels"], json!({ "imported": "ana.crontab", "mailto": "ops@example.com" }));
}

#[test]
fn job_with_a_payload_that_is_no_command_is_refused_when_it_is_created() {
    let server = server();
    let body = json!({ "jobKey": "a", "target": "shell", "cronExpression": "@daily", "payload": { "comand": "x" } });
    let refused = server.post("/jobs", &body).problem(400, "InvalidInput");
    assert!(refused.to_string().contains("unknown field `comand`"), "{refused}");
    server.get("/jobs/key:a").problem(404, "NotFound");
}

#[test]
fn job_may_begin_paused() {
    let server = Server::start();
    let body = json!({ "jobKey": "a", "target": "print", "cronExpression": "@every 1s", "pauseReason": "not yet" });
    let job = server.post("/jobs", &body).expect(201);
    assert_eq!((&job["status"], &job["pauseReason"]), (&json!("paused"), &json!("not yet")));
    assert_eq!((&job["nextRunAt"], &job["revision"]), (&json!(null), &json!(1)));
    let short = json!({ "jobKey": "b", "target": "print", "cronExpression": "@daily", "pauseReason": "x" });
    assert!(server.post("/jobs", &short).problem(400, "InvalidInput").to_string().contains("/pauseReason"));
    server.post("/jobs/key:a/resume", &json!({})).expect(200);
    server.until("/runs?jobKey=a", |runs| runs["items"].as_array().is_some_and(|runs| !runs.is_empty()));
}

#[test]
fn jobs_of_a_label_are_started_and_paused_together_and_belong_to_their_file() {
    let server = server();
    let write = |name: &str, text: &str| fs::write(server.folder.path().join(name), text).unwrap();
    write("crontab.txt", "30 2 * * * /usr/bin/backup\n@hourly sync\n");
    assert_eq!(everbell(&server, &["import", "crontab", "crontab.txt", "--yes"]).code, Some(0));
    let resumed = everbell(&server, &["jobs", "resume", "--label", "imported=crontab.txt"]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    assert!(resumed.stdout.contains(" Resumed 2 jobs\n  backup: next run 20"), "{}", resumed.stdout);
    assert_eq!(server.get("/jobs/key:backup").expect(200)["status"], "active");
    let paused = everbell(&server, &["jobs", "pause", "--label", "imported", "--reason", "moving house"]);
    assert!(paused.code == Some(0) && paused.stdout.contains(" Paused 2 jobs\n"), "{}", paused.stdout);
    assert_eq!(server.get("/jobs/key:backup").expect(200)["pauseReason"], "moving house");
    // Only what an import paused, and nobody paused later, starts with `--imported`.
    write("more.txt", "@daily more\n@daily rest\n");
    assert_eq!(everbell(&server, &["import", "crontab", "more.txt", "--yes"]).code, Some(0));
    server.post("/jobs/key:rest/resume", &json!({})).expect(200);
    server.post("/jobs/key:rest/pause", &json!({ "reason": "not yet" })).expect(200);
    let imported = ["jobs", "resume", "--label", "imported=more.txt", "--imported"];
    let started = everbell(&server, &imported);
    assert!(started.code == Some(0) && started.stdout.contains(" Resumed 1 job\n  more: "), "{}", started.stdout);
    assert_eq!(server.get("/jobs/key:rest").expect(200)["pauseReason"], "not yet");
    let again = everbell(&server, &imported);
    assert!(again.code == Some(2) && again.stderr.contains("is still paused by an import"), "{}", again.stderr);
    let nothing = everbell(&server, &["jobs", "resume", "--label", "imported=other"]);
    assert!(nothing.code == Some(2) && nothing.stderr.contains("no current job has the label"), "{}", nothing.stderr);
    write("other.txt", "@daily /usr/bin/backup\n");
    let foreign = everbell(&server, &["import", "crontab", "other.txt", "--yes"]);
    let refusal = "were not imported from `other.txt`: `backup`";
    assert!(foreign.code == Some(2) && foreign.stderr.contains(refusal), "{}", foreign.stderr);
}

#[test]
fn timer_and_cronjob_become_jobs_that_run() {
    let server = server();
    let out = server.folder.path().join("out");
    fs::create_dir(&out).unwrap();
    let (shown, write) =
        (out.display(), |name: &str, text: &str| fs::write(server.folder.path().join(name), text).unwrap());
    write(
        "tidy.timer",
        "[Unit]\nDescription=Tidy up\n[Timer]\nOnCalendar=Mon..Fri 04:30 Europe/Paris\nPersistent=true\n",
    );
    write("tidy.service", &format!("[Service]\nWorkingDirectory={shown}\nExecStart=/usr/bin/touch 'a b'\n"));
    write("odd.timer", "[Timer]\nOnCalendar=Mon *-*-13\nUnit=tidy.service\n");
    let timers = everbell(&server, &["import", "timers", "tidy.timer", "odd.timer", "--yes"]);
    assert_eq!(timers.code, Some(1), "{}{}", timers.stdout, timers.stderr);
    for part in [
        "tidy\tjob\ttidy\tAt 04:30 on weekdays, Europe/Paris\n",
        "odd\trefused\t-\tOnCalendar=Mon *-*-13: the weekday and the day of the month must both match",
        "everbell jobs resume --label imported=tidy.timer --imported\n",
    ] {
        assert!(timers.stdout.contains(part), "{part}: {}", timers.stdout);
    }
    let yaml = format!(
        "kind: CronJob\nmetadata: {{ name: report }}\nspec:\n  schedule: '0 5 * * *'\n  jobTemplate:\n    spec:\n      \
         backoffLimit: 0\n      template:\n        spec:\n          containers:\n            - image: example/report\n              \
         command: [/bin/sh, -c, 'echo $WHAT > {shown}/report']\n              env: [{{ name: WHAT, value: done }}]\n"
    );
    write("report.yaml", &yaml);
    let cronjob = everbell(&server, &["import", "cronjob", "report.yaml", "--yes"]);
    assert_eq!(cronjob.code, Some(0), "{}{}", cronjob.stdout, cronjob.stderr);
    assert!(
        cronjob.stdout.contains("report\tdiffers\treport\timage `example/report` is left out"),
        "{}",
        cronjob.stdout
    );
    let job = server.get("/jobs/key:report").expect(200);
    assert_eq!((&job["status"], &job["policies"]["overlap"]), (&json!("paused"), &json!("allow")));
    for label in ["imported=tidy.timer", "imported=report.yaml"] {
        assert_eq!(everbell(&server, &["jobs", "resume", "--label", label]).code, Some(0));
    }
    let runs = run_all(&server);
    assert!(runs.len() == 2 && runs.values().all(|run| run["status"] == "succeeded"), "{runs:#?}");
    assert!(out.join("a b").exists());
    assert_eq!(fs::read_to_string(out.join("report")).unwrap(), "done\n");
}
