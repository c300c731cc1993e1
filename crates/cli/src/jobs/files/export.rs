//! `everbell jobs export`.

use std::path::PathBuf;

use clap::Args;
use everbell_client::{JobQuery, WithJson};
use everbell_wire as wire;
use jiff::Timestamp;
use serde_json::json;

use super::state::PausedJob;
use crate::error::{RefusalContext, warn};
use crate::online::Format;
use crate::output::{Mark, Output, counted, printable};
use crate::{CliError, Exit, OnlineArgs, Session};
use everbell_wire::job_body::{body, read_definition};
use everbell_wire::job_toml::block;

/// The most jobs of one file.
pub(super) const MAX_JOBS: usize = 10_000;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell jobs export daily-briefing
  everbell jobs export --all --with-state -f jobs.toml
  everbell jobs export daily-briefing --json";

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The jobs: their keys or ids.
    #[arg(value_name = "JOB", required_unless_present_any = ["all", "label"])]
    jobs: Vec<String>,
    /// Write every job that is not retired.
    #[arg(long, conflicts_with = "jobs")]
    all: bool,
    /// Write every job that has this label and is not retired.
    #[arg(long, value_name = "NAME[=VALUE]", conflicts_with = "jobs")]
    label: Option<String>,
    /// Also write which jobs are paused, why and until when, as `[[job_state]]` blocks for `jobs apply`.
    #[arg(long)]
    with_state: bool,
    /// Write to this file instead of standard output; an existing file is replaced.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &ExportArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let mut jobs: Vec<WithJson<wire::Job>> = Vec::new();
    if args.all || args.label.is_some() {
        let query = JobQuery { label: args.label.clone(), ..JobQuery::default() };
        let list = session
            .client
            .take(session.client.jobs().list(&query).read_as(), MAX_JOBS)
            .with_action(|| "list the jobs".to_owned())?;
        if list.next_cursor.is_some() {
            warn(format!("only the first {MAX_JOBS} jobs are written"));
        }
        jobs = list.items;
    }
    for name in &args.jobs {
        let answer = session
            .client
            .send(session.client.jobs().get(name).read_as())
            .with_action(|| format!("read job `{name}`"))?;
        jobs.push(answer.document);
    }
    let (mut blocks, mut bodies, mut states, mut exit) = (Vec::new(), Vec::new(), Vec::new(), Exit::Success);
    for WithJson { document: job, json } in &jobs {
        match read_definition(json, now).and_then(|definition| Ok((block(&definition, now)?, body(&definition)))) {
            Ok((block, body)) => {
                blocks.push(block);
                bodies.push(body);
                states.extend(PausedJob::from_job(job).filter(|_| args.with_state));
            }
            Err(why) => {
                warn(format!("job `{}` is left out: {}", printable(&job.job_key), printable(&why)));
                exit = Exit::Failed;
            }
        }
    }
    if matches!(session.format, Some(Format::Json | Format::Jsonl)) {
        let mut document = json!({ "items": bodies });
        if args.with_state {
            document["states"] = json!(states);
        }
        session.out.json(&document)?;
        return Ok(exit);
    }
    let count = blocks.len();
    blocks.extend(states.iter().map(PausedJob::block));
    let Some(file) = &args.file else {
        session.out.raw(&blocks.join("\n"))?;
        return Ok(exit);
    };
    std::fs::write(file, blocks.join("\n")).map_err(|error| CliError::Failed {
        message: format!("cannot write `{}`: {error}", file.display()),
        hint: None,
    })?;
    session.done(Mark::Good, &format!("Wrote {} to {}", counted(count, "job"), file.display()))?;
    session.advise(&format!("preview it on another server: everbell jobs apply -f {} --dry-run", file.display()))?;
    Ok(exit)
}
