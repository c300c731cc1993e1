//! [`ManualClock`]: time that stands still until a test moves it.

use everbell_core::store::{Store, StoreResult};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use crate::clock::{BoxFuture, Clock};

/// A clock that a test moves. It never goes back.
#[derive(Debug)]
pub struct ManualClock {
    now: watch::Sender<Timestamp>,
}

impl ManualClock {
    /// Stands at this time.
    pub fn new(now: Timestamp) -> ManualClock {
        ManualClock { now: watch::channel(now).0 }
    }

    /// Moves to this time and wakes everybody who waited for it. An earlier time changes nothing.
    pub fn set(&self, to: Timestamp) {
        self.now.send_if_modified(|now| {
            let moves = to > *now;
            *now = to.max(*now);
            moves
        });
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.now.borrow()
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        let mut now = self.now.subscribe();
        Box::pin(async move {
            // An error means that the clock is gone, and time with it.
            if now.wait_for(|now| *now >= at).await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }

    fn anchor<'a>(&'a self, _: &'a dyn Store) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(async { Ok(()) })
    }

    fn host_skew(&self) -> SignedDuration {
        SignedDuration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn sleepers_wake_when_it_is_time_and_not_before() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let clock = Arc::new(ManualClock::new(at(10)));
        clock.sleep_until(at(10)).await;
        let sleeper = tokio::spawn({
            let clock = Arc::clone(&clock);
            async move {
                clock.sleep_until(at(20)).await;
                clock.now()
            }
        });
        clock.set(at(19));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.set(at(15));
        assert_eq!(clock.now(), at(19), "never back");
        clock.set(at(25));
        assert_eq!(sleeper.await.unwrap(), at(25));
    }
}
