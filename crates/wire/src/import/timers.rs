//! Timers of systemd, with the services that they start.

use std::collections::BTreeMap;
use std::time::Duration;

use everbell_core::{CatchUp, Draft, PolicyValues, Timing, Zone};
use serde_json::json;

use super::calendar::to_cron;
use super::command_line::{between, join, split};
use super::unit_file::{UnitFile, span};
use super::{Imported, Item, described};
use crate::crontab::{TIME_LIMIT, Verdict};

/// The `PATH` of services.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Settings of a service that change how its program runs, and are not carried over.
const LEFT_OUT: [&str; 8] = [
    "EnvironmentFile",
    "Group",
    "SupplementaryGroups",
    "ExecStartPre",
    "ExecStartPost",
    "ExecCondition",
    "DynamicUser",
    "OnFailure",
];

/// The name of a timer without a file.
const NAMELESS: &str = "timer";

/// Reads all timers of a text, with their services, as `systemctl cat` prints them: a comment with the path of the file
/// precedes each. Without such comments the text is one timer with its service.
pub fn read_units(text: &str, zone: &Zone) -> Vec<Item> {
    let units = units(text);
    let service = |name: &str| {
        let missing = || format!("cannot read its service `{name}`: paste the output of `systemctl cat {name}` too");
        units.get(name).cloned().ok_or_else(missing)
    };
    let timers = units.iter().filter_map(|(name, text)| Some((name.strip_suffix(".timer")?, text)));
    timers.flat_map(|(stem, text)| read(stem, text, service, zone)).collect()
}

/// The unit files of a text by name. What a drop-in says comes after its unit, as systemd reads them.
fn units(text: &str) -> BTreeMap<String, String> {
    let (mut units, mut name) = (BTreeMap::<String, String>::new(), None);
    for line in text.lines() {
        if let Some(found) = line.strip_prefix("# /").and_then(unit_of) {
            name = Some(found);
        } else if let Some(name) = &name {
            let unit = units.entry(name.clone()).or_default();
            unit.push_str(line);
            unit.push('\n');
        }
    }
    if name.is_none() {
        units.extend([".timer", ".service"].map(|end| (format!("{NAMELESS}{end}"), text.to_owned())));
    }
    units
}

/// The unit that a file is a part of: `a.timer` of `etc/systemd/system/a.timer` and of `…/a.timer.d/override.conf`.
fn unit_of(path: &str) -> Option<String> {
    let (folder, file) = path.trim_end().rsplit_once('/')?;
    let is_unit = |name: &str| matches!(name.rsplit_once('.'), Some((_, "timer" | "service")));
    let of_folder = || folder.rsplit('/').next().and_then(|name| name.strip_suffix(".d"));
    [Some(file), of_folder()].into_iter().flatten().find(|name| is_unit(name)).map(str::to_owned)
}

/// Reads a timer, given its name without the ending, and a way to its service.
pub fn read(stem: &str, text: &str, service: impl Fn(&str) -> Result<String, String>, zone: &Zone) -> Vec<Item> {
    let stem = stem.to_owned();
    let refused = |why: String| vec![Item { source: stem.clone(), verdict: Verdict::Refused, result: Err(why) }];
    let timer = UnitFile::parse(text);
    let named = timer.last("Timer", "Unit").map_or_else(|| format!("{stem}.service"), str::to_owned);
    let service = match service(&named) {
        Ok(text) => UnitFile::parse(&text),
        Err(why) => return refused(why),
    };
    let (payload, mut differences) = match payload(&service) {
        Ok(payload) => payload,
        Err(why) => return refused(format!("{named}: {why}")),
    };
    let (policies, more) = match policies(&timer, &service) {
        Ok(policies) => policies,
        Err(why) => return refused(why),
    };
    differences.extend(more);
    let title = timer.last("Unit", "Description").or_else(|| service.last("Unit", "Description"));
    let mut items = Vec::new();
    for (n, timing) in timings(&timer).into_iter().enumerate() {
        let key = if n == 0 { stem.clone() } else { format!("{stem}-{}", n + 1) };
        let result = timing.and_then(|(expression, own_zone)| {
            let zone = own_zone.as_ref().unwrap_or(zone);
            let draft = Draft {
                timezone: Some(zone.name().to_owned()),
                payload: Some(Ok(payload.to_string())),
                description: title.unwrap_or_default().to_owned(),
                policies: policies.clone(),
                ..Draft::new(&key, Timing::Cron(expression.clone()))
            };
            let detail = described(&expression, zone)?;
            Ok(Imported { draft, detail, differences: differences.clone() })
        });
        let verdict = if result.is_ok() { Verdict::Job } else { Verdict::Refused };
        items.push(Item { source: stem.clone(), verdict, result });
    }
    if items.is_empty() {
        return refused("has no OnCalendar and no OnUnitActiveSec, so there is no schedule".to_owned());
    }
    items
}

/// The times at which a timer fires: each of them would start the service.
fn timings(timer: &UnitFile) -> Vec<Result<(String, Option<Zone>), String>> {
    let calendars = timer.all("Timer", "OnCalendar").into_iter();
    let calendars = calendars.map(|calendar| to_cron(calendar).map_err(|why| format!("OnCalendar={calendar}: {why}")));
    let every = timer.all("Timer", "OnUnitActiveSec").into_iter().map(|text| {
        let seconds = span(text).map(|span| span.as_secs()).filter(|seconds| *seconds > 0);
        let seconds = seconds.ok_or_else(|| format!("OnUnitActiveSec={text}: is not a span of a second or more"))?;
        Ok((format!("@every {seconds}s"), None))
    });
    calendars.chain(every).collect()
}

fn policies(timer: &UnitFile, service: &UnitFile) -> Result<(PolicyValues, Vec<String>), String> {
    let mut differences = Vec::new();
    let read = |unit: &UnitFile, section: &str, name: &str| match unit.last(section, name) {
        None | Some("infinity") => Ok(None),
        Some(text) => span(text).map(Some).ok_or_else(|| format!("{name}={text}: is not a span")),
    };
    let jitter = read(timer, "Timer", "RandomizedDelaySec")?.unwrap_or_default();
    if !jitter.is_zero() {
        differences.push(format!("RandomizedDelaySec: jitter of up to {}s", jitter.as_secs()));
    }
    let limits = [read(service, "Service", "RuntimeMaxSec")?, read(service, "Service", "TimeoutStartSec")?];
    let timeout = limits.into_iter().flatten().filter(|limit| *limit >= Duration::from_secs(1)).min();
    if timeout.is_none() {
        differences.push("no time limit: a run is stopped after 24 hours".to_owned());
    }
    let persistent = timer.is_on("Timer", "Persistent");
    if persistent {
        differences.push("Persistent: one run makes up for all slots that were missed".to_owned());
    }
    if timer.last("Timer", "OnUnitActiveSec").is_some() {
        differences.push("OnUnitActiveSec: counted from a fixed time, not from the last start".to_owned());
    }
    for name in ["OnBootSec", "OnStartupSec", "OnActiveSec", "OnUnitInactiveSec", "WakeSystem"] {
        if timer.last("Timer", name).is_some() {
            differences.push(format!("{name}: left out: it counts from events of the machine"));
        }
    }
    let catch_up = if persistent { CatchUp::Once } else { CatchUp::None };
    let timeout = timeout.unwrap_or(TIME_LIMIT);
    Ok((PolicyValues { catch_up, jitter, timeout, ..PolicyValues::default() }, differences))
}

/// The payload of the `shell` target, and what of the service is not in it.
fn payload(service: &UnitFile) -> Result<(serde_json::Value, Vec<String>), String> {
    let lines: Result<Vec<String>, String> = service.all("Service", "ExecStart").into_iter().map(command).collect();
    let lines = lines?;
    if lines.is_empty() {
        return Err("has no ExecStart".to_owned());
    }
    let mut env: BTreeMap<String, String> = [("PATH".to_owned(), PATH.to_owned())].into();
    for line in service.all("Service", "Environment") {
        for word in split(line)? {
            let (name, value) =
                word.split_once('=').ok_or_else(|| format!("Environment={line}: `{word}` has no `=`"))?;
            env.insert(name.to_owned(), without_specifiers(value)?);
        }
    }
    let cwd = service.last("Service", "WorkingDirectory").map_or("/", |folder| folder.trim_start_matches('-'));
    let cwd = if cwd == "~" { None } else { Some(without_specifiers(cwd)?) };
    let mut payload = json!({ "command": lines.join(" && "), "env": env });
    if let Some(cwd) = cwd {
        payload["cwd"] = json!(cwd);
    }
    if let Some(user) = service.last("Service", "User") {
        payload["user"] = json!(without_specifiers(user)?);
    }
    let left_out = LEFT_OUT
        .into_iter()
        .filter(|name| service.last("Service", name).is_some() || service.last("Unit", name).is_some());
    Ok((payload, left_out.map(|name| format!("{name}: left out")).collect()))
}

/// A line of `ExecStart=` for the shell.
fn command(line: &str) -> Result<String, String> {
    let (ignores, line) = match line.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    if line.starts_with(['@', '+', '!', ':', '|']) || line.contains("$$") {
        return Err(format!("ExecStart={line}: its prefix or `$$` has no counterpart here"));
    }
    let words: Result<Vec<String>, String> = split(line)?.iter().map(|word| without_specifiers(word)).collect();
    let line = join(&words?, |text| between(text, "${", '}').or_else(|| variable(text)));
    Ok(if ignores { format!("{{ {line} || true; }}") } else { line })
}

/// `$NAME` at the start of a text.
fn variable(text: &str) -> Option<(usize, String)> {
    let name = text.strip_prefix('$')?;
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
    (end > 0).then(|| (end + 1, name[..end].to_owned()))
}

/// `%%` is a percent sign; other specifiers, such as `%i`, are known to systemd only.
fn without_specifiers(text: &str) -> Result<String, String> {
    let plain = text.replace("%%", "\u{0}");
    if plain.contains('%') {
        return Err(format!("`{text}` has a specifier that only systemd knows"));
    }
    Ok(plain.replace('\u{0}', "%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(lines: &str) -> Result<(serde_json::Value, Vec<String>), String> {
        payload(&UnitFile::parse(&format!("[Service]\n{lines}")))
    }

    #[test]
    fn units_are_read_as_systemctl_prints_them() {
        let text = "# /etc/systemd/system/backup.timer\n[Timer]\nOnCalendar=*-*-* 02:30:00\nOnCalendar=weekly\n\n\
                    # /etc/systemd/system/backup.timer.d/more.conf\n[Timer]\nPersistent=true\n\n\
                    # /lib/systemd/system/backup.service\n[Service]\n# a comment\nExecStart=/bin/backup --all\n\n\
                    # /etc/systemd/system/alone.timer\n[Timer]\nOnCalendar=daily\n";
        let items = read_units(text, &Zone::utc());
        let keys: Vec<_> = items.iter().map(|item| item.result.as_ref().map(|job| job.draft.key.as_str())).collect();
        let missing = "cannot read its service `alone.service`: paste the output of `systemctl cat alone.service` too";
        assert_eq!(keys, [Err(&missing.to_owned()), Ok("backup"), Ok("backup-2")]);
        let backup = items[1].result.as_ref().unwrap();
        assert_eq!(
            (backup.detail.as_str(), backup.draft.policies.catch_up),
            ("Every day at 02:30, UTC", CatchUp::Once)
        );
        let nameless = read_units("[Timer]\nOnCalendar=daily\n[Service]\nExecStart=/bin/true\n", &Zone::utc());
        assert_eq!(nameless[0].result.as_ref().unwrap().draft.key, "timer");
        assert!(read_units("[Service]\nExecStart=/bin/true\n", &Zone::utc())[0].result.is_err());
    }

    #[test]
    fn service_becomes_a_command() {
        let lines = "User=backup\nEnvironment=A=b \"C=d e\"\nWorkingDirectory=/srv\nGroup=x\n\
                     ExecStart=/bin/echo \"a b\" ${A} $C 100%%\nExecStart=-/bin/false\n";
        let (payload, left_out) = service(lines).unwrap();
        let command = r#"/bin/echo "a b" "${A}" "${C}" 100% && { /bin/false || true; }"#;
        let env = json!({ "A": "b", "C": "d e", "PATH": PATH });
        assert_eq!(payload, json!({ "command": command, "env": env, "cwd": "/srv", "user": "backup" }));
        assert_eq!(left_out, ["Group: left out"]);
        assert_eq!(service("ExecStart=/bin/true").unwrap().0["cwd"], "/");
    }

    #[test]
    fn service_that_cannot_be_said_is_refused() {
        for (lines, reason) in [
            ("Type=oneshot", "has no ExecStart"),
            ("ExecStart=/bin/a %i", "only systemd knows"),
            ("ExecStart=+/bin/a", "no counterpart"),
            ("ExecStart=/bin/a \"b", "does not end"),
            ("ExecStart=/bin/a\nEnvironment=x", "has no `=`"),
        ] {
            let refused = service(lines).unwrap_err();
            assert!(refused.contains(reason), "{lines}: {refused}");
        }
    }

    #[test]
    fn settings_of_the_timer_become_policies() {
        let timer = UnitFile::parse("[Timer]\nOnCalendar=daily\nPersistent=true\nRandomizedDelaySec=5min\n");
        let service = UnitFile::parse("[Service]\nTimeoutStartSec=1h\n");
        let (found, differences) = policies(&timer, &service).unwrap();
        assert_eq!((found.catch_up, found.jitter), (CatchUp::Once, Duration::from_mins(5)));
        assert_eq!((found.timeout, differences.len()), (Duration::from_hours(1), 2));
        let (found, _) = policies(&UnitFile::default(), &UnitFile::default()).unwrap();
        assert_eq!((found.catch_up, found.timeout), (CatchUp::None, TIME_LIMIT));
        let bad = UnitFile::parse("[Timer]\nRandomizedDelaySec=soon\n");
        assert_eq!(policies(&bad, &service).unwrap_err(), "RandomizedDelaySec=soon: is not a span");
        let every = timings(&UnitFile::parse("[Timer]\nOnUnitActiveSec=15min\n"));
        assert_eq!(every[0].as_ref().unwrap().0, "@every 900s");
    }
}
