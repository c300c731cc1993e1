//! The common part of all imports: a target that runs commands, and jobs that begin paused under a label.

use everbell_core::Definition;

use super::apply::{ApplyRequest, Done, carry_out, is_for_programs};
use super::plan::Action;
use super::plan_check::known_targets;
use crate::output::{Mark, counted, printable};
use crate::{CliError, Exit, Session};
use everbell_wire as wire;
use everbell_wire::crontab::{IMPORTED_LABEL, PAUSE_REASON, SHELL_TARGET};

/// Refuses, once for all jobs, a target that would not run the commands. A dry run only says that no instance serves it,
/// so that a file can be read before the server allows commands.
pub(crate) fn expect_target(
    target: &str,
    reads_command: bool,
    dry_run: bool,
    session: &mut Session<'_>,
) -> Result<(), CliError> {
    let shown = printable(target);
    if target != SHELL_TARGET && !reads_command {
        return Err(CliError::invalid(format!(
            "target `{shown}` is not the built-in `shell`, so the commands would not run; leave out --target, or say \
             --reads-command if it runs `command` of its payload"
        )));
    }
    let known = known_targets(&session.client)?;
    if known.is_empty() || known.iter().any(|label| label == target) {
        return Ok(());
    }
    let hint = "; set `allow = true` in `[shell]` of the server's configuration, then run `everbell reload`";
    let hint = if target == SHELL_TARGET { hint } else { "" };
    let refusal = format!("no live instance serves the target `{shown}`{hint}");
    if dry_run { Ok(session.advise(&refusal)?) } else { Err(CliError::invalid(refusal)) }
}

/// The import of one file.
pub(crate) struct Importing<'a> {
    /// The subcommand of `everbell import`.
    pub(crate) command: &'a str,
    /// The file, as it was named.
    pub(crate) file: &'a str,
    /// The value of the label of its jobs.
    pub(crate) label: &'a str,
    /// How many lines or objects become no job, and what they are called.
    pub(crate) left_out: (usize, &'a str),
    pub(crate) dry_run: bool,
    pub(crate) yes: bool,
}

impl Importing<'_> {
    /// Creates the jobs, paused, and prints the command that starts them.
    pub(crate) fn carry_out(&self, session: &mut Session<'_>, wanted: &[Definition]) -> Result<Done, CliError> {
        let request = ApplyRequest {
            prune: false,
            dry_run: self.dry_run,
            yes: self.yes,
            reason: format!("everbell import {} {}", self.command, printable(self.file)),
            paused: Some((PAUSE_REASON.to_owned(), self.label.to_owned())),
            states: Vec::new(),
        };
        let done = carry_out(session, wanted, &request)?;
        if !is_for_programs(session) && done.exit == Exit::Success {
            let mark = match (self.left_out.0, self.dry_run) {
                (0, true) => Mark::Arrow,
                (0, false) => Mark::Good,
                _ => Mark::Warning,
            };
            session.done(mark, &self.sum(&done))?;
            if done.count(Action::Create) > 0 {
                let label = wire::shell(&format!("{IMPORTED_LABEL}={}", self.label));
                session.detail(&format!("start them: everbell jobs resume --label {label} --imported"))?;
            }
        }
        Ok(done)
    }

    /// Returns for example "21 jobs created, paused; 3 lines left out".
    fn sum(&self, done: &Done) -> String {
        let (created, changed) = if self.dry_run { ("to create", "to change") } else { ("created", "changed") };
        let counts = [
            (Action::Create, created, ", paused"),
            (Action::NewVersion, changed, ""),
            (Action::Unchanged, "unchanged", ""),
        ];
        let counts = counts.map(|(action, verb, state)| (done.count(action), verb, state));
        let mut parts: Vec<String> = counts
            .into_iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, verb, state)| format!("{} {verb}{state}", counted(count, "job")))
            .collect();
        if parts.is_empty() {
            parts.push("no job".to_owned());
        }
        let (left_out, unit) = self.left_out;
        if left_out > 0 {
            parts.push(format!("{} left out", counted(left_out, unit)));
        }
        parts.join("; ")
    }
}
