//! `everbell completions`, and the candidates for shells that complete a command line.
//!
//! The script of a shell calls this binary with the command line so far and [`VARIABLE`] set, so commands and flags are
//! those of the installed binary. Names of jobs, orgs and targets come from the server, within 300 ms or not at all. Errors
//! are never printed: they would appear in the middle of a line.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use clap::{Arg, Args, Command, ValueEnum};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{Bash, CompleteEnv, Elvish, EnvCompleter, Fish, Powershell, Zsh};
use everbell_client::{JobQuery, OrgQuery};
use everbell_core::Zone;

use super::connection::Connection;
use super::online::{Color, OnlineArgs};
use super::output::{Output, printable};
use super::{CliError, Exit, Program};
use everbell_wire::shell;

/// Set by the scripts to the name of the shell.
const VARIABLE: &str = "EVERBELL_COMPLETE";
const REQUEST_TIMEOUT: Duration = Duration::from_millis(300);
const MAX_CANDIDATES: usize = 100;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell completions bash
  everbell completions zsh
  everbell completions fish";

pub(super) const INSTALLATION: &str = "\
Installation:
  bash        echo 'source <(everbell completions bash)' >> ~/.bashrc
  zsh         echo 'source <(everbell completions zsh)' >> ~/.zshrc      (after compinit)
  fish        everbell completions fish > ~/.config/fish/completions/everbell.fish
  elvish      eval (everbell completions elvish | slurp)
  powershell  everbell completions powershell | Out-String | Invoke-Expression

Names of jobs, orgs and targets are completed from the server in EVERBELL_SERVER with the token in EVERBELL_TOKEN,
EVERBELL_TOKEN_FILE or `everbell-data/admin-token`, if it responds within 300 ms.";

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell that reads the script.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
    Powershell,
}

pub(crate) fn run(args: &CompletionsArgs, output: &mut Output) -> Result<Exit, CliError> {
    let shell: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &Bash,
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
        Shell::Elvish => &Elvish,
        Shell::Powershell => &Powershell,
    };
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "everbell", "everbell", "everbell", &mut script)?;
    output.raw(String::from_utf8_lossy(&script).trim_start())?;
    Ok(Exit::Success)
}

/// Prints candidates if a shell asks for them, and returns whether it did.
pub fn complete(program: Program, args: &[OsString]) -> bool {
    if std::env::var_os(VARIABLE).is_none_or(|shell| shell.is_empty()) {
        return false;
    }
    let folder = std::env::current_dir().ok();
    // A shell that asks for candidates expects nothing else, even after an error.
    let _ = CompleteEnv::with_factory(|| command(program))
        .var(VARIABLE)
        .try_complete(args.iter().cloned(), folder.as_deref());
    true
}

/// The command line, with completers for values.
fn command(program: Program) -> Command {
    fn with_values(command: Command) -> Command {
        command.mut_args(with_value).mut_subcommands(with_values)
    }
    with_values((program.command)())
}

/// Chooses the completer by the name of the value in the help.
fn with_value(arg: Arg) -> Arg {
    let name = arg.get_value_names().and_then(|names| names.first()).map(|name| name.as_str().to_owned());
    match name.as_deref() {
        Some("JOB") => arg.add(ArgValueCompleter::new(jobs)),
        Some("ORG") => arg.add(ArgValueCompleter::new(orgs)),
        Some("LABEL" | "TARGET") => arg.add(ArgValueCompleter::new(targets)),
        Some("ZONE") => arg.add(ArgValueCompleter::new(zones)),
        _ => arg,
    }
}

fn jobs(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_str().unwrap_or_default();
    let Some(client) = client() else { return Vec::new() };
    let query = JobQuery { text: filter(typed), ..JobQuery::default() };
    // A shell has no use for an error.
    let Ok(jobs) = client.take(client.jobs().list(&query), MAX_CANDIDATES) else { return Vec::new() };
    jobs.items.iter().filter_map(|job| offer(typed, &job.job_key, Some(&job.schedule_text))).collect()
}

fn orgs(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_str().unwrap_or_default();
    let Some(client) = client() else { return Vec::new() };
    let query = OrgQuery { text: filter(typed), ..OrgQuery::default() };
    let Ok(orgs) = client.take(client.orgs().list(&query), MAX_CANDIDATES) else { return Vec::new() };
    orgs.items.iter().filter_map(|org| offer(typed, &org.id, Some(&org.timezone))).collect()
}

fn targets(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_str().unwrap_or_default();
    let Some(client) = client() else { return Vec::new() };
    let Ok(targets) = client.send(client.targets().list()) else { return Vec::new() };
    targets.document.items.iter().filter_map(|target| offer(typed, &target.target, None)).collect()
}

fn filter(typed: &str) -> Option<String> {
    Some(typed.to_owned()).filter(|typed| !typed.is_empty())
}

/// A candidate, if it begins with the typed text. Shells insert it without quotes, so names that are not plain words are
/// never offered: a shell could run them, or read them as flags.
fn offer(typed: &str, name: &str, about: Option<&str>) -> Option<CompletionCandidate> {
    let has_plain_start = name.starts_with(|c: char| c.is_ascii_alphanumeric() || "_./".contains(c));
    // PowerShell splits words at commas.
    let is_plain = has_plain_start && !name.contains(',') && shell(name) == name;
    let about = about.map(|about| printable(about).into());
    (is_plain && name.starts_with(typed)).then(|| CompletionCandidate::new(name).help(about))
}

fn zones(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_str().unwrap_or_default().to_lowercase();
    Zone::names().filter(|name| name.to_lowercase().starts_with(&typed)).map(CompletionCandidate::new).collect()
}

/// Connects to the server that the environment names.
fn client() -> Option<Connection> {
    let args = OnlineArgs {
        server: None,
        context: None,
        token_file: None,
        request_timeout: REQUEST_TIMEOUT,
        json: false,
        output: None,
        color: Color::Never,
        quiet: true,
    };
    Connection::new(&args).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_with_its_values_is_consistent() {
        use clap::Subcommand;
        let program = Program {
            command: || crate::Command::augment_subcommands(Command::new("everbell")).disable_help_subcommand(true),
            read_jobs: |_, _| Ok(Vec::new()),
            read_states: |_, _| Ok(Vec::new()),
        };
        command(program).debug_assert();
    }

    #[test]
    fn zones_are_found_in_any_case() {
        let found = zones(OsStr::new("europe/par"));
        assert_eq!(found.iter().map(CompletionCandidate::get_value).collect::<Vec<_>>(), ["Europe/Paris"]);
    }
}
