//! Counters and histograms whose members differ in their labels.
//!
//! Labels are written down as the text that a page shows, in a buffer that is used again, so counting allocates nothing
//! but for a member that is new. A lock is held for that long only.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::catalog::Description;
use super::text::{Text, write_labels, write_number};

/// The most members of a metric, so that made-up labels cannot fill the memory. Further ones are not counted.
const MAX_MEMBERS: usize = 10_000;

#[derive(Debug)]
struct Family<V> {
    what: &'static Description,
    members: Mutex<Members<V>>,
}

#[derive(Debug)]
struct Members<V> {
    values: BTreeMap<Box<str>, V>,
    labels: String,
}

impl<V> Family<V> {
    fn new(what: &'static Description) -> Family<V> {
        Family { what, members: Mutex::new(Members { values: BTreeMap::new(), labels: String::new() }) }
    }

    fn locked(&self) -> MutexGuard<'_, Members<V>> {
        // A number is changed in one step, so a panic leaves it whole.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, labels: &[&str], new: impl FnOnce() -> V, change: impl FnOnce(&mut V)) {
        let members = &mut *self.locked();
        members.labels.clear();
        write_labels(&mut members.labels, self.what.labels, labels);
        if let Some(value) = members.values.get_mut(members.labels.as_str()) {
            change(value);
        } else if members.values.len() < MAX_MEMBERS {
            change(members.values.entry(members.labels.as_str().into()).or_insert_with(new));
        }
    }
}

/// Numbers that grow.
#[derive(Debug)]
pub(super) struct Counters(Family<u64>);

impl Counters {
    /// With members that are there from the beginning, so that a graph knows about nothing happening.
    pub(super) fn new<const N: usize>(what: &'static Description, known: &[[&str; N]]) -> Counters {
        let counters = Counters(Family::new(what));
        for labels in known {
            counters.add(labels, 0);
        }
        counters
    }

    pub(super) fn add(&self, labels: &[&str], count: u64) {
        self.0.change(labels, || 0, |value| *value += count);
    }

    pub(super) fn render(&self, text: &mut Text) {
        let members = self.0.locked();
        if members.values.is_empty() {
            return;
        }
        text.begin(self.0.what);
        for (labels, value) in &members.values {
            // Exact up to 2^53, which is three years of a hundred million a second.
            #[allow(clippy::cast_precision_loss, reason = "as above")]
            text.sample(self.0.what.name, labels, *value as f64);
        }
    }
}

/// Values in buckets.
#[derive(Debug)]
pub(super) struct Histograms {
    family: Family<Buckets>,
    /// Upper bounds, in order, without infinity.
    bounds: &'static [f64],
}

#[derive(Debug)]
struct Buckets {
    /// How many values were in each bucket and in none; not cumulated.
    counts: Box<[u64]>,
    sum: f64,
}

impl Histograms {
    pub(super) fn new(what: &'static Description, bounds: &'static [f64]) -> Histograms {
        debug_assert!(bounds.is_sorted(), "{bounds:?}");
        Histograms { family: Family::new(what), bounds }
    }

    pub(super) fn record(&self, labels: &[&str], value: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        let new = || Buckets { counts: vec![0; self.bounds.len() + 1].into(), sum: 0.0 };
        self.family.change(labels, new, |buckets| {
            buckets.counts[bucket] += 1;
            buckets.sum += value;
        });
    }

    pub(super) fn render(&self, text: &mut Text) {
        let members = self.family.locked();
        if members.values.is_empty() {
            return;
        }
        let name = self.family.what.name;
        let [bucket, sum, count] = ["bucket", "sum", "count"].map(|end| format!("{name}_{end}"));
        text.begin(self.family.what);
        let mut line = String::new();
        for (labels, buckets) in &members.values {
            let mut total = 0_u64;
            for (place, counted) in buckets.counts.iter().enumerate() {
                total += counted;
                line.clear();
                line.push_str(labels);
                line.push_str(if labels.is_empty() { "le=\"" } else { ",le=\"" });
                write_number(&mut line, self.bounds.get(place).copied().unwrap_or(f64::INFINITY));
                line.push('"');
                #[allow(clippy::cast_precision_loss, reason = "exact up to 2^53")]
                text.sample(&bucket, &line, total as f64);
            }
            text.sample(&sum, labels, buckets.sum);
            #[allow(clippy::cast_precision_loss, reason = "exact up to 2^53")]
            text.sample(&count, labels, total as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::catalog::{CLAIM_DURATION, CLAIMED, FIRE_LAG, LOGIN_FAILURES};

    fn rendered(render: impl FnOnce(&mut Text)) -> Vec<String> {
        let mut text = Text::default();
        render(&mut text);
        let text = text.into_string();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn counters_count_from_zero_by_their_labels() {
        let counters = Counters::new(&CLAIMED, &[["plan"], ["start"]]);
        counters.add(&["start"], 2);
        counters.add(&["odd \""], 1);
        counters.add(&["start"], 40);
        let expected = [
            "everbell_claimed_total{step=\"odd \\\"\"} 1",
            "everbell_claimed_total{step=\"plan\"} 0",
            "everbell_claimed_total{step=\"start\"} 42",
        ];
        assert_eq!(rendered(|text| counters.render(text)), expected);
        let alone = Counters::new(&LOGIN_FAILURES, &[[]]);
        alone.add(&[], 1);
        assert_eq!(rendered(|text| alone.render(text)), ["everbell_login_failures_total 1"]);
    }

    #[test]
    fn a_metric_that_nobody_used_is_left_out() {
        let nothing = Counters::new::<1>(&CLAIMED, &[]);
        assert_eq!(rendered(|text| nothing.render(text)), [""; 0]);
        let nothing = Histograms::new(&FIRE_LAG, &[1.0]);
        assert_eq!(rendered(|text| nothing.render(text)), [""; 0]);
    }

    #[test]
    fn histograms_cumulate_and_a_bound_belongs_to_its_bucket() {
        let lag = Histograms::new(&FIRE_LAG, &[0.5, 1.0, 2.5]);
        for value in [0.25, 0.5, 1.5, 99.0] {
            lag.record(&[], value);
        }
        let expected = [
            "everbell_fire_lag_seconds_bucket{le=\"0.5\"} 2",
            "everbell_fire_lag_seconds_bucket{le=\"1\"} 2",
            "everbell_fire_lag_seconds_bucket{le=\"2.5\"} 3",
            "everbell_fire_lag_seconds_bucket{le=\"+Inf\"} 4",
            "everbell_fire_lag_seconds_sum 101.25",
            "everbell_fire_lag_seconds_count 4",
        ];
        assert_eq!(rendered(|text| lag.render(text)), expected);
        let claims = Histograms::new(&CLAIM_DURATION, &[1.0]);
        claims.record(&["plan", "some"], 0.5);
        let lines = rendered(|text| claims.render(text));
        assert_eq!(lines[0], "everbell_claim_duration_seconds_bucket{step=\"plan\",result=\"some\",le=\"1\"} 1");
        assert_eq!(lines[2], "everbell_claim_duration_seconds_sum{step=\"plan\",result=\"some\"} 0.5");
    }

    #[test]
    fn members_are_bounded() {
        let counters = Counters::new::<1>(&CLAIMED, &[]);
        for number in 0..=MAX_MEMBERS {
            counters.add(&[&number.to_string()], 1);
        }
        counters.add(&["0"], 1);
        let lines = rendered(|text| counters.render(text));
        assert_eq!((lines.len(), lines[0].as_str()), (MAX_MEMBERS, "everbell_claimed_total{step=\"0\"} 2"));
    }

    #[test]
    fn many_threads_lose_nothing() {
        let counters = Counters::new::<1>(&CLAIMED, &[]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1_000).for_each(|_| counters.add(&["plan"], 1)));
            }
        });
        assert_eq!(rendered(|text| counters.render(text)), ["everbell_claimed_total{step=\"plan\"} 4000"]);
    }
}
