//! The results as tables: one for each measure, with what else the machine was doing beside every figure.

use super::catalog::{PEERS, Peer};
use super::options::Entry;
use super::report::median;
use super::results::{Results, Sample, Summary, summary};
use crate::table::{Table, thousands};

/// A measure with its figures.
#[derive(Debug)]
pub(super) struct Measure {
    pub(super) name: String,
    pub(super) title: String,
    /// The figures that are shown, each with its unit; the first one is plotted.
    pub(super) figures: &'static [(&'static str, &'static str)],
    /// Whether a higher figure is better.
    pub(super) is_rate: bool,
}

impl Measure {
    pub(super) fn drain(jobs: u32) -> Measure {
        let jobs = thousands(u64::from(jobs));
        Measure {
            title: format!("Drain of {jobs} due no-op jobs: jobs per second until the last one is recorded"),
            name: format!("drain of {jobs}"),
            figures: &[("jobs_per_second", "jobs/s")],
            is_rate: true,
        }
    }

    pub(super) fn lag(jobs: u32, seconds: u64) -> Measure {
        Measure {
            name: format!("lag of {jobs} over {seconds} s"),
            title: format!("Lag of {jobs} jobs over {seconds} s: from the time of a job to its handler"),
            figures: &[("p99_ms", "p99 ms"), ("p50_ms", "p50 ms"), ("max_ms", "max ms")],
            is_rate: false,
        }
    }

    pub(super) fn herd(jobs: u32) -> Measure {
        let jobs = thousands(u64::from(jobs));
        Measure {
            title: format!("Lag of {jobs} jobs that are due at the same moment"),
            name: format!("herd of {jobs}"),
            figures: &[("p99_ms", "p99 ms"), ("p50_ms", "p50 ms"), ("max_ms", "max ms")],
            is_rate: false,
        }
    }

    pub(super) fn idle() -> Measure {
        Measure {
            name: "idle".to_owned(),
            title: "Idle: 1,000 jobs, none of them due within a year".to_owned(),
            figures: &[("queries_per_second", "queries/s"), ("transactions_per_second", "transactions/s")],
            is_rate: false,
        }
    }
}

/// Prints one table for each measure.
pub(super) fn print(results: &Results, measures: &[Measure], entries: &[Entry]) {
    for measure in measures {
        let units = measure.figures.iter().map(|(_, unit)| *unit);
        let heading: Vec<&str> = ["peer", "setting", "history"]
            .into_iter()
            .chain(units)
            .chain(["spread", "rounds", "load", "steal %"])
            .collect();
        let mut table = Table::new(3, &heading);
        let mut remarks = Vec::new();
        for entry in entries {
            let peer = &PEERS[entry.peer];
            let samples: Vec<&Sample> = results.samples(peer.name, entry.setting(), &measure.name).collect();
            if samples.is_empty() {
                continue;
            }
            table.row(row(peer, *entry, measure, &samples));
            remarks.extend(remark(peer, *entry, &samples));
        }
        table.print(&measure.title);
        for remark in remarks {
            println!("{remark}");
        }
    }
    println!("\nBest settings:");
    for entry in entries.iter().filter(|entry| entry.best) {
        println!("- {}: {}", PEERS[entry.peer].name, PEERS[entry.peer].best);
    }
    println!("\nMedians over the rounds; `spread`: least to most of the first figure.");
    println!("`load`: load average of the minute before; `steal %`: time that the hypervisor took.");
}

fn row(peer: &Peer, entry: Entry, measure: &Measure, samples: &[&Sample]) -> Vec<String> {
    let summed = |figure: &str| summary(samples.iter().copied(), figure);
    let middle = |of: fn(&Sample) -> f64| {
        let values: Vec<f64> = samples.iter().map(|sample| of(sample)).collect();
        median(&values).map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
    };
    let spread = summed(measure.figures[0].0)
        .map_or_else(|| "-".to_owned(), |Summary { least, most, .. }| format!("{} to {}", short(least), short(most)));
    let figures = measure
        .figures
        .iter()
        .map(|(figure, _)| summed(figure).map_or_else(|| "failed".to_owned(), |summary| short(summary.median)));
    let words = [peer.name, entry.setting(), peer.history].map(str::to_owned);
    let measured = samples.iter().filter(|sample| sample.outcome.is_ok()).count().to_string();
    let machine = [spread, measured, middle(|sample| sample.load), middle(|sample| sample.steal)];
    words.into_iter().chain(figures).chain(machine).collect()
}

/// Says what the figures do not: why there are none, or that not every job was called once.
fn remark(peer: &Peer, entry: Entry, samples: &[&Sample]) -> Option<String> {
    let name = format!("{} ({})", peer.name, entry.setting());
    let failure = samples.iter().find_map(|sample| sample.outcome.as_ref().err());
    let cut = samples.iter().find(|sample| sample.figure("complete") == Some(0.0));
    let repeated = samples.iter().filter_map(|sample| sample.figure("repeated")).fold(0.0, f64::max);
    let early = samples.iter().filter_map(|sample| sample.figure("early")).fold(0.0, f64::max);
    let said: Vec<String> = [
        failure.map(|reason| format!("failed: {reason}")),
        cut.map(|sample| {
            format!("not finished in time: {} jobs called", short(sample.figure("called").unwrap_or(0.0)))
        }),
        (repeated > 0.0).then(|| format!("{} calls were repeated", short(repeated))),
        (early > 0.0).then(|| format!("{} jobs began before their time", short(early))),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!said.is_empty()).then(|| format!("- {name}: {}", said.join("; ")))
}

/// Returns a number with as many digits as are worth reading.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => {
            let sign = if value < 0.0 { "-" } else { "" };
            format!("{sign}{}", thousands(large.round() as u64))
        }
        _ => format!("{value:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_long_as_they_are_worth() {
        let shortened = [0.04, 3.26, 99.94, 12_345.6, -1_234.0].map(short);
        assert_eq!(shortened, ["0.0", "3.3", "99.9", "12,346", "-1,234"]);
    }
}
