//! [`ManualClock`]: time that stands still until a test moves it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use everbell_core::store::{Store, StoreResult};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use crate::clock::{BoxFuture, Clock, ClockStep, between, later};

/// A clock that a test moves.
#[derive(Debug)]
pub struct ManualClock {
    times: watch::Sender<Times>,
    sleepers: Arc<Sleepers>,
}

/// Both times of the clock.
#[derive(Clone, Copy, Debug)]
struct Times {
    now: Timestamp,
    /// How far the time of day was corrected since the last anchor.
    stepped: SignedDuration,
    /// Since the clock was made.
    monotonic: Duration,
}

/// The number of sleeps until each monotonic time.
#[derive(Debug, Default)]
struct Sleepers(Mutex<BTreeMap<Duration, usize>>);

impl Sleepers {
    fn locked(&self) -> MutexGuard<'_, BTreeMap<Duration, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A pending sleep, until it is dropped.
struct Sleeper {
    sleepers: Arc<Sleepers>,
    until: Duration,
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let mut sleepers = self.sleepers.locked();
        if let Some(count) = sleepers.get_mut(&self.until) {
            *count -= 1;
            if *count == 0 {
                sleepers.remove(&self.until);
            }
        }
    }
}

impl ManualClock {
    /// Creates a clock that stands at this time.
    pub fn new(now: Timestamp) -> ManualClock {
        ManualClock {
            times: watch::channel(Times { now, stepped: SignedDuration::ZERO, monotonic: Duration::ZERO }).0,
            sleepers: Arc::default(),
        }
    }

    /// Lets time pass until this time and wakes every sleep that is over. An earlier time changes nothing.
    pub fn set(&self, to: Timestamp) {
        self.times.send_if_modified(|times| {
            let passed = between(times.now, to);
            (times.now, times.monotonic) = (times.now.max(to), times.monotonic.saturating_add(passed));
            !passed.is_zero()
        });
    }

    /// Corrects the time of day, forward or back, while no time passes. The next anchor notices it.
    pub fn step_to(&self, to: Timestamp) {
        self.times.send_modify(|times| {
            times.stepped = times.stepped.saturating_add(to.duration_since(times.now));
            times.now = to;
        });
    }

    /// Returns the next time at which a sleep is over.
    pub fn next_sleeper(&self) -> Option<Timestamp> {
        let Times { now, monotonic, .. } = *self.times.borrow();
        let until = self.sleepers.locked().range(monotonic..).map(|(until, _)| *until).find(|until| *until > monotonic);
        until.map(|until| later(now, until.saturating_sub(monotonic)))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.times.borrow().now
    }

    fn monotonic(&self) -> Duration {
        self.times.borrow().monotonic
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
        let mut times = self.times.subscribe();
        let until = self.monotonic().saturating_add(time);
        *self.sleepers.locked().entry(until).or_default() += 1;
        let sleeper = Sleeper { sleepers: Arc::clone(&self.sleepers), until };
        Box::pin(async move {
            let _waits_as_long_as_this_does = sleeper;
            // An error means that the clock is gone, and time with it.
            if times.wait_for(|times| times.monotonic >= until).await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }

    fn anchor<'a>(&'a self, _: &'a dyn Store) -> BoxFuture<'a, StoreResult<Option<ClockStep>>> {
        let mut by = SignedDuration::ZERO;
        self.times.send_if_modified(|times| {
            by = std::mem::take(&mut times.stepped);
            false
        });
        Box::pin(async move { Ok(Some(ClockStep { by }).filter(|step| !step.by.is_zero())) })
    }

    fn host_skew(&self) -> SignedDuration {
        SignedDuration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[tokio::test]
    async fn sleepers_wake_when_it_is_time_and_not_before() {
        let clock = Arc::new(ManualClock::new(at(10)));
        clock.sleep(Duration::ZERO).await;
        let sleeper = tokio::spawn({
            let clock = Arc::clone(&clock);
            async move {
                clock.sleep(Duration::from_secs(10)).await;
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
        drop(clock.sleep(Duration::from_secs(5)));
        assert_eq!(clock.next_sleeper(), None, "who is gone does not count");
    }

    #[tokio::test]
    async fn a_corrected_time_of_day_neither_wakes_a_sleeper_nor_holds_it_up() {
        let clock = Arc::new(ManualClock::new(at(1_000)));
        let sleeper = tokio::spawn({
            let clock = Arc::clone(&clock);
            async move { clock.sleep(Duration::from_secs(10)).await }
        });
        tokio::task::yield_now().await;
        clock.step_to(at(90_000));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.step_to(at(10));
        assert_eq!((clock.now(), clock.monotonic()), (at(10), Duration::ZERO));
        assert_eq!(clock.next_sleeper(), Some(at(20)));
        clock.set(at(20));
        sleeper.await.unwrap();
    }
}
