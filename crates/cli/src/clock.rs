//! The clocks of the machine. Everything else takes the time as an argument.

use jiff::{Timestamp, Unit};

/// The present, in whole seconds: no schedule knows a finer time, and none is shown.
pub fn now() -> Timestamp {
    let now = wall();
    // Rounding to seconds fails for no time that a clock can show.
    now.round(jiff::TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Floor)).unwrap_or(now)
}

/// The present as finely as the machine tells it, for the lines of the log.
#[allow(clippy::disallowed_methods, reason = "the one place of this binary that reads the clock")]
pub fn wall() -> Timestamp {
    Timestamp::now()
}
