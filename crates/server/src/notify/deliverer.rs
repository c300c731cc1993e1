//! The deliverer: takes messages from the outbox and sends them.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use everbell::Everbell;
use everbell_core::alert::{DELIVERY_LEASE, Delivery, DeliveryEnd};
use everbell_core::store::StoreResult;
use jiff::SignedDuration;
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};
use tracing::{debug, warn};

use super::channel::{Channel, ChannelSettings};
use crate::targets::Problem;

/// How often the outbox is looked at.
const POLL: Duration = Duration::from_secs(2);
/// The most messages that are claimed at once.
const MAX_AT_ONCE: u32 = 8;

pub(super) struct Deliverer {
    bell: Everbell,
    channels: Arc<Channels>,
}

/// Open channels by their names.
#[derive(Default)]
pub(super) struct Channels(BTreeMap<String, Arc<Sender>>);

/// A channel, and whether messages are being sent through it.
struct Sender {
    channel: Channel,
    /// More messages than this at once become a summary.
    summarize: Option<usize>,
    busy: AtomicUsize,
}

/// A message on its way. Its channel takes no others until all that were claimed with it have ended.
struct OnItsWay(Arc<Sender>);

impl OnItsWay {
    fn new(sender: &Arc<Sender>) -> OnItsWay {
        sender.busy.fetch_add(1, Ordering::SeqCst);
        OnItsWay(Arc::clone(sender))
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Channels {
    /// Opens all channels, or returns the first problem.
    pub(super) fn open(settings: &[ChannelSettings]) -> Result<Channels, Problem> {
        let opened = settings.iter().map(|settings| {
            let sender = Sender { channel: settings.open()?, summarize: settings.limit(), busy: AtomicUsize::new(0) };
            Ok((settings.name.clone(), Arc::new(sender)))
        });
        Ok(Channels(opened.collect::<Result<_, Problem>>()?))
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// The channels with summaries, and the most messages that they get at once.
    pub(super) fn limits(&self) -> BTreeMap<String, usize> {
        let limit = |(name, sender): (&String, &Arc<Sender>)| Some((name.clone(), sender.summarize?));
        self.0.iter().filter_map(limit).collect()
    }
}

impl Deliverer {
    pub(super) fn new(bell: Everbell, channels: Arc<Channels>) -> Deliverer {
        Deliverer { bell, channels }
    }

    /// Sends until `replaced` resolves; what is being sent then still arrives. If it is dropped, what is being sent is tried
    /// again when its lease is over.
    pub(super) async fn run(&self, woken: &Notify, replaced: impl Future<Output = ()>) {
        let mut replaced = pin!(replaced);
        let mut sending = JoinSet::new();
        loop {
            match self.step(&mut sending).await {
                // There may be more, for others.
                Ok(claimed) if claimed > 0 => continue,
                Ok(_) => {}
                Err(error) => warn!(%error, "could not read the outbox of notifications; retrying"),
            }
            tokio::select! {
                Some(ended) = sending.join_next() => report(ended),
                () = woken.notified() => {}
                () = tokio::time::sleep(POLL) => {}
                () = &mut replaced => break,
            }
        }
        tokio::spawn(async move {
            while let Some(ended) = sending.join_next().await {
                report(ended);
            }
        });
    }

    /// Begins to send what is due through channels that have nothing to do, and returns how many messages that are: one
    /// that does not answer delays no other.
    async fn step(&self, sending: &mut JoinSet<StoreResult<()>>) -> StoreResult<usize> {
        let is_free = |sender: &Arc<Sender>| sender.busy.load(Ordering::SeqCst) == 0;
        let free = self.channels.0.iter().filter(|(_, sender)| is_free(sender)).map(|(name, _)| name.clone());
        let free: Vec<String> = free.collect();
        if free.is_empty() {
            return Ok(0);
        }
        let now = self.bell.now();
        let lease = now.checked_add(SignedDuration::try_from(DELIVERY_LEASE).unwrap_or_default()).unwrap_or(now);
        let claimed = self.bell.store().claim_deliveries(&free, now, lease, MAX_AT_ONCE).await?;
        let count = claimed.len();
        for delivery in claimed {
            // Only messages for these channels are taken.
            let Some(sender) = self.channels.0.get(&delivery.new.channel) else { continue };
            let (bell, on_its_way) = (self.bell.clone(), OnItsWay::new(sender));
            sending.spawn(async move { deliver(&bell, &on_its_way.0.channel, delivery).await });
        }
        Ok(count)
    }
}

fn report(ended: Result<StoreResult<()>, JoinError>) {
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => warn!(%error, "could not record that a notification was sent; it may be sent again"),
        Err(error) => warn!(%error, "a notification was not sent; it is tried again"),
    }
}

async fn deliver(bell: &Everbell, channel: &Channel, delivery: Delivery) -> StoreResult<()> {
    let (id, name) = (delivery.new.id, &delivery.new.channel);
    let sent = if delivery.is_too_old(bell.now()) {
        Err("it could not be sent for a day".to_owned())
    } else {
        channel.send(&delivery, bell.now()).await
    };
    let end = match sent {
        Ok(()) => {
            debug!(delivery = %id, channel = %name, "notification delivered");
            DeliveryEnd::Delivered
        }
        Err(error) => {
            let end = DeliveryEnd::failed(&delivery, everbell_core::storable_text(&error, 2_000), bell.now());
            if let DeliveryEnd::Retry(at, _) = &end {
                warn!(delivery = %id, channel = %name, "{error}; retrying at {at}");
            } else {
                warn!(delivery = %id, channel = %name, "{error}; giving up on the notification");
            }
            end
        }
    };
    bell.store().end_delivery(id, delivery.attempt, &end, bell.now()).await.map(drop)
}
