//! The command line of the binary: the commands that need the server's own code, and those of `everbell-cli`.

pub(crate) mod config;
pub(crate) mod db;
mod groups;

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand};
use everbell_cli::Program;

use crate::config::{ServeFlags, read_jobs, read_states};

/// A durable, distributed cron: exactly one outcome for every slot
#[derive(Debug, Parser)]
#[command(name = "everbell", version, before_help = ROOT_EXAMPLES, after_help = ROOT_TOPICS)]
#[command(arg_required_else_help = true, disable_help_subcommand = true, help_template = groups::template())]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one, which is parsed once")]
pub(crate) enum Command {
    /// Run the server: scheduler, API, targets
    ///
    /// Without a configuration file it keeps everything in `./everbell-data/` and runs a job `demo` every minute.
    #[command(before_help = SERVE_EXAMPLES)]
    Serve(SettingArgs),
    /// Check and show the configuration of the server
    #[command(before_help = config::EXAMPLES, after_long_help = config::variables(), arg_required_else_help = true)]
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Maintain the database, offline
    #[command(before_help = db::DB_EXAMPLES, arg_required_else_help = true)]
    Db {
        #[command(subcommand)]
        command: db::DbCommand,
    },
    #[command(flatten)]
    Client(everbell_cli::Command),
}

/// This binary, for the commands that describe it.
pub(crate) const PROGRAM: Program = Program {
    command: Cli::command,
    read_jobs: |file, text| Ok(read_jobs(file, text)?),
    read_states: |file, text| Ok(read_states(file, text)?),
};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check a configuration and summarize what the server would do
    ///
    /// Exits with 0 if it is valid and with 2 otherwise. Nothing is started, opened or changed.
    #[command(before_help = config::CHECK_EXAMPLES)]
    Check(ConfigArgs),
    /// Show every value and its source: default, file, variable or flag
    ///
    /// Secrets are not shown.
    #[command(before_help = config::SHOW_EXAMPLES)]
    Show(ConfigArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags that override the environment and the file. Their values are checked together with the rest.
#[derive(Debug, Args)]
pub(crate) struct SettingArgs {
    /// Read this file instead of `everbell.toml`.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Listen on this address and port, such as `127.0.0.1:7070`.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Use this database: `sqlite:PATH` or `postgres://user@host/database`.
    ///
    /// Other users of this machine can see a password given here; use `EVERBELL_DATABASE_URL_FILE` to hide it.
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,
    /// Run in this role: `all`, `scheduler` or `api`.
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<String>,
    /// Keep the SQLite file and the first admin token in this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<String>,
    /// Log at this level: `error`, `warn`, `info`, `debug`, `trace`, or a filter such as `info,everbell=debug`.
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,
    /// Log in this format: `text` for people, `json` for programs.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<String>,
}

impl SettingArgs {
    /// The flags as the configuration takes them.
    pub(crate) fn flags(&self) -> ServeFlags {
        ServeFlags {
            config: self.config.clone(),
            listen: self.listen.clone(),
            database: self.database.clone(),
            role: self.role.clone(),
            data_dir: self.data_dir.clone(),
            log_level: self.log_level.clone(),
            log_format: self.log_format.clone(),
        }
    }
}

const ROOT_EXAMPLES: &str = "\
Examples:
  everbell serve
  everbell config show
  everbell cron next \"0 9 * * mon-fri\" --tz Europe/Paris";

const ROOT_TOPICS: &str = "\
Topics:
  everbell help environment   environment variables that everbell reads
  everbell help exit-codes    what the exit codes mean
  everbell help formatting    tables, tabs, JSON, colors
  everbell help time          how times are shown and written";

const SERVE_EXAMPLES: &str = "\
Examples:
  everbell serve
  everbell serve --config everbell.example.toml --listen 127.0.0.1:8080
  EVERBELL_DATABASE_URL=postgres://everbell@db/everbell everbell serve --role api";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
