//! [`Clock`]: the only source of time.
//!
//! In production time comes from the database: `now` is the database's time at the last anchor plus the monotonic time
//! since. A host clock that is wrong or jumps therefore changes nothing; how far it is off is only told
//! ([`Clock::host_skew`]). With SQLite the database's time is the host's.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use everbell_core::store::{Store, StoreResult};
use jiff::{SignedDuration, Timestamp};

/// A future on the heap: what a trait object can return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What time it is, and how long something takes.
///
/// [`Clock::now`] is for slots and records. Everything that waits or measures uses [`Clock::sleep`] and
/// [`Clock::monotonic`], which go on whatever happens to the time of day.
pub trait Clock: Debug + Send + Sync {
    /// Now. Never goes back.
    fn now(&self) -> Timestamp;

    /// Time since some moment, which only grows and also counts the time in which the machine was suspended. Unlike
    /// [`Clock::now`] it is never corrected.
    fn monotonic(&self) -> Duration;

    /// Resolves when this much monotonic time has passed.
    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()>;

    /// Learns from the database what time it is.
    fn anchor<'a>(&'a self, store: &'a dyn Store) -> BoxFuture<'a, StoreResult<()>>;

    /// How far the host's clock is ahead of this one.
    fn host_skew(&self) -> SignedDuration;
}

/// What a host has to tell about time. A seam for tests: the real one is [`Host`].
pub trait HostTime: Debug + Send + Sync {
    /// What people set, and what may be wrong.
    fn wall(&self) -> Timestamp;

    /// Time since some moment, which only grows, and also while the machine is suspended.
    fn monotonic(&self) -> Duration;
}

/// The clocks of the machine.
#[derive(Debug)]
pub struct Host {
    #[cfg(not(target_os = "linux"))]
    start: std::time::Instant,
}

#[allow(clippy::disallowed_methods, reason = "the one place that reads the clocks of the machine")]
#[cfg_attr(target_os = "linux", allow(clippy::derivable_impls, reason = "not where there is a start to remember"))]
impl Default for Host {
    fn default() -> Self {
        Host {
            #[cfg(not(target_os = "linux"))]
            start: std::time::Instant::now(),
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "the one place that reads the clocks of the machine")]
impl HostTime for Host {
    fn wall(&self) -> Timestamp {
        Timestamp::now()
    }

    #[cfg(target_os = "linux")]
    fn monotonic(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::try_from(time).unwrap_or_default()
    }

    #[cfg(not(target_os = "linux"))]
    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

/// Waits until `time` has passed on the monotonic clock of the machine. Timers of the runtime stand still while the machine
/// is suspended, so the clock is looked at again every few seconds.
pub async fn sleep_on(host: &impl HostTime, time: Duration) {
    let end = host.monotonic().saturating_add(time);
    loop {
        let left = end.saturating_sub(host.monotonic());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LONGEST_SLEEP)).await;
    }
}

/// A clock that is anchored on the database.
#[derive(Debug)]
pub struct DatabaseClock<H = Host> {
    host: H,
    anchor: Mutex<Anchor>,
}

#[derive(Clone, Copy, Debug)]
struct Anchor {
    /// The database's time …
    time: Timestamp,
    /// … at this monotonic time …
    monotonic: Duration,
    /// … or so much earlier or later.
    error: Duration,
    /// The latest time that was told: what comes next is not earlier.
    told: Timestamp,
}

/// How much worse an anchor gets: clocks of machines drift apart by less than a millisecond in a second.
const DRIFT_PER_SECOND: Duration = Duration::from_millis(1);

/// A sleep is not longer than this before the clock is looked at again.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);

impl DatabaseClock {
    /// The clock of a store, anchored.
    pub async fn start(store: &dyn Store) -> StoreResult<DatabaseClock> {
        DatabaseClock::start_on(Host::default(), store).await
    }
}

impl<H: HostTime> DatabaseClock<H> {
    /// The same with other clocks of the machine.
    pub async fn start_on(host: H, store: &dyn Store) -> StoreResult<DatabaseClock<H>> {
        let never = Anchor {
            time: Timestamp::UNIX_EPOCH,
            monotonic: host.monotonic(),
            error: Duration::MAX,
            told: Timestamp::UNIX_EPOCH,
        };
        let clock = DatabaseClock { host, anchor: Mutex::new(never) };
        clock.anchor(store).await?;
        Ok(clock)
    }

    fn locked(&self) -> MutexGuard<'_, Anchor> {
        self.anchor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `time` and a duration later; the end of time if that is beyond it.
pub(crate) fn later(time: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| time.checked_add(by).ok()).unwrap_or(Timestamp::MAX)
}

/// A duration before `time`; the beginning of time if that is before it.
pub(crate) fn earlier(time: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| time.checked_sub(by).ok()).unwrap_or(Timestamp::MIN)
}

/// From `from` to `to`; nothing if that is backwards.
pub(crate) fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

impl<H: HostTime> Clock for DatabaseClock<H> {
    fn now(&self) -> Timestamp {
        let monotonic = self.host.monotonic();
        let mut anchor = self.locked();
        let now = later(anchor.time, monotonic.saturating_sub(anchor.monotonic));
        anchor.told = anchor.told.max(now);
        anchor.told
    }

    fn monotonic(&self) -> Duration {
        self.host.monotonic()
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
        Box::pin(sleep_on(&self.host, time))
    }

    fn anchor<'a>(&'a self, store: &'a dyn Store) -> BoxFuture<'a, StoreResult<()>> {
        Box::pin(async move {
            let asked = self.host.monotonic();
            let time = store.now().await?;
            let answered = self.host.monotonic();
            let error = answered.saturating_sub(asked) / 2;
            let mut anchor = self.locked();
            let age = answered.saturating_sub(anchor.monotonic);
            // An answer that took long says little: the anchor that is there may know better.
            if error <= anchor.error.saturating_add(DRIFT_PER_SECOND.mul_f64(age.as_secs_f64())) {
                *anchor = Anchor { time, monotonic: asked + error, error, told: anchor.told };
            }
            Ok(())
        })
    }

    fn host_skew(&self) -> SignedDuration {
        self.host.wall().duration_since(self.now())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

    use everbell_store::memory::MemoryStore;

    use super::*;

    /// A machine whose clocks a test sets, in seconds.
    #[derive(Clone, Debug, Default)]
    struct Machine {
        wall: Arc<AtomicI64>,
        monotonic: Arc<AtomicU64>,
    }

    impl HostTime for Machine {
        fn wall(&self) -> Timestamp {
            Timestamp::from_second(self.wall.load(Ordering::Relaxed)).unwrap()
        }

        fn monotonic(&self) -> Duration {
            Duration::from_secs(self.monotonic.load(Ordering::Relaxed))
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    async fn clock() -> (DatabaseClock<Machine>, Machine, MemoryStore) {
        let (machine, store) = (Machine::default(), MemoryStore::new());
        store.set_now(at(1_000));
        let clock = DatabaseClock::start_on(machine.clone(), &store).await.unwrap();
        (clock, machine, store)
    }

    #[tokio::test]
    async fn the_wall_clock_of_the_machine_changes_nothing_and_its_skew_is_told() {
        let (clock, machine, _store) = clock().await;
        machine.wall.store(4_600, Ordering::Relaxed);
        machine.monotonic.store(10, Ordering::Relaxed);
        assert_eq!(clock.now(), at(1_010));
        assert_eq!(clock.host_skew(), SignedDuration::from_secs(4_600 - 1_010));
        machine.wall.store(0, Ordering::Relaxed);
        assert_eq!(clock.now(), at(1_010));
    }

    #[tokio::test]
    async fn an_anchor_moves_the_clock_but_never_back() {
        let (clock, machine, store) = clock().await;
        machine.monotonic.store(10, Ordering::Relaxed);
        assert_eq!(clock.now(), at(1_010));
        store.set_now(at(1_007));
        clock.anchor(&store).await.unwrap();
        assert_eq!(clock.now(), at(1_010), "it waits until the database has come so far");
        machine.monotonic.store(12, Ordering::Relaxed);
        assert_eq!(clock.now(), at(1_010));
        machine.monotonic.store(14, Ordering::Relaxed);
        assert_eq!(clock.now(), at(1_011));
        store.set_now(at(2_000));
        clock.anchor(&store).await.unwrap();
        assert_eq!(clock.now(), at(2_000));
        assert_eq!(clock.monotonic(), Duration::from_secs(14), "which is no anchor's business");
    }

    #[tokio::test]
    async fn a_database_that_cannot_be_asked_leaves_the_clock_as_it_is() {
        let (clock, machine, store) = clock().await;
        store.fail_next(everbell_store::memory::FaultPoint::Before);
        assert!(clock.anchor(&store).await.is_err());
        machine.monotonic.store(3, Ordering::Relaxed);
        assert_eq!(clock.now(), at(1_003));
    }
}
