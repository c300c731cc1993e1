//! [`ManualClock`]: time that stands still until a test moves it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use everbell_core::store::{Store, StoreResult};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use crate::clock::{BoxFuture, Clock};

/// A clock that a test moves. It never goes back.
#[derive(Debug)]
pub struct ManualClock {
    now: watch::Sender<Timestamp>,
    sleepers: Arc<Sleepers>,
}

/// How many wait for which time.
#[derive(Debug, Default)]
struct Sleepers(Mutex<BTreeMap<Timestamp, usize>>);

impl Sleepers {
    fn locked(&self) -> MutexGuard<'_, BTreeMap<Timestamp, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One who waits, until it is dropped.
struct Sleeper {
    sleepers: Arc<Sleepers>,
    at: Timestamp,
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let mut sleepers = self.sleepers.locked();
        if let Some(count) = sleepers.get_mut(&self.at) {
            *count -= 1;
            if *count == 0 {
                sleepers.remove(&self.at);
            }
        }
    }
}

impl ManualClock {
    /// Stands at this time.
    pub fn new(now: Timestamp) -> ManualClock {
        ManualClock { now: watch::channel(now).0, sleepers: Arc::default() }
    }

    /// Moves to this time and wakes everybody who waited for it. An earlier time changes nothing.
    pub fn set(&self, to: Timestamp) {
        self.now.send_if_modified(|now| {
            let moves = to > *now;
            *now = to.max(*now);
            moves
        });
    }

    /// The next time that somebody waits for.
    pub fn next_sleeper(&self) -> Option<Timestamp> {
        let now = self.now();
        self.sleepers.locked().range(now..).map(|(at, _)| *at).find(|at| *at > now)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.now.borrow()
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        let mut now = self.now.subscribe();
        *self.sleepers.locked().entry(at).or_default() += 1;
        let sleeper = Sleeper { sleepers: Arc::clone(&self.sleepers), at };
        Box::pin(async move {
            let _waits_as_long_as_this_does = sleeper;
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
        tokio::task::yield_now().await;
        assert_eq!(clock.next_sleeper(), Some(at(20)));
        clock.set(at(19));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.set(at(15));
        assert_eq!(clock.now(), at(19), "never back");
        clock.set(at(25));
        assert_eq!(sleeper.await.unwrap(), at(25));
        assert_eq!(clock.next_sleeper(), None);
        drop(clock.sleep_until(at(30)));
        assert_eq!(clock.next_sleeper(), None, "who is gone does not count");
    }
}
