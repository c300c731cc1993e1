//! `everbell init`: a configuration to begin with.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::error::note;
use super::output::{Mark, Output};
use super::{CliError, Exit};
use everbell_wire::shell;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell init
  everbell init --file staging.toml
  everbell init --file -";

/// The file that `everbell serve` reads by default.
const DEFAULT_FILE: &str = "everbell.toml";

/// The content of the file.
pub const STARTER: &str = include_str!("init.toml");

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Write to this file; `-` is standard output. An existing file is never replaced.
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE)]
    file: PathBuf,
}

pub(crate) fn run(args: &InitArgs, output: &mut Output) -> Result<Exit, CliError> {
    let file = &args.file;
    if file.as_os_str() == "-" {
        output.raw(STARTER)?;
        return Ok(Exit::Success);
    }
    let written = OpenOptions::new().write(true).create_new(true).open(file);
    let written = written.and_then(|mut created| created.write_all(STARTER.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => CliError::Invalid {
            message: format!("`{}` exists, and is not replaced", file.display()),
            hint: Some("name another file with `--file`, or print it with `--file -`".to_owned()),
        },
        _ => CliError::Failed { message: format!("cannot write `{}`: {error}", file.display()), hint: None },
    })?;
    let mark = output.mark(Mark::Good);
    output.line(&format!("{mark} Wrote {}", file.display()))?;
    output.flush()?;
    let flag = if file == Path::new(DEFAULT_FILE) {
        String::new()
    } else {
        format!(" --config {}", shell(&file.display().to_string()))
    };
    note(format!("check it: everbell config check{flag}\nstart:    everbell serve{flag}"));
    Ok(Exit::Success)
}
