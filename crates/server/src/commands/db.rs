//! `everbell db`: the database of the configuration, without a server.

mod backup;
mod copy;
mod migrate;
mod prune;
mod reopen;
mod status;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use everbell::StoreError;

use crate::config::{Config, Environment, ServeFlags};
use everbell_cli::{CliError, Exit, Output};
use everbell_wire::secret::Secret;

#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Show the database, its schema version and its size
    ///
    /// Exits with 1 if the schema is not the one that this binary needs. Nothing is changed.
    #[command(before_help = STATUS_EXAMPLES)]
    Status(DbArgs),
    /// Bring the schema up to date
    ///
    /// The server does the same when it starts. An SQLite file that does not exist yet is created.
    #[command(before_help = MIGRATE_EXAMPLES)]
    Migrate(DbArgs),
    /// Delete old runs, gaps and audit entries
    ///
    /// Deletes in small batches, so a server can keep running. Active runs and jobs always stay.
    #[command(before_help = PRUNE_EXAMPLES)]
    Prune(PruneArgs),
    /// Copy an SQLite database into a file, even while a server uses it
    ///
    /// The copy is a snapshot, is verified, and can be read by its owner alone. No file is overwritten. For PostgreSQL,
    /// use `pg_dump`.
    #[command(before_help = BACKUP_EXAMPLES)]
    Backup(BackupArgs),
    /// Move a database between SQLite and PostgreSQL, in either direction
    ///
    /// Copies jobs with their versions and state, timers, runs with their outputs, gaps, the audit trail, orgs, overrides,
    /// tokens, calendars, freezes and problems into an empty database, and compares both by checksums. Stop every server
    /// first: the copy is refused while one runs on either database, and none can start until it ends.
    ///
    /// The target is written in one transaction. An interrupted copy leaves it empty; start it again. At the end the source
    /// is marked as moved, and servers refuse to start on it: the target continues where the source stopped. `db reopen`
    /// removes the mark. Exits with 1 if a table differs; then nothing was written.
    #[command(before_help = copy::EXAMPLES)]
    Copy(copy::CopyArgs),
    /// Reopen a database that was marked as moved
    ///
    /// Do this only if the copy is not used: two servers on two copies fire every job twice.
    #[command(before_help = reopen::EXAMPLES)]
    Reopen(DbArgs),
}

/// Flags that select the database.
#[derive(Debug, Args)]
pub(crate) struct DbArgs {
    /// Read this file instead of `everbell.toml`.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Use this database: `sqlite:PATH` or `postgres://user@host/database`.
    ///
    /// Other users of this machine can see a password given here; use `EVERBELL_DATABASE_URL_FILE` to hide it.
    #[arg(long, value_name = "URL")]
    pub(crate) database: Option<String>,
    /// Look for the SQLite file in this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    #[command(flatten)]
    pub(crate) db: DbArgs,
    /// Delete entries older than this, such as `180d` or `36h`; at least 1 hour.
    #[arg(long, value_name = "DURATION")]
    pub(crate) older_than: String,
    /// Only show what would be deleted.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    pub(crate) db: DbArgs,
    /// The file to create; it must not exist.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

pub(super) const DB_EXAMPLES: &str = "\
Examples:
  everbell db status
  everbell db prune --older-than 180d --dry-run
  everbell db backup everbell-backup.db";

const STATUS_EXAMPLES: &str = "\
Examples:
  everbell db status
  everbell db status --database sqlite:everbell-data/everbell.db
  everbell db status --json";

const MIGRATE_EXAMPLES: &str = "\
Examples:
  everbell db migrate
  everbell db migrate --data-dir everbell-data
  everbell db migrate --json";

const PRUNE_EXAMPLES: &str = "\
Examples:
  everbell db prune --older-than 180d --dry-run
  everbell db prune --older-than 180d --yes
  everbell db prune --older-than 36h --yes --json";

const BACKUP_EXAMPLES: &str = "\
Examples:
  everbell db backup before-upgrade.db
  everbell db backup \"everbell-$(date +%F).db\"
  everbell db backup copy.db --data-dir everbell-data --json";

pub(crate) fn run(command: &DbCommand, environment: &Environment, output: &mut Output) -> Result<Exit, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        match command {
            DbCommand::Status(args) => status::run(args, &url(args, environment)?, output).await,
            DbCommand::Migrate(args) => migrate::run(args, &url(args, environment)?, output).await,
            DbCommand::Prune(args) => prune::run(args, &url(&args.db, environment)?, output).await,
            DbCommand::Backup(args) => backup::run(args, &url(&args.db, environment)?, output).await,
            DbCommand::Copy(args) => copy::run(args, environment, output).await,
            DbCommand::Reopen(args) => reopen::run(args, &url(args, environment)?, output).await,
        }
    });
    runtime.shutdown_background();
    ended
}

/// The address of the database, which may hold a password.
fn url(args: &DbArgs, environment: &Environment) -> Result<Secret, CliError> {
    let flags = ServeFlags {
        config: args.config.clone(),
        database: args.database.clone(),
        data_dir: args.data_dir.clone(),
        ..ServeFlags::default()
    };
    Ok(Config::load(&flags, environment)?.database)
}

/// Why nothing came of it, and what to do.
fn failed(error: StoreError) -> CliError {
    let hint = match &error {
        StoreError::NotFound { .. } => {
            Some("create it with `everbell db migrate`, or name another one with `--database` or `--data-dir`")
        }
        StoreError::Unavailable { .. } => Some("`everbell config show` shows which database is used"),
        _ => None,
    };
    let message = match error {
        // The field is a name of the API; here the problem is reported in a sentence.
        StoreError::Invalid(invalid) => match invalid.field {
            "database" => format!("the database cannot be used: {}", invalid.reason),
            _ => invalid.reason,
        },
        other => other.to_string(),
    };
    CliError::Failed { message, hint: hint.map(str::to_owned) }
}

/// `1 run`, `2 runs`.
fn counted(count: u64, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

/// A size as people say it.
fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if count < 1_000 {
        return format!("{count} B");
    }
    // In tenths of the unit.
    let (mut tenths, mut unit) = ((count + 50) / 100, 0);
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths = (tenths + 500) / 1_000;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        let said = [0, 999, 1_000, 1_449, 999_949, 999_950, 4_100_000_000, 5_000_000_000_000_000].map(bytes);
        assert_eq!(said, ["0 B", "999 B", "1.0 kB", "1.4 kB", "999.9 kB", "1.0 MB", "4.1 GB", "5000.0 TB"]);
    }
}
