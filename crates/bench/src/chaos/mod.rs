//! Fault experiments: real `everbell serve` processes on a real database, and something goes wrong at a chosen moment.
//!
//! ```text
//! experiments/   one function each: break something, wait, judge
//! cluster        instances + database + one proxy each + the log of the targets
//! proxy          acts on a chosen statement of one instance
//! faketime       clocks that step
//! target_log     what the targets saw, by the true clock: the truth
//! checks         the truth against the rows and against /readyz
//! verdict        one line for each experiment
//! ```

pub mod database;
mod verdict;

mod checks;
mod clock;
mod cluster;
mod experiments;
mod faketime;
mod http;
mod instance;
mod options;
mod proxy;
mod readiness;
mod statement;
mod target_log;

pub use options::Options;
pub use verdict::Verdict;

use everbell_store::conformance::dice::Dice;

pub(crate) use clock::{instant, load_average, load_per_processor, pause_s, true_time, wait_for};
pub(crate) use cluster::{Cluster, Folder, Plan, REQUEST_LIMIT};
pub(crate) use instance::{Instance, Launch};
pub(crate) use target_log::seconds;

/// The error is for people.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Runs the experiments that the command line asks for, and prints a line for each.
pub fn run(arguments: &[&str]) -> Result<bool, String> {
    let options = Options::read(arguments)?;
    if options.lists() {
        for experiment in experiments::ALL {
            println!("{:<20} {}", experiment.name, experiment.about);
        }
        return Ok(true);
    }
    let verdicts = rounds(&options)?;
    let failed = verdicts.iter().filter(|verdict| !verdict.is_ok()).count();
    println!("\n{} experiments, {failed} failed", verdicts.len());
    Ok(failed == 0)
}

/// Runs one experiment by its name, as [`run`] does.
pub fn run_one(name: &str, options: &Options) -> Result<Verdict, String> {
    let experiment = experiments::ALL.iter().find(|experiment| experiment.name == name);
    let experiment = experiment.ok_or_else(|| format!("there is no experiment `{name}`"))?;
    Ok(perform(experiment, options))
}

/// Every chosen experiment once, then more of them in random order until the minutes are over.
fn rounds(options: &Options) -> Result<Vec<Verdict>, String> {
    let chosen: Vec<_> = experiments::ALL.iter().filter(|experiment| options.wants(experiment)).collect();
    if chosen.is_empty() {
        return Err("no such experiment for this database; `--experiment list` lists all of them".to_owned());
    }
    let (begun, mut dice) = (instant(), Dice::new(options.seed));
    let is_over = || begun.elapsed() >= options.duration();
    let mut verdicts = Vec::new();
    for experiment in &chosen {
        verdicts.push(report(experiment, options));
    }
    while !is_over() {
        verdicts.extend(dice.pick(&chosen).map(|experiment| report(experiment, options)));
    }
    Ok(verdicts)
}

fn report(experiment: &experiments::Experiment, options: &Options) -> Verdict {
    let verdict = perform(experiment, options);
    println!("{verdict}");
    verdict
}

/// An experiment that cannot be done has failed too.
fn perform(experiment: &experiments::Experiment, options: &Options) -> Verdict {
    let begun = instant();
    let mut verdict = (experiment.run)(options).unwrap_or_else(|error| {
        let mut verdict = Verdict::new(experiment.name, experiment.about);
        verdict.check(true, format!("could not be done: {error}"));
        verdict
    });
    verdict.load = verdict.load.max(load_per_processor());
    verdict.seconds = begun.elapsed().as_secs_f64();
    verdict
}
