//! `everbell cron explain EXPR`: the meaning of an expression.

use everbell_core::cron::{Expression, Warning};
use everbell_core::{Spec, When};
use everbell_wire::Preview;
use jiff::Timestamp;

use super::fires::{Fire, GAPS};
use super::{Bounds, Question};
use crate::output::{Output, aligned};
use crate::{CliError, Exit, ExplainArgs};

const SHOWN_FIRES: u16 = 5;

pub(super) fn run(args: &ExplainArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let question = Question::new(&args.expr, &args.reading, &Bounds::default(), now)?;
    let Some(expression) = question.spec.expression() else {
        return Ok(Exit::Success);
    };
    if args.json {
        output.json(&Preview::new(&question.spec, question.from, SHOWN_FIRES))?;
        return Ok(Exit::Success);
    }
    let fires = Fire::after(&question.spec, question.from, SHOWN_FIRES);
    let warnings = question.spec.warnings(question.from);
    for line in lines(&question, expression, &fires, &warnings) {
        output.line(&line)?;
    }
    Ok(Exit::Success)
}

fn lines(question: &Question, expression: &Expression, fires: &[Fire], warnings: &[Warning]) -> Vec<String> {
    let mut lines = vec![
        expression.describe(),
        format!("  Original   {expression}"),
        format!("  Normalized {}", expression.normalized()),
    ];
    lines.extend(warnings.iter().map(|warning| format!("  note: {}", warning.detail)));
    lines.extend(anchor(&question.spec).map(|anchor| {
        format!(
            "  note: a fixed rate counts from its start; here that is --from, {anchor} \
             (`cron next` takes another one as --start-at)"
        )
    }));
    // Seconds are shown only if one is not zero.
    let time_format = if fires.iter().any(Fire::has_seconds) { "%H:%M:%S" } else { "%H:%M" };
    let rows: Vec<_> = fires.iter().map(|fire| fire.row(question.from, time_format)).collect();
    for (index, row) in aligned(&rows, GAPS).into_iter().enumerate() {
        lines.push(format!("  {}  {row}", if index == 0 { "Next" } else { "    " }));
    }
    lines
}

fn anchor(spec: &Spec) -> Option<Timestamp> {
    match spec.when() {
        When::Every { anchor, .. } => Some(*anchor),
        When::Cron(_) | When::Once(_) | When::After(_) | When::AfterAll(_) => None,
    }
}
