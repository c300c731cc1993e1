//! `everbell jobs import-crontab`.

use std::path::PathBuf;

use clap::Args;
use everbell_core::{Draft, Timing, Zone};
use jiff::Timestamp;
use serde::Serialize;

use super::apply::{ApplyRequest, Done, carry_out, is_for_programs};
use crate::output::{Cell, Column, Output, Table, printable};
use crate::{CliError, Exit, OnlineArgs, Session, api};
use everbell_wire::crontab::{self, Line, Verdict};
use everbell_wire::job_body::declared;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell jobs import-crontab crontab.txt --target shell --dry-run
  everbell jobs import-crontab crontab.txt --target shell --yes
  everbell jobs import-crontab /etc/crontab --system --tz Europe/Paris --target shell --dry-run";

#[derive(Debug, Args)]
pub(crate) struct CrontabArgs {
    /// The crontab; `-` is standard input, as in `crontab -l | everbell jobs import-crontab -`.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The target of the jobs, which gets the command as its payload.
    #[arg(long, value_name = "LABEL", default_value = "crontab")]
    target: String,
    /// Read the format of /etc/crontab, in which a user precedes the command.
    #[arg(long)]
    system: bool,
    /// The IANA time zone, until a `CRON_TZ` line sets another.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    tz: String,
    /// Show the changes without applying them.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    online: OnlineArgs,
}

#[derive(Serialize)]
struct Document<'a> {
    lines: &'a [Line],
    #[serde(flatten)]
    done: &'a Done,
}

pub(super) fn run(args: &CrontabArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let text = api::input(&args.file)?;
    crontab::check_length(&text).map_err(CliError::invalid)?;
    let lines = crontab::read(&text, &Zone::get(&args.tz)?, args.system);
    let mut session = Session::new(&args.online, now, output)?;
    let mut wanted = Vec::new();
    for entry in lines.iter().filter_map(|line| line.entry.as_ref()) {
        let draft = Draft {
            timezone: Some(entry.zone.to_owned()),
            target: Some(args.target.clone()),
            payload: Some(Ok(entry.payload().to_string())),
            ..Draft::new(&entry.key, Timing::Cron(entry.expression.clone()))
        };
        wanted.push(declared(&draft, now).map_err(CliError::invalid)?);
    }
    if !is_for_programs(&session) {
        let columns = [Column::new("LINE").right(), Column::new("VERDICT"), Column::new("JOB"), Column::new("DETAIL")];
        let mut table = Table::new(&columns, session.out.symbols);
        for line in &lines {
            let key = line.entry.as_ref().map_or("", |entry| entry.key.as_str());
            let cells = [line.number.to_string().as_str(), line.verdict.word(), key, &line.detail].map(Cell::text);
            table.row(cells.into());
        }
        session.out.list(&table)?;
    }
    let CrontabArgs { dry_run, yes, .. } = *args;
    let reason = format!("everbell jobs import-crontab {}", printable(&args.file.display().to_string()));
    let done = carry_out(&mut session, &wanted, &ApplyRequest { prune: false, dry_run, yes, reason })?;
    if is_for_programs(&session) {
        session.out.json(&Document { lines: &lines, done: &done })?;
    }
    let is_whole = lines.iter().all(|line| line.verdict != Verdict::Refused);
    Ok(if done.exit == Exit::Success && !is_whole { Exit::Failed } else { done.exit })
}
