//! [`FrozenSpan`]: a time in which a job does not fire, whichever freezes it follows from.

use jiff::Timestamp;

/// A range of instants `[from, until)` in which a job does not fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrozenSpan {
    /// The first instant.
    pub from: Timestamp,
    /// The first instant after it.
    pub until: Timestamp,
}

impl FrozenSpan {
    /// Whether the instant is in it.
    pub fn contains(&self, at: Timestamp) -> bool {
        self.from <= at && at < self.until
    }
}
