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
use std::sync::Arc;

use everbell::Everbell;
use everbell_core::alert::Rule;
use tokio::sync::{Notify, watch};

pub(crate) use channel::{ChannelKind, ChannelSettings};

use crate::config::Config;
use crate::targets::Problem;
use deliverer::{Channels, Deliverer};
use evaluator::Evaluator;

/// The role of instances that evaluate rules.
pub(crate) const NOTIFIER: &str = "notifier";

/// Channels that are ready to be used, and the rules that use them.
#[derive(Clone)]
pub(crate) struct Notifications {
    channels: Arc<Channels>,
    rules: Vec<Rule>,
    links: message::Links,
}

impl Notifications {
    /// Opens the channels of a configuration. Of a process that does not schedule there are none.
    pub(crate) fn open(config: &Config) -> Result<Notifications, Problem> {
        let schedules = config.server.role.schedules();
        let channels = if schedules { Channels::open(&config.channels)? } else { Channels::default() };
        let links = message::Links { public_url: config.server.public_url.clone() };
        Ok(Notifications { channels: Arc::new(channels), rules: config.rules.clone(), links })
    }
}

/// Evaluates rules and delivers messages until it is dropped, always with the newest settings. Without channels it does
/// nothing at all. Messages that are on their way when the settings change still arrive.
pub(crate) async fn run(bell: &Everbell, mut settings: watch::Receiver<Notifications>) -> Infallible {
    loop {
        let Notifications { channels, rules, links } = settings.borrow_and_update().clone();
        let changed = async {
            if settings.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        if channels.is_empty() {
            changed.await;
            continue;
        }
        let evaluator = Evaluator::new(bell.clone(), rules, links);
        let deliverer = Deliverer::new(bell.clone(), channels);
        let woken = Notify::new();
        let work = async {
            tokio::select! {
                never = evaluator.run(&woken) => match never {},
                () = deliverer.run(&woken, changed) => {}
            }
        };
        work.await;
    }
}

/// Whether this configuration evaluates rules.
pub(crate) fn evaluates(rules: &[Rule]) -> bool {
    !rules.is_empty()
}
