//! `everbell cron next EXPR`: when an expression fires next.

use everbell_wire as wire;
use jiff::Timestamp;

use super::fires::{Fire, GAPS};
use super::{Bounds, Question};
use crate::error::note;
use crate::output::Output;
use crate::{CliError, Exit, NextArgs};

pub(super) fn run(args: &NextArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let bounds = Bounds { start_at: args.start_at.as_deref(), end_at: args.end_at.as_deref() };
    let question = Question::new(args.expr.as_deref().unwrap_or_default(), &args.reading, &bounds, now)?;
    if args.json {
        output.json(&wire::Fires { items: wire::Fire::after(&question.spec, question.from, args.count) })?;
        return Ok(Exit::Success);
    }
    let fires = Fire::after(&question.spec, question.from, args.count);
    if fires.is_empty() {
        note("no further times");
    }
    let rows: Vec<_> = fires.iter().map(|fire| fire.row(question.from, "%H:%M:%S")).collect();
    output.table(&rows, GAPS)?;
    Ok(Exit::Success)
}
