//! `everbell cron check EXPR...`: which expressions are valid.

use everbell_core::cron::{Expression, ParseError, Warning};
use everbell_core::{Spec, Zone};
use jiff::Timestamp;
use serde::Serialize;

use super::documents::{ErrorDocument, Items};
use crate::error::warn;
use crate::output::Output;
use crate::{CheckArgs, CliError, Exit};

/// The result for one expression.
struct Verdict<'a> {
    text: &'a str,
    outcome: Result<Valid, ParseError>,
}

struct Valid {
    expression: Expression,
    warnings: Vec<Warning>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Document<'a> {
    Valid {
        expression: &'a str,
        valid: bool,
        normalized: &'a str,
        description: String,
        warnings: Vec<everbell_wire::Warning>,
    },
    Invalid {
        expression: &'a str,
        valid: bool,
        error: ErrorDocument,
    },
}

pub(super) fn run(args: &CheckArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let zone = Zone::get(&args.tz)?;
    let verdicts: Vec<Verdict<'_>> = args.exprs.iter().map(|text| Verdict::new(text, &zone, now)).collect();
    let exit = exit_code(&verdicts, args.strict);
    if args.json {
        output.json(&Items { items: verdicts.iter().map(Document::from).collect() })?;
        return Ok(exit);
    }
    let rows: Vec<_> = verdicts.iter().filter_map(Verdict::row).collect();
    output.table(&rows, &[2])?;
    // Both streams may be the same terminal: print the table first.
    output.flush()?;
    for verdict in verdicts {
        match verdict.outcome {
            Ok(valid) => {
                valid.warnings.iter().for_each(|found| warn(format!("{}: {}", valid.expression, found.detail)));
            }
            Err(error) => CliError::Expression(error).report(),
        }
    }
    Ok(exit)
}

fn exit_code(verdicts: &[Verdict<'_>], is_strict: bool) -> Exit {
    if verdicts.iter().any(|verdict| verdict.outcome.is_err()) {
        return Exit::Usage;
    }
    let has_warning = |verdict: &Verdict<'_>| verdict.outcome.as_ref().is_ok_and(|valid| !valid.warnings.is_empty());
    if is_strict && verdicts.iter().any(has_warning) { Exit::Failed } else { Exit::Success }
}

impl<'a> Verdict<'a> {
    fn new(text: &'a str, zone: &Zone, now: Timestamp) -> Self {
        let outcome = Expression::parse(text).map(|expression| {
            let spec = Spec::recurring(expression.clone(), zone.clone(), now);
            Valid { expression, warnings: spec.warnings(now) }
        });
        Verdict { text, outcome }
    }

    fn row(&self) -> Option<Vec<String>> {
        let Valid { expression, .. } = self.outcome.as_ref().ok()?;
        // A tab between fields is allowed, but here it separates columns.
        Some(vec!["ok".to_owned(), expression.as_str().replace('\t', " "), expression.describe()])
    }
}

impl<'a> From<&'a Verdict<'a>> for Document<'a> {
    fn from(Verdict { text, outcome }: &'a Verdict<'a>) -> Self {
        match outcome {
            Ok(Valid { expression, warnings }) => Document::Valid {
                expression: expression.as_str(),
                valid: true,
                normalized: expression.normalized(),
                description: expression.describe(),
                warnings: warnings.iter().map(everbell_wire::Warning::from).collect(),
            },
            Err(error) => Document::Invalid { expression: text, valid: false, error: error.into() },
        }
    }
}
