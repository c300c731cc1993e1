//! The deliverer: takes messages from the outbox and sends them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use everbell::Everbell;
use everbell_core::alert::{DELIVERY_LEASE, Delivery, DeliveryEnd};
use everbell_core::store::StoreResult;
use jiff::SignedDuration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tracing::{debug, warn};

use super::channel::{Channel, ChannelSettings};
use crate::targets::Problem;

/// How often the outbox is looked at.
const POLL: Duration = Duration::from_secs(2);
/// The most messages that are sent at once.
const MAX_AT_ONCE: u32 = 8;

pub(super) struct Deliverer {
    bell: Everbell,
    names: Vec<String>,
    channels: Arc<BTreeMap<String, Channel>>,
}

impl Deliverer {
    pub(super) fn new(bell: Everbell, settings: &[ChannelSettings]) -> Result<Deliverer, Problem> {
        let opened = settings.iter().map(|settings| Ok((settings.name.clone(), settings.open()?)));
        let channels: BTreeMap<String, Channel> = opened.collect::<Result<_, Problem>>()?;
        Ok(Deliverer { bell, names: channels.keys().cloned().collect(), channels: Arc::new(channels) })
    }

    /// Sends until it is dropped; what is being sent then is tried again when its lease is over.
    pub(super) async fn run(&self, woken: &Notify) -> Infallible {
        loop {
            match self.step().await {
                // There may be more.
                Ok(sent) if sent > 0 => continue,
                Ok(_) => {}
                Err(error) => warn!(%error, "could not read the outbox of notifications; retrying"),
            }
            let _timeout = tokio::time::timeout(POLL, woken.notified()).await;
        }
    }

    /// Sends what is due, and returns how many messages that were.
    async fn step(&self) -> StoreResult<usize> {
        let now = self.bell.now();
        let lease = now.checked_add(SignedDuration::try_from(DELIVERY_LEASE).unwrap_or_default()).unwrap_or(now);
        let claimed = self.bell.store().claim_deliveries(&self.names, now, lease, MAX_AT_ONCE).await?;
        let count = claimed.len();
        let mut sending = JoinSet::new();
        for delivery in claimed {
            let (bell, channels) = (self.bell.clone(), Arc::clone(&self.channels));
            sending.spawn(async move { deliver(&bell, &channels, delivery).await });
        }
        while let Some(ended) = sending.join_next().await {
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(error)) => warn!(%error, "could not record that a notification was sent; it may be sent again"),
                Err(error) => warn!(%error, "a notification was not sent; it is tried again"),
            }
        }
        Ok(count)
    }
}

async fn deliver(bell: &Everbell, channels: &BTreeMap<String, Channel>, delivery: Delivery) -> StoreResult<()> {
    // Only messages for these channels are taken.
    let Some(channel) = channels.get(&delivery.new.channel) else { return Ok(()) };
    let (id, name) = (delivery.new.id, &delivery.new.channel);
    let end = match channel.send(&delivery, bell.now()).await {
        Ok(()) => {
            debug!(delivery = %id, channel = %name, "notification delivered");
            DeliveryEnd::Delivered
        }
        Err(error) => {
            let end = DeliveryEnd::failed(&delivery, everbell_core::storable_text(&error, 2_000), bell.now());
            if let DeliveryEnd::Retry(at, _) = &end {
                warn!(delivery = %id, channel = %name, "{error}; retrying at {at}");
            } else {
                warn!(delivery = %id, channel = %name, "{error}; the notification is given up");
            }
            end
        }
    };
    bell.store().end_delivery(id, delivery.attempt, &end, bell.now()).await.map(drop)
}
