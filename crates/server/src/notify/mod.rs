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

mod abandon;
mod channel;
mod deliverer;
mod email;
mod evaluator;
mod facts;
mod message;
mod orgs;
mod program;
mod summary;
mod timing;

use std::convert::Infallible;
use std::sync::Arc;

use everbell::Everbell;
use everbell_core::alert::Rule;
use everbell_core::store::Instance;
use tokio::sync::{Notify, watch};

pub(crate) use channel::{ChannelKind, ChannelSettings};
pub(crate) use email::{EmailSettings, Encryption};

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
    /// Whether this process schedules. The channels of other processes are unknown.
    schedules: bool,
}

impl Notifications {
    /// Opens the channels of a configuration. Of a process that does not schedule there are none.
    pub(crate) fn open(
        schedules: bool,
        channels: &[ChannelSettings],
        rules: &[Rule],
        public_url: Option<&str>,
    ) -> Result<Notifications, Problem> {
        let channels = if schedules { Channels::open(channels)? } else { Channels::default() };
        let links = message::Links { public_url: public_url.map(str::to_owned) };
        Ok(Notifications { channels: Arc::new(channels), rules: rules.to_vec(), links, schedules })
    }
}

/// Evaluates rules and delivers messages until it is dropped, always with the newest settings. Without channels it does
/// nothing at all. Messages that are on their way when the settings change still arrive.
pub(crate) async fn run(bell: &Everbell, mut settings: watch::Receiver<Notifications>) -> Infallible {
    loop {
        let Notifications { channels, rules, links, schedules } = settings.borrow_and_update().clone();
        let changed = async {
            if settings.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        if !schedules {
            changed.await;
            continue;
        }
        let names = channels.names();
        let evaluator = Evaluator::new(bell.clone(), rules, channels.limits(), links);
        let deliverer = Deliverer::new(bell.clone(), channels);
        let woken = Notify::new();
        let work = async {
            tokio::select! {
                never = evaluator.run(&woken) => match never {},
                never = abandon::run(bell, &names) => match never {},
                () = deliverer.run(&woken, changed) => {}
            }
        };
        work.await;
    }
}

/// Whether this instance evaluates: of all that could, the one that started last, which has the newest rules. `None` if none
/// could.
fn is_elected(bell: &Everbell, instances: &[Instance]) -> Option<bool> {
    let since = bell.alive_since();
    let is_candidate =
        |instance: &&Instance| instance.heartbeat_at >= since && instance.roles.iter().any(|role| role == NOTIFIER);
    let newest = instances.iter().filter(is_candidate).max_by_key(|instance| (instance.started_at, instance.id))?;
    Some(newest.pid == std::process::id() && newest.host == bell.options().host)
}

/// Whether this configuration evaluates rules.
pub(crate) fn evaluates(rules: &[Rule]) -> bool {
    !rules.is_empty()
}
