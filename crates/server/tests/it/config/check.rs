//! `everbell config check`.

use serde_json::json;

use super::{Folder, document};

/// Jobs that begin late in the next century fire next at a time that no test run sees pass.
const GOOD: &str = r#"
[[target]]
label = "log"
type = "log"

[[target]]
label = "brief"
type = "http"
url = "https://hooks.example.com:8443/hunter2?key=hunter2"
method = "PUT"

[[target]]
label = "backup"
type = "command"
argv = ["/usr/bin/backup", "--all"]

[[job]]
job_key = "daily"
target = "brief"
cron_expression = "0 8 * * mon-fri"
timezone = "Europe/Paris"
start_at = 2190-01-01T00:00:00Z

[[job]]
job_key = "both"
target = "backup"
cron_expression = "0 9 1,15 * mon"
start_at = "2190-01-01T00:00:00Z"

[[job]]
job_key = "once"
target = "log"
run_at = 2190-06-01T12:00:00

[[job]]
job_key = "over"
target = "log"
run_at = 2001-06-01T12:00:00
"#;

#[test]
fn a_good_file_is_summed_up() {
    let folder = Folder::with("good", GOOD);
    let ran = folder.run(&["check"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(
        ran.stdout,
        "ok: everbell.toml: 3 targets, 4 jobs\n\
         target\tlog\tlog\tprints the payload\n\
         target\tbrief\thttp\tPUT https://hooks.example.com:8443/…\n\
         target\tbackup\tcommand\t/usr/bin/backup\n\
         job\tdaily\tbrief\tAt 08:00 on weekdays\tEurope/Paris\t2190-01-01 08:00:00 +01:00\n\
         job\tboth\tbackup\tAt 09:00 on day 1 and 15 of the month, OR on Monday\tUTC\t2190-01-01 09:00:00 +00:00\n\
         job\tonce\tlog\tOnce\tUTC\t2190-06-01 12:00:00 +00:00\n\
         job\tover\tlog\tOnce\tUTC\t-\n"
    );
    assert_eq!(
        ran.stderr,
        "warning: target \"backup\": the program `/usr/bin/backup` was not found on this machine\n\
         warning: job \"both\": day-of-month and day-of-week are both set: it runs when either matches (if both must \
         match, set one and let the job check the other)\n\
         warning: job \"over\": it no longer fires\n"
    );
}

#[test]
fn the_document_sums_up_too() {
    let folder = Folder::with("good_document", GOOD);
    let ran = folder.run_with(&["check", "--json", "--listen", "0.0.0.0:7070"], &[("EVERBELL_LOGS", "x")]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let shown = document(&ran.stdout);
    assert_eq!((&shown["valid"], &shown["file"]), (&json!(true), &json!("everbell.toml")));
    assert_eq!(shown["targets"][1], json!({"label": "brief", "type": "http"}));
    assert_eq!(
        shown["jobs"][0],
        json!({
            "jobKey": "daily",
            "target": "brief",
            "description": "At 08:00 on weekdays",
            "timezone": "Europe/Paris",
            "nextRunAt": "2190-01-01T07:00:00Z",
            "nextRunAtLocal": "2190-01-01T08:00:00+01:00[Europe/Paris]",
            "warnings": [],
        })
    );
    assert_eq!(shown["jobs"][1]["warnings"][0]["code"], "either_day");
    assert_eq!((&shown["jobs"][3]["nextRunAt"], &shown["jobs"][3]["nextRunAtLocal"]), (&json!(null), &json!(null)));
    assert_eq!(shown["warnings"][0], "unknown variable `EVERBELL_LOGS`; did you mean `EVERBELL_LOG`?");
    assert!(shown["warnings"][1].as_str().unwrap().starts_with("0.0.0.0:7070 can be reached"), "{shown}");
}

#[test]
fn the_example_is_valid_wherever_it_is_read() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../everbell.example.toml");
    let ran = Folder::new("example").run(&["check", "--config", example]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.lines().all(|line| line.ends_with("was not found on this machine")), "{}", ran.stderr);
    assert!(
        ran.stdout.starts_with(&format!("ok: {example}: 3 targets, 5 jobs, 1 calendar, 3 channels, 4 rules\n")),
        "{}",
        ran.stdout
    );
}

const BAD: &str = r#"[server]
listen = 7070
rol = "api"
trust_proxy = "no"

[database]
url = "mysql://u:hunter2@h/d"
url_file = "/nowhere"

[engine]
lease = "1s"

[[target]]
label = "brief"
type = "http"
url = { env = "BRIEF_URL" }
headers = { authorization = { file = "/nowhere" } }

[[target]]
label = "brief"
type = "command"
argv = []
url = "https://example.com"

[[job]]
job_key = "daily"
target = "breif"
cron_expression = "0 25 * * *"
timezone = "Europe/Pariss"
payload = { ratio = nan }

[[job]]
job_key = "daily"
target = "brief"
cron_expression = "@daily"
[job.policies]
timeout = "soon"
"#;

#[test]
fn every_problem_is_told_with_its_line() {
    let folder = Folder::with("bad", BAD);
    let said = folder.refusal(&["--log-level", "loud"], &[("EVERBELL_ADMIN_TOKEN", "hunter2")]);
    assert_eq!(
        said,
        "error: the configuration has 19 problems\n\
         everbell.toml:2: server.listen: must be a text, not a number\n\
         everbell.toml:3: server.rol: is not known here; did you mean `role`?\n\
         everbell.toml:4: server.trust_proxy: must be true or false, not a text\n\
         everbell.toml:7: database.url: must be `sqlite:PATH`, `sqlite::memory:` or \
         `postgres://user:password@host/database`\n\
         everbell.toml:8: database.url_file: `database.url` is set too; keep only one of them\n\
         everbell.toml:11: engine.lease: must be from 3 s to 600 s\n\
         everbell.toml:16: target \"brief\": url: the variable `BRIEF_URL` is not set\n\
         everbell.toml:17: target \"brief\": headers.authorization: the file `/nowhere` does not exist\n\
         everbell.toml:20: target \"brief\": label: is defined twice; the other one is on line 14\n\
         everbell.toml:22: target \"brief\": argv: must begin with a program, such as `[\"/usr/bin/backup\", \"--all\"]`\n\
         everbell.toml:23: target \"brief\": url: is only for targets of type `http`; this one is `command`\n\
         everbell.toml:27: job \"daily\": target: there is no target `breif`; known: `brief`\n\
         everbell.toml:28: job \"daily\": cron_expression: hour: 25 is outside 0-23; allowed: 0-23, lists `9,17`, ranges \
         `9-17`, steps `*/2`, or `*`\n\
         everbell.toml:29: job \"daily\": timezone: unknown time zone `Europe/Pariss`; did you mean `Europe/Paris`?\n\
         everbell.toml:30: job \"daily\": payload.ratio: must be a finite number\n\
         everbell.toml:33: job \"daily\": job_key: is defined twice; the other one is on line 26\n\
         everbell.toml:37: job \"daily\": policies.timeout: `soon` is not a duration; write it as `90s`, `15m`, `1h 30m`, \
         `7d` or `PT15M`\n\
         EVERBELL_ADMIN_TOKEN: must be `evb_` and 32 to 200 letters, digits, `_` or `-` after it; create one with `echo \
         evb_$(openssl rand -hex 32)`\n\
         --log-level: `loud` is not one of off, error, warn, info, debug, trace, or such as `info,everbell=debug`\n"
    );
}

#[test]
fn the_document_has_every_problem() {
    let folder = Folder::with("bad_document", "[server]\nrole = \"al\"\n");
    let ran = folder.run_with(&["check", "--json"], &[("EVERBELL_METRICS_TOKEN", "")]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(2), ""));
    assert_eq!(
        document(&ran.stdout),
        json!({
            "valid": false,
            "problems": [
                {
                    "file": "everbell.toml", "line": 2, "key": "server.role",
                    "message": "must be one of all, scheduler, api",
                },
                {
                    "file": null, "line": null, "key": "EVERBELL_METRICS_TOKEN",
                    "message": "is empty; give it a value or unset it",
                },
            ],
        })
    );
}

#[test]
fn what_is_no_toml_is_told_with_its_line() {
    let folder =
        Folder::with("syntax", "[server]\nlisten = 127.0.0.1:7070\n\n[log]\nlevel = \"info\nformat = \"xml\"\n");
    assert_eq!(
        folder.refusal(&[], &[]),
        "error: the configuration has 3 problems\n\
         everbell.toml:2: invalid float, expected nothing\n\
         everbell.toml:5: invalid basic string, expected `\"`\n\
         everbell.toml:6: log.format: must be one of text, json\n"
    );
}

#[test]
fn the_sample_in_the_documentation_is_true() {
    let text = "[server]\nlistn = \"127.0.0.1:7070\"\n[[target]]\nlabel = \"brief\"\ntype = \"http\"\n\
                url = \"https://example.com\"\n[[job]]\njob_key = \"daily-briefing\"\ntarget = \"breif\"\n\
                timezone = \"Europe/Pariss\"\ncron_expression = \"@daily\"\n";
    let said = Folder::with("sample", text).refusal(&[], &[]);
    let page = include_str!("../../../../../docs/configuration.md");
    assert!(page.contains(&format!("```text\n{said}```\n")), "{said}");
}

#[test]
fn a_job_depends_on_another() {
    let job = |key: &str, on: &str| {
        format!(
            "[[job]]\njob_key = \"{key}\"\ntarget = \"log\"\ncron_expression = \"@daily\"\n\
             policies.depends_on = {{ job_key = \"{on}\", within = \"6h\" }}\n"
        )
    };
    let target = "[[target]]\nlabel = \"log\"\ntype = \"log\"\n";
    let itself = Folder::with("itself", &format!("{target}{}", job("a", "a"))).run(&["check"]);
    assert_eq!(itself.code, Some(2));
    assert!(itself.stderr.contains("job \"a\": policies.depends_on.job_key: is the job itself"), "{}", itself.stderr);
    // Jobs that are created elsewhere are not known here.
    let folder = Folder::with("others", &format!("{target}{}{}", job("a", "b"), job("b", "import")));
    let told = folder.run(&["check"]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert_eq!(
        told.stderr,
        "warning: job \"b\": it depends on `import`, which this configuration does not define: every slot is skipped \
         unless that job exists elsewhere\n"
    );
    let shown = document(&folder.run(&["check", "--json"]).stdout);
    assert_eq!(
        (&shown["jobs"][0]["warnings"], &shown["jobs"][1]["warnings"][0]["code"]),
        (&json!([]), &json!("unknown_dependency"))
    );
}
