//! Whole configurations.

mod calendars;
mod documented;
mod notify;
mod refused;

use std::ffi::OsString;
use std::time::Duration;

use everbell::Removed;
use serde_json::Value;

use super::*;
use crate::config::layers::Origin;
use crate::config::settings::Role;
use crate::targets::Kind;
use everbell_http::access;
use everbell_observe::logs;

const TOKEN: &str = "evb_0123456789abcdef0123456789abcdef";

fn environment(variables: &[(&str, &str)]) -> Environment {
    Environment::new(variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))))
}

fn read_with(text: &str, variables: &[(&str, &str)], flags: &ServeFlags) -> Result<Config, ConfigError> {
    Config::read(Some("a.toml".to_owned()), text, flags, &environment(variables))
}

fn read(text: &str) -> Config {
    read_with(text, &[], &ServeFlags::default()).unwrap()
}

fn shown<'c>(config: &'c Config, key: &str) -> (&'c Value, String) {
    let found = config.sources.iter().find(|shown| shown.key == key).unwrap();
    (&found.value, found.origin.to_string())
}

#[test]
fn an_empty_file_is_the_defaults() {
    let config = read("");
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:7070");
    assert_eq!((config.server.role, config.server.max_connections), (Role::All, 1024));
    assert_eq!(config.server.data_dir, PathBuf::from("everbell-data"));
    assert_eq!(config.database.reveal(), "sqlite:everbell-data/everbell.db");
    assert_eq!(config.api.mounts, ["/api/v1", "/api/v2/admin/cron"]);
    assert!(config.api.compat && config.api.docs && !config.api.require_if_match);
    assert_eq!(config.api.run_now_overlap_status, 409);
    assert!(config.auth.admin_token.is_none() && config.auth.metrics_token.is_none());
    assert_eq!(config.auth.run_history, access::Role::Viewer);
    assert_eq!((config.jobs.removed, config.jobs.adopt, config.metrics.per_job), (Removed::Keep, false, false));
    assert_eq!(config.log.format, logs::Format::Text);
    assert_eq!((config.targets.len(), config.schedules.len(), config.warnings.len()), (0, 0, 0));
    assert_eq!(shown(&config, "engine.heartbeat"), (&Value::from("5s"), "default".to_owned()));
    let mut engine = EngineOptions::default();
    engine.roles = vec!["scheduler".to_owned(), "api".to_owned()];
    assert_eq!(config.engine, engine);
}

#[test]
fn every_section_is_read() {
    let config = read(
        r#"
        [server]
        listen = "[::1]:0"
        public_url = "https://cron.example.com/everbell/"
        trust_proxy = true
        role = "api"
        max_connections = 5
        data_dir = "/var/lib/everbell/"
        [api]
        mounts = ["/cron"]
        compat = false
        require_if_match = true
        run_now_overlap_status = 200
        docs = false
        [auth]
        run_history = "admin"
        [engine]
        concurrency = 7
        poll = "1s"
        lease = "12s"
        shutdown_grace = "1m"
        cancel_grace = "PT2S"
        batch = 9
        linger = "0s"
        [retention]
        keep = "forever"
        audit = "400d"
        [log]
        format = "json"
        level = "warn,everbell=debug"
        [metrics]
        per_job = true
        [jobs]
        app = "reports"
        removed = "retire"
        adopt = true
        "#,
    );
    assert_eq!((config.server.listen.to_string().as_str(), config.server.role), ("[::1]:0", Role::Api));
    assert_eq!(config.server.public_url.as_deref(), Some("https://cron.example.com/everbell"));
    assert!(config.server.trust_proxy && !config.server.role.schedules() && config.server.role.answers());
    assert_eq!(config.database.reveal(), "sqlite:/var/lib/everbell/everbell.db");
    assert_eq!(
        (config.api.mounts.as_slice(), config.api.run_now_overlap_status),
        (["/cron".to_owned()].as_slice(), 200)
    );
    assert!(!config.api.compat && config.api.require_if_match && !config.api.docs);
    assert_eq!(config.auth.run_history, access::Role::Admin);
    let EngineOptions { concurrency, batch, retention, roles, lease, .. } = &config.engine;
    assert_eq!((*concurrency, *batch, *retention, roles.as_slice()), (7, 9, None, ["api".to_owned()].as_slice()));
    assert_eq!(config.engine.audit_retention, Some(Duration::from_hours(400 * 24)));
    assert_eq!((lease.duration, lease.heartbeat), (Duration::from_secs(12), Duration::from_secs(1)));
    assert_eq!(config.engine.cancel_grace, Duration::from_secs(2));
    assert_eq!(
        (config.log.format, config.log.filter.to_string().as_str()),
        (logs::Format::Json, "everbell=debug,warn")
    );
    assert_eq!((config.jobs.removed, config.jobs.adopt, config.metrics.per_job), (Removed::Retire, true, true));
    assert_eq!(config.jobs.app, "reports");
    assert_eq!(shown(&config, "engine.poll"), (&Value::from("1s"), "a.toml:19".to_owned()));
}

#[test]
fn targets_and_jobs_are_read() {
    let config = read_with(
        r#"
        [[target]]
        label = "brief"
        type = "http"
        url = "https://example.com/hook"
        headers = { authorization = { env = "BRIEF" }, x-a = "b" }
        signing_keys = ["whsec_YQ==", { env = "BRIEF" }]
        success = [304, "200-204"]
        timeout = "5s"
        concurrency = 2
        [[target]]
        label = "backup"
        type = "command"
        argv = ["/bin/backup", ""]
        env = { LEVEL = "" }
        pass_env = ["A"]
        success = [0, 3]
        timeout = "1h"
        [[job]]
        job_key = "daily"
        target = "brief"
        cron_expression = "@daily"
        payload = { deep = [{ at = 2027-01-01, n = 1.5 }] }
        "#,
        &[("BRIEF", "Bearer hunter2")],
        &ServeFlags::default(),
    )
    .unwrap();
    let [brief, backup] = config.targets.as_slice() else { panic!("{:?}", config.targets) };
    let Kind::Http(http) = &brief.kind else { panic!("{brief:?}") };
    assert_eq!(http.headers["authorization"].reveal(), "Bearer hunter2");
    let keys: Vec<&str> = http.signing_keys.iter().map(Secret::reveal).collect();
    assert_eq!((http.method.as_str(), keys), ("POST", vec!["whsec_YQ==", "Bearer hunter2"]));
    assert_eq!((http.success.as_slice(), http.timeout), ([304..=304, 200..=204].as_slice(), Duration::from_secs(5)));
    // The call ends by its own timeout, so the run needs none.
    assert_eq!((brief.options.concurrency, brief.options.timeout), (Some(2), None));
    assert!(http.allow_private && !http.allow_link_local && http.ca_file.is_none());
    let Kind::Command(command) = &backup.kind else { panic!("{backup:?}") };
    assert_eq!(
        (command.argv.as_slice(), command.success.as_slice()),
        (["/bin/backup", ""].map(str::to_owned).as_slice(), [0, 3].as_slice())
    );
    assert_eq!((command.env["LEVEL"].reveal(), backup.options.timeout), ("", Some(Duration::from_hours(1))));
    let [daily] = config.schedules.as_slice() else { panic!("{:?}", config.schedules) };
    assert_eq!((daily.key(), daily.target_name()), ("daily", Some("brief")));
    assert!(format!("{daily:?}").contains(r#"{\"deep\":[{\"at\":\"2027-01-01\",\"n\":1.5}]}"#), "{daily:?}");
    // Neither what is shown nor what a log might hold has a secret.
    let everything = format!("{config:?}");
    assert!(!everything.contains("hunter2") && !everything.contains("whsec"), "{everything}");
}

#[test]
fn flags_outweigh_variables_which_outweigh_the_file() {
    let file = "[server]\nlisten = \"127.0.0.1:1\"\nrole = \"api\"\ndata_dir = \"a\"\nmax_connections = 1\n";
    let flags = ServeFlags { listen: Some("127.0.0.1:3".to_owned()), ..ServeFlags::default() };
    let variables = [
        ("EVERBELL_LISTEN", "127.0.0.1:2"),
        ("EVERBELL_ROLE", "scheduler"),
        ("EVERBELL_MAX_CONNECTIONS", "2"),
        ("EVERBELL_TRUST_PROXY", "true"),
    ];
    let config = read_with(file, &variables, &flags).unwrap();
    assert_eq!((config.server.listen.port(), config.server.role), (3, Role::Scheduler));
    assert_eq!((config.server.max_connections, config.server.trust_proxy), (2, true));
    assert_eq!(shown(&config, "server.listen").1, "flag --listen");
    assert_eq!(shown(&config, "server.role"), (&Value::from("scheduler"), "env EVERBELL_ROLE".to_owned()));
    assert_eq!(shown(&config, "server.data_dir").1, "a.toml:4");
    // A default that follows from something else is still a default.
    assert_eq!(shown(&config, "database.url"), (&Value::from("sqlite:a/everbell.db"), "default".to_owned()));
}

#[test]
fn one_way_to_say_it_outweighs_another_from_below() {
    let file = "[database]\nurl_file = \"/nowhere\"\n[auth]\nadmin_token_file = \"/nowhere\"\n";
    let variables = [("EVERBELL_DATABASE_URL", "postgres://u:hunter2@h/d"), ("EVERBELL_ADMIN_TOKEN", TOKEN)];
    let config = read_with(file, &variables, &ServeFlags::default()).unwrap();
    assert_eq!(config.database.reveal(), "postgres://u:hunter2@h/d");
    assert_eq!(config.auth.admin_token.as_ref().map(Secret::reveal), Some(TOKEN));
    let hidden = (&Value::from("postgres://u:(hidden)@h/d"), "env EVERBELL_DATABASE_URL".to_owned());
    assert_eq!(shown(&config, "database.url"), hidden);
    assert_eq!(shown(&config, "database.url_file"), (&Value::Null, "default".to_owned()));
    assert_eq!(shown(&config, "auth.admin_token").0, "(hidden)");
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn secrets_are_found_in_files() {
    let folder = std::env::temp_dir().join(format!("everbell-config-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (url, token) = (path("url", " postgres://u:p@h/d\n"), path("token", &format!("{TOKEN}\n")));
    let file = format!("[database]\nurl = {{ file = {url:?} }}\n[auth]\nadmin_token_file = {token:?}\n");
    let variables = [("EVERBELL_METRICS_TOKEN_FILE", token.as_str())];
    let config = read_with(&file, &variables, &ServeFlags::default()).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(config.database.reveal(), "postgres://u:p@h/d");
    assert_eq!(config.auth.admin_token, Some(Secret::new(TOKEN)));
    assert_eq!(config.auth.metrics_token, Some(Secret::new(TOKEN)));
    assert_eq!(shown(&config, "auth.admin_token_file").0, token.as_str());
}

#[test]
fn without_a_file_something_can_be_seen() {
    let config = Config::read(None, DEMO, &ServeFlags::default(), &Environment::default()).unwrap();
    let [demo] = config.schedules.as_slice() else { panic!("{:?}", config.schedules) };
    assert_eq!((demo.key(), demo.target_name(), config.targets[0].label.as_str()), ("demo", Some("log"), "log"));
    assert!(config.sources.iter().all(|shown| shown.origin == Origin::Default), "{:?}", config.sources);
}

#[test]
fn what_may_surprise_is_told() {
    let variables =
        [("EVERBELL_LISTEN", "0.0.0.0:7070"), ("EVERBELL_DATABASE_URL", "sqlite::memory:"), ("EVERBELL_X", "")];
    let told = read_with("", &variables, &ServeFlags::default()).unwrap().warnings;
    assert_eq!(told[0], "unknown variable `EVERBELL_X`; `everbell config --help` lists the known ones");
    assert!(told[1].starts_with("0.0.0.0:7070 can be reached from other machines"), "{told:?}");
    assert!(told[2].starts_with("the database is in memory"), "{told:?}");
    let proxied = read_with("[server]\ntrust_proxy = true", &variables[..1], &ServeFlags::default()).unwrap();
    assert_eq!(proxied.warnings, [""; 0]);
}

#[test]
fn shell_target_exists_only_if_it_is_allowed() {
    let job =
        "[[job]]\njob_key = \"a\"\ntarget = \"shell\"\ncron_expression = \"@daily\"\npayload = { command = \"x\" }\n";
    let refused = read_with(job, &[], &ServeFlags::default()).unwrap_err();
    assert!(refused.problems[0].to_string().contains("there is no target `shell`"), "{}", refused.problems[0]);
    let config =
        read(&format!("[shell]\nallow = true\nusers = [\"ana\"]\nconcurrency = 2\nenv = {{ A = \"b\" }}\n{job}"));
    let [target] = &config.targets[..] else { panic!("{:?}", config.targets) };
    let Kind::Shell(settings) = &target.kind else { panic!("{target:?}") };
    assert_eq!((target.label.as_str(), target.options.concurrency), ("shell", Some(2)));
    assert_eq!((settings.env["A"].reveal(), &settings.users), ("b", &Some(vec!["ana".to_owned()])));
    let hidden = shown(&config, "shell.env");
    assert!(!hidden.0.to_string().contains("\"b\""), "{hidden:?}");
}

#[test]
fn shell_settings_are_refused_by_their_keys() {
    let text = "[shell]\nallow = true\ntimeout = \"0s\"\nusers = [\"\"]\nenv = { \"A=B\" = \"c\", D = { env = \"NONE\" } }\n\
                [[target]]\nlabel = \"shell\"\ntype = \"log\"\n";
    let refused = read_with(text, &[], &ServeFlags::default()).unwrap_err();
    let said: Vec<String> = refused.problems.iter().map(ToString::to_string).collect();
    for part in
        ["shell.timeout", "shell.users", "shell.env", "`NONE` is not set", "the built-in target that `shell.allow`"]
    {
        assert!(said.iter().any(|problem| problem.contains(part)), "{part}: {said:#?}");
    }
}
