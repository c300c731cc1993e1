//! `everbell cron next EXPR`: when an expression fires next.

use jiff::Timestamp;

use super::wire::Items;
use super::{Bounds, Question};
use crate::cli::error::note;
use crate::cli::output::Output;
use crate::cli::{CliError, Exit, NextArgs};
use crate::preview::{Fire, GAPS};

pub(super) fn run(args: &NextArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let bounds = Bounds { start_at: args.start_at.as_deref(), end_at: args.end_at.as_deref() };
    let question = Question::new(args.expr.as_deref().unwrap_or_default(), &args.reading, &bounds, now)?;
    let fires = Fire::after(&question.spec, question.from, args.count);
    if args.json {
        output.json(&Items { items: fires.into_iter().map(Fire::document).collect() })?;
        return Ok(Exit::Success);
    }
    if fires.is_empty() {
        note("no further fire");
    }
    let rows: Vec<_> = fires.iter().map(|fire| fire.row(question.from, "%H:%M:%S")).collect();
    output.table(&rows, GAPS)?;
    Ok(Exit::Success)
}
