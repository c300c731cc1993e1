//! The counter: counts whole hours of runs, the newest first, so that statistics need not read every run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use everbell_core::store::StoreResult;
use jiff::Timestamp;
use tokio::sync::Notify;
use tracing::{debug, warn};

use super::{Shared, Step, Wait};
use crate::clock::earlier;

/// How long after the start the first hour is counted.
const FIRST_COUNT_AFTER: Duration = Duration::from_mins(1);
/// The pause between two hours, in which others get at the database.
const HOUR_PAUSE: Duration = Duration::from_millis(200);
/// How often to look when every hour is counted.
const COUNT_INTERVAL: Duration = Duration::from_mins(5);
/// How long an hour is left alone that could not be counted.
const POSTPONED_FOR: Duration = Duration::from_hours(1);

#[derive(Debug)]
pub(crate) struct Counter {
    shared: Arc<Shared>,
    begun: bool,
    /// Hours that could not be counted, and when that was, by the monotonic clock.
    postponed: BTreeMap<Timestamp, Duration>,
}

impl Counter {
    pub(super) fn new(shared: &Arc<Shared>) -> Counter {
        Counter { shared: Arc::clone(shared), begun: false, postponed: BTreeMap::new() }
    }
}

impl Step for Counter {
    const NAME: &'static str = "counter";

    async fn step(&mut self) -> StoreResult<Wait> {
        if !std::mem::replace(&mut self.begun, true) {
            return Ok(Wait::For(FIRST_COUNT_AFTER));
        }
        let Shared { store, clock, options, .. } = &*self.shared;
        let mut progress = store.counting_progress().await?;
        let (now, monotonic) = (self.shared.now(), clock.monotonic());
        self.postponed.retain(|_, since| monotonic.saturating_sub(*since) < POSTPONED_FOR);
        progress.counted.extend(self.postponed.keys().map(|hour| (*hour, now)));
        let kept_since = options.retention.map_or(Timestamp::MIN, |retention| earlier(now, retention));
        let Some(hour) = progress.next_hour(now, kept_since) else { return Ok(Wait::For(COUNT_INTERVAL)) };
        match store.count_hour(&hour, now).await {
            Ok(counted) => debug!(hour = %hour.hour, counted, "counted the runs of an hour"),
            // One hour that takes too long does not keep the others from being counted. If the database is away, the next
            // step fails as a whole.
            Err(error) => {
                warn!(hour = %hour.hour, %error, "cannot count the runs of an hour; trying again in an hour");
                self.postponed.insert(hour.hour, monotonic);
            }
        }
        Ok(Wait::For(HOUR_PAUSE))
    }

    fn signal(_: &Shared) -> Option<&Notify> {
        None
    }
}
