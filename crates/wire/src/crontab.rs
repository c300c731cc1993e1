//! Crontabs: each line as a job of the `shell` target, or the reason why it is none.
//!
//! A variable holds for the lines below it, as in cron. A comment right above a line is its description. `shape` finds
//! out whether a crontab has a column with users.

mod shape;
mod variables;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use everbell_core::cron::{Expression, WarningCode};
use everbell_core::{Draft, PolicyValues, Timing, Zone};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use self::shape::is_schedule;
use self::variables::{Variables, variable};
use crate::job_body::declared;

pub use self::shape::system_reason;

/// The built-in target that runs commands.
pub const SHELL_TARGET: &str = "shell";
/// The label of imported jobs. Its value is the name of the file.
pub const IMPORTED_LABEL: &str = "imported";
/// The reason why imported jobs are paused.
pub const PAUSE_REASON: &str = "imported: check it, then resume it";

/// The time limit of an imported job. Cron has none, and the usual one would stop a long backup.
pub const TIME_LIMIT: Duration = Duration::from_hours(24);

/// The most characters of a description.
const MAX_DESCRIPTION_CHARS: usize = 1_000;
/// The most bytes of the value of a label.
const MAX_LABEL_BYTES: usize = 200;

/// The most words of a command in its key.
const MAX_KEY_WORDS: usize = 4;
/// The most characters of a key.
const MAX_KEY_LENGTH: usize = 60;

/// A line that is neither empty nor a comment.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// The line number, from 1.
    #[serde(rename = "line")]
    pub number: usize,
    /// The effect of the line.
    pub verdict: Verdict,
    /// The job that it becomes.
    #[serde(flatten)]
    pub entry: Option<Entry>,
    /// An explanation for people.
    pub detail: String,
}

/// The effect of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It becomes a job.
    Job,
    /// It sets something for other lines, or something that everbell does differently.
    Note,
    /// It cannot become a job.
    Refused,
}

impl Verdict {
    /// Returns the verdict as one word.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Job => "job",
            Verdict::Note => "note",
            Verdict::Refused => "refused",
        }
    }
}

/// A line that becomes a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The key of the job, made from the command.
    #[serde(rename = "jobKey")]
    pub key: String,
    /// The expression as it was written, with single spaces.
    #[serde(rename = "cronExpression")]
    pub expression: String,
    /// The IANA time zone that holds at this line.
    #[serde(rename = "timezone")]
    pub zone: &'static str,
    /// The command without its input.
    pub command: String,
    /// The comment above the line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stdin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shell: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<String, String>,
    /// The address that cron sent output to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mailto: Option<String>,
}

impl Entry {
    /// The payload of the job, as the `shell` target reads it.
    pub fn payload(&self) -> Value {
        let mut payload = json!({ "command": self.command });
        for (name, value) in [("shell", &self.shell), ("stdin", &self.stdin), ("user", &self.user)] {
            if let Some(value) = value {
                payload[name] = json!(value);
            }
        }
        if !self.env.is_empty() {
            payload["env"] = json!(self.env);
        }
        payload
    }

    /// The job, with the name of its file as a label.
    pub fn draft(&self, target: &str, file: &str) -> Draft {
        let mailto = self.mailto.iter().map(|mailto| ("mailto".to_owned(), mailto.clone()));
        Draft {
            timezone: Some(self.zone.to_owned()),
            target: Some(target.to_owned()),
            payload: Some(Ok(self.payload().to_string())),
            description: self.description.clone(),
            policies: PolicyValues { timeout: TIME_LIMIT, ..PolicyValues::default() },
            labels: mailto.chain([(IMPORTED_LABEL.to_owned(), file.to_owned())]).collect(),
            ..Draft::new(&self.key, Timing::Cron(self.expression.clone()))
        }
    }

    /// Where cron may have meant something else, or people do: both day fields, and the next changes of the clocks.
    pub fn differences(&self, now: Timestamp) -> Vec<String> {
        let definition = declared(&self.draft(SHELL_TARGET, "any"), now).ok();
        let spec = definition.and_then(|definition| definition.spec.ok());
        let warnings = spec.map_or_else(Vec::new, |spec| spec.warnings(now)).into_iter();
        let matters = [WarningCode::EitherDay, WarningCode::DstGap, WarningCode::DstFold];
        let text = |code, detail: String| match code {
            WarningCode::EitherDay => format!("{detail}; cron means the same"),
            _ => format!("{detail}; cron may behave differently"),
        };
        warnings.filter(|found| matters.contains(&found.code)).map(|found| text(found.code, found.detail)).collect()
    }
}

/// Returns the blocks of the configuration that mail failures of these jobs as `MAILTO` did, if it was set.
pub fn mail_blocks<'a>(entries: impl Iterator<Item = &'a Entry>) -> Option<String> {
    let receivers: BTreeSet<&str> = entries.filter_map(|entry| entry.mailto.as_deref()).collect();
    let blocks: Vec<String> = receivers.into_iter().enumerate().map(|(n, mailto)| mail_block(n, mailto)).collect();
    (!blocks.is_empty()).then(|| blocks.join("\n"))
}

/// A channel and a rule for the jobs of one `MAILTO`.
fn mail_block(n: usize, mailto: &str) -> String {
    let name = if n == 0 { "crontab-mail".to_owned() } else { format!("crontab-mail-{}", n + 1) };
    // A name without a domain is a user of this machine.
    let address = |name: &str| if name.contains('@') { name.to_owned() } else { format!("{name}@localhost") };
    let to: Vec<String> = mailto.split(',').map(str::trim).filter(|name| !name.is_empty()).map(address).collect();
    let (to, label) = (json!(to), json!(format!("mailto={mailto}")));
    format!(
        "[[notify]]\nname = \"{name}\"\ntype = \"email\"\nhost = \"localhost\"\ntls = \"none\"\n\
         from = \"everbell@localhost\"\nto = {to}\n\n\
         [[rule]]\nwhen = [\"failed\", \"recovered\"]\njobs = {{ label = {label} }}\nto = [\"{name}\"]\n"
    )
}

/// The label of crontabs without a name of their own.
pub const CRONTAB_LABEL: &str = "crontab";

/// Returns the value of [`IMPORTED_LABEL`] for a file: its name without its folder.
pub fn file_label(path: &str) -> String {
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let visible: String = name.chars().filter(|c| !c.is_control()).collect();
    let end = (0..=MAX_LABEL_BYTES.min(visible.len())).rev().find(|end| visible.is_char_boundary(*end));
    match &visible[..end.unwrap_or_default()] {
        "" | "-" => CRONTAB_LABEL.to_owned(),
        name => name.to_owned(),
    }
}

/// The most lines of a crontab; each has an expression to parse.
const MAX_LINES: usize = 10_000;

/// Refuses a crontab that is too long to be read line by line.
pub fn check_length(text: &str) -> Result<(), String> {
    match text.lines().count() {
        0..=MAX_LINES => Ok(()),
        lines => Err(format!("the crontab has {lines} lines; at most {MAX_LINES} are read at once, so split it")),
    }
}

/// Reads every line that is neither empty nor a comment. In a `system` crontab a user precedes the command.
pub fn read(text: &str, zone: &Zone, system: bool) -> Vec<Line> {
    let (mut variables, mut taken) = (Variables::new(zone), BTreeMap::new());
    let (mut lines, mut comment) = (Vec::new(), Vec::new());
    for (index, text) in text.lines().enumerate() {
        let text = text.trim();
        if let Some(said) = text.strip_prefix('#') {
            comment.push(said.trim_start_matches('#').trim());
            continue;
        }
        let description = description(&std::mem::take(&mut comment));
        if text.is_empty() {
            continue;
        }
        let (verdict, entry, detail) = match variable(text) {
            Some((name, value)) => match variables.set(name, value) {
                Ok(detail) => (Verdict::Note, None, detail),
                Err(why) => (Verdict::Refused, None, why),
            },
            None => match entry(text, &variables, system, &mut taken) {
                Ok((entry, detail)) => (Verdict::Job, Some(Entry { description, ..entry }), detail),
                Err(why) => (Verdict::Refused, None, why),
            },
        };
        lines.push(Line { number: index + 1, verdict, entry, detail });
    }
    lines
}

/// The comment above a line, without rulers, headings of columns, and lines that are switched off.
fn description(comment: &[&str]) -> String {
    let is_said = |line: &&&str| {
        let is_heading = line.contains("dom") && line.contains("dow");
        line.chars().any(char::is_alphanumeric) && !is_heading && !is_schedule(line)
    };
    let said: Vec<&str> = comment.iter().filter(is_said).copied().collect();
    said.join("\n").chars().filter(|c| *c == '\n' || !c.is_control()).take(MAX_DESCRIPTION_CHARS).collect()
}

/// The number of words that the time of a line has, if the line names a time.
fn time_words(text: &str) -> usize {
    match text.split_whitespace().next() {
        Some("@every") => 2,
        Some(word) if word.starts_with('@') => 1,
        _ => 5,
    }
}

/// A line with a time and a command.
fn entry(
    text: &str,
    variables: &Variables,
    system: bool,
    taken: &mut BTreeMap<String, u32>,
) -> Result<(Entry, String), String> {
    if text.split_whitespace().next() == Some("@reboot") {
        return Err(
            "@reboot: left out: there is no time at which this fires; start it with the machine, for example by a \
                    systemd unit"
                .to_owned(),
        );
    }
    // Some crons take a leading `-` as "write no line to the system log".
    let text = text
        .strip_prefix('-')
        .filter(|rest| rest.starts_with(|c: char| c == '*' || c.is_ascii_digit()))
        .unwrap_or(text);
    let (expression, rest) =
        split(text, time_words(text)).ok_or("the time has five fields, and the command comes after them")?;
    let parsed = Expression::parse(&expression).map_err(|error| error.to_string())?;
    let (user, rest) = if system { split(rest, 1).map(|(user, rest)| (Some(user), rest)) } else { Some((None, rest)) }
        .ok_or("a command is missing; in a system crontab the user comes before it")?;
    let (command, stdin) = input(rest);
    let zone = variables.zone.name();
    let mut detail = format!("{}, {zone}", parsed.describe());
    if let Some(user) = &user {
        detail = format!("{detail}; runs as `{user}`");
    }
    if stdin.is_some() {
        detail.push_str("; the text after % is its input");
    }
    let key = unique(key(&command), taken);
    let Variables { shell, env, mailto, .. } = variables;
    let (shell, env, mailto) = (shell.clone(), env.clone(), mailto.clone());
    let description = String::new();
    Ok((Entry { key, expression, zone, command, description, stdin, user, shell, env, mailto }, detail))
}

/// Splits off the first `count` fields, joined with single spaces.
fn split(text: &str, fields: usize) -> Option<(String, &str)> {
    let (mut rest, mut found) = (text, Vec::new());
    for _ in 0..fields {
        let (field, behind) = rest.split_once(char::is_whitespace)?;
        found.push(field);
        rest = behind.trim_start();
    }
    (!rest.is_empty()).then(|| (found.join(" "), rest))
}

/// Splits a command from its input: the first `%` starts the input, further ones end its lines; `\%` is a percent sign.
fn input(text: &str) -> (String, Option<String>) {
    let (mut parts, mut part, mut escaped) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        if c == '%' && !escaped {
            parts.push(std::mem::take(&mut part));
        } else {
            if c == '%' {
                part.pop();
            }
            part.push(c);
        }
        escaped = c == '\\' && !escaped;
    }
    parts.push(part);
    let command = parts.remove(0).trim_end().to_owned();
    (command, (!parts.is_empty()).then(|| format!("{}\n", parts.join("\n"))))
}

/// Makes a key from the words of a command: `/usr/bin/backup --full /srv` is `backup-full-srv`.
fn key(command: &str) -> String {
    // The last part of a path says the most.
    let last = |word: &str| word.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_lowercase();
    let parts =
        command.split_whitespace().filter(|word| !word.contains('=') && !word.starts_with(['>', '<', '&', '|']));
    let clean = |word: String| {
        let kept: String = word.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        kept.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
    };
    let words: Vec<String> = parts.map(last).map(clean).filter(|word| !word.is_empty()).take(MAX_KEY_WORDS).collect();
    let key: String = words.join("-").chars().take(MAX_KEY_LENGTH).collect();
    let key = key.trim_matches('-').to_owned();
    if key.is_empty() { "job".to_owned() } else { key }
}

/// Returns the key, with a number if it is taken.
fn unique(key: String, taken: &mut BTreeMap<String, u32>) -> String {
    let count = taken.entry(key.clone()).or_default();
    *count += 1;
    if *count == 1 {
        return key;
    }
    let numbered = format!("{key}-{count}");
    unique(numbered, taken)
}

#[cfg(test)]
mod tests;
