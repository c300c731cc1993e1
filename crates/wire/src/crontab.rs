//! Crontabs: each line as a job, or the reason why it is none.

use std::collections::BTreeMap;

use everbell_core::Zone;
use everbell_core::cron::Expression;
use serde::Serialize;
use serde_json::{Value, json};

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
#[derive(Debug, PartialEq, Eq, Serialize)]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stdin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
}

impl Entry {
    /// The payload of the job.
    pub fn payload(&self) -> Value {
        let mut payload = json!({ "command": self.command });
        for (name, value) in [("stdin", &self.stdin), ("user", &self.user)] {
            if let Some(value) = value {
                payload[name] = json!(value);
            }
        }
        payload
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

/// Reads every line that is neither empty nor a comment.
pub fn read(text: &str, zone: &Zone, system: bool) -> Vec<Line> {
    let (mut zone, mut taken) = (zone.clone(), BTreeMap::new());
    let mut lines = Vec::new();
    for (index, text) in text.lines().enumerate() {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let (verdict, entry, detail) = match variable(text) {
            Some((name, value)) => match set(name, value, &mut zone) {
                Ok(detail) => (Verdict::Note, None, detail),
                Err(why) => (Verdict::Refused, None, why),
            },
            None => match entry(text, &zone, system, &mut taken) {
                Ok((entry, detail)) => (Verdict::Job, Some(entry), detail),
                Err(why) => (Verdict::Refused, None, why),
            },
        };
        lines.push(Line { number: index + 1, verdict, entry, detail });
    }
    lines
}

/// `NAME = value`, with or without quotes.
fn variable(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let (name, value) = (name.trim_end(), value.trim());
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    is_name.then(|| (name, inside('"').or_else(|| inside('\'')).unwrap_or(value)))
}

/// The effect of a variable.
fn set(name: &str, value: &str, zone: &mut Zone) -> Result<String, String> {
    Ok(match name {
        "CRON_TZ" => {
            *zone =
                Zone::get(value).map_err(|error| format!("CRON_TZ: {error}; the lines below keep {}", zone.name()))?;
            format!("CRON_TZ: the lines below are read in {}", zone.name())
        }
        "TZ" => "TZ: only the commands saw it, not their schedule; say `--tz`, or CRON_TZ in the file".to_owned(),
        "MAILTO" | "MAILFROM" => {
            format!("{name}: no mail is sent; output and failures are stored with each run, and metrics count failures")
        }
        "RANDOM_DELAY" => "RANDOM_DELAY: not carried over; `policies.jitter` does this for each job".to_owned(),
        "SHELL" => "SHELL: the target decides what runs the command".to_owned(),
        _ => format!("{name}: not carried over; the environment of commands is that of their target"),
    })
}

/// A line with a time and a command.
fn entry(text: &str, zone: &Zone, system: bool, taken: &mut BTreeMap<String, u32>) -> Result<(Entry, String), String> {
    let fields = match text.split_whitespace().next() {
        Some("@reboot") => {
            return Err(
                "@reboot: there is no time at which this fires; start it with the machine, for example by a systemd \
                        unit"
                    .to_owned(),
            );
        }
        Some("@every") => 2,
        Some(word) if word.starts_with('@') => 1,
        _ => 5,
    };
    let (expression, rest) = split(text, fields).ok_or("the time has five fields, and a command stands behind them")?;
    let parsed = Expression::parse(&expression).map_err(|error| error.to_string())?;
    let (user, rest) = if system { user_of(rest) } else { Some((None, rest)) }
        .ok_or("a command is missing; with --system the user stands before it")?;
    let (command, stdin) = input(rest);
    let mut detail = format!("{}, {}", parsed.describe(), zone.name());
    if stdin.is_some() {
        detail.push_str("; what is behind % is in the payload as `stdin`");
    }
    if let Some(user) = &user {
        detail = format!("{detail}; `{user}` is in the payload, and the target decides who runs it");
    }
    let key = unique(key(&command), taken);
    Ok((Entry { key, expression, zone: zone.name(), command, stdin, user }, detail))
}

/// The user before a command.
fn user_of(text: &str) -> Option<(Option<String>, &str)> {
    split(text, 1).map(|(user, rest)| (Some(user), rest))
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
