//! `everbell jobs export`.

use std::path::PathBuf;

use clap::Args;
use everbell_core::Definition;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::toml_text::{key, value};
use crate::cli::body::{body, essential, shown};
use crate::cli::client::{Asked, job_path};
use crate::cli::document::text;
use crate::cli::error::warn;
use crate::cli::online::Format;
use crate::cli::output::{Mark, Output, counted, printable};
use crate::cli::{CliError, Exit, OnlineArgs, Session};
use crate::form::{Naming, job};

/// More jobs are not read into one file.
pub(super) const MOST: usize = 10_000;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell jobs export daily-briefing
  everbell jobs export --all -f jobs.toml
  everbell jobs export daily-briefing --json";

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Keys or ids of jobs.
    #[arg(value_name = "JOB", required_unless_present = "all")]
    jobs: Vec<String>,
    /// Write every job that is not retired.
    #[arg(long, conflicts_with = "jobs")]
    all: bool,
    /// Write to this file instead of standard output; one that exists is replaced.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &ExportArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let mut session = Session::new(&args.online, now, output)?;
    let mut documents = Vec::new();
    if args.all {
        let list = session.client.all("/jobs", &[], MOST).asked(|| "list the jobs".to_owned())?;
        if list.next.is_some() {
            warn(format!("only the first {MOST} jobs are written"));
        }
        documents = list.items;
    }
    for name in &args.jobs {
        let answer = session.client.get(&job_path(name), &[]).asked(|| format!("read job `{name}`"))?;
        documents.push(answer.value()?);
    }
    let (mut blocks, mut bodies, mut exit) = (Vec::new(), Vec::new(), Exit::Success);
    for document in &documents {
        match shown(document, now).and_then(|own| Ok((block(&own, now)?, body(&own)))) {
            Ok((block, body)) => {
                blocks.push(block);
                bodies.push(body);
            }
            Err(why) => {
                warn(format!("job `{}` is left out: {}", printable(text(document, "jobKey")), printable(&why)));
                exit = Exit::Failed;
            }
        }
    }
    if matches!(session.format, Some(Format::Json | Format::Jsonl)) {
        session.out.json(&json!({ "items": bodies }))?;
        return Ok(exit);
    }
    let Some(file) = &args.file else {
        session.out.raw(&blocks.join("\n"))?;
        return Ok(exit);
    };
    std::fs::write(file, blocks.join("\n")).map_err(|error| CliError::Failed {
        message: format!("cannot write `{}`: {error}", file.display()),
        hint: None,
    })?;
    session.done(Mark::Good, &format!("Wrote {} to {}", counted(blocks.len(), "job"), file.display()))?;
    session
        .advise(&format!("see what it would change elsewhere: everbell jobs apply -f {} --dry-run", file.display()))?;
    Ok(exit)
}

/// A job as a block: what says the same as its absence is left out.
pub(crate) fn block(own: &Definition, now: Timestamp) -> Result<String, String> {
    let body = essential(own, now)?;
    let mut lines = vec!["[[job]]".to_owned()];
    for field in job::JOB {
        let Some(wanted) = body.get(field.name) else { continue };
        let name = Naming::Snake.spell(field.name).into_owned();
        if field.name == "policies" {
            members(&name, wanted, &mut lines)?;
        } else {
            lines.push(line(&name, wanted)?);
        }
    }
    Ok(format!("{}\n", lines.join("\n")))
}

/// A line for each member, with its whole path.
fn members(path: &str, wanted: &Value, lines: &mut Vec<String>) -> Result<(), String> {
    let Value::Object(inner) = wanted else {
        lines.push(line(path, wanted)?);
        return Ok(());
    };
    inner
        .iter()
        .try_for_each(|(name, member)| members(&format!("{path}.{}", key(&Naming::Snake.spell(name))), member, lines))
}

fn line(path: &str, wanted: &Value) -> Result<String, String> {
    let written = value(wanted).map_err(|why| format!("its {path} has {why}"))?;
    Ok(format!("{path} = {written}"))
}
