//! `everbell cron`: cron expressions and their times, without a server.

mod batch;
mod check;
mod documents;
mod explain;
mod fires;
mod next;

use everbell_core::cron::{Dst, Expression};
use everbell_core::{Spec, SpecError, Zone};
use jiff::Timestamp;

use super::output::Output;
use super::{CliError, CronCommand, Exit, ReadingArgs};
use everbell_wire::time_input::TimeReader;

pub(crate) fn run(command: &CronCommand, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    match command {
        CronCommand::Next(args) if args.batch => batch::run(std::io::stdin().lock(), output),
        CronCommand::Next(args) => next::run(args, now, output),
        CronCommand::Explain(args) => explain::run(args, now, output),
        CronCommand::Check(args) => check::run(args, now, output),
    }
}

/// The parsed arguments of a cron command.
struct Question {
    spec: Spec,
    /// Only times after this one are listed.
    from: Timestamp,
}

/// The bounds of a schedule, as typed.
#[derive(Default)]
struct Bounds<'a> {
    start_at: Option<&'a str>,
    end_at: Option<&'a str>,
}

impl Question {
    fn new(expr: &str, reading: &ReadingArgs, bounds: &Bounds<'_>, now: Timestamp) -> Result<Question, CliError> {
        let expression = Expression::parse(expr)?;
        let zone = Zone::get(&reading.tz)?;
        let times = TimeReader { now, zone: &zone };
        let from = times.read("--from", &reading.from)?;
        let start_at = bounds.start_at.map(|text| times.read("--start-at", text)).transpose()?;
        let end_at = bounds.end_at.map(|text| times.read("--end-at", text)).transpose()?;
        // A fixed rate counts from the start of the schedule; without one, from `--from`.
        let spec = Spec::recurring(expression, zone.clone(), from)
            .with_dst(Dst { gap: reading.dst_gap, fold: reading.dst_fold })
            .with_bounds(start_at, end_at)
            .map_err(|error| refused_bounds(&error))?;
        Ok(Question { spec, from })
    }
}

fn refused_bounds(error: &SpecError) -> CliError {
    let message = match error {
        SpecError::EmptyBounds => "--end-at must be after --start-at".to_owned(),
        SpecError::OutOfRange(_) => error.to_string(),
    };
    CliError::Invalid { message, hint: None }
}
