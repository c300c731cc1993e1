//! `everbell db copy`.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use everbell::copy::{CopiedTable, CopyOptions, CopyProgress, CopyReport, CopyStep, copy};
use everbell_core::store::AuditEntry;
use serde::Serialize;

use super::{counted, failed};
use crate::config::{Config, Environment, ServeFlags, without_password};
use everbell_cli::Output;
use everbell_cli::Progress;
use everbell_cli::{CliError, Exit};
use everbell_http::audit_entry;
use everbell_wire::form::parse_span;

/// Of the target of a dry run, which compares nothing.
const NOT_EMPTY: &str = "is not empty, so the copy would be refused unless its rows are those of the source";

/// The digits of a checksum that people see.
const SHOWN_DIGITS: usize = 12;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell db copy --to postgres://db.example.com/everbell --dry-run
  everbell db copy --from sqlite:everbell-data/everbell.db --to postgres://db.example.com/everbell
  everbell db copy --from postgres://db.example.com/everbell --to sqlite:moved.db --history 90d";

#[derive(Debug, Args)]
pub(crate) struct CopyArgs {
    /// Copy this database instead of that of the configuration: `sqlite:PATH` or `postgres://user@host/database`.
    ///
    /// Other users of this machine can see a password given here. Leave it out and set `PGPASSWORD`, or use `~/.pgpass`.
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// Copy into this database, which must be empty; an SQLite file is created.
    #[arg(long, value_name = "URL")]
    to: String,
    /// Copy only runs, gaps, audit entries and other history younger than this, such as `90d`; default: all of it.
    ///
    /// Active runs and the last run of each job are always copied; jobs that fire per org keep only runs within this time.
    /// Choose a time longer than each `within` of `dependsOn`: the target ignores older successes.
    #[arg(long, value_name = "DURATION")]
    history: Option<String>,
    /// Count the rows and copy nothing, also while a server runs.
    #[arg(long)]
    dry_run: bool,
    /// Do not mark the source as moved. Never start servers on both, or every job fires twice.
    #[arg(long)]
    keep_source: bool,
    /// Read this file instead of `everbell.toml`, for the source.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: &CopyArgs, environment: &Environment, output: &mut Output) -> Result<Exit, CliError> {
    let flags = ServeFlags { config: args.config.clone(), database: args.from.clone(), ..ServeFlags::default() };
    let from = Config::load(&flags, environment)?.database;
    everbell::check_address(&args.to).map_err(|error| CliError::invalid(format!("--to: {}", error.reason)))?;
    let history = args.history.as_deref().map(parse_span).transpose();
    let history = history.map_err(|error| CliError::invalid(format!("--history: {error}")))?;
    let options = CopyOptions {
        history,
        dry_run: args.dry_run,
        keep_source: args.keep_source,
        target_name: shown_address(&args.to),
    };
    let progress = Mutex::new(Progress::new());
    let is_finishing = AtomicBool::new(false);
    let show = |state: &CopyProgress| {
        is_finishing.fetch_or(state.step == CopyStep::Finishing, Ordering::Relaxed);
        if let Ok(mut progress) = progress.lock() {
            progress.show(&in_words(state));
        }
    };
    let mut copying = Box::pin(copy(from.reveal(), &args.to, &options, &show));
    let report = tokio::select! {
        report = &mut copying => report,
        _ = tokio::signal::ctrl_c() => {
            if !is_finishing.load(Ordering::Relaxed) {
                // A transaction that does not end is rolled back with its connection.
                return Ok(Exit::Interrupted);
            }
            // The source is marked by now: the last step takes a moment, and must not stop halfway.
            copying.as_mut().await
        }
    };
    drop(copying);
    let report = report.map_err(failed)?;
    drop(progress);
    if !args.dry_run && report.is_equal() && report.was_empty {
        note_in_target(args, &shown_address(from.reveal()), &report).await?;
    }
    if args.json {
        output.json(&Document::new(&shown_address(from.reveal()), args, &report))?;
    } else {
        show_report(args, &shown_address(from.reveal()), &report, output)?;
    }
    Ok(if report.is_equal() && (report.was_empty || !args.dry_run) { Exit::Success } else { Exit::Failed })
}

/// The audit trail of the target says where its rows come from.
async fn note_in_target(args: &CopyArgs, from: &str, report: &CopyReport) -> Result<(), CliError> {
    let store = everbell::connect(&args.to).await.map_err(failed)?;
    let now = store.now().await.map_err(failed)?;
    let rows = report.tables.iter().map(|table| table.rows).sum();
    let entry = AuditEntry {
        reason: Some(format!("copied {} from {from}", counted(rows, "row", "rows"))),
        ..audit_entry::new_entry("everbell db", "database.copy", "database".to_owned(), now)
    };
    store.append_audit(&entry).await.map_err(failed)
}

/// An address without its password, that of a file from the root on: a mark is read in other folders.
fn shown_address(url: &str) -> String {
    let shown = without_password(url);
    match shown.strip_prefix("sqlite:") {
        Some(path) => {
            let path = path.strip_prefix("//").unwrap_or(path);
            let path = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
            format!("sqlite:{}", path.display())
        }
        None => shown,
    }
}

fn in_words(state: &CopyProgress) -> String {
    let verb = match state.step {
        CopyStep::Counting => return format!("counting {}", state.table),
        CopyStep::Copying => "copying",
        CopyStep::Comparing => "comparing",
        CopyStep::Verifying => "verifying",
        CopyStep::Finishing => return "finishing".to_owned(),
    };
    let share = state.rows.min(state.total).saturating_mul(100).checked_div(state.total).unwrap_or(100);
    format!("{verb} {}: {} of {} rows ({share}%)", state.table, state.rows, state.total)
}

fn show_report(args: &CopyArgs, from: &str, report: &CopyReport, output: &mut Output) -> Result<(), CliError> {
    let has_old = report.tables.iter().any(|table| table.too_old > 0);
    let mut rows = vec![header(has_old, args.dry_run)];
    rows.extend(report.tables.iter().map(|table| cells(table, has_old)));
    output.table(&rows, &[2])?;
    let to = shown_address(&args.to);
    if args.dry_run {
        let state = if report.was_empty { "is empty" } else { NOT_EMPTY };
        output.line(&format!("nothing was copied; the target {to} {state}"))?;
        return Ok(());
    }
    if !report.is_equal() {
        output.line("the tables are not equal, so nothing was written; neither database was changed")?;
        return Ok(());
    }
    let rows = counted(report.tables.iter().map(|table| table.rows).sum(), "row", "rows");
    if report.was_empty {
        output.line(&format!("copied {rows}; every table of {to} is equal"))?;
    } else {
        output.line(&format!("{to} already has these {rows}; every table is equal"))?;
    }
    if report.source_marked {
        output.line(&format!(
            "{from} is marked as moved: no server starts on it (`everbell db reopen` allows it again)"
        ))?;
    } else {
        output.line(&format!("{from} is not marked: start a server on one of both only, or every job fires twice"))?;
    }
    output.line(&match usable_address(&to) {
        Some(to) => format!("start the server with --database '{to}'"),
        None => "start the server with the address of the target".to_owned(),
    })?;
    Ok(())
}

/// An address without the places of its secrets, which come from elsewhere; `None` if more than those are hidden.
fn usable_address(shown: &str) -> Option<String> {
    let (before, query) = shown.split_once('?').unwrap_or((shown, ""));
    let pairs: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty() && !pair.ends_with("=(hidden)")).collect();
    let before = before.replace(":(hidden)@", "@");
    let address = if pairs.is_empty() { before } else { format!("{before}?{}", pairs.join("&")) };
    (!address.contains("(hidden)")).then_some(address)
}

fn header(has_old: bool, dry_run: bool) -> Vec<String> {
    let mut names = vec!["table", "rows"];
    names.extend(has_old.then_some("too old"));
    names.extend((!dry_run).then_some(["source", "target", "result"]).into_iter().flatten());
    names.into_iter().map(str::to_owned).collect()
}

fn cells(table: &CopiedTable, has_old: bool) -> Vec<String> {
    let mut cells = vec![table.name.to_owned(), table.rows.to_string()];
    cells.extend(has_old.then(|| table.too_old.to_string()));
    if let Some([source, target]) = &table.sums {
        let short = |checksum: &str| checksum.chars().take(SHOWN_DIGITS).collect::<String>();
        let result = match (source.rows == target.rows, table.is_equal()) {
            (_, true) => "equal".to_owned(),
            (false, _) => format!("differs: {} in the target", counted(target.rows, "row", "rows")),
            (true, false) => "differs".to_owned(),
        };
        cells.extend([short(&source.checksum), short(&target.checksum), result]);
    }
    cells
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_excessive_bools, reason = "each is a member of its own")]
struct Document {
    from: String,
    to: String,
    dry_run: bool,
    /// Whether the target was empty before.
    target_was_empty: bool,
    equal: bool,
    source_marked: bool,
    rows: u64,
    tables: Vec<TableDocument>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TableDocument {
    table: &'static str,
    rows: u64,
    too_old_rows: u64,
    target_rows: Option<u64>,
    source_checksum: Option<String>,
    target_checksum: Option<String>,
    equal: Option<bool>,
}

impl Document {
    fn new(from: &str, args: &CopyArgs, report: &CopyReport) -> Document {
        Document {
            from: from.to_owned(),
            to: shown_address(&args.to),
            dry_run: args.dry_run,
            target_was_empty: report.was_empty,
            equal: report.is_equal() && !args.dry_run,
            source_marked: report.source_marked,
            rows: report.tables.iter().map(|table| table.rows).sum(),
            tables: report.tables.iter().map(TableDocument::new).collect(),
        }
    }
}

impl TableDocument {
    fn new(table: &CopiedTable) -> TableDocument {
        let sums = table.sums.as_ref();
        TableDocument {
            table: table.name,
            rows: table.rows,
            too_old_rows: table.too_old,
            target_rows: sums.map(|[_, target]| target.rows),
            source_checksum: sums.map(|[source, _]| source.checksum.clone()),
            target_checksum: sums.map(|[_, target]| target.checksum.clone()),
            equal: sums.map(|_| table.is_equal()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_to_start_with_names_no_hidden_parts() {
        for (url, usable) in [
            ("sqlite:/var/a.db", Some("sqlite:/var/a.db")),
            ("postgres://u:secret@h/d?schema=jobs", Some("postgres://u@h/d?schema=jobs")),
            ("postgres://h/d?password=secret&sslmode=require", Some("postgres://h/d?sslmode=require")),
            ("postgres://h/d?password=secret", Some("postgres://h/d")),
            ("postgres://u:sec/ret@h/d", None),
        ] {
            assert_eq!(usable_address(&without_password(url)).as_deref(), usable, "{url}");
        }
    }
}
