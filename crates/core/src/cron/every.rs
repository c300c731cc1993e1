//! `@every 90s`: a fixed rate, anchored, so that it never drifts.

use std::fmt;

const UNITS: [(char, u64); 5] = [('w', 604_800), ('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];
const MAX_SECONDS: u64 = 366 * 86_400;

/// A fixed interval in whole seconds, from 1 s to 366 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Every(u32);

impl Every {
    pub(crate) fn new(seconds: u64) -> Option<Every> {
        (1..=MAX_SECONDS).contains(&seconds).then_some(Every(seconds as u32))
    }

    /// Reads `1h30m`: whole numbers with units, the larger unit first, each at most once.
    pub(crate) fn parse(text: &str) -> Option<Every> {
        let mut rest = text;
        let mut units = UNITS.as_slice();
        let mut seconds = 0_u64;
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 || digits > 9 {
                return None;
            }
            let count: u64 = rest[..digits].parse().ok()?;
            let unit = rest[digits..].chars().next()?.to_ascii_lowercase();
            let place = units.iter().position(|(name, _)| *name == unit)?;
            seconds += count * units[place].1;
            units = &units[place + 1..];
            rest = &rest[digits + 1..];
        }
        Every::new(seconds)
    }

    pub(crate) fn seconds(self) -> i64 {
        i64::from(self.0)
    }

    /// The first `anchor + n * interval` (n >= 0) at or after `second`.
    pub(crate) fn at_or_after(self, anchor: i64, second: i64) -> i64 {
        if second <= anchor {
            return anchor;
        }
        let step = self.seconds();
        anchor + (second - anchor + step - 1).div_euclid(step) * step
    }

    /// The last `anchor + n * interval` (n >= 0) at or before `second`.
    pub(crate) fn at_or_before(self, anchor: i64, second: i64) -> Option<i64> {
        (second >= anchor).then(|| anchor + (second - anchor).div_euclid(self.seconds()) * self.seconds())
    }
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = u64::from(self.0);
        // Weeks are understood but not written: `10d` reads better than `1w3d`.
        for (unit, seconds) in &UNITS[1..] {
            if rest >= *seconds {
                write!(f, "{}{unit}", rest / seconds)?;
                rest %= seconds;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Every;

    #[test]
    fn durations_are_read_and_written() {
        for (text, seconds, written) in [
            ("90s", 90, "1m30s"),
            ("5m", 300, "5m"),
            ("1H30m", 5_400, "1h30m"),
            ("2w", 1_209_600, "14d"),
            ("1d1s", 86_401, "1d1s"),
            ("366d", 31_622_400, "366d"),
        ] {
            let every = Every::parse(text).unwrap();
            assert_eq!((every.seconds(), every.to_string().as_str()), (seconds, written), "{text}");
        }
        for bad in
            ["", "s", "0s", "90", "-5s", "1.5h", "5s5s", "5s1m", "367d", "99999999999s", "1ms", "5µ", "1h 30m", "500ms"]
        {
            assert_eq!(Every::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_rate_is_anchored() {
        let every = Every::parse("90s").unwrap();
        assert_eq!(every.at_or_after(1_000, 0), 1_000);
        assert_eq!(every.at_or_after(1_000, 1_001), 1_090);
        assert_eq!(every.at_or_after(1_000, 1_090), 1_090);
        assert_eq!(every.at_or_before(1_000, 1_179), Some(1_090));
        assert_eq!(every.at_or_before(1_000, 999), None);
    }
}
