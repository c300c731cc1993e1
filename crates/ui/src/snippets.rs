//! [`Snippets`]: equivalent definitions of a job for curl, the command line, a configuration file and a program.

use everbell_core::after::{After, ChainOn};
use everbell_core::fan_in::{DEFAULT_WITHIN, FanIn, GroupBy};
use everbell_core::{Definition, Scope, When};
use jiff::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::equivalent::{command_line, curl};
use everbell_wire::JobBody;
use everbell_wire::job_body::essential;
use everbell_wire::job_toml::block;
use everbell_wire::policies::POLICIES;

/// A job in four languages. Default values are left out.
#[derive(Debug)]
pub struct Snippets {
    /// A call of the API with curl.
    pub curl: String,
    /// A command of everbell for a shell.
    pub cli: String,
    /// Members that no flag of the command line can set.
    pub unsaid: Vec<String>,
    /// A block of a configuration file, or why there can be none.
    pub toml: Result<String, String>,
    /// An expression of the library.
    pub rust: String,
}

impl Snippets {
    /// Writes a job in each language; `base` is the address of the API. Fails with the reason if the schedule of the job
    /// cannot be read.
    pub fn new(own: &Definition, base: &str, now: Timestamp) -> Result<Snippets, String> {
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
    serde_json::to_string(&JobBody { members, payload }).map_err(|error| error.to_string())
}

/// The flags that set members other than policies.
const FLAGS: [(&str, &str); 7] = [
    ("timezone", "--tz"),
    ("startAt", "--start-at"),
    ("endAt", "--end-at"),
    ("payload", "--payload"),
    ("description", "--description"),
    ("labels", "--label"),
    ("scope", "--scope"),
];

/// Returns the arguments of `everbell`, and the members that no flag can set.
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
            ("payload", _) => say(&mut words, flag, payload.to_owned()),
            (_, value) => say(&mut words, flag, word(value)),
        }
    }
    for (policy, flag) in POLICIES.iter().filter_map(|policy| Some((policy, policy.flag?))) {
        if let Some(value) = taken(&mut rest, policy.flag_sets()) {
            say(&mut words, &format!("--{}", flag.name), flag.text(&value));
        }
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

/// The constructor of a job that starts after another one.
fn after_call(key: &str, after: &After) -> String {
    format!("Schedule::after({key:?}, {})", parent(after))
}

/// The constructor of a job that starts after several others.
fn after_all_call(key: &str, fan_in: &FanIn) -> String {
    let parents: Vec<String> = fan_in.parents.iter().map(parent).collect();
    let is_plain = fan_in.parents.iter().all(|parent| parent.on == ChainOn::Success && !parent.manual);
    let parents = if is_plain {
        parents.join(", ")
    } else {
        let full = |after: &After| match parent(after) {
            plain if plain.starts_with('"') => format!("ParentJob::new({plain})"),
            full => full,
        };
        fan_in.parents.iter().map(full).collect::<Vec<_>>().join(", ")
    };
    let by = if fan_in.group == GroupBy::LocalDate { ".by_local_date()" } else { "" };
    let within = match fan_in.within {
        usual if usual == DEFAULT_WITHIN => String::new(),
        within => format!(".within(Duration::from_secs({}))", within.as_secs()),
    };
    if by.is_empty() && within.is_empty() {
        return format!("Schedule::after_all({key:?}, [{parents}])");
    }
    format!("Schedule::after_all({key:?}, ParentJobs::new([{parents}]){by}{within})")
}

/// A job that another one starts after.
fn parent(after: &After) -> String {
    let parent = after.job_key.as_str();
    if after.on == ChainOn::Success && !after.manual {
        return format!("{parent:?}");
    }
    let on = match after.on {
        ChainOn::Success => "",
        ChainOn::Failure => ".on(ChainOn::Failure)",
        ChainOn::Any => ".on(ChainOn::Any)",
    };
    let manual = if after.manual { ".with_manual_runs()" } else { "" };
    format!("ParentJob::new({parent:?}){on}{manual}")
}

/// A chain of calls, for a program that declares its jobs.
fn rust(own: &Definition, body: &Value) -> String {
    let says = |path: &str| path.split('.').try_fold(body, |value, name| value.get(name)).is_some();
    let key = own.key.as_str();
    let mut lines = vec![match own.spec.as_ref().map(everbell_core::Spec::when) {
        Ok(When::Once(at)) => format!("Schedule::once({key:?}, {})", moment(*at)),
        Ok(When::After(after)) => after_call(key, after),
        Ok(When::AfterAll(fan_in)) => after_all_call(key, fan_in),
        Ok(When::Cron(expression) | When::Every { expression, .. }) => {
            format!("Schedule::cron({key:?}, {:?})", expression.as_str())
        }
        Err(broken) => format!("Schedule::cron({key:?}, {:?})", broken.expression.as_deref().unwrap_or_default()),
    }];
    lines.push(format!(".target({:?})", own.target.as_str()));
    lines.extend((own.scope == Scope::PerOrg).then(|| ".per_org()".to_owned()));
    if let Ok(spec) = &own.spec {
        lines.extend(says("timezone").then(|| format!(".tz({:?})", spec.zone().name())));
        lines.extend(spec.start_at().map(|at| format!(".start_at({})", moment(at))));
        lines.extend(spec.end_at().map(|at| format!(".end_at({})", moment(at))));
    }
    lines.extend(says("payload").then(|| format!(".payload(serde_json::json!({}))", own.payload.as_str())));
    lines.extend(says("description").then(|| format!(".description({:?})", own.description)));
    lines.extend(own.labels.iter().map(|(name, value)| format!(".label({name:?}, {value:?})")));
    let dst = own.spec.as_ref().map(everbell_core::Spec::dst).unwrap_or_default();
    let changed = POLICIES.iter().filter(|policy| says(policy.path));
    lines.extend(changed.filter_map(|policy| (policy.rust)(&own.policies, dst)));
    // One call sets the number of attempts and the waits between them.
    lines.dedup();
    lines.join("\n    ")
}

fn moment(at: Timestamp) -> String {
    format!("{:?}.parse()?", at.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use everbell_wire::body::job;
    use everbell_wire::form::Naming;
    use everbell_wire::job_body::declared;

    fn now() -> Timestamp {
        "2026-11-15T12:00:00Z".parse().unwrap()
    }

    fn made(body: &Value, payload: Option<&str>) -> Definition {
        let payload = payload.map(|text| RawValue::from_string(text.to_owned()).unwrap());
        let read = job::read(body, payload.as_deref(), Naming::Camel);
        assert_eq!(read.faults, [], "{body}");
        declared(&read.draft, now()).unwrap()
    }

    /// Jobs that say nothing, much, and something else.
    fn samples() -> Vec<Definition> {
        let full = json!({
            "jobKey": "daily 'report'", "target": "brief", "cronExpression": "0 8 * * mon-fri", "timezone": "Europe/Paris",
            "startAt": "2027-01-01T00:00:00Z", "endAt": "2028-01-01T00:00:00Z", "description": "-- it's \"<b>\" é",
            "labels": {"team": "ops", "a b": "c=d"},
            "policies": {
                "overlap": "queue", "maxConcurrentRuns": 2, "catchUp": "all", "catchUpLimit": 5, "catchUpWindow": "PT2H",
                "grace": "PT30S", "timeout": "PT1H", "jitter": "PT5S", "onLeaseLoss": "continue", "pauseAfterFailures": 3,
                "retry": {"maxAttempts": 4}, "dependsOn": {"jobKey": "etl", "within": "PT24H"},
                "dst": {"gap": "skip", "fold": "both"}, "onLost": "retry",
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
        Snippets::new(own, "http://h/api/v1", now()).unwrap()
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
    fn every_policy_is_set_by_a_flag_and_a_call() {
        let waits = json!({"jobKey": "a", "target": "t", "cronExpression": "@daily", "policies": {"retry": {"initial": "1s", "max": "2s"}}});
        let all = snippets(&made(&waits, None));
        assert!(all.cli.ends_with(" --retry-initial PT1S --retry-max PT2S") && all.unsaid.is_empty(), "{}", all.cli);
        assert_eq!(all.rust.matches(".retry(").count(), 1, "{}", all.rust);
    }

    #[test]
    fn a_member_without_a_flag_is_named() {
        let bounded =
            json!({"jobKey": "a", "target": "t", "runAt": "2027-03-13T09:00:00Z", "startAt": "2027-01-01T00:00:00Z"});
        assert_eq!(snippets(&made(&bounded, None)).unsaid, ["startAt"]);
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
