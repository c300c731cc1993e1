//! Messages in the outbox, and when they are tried again.

use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::Change;
use super::rule::later;
use crate::ids::alert_id;
use crate::json::Json;
use crate::policy::words;

/// How long an instance may take to send a message before another one tries.
pub const DELIVERY_LEASE: Duration = Duration::from_secs(90);

/// How long a message is tried.
pub const MAX_DELIVERY_AGE: Duration = Duration::from_hours(24);

const FIRST_BACKOFF: Duration = Duration::from_secs(2);
const MAX_BACKOFF: Duration = Duration::from_mins(15);

/// A message for a channel, before it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDelivery {
    /// Stable, for receivers that drop what they have seen. Messages about a problem sort by it in the order of its changes.
    pub id: Uuid,
    /// The problem; `None` for a test.
    pub problem: Option<Uuid>,
    /// The rule; `None` for a test.
    pub rule: Option<String>,
    /// The name of the channel.
    pub channel: String,
    /// The change of the problem.
    pub change: Change,
    /// The message, for programs and people.
    pub message: Json,
    /// When it was written.
    pub created_at: Timestamp,
    /// Not before: quiet hours.
    pub available_at: Timestamp,
}

/// A message for a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The message.
    pub new: NewDelivery,
    /// Whether it was sent.
    pub status: DeliveryStatus,
    /// How many times sending it was tried. The number guards the record of its end.
    pub attempt: u32,
    /// When it may be tried next, while it is pending.
    pub next_attempt_at: Timestamp,
    /// Why the last attempt failed.
    pub error: Option<String>,
    /// When it was delivered or became `dead`.
    pub ended_at: Option<Timestamp>,
}

impl Delivery {
    /// Whether it waited for so long that it is of no use any more: its channel was away, for example.
    pub fn is_too_old(&self, now: Timestamp) -> bool {
        now > later(self.new.available_at, MAX_DELIVERY_AGE)
    }
}

/// Whether a message was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryStatus {
    /// It waits, or is being sent.
    Pending,
    /// The receiver accepted it.
    Delivered,
    /// It was tried for too long.
    Dead,
}

words!(DeliveryStatus { Pending = "pending", Delivered = "delivered", Dead = "dead" });

/// The end of an attempt to send a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryEnd {
    /// The receiver accepted it.
    Delivered,
    /// It failed, and is tried again at this time.
    Retry(Timestamp, String),
    /// It failed for the last time.
    Dead(String),
}

impl DeliveryEnd {
    /// Returns the end of an attempt that failed at `now`. A test is tried once: an operator waits for its result.
    pub fn failed(delivery: &Delivery, error: String, now: Timestamp) -> DeliveryEnd {
        let next = next_attempt_at(delivery.attempt, delivery.new.available_at, now);
        match next.filter(|_| delivery.new.change != Change::Test) {
            Some(at) => DeliveryEnd::Retry(at, error),
            None => DeliveryEnd::Dead(error),
        }
    }
}

/// Returns when a message is tried again whose attempt of this number failed at `now`, or `None` if it was tried for too
/// long: since `available_at`.
pub fn next_attempt_at(attempt: u32, available_at: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let backoff = FIRST_BACKOFF.saturating_mul(1 << attempt.saturating_sub(1).min(20)).min(MAX_BACKOFF);
    let next = later(now, backoff);
    (next <= later(available_at, MAX_DELIVERY_AGE)).then_some(next)
}

/// The id of a test message. `nonce` keeps tests of the same moment apart.
pub fn test_delivery_id(channel: &str, nonce: [u8; 10], at: Timestamp) -> Uuid {
    alert_id(&[b"test", channel.as_bytes(), &nonce], at, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_become_rare_and_end() {
        let begun: Timestamp = "2026-11-15T00:00:00Z".parse().unwrap();
        let (mut now, mut attempt, mut waits) = (begun, 1, Vec::new());
        while let Some(next) = next_attempt_at(attempt, begun, now) {
            waits.push(next.duration_since(now).as_secs());
            (now, attempt) = (next, attempt + 1);
        }
        assert_eq!(waits[..4], [2, 4, 8, 16]);
        assert!(waits.iter().all(|wait| *wait <= 900) && waits.len() < 120, "{} attempts", waits.len());
        assert!(now.duration_since(begun).as_hours() >= 23);
    }
}
