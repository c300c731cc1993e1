//! `everbell simulate`: what would happen to the slots of jobs, decided as production decides, on a virtual clock.

mod report;
mod scenario;
mod subject;
mod timeline;

use std::path::PathBuf;

use clap::Args;
use everbell_core::Zone;
use everbell_core::simulate::{Simulation, simulate};
use jiff::Timestamp;

use super::error::{note, warn};
use super::online::{Format, OnlineArgs};
use super::output::{Output, counted, printable};
use super::{CliError, Exit, Program};
use scenario::{Durations, Window};
use subject::Subject;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell simulate daily-briefing --to +30d --duration 90s
  everbell simulate -f jobs.toml --from 2027-03-27 --to 2027-03-29 --outage 02:00..04:30
  everbell simulate -f jobs.toml --to +1d --instances 2 --timeline jobs.svg";

/// The places of an instance, unless its configuration says otherwise.
const DEFAULT_CONCURRENCY: u32 = 256;
/// The most slots that are listed, without and with `--verbose`.
const MAX_LISTED: [usize; 2] = [50, 1_000];
/// The most slots in a JSON document.
const MAX_IN_JSON: usize = 10_000;

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// The jobs: their keys or ids, as the server has them.
    #[arg(value_name = "JOB", required_unless_present_any = ["file", "label"])]
    jobs: Vec<String>,
    /// Simulate all current jobs of the server with this label, `NAME=VALUE` or `NAME`.
    #[arg(long, value_name = "LABEL", conflicts_with = "jobs")]
    label: Option<String>,
    /// Simulate the `[[job]]` blocks of this file instead, without a server; `-` is standard input.
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["jobs", "label"])]
    file: Option<PathBuf>,
    /// Start here: a time as in `everbell help time`.
    #[arg(long, value_name = "TIME", default_value = "now", allow_hyphen_values = true)]
    from: String,
    /// End here; relative times such as `+7d` count from `--from`.
    #[arg(long, value_name = "TIME", default_value = "+7d", allow_hyphen_values = true)]
    to: String,
    /// Simulate an outage during this time, such as `02:00..04:30` on the day of `--from`, or `2027-03-28T02:00Z..+3h`. Runs in
    /// progress when it begins are lost. Repeatable.
    #[arg(long, value_name = "FROM..TO", allow_hyphen_values = true)]
    outage: Vec<String>,
    /// Simulate attempts of this duration, for all jobs or for one: `90s`, `nightly=90m`. Repeatable. Default: the median
    /// duration of the last runs on the server, else 1 second.
    #[arg(long, value_name = "[KEY=]DURATION")]
    duration: Vec<String>,
    /// The number of instances.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    instances: u32,
    /// Maximum concurrent runs per instance (`engine.concurrency`).
    #[arg(long, value_name = "N", default_value_t = DEFAULT_CONCURRENCY, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    concurrency: u32,
    /// Maximum concurrent runs of a target per instance (`concurrency` of its `[[target]]` block). Repeatable. Default: what the
    /// server says, no limit with `--file`.
    #[arg(long, value_name = "TARGET=N")]
    target_concurrency: Vec<String>,
    /// Read and show times in this IANA time zone; default: that of the job, UTC if there are several.
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// List every slot, including those that ran once and on time.
    #[arg(long)]
    verbose: bool,
    /// Draw a timeline to this file, as SVG; an existing file is replaced.
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
    #[command(flatten)]
    online: OnlineArgs,
}

/// A simulation and what it is about.
struct Simulated {
    window: Window,
    zone: Zone,
    subjects: Vec<Subject>,
    simulation: Simulation,
}

pub(crate) fn run(
    args: &SimulateArgs,
    program: Program,
    now: Timestamp,
    output: &mut Output,
) -> Result<Exit, CliError> {
    let format = args.online.prepare(output);
    let durations = Durations::parse(&args.duration)?;
    let mut limits = scenario::target_limits(&args.target_concurrency)?;
    let named = args.tz.as_deref().map(Zone::get).transpose()?;
    let subjects = if let Some(file) = &args.file {
        subject::from_file(file, program, now)?
    } else {
        let keys = match &args.label {
            Some(label) => subject::with_label(label, &args.online)?,
            None => args.jobs.clone(),
        };
        for (target, limit) in subject::served_limits(&args.online)? {
            limits.entry(target).or_insert(limit);
        }
        subject::from_server(&keys, &durations, &args.online, now)?
    };
    durations.expect_known(&subjects)?;
    let zone = named.unwrap_or_else(|| common_zone(&subjects));
    let window = Window::parse(args, &zone, now)?.with_limits(limits);
    let subjects: Vec<Subject> =
        subjects.into_iter().map(|subject| subject.prepared(&window, &durations)).collect::<Result<_, _>>()?;
    let jobs: Vec<_> = subjects.iter().map(|subject| subject.job.clone()).collect();
    let simulation = simulate(&jobs, &window.scenario).map_err(|refused| scenario::in_flags(&refused))?;
    let done = Simulated { window, zone, subjects, simulation };
    print(args, &done, format, output)?;
    if let Some(file) = &args.timeline {
        std::fs::write(file, timeline::draw(&done)).map_err(|error| CliError::Failed {
            message: format!("cannot write `{}`: {error}", file.display()),
            hint: None,
        })?;
        if !args.online.quiet {
            output.flush()?;
            note(format!("drew the timeline to {}", file.display()));
        }
    }
    Ok(Exit::Success)
}

fn print(args: &SimulateArgs, done: &Simulated, format: Option<Format>, output: &mut Output) -> Result<(), CliError> {
    match format {
        Some(Format::Json) => return Ok(output.json(&report::document(done, args.verbose, MAX_IN_JSON))?),
        Some(Format::Jsonl) => {
            return Ok(report::lines(done, args.verbose).iter().try_for_each(|line| output.json(line))?);
        }
        Some(Format::Name) => {
            return Ok(done.subjects.iter().try_for_each(|subject| output.name(subject.key()))?);
        }
        Some(Format::Table | Format::Plain) | None => {}
    }
    report::summary(done, output)?;
    let limit = MAX_LISTED[usize::from(args.verbose)];
    let left_out = report::slots(done, args.verbose, limit, output)?;
    output.flush()?;
    if args.online.quiet {
        return Ok(());
    }
    if left_out > 0 {
        let more = if args.verbose { "choose a shorter window, or use --json" } else { "see more with --verbose" };
        note(format!("{} not listed; {more}", counted(left_out, "more slot")));
    }
    if output.is_for_people() {
        note(report::sentence(done));
    }
    for subject in &done.subjects {
        subject.notes().into_iter().for_each(|words| warn(printable(&words)));
    }
    Ok(())
}

/// The zone of all jobs, or UTC if they differ.
fn common_zone(subjects: &[Subject]) -> Zone {
    let mut zones = subjects.iter().map(Subject::zone);
    let first = zones.next().unwrap_or_else(Zone::utc);
    if zones.all(|zone| zone == first) { first } else { Zone::utc() }
}
