//! `everbell import crontab`, and `everbell jobs import-crontab`, its older name.

use std::path::{Path, PathBuf};

use clap::Args;
use everbell_core::Zone;
use jiff::Timestamp;
use serde::Serialize;

use super::apply::{Done, is_for_programs};
use super::importing::{Importing, expect_target};
use super::machine_zone::machine_zone;
use crate::output::{Cell, Column, Output, Table, printable};
use crate::{CliError, Exit, OnlineArgs, Session, api};
use everbell_wire::crontab::{self, Line, SHELL_TARGET, Verdict};
use everbell_wire::job_body::declared;

pub(crate) const EXAMPLES: &str = "\
Examples:
  everbell import crontab crontab.txt --dry-run
  everbell import crontab crontab.txt --yes
  everbell import crontab /etc/crontab --tz Europe/Paris --dry-run";

pub(super) const OLD_EXAMPLES: &str = "\
Examples:
  everbell jobs import-crontab crontab.txt --dry-run
  everbell jobs import-crontab crontab.txt --yes
  everbell jobs import-crontab /etc/crontab --system --tz Europe/Paris --dry-run";

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct CrontabArgs {
    /// The crontabs; `-` is standard input, as in `crontab -l | everbell import crontab -`.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The target of the jobs, which runs the payload's `command`.
    #[arg(long, value_name = "LABEL", default_value = SHELL_TARGET)]
    target: String,
    /// Confirm that `--target` runs the payload's `command`, as `shell` does.
    #[arg(long)]
    reads_command: bool,
    /// Read the format of /etc/crontab, in which a user precedes the command; default: detected.
    #[arg(long)]
    system: bool,
    /// Read the format of `crontab -l`, without users.
    #[arg(long, conflicts_with = "system")]
    no_system: bool,
    /// The IANA time zone, until a `CRON_TZ` line sets another; default: that of this machine, as in cron.
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// Show the changes without applying them.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    online: OnlineArgs,
}

/// The result for a file.
#[derive(Serialize)]
struct Document {
    file: String,
    /// The label of its jobs.
    label: String,
    /// Whether it has a column with users.
    system: bool,
    lines: Vec<ShownLine>,
    /// The blocks of the configuration that mail failures as `MAILTO` did.
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<String>,
    #[serde(flatten)]
    done: Done,
}

#[derive(Serialize)]
struct ShownLine {
    #[serde(flatten)]
    line: Line,
    /// Where cron may have meant something else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differences: Vec<String>,
}

pub(crate) fn run(args: &CrontabArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let zone = match &args.tz {
        Some(name) => Zone::get(name)?,
        None => machine_zone(),
    };
    let mut read = Vec::new();
    for file in &args.files {
        let text = api::input(file)?;
        crontab::check_length(&text).map_err(CliError::invalid)?;
        read.push((file, text));
    }
    let mut session = Session::new(&args.online, now, output)?;
    expect_target(&args.target, args.reads_command, args.dry_run, &mut session)?;
    if args.tz.is_none() {
        session.advise(&format!("times are read in {}, the zone of this machine; --tz sets another", zone.name()))?;
    }
    let mut documents = Vec::new();
    for (file, text) in &read {
        documents.push(import(args, file, text, &zone, &mut session)?);
    }
    if is_for_programs(&session) {
        match &documents[..] {
            [document] => session.out.json(document)?,
            many => session.out.json(&serde_json::json!({ "files": many }))?,
        }
    }
    let refused = |document: &Document| document.lines.iter().any(|shown| shown.line.verdict == Verdict::Refused);
    let failed = documents.iter().map(|document| document.done.exit).find(|exit| *exit != Exit::Success);
    Ok(failed.unwrap_or(if documents.iter().any(refused) { Exit::Failed } else { Exit::Success }))
}

fn import(
    args: &CrontabArgs,
    file: &Path,
    text: &str,
    zone: &Zone,
    session: &mut Session<'_>,
) -> Result<Document, CliError> {
    let (name, now) = (file.display().to_string(), session.now);
    let detected = crontab::system_reason(Some(file), text).filter(|_| !args.system && !args.no_system);
    if let Some(reason) = detected {
        session.advise(&format!("{}: {reason}; --no-system reads it without", printable(&name)))?;
    }
    let system = args.system || detected.is_some();
    let label = crontab::file_label(&name);
    let differences = |line: &Line| line.entry.as_ref().map_or_else(Vec::new, |entry| entry.differences(now));
    let lines: Vec<ShownLine> = crontab::read(text, zone, system)
        .into_iter()
        .map(|line| ShownLine { differences: differences(&line), line })
        .collect();
    let mut wanted = Vec::new();
    for entry in lines.iter().filter_map(|shown| shown.line.entry.as_ref()) {
        wanted.push(declared(&entry.draft(&args.target, &label), now).map_err(CliError::invalid)?);
    }
    if !is_for_programs(session) {
        show(session, &lines)?;
    }
    if lines.iter().any(|shown| shown.line.entry.is_some()) {
        session.advise(
            "unlike cron, a slot is skipped while a run of its job is active, and a run is stopped after 24 hours",
        )?;
    }
    let configuration = crontab::mail_blocks(lines.iter().filter_map(|shown| shown.line.entry.as_ref()));
    if let Some(blocks) = &configuration {
        session.advise(&format!(
            "cron mailed the output of each run; to mail failures, add this to the configuration of the server:\n\n{blocks}"
        ))?;
    }
    let refused = lines.iter().filter(|shown| shown.line.verdict == Verdict::Refused).count();
    let importing = Importing {
        command: "crontab",
        file: &name,
        label: &label,
        left_out: (refused, "line"),
        dry_run: args.dry_run,
        yes: args.yes,
    };
    let done = importing.carry_out(session, &wanted)?;
    Ok(Document { file: name, label, system, lines, configuration, done })
}

fn show(session: &mut Session<'_>, lines: &[ShownLine]) -> Result<(), CliError> {
    let columns = [Column::new("LINE").right(), Column::new("VERDICT"), Column::new("JOB"), Column::new("DETAIL")];
    let mut table = Table::new(&columns, session.out.symbols);
    for ShownLine { line, differences } in lines {
        let key = line.entry.as_ref().map_or("", |entry| entry.key.as_str());
        let number = line.number.to_string();
        let mut row = |verdict: &str, detail: &str| table.row([&number, verdict, key, detail].map(Cell::text).into());
        row(line.verdict.word(), &line.detail);
        for difference in differences {
            row("differs", difference);
        }
    }
    Ok(session.out.list(&table)?)
}
