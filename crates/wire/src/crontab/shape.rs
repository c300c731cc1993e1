//! Whether a crontab is a system crontab, in which a user precedes each command.

use std::path::Path;

use everbell_core::cron::Expression;

use super::variables::variable;
use super::{split, time_words};

/// Users that nearly every system crontab names, and that are no programs.
const KNOWN_USERS: [&str; 6] = ["root", "www-data", "nobody", "nginx", "apache", "postgres"];

/// Returns why a crontab has a column with users, or `None` if it seems to have none. `path` is its file, if it has one.
pub fn system_reason(path: Option<&Path>, text: &str) -> Option<&'static str> {
    if let Some(path) = path {
        if path == Path::new("/etc/crontab") {
            return Some("/etc/crontab has a column with users");
        }
        if path.parent() == Some(Path::new("/etc/cron.d")) {
            return Some("files in /etc/cron.d have a column with users");
        }
    }
    if text.lines().filter_map(|line| line.trim().strip_prefix('#')).any(has_user_heading) {
        return Some("a comment names a column with users");
    }
    let lines = text.lines().map(str::trim);
    let is_entry = |line: &&str| !line.is_empty() && !line.starts_with('#') && variable(line).is_none();
    let behind: Vec<&str> = lines.filter(is_entry).filter_map(behind_time).collect();
    let has_known =
        behind.iter().any(|rest| rest.split_whitespace().next().is_some_and(|word| KNOWN_USERS.contains(&word)));
    (has_known && behind.iter().all(|rest| begins_with_user(rest))).then_some("a user precedes every command")
}

/// Whether a text is a time with something behind it.
pub(super) fn is_schedule(text: &str) -> bool {
    behind_time(text).is_some()
}

/// `m h dom mon dow user command`
fn has_user_heading(comment: &str) -> bool {
    let words: Vec<&str> = comment.split_whitespace().collect();
    words.windows(2).any(|pair| ["user", "user-name", "username"].contains(&pair[0]) && pair[1].starts_with("command"))
}

fn behind_time(text: &str) -> Option<&str> {
    let (time, rest) = split(text, time_words(text))?;
    (time == "@reboot" || Expression::parse(&time).is_ok()).then_some(rest)
}

/// A name, and a command that is more than its options.
fn begins_with_user(rest: &str) -> bool {
    let mut words = rest.split_whitespace();
    let is_name = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
            && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c))
    };
    words.next().is_some_and(is_name) && words.next().is_some_and(|word| !word.starts_with('-'))
}
