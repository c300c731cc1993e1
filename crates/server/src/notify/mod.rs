//! Notifications: an evaluator that looks for problems, and a deliverer that sends messages about them.
//!
//! ```text
//!   evaluator   reads facts -> core::alert::decide -> store.write_alerts: problems and messages, in one transaction
//!   outbox      rows of the database: they outlive this process
//!   deliverer   store.claim_deliveries -> channel -> store.end_delivery: delivered, tried again, or given up
//! ```
//!
//! Every scheduler with rules could evaluate; the one that started last does, because it has the newest rules. Should two
//! do so at once, the store accepts one decision. Every scheduler with the channel delivers.
//!
//! **What can be missed.** The evaluator looks every five seconds at states, and at runs that failed since its last look. A
//! series of failures that a rule with `after` above 1 waits for is missed if it begins and ends between two looks. So is
//! a failure of a run that had been planned more than ten minutes before its end, if its job succeeds before the next look.

mod channel;
mod deliverer;
mod evaluator;
mod facts;
mod message;
mod program;

use std::convert::Infallible;

use everbell::Everbell;
use everbell_core::alert::Rule;

pub(crate) use channel::{ChannelKind, ChannelSettings};

use crate::targets::Problem;
use deliverer::Deliverer;
use evaluator::Evaluator;

/// The role of instances that evaluate rules.
pub(crate) const NOTIFIER: &str = "notifier";

/// Evaluates rules and delivers messages until it is dropped. Without channels it does nothing at all.
pub(crate) async fn run(
    bell: &Everbell,
    channels: &[ChannelSettings],
    rules: &[Rule],
    public_url: Option<&str>,
) -> Result<Infallible, Problem> {
    if channels.is_empty() {
        return std::future::pending().await;
    }
    let links = message::Links { public_url: public_url.map(str::to_owned) };
    let evaluator = Evaluator::new(bell.clone(), rules.to_vec(), links);
    let deliverer = Deliverer::new(bell.clone(), channels)?;
    let woken = tokio::sync::Notify::new();
    tokio::select! {
        never = evaluator.run(&woken) => match never {},
        never = deliverer.run(&woken) => match never {},
    }
}

/// Whether this configuration evaluates rules.
pub(crate) fn evaluates(rules: &[Rule]) -> bool {
    !rules.is_empty()
}
