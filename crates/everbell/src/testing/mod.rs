//! Tests without waiting: a clock that a test moves.

mod clock;

pub use clock::ManualClock;
