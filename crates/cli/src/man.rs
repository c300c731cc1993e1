//! `everbell man`: a manual page for every command.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;

use super::output::{Output, counted};
use super::{CliError, Exit, Program};

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell man man1
  everbell man ./share/man/man1
  everbell man man1 && man ./man1/everbell-cron-next.1 | head";

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write the pages to this folder, which is created if it is missing.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

pub(crate) fn run(args: &ManArgs, program: Program, output: &mut Output) -> Result<Exit, CliError> {
    let dir = &args.dir;
    let mut command = (program.command)();
    command.build();
    let written = fs::create_dir_all(dir).and_then(|()| write(&command, dir));
    let pages = written.map_err(|error| CliError::Failed {
        message: format!("cannot write manual pages to `{}`: {error}", dir.display()),
        hint: None,
    })?;
    output.line(&format!("wrote {} to {}", counted(pages, "page"), dir.display()))?;
    Ok(Exit::Success)
}

/// Writes the pages of a command and its subcommands, and returns their number.
fn write(command: &Command, dir: &Path) -> io::Result<usize> {
    let mut pages = 1;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        pages += write(below, dir)?;
    }
    let man = Man::new(command.clone()).source(concat!("everbell ", env!("CARGO_PKG_VERSION"))).manual("everbell");
    let mut page = Vec::new();
    man.render(&mut page)?;
    page.extend(examples(command).bytes());
    fs::write(dir.join(man.get_filename()), page)?;
    Ok(pages)
}

/// The section of examples: clap shows them before the help, which manual pages leave out.
fn examples(command: &Command) -> String {
    let help = command.get_before_help().map(ToString::to_string).unwrap_or_default();
    let lines: Vec<String> = help.lines().filter_map(|line| line.strip_prefix("  ")).map(literal).collect();
    if lines.is_empty() { String::new() } else { format!(".SH EXAMPLES\n.nf\n{}\n.fi\n", lines.join("\n")) }
}

/// Escapes a line for roff.
fn literal(line: &str) -> String {
    let escaped = line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    if escaped.starts_with('.') { format!("\\&{escaped}") } else { escaped }
}

#[test]
fn nothing_in_an_example_is_a_command_of_roff() {
    assert_eq!(literal(".a \\b 'c' --d"), "\\&.a \\eb \\(aqc\\(aq \\-\\-d");
}
