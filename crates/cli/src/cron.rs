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

pub(crate) const CRON_EXAMPLES: &str = "\
Examples:
  everbell cron next \"*/15 * * * *\" --count 3
  everbell cron explain \"0 0 L * *\" --tz Asia/Tokyo
  everbell cron check \"0 9 * * mon-fri\" @daily";

pub(crate) const NEXT_EXAMPLES: &str = "\
Examples:
  everbell cron next \"0 9 * * mon-fri\" --tz Europe/Paris --from \"tomorrow 08:00\"
  everbell cron next \"30 2 * * *\" --tz America/New_York --from 2027-03-13 --dst-gap skip
  echo '{\"expr\":\"@daily\",\"start\":\"2027-03-13T00:00:00Z\"}' | everbell cron next --batch";

pub(crate) const EXPLAIN_EXAMPLES: &str = "\
Examples:
  everbell cron explain \"0 9 1,15 * mon\" --tz Europe/Paris
  everbell cron explain \"30 2 * * *\" --tz America/New_York --from 2027-03-13
  everbell cron explain \"@every 90s\" --json";

pub(crate) const CHECK_EXAMPLES: &str = "\
Examples:
  everbell cron check \"0 9 * * mon-fri\"
  everbell cron check \"0 9 * * mon-fri\" \"@every 90s\" --strict
  everbell cron check \"30 2 * * *\" --tz America/New_York --json";

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
