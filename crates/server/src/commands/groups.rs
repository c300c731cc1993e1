//! `everbell --help`: the commands in groups, because a list of thirty is too long to read.

use clap::Subcommand;

use super::Command;

/// Every command that is shown, in the order of the help.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Start", &["serve", "init", "config", "import"]),
    ("Jobs", &["jobs", "next", "cron", "simulate", "calendars", "freeze", "orgs"]),
    ("Runs", &["runs", "gaps", "outages", "problems", "top"]),
    (
        "Operate",
        &[
            "status",
            "doctor",
            "targets",
            "instances",
            "notify",
            "reload",
            "audit",
            "tokens",
            "sessions",
            "db",
            "healthcheck",
        ],
    ),
    ("Other", &["context", "api", "completions", "man", "version", "help"]),
];

/// Returns the template of the help of the whole program.
pub(super) fn template() -> String {
    let program = commands();
    let about = |name: &str| {
        let command = program.find_subcommand(name);
        command.and_then(clap::Command::get_about).map(ToString::to_string).unwrap_or_default()
    };
    let line = |name: &&str| {
        let about = about(name);
        // Its own help says that it lists without a subcommand, and the end of this one names the topics.
        let short = about.split("; lists").next().and_then(|about| about.split(": environment").next());
        format!("  {name:<12} {}\n", short.unwrap_or_default())
    };
    let group =
        |(title, names): &(&str, &[&str])| format!("{title}:\n{}\n", names.iter().map(line).collect::<String>());
    let groups: String = GROUPS.iter().map(group).collect();
    format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}"
    )
}

/// The commands on their own: the program asks for this template while it is put together.
fn commands() -> clap::Command {
    Command::augment_subcommands(clap::Command::new("everbell"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let program = commands();
        let shown = program.get_subcommands().filter(|command| !command.is_hide_set());
        let shown: BTreeSet<&str> = shown.map(clap::Command::get_name).collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), shown);
        assert_eq!(listed.len(), shown.len(), "a command is listed twice");
    }

    #[test]
    fn lines_fit_a_terminal() {
        for line in template().lines().filter(|line| line.starts_with("  ")) {
            assert!(line.len() <= 80, "{line}");
        }
    }
}
