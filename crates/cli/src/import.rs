//! `everbell import`: jobs from other schedulers.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use everbell_core::Zone;
use everbell_wire::crontab::{SHELL_TARGET, Verdict, file_label};
use everbell_wire::import::{Advice, Item, read_cronjobs, read_timer};
use everbell_wire::job_body::declared;
use jiff::Timestamp;
use serde::Serialize;

use crate::jobs::{Done, Importing, crontab, expect_target, is_for_programs, machine_zone};
use crate::output::{Cell, Column, Output, Table};
use crate::{CliError, Exit, OnlineArgs, Session, api};

pub(crate) const EXAMPLES: &str = "\
Examples:
  everbell import crontab crontab.txt --dry-run
  everbell import crontab /etc/crontab /etc/cron.d/* --dry-run
  crontab -l | everbell import crontab - --yes";

const CRONJOB_EXAMPLES: &str = "\
Examples:
  everbell import cronjob cronjobs.yaml --dry-run
  everbell import cronjob cronjobs.yaml --tz Europe/Paris --yes
  kubectl get cronjobs -o yaml | everbell import cronjob - --dry-run";

const TIMERS_EXAMPLES: &str = "\
Examples:
  everbell import timers backup.timer --dry-run
  everbell import timers /etc/systemd/system/*.timer --dry-run
  everbell import timers backup.timer --tz Europe/Paris --yes";

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Import jobs from crontabs
    ///
    /// Shows what happens to each line, and where its meaning differs. The jobs run their commands with the target `shell`.
    /// They are paused, and have the label `imported` with the name of the file: `everbell jobs resume --label … --imported` starts
    /// them. Importing the same file twice changes nothing. Exits with 1 if a line cannot be imported.
    #[command(before_help = crontab::EXAMPLES)]
    Crontab(crontab::CrontabArgs),
    /// Import Kubernetes cron jobs from YAML
    ///
    /// The target `shell` runs the command of the container on the server's machine, without the image. Jobs are paused and
    /// labeled like imported crontab jobs.
    #[command(before_help = CRONJOB_EXAMPLES)]
    Cronjob(CronJobArgs),
    /// Import systemd timers
    ///
    /// The service of each timer is read from the same folder. A calendar expression that cron cannot express is refused.
    /// Jobs are paused and labeled like imported crontab jobs.
    #[command(before_help = TIMERS_EXAMPLES)]
    Timers(ImportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CronJobArgs {
    /// Import suspended objects too.
    #[arg(long)]
    suspended: bool,
    #[command(flatten)]
    import: ImportArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The files; `-` is standard input.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The target of the jobs, which runs the payload's `command`.
    #[arg(long, value_name = "LABEL", default_value = SHELL_TARGET)]
    target: String,
    /// Confirm that `--target` runs the payload's `command`, as `shell` does.
    #[arg(long)]
    reads_command: bool,
    /// The IANA time zone of schedules that name none; default: that of this machine for timers, UTC for cron jobs.
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

/// Advice about results, in flags.
const ADVICE: Advice = Advice { zone: "--tz sets another", suspended: "--suspended imports it too" };

/// The result for a file.
#[derive(Serialize)]
struct Document {
    file: String,
    label: String,
    items: Vec<ShownItem>,
    #[serde(flatten)]
    done: Done,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownItem {
    source: String,
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_key: Option<String>,
    detail: String,
    differences: Vec<String>,
}

pub(crate) fn run(command: &ImportCommand, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    match command {
        ImportCommand::Crontab(args) => crontab::run(args, now, output),
        ImportCommand::Cronjob(args) => {
            let zone = args.import.tz.as_deref().map_or_else(|| Ok(Zone::utc()), Zone::get)?;
            import(&args.import, "cronjob", now, output, |_, text| read_cronjobs(text, &zone, args.suspended, ADVICE))
        }
        ImportCommand::Timers(args) => {
            let zone = args.tz.as_deref().map_or_else(|| Ok(machine_zone()), Zone::get)?;
            import(args, "timers", now, output, |path, text| Ok(timers(path, text, &zone)))
        }
    }
}

/// Reads a timer, and the service beside it.
fn timers(path: &Path, text: &str, zone: &Zone) -> Vec<Item> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    if path.extension().is_none_or(|extension| extension != "timer") {
        let why = "is not a timer: name files that end with `.timer`; their services are read from the same folder";
        return vec![Item { source: stem.to_owned(), verdict: Verdict::Refused, result: Err(why.to_owned()) }];
    }
    let service = |name: &str| {
        let beside = path.with_file_name(name);
        fs::read_to_string(&beside).map_err(|error| format!("cannot read its service `{}`: {error}", beside.display()))
    };
    read_timer(stem, text, service, zone)
}

/// Reads all files before anything is changed, then imports one after the other.
fn import(
    args: &ImportArgs,
    command: &str,
    now: Timestamp,
    output: &mut Output,
    read: impl Fn(&Path, &str) -> Result<Vec<Item>, String>,
) -> Result<Exit, CliError> {
    let mut files = Vec::new();
    for file in &args.files {
        let items = read(file, &api::input(file)?);
        files.push((file, items.map_err(|why| CliError::invalid(format!("`{}` {why}", file.display())))?));
    }
    let mut session = Session::new(&args.online, now, output)?;
    expect_target(&args.target, args.reads_command, args.dry_run, &mut session)?;
    let mut documents = Vec::new();
    for (file, items) in files {
        documents.push(import_file(args, command, file, items, &mut session)?);
    }
    if is_for_programs(&session) {
        match &documents[..] {
            [document] => session.out.json(document)?,
            many => session.out.json(&serde_json::json!({ "files": many }))?,
        }
    }
    let refused = |document: &Document| document.items.iter().any(|item| item.verdict == Verdict::Refused);
    let failed = documents.iter().map(|document| document.done.exit).find(|exit| *exit != Exit::Success);
    Ok(failed.unwrap_or(if documents.iter().any(refused) { Exit::Failed } else { Exit::Success }))
}

fn import_file(
    args: &ImportArgs,
    command: &str,
    file: &Path,
    items: Vec<Item>,
    session: &mut Session<'_>,
) -> Result<Document, CliError> {
    let name = file.display().to_string();
    let label = if name == "-" { command.to_owned() } else { file_label(&name) };
    let (mut wanted, mut shown) = (Vec::new(), Vec::new());
    for Item { source, mut verdict, result } in items {
        let checked = result.and_then(|imported| {
            let definition = declared(&imported.draft(&args.target, &label), session.now)?;
            Ok((definition, imported.detail, imported.differences))
        });
        let (job_key, detail, differences) = match checked {
            Ok((definition, detail, differences)) => {
                let key = definition.key.to_string();
                wanted.push(definition);
                (Some(key), detail, differences)
            }
            Err(why) => {
                verdict = if verdict == Verdict::Job { Verdict::Refused } else { verdict };
                (None, why, Vec::new())
            }
        };
        shown.push(ShownItem { source, verdict, job_key, detail, differences });
    }
    if !is_for_programs(session) {
        show(session, &shown)?;
    }
    let unit = if command == "timers" { "timer" } else { "object" };
    let left_out = (shown.iter().filter(|item| item.job_key.is_none()).count(), unit);
    let importing = Importing { command, file: &name, label: &label, left_out, dry_run: args.dry_run, yes: args.yes };
    let done = importing.carry_out(session, &wanted)?;
    Ok(Document { file: name, label, items: shown, done })
}

fn show(session: &mut Session<'_>, items: &[ShownItem]) -> Result<(), CliError> {
    let columns = [Column::new("SOURCE"), Column::new("VERDICT"), Column::new("JOB"), Column::new("DETAIL")];
    let mut table = Table::new(&columns, session.out.symbols);
    for item in items {
        let key = item.job_key.as_deref().unwrap_or_default();
        let mut row = |verdict: &str, detail: &str| {
            table.row([item.source.as_str(), verdict, key, detail].map(Cell::text).into());
        };
        row(item.verdict.word(), &item.detail);
        item.differences.iter().for_each(|difference| row("differs", difference));
    }
    Ok(session.out.list(&table)?)
}
