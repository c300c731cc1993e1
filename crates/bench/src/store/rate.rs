//! How fast claims and whole lives are, and what they cost.

use std::time::Duration;

use crate::cpu::{Meter, Spent};
use crate::measure::Stopwatch;
use crate::table::thousands;

/// In a second, and microseconds of processors for each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    claims: f64,
    pub(crate) lives: f64,
    claim: Cost,
    pub(crate) life: Cost,
}

/// Microseconds of processors for one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    client: f64,
    pub(crate) server: f64,
}

impl Cost {
    pub(crate) fn new(spent: Spent, runs: u32) -> Cost {
        let each = |spent: Duration| spent.as_secs_f64() * 1e6 / f64::from(runs);
        Cost { client: each(spent.client), server: each(spent.server) }
    }

    /// The medians of both as a cell: client + server.
    pub(crate) fn median(costs: impl Iterator<Item = Cost> + Clone) -> String {
        let client = median(costs.clone().map(|cost| cost.client));
        let server = median(costs.map(|cost| cost.server));
        if server > 0.0 { format!("{client:.0} + {server:.0}") } else { format!("{client:.0}") }
    }
}

/// A pass that has begun: first everything is claimed, then everything is started and ended.
pub(super) struct Pass<'a> {
    meter: &'a mut Meter,
    began: Spent,
    watch: Stopwatch,
}

/// A pass in which everything was claimed.
pub(super) struct Claimed<'a> {
    pass: Pass<'a>,
    seconds: f64,
    spent: Spent,
}

impl<'a> Pass<'a> {
    pub(super) async fn begin(meter: &'a mut Meter) -> sqlx::Result<Pass<'a>> {
        let began = meter.read().await?;
        Ok(Pass { meter, began, watch: Stopwatch::start() })
    }

    pub(super) async fn claimed(self) -> sqlx::Result<Claimed<'a>> {
        let seconds = self.watch.seconds();
        let spent = self.meter.read().await? - self.began;
        Ok(Claimed { pass: self, seconds, spent })
    }
}

impl Claimed<'_> {
    /// Ends the measurement of this many runs.
    pub(super) async fn ended(self, runs: u32) -> sqlx::Result<Rate> {
        let seconds = self.pass.watch.seconds();
        let spent = self.pass.meter.read().await? - self.pass.began;
        Ok(Rate {
            claims: f64::from(runs) / self.seconds,
            lives: f64::from(runs) / seconds,
            claim: Cost::new(self.spent, runs),
            life: Cost::new(spent, runs),
        })
    }
}

/// The results of the rounds of a store and of plain SQL.
#[derive(Debug, Default)]
pub(super) struct Rates {
    pub(super) store: Vec<Rate>,
    pub(super) plain: Vec<Rate>,
}

pub(super) const HEADING: [&str; 10] =
    ["claims/s", "plain", "ratio", "lives/s", "plain", "ratio", "µs/claim", "plain", "µs/life", "plain"];

impl Rates {
    /// The medians, as [`HEADING`] names them. A ratio is the median of those of the rounds, because a busy moment of the
    /// machine falls on both of a round.
    pub(super) fn cells(&self) -> Vec<String> {
        let mut cells = Vec::new();
        for rate in [|rate: &Rate| rate.claims, |rate: &Rate| rate.lives] {
            let ratios = self.store.iter().zip(&self.plain).map(|(store, plain)| rate(store) / rate(plain));
            cells.push(thousands(median(self.store.iter().map(rate)).round() as u64));
            cells.push(thousands(median(self.plain.iter().map(rate)).round() as u64));
            cells.push(format!("{:.2}", median(ratios)));
        }
        for cost in [|rate: &Rate| rate.claim, |rate: &Rate| rate.life] {
            for rates in [&self.store, &self.plain] {
                cells.push(Cost::median(rates.iter().map(cost)));
            }
        }
        cells
    }
}

pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    f64::midpoint(low, high)
}
