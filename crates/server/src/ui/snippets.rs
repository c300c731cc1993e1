//! [`Snippets`]: a job as others would make it: with curl, at a shell, in a configuration file, in a program.

use std::time::Duration;

use everbell_core::{Definition, Scope, When};
use jiff::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::equivalent::{command_line, curl};
use crate::cli::body::essential;
use crate::cli::jobs::Body;
use crate::cli::jobs::declared::export::block;

/// The same job in four languages. What says as much as its absence is left out.
pub(crate) struct Snippets {
    pub(crate) curl: String,
    pub(crate) cli: String,
    /// What no flag of the command line can say.
    pub(crate) unsaid: Vec<String>,
    /// A block of a configuration file, or why there can be none.
    pub(crate) toml: Result<String, String>,
    pub(crate) rust: String,
}

impl Snippets {
    /// `base` is where the API is. A job whose schedule cannot be read has none, and it is told why.
    pub(crate) fn of(own: &Definition, base: &str, now: Timestamp) -> Result<Snippets, String> {
        let body = essential(own, now)?;
        let (words, unsaid) = words(&body, own.payload.as_str());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Ok(Snippets {
            curl: curl(base, "POST", "/jobs", Some(&text(own, &body)?)),
            cli: command_line(&words),
            unsaid,
            toml: block(own, now),
            rust: rust(own, &body),
        })
    }
}

/// The body with its payload as it is stored, so that no number loses a digit.
fn text(own: &Definition, body: &Value) -> Result<String, String> {
    let mut members = body.as_object().cloned().unwrap_or_default();
    let payload = members.remove("payload").and_then(|_| RawValue::from_string(own.payload.as_str().to_owned()).ok());
    serde_json::to_string(&Body { members, payload }).map_err(|error| error.to_string())
}

/// Members, and the flags that say them.
const FLAGS: [(&str, &str); 19] = [
    ("timezone", "--tz"),
    ("startAt", "--start-at"),
    ("endAt", "--end-at"),
    ("policies.dst.gap", "--dst-gap"),
    ("policies.dst.fold", "--dst-fold"),
    ("payload", "--payload"),
    ("description", "--description"),
    ("labels", "--label"),
    ("scope", "--scope"),
    ("policies.overlap", "--overlap"),
    ("policies.maxConcurrentRuns", "--max-concurrent-runs"),
    ("policies.catchUp", "--catch-up"),
    ("policies.catchUpLimit", "--catch-up-limit"),
    ("policies.catchUpWindow", "--catch-up-window"),
    ("policies.grace", "--grace"),
    ("policies.timeout", "--timeout"),
    ("policies.jitter", "--jitter"),
    ("policies.pauseAfterFailures", "--pause-after-failures"),
    ("policies.dependsOn", "--depends-on"),
];

/// The words behind `everbell`, and what they cannot say.
fn words(body: &Value, payload: &str) -> (Vec<String>, Vec<String>) {
    let mut rest = body.as_object().cloned().unwrap_or_default();
    let mut plain = |name: &str| taken(&mut rest, name).as_ref().map(word).unwrap_or_default();
    let (key, target) = (plain("jobKey"), plain("target"));
    let (run_at, expression) = (plain("runAt"), plain("cronExpression"));
    let once = !run_at.is_empty();
    let mut words: Vec<String> = ["jobs", if once { "once" } else { "create" }].map(str::to_owned).into();
    words.push(key);
    let (flag, when) = if once { ("--at", run_at) } else { ("--cron", expression) };
    for (flag, value) in [("--target", target), (flag, when)] {
        say(&mut words, flag, value);
    }
    for (path, flag) in FLAGS {
        if once && ["startAt", "endAt"].contains(&path) {
            continue;
        }
        let Some(value) = taken(&mut rest, path) else { continue };
        match (path, &value) {
            ("labels", Value::Object(labels)) => {
                for (name, value) in labels {
                    say(&mut words, flag, format!("{name}={}", word(value)));
                }
            }
            ("policies.dependsOn", Value::Object(on)) => {
                let part = |name: &str| on.get(name).map(word).unwrap_or_default();
                say(&mut words, flag, format!("{}={}", part("jobKey"), part("within")));
            }
            ("payload", _) => say(&mut words, flag, payload.to_owned()),
            (_, value) => say(&mut words, flag, word(value)),
        }
    }
    if let Some(attempts) = taken(&mut rest, "policies.retry.maxAttempts").and_then(|value| value.as_u64()) {
        say(&mut words, "--retries", attempts.saturating_sub(1).to_string());
    }
    let mut unsaid = Vec::new();
    leaves("", &Value::Object(rest), &mut unsaid);
    (words, unsaid)
}

/// A value that begins like a flag is tied to its own.
fn say(words: &mut Vec<String>, flag: &str, value: String) {
    if value.starts_with('-') {
        words.push(format!("{flag}={value}"));
    } else {
        words.extend([flag.to_owned(), value]);
    }
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Takes a member out.
fn taken(members: &mut Map<String, Value>, path: &str) -> Option<Value> {
    match path.split_once('.') {
        None => members.remove(path),
        Some((name, rest)) => taken(members.get_mut(name)?.as_object_mut()?, rest),
    }
}

fn leaves(path: &str, value: &Value, all: &mut Vec<String>) {
    let Value::Object(members) = value else { return all.push(path.to_owned()) };
    for (name, member) in members {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        leaves(&path, member, all);
    }
}

/// A chain of calls, for a program that declares its jobs.
fn rust(own: &Definition, body: &Value) -> String {
    let says = |path: &str| path.split('.').try_fold(body, |value, name| value.get(name)).is_some();
    let policies = &*own.policies;
    let key = own.key.as_str();
    let mut lines = vec![match own.spec.as_ref().map(everbell_core::Spec::when) {
        Ok(When::Once(at)) => format!("Schedule::once({key:?}, {})", moment(*at)),
        Ok(When::Cron(expression) | When::Every { expression, .. }) => {
            format!("Schedule::cron({key:?}, {:?})", expression.as_str())
        }
        Err(broken) => format!("Schedule::cron({key:?}, {:?})", broken.expression.as_deref().unwrap_or_default()),
    }];
    lines.push(format!(".target({:?})", own.target.as_str()));
    lines.extend((own.scope == Scope::PerOrg).then(|| ".per_org()".to_owned()));
    if let Ok(spec) = &own.spec {
        lines.extend(says("timezone").then(|| format!(".tz({:?})", spec.zone().name())));
        lines.extend(says("policies.dst.gap").then(|| format!(".dst_gap(DstGap::{:?})", spec.dst().gap)));
        lines.extend(says("policies.dst.fold").then(|| format!(".dst_fold(DstFold::{:?})", spec.dst().fold)));
        lines.extend(spec.start_at().map(|at| format!(".start_at({})", moment(at))));
        lines.extend(spec.end_at().map(|at| format!(".end_at({})", moment(at))));
    }
    lines.extend(says("payload").then(|| format!(".payload(serde_json::json!({}))", own.payload.as_str())));
    lines.extend(says("description").then(|| format!(".description({:?})", own.description)));
    lines.extend(own.labels.iter().map(|(name, value)| format!(".label({name:?}, {value:?})")));
    for (path, line) in [
        ("overlap", format!(".overlap(Overlap::{:?})", policies.overlap)),
        ("maxConcurrentRuns", format!(".max_concurrent_runs({})", policies.max_concurrent_runs)),
        ("catchUp", format!(".catch_up(CatchUp::{:?})", policies.catch_up)),
        ("catchUpLimit", format!(".catch_up_limit({})", policies.catch_up_limit)),
        ("grace", format!(".grace({})", length(policies.grace))),
        ("timeout", format!(".timeout({})", length(policies.timeout))),
        ("jitter", format!(".jitter({})", length(policies.jitter))),
    ] {
        lines.extend(says(&format!("policies.{path}")).then_some(line));
    }
    lines.extend(policies.catch_up_window.map(|window| format!(".catch_up_window({})", length(window))));
    if says("policies.retry") {
        let (initial, max) = (length(policies.backoff.initial), length(policies.backoff.max));
        lines.push(format!(".retry({}, Backoff {{ initial: {initial}, max: {max} }})", policies.max_attempts));
    }
    lines.extend(policies.pause_after_failures.map(|failures| format!(".pause_after_failures({failures})")));
    let on = policies.depends_on.as_ref();
    lines.extend(on.map(|on| format!(".depends_on({:?}, {})", on.job_key.as_str(), length(on.within))));
    lines.join("\n    ")
}

fn moment(at: Timestamp) -> String {
    format!("{:?}.parse()?", at.to_string())
}

fn length(span: Duration) -> String {
    match span.subsec_millis() {
        0 => format!("Duration::from_secs({})", span.as_secs()),
        _ => format!("Duration::from_millis({})", span.as_millis()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::body::declared;
    use crate::form::{Naming, job};

    fn now() -> Timestamp {
        "2026-11-15T12:00:00Z".parse().unwrap()
    }

    fn made(body: &Value, payload: Option<&str>) -> Definition {
        let payload = payload.map(|text| RawValue::from_string(text.to_owned()).unwrap());
        let read = job::read(body, payload.as_deref(), Naming::Camel);
        assert_eq!(read.faults, [], "{body}");
        declared(&read.schedule, now()).unwrap()
    }

    /// Jobs that say nothing, much, and something else.
    fn samples() -> Vec<Definition> {
        let full = json!({
            "jobKey": "daily 'report'", "target": "brief", "cronExpression": "0 8 * * mon-fri", "timezone": "Europe/Paris",
            "startAt": "2027-01-01T00:00:00Z", "endAt": "2028-01-01T00:00:00Z", "description": "-- it's \"<b>\" é",
            "labels": {"team": "ops", "a b": "c=d"},
            "policies": {
                "overlap": "queue", "maxConcurrentRuns": 2, "catchUp": "all", "catchUpLimit": 5, "catchUpWindow": "PT2H",
                "grace": "PT30S", "timeout": "PT1H", "jitter": "PT5S", "pauseAfterFailures": 3,
                "retry": {"maxAttempts": 4}, "dependsOn": {"jobKey": "etl", "within": "PT24H"},
                "dst": {"gap": "skip", "fold": "both"},
            },
        });
        vec![
            made(&json!({"jobKey": "a", "target": "t", "cronExpression": "@every 90s"}), None),
            made(&full, Some("{\"kind\":\"it's\",\"n\":[1,2.5]}")),
            made(
                &json!({"jobKey": "o", "target": "t", "runAt": "2027-03-13T09:00:00Z", "timezone": "Asia/Tokyo"}),
                None,
            ),
            made(&json!({"jobKey": "e", "target": "t", "cronExpression": "@daily", "scope": "per_org"}), None),
        ]
    }

    fn snippets(own: &Definition) -> Snippets {
        Snippets::of(own, "http://h/api/v1", now()).unwrap()
    }

    #[test]
    fn a_block_is_read_as_the_same_job() {
        for own in samples() {
            let block = snippets(&own).toml.unwrap();
            let read = crate::config::read_jobs("jobs.toml", &block).unwrap();
            assert_eq!(declared(&read[0], now()).unwrap().content_hash(), own.content_hash(), "{block}");
        }
    }

    #[test]
    fn a_body_is_read_as_the_same_job() {
        for own in samples() {
            let text = text(&own, &essential(&own, now()).unwrap()).unwrap();
            let mut body: Value = serde_json::from_str(&text).unwrap();
            let payload = body.as_object_mut().unwrap().remove("payload").map(|payload| payload.to_string());
            assert_eq!(made(&body, payload.as_deref()).content_hash(), own.content_hash(), "{text}");
        }
        let big =
            made(&json!({"jobKey": "a", "target": "t", "cronExpression": "@daily"}), Some("12345678901234567890.10"));
        assert!(snippets(&big).curl.ends_with("\"payload\":12345678901234567890.10}'"), "{}", snippets(&big).curl);
    }

    #[test]
    fn the_command_line_is_one_that_the_command_line_takes() {
        for own in samples() {
            let (words, unsaid) = words(&essential(&own, now()).unwrap(), own.payload.as_str());
            let typed = std::iter::once("everbell".to_owned()).chain(words).map(std::ffi::OsString::from);
            let read = crate::cli::parse(typed).unwrap();
            assert!(
                format!("{read:?}").contains(own.key.as_str().trim_matches('\'')) && unsaid.is_empty(),
                "{unsaid:?}"
            );
        }
        let waits =
            json!({"jobKey": "a", "target": "t", "cronExpression": "@daily", "policies": {"retry": {"initial": "1s"}}});
        assert_eq!(snippets(&made(&waits, None)).unsaid, ["policies.retry.initial"]);
    }

    #[test]
    fn what_is_usual_is_not_said() {
        let all = snippets(&samples()[0]);
        assert_eq!(all.cli, "everbell jobs create a --target t --cron '@every 90s'");
        assert_eq!(all.toml.unwrap(), "[[job]]\njob_key = \"a\"\ntarget = \"t\"\ncron_expression = \"@every 90s\"\n");
        assert_eq!(all.rust, "Schedule::cron(\"a\", \"@every 90s\")\n    .target(\"t\")");
    }

    #[test]
    fn a_program_declares_the_same() {
        let rust = snippets(&samples()[1]).rust;
        for part in [
            "Schedule::cron(\"daily 'report'\", \"0 8 * * mon-fri\")\n    .target(\"brief\")\n    .tz(\"Europe/Paris\")",
            ".start_at(\"2027-01-01T00:00:00Z\".parse()?)",
            ".payload(serde_json::json!({\"kind\":\"it's\",\"n\":[1,2.5]}))",
            ".overlap(Overlap::Queue)",
            ".retry(4, Backoff { initial: Duration::from_secs(10), max: Duration::from_secs(3600) })",
            ".depends_on(\"etl\", Duration::from_secs(86400))",
            ".dst_gap(DstGap::Skip)",
        ] {
            assert!(rust.contains(part), "{part} is not in {rust}");
        }
        assert!(snippets(&samples()[3]).rust.ends_with(".target(\"t\")\n    .per_org()"));
    }
}
