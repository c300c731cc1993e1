//! `CronJob` objects of Kubernetes.

use std::collections::BTreeMap;
use std::time::Duration;

use everbell_core::{Backoff, CatchUp, Draft, Overlap, PolicyValues, Timing, Zone};
use serde_json::{Value, json};

use super::command_line::{between, join};
use super::{Advice, Imported, Item, described};
use crate::crontab::{TIME_LIMIT, Verdict};

/// The retries of a Job that says nothing.
const DEFAULT_BACKOFF_LIMIT: u64 = 6;
/// The most attempts of a run.
const MAX_ATTEMPTS: u64 = 100;
/// The waits of Kubernetes between attempts.
const BACKOFF: Backoff = Backoff { initial: Duration::from_secs(10), max: Duration::from_mins(6) };

/// Reads all documents of a file. Suspended objects are left out unless they are asked for.
pub fn read(text: &str, zone: &Zone, suspended: bool, advice: Advice) -> Result<Vec<Item>, String> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| format!("is not YAML: {error}"))?;
    let mut objects = Vec::new();
    for document in documents.into_iter().filter(|document| !document.is_null()) {
        match document.get("items").and_then(Value::as_array) {
            Some(items) => objects.extend(items.iter().cloned()),
            None => objects.push(document),
        }
    }
    Ok(objects.iter().map(|object| item(object, zone, suspended, advice)).collect())
}

fn item(object: &Value, zone: &Zone, suspended: bool, advice: Advice) -> Item {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let source = text("/metadata/name").unwrap_or_default().to_owned();
    let left_out = |why: String| Item { source: source.clone(), verdict: Verdict::Note, result: Err(why) };
    if text("/kind") != Some("CronJob") {
        return left_out(format!("left out: it is not a CronJob but `{}`", text("/kind").unwrap_or("nothing")));
    }
    if object.pointer("/spec/suspend") == Some(&json!(true)) && !suspended {
        return left_out(format!("left out: it is suspended; {}", advice.suspended));
    }
    let result = imported(object, zone, advice);
    let verdict = if result.is_ok() { Verdict::Job } else { Verdict::Refused };
    Item { source, verdict, result }
}

fn imported(object: &Value, zone: &Zone, advice: Advice) -> Result<Imported, String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let name = text("/metadata/name").ok_or("metadata.name is missing")?;
    let schedule = text("/spec/schedule").ok_or("spec.schedule is missing")?.trim();
    let (schedule, in_schedule) = match schedule.split_once(' ').map(|(first, rest)| (first.split_once('='), rest)) {
        Some((Some(("TZ" | "CRON_TZ", zone)), rest)) => (rest.trim(), Some(zone)),
        _ => (schedule, None),
    };
    let own = match text("/spec/timeZone").or(in_schedule) {
        Some(name) => Some(Zone::get(name).map_err(|error| format!("spec.timeZone: {error}"))?),
        None => None,
    };
    let mut differences = Vec::new();
    if own.is_none() {
        let zone = zone.name();
        differences
            .push(format!("no timeZone: read in {zone}; Kubernetes uses the zone of its controller; {}", advice.zone));
    }
    let zone = own.as_ref().unwrap_or(zone);
    let detail = described(schedule, zone).map_err(|why| format!("spec.schedule: {why}"))?;
    let payload = payload(object, &mut differences)?;
    let policies = policies(object, &mut differences)?;
    let namespace = text("/metadata/namespace").map(|space| ("namespace".to_owned(), space.to_owned()));
    let draft = Draft {
        timezone: Some(zone.name().to_owned()),
        payload: Some(Ok(payload.to_string())),
        policies,
        labels: namespace.into_iter().collect(),
        ..Draft::new(name, Timing::Cron(schedule.to_owned()))
    };
    Ok(Imported { draft, detail, differences })
}

fn policies(object: &Value, differences: &mut Vec<String>) -> Result<PolicyValues, String> {
    let number = |pointer: &str| match object.pointer(pointer) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let name = pointer.trim_start_matches('/').replace('/', ".");
            value.as_u64().map(Some).ok_or_else(|| format!("{name}: must be a whole number, not {value}"))
        }
    };
    let overlap = match object.pointer("/spec/concurrencyPolicy").and_then(Value::as_str).unwrap_or("Allow") {
        "Allow" => Overlap::Allow,
        "Forbid" => Overlap::Skip,
        "Replace" => Overlap::Replace,
        other => return Err(format!("spec.concurrencyPolicy: must be Allow, Forbid or Replace, not `{other}`")),
    };
    let deadline = number("/spec/startingDeadlineSeconds")?.filter(|seconds| *seconds > 0);
    if let Some(seconds) = deadline {
        differences.push(format!("startingDeadlineSeconds: one run makes up for missed slots of the last {seconds}s"));
    }
    let limit = number("/spec/jobTemplate/spec/backoffLimit")?.unwrap_or(DEFAULT_BACKOFF_LIMIT);
    let attempts = (limit + 1).min(MAX_ATTEMPTS);
    if attempts > 1 {
        differences.push(format!("backoffLimit {limit}: up to {attempts} attempts, 10s to 6m apart"));
    }
    let active = number("/spec/jobTemplate/spec/activeDeadlineSeconds")?.filter(|seconds| *seconds > 0);
    if active.is_none() {
        differences.push("no activeDeadlineSeconds: a run is stopped after 24 hours".to_owned());
    }
    Ok(PolicyValues {
        overlap,
        catch_up: CatchUp::Once,
        catch_up_window: deadline.map(Duration::from_secs),
        max_attempts: u32::try_from(attempts).unwrap_or(1),
        backoff: BACKOFF,
        timeout: active.map_or(TIME_LIMIT, Duration::from_secs),
        ..PolicyValues::default()
    })
}

/// The payload of the `shell` target: the command of the only container, without its image.
fn payload(object: &Value, differences: &mut Vec<String>) -> Result<Value, String> {
    let containers = object.pointer("/spec/jobTemplate/spec/template/spec/containers").and_then(Value::as_array);
    let [container] = containers.map_or(&[][..], Vec::as_slice) else {
        let count = containers.map_or(0, Vec::len);
        return Err(format!("spec.jobTemplate…containers: must be one container, not {count}"));
    };
    let image = container["image"].as_str().unwrap_or("its image");
    let texts = |name: &str| match container.get(name).and_then(Value::as_array) {
        None => Ok(Vec::new()),
        Some(words) => {
            let text = |word: &Value| {
                word.as_str().map(str::to_owned).ok_or_else(|| format!("{name}: {word} is not a string"))
            };
            words.iter().map(text).collect::<Result<Vec<String>, String>>()
        }
    };
    let command = texts("command")?;
    if command.is_empty() {
        return Err(format!("has no command: what runs is only in the image `{image}`"));
    }
    differences.push(format!("image `{image}` is left out: the command runs on the machine of the server"));
    let words = [command, texts("args")?].concat();
    let mut payload = match &words[..] {
        [shell, flag, script] if flag == "-c" && shell.starts_with('/') => json!({ "command": script, "shell": shell }),
        words => json!({ "command": join(words, |text| between(text, "$(", ')')) }),
    };
    let mut env = BTreeMap::new();
    for variable in container.get("env").and_then(Value::as_array).into_iter().flatten() {
        match (variable["name"].as_str(), variable["value"].as_str()) {
            (Some(name), Some(value)) => drop(env.insert(name.to_owned(), value.to_owned())),
            (name, _) => differences.push(format!("env `{}`: left out: it is not a string", name.unwrap_or_default())),
        }
    }
    for name in ["envFrom", "volumeMounts"].into_iter().filter(|name| container.get(*name).is_some()) {
        differences.push(format!("{name}: left out"));
    }
    if !env.is_empty() {
        payload["env"] = json!(env);
    }
    if let Some(folder) = container["workingDir"].as_str() {
        payload["cwd"] = json!(folder);
    }
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADVICE: Advice = Advice { zone: "choose another", suspended: "import it" };

    const FILE: &str = r#"
apiVersion: batch/v1
kind: CronJob
metadata: { name: report, namespace: shop }
spec:
  schedule: "30 2 * * *"
  timeZone: Europe/Paris
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 200
  jobTemplate:
    spec:
      backoffLimit: 2
      activeDeadlineSeconds: 600
      template:
        spec:
          containers:
            - name: a
              image: example/report:1
              command: [/bin/report, "--day", "$(DAY)"]
              args: ["a b"]
              workingDir: /srv
              env:
                - { name: DAY, value: monday }
                - { name: TOKEN, valueFrom: { secretKeyRef: { name: s, key: k } } }
---
apiVersion: v1
kind: List
items:
  - kind: CronJob
    metadata: { name: tidy }
    spec:
      schedule: "@daily"
      jobTemplate: { spec: { template: { spec: { containers: [{ command: [/bin/sh, -c, "rm -f /tmp/x*"] }] } } } }
  - { kind: ConfigMap, metadata: { name: other } }
  - { kind: CronJob, metadata: { name: asleep }, spec: { suspend: true, schedule: "@daily" } }
"#;

    #[test]
    fn objects_become_jobs() {
        let items = read(FILE, &Zone::utc(), false, ADVICE).unwrap();
        let verdicts: Vec<(&str, Verdict)> = items.iter().map(|item| (item.source.as_str(), item.verdict)).collect();
        let expected =
            [("report", Verdict::Job), ("tidy", Verdict::Job), ("other", Verdict::Note), ("asleep", Verdict::Note)];
        assert_eq!(verdicts, expected);
        let Imported { draft, detail, differences } = items[0].result.as_ref().unwrap();
        assert_eq!(detail, "Every day at 02:30, Europe/Paris");
        let payload: Value = serde_json::from_str(draft.payload.as_ref().unwrap().as_ref().unwrap()).unwrap();
        let command = r#"/bin/report --day "${DAY}" "a b""#;
        assert_eq!(payload, json!({ "command": command, "env": { "DAY": "monday" }, "cwd": "/srv" }));
        let policies = &draft.policies;
        assert_eq!((policies.overlap, policies.max_attempts), (Overlap::Skip, 3));
        assert_eq!(
            (policies.catch_up_window, policies.timeout),
            (Some(Duration::from_secs(200)), Duration::from_mins(10))
        );
        assert_eq!(draft.labels["namespace"], "shop");
        assert!(differences.iter().any(|found| found.contains("env `TOKEN`: left out")), "{differences:?}");
        let tidy = items[1].result.as_ref().unwrap();
        assert!(tidy.draft.payload.as_ref().unwrap().as_ref().unwrap().contains("rm -f /tmp/x*"));
        assert_eq!((tidy.draft.policies.overlap, tidy.draft.policies.max_attempts), (Overlap::Allow, 7));
        assert!(tidy.differences.iter().any(|found| found.starts_with("no timeZone: read in UTC")));
    }

    #[test]
    fn objects_that_cannot_be_said_are_refused_with_the_reason() {
        let refused = |spec: &str| {
            let text = format!("{{kind: CronJob, metadata: {{name: a}}, spec: {spec}}}");
            read(&text, &Zone::utc(), true, ADVICE).unwrap().remove(0).result.unwrap_err()
        };
        let template = |container: &str| {
            format!(
                "{{schedule: '@daily', jobTemplate: {{spec: {{template: {{spec: {{containers: [{container}]}}}}}}}}}}"
            )
        };
        for (spec, reason) in [
            ("{}".to_owned(), "spec.schedule is missing"),
            ("{schedule: '61 * * * *'}".to_owned(), "spec.schedule: minute: 61"),
            ("{schedule: '@daily', timeZone: Mars}".to_owned(), "spec.timeZone: unknown time zone `Mars`"),
            ("{schedule: '@daily'}".to_owned(), "must be one container, not 0"),
            (template("{image: x}"), "has no command: what runs is only in the image `x`"),
            (template("{command: [1]}"), "command: 1 is not a string"),
        ] {
            let found = refused(&spec);
            assert!(found.contains(reason), "{spec}: {found}");
        }
        assert!(read("a: [", &Zone::utc(), false, ADVICE).unwrap_err().starts_with("is not YAML: "));
    }
}
