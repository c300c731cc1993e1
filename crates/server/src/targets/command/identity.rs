//! [`Identity`]: the user that a program runs as.
//!
//! Without one it runs as the server does, and can read everything that the server can.

use std::fs;

use tokio::process::Command;

use crate::targets::{CommandSettings, Problem};

/// A user and a group that a program runs as, and where its home is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Identity {
    uid: u32,
    gid: u32,
    home: Option<String>,
}

/// The entry of a user in `/etc/passwd`, as far as programs want to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::targets) struct Account {
    /// The name to log in with.
    pub(in crate::targets) name: String,
    /// The home folder.
    pub(in crate::targets) home: String,
}

impl Account {
    /// Looks up a user by name or number, or else the user of the server. `None` if `/etc/passwd` has no such entry.
    pub(in crate::targets) fn find(user: Option<&str>) -> Result<Option<Account>, String> {
        let own = rustix::process::geteuid().as_raw().to_string();
        Ok(entry(user.unwrap_or(&own), &read("/etc/passwd")?))
    }
}

fn entry(user: &str, passwd: &str) -> Option<Account> {
    let number: Option<u32> = user.parse().ok();
    let found = entries(passwd).find(|entry| is_user(entry, user, number))?;
    Some(Account { name: found[0].to_owned(), home: found[5].to_owned() })
}

fn is_user(entry: &[&str], user: &str, number: Option<u32>) -> bool {
    entry.len() >= 6 && (entry[0] == user || number.is_some_and(|number| entry[2].parse() == Ok(number)))
}

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))
}

impl Identity {
    /// Looks up the user and the group of the settings, if they name a user. Names come from `/etc/passwd` and
    /// `/etc/group`; numbers need no entry there.
    pub(super) fn resolve(settings: &CommandSettings) -> Result<Option<Identity>, String> {
        let Some(user) = &settings.user else { return Ok(None) };
        let groups = if settings.group.is_some() { read("/etc/group")? } else { String::new() };
        find(user, settings.group.as_deref(), &read("/etc/passwd")?, &groups).map(Some)
    }

    /// Makes the program run so, without any of the groups of the server.
    pub(super) fn apply(&self, settings: &CommandSettings, command: &mut Command) {
        // With a user, the supplementary groups of a server that runs as root are dropped too.
        command.uid(self.uid).gid(self.gid);
        if let Some(home) = self.home.as_ref().filter(|_| !settings.env.contains_key("HOME")) {
            command.env("HOME", home);
        }
    }
}

/// Returns the problems of the names themselves.
pub(super) fn problems(settings: &CommandSettings) -> Vec<Problem> {
    let mut problems: Vec<Problem> = Vec::new();
    for (field, name) in [("user", &settings.user), ("group", &settings.group)] {
        if name.as_ref().is_some_and(|name| name.is_empty() || name.contains([':', '\n', '\0'])) {
            problems.push((field, "must be a name or a number".to_owned()));
        }
    }
    if settings.group.is_some() && settings.user.is_none() {
        problems.push(("group", "needs a `user` as well".to_owned()));
    }
    problems
}

fn find(user: &str, group: Option<&str>, passwd: &str, groups: &str) -> Result<Identity, String> {
    let number: Option<u32> = user.parse().ok();
    let entry = entries(passwd).find(|entry| is_user(entry, user, number));
    let uid = entry.as_ref().and_then(|entry| entry[2].parse().ok()).or(number);
    let uid = uid.ok_or_else(|| format!("there is no user `{}`", user.escape_debug()))?;
    let gid = if let Some(group) = group {
        let named = entries(groups).find(|entry| entry.len() >= 3 && entry[0] == group);
        let gid = named.and_then(|entry| entry[2].parse().ok()).or_else(|| group.parse().ok());
        gid.ok_or_else(|| format!("there is no group `{}`", group.escape_debug()))?
    } else {
        let own = entry.as_ref().and_then(|entry| entry[3].parse().ok());
        own.ok_or_else(|| format!("the user {uid} has no group in /etc/passwd: name one as `group`"))?
    };
    Ok(Identity { uid, gid, home: entry.map(|entry| entry[5].to_owned()) })
}

fn entries(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().map(|line| line.split(':').collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_groups_are_names_or_numbers() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbackup:x:34:35:backup:/var/backups:/bin/sh\n";
        let groups = "root:x:0:\nstaff:x:50:ana\n";
        let found = |user, group| find(user, group, passwd, groups);
        let identity = |uid, gid, home: Option<&str>| Ok(Identity { uid, gid, home: home.map(str::to_owned) });
        assert_eq!(found("backup", None), identity(34, 35, Some("/var/backups")));
        assert_eq!(found("34", Some("staff")), identity(34, 50, Some("/var/backups")));
        assert_eq!(found("1234", Some("99")), identity(1234, 99, None));
        let account = Account { name: "backup".to_owned(), home: "/var/backups".to_owned() };
        assert_eq!(entry("34", passwd), Some(account.clone()));
        assert_eq!((entry("backup", passwd), entry("ana", passwd)), (Some(account), None));
        assert_eq!(found("nobody", None), Err("there is no user `nobody`".to_owned()));
        assert_eq!(found("backup", Some("wheel")), Err("there is no group `wheel`".to_owned()));
        assert!(found("1234", None).unwrap_err().contains("name one as `group`"));
    }
}
