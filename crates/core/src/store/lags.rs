//! How late runs began and how long they took, added up.

use std::time::Duration;

/// How late runs began: how many between two edges, and the longest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lags {
    counts: [u64; Lags::EDGES.len() + 1],
    longest: Duration,
}

impl Lags {
    /// The bounds of the buckets: bucket `i` counts lags in `[EDGES[i - 1], EDGES[i])`.
    pub const EDGES: [Duration; 12] = [
        Duration::from_millis(1),
        Duration::from_millis(5),
        Duration::from_millis(10),
        Duration::from_millis(25),
        Duration::from_millis(50),
        Duration::from_millis(100),
        Duration::from_millis(250),
        Duration::from_millis(500),
        Duration::from_secs(1),
        Duration::from_secs(5),
        Duration::from_mins(1),
        Duration::from_hours(1),
    ];

    /// One more.
    pub fn add(&mut self, lag: Duration) {
        self.add_counted(Lags::EDGES.partition_point(|edge| *edge <= lag), 1, lag);
    }

    /// Adds this many runs to a bucket, with the longest lag among them. Indexes beyond the last bucket count there.
    pub fn add_counted(&mut self, bucket: usize, runs: u64, longest: Duration) {
        self.counts[bucket.min(Lags::EDGES.len())] += runs;
        self.longest = self.longest.max(longest);
    }

    /// Those of both.
    pub fn merge(&mut self, other: &Lags) {
        for (bucket, runs) in other.counts.iter().enumerate() {
            self.add_counted(bucket, *runs, other.longest);
        }
    }

    /// How many at each place, one more than there are edges.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// How many runs it is about.
    pub fn runs(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The longest of all; `None` if there are none.
    pub fn longest(&self) -> Option<Duration> {
        (self.runs() > 0).then_some(self.longest)
    }

    /// No more than this is the lag of so large a share of the runs, such as 0.95: an edge, or the longest if that is
    /// less. `None` if there are none.
    #[expect(clippy::cast_precision_loss, reason = "counts of runs are far below 2^52")]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let wanted = share.clamp(0.0, 1.0) * self.runs() as f64;
        let mut seen = 0;
        let place = self.counts.iter().position(|runs| {
            seen += runs;
            seen > 0 && seen as f64 >= wanted
        })?;
        Some(Lags::EDGES.get(place).map_or(self.longest, |edge| self.longest.min(*edge)))
    }
}

/// How long runs took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// How many runs it is about.
    pub runs: u64,
    /// All of them together.
    pub total: Duration,
    /// The longest.
    pub longest: Duration,
}

impl Durations {
    /// Adds this many runs, with their total and the longest.
    pub fn add(&mut self, runs: u64, total: Duration, longest: Duration) {
        self.runs += runs;
        self.total += total;
        self.longest = self.longest.max(longest);
    }

    /// How long one took on average; `None` if there are none.
    pub fn mean(&self) -> Option<Duration> {
        let nanos = self.total.as_nanos().checked_div(u128::from(self.runs))?;
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn quantiles_of_lags_are_told_by_their_edge() {
        let mut lags = Lags::default();
        assert_eq!((lags.quantile(0.5), lags.longest(), lags.runs()), (None, None, 0));
        for _ in 0..90 {
            lags.add(millis(3));
        }
        for _ in 0..9 {
            lags.add(millis(300));
        }
        lags.add(millis(700));
        assert_eq!(lags.quantile(0.0), Some(millis(5)));
        assert_eq!(lags.quantile(0.5), Some(millis(5)));
        assert_eq!(lags.quantile(0.9), Some(millis(5)));
        assert_eq!(lags.quantile(0.95), Some(millis(500)));
        assert_eq!(lags.quantile(0.99), Some(millis(500)));
        assert_eq!(lags.quantile(1.0), Some(millis(700)), "never more than the longest");
        assert_eq!((lags.longest(), lags.runs()), (Some(millis(700)), 100));
    }

    #[test]
    fn a_lag_on_an_edge_belongs_to_the_place_behind_it() {
        let mut lags = Lags::default();
        lags.add(Duration::ZERO);
        for edge in Lags::EDGES {
            lags.add(edge);
        }
        assert_eq!(lags.counts(), [1; 13]);
        lags.add(Duration::from_hours(30));
        assert_eq!(lags.counts().last(), Some(&2));
        assert_eq!(lags.quantile(1.0), Some(Duration::from_hours(30)));
        assert!(Lags::EDGES.is_sorted());
    }
}
