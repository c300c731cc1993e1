//! The precision of times in databases.

use jiff::Timestamp;

/// A time as databases keep it: to the microsecond. What is finer is dropped, towards the past, so that nothing becomes due
/// before its time.
pub fn micros(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_nanosecond().div_euclid(1_000) as i64).unwrap_or(time)
}
