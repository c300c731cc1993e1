//! `[[notify]]` and `[[rule]]` blocks: channels, and who is notified of which problems.

use std::collections::BTreeMap;
use std::time::Duration;

use everbell_core::alert::{Deadline, Kind as Problem, QuietHours, Rule, RuleScope, TimeLimit};
use everbell_core::{Invalid, JobKey, OrgId};
use everbell_wire::FaultCode;
use serde_json::Value;

use super::layers::Layers;
use super::notify_fields::{NOTIFY_TYPES, RULE, WEBHOOK, notify_fields};
use super::secrets::Secrets;
use super::targets::{command, http, refuse_all};
use crate::notify::{ChannelKind, ChannelSettings};
use everbell_wire::form::{Fault, Form, Naming, format_suggestions};
use everbell_wire::time_input::excerpt;

/// How long a command may take if nothing else is said.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest that a channel may take, well within the lease of a message.
const MAX_TIMEOUT: Duration = Duration::from_mins(1);

/// The content of the blocks.
pub(super) struct Notify {
    pub(super) channels: Vec<ChannelSettings>,
    pub(super) rules: Vec<Rule>,
}

pub(super) fn read(layers: &mut Layers, secrets: Secrets<'_>) -> Notify {
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut channels = Vec::new();
    for (n, block) in layers.blocks("notify").iter().enumerate() {
        let place = format!("/notify/{n}");
        let (channel, mut faults) = channel(block, secrets);
        if let Some(first) = names.get(&channel.name).filter(|_| !channel.name.is_empty()) {
            faults.push(Fault::new(
                "/name",
                FaultCode::Invalid,
                format!("is defined twice; the other one is on line {first}"),
            ));
        }
        let line = layers.document.line(&format!("{place}/name")).unwrap_or_default();
        names.entry(channel.name.clone()).or_insert(line);
        channels.push(channel);
        refuse_all(layers, &place, faults);
    }
    let known: Vec<&str> = names.keys().map(String::as_str).filter(|name| !name.is_empty()).collect();
    let mut rules: Vec<Rule> = Vec::new();
    for (n, block) in layers.blocks("rule").iter().enumerate() {
        let (rule, mut faults) = rule(block, &known);
        if rules.iter().any(|other| other.name == rule.name) {
            let detail = format!("`{}` is used twice; give each rule its own `name`", excerpt(&rule.name));
            faults.push(Fault::new("/name", FaultCode::Invalid, detail));
        }
        rules.push(rule);
        refuse_all(layers, &format!("/rule/{n}"), faults);
    }
    Notify { channels, rules }
}

/// A channel as far as it could be read, and what is wrong with it.
fn channel(block: &Value, secrets: Secrets<'_>) -> (ChannelSettings, Vec<Fault>) {
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let fields = notify_fields(&kind);
    let mut form = Form::read(block, fields.unwrap_or(&WEBHOOK[..2]), Naming::Snake);
    let name = form.text("name").unwrap_or_default().to_owned();
    if !name.is_empty() && !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) {
        form.fault("name", FaultCode::Invalid, "must consist of letters, digits, `-`, `_` and `.`");
    }
    let timeout = form.span("timeout");
    if timeout.is_some_and(|timeout| timeout.is_zero() || timeout > MAX_TIMEOUT) {
        form.fault("timeout", FaultCode::OutOfRange, "must be more than 0 and at most 60s");
    }
    let kind = match kind.as_str() {
        "slack" => ChannelKind::Slack(http(&mut form, secrets)),
        "email" => ChannelKind::Email(super::email::email(&mut form, secrets, timeout)),
        "command" => ChannelKind::Command(command(&mut form, secrets), timeout.unwrap_or(COMMAND_TIMEOUT)),
        _ if fields.is_none() => ChannelKind::Unknown,
        _ => ChannelKind::Webhook(http(&mut form, secrets)),
    };
    let summarize = form.count("summarize");
    let settings = ChannelSettings { name, kind, summarize };
    // A value that cannot be read would be reported twice.
    if form.faults_mut().is_empty() {
        for (field, problem) in settings.problems() {
            form.note(Fault::new(format!("/{field}"), FaultCode::Invalid, problem));
        }
    }
    let is_known = |fault: &Fault| {
        // Without a type nothing but the name can be judged: what else there is depends on it.
        let name = fault.pointer.trim_start_matches('/');
        let spells = |kind: &&str| {
            let fields = notify_fields(kind).unwrap_or_default();
            fields.iter().any(|field| Naming::Snake.spell(field.name) == name)
        };
        fault.code == FaultCode::UnknownField && fields.is_none() && NOTIFY_TYPES.iter().any(spells)
    };
    let faults = form.faults().into_iter().filter(|fault| !is_known(fault)).collect();
    (settings, faults)
}

/// A rule as far as it could be read, and what is wrong with it.
fn rule(block: &Value, channels: &[&str]) -> (Rule, Vec<Fault>) {
    let mut form = Form::read(block, RULE, Naming::Snake);
    let words: Vec<String> = form.list("when").into_iter().map(str::to_owned).collect();
    let kinds = Problem::ALL.iter().copied().filter(|kind| words.iter().any(|word| word == kind.as_str()));
    let to: Vec<String> = form.list("to").into_iter().map(str::to_owned).collect();
    for (n, name) in to.iter().enumerate().filter(|(_, name)| !channels.contains(&name.as_str())) {
        let some = if channels.is_empty() {
            "none; write a `[[notify]]` block".to_owned()
        } else {
            format_suggestions(name, channels.iter().copied())
        };
        form.fault(
            &format!("to.{n}"),
            FaultCode::Invalid,
            format!("there is no channel `{}`; known: {some}", excerpt(name)),
        );
    }
    let is_about_jobs = words.iter().any(|word| word != "recovered" && word != Problem::InstanceLost.as_str());
    let scope = if is_about_jobs || form.has("jobs") { scope(&mut form) } else { RuleScope::All };
    let fixed = form.span("takesAtMost").map(TimeLimit::Fixed);
    let times = form.count("p95Times").map(TimeLimit::TimesUsual);
    let mut rule = Rule {
        name: String::new(),
        kinds: kinds.collect(),
        recovered: words.iter().any(|word| word == "recovered"),
        after: form.count("after").unwrap_or(1),
        remind: form.span("remind"),
        deadline: deadline(&mut form),
        starts_within: form.span("startsWithin"),
        takes_at_most: fixed.into_iter().chain(times).collect(),
        quiet: quiet(&mut form),
        orgs: orgs(&mut form),
        scope,
        to,
    };
    rule.name = form.text("name").map_or_else(|| default_name(&words, &rule), str::to_owned);
    if form.faults_mut().is_empty() {
        for Invalid { field, reason, .. } in rule.problems() {
            // The one of both that was written.
            let field = match field {
                "by" if form.has("within") => "within",
                "starts_within" => "startsWithin",
                "takes_at_most" if form.has("p95Times") && !form.has("takesAtMost") => "p95Times",
                "takes_at_most" => "takesAtMost",
                field => field,
            };
            form.fault(field, FaultCode::Invalid, reason);
        }
    }
    (rule, form.faults())
}

/// `failed,recovered of team=billing`: the same rule has the same name, wherever it stands in the file.
fn default_name(when: &[String], rule: &Rule) -> String {
    let scope = match &rule.scope {
        RuleScope::All => "all".to_owned(),
        RuleScope::Label(name, None) => name.clone(),
        RuleScope::Label(name, Some(value)) => format!("{name}={value}"),
        RuleScope::Keys(keys) => keys.join(","),
    };
    let orgs = if rule.orgs.is_empty() { String::new() } else { format!(" for {}", rule.orgs.join(",")) };
    everbell_core::storable_text(&format!("{} of {scope}{orgs}", when.join(",")), 200)
}

/// Ids of orgs, with `*` for any text.
fn orgs(form: &mut Form<'_>) -> Vec<String> {
    let orgs: Vec<String> = form.list("orgs").into_iter().map(str::to_owned).collect();
    if form.has("orgs") && orgs.is_empty() {
        form.fault("orgs", FaultCode::Invalid, "must name at least one org, or `*` for each of them");
    }
    for (n, org) in orgs.iter().enumerate() {
        // A star may stand for anything that an id has.
        if let Err(invalid) = OrgId::new(&org.replace('*', "x")) {
            form.fault(&format!("orgs.{n}"), FaultCode::Invalid, invalid.reason);
        }
    }
    orgs
}

fn scope(form: &mut Form<'_>) -> RuleScope {
    let given = [form.has("jobs.all"), form.has("jobs.label"), form.has("jobs.keys")];
    if given.iter().filter(|given| **given).count() != 1 || form.answer("jobs.all") == Some(false) {
        let detail = "must say one of `all = true`, `label = \"team=billing\"` and `keys = [\"backup-*\"]`";
        form.fault("jobs", FaultCode::Invalid, detail);
        return RuleScope::All;
    }
    if let Some(label) = form.text("jobs.label") {
        let (name, value) = label.split_once('=').map_or((label, None), |(name, value)| (name, Some(value)));
        return RuleScope::Label(name.trim().to_owned(), value.map(|value| value.trim().to_owned()));
    }
    let keys: Vec<String> = form.list("jobs.keys").into_iter().map(str::to_owned).collect();
    if form.has("jobs.keys") && keys.is_empty() {
        form.fault("jobs.keys", FaultCode::Invalid, "must name at least one job");
    }
    for (n, key) in keys.iter().enumerate() {
        if let Err(invalid) = JobKey::new(key) {
            form.fault(&format!("jobs.keys.{n}"), FaultCode::Invalid, invalid.reason);
        }
    }
    if form.has("jobs.all") { RuleScope::All } else { RuleScope::Keys(keys) }
}

fn deadline(form: &mut Form<'_>) -> Option<Deadline> {
    match (form.text("by").map(str::to_owned), form.span("within")) {
        (Some(_), Some(_)) => {
            form.fault("within", FaultCode::Invalid, "cannot be combined with `by`; choose one");
            None
        }
        (Some(by), None) => {
            let read = split_zone("by", &by, "06:00 Europe/Paris").and_then(|(time, zone)| Deadline::by(time, zone));
            read.map_err(|invalid| form.fault("by", FaultCode::Invalid, invalid.reason)).ok()
        }
        (None, Some(within)) => {
            if within < Duration::from_mins(1) {
                form.fault("within", FaultCode::OutOfRange, "must be at least 1m");
            }
            Some(Deadline::Within(within))
        }
        (None, None) => None,
    }
}

fn quiet(form: &mut Form<'_>) -> Option<QuietHours> {
    let text = form.text("quiet")?.to_owned();
    let example = "22:00-07:00 Europe/Paris";
    let read = split_zone("quiet", &text, example).and_then(|(hours, zone)| {
        let (from, until) = hours.split_once('-').ok_or_else(|| unlike("quiet", &text, example))?;
        QuietHours::new(from.trim(), until.trim(), zone)
    });
    read.map_err(|invalid| form.fault("quiet", FaultCode::Invalid, invalid.reason)).ok()
}

/// A time and its zone. Without a zone it is ambiguous.
fn split_zone<'t>(field: &'static str, text: &'t str, example: &str) -> Result<(&'t str, &'t str), Invalid> {
    text.trim().rsplit_once(' ').map(|(time, zone)| (time.trim(), zone)).ok_or_else(|| unlike(field, text, example))
}

fn unlike(field: &'static str, text: &str, example: &str) -> Invalid {
    Invalid::new(field, format!("must be times of day and a time zone, such as `{example}`, not `{}`", excerpt(text)))
}
