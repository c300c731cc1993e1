//! The calls that the program of a peer saw, and what they say about lag.

use std::collections::HashSet;

/// The kind of work that a program is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timing {
    /// The time of the first job, in milliseconds since the epoch.
    pub(super) base_ms: i64,
    /// How far apart the first and the last one are.
    pub(super) spread_ms: i64,
    pub(super) jobs: u32,
}

impl Timing {
    fn due_ms(&self, n: u32) -> i64 {
        self.base_ms + self.spread_ms * i64::from(n) / i64::from(self.jobs.max(1))
    }
}

/// One call of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    job: u32,
    at_us: i64,
}

/// Every call of one piece of work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report(Vec<Call>);

/// The lag of the calls, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lag {
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
    /// How many began before their time.
    pub(super) early: u32,
}

impl Report {
    /// Parses lines `NUMBER MICROSECONDS`, and refuses numbers that no job has.
    pub(super) fn parse(text: &str, jobs: u32) -> Result<Report, String> {
        let call = |(index, line): (usize, &str)| {
            let wrong = |reason: &str| format!("line {} of the report, `{line}`: {reason}", index + 1);
            let (job, at) = line.split_once(' ').ok_or_else(|| wrong("not a number and a time"))?;
            let job: u32 = job.parse().map_err(|_| wrong("the first word is not the number of a job"))?;
            let at_us: i64 = at.parse().map_err(|_| wrong("the second word is not a time in microseconds"))?;
            if job >= jobs {
                return Err(wrong(&format!("jobs are numbered from 0 to {}", jobs.saturating_sub(1))));
            }
            Ok(Call { job, at_us })
        };
        text.lines().enumerate().map(call).collect::<Result<_, String>>().map(Report)
    }

    /// Returns how many jobs were called at least once.
    pub(super) fn called(&self) -> u32 {
        self.0.iter().map(|call| call.job).collect::<HashSet<_>>().len() as u32
    }

    /// Returns how many calls came on top of the first one of their job.
    pub(super) fn repeated(&self) -> u32 {
        self.0.len() as u32 - self.called()
    }

    /// Returns the lag of the first call of each job, or `None` without calls.
    pub(super) fn lag(&self, timing: &Timing) -> Option<Lag> {
        let mut first = self.0.clone();
        first.sort_by_key(|call| (call.job, call.at_us));
        first.dedup_by_key(|call| call.job);
        let mut lags: Vec<i64> = first.iter().map(|call| call.at_us - 1_000 * timing.due_ms(call.job)).collect();
        lags.sort_unstable();
        let at = |share: f64| {
            let index = ((lags.len().checked_sub(1)?) as f64 * share).round() as usize;
            Some(lags[index] as f64 / 1e3)
        };
        let early = lags.iter().filter(|lag| **lag < 0).count() as u32;
        Some(Lag { p50: at(0.5)?, p99: at(0.99)?, max: at(1.0)?, early })
    }
}

/// Returns the middle one, or the mean of the two in the middle.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len() % 2 == 1 { upper } else { f64::midpoint(sorted[middle - 1], upper) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: Timing = Timing { base_ms: 10_000, spread_ms: 1_000, jobs: 4 };

    #[test]
    fn a_report_counts_jobs_and_repeated_calls() {
        let report = Report::parse("0 1\n2 5\n0 9\n", 4).unwrap();
        assert_eq!((report.called(), report.repeated()), (2, 1));
        assert_eq!(Report::parse("", 4).unwrap().called(), 0);
    }

    #[test]
    fn a_report_names_the_line_that_is_wrong() {
        for (text, reason) in [
            ("0 1\n1", "line 2 of the report, `1`: not a number and a time"),
            ("x 1", "line 1 of the report, `x 1`: the first word is not the number of a job"),
            ("-1 1", "line 1 of the report, `-1 1`: the first word is not the number of a job"),
            ("1 1.5", "line 1 of the report, `1 1.5`: the second word is not a time in microseconds"),
            ("4 1", "line 1 of the report, `4 1`: jobs are numbered from 0 to 3"),
        ] {
            assert_eq!(Report::parse(text, 4).unwrap_err(), reason);
        }
    }

    #[test]
    fn lag_is_measured_from_the_time_of_each_job() {
        // Due at 10.000, 10.250, 10.500 and 10.750 s.
        let report = Report::parse("3 10751500\n0 10000500\n1 10260000\n2 10499000\n", 4).unwrap();
        let lag = report.lag(&TIMING).unwrap();
        assert_eq!(lag, Lag { p50: 1.5, p99: 10.0, max: 10.0, early: 1 });
    }

    #[test]
    fn a_repeated_call_does_not_count_as_lag() {
        let report = Report::parse("0 99000000\n0 10002000\n", 4).unwrap();
        assert_eq!(report.lag(&TIMING).unwrap().max.to_bits(), 2f64.to_bits());
    }

    #[test]
    fn without_calls_there_is_no_lag() {
        assert_eq!(Report::default().lag(&TIMING), None);
    }

    #[test]
    fn the_median_of_an_even_number_is_between_two() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
