//! The clock of the machine. Everything else takes the time as an argument.

use jiff::{Timestamp, Unit};

/// The current time in whole seconds, which is the precision of schedules.
pub fn now() -> Timestamp {
    let now = wall();
    // Rounding to seconds fails for no time that a clock can show.
    now.round(jiff::TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Floor)).unwrap_or(now)
}

/// The current time with the precision of the machine, for the lines of the log.
#[allow(clippy::disallowed_methods, reason = "the one place of this binary that reads the clock")]
pub fn wall() -> Timestamp {
    Timestamp::now()
}
