//! `[[target]]` blocks.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use everbell::core::handover::{MAX_LEASE, MIN_LEASE};
use everbell::{Target, TargetOptions};
use everbell_wire::FaultCode;
use serde_json::Value;

use super::fields::target_fields;
use super::layers::Layers;
use super::secrets::{Secrets, in_file};
use super::shown::callable;
use crate::targets::{CommandSettings, HttpSettings, Kind, SHELL_LABEL, TargetSettings};
use everbell_http::ConfiguredTarget;
use everbell_wire::form::{Fault, Field, Form, Naming, did_you_mean, escape};
use everbell_wire::secret::Secret;

/// The types, and what each of them has.
const TYPES: [&str; 3] = ["log", "http", "command"];

/// How long an async target may be silent, unless its block says so.
const DEFAULT_REMOTE_LEASE: Duration = Duration::from_mins(1);

/// The content of the target blocks.
pub(super) struct Targets {
    pub(super) settings: Vec<TargetSettings>,
    /// All labels, also of blocks that cannot be used, so that their jobs are not reported for an unknown target.
    pub(super) labels: Vec<String>,
    /// Each of them as people may know it.
    pub(super) described: Vec<ConfiguredTarget>,
}

pub(super) fn read(layers: &mut Layers, secrets: Secrets<'_>) -> Targets {
    let mut targets = Targets { settings: Vec::new(), labels: Vec::new(), described: Vec::new() };
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (n, block) in layers.blocks("target").iter().enumerate() {
        let place = format!("/target/{n}");
        let (settings, mut faults) = target(block, secrets, Naming::Snake);
        let label = block.get("label").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(first) = seen.get(&label).filter(|_| !label.is_empty()) {
            faults.push(Fault::new(
                "/label",
                FaultCode::Invalid,
                format!("is defined twice; the other one is on line {first}"),
            ));
        }
        let line = layers.document.line(&format!("{place}/label")).unwrap_or_default();
        seen.entry(label.clone()).or_insert(line);
        targets.labels.push(label);
        targets.described.push(described(&settings, Some((block, Naming::Snake))));
        targets.settings.push(settings);
        refuse_all(layers, &place, faults);
    }
    targets
}

/// Adds the built-in `shell` target, if it is allowed. No block may have its label then.
pub(super) fn add_shell(layers: &mut Layers, targets: &mut Targets, shell: Option<TargetSettings>) {
    let Some(shell) = shell else { return };
    if let Some(n) = targets.labels.iter().position(|label| *label == shell.label) {
        let detail = "is the label of the built-in target that `shell.allow` turns on; choose another one";
        layers.refuse(&Fault::new(format!("/target/{n}/label"), FaultCode::Invalid, detail));
        return;
    }
    targets.labels.push(shell.label.clone());
    targets.described.push(described(&shell, None));
    targets.settings.push(shell);
}

/// A target as people may know it: never its secrets.
pub(crate) fn described(settings: &TargetSettings, block: Option<(&Value, Naming)>) -> ConfiguredTarget {
    // A URL that is kept elsewhere is a secret as a whole.
    let is_url_shown = block.is_some_and(|(block, _)| block.get("url").is_some_and(Value::is_string));
    let address = match &settings.kind {
        Kind::Http(http) => is_url_shown.then(|| callable(&http.url)),
        Kind::Command(command) => command.argv.first().cloned(),
        Kind::Log | Kind::Shell(_) => None,
    };
    ConfiguredTarget {
        label: settings.label.clone(),
        kind: settings.type_name(),
        address,
        concurrency: settings.options.concurrency,
        block: block.map(|(block, naming)| everbell_wire::target_toml::block(block, naming)),
    }
}

/// Notes the faults of a block where it stands.
pub(super) fn refuse_all(layers: &mut Layers, place: &str, faults: Vec<Fault>) {
    for fault in faults {
        layers.refuse(&Fault { pointer: format!("{place}{}", fault.pointer), ..fault });
    }
}

/// A target as far as it could be read, and what is wrong with it.
pub(super) fn target(block: &Value, secrets: Secrets<'_>, naming: Naming) -> (TargetSettings, Vec<Fault>) {
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let fields = target_fields(&kind);
    // Without a type nothing but the label can be judged: what else there is depends on it.
    let mut form = Form::read(block, fields.unwrap_or(&super::fields::LOG_TARGET[..2]), naming);
    let mut options = TargetOptions::default();
    options.concurrency = form.count("concurrency");
    let settings = match kind.as_str() {
        "http" => Kind::Http(http(&mut form, secrets)),
        "command" => Kind::Command(command(&mut form, secrets)),
        _ => Kind::Log,
    };
    let timeout = form.span("timeout");
    if timeout.is_some_and(|timeout| timeout.is_zero()) {
        form.fault("timeout", FaultCode::OutOfRange, "must be more than 0");
    }
    if matches!(settings, Kind::Http(_)) {
        options.remote_lease = remote_lease(&mut form);
    } else {
        options.timeout = timeout;
    }
    let label = form.text("label").unwrap_or("any").to_owned();
    if let Err(invalid) = Target::new(&label) {
        form.fault("label", FaultCode::Invalid, invalid.reason);
    }
    let settings = TargetSettings { label, options, kind: settings };
    // A value that cannot be read would be reported twice.
    if form.faults_mut().is_empty() {
        for (field, problem) in settings.problems() {
            let name = if naming == Naming::Camel { camel(field) } else { field.to_owned() };
            form.note(Fault::new(format!("/{name}"), FaultCode::Invalid, problem));
        }
    }
    let faults = form.faults().into_iter().filter_map(|fault| in_context(fault, &kind, fields, naming)).collect();
    (settings, faults)
}

/// A name in the spelling of the API.
fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (head, rest) = word.split_at(word.len().min(1));
        name + &head.to_ascii_uppercase() + rest
    })
}

/// Reports a key of another type as such; without a type, no key is unknown.
fn in_context(fault: Fault, kind: &str, fields: Option<&[Field]>, naming: Naming) -> Option<Fault> {
    if fault.pointer == "/type" && kind == SHELL_LABEL {
        let detail = "`shell` is built in and needs no block: set `allow = true` in the section `[shell]`";
        return Some(Fault { detail: detail.to_owned(), ..fault });
    }
    if fault.code != FaultCode::UnknownField {
        return Some(fault);
    }
    let name = fault.pointer.trim_start_matches('/');
    let has = |fields: &[Field]| fields.iter().any(|field| naming.spell(field.name) == name);
    let owner = TYPES.into_iter().find(|other| target_fields(other).is_some_and(has));
    match owner {
        None if fields.is_none() => {
            let names: Vec<_> = TYPES.into_iter().filter_map(target_fields).flatten().map(|field| field.name).collect();
            let names: Vec<_> = names.iter().map(|name| naming.spell(name)).collect();
            let near = did_you_mean(name, names.iter().map(AsRef::as_ref));
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let detail = format!("is not known here{near}");
            Some(Fault { detail, ..fault })
        }
        None => Some(fault),
        Some(_) if fields.is_none() => None,
        Some(owner) => {
            let detail = format!("is only for targets of type `{owner}`; this one is `{kind}`");
            Some(Fault { detail, ..fault })
        }
    }
}

/// How long the target may be silent about a run that it works on; `None` if it answers only when it is done.
fn remote_lease(form: &mut Form<'_>) -> Option<Duration> {
    let (is_async, lease) = (form.flag("async"), form.span("lease"));
    if lease.is_some() && !is_async {
        form.fault("lease", FaultCode::Invalid, "is only for targets with `async = true`");
    }
    if lease.is_some_and(|lease| !(MIN_LEASE..=MAX_LEASE).contains(&lease)) {
        form.fault("lease", FaultCode::OutOfRange, "must be 1s to 24h");
    }
    is_async.then(|| lease.unwrap_or(DEFAULT_REMOTE_LEASE))
}

/// Tells the targets that end their runs later where to report: under the address of the server and the first mount.
pub(super) fn set_api_url(targets: &mut [TargetSettings], public_url: Option<&str>, mounts: &[String]) {
    let api_url = public_url.zip(mounts.first()).map(|(url, mount)| format!("{url}{mount}"));
    for target in targets.iter_mut().filter(|target| target.options.remote_lease.is_some()) {
        if let Kind::Http(settings) = &mut target.kind {
            settings.api_url.clone_from(&api_url);
        }
    }
}

pub(super) fn http(form: &mut Form<'_>, secrets: Secrets<'_>) -> HttpSettings {
    let url = form.value("url").map_or_else(|| Ok(Secret::new("")), |value| secrets.read(value));
    let url = url.and_then(|url| match url.reveal() {
        text if text.starts_with("http://") || text.starts_with("https://") => Ok(text.to_owned()),
        _ => Err("must begin with `http://` or `https://`".to_owned()),
    });
    let url = url.unwrap_or_else(|reason| {
        form.fault("url", FaultCode::Invalid, reason);
        String::new()
    });
    let usual = HttpSettings::new(url);
    HttpSettings {
        method: form.text("method").map_or(usual.method, str::to_owned),
        headers: secret_map(form, "headers", secrets),
        signing_keys: signing_keys(form, secrets),
        timeout: form.span("timeout").unwrap_or(usual.timeout),
        success: statuses(form).unwrap_or(usual.success),
        ca_file: form.text("caFile").map(PathBuf::from),
        allow_private: form.answer("allowPrivate").unwrap_or(usual.allow_private),
        allow_link_local: form.answer("allowLinkLocal").unwrap_or(usual.allow_link_local),
        api_url: None,
        url: usual.url,
    }
}

pub(super) fn command(form: &mut Form<'_>, secrets: Secrets<'_>) -> CommandSettings {
    let argv: Vec<String> = form.list("argv").into_iter().map(str::to_owned).collect();
    if argv.first().is_none_or(String::is_empty) {
        form.fault("argv", FaultCode::Invalid, "must begin with a program, such as `[\"/usr/bin/backup\", \"--all\"]`");
    }
    let env = secret_map(form, "env", secrets);
    let pass_env: Vec<String> = form.list("passEnv").into_iter().map(str::to_owned).collect();
    let is_odd = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
    if let Some(name) = env.keys().find(is_odd).cloned() {
        let detail = "is not a valid variable name: it must not contain `=`";
        form.note(Fault::new(format!("/env/{}", escape(&name)), FaultCode::Invalid, detail));
    }
    if pass_env.iter().any(|name| name.contains('=')) {
        form.fault("passEnv", FaultCode::Invalid, "must be names of variables, without `=`");
    }
    let codes = form.value("success").and_then(Value::as_array);
    let codes = codes.map(|codes| codes.iter().filter_map(|code| i32::try_from(code.as_i64()?).ok()).collect());
    if codes.as_ref().is_some_and(Vec::is_empty) {
        form.fault("success", FaultCode::Invalid, "must name at least one exit code");
    }
    let usual = CommandSettings::new(argv);
    let success = codes.unwrap_or(usual.success);
    CommandSettings {
        argv: usual.argv,
        cwd: form.text("cwd").map(PathBuf::from),
        user: form.text("user").map(str::to_owned),
        group: form.text("group").map(str::to_owned),
        env,
        pass_env,
        success,
    }
}

/// Secrets by name.
pub(super) fn secret_map(form: &mut Form<'_>, path: &str, secrets: Secrets<'_>) -> BTreeMap<String, Secret> {
    let members = form.value(path).and_then(Value::as_object).cloned().unwrap_or_default();
    let mut found = BTreeMap::new();
    for (name, value) in members {
        match secrets.read(&value) {
            Ok(secret) => drop(found.insert(name, secret)),
            Err(reason) => {
                let path = path.replace('.', "/");
                form.note(Fault::new(format!("/{path}/{}", escape(&name)), FaultCode::Invalid, reason));
            }
        }
    }
    found
}

/// The keys in the block and those in files: each signs.
fn signing_keys(form: &mut Form<'_>, secrets: Secrets<'_>) -> Vec<Secret> {
    let here = form.value("signingKeys").and_then(Value::as_array).cloned().unwrap_or_default();
    let there: Vec<String> = form.list("signingKeyFiles").into_iter().map(str::to_owned).collect();
    let here = here.iter().enumerate().map(|(n, value)| (format!("signingKeys.{n}"), secrets.read(value)));
    let there = there.iter().enumerate().map(|(n, path)| (format!("signingKeyFiles.{n}"), in_file(path)));
    let mut keys = Vec::new();
    for (path, found) in here.chain(there) {
        match found {
            Ok(key) if key.reveal().is_empty() => form.fault(&path, FaultCode::Invalid, "is empty"),
            Ok(key) => keys.push(key),
            Err(reason) => form.fault(&path, FaultCode::Invalid, reason),
        }
    }
    keys
}

/// Reads the response statuses that count as a success.
fn statuses(form: &mut Form<'_>) -> Option<Vec<RangeInclusive<u16>>> {
    let given = form.value("success").and_then(Value::as_array).cloned()?;
    if given.is_empty() {
        form.fault("success", FaultCode::Invalid, "must name at least one status");
    }
    let mut ranges = Vec::new();
    for (n, value) in given.iter().enumerate() {
        match status_range(value) {
            Some(range) => ranges.push(range),
            None => form.fault(
                &format!("success.{n}"),
                FaultCode::Invalid,
                "must be a status from 100 to 599, such as `304`, or a range such as `\"200-299\"`",
            ),
        }
    }
    Some(ranges)
}

fn status_range(value: &Value) -> Option<RangeInclusive<u16>> {
    let number = |text: &str| text.trim().parse::<u16>().ok();
    let (first, last) = match value {
        Value::Number(status) => {
            let status = u16::try_from(status.as_i64()?).ok()?;
            (status, status)
        }
        Value::String(text) => match text.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(text)?, number(text)?),
        },
        _ => return None,
    };
    (100 <= first && first <= last && last <= 599).then_some(first..=last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn statuses_are_numbers_and_ranges() {
        for (value, range) in [
            (json!(304), Some(304..=304)),
            (json!("200-299"), Some(200..=299)),
            (json!("200 - 204"), Some(200..=204)),
            (json!("404"), Some(404..=404)),
            (json!("299-200"), None),
            (json!("2xx"), None),
            (json!(99), None),
            (json!(600), None),
            (json!(-1), None),
            (json!(200.5), None),
            (json!(true), None),
        ] {
            assert_eq!(status_range(&value), range, "{value}");
        }
    }
}
