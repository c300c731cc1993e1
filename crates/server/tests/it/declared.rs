//! `everbell jobs export`, `apply` and `diff`, through the real binary.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::binary::{Ran, document, keys, ran};
use crate::server::{Folder, Server, TARGETS, quiet};

/// `everbell jobs` in the folder of a server.
fn jobs(server: &Server, args: &[&str]) -> Ran {
    let mut command = quiet(server.folder.path());
    command.arg("jobs").args(args).env("LC_ALL", "C").env("EVERBELL_SERVER", format!("http://{}", server.address));
    ran(command.output().unwrap())
}

#[track_caller]
fn done(server: &Server, args: &[&str]) -> String {
    let ran = jobs(server, args);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{args:?}: {}", ran.stdout);
    ran.stdout
}

fn write(server: &Server, text: &str) {
    fs::write(server.folder.path().join("jobs.toml"), text).unwrap();
}

/// Everything that a job can say.
fn rich() -> Value {
    json!({
        "target": "sleep",
        "cronExpression": "0 8 * * 1-5",
        "timezone": "Europe/Paris",
        "payload": { "kind": "daily", "n": [1, 2.5, true], "a b": "x\"y\n" },
        "startAt": "2030-01-01T00:00:00Z",
        "description": "In \"two\"\nlines",
        "labels": { "team": "ops", "a.b": "c" },
        "policies": {
            "overlap": "queue", "maxConcurrentRuns": 2, "timeout": "20m", "catchUp": "all", "catchUpWindow": "2h",
            "retry": { "maxAttempts": 3 }, "dependsOn": { "jobKey": "plain", "within": "1h" },
            "pauseAfterFailures": 5, "dst": { "gap": "skip" },
        },
    })
}

const EXPORTED: &str = r#"[[job]]
job_key = "once"
target = "print"
run_at = "2040-01-01T00:00:00Z"

[[job]]
job_key = "plain"
target = "print"
cron_expression = "0 0 1 1 *"

[[job]]
job_key = "rich"
target = "sleep"
cron_expression = "0 8 * * 1-5"
timezone = "Europe/Paris"
payload = { "a b" = "x\"y\n", kind = "daily", n = [1, 2.5, true] }
start_at = "2030-01-01T00:00:00Z"
policies.catch_up = "all"
policies.catch_up_window = "PT2H"
policies.depends_on.job_key = "plain"
policies.depends_on.within = "PT1H"
policies.dst.gap = "skip"
policies.max_concurrent_runs = 2
policies.overlap = "queue"
policies.pause_after_failures = 5
policies.retry.max_attempts = 3
policies.timeout = "PT20M"
description = "In \"two\"\nlines"
labels = { "a.b" = "c", team = "ops" }
"#;

fn rich_server() -> Server {
    let server = Server::start();
    server.job("plain", &json!({}));
    server.job("rich", &rich());
    let once = json!({ "jobKey": "once", "target": "print", "runAt": "2040-01-01T00:00:00Z" });
    server.post("/jobs", &once).expect(201);
    server
}

fn what_is_exported_is_what_is_applied(other: &Server) {
    let server = rich_server();
    assert_eq!(done(&server, &["export", "--all"]), EXPORTED);
    let one = done(&server, &["export", "plain"]);
    assert_eq!(one, "[[job]]\njob_key = \"plain\"\ntarget = \"print\"\ncron_expression = \"0 0 1 1 *\"\n");
    let told = done(&server, &["export", "--all", "-f", "jobs.toml"]);
    assert_eq!(told, "+ Wrote 3 jobs to jobs.toml\n");
    let text = fs::read_to_string(server.folder.path().join("jobs.toml")).unwrap();
    assert_eq!(text, EXPORTED);
    assert_eq!(
        done(&server, &["apply", "-f", "jobs.toml", "--prune"]),
        "unchanged: 3 jobs\n",
        "the same is nothing new"
    );

    write(other, EXPORTED);
    let planned = done(other, &["apply", "-f", "jobs.toml", "--dry-run"]);
    let lines: Vec<&str> = planned.lines().collect();
    assert_eq!(lines[0], "create once: next run 2040-01-01T00:00:00Z");
    assert!(lines.len() == 3 && lines[2].starts_with("create rich: next run 2030-01-01T07:00:00Z"), "{planned}");
    assert_eq!(other.get("/jobs").expect(200)["items"], json!([]), "a dry run changes nothing");
    let applied = done(other, &["apply", "-f", "jobs.toml", "--yes"]);
    assert_eq!(applied, format!("{planned}+ Applied 3 changes\n"));
    assert_eq!(done(other, &["export", "--all"]), EXPORTED);
    assert_eq!(done(other, &["apply", "-f", "jobs.toml", "--yes"]), "unchanged: 3 jobs\n");

    let folder = Folder::new();
    fs::write(folder.path().join("everbell.toml"), format!("{TARGETS}\n{EXPORTED}")).unwrap();
    let checked = ran(quiet(folder.path()).args(["config", "check"]).output().unwrap());
    assert_eq!(checked.code, Some(0), "the configuration reads it too: {}", checked.stderr);
}

#[test]
fn what_is_exported_is_what_is_applied_in_sqlite() {
    what_is_exported_is_what_is_applied(&Server::start());
}

#[test]
fn what_is_exported_is_what_is_applied_in_postgres() {
    what_is_exported_is_what_is_applied(&Server::postgres(TARGETS));
}

#[test]
fn what_cannot_be_written_is_told_and_the_rest_is_there() {
    let server = Server::start();
    server.job("bad", &json!({ "payload": { "a": [null] } }));
    server.job("good", &json!({}));
    let ran = jobs(&server, &["export", "--all"]);
    assert_eq!(ran.code, Some(1));
    let told = "warning: job `bad` is left out: its payload has `null`, for which TOML has no word\n";
    assert_eq!(ran.stderr, told);
    assert!(ran.stdout.contains("\"good\"") && !ran.stdout.contains("bad"), "{}", ran.stdout);
    assert_eq!(jobs(&server, &["export", "nobody"]).code, Some(3));
    assert_eq!(jobs(&server, &["export"]).code, Some(2));
    let shown = document(&done(&server, &["export", "good", "--json"]));
    assert_eq!((keys(&shown), &shown["items"][0]["jobKey"]), (vec!["items"], &json!("good")));
}

const CHANGED: &str = r#"[[job]]
job_key = "plain"
target = "print"
cron_expression = "0 0 1 2 *"
policies.timeout = "5m"
labels = { team = "ops" }
"#;

#[test]
fn a_change_is_shown_then_made_and_a_pause_stays() {
    let server = rich_server();
    server.post("/jobs/key:plain/pause", &json!({ "reason": "not now" })).expect(200);
    write(&server, CHANGED);
    let expected = "change plain: v1 -> v2\n  \
                    cronExpression: 0 0 1 1 * -> 0 0 1 2 *\n  \
                    labels.team: none -> ops\n  \
                    policies.timeout: PT1H -> PT5M\n";
    let timeout = server.get("/jobs/key:plain").expect(200)["policies"]["timeout"].as_str().unwrap().to_owned();
    let expected = expected.replace("PT1H", &timeout);
    assert_eq!(done(&server, &["apply", "-f", "jobs.toml", "--dry-run"]), expected);
    let unasked = jobs(&server, &["apply", "-f", "jobs.toml"]);
    assert_eq!((unasked.code, unasked.stdout.as_str()), (Some(2), expected.as_str()));
    let question =
        format!("error: no terminal to ask for confirmation: Apply 1 change to http://{}?\n", server.address);
    assert!(unasked.stderr.starts_with(&question), "{}", unasked.stderr);
    assert_eq!(done(&server, &["apply", "-f", "jobs.toml", "--yes"]), format!("{expected}+ Applied 1 change\n"));
    let job = server.get("/jobs/key:plain").expect(200);
    assert_eq!(
        (&job["version"], &job["status"], &job["labels"]),
        (&json!(2), &json!("paused"), &json!({"team": "ops"}))
    );
    let entry = &server.get("/audit").expect(200)["items"][0];
    assert_eq!(entry["reason"], "everbell jobs apply jobs.toml");

    server.post("/jobs/key:plain/resume", &json!({})).expect(200);
    write(&server, &CHANGED.replace("0 0 1 2 *", "0 0 1 3 *"));
    let planned = document(&done(&server, &["apply", "-f", "jobs.toml", "--dry-run", "--json"]));
    assert_eq!(keys(&planned), ["applied", "dryRun", "steps"]);
    let step = &planned["steps"][0];
    assert_eq!(
        (&step["action"], &step["jobKey"], &step["version"]),
        (&json!("newVersion"), &json!("plain"), &json!(2))
    );
    assert!(step["nextRunAt"].as_str().unwrap().contains("-02-01T"), "{step}");
    assert!(step["newNextRunAt"].as_str().unwrap().contains("-03-01T"), "{step}");

    let told = done(&server, &["apply", "-f", "jobs.toml", "--prune", "--yes"]);
    assert!(told.contains("retire once: v1\n") && told.ends_with("retire rich: v1\n+ Applied 3 changes\n"), "{told}");
    let left = server.get("/jobs").expect(200);
    assert_eq!(left["items"].as_array().unwrap().len(), 1, "{left}");
    let diff = done(&server, &["diff", "plain"]);
    assert_eq!(diff, "cronExpression\t0 0 1 2 *\t0 0 1 3 *\n");
    let diff = done(&server, &["diff", "plain", "--from", "1", "--to", "2"]);
    assert!(diff.contains("labels.team\t-\tops\n") && diff.contains("policies.timeout\t"), "{diff}");
    assert_eq!(document(&done(&server, &["diff", "plain", "--json"]))["items"][0]["to"], "0 0 1 3 *");
    assert_eq!(done(&server, &["diff", "plain", "-o", "name"]), "cronExpression\n");
    assert_eq!(jobs(&server, &["diff", "plain", "--from", "1"]).code, Some(2));
    assert_eq!(jobs(&server, &["diff", "plain", "--from", "1", "--to", "9"]).code, Some(3));
    assert_eq!(jobs(&server, &["diff", "nobody"]).code, Some(3));
}

#[test]
fn every_problem_of_a_file_has_its_line() {
    let server = Server::start();
    write(
        &server,
        "[[job]]\njob_key = \"a\"\ntarget = \"print\"\ncron_expression = \"61 * * * *\"\n\n[[job]]\ntarget = 7\nwhat = 1\n",
    );
    let ran = jobs(&server, &["apply", "-f", "jobs.toml", "--yes"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("\njobs.toml:4: job \"a\": cron_expression: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("\njobs.toml:7: ") && ran.stderr.contains("\njobs.toml:8: "), "{}", ran.stderr);
    write(&server, "");
    let empty = jobs(&server, &["apply", "-f", "jobs.toml", "--prune", "--yes"]);
    assert_eq!((empty.code, empty.stderr.as_str()), (Some(2), "error: jobs.toml has no `[[job]]` block\n"));
    assert_eq!(jobs(&server, &["apply", "-f", "none.toml"]).code, Some(2));
    // A target that nobody serves is what the server refuses.
    write(&server, "[[job]]\njob_key = \"a\"\ntarget = \"fax\"\ncron_expression = \"@daily\"\n");
    let refused = jobs(&server, &["apply", "-f", "jobs.toml", "--yes"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("0 of 1 changes were applied before this error")
            && refused.stderr.contains("cannot create job `a`")
    );
}

/// A dry run and the run itself, which must end alike; what the dry run said.
#[track_caller]
fn refused_alike(server: &Server, args: &[&str]) -> String {
    let dry = jobs(server, &[args, &["--dry-run"]].concat());
    let run = jobs(server, &[args, &["--yes"]].concat());
    assert_eq!((dry.code, run.code), (Some(2), Some(2)), "{}{}", dry.stderr, run.stderr);
    dry.stderr
}

fn dry_runs_refuse(server: &Server) {
    write(server, "[[job]]\njob_key = \"a\"\ntarget = \"fax\"\ncron_expression = \"@daily\"\n");
    assert_eq!(
        refused_alike(server, &["apply", "-f", "jobs.toml"]),
        "error: the server would refuse this\n  \
         job `a`: target: unknown target `fax`; known: `fail`, `print`, `sleep`\n"
    );
    write(server, "[[job]]\njob_key = \"b\"\ntarget = \"print\"\nrun_at = \"2020-01-01T00:00:00Z\"\n");
    assert_eq!(
        refused_alike(server, &["apply", "-f", "jobs.toml"]),
        "error: the server would refuse this\n  job `b`: run_at: must be in the future\n"
    );
    // A job that is there already is refused another target as well.
    server.job("c", &json!({}));
    write(server, "[[job]]\njob_key = \"c\"\ntarget = \"fax\"\ncron_expression = \"@daily\"\n");
    assert!(refused_alike(server, &["apply", "-f", "jobs.toml"]).contains("\n  job `c`: target: unknown target `fax`"));
    fs::write(server.folder.path().join("crontab.txt"), CRONTAB).unwrap();
    let [dry, run] = ["--dry-run", "--yes"].map(|flag| jobs(server, &["import-crontab", "crontab.txt", flag]));
    assert_eq!((dry.code, run.code), (Some(1), Some(2)), "{}{}", dry.stderr, run.stderr);
    let refusal = "no live instance serves the target `shell`; set `allow = true` in `[shell]`";
    assert!(run.stderr.contains(refusal), "{}", run.stderr);
    let told = refused_alike(server, &["import-crontab", "crontab.txt", "--target", "print"]);
    assert_eq!(told.matches("target `print` is not the built-in `shell`").count(), 1, "{told}");
}

#[test]
fn a_dry_run_refuses_what_the_run_would_be_refused_for() {
    dry_runs_refuse(&Server::start());
}

#[test]
fn a_dry_run_refuses_what_the_run_would_be_refused_for_on_postgres() {
    dry_runs_refuse(&Server::postgres(TARGETS).registered());
}

#[test]
fn jobs_of_the_configuration_are_left_to_it() {
    let own = "[[job]]\njob_key = \"mine\"\ntarget = \"print\"\ncron_expression = \"@daily\"\n";
    let server = Server::with(&format!("{TARGETS}\n{own}"));
    write(&server, own);
    assert_eq!(done(&server, &["apply", "-f", "jobs.toml", "--prune", "--yes"]), "unchanged: 1 job\n");
    write(&server, &own.replace("@daily", "@hourly"));
    let refused = jobs(&server, &["apply", "-f", "jobs.toml", "--yes"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(5), ""));
    let told = "warning: job `mine` is declared by the config of `everbell` and differs: change it there\n\
                nothing was changed\n";
    assert_eq!(refused.stderr, told);
    write(&server, &own.replace("mine", "other"));
    let kept = done(&server, &["apply", "-f", "jobs.toml", "--prune", "--yes"]);
    assert!(kept.starts_with("create other: ") && !kept.contains("retire"), "{kept}");
}

#[test]
fn standard_input_is_a_file_too() {
    let server = Server::start();
    let mut command = quiet(server.folder.path());
    command
        .args(["jobs", "apply", "-f", "-", "--yes"])
        .env("LC_ALL", "C")
        .env("EVERBELL_SERVER", format!("http://{}", server.address));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(CHANGED.as_bytes()).unwrap();
    let found = ran(child.wait_with_output().unwrap());
    assert_eq!(found.code, Some(0), "{}", found.stderr);
    assert!(found.stdout.ends_with("+ Applied 1 change\n"), "{}", found.stdout);
}

/// A server that gives these answers, one for each connection, and tells what it was asked.
fn scripted(answers: Vec<String>) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = std::thread::spawn(move || {
        let answer = |answer: String| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut heard = vec![0; 65_536];
            let length = std::io::Read::read(&mut stream, &mut heard).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&heard[..length]).into_owned()
        };
        answers.into_iter().map(answer).collect()
    });
    (address, asked)
}

#[test]
fn a_change_by_somebody_else_meanwhile_is_a_conflict() {
    let server = rich_server();
    write(&server, CHANGED);
    let listed = server.get("/jobs").expect(200);
    let revision = listed["items"][1]["revision"].as_i64().unwrap();
    let problem = json!({ "code": "RevisionMismatch", "detail": "Somebody was faster.", "status": 412 });
    let reply = |status: &str, body: &Value| {
        let body = body.to_string();
        let length = body.len();
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
    };
    let (address, asked) = scripted(vec![reply("200 OK", &listed), reply("412 No", &problem)]);
    let mut command = quiet(server.folder.path());
    command.args(["jobs", "apply", "-f", "jobs.toml", "--yes", "--server", &address]).env("LC_ALL", "C");
    let found = ran(command.output().unwrap());
    assert_eq!(found.code, Some(5), "{}", found.stderr);
    let told = "0 of 1 changes were applied before this error; run the command again to apply the rest\n\
                error: cannot change job `plain`: somebody was faster\n";
    assert_eq!(found.stderr, told);
    let sent = asked.join().unwrap().pop().unwrap();
    assert!(sent.starts_with("POST /api/v1/jobs/key:plain/new-version HTTP/1.1\r\n"), "{sent}");
    assert!(sent.contains(&format!("if-match: \"{revision}\"\r\n")), "{sent}");
}

const CRONTAB: &str = "\
# what was on the old machine
SHELL=/bin/bash
CRON_TZ=Europe/Paris
30 2 * * * /usr/bin/backup --full
*/5 * * * * ping -c 1 example.com > /dev/null
@reboot /usr/bin/start
";

#[test]
fn a_crontab_becomes_jobs_and_every_line_is_told() {
    let server = Server::start();
    fs::write(server.folder.path().join("crontab.txt"), CRONTAB).unwrap();
    let told = "2\tnote\t-\tSHELL: `/bin/bash` runs the lines below\n\
                3\tnote\t-\tCRON_TZ: the lines below are read in Europe/Paris\n\
                4\tjob\tbackup-full\tEvery day at 02:30, Europe/Paris\n";
    let more = "5\tjob\tping-c-1-example-com\tEvery 5 minutes, Europe/Paris\n\
                6\trefused\t-\t@reboot: left out: there is no time at which this fires; start it with the machine, for \
                example by a systemd unit\n";
    let args = ["import-crontab", "crontab.txt", "--target", "print", "--reads-command", "--tz", "UTC"];
    let dry = jobs(&server, &[&args[..], &["--dry-run"]].concat());
    assert_eq!((dry.code, dry.stderr.as_str()), (Some(1), ""), "one line had to be left out");
    let rest = dry.stdout.strip_prefix(told).unwrap_or_else(|| panic!("{}", dry.stdout));
    let (differences, rest) = rest.split_once(more).unwrap_or_else(|| panic!("{}", dry.stdout));
    assert!(differences.lines().count() == 2, "{differences}");
    assert!(differences.lines().all(|line| line.starts_with("4\tdiffers\tbackup-full\t02:30 ")), "{differences}");
    let [one, two, sum, start] = rest.lines().collect::<Vec<_>>()[..] else { panic!("{rest}") };
    assert!(one.starts_with("create backup-full: paused, would run next 20"), "{one}");
    assert!(two.starts_with("create ping-c-1-example-com: "), "{two}");
    let command = "start them: everbell jobs resume --label imported=crontab.txt --imported";
    assert_eq!((sum, start.trim()), ("! 2 jobs to create, paused; 1 line left out", command));
    assert_eq!(server.get("/jobs").expect(200)["items"], json!([]));
    assert_eq!(jobs(&server, &args).code, Some(2), "it needs a yes");
    let done = jobs(&server, &[&args[..], &["--yes"]].concat());
    let sum = format!("! 2 jobs created, paused; 1 line left out\n  {command}\n");
    assert!(done.code == Some(1) && done.stdout.ends_with(&sum), "{done:?}");
    let job = server.get("/jobs/key:backup-full").expect(200);
    let payload = json!({"command": "/usr/bin/backup --full", "shell": "/bin/bash"});
    assert_eq!((&job["timezone"], &job["payload"]), (&json!("Europe/Paris"), &payload));
    assert_eq!((&job["status"], &job["nextRunAt"]), (&json!("paused"), &json!(null)));
    let again = document(&jobs(&server, &[&args[..], &["--yes", "--json"]].concat()).stdout);
    assert_eq!(keys(&again), ["applied", "dryRun", "file", "label", "lines", "steps", "system"]);
    assert_eq!((&again["applied"], &again["steps"][0]["action"]), (&json!(0), &json!("unchanged")));
    assert_eq!(again["lines"][2]["jobKey"], "backup-full");
    assert_eq!(jobs(&server, &["import-crontab", "none"]).code, Some(2));
    let missing = jobs(&server, &["import-crontab", "crontab.txt", "--tz", "Mars", "--dry-run"]);
    assert_eq!(missing.code, Some(2), "{}", missing.stderr);
}
