//! Axes: where ticks stand so that people can read them.

mod time;

pub(super) use time::times;

use super::svg::real;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Steps between ticks of spans, in milliseconds.
const STEPS: [i64; 28] = [
    1,
    2,
    5,
    10,
    20,
    50,
    100,
    200,
    500,
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    20 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    20 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    10 * DAY,
    100 * DAY,
];

/// Ticks of a scale that multiplies.
const POWERS: [i64; 13] =
    [1, 10, 100, SECOND, 10 * SECOND, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 10 * DAY, 100 * DAY, 1_000 * DAY];

/// Steps of a scale that adds, at the most.
const INTERVALS: i64 = 4;

/// Ticks of a scale that multiplies, at the most; the first stands at the bottom.
const POWERS_SHOWN: usize = 6;

/// From this ratio of the longest to the shortest on, a scale multiplies.
const WIDE: i64 = 50;

/// From this ratio of the longest to the median on, too.
const FAR: i64 = 8;

/// Ticks from zero to the first that is not below `most`.
pub(super) fn counts(most: u64) -> Vec<u64> {
    let most = most.max(1);
    let step = (0..20)
        .flat_map(|power| [1, 2, 5].map(|digit: u64| digit.saturating_mul(10_u64.saturating_pow(power))))
        .find(|step| most.div_ceil(*step) <= INTERVALS as u64)
        .unwrap_or(most);
    (0..=most.div_ceil(step)).map(|index| index.saturating_mul(step)).collect()
}

/// How spans of time become heights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// Adds, from zero.
    Linear { step: i64, top: i64 },
    /// Multiplies: what is shorter than the bottom stands on it.
    Log { bottom: i64, top: i64 },
}

impl Scale {
    /// The scale that shows these spans in milliseconds best.
    pub(super) fn from_spans(spans: impl IntoIterator<Item = i64>) -> Scale {
        let mut spans: Vec<i64> = spans.into_iter().map(|span| span.max(1)).collect();
        spans.sort_unstable();
        let (shortest, longest) = (spans.first().copied().unwrap_or(1), spans.last().copied().unwrap_or(1));
        let median = spans.get(spans.len() / 2).copied().unwrap_or(1);
        // One run that took far longer than the others would press them onto the ground.
        if longest / shortest < WIDE && longest / median < FAR {
            return Scale::linear(longest);
        }
        let bottom = POWERS.iter().rev().find(|power| **power <= shortest).copied().unwrap_or(1);
        let top = POWERS.iter().find(|power| **power >= longest).copied().unwrap_or(longest);
        Scale::Log { bottom, top }
    }

    /// Adds up to this span at least.
    fn linear(longest: i64) -> Scale {
        let step = STEPS.into_iter().find(|step| steps(longest, *step) <= INTERVALS);
        let step = step.unwrap_or(longest / INTERVALS + 1);
        Scale::Linear { step, top: step.saturating_mul(steps(longest, step)) }
    }

    /// Where a span stands, from 0 at the bottom to 1 at the top.
    pub(super) fn position(self, millis: i64) -> f64 {
        let share = match self {
            Scale::Linear { top, .. } => real(millis) / real(top),
            Scale::Log { bottom, top } => {
                (real(millis.max(bottom)) / real(bottom)).ln() / (real(top) / real(bottom)).ln()
            }
        };
        share.clamp(0.0, 1.0)
    }

    pub(super) fn ticks(self) -> Vec<i64> {
        match self {
            Scale::Linear { step, top } => (0..=top / step).map(|index| index * step).collect(),
            Scale::Log { bottom, top } => {
                let between: Vec<i64> = POWERS.into_iter().filter(|power| (bottom..=top).contains(power)).collect();
                let every = between.len().div_ceil(POWERS_SHOWN);
                between.into_iter().step_by(every).collect()
            }
        }
    }

    /// Whether a span is on the scale at all.
    pub(super) fn holds(self, millis: i64) -> bool {
        match self {
            Scale::Linear { top, .. } => (0..=top).contains(&millis),
            Scale::Log { bottom, top } => (bottom..=top).contains(&millis),
        }
    }
}

/// How many steps it takes to get as far as `longest`; both are positive.
const fn steps(longest: i64, step: i64) -> i64 {
    (longest - 1) / step + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_counts_are_whole_and_few() {
        assert_eq!(counts(0), [0, 1]);
        assert_eq!(counts(1), [0, 1]);
        assert_eq!(counts(3), [0, 1, 2, 3]);
        assert_eq!(counts(5), [0, 2, 4, 6]);
        assert_eq!(counts(42), [0, 20, 40, 60]);
        assert_eq!(counts(4_812), [0, 2_000, 4_000, 6_000]);
        for most in (0..2_000).chain([u64::MAX / 2, u64::MAX]) {
            let ticks = counts(most);
            assert!((2..=5).contains(&ticks.len()) && ticks.last() >= Some(&most), "{most}: {ticks:?}");
        }
    }

    #[test]
    fn spans_of_one_size_are_added() {
        let scale = Scale::from_spans([1_200, 2_300, 2_100]);
        assert_eq!(scale, Scale::Linear { step: 1_000, top: 3_000 });
        assert_eq!(scale.ticks(), [0, 1_000, 2_000, 3_000]);
        assert!((scale.position(1_500) - 0.5).abs() < 1e-9);
        assert!(scale.holds(3_000) && !scale.holds(3_001));
    }

    #[test]
    fn spans_of_many_sizes_are_multiplied() {
        let scale = Scale::from_spans([12, 900, 45_000]);
        assert_eq!(scale, Scale::Log { bottom: 10, top: 60_000 });
        assert_eq!(scale.ticks(), [10, 100, 1_000, 10_000, 60_000]);
        assert!(scale.position(10).abs() < 1e-9 && (scale.position(60_000) - 1.0).abs() < 1e-9);
        assert!(scale.position(100) < scale.position(1_000));
        assert_eq!(Scale::from_spans([1, 40 * DAY]).ticks(), [1, 100, 10 * SECOND, 10 * MINUTE, 6 * HOUR, 10 * DAY]);
    }

    #[test]
    fn every_span_has_a_place() {
        for spans in
            [vec![], vec![0], vec![0, 0], vec![-5, 3], vec![7; 9], vec![i64::MIN, 0, 1, i64::MAX], vec![i64::MAX]]
        {
            let scale = Scale::from_spans(spans.iter().copied());
            for span in spans.into_iter().chain([i64::MIN, -1, 0, 1, i64::MAX]) {
                let position = scale.position(span);
                assert!((0.0..=1.0).contains(&position), "{scale:?} {span} {position}");
            }
            assert!((2..=6).contains(&scale.ticks().len()), "{scale:?}");
        }
    }
}
