//! `everbell config show`.

use serde_json::json;

use super::{Folder, document};

const FILE: &str = r#"[server]
listen = "127.0.0.1:1"
role = "api"

[database]
url = "postgres://everbell:hunter2@db/everbell"

[auth]
metrics_token = "hunter2-hunter2-hunter2"

[[target]]
label = "brief"
type = "http"
url = "https://hooks.example.com/hunter2"
headers = { authorization = "hunter2", x-key = { env = "BRIEF" } }
signing_keys = ["hunter2-is-the-signing-key"]

[[target]]
label = "backup"
type = "command"
argv = ["/usr/bin/backup"]
env = { PASSWORD = "hunter2" }

[[job]]
job_key = "daily"
target = "brief"
cron_expression = "@daily"
payload = { kind = "daily" }
policies.retry = { max_attempts = 3 }
"#;

const VARIABLES: [(&str, &str); 3] = [
    ("BRIEF", "hunter2"),
    ("EVERBELL_ROLE", "scheduler"),
    ("EVERBELL_ADMIN_TOKEN", "evb_hunter2hunter2hunter2hunter2hunter2"),
];

/// Every value of the file and its defaults, with its source.
const SHOWN: &str = "server.listen\t127.0.0.1:3\tflag --listen\n\
 server.public_url\t-\tdefault\n\
 server.trust_proxy\tfalse\tdefault\n\
 server.role\tscheduler\tenv EVERBELL_ROLE\n\
 server.max_connections\t1024\tdefault\n\
 server.request_timeout\t10s\tdefault\n\
 server.max_connections_per_address\t64\tdefault\n\
 server.data_dir\teverbell-data\tdefault\n\
 database.url\tpostgres://everbell:(hidden)@db/everbell\teverbell.toml:6\n\
 database.url_file\t-\tdefault\n\
 database.max_connections\t-\tdefault\n\
 database.allow_copy\tfalse\tdefault\n\
 api.mounts\t[\"/api/v1\",\"/api/v2/admin/cron\"]\tdefault\n\
 api.compat\ttrue\tdefault\n\
 api.require_if_match\tfalse\tdefault\n\
 api.run_now_overlap_status\t409\tdefault\n\
 api.docs\ttrue\tdefault\n\
 api.write_rate\t100\tdefault\n\
 api.write_burst\t1000\tdefault\n\
 ui.enabled\ttrue\tdefault\n\
 ui.environment\t-\tdefault\n\
 auth.admin_token\t(hidden)\tenv EVERBELL_ADMIN_TOKEN\n\
 auth.admin_token_file\t-\tdefault\n\
 auth.metrics_token\t(hidden)\teverbell.toml:9\n\
 auth.metrics_token_file\t-\tdefault\n\
 auth.run_history\tviewer\tdefault\n\
 engine.concurrency\t256\tdefault\n\
 engine.poll\t5s\tdefault\n\
 engine.lease\t60s\tdefault\n\
 engine.heartbeat\t5s\tdefault\n\
 engine.shutdown_grace\t30s\tdefault\n\
 engine.cancel_grace\t10s\tdefault\n\
 engine.batch\t500\tdefault\n\
 engine.max_pending_runs\t10000\tdefault\n\
 engine.linger\t2ms\tdefault\n\
 retention.keep\t180d\tdefault\n\
 retention.audit\t730d\tdefault\n\
 log.format\ttext\tdefault\n\
 log.level\tinfo\tdefault\n\
 metrics.per_job\tfalse\tdefault\n\
 jobs.app\teverbell\tdefault\n\
 jobs.removed\tkeep\tdefault\n\
 jobs.adopt\tfalse\tdefault\n\
 shell.allow\tfalse\tdefault\n\
 shell.users\t-\tdefault\nshell.env\t-\tdefault\n\
 shell.concurrency\t-\tdefault\n\
 shell.timeout\t-\tdefault\n\
 targets.editable\t[]\tdefault\n\
 targets.secret_env\t-\tdefault\n\
 targets.secret_dir\t-\tdefault\n\
 targets.allow_private\tfalse\tdefault\n\
 target \"brief\": label\tbrief\teverbell.toml:12\n\
 target \"brief\": type\thttp\teverbell.toml:13\n\
 target \"brief\": url\thttps://hooks.example.com/…\teverbell.toml:14\n\
 target \"brief\": headers.authorization\t(hidden)\teverbell.toml:15\n\
 target \"brief\": headers.x-key\t(hidden)\teverbell.toml:15\n\
 target \"brief\": signing_keys\t[\"(hidden)\"]\teverbell.toml:16\n\
 target \"backup\": label\tbackup\teverbell.toml:19\n\
 target \"backup\": type\tcommand\teverbell.toml:20\n\
 target \"backup\": argv\t[\"/usr/bin/backup\"]\teverbell.toml:21\n\
 target \"backup\": env.PASSWORD\t(hidden)\teverbell.toml:22\n\
 job \"daily\": job_key\tdaily\teverbell.toml:25\n\
 job \"daily\": target\tbrief\teverbell.toml:26\n\
 job \"daily\": cron_expression\t@daily\teverbell.toml:27\n\
 job \"daily\": payload\t{\"kind\":\"daily\"}\teverbell.toml:28\n\
 job \"daily\": policies.retry.max_attempts\t3\teverbell.toml:29\n";

#[test]
fn every_value_is_shown_with_its_source_and_no_secret_is() {
    let folder = Folder::with("show", FILE);
    let ran = folder.run_with(&["show", "--listen", "127.0.0.1:3"], &VARIABLES);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(ran.stdout, SHOWN);
}

#[test]
fn the_document_has_the_same_and_no_secret() {
    let folder = Folder::with("show_document", FILE);
    let ran = folder.run_with(&["show", "--json"], &VARIABLES);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(!ran.stdout.contains("hunter2"), "{}", ran.stdout);
    let shown = document(&ran.stdout);
    assert_eq!(shown["file"], "everbell.toml");
    assert_eq!(shown["items"].as_array().unwrap().len(), 67);
    assert_eq!(shown["items"][3], json!({"key": "server.role", "value": "scheduler", "source": "env EVERBELL_ROLE"}));
    assert_eq!(shown["items"][12]["value"], json!(["/api/v1", "/api/v2/admin/cron"]));
    assert_eq!(shown["items"][1]["value"], json!(null));
}

#[test]
fn what_cannot_be_used_is_not_shown() {
    let folder = Folder::with("show_bad", "[database]\nurl = \"hunter2\"\n");
    let ran = folder.run(&["show"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    let expected = "error: the configuration is not valid\n\
                    everbell.toml:2: database.url: must be `sqlite:PATH`, `sqlite::memory:` or \
                    `postgres://user:password@host/database`\n";
    assert_eq!(ran.stderr, expected);
}

#[test]
fn a_warning_does_not_mix_with_the_data() {
    let ran = Folder::new("show_warning").run_with(&["show"], &[("EVERBELL_ROLL", "x")]);
    assert_eq!(ran.code, Some(0));
    assert_eq!(ran.stderr, "warning: unknown variable `EVERBELL_ROLL`; did you mean `EVERBELL_ROLE`?\n");
    assert!(ran.stdout.contains("\njob \"demo\": cron_expression\t* * * * *\tdefault\n"), "{}", ran.stdout);
}
