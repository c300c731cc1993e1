//! [`Clock`]: the only source of time.
//!
//! In production time comes from the database: `now` is the database's time at the last anchor plus the monotonic time
//! since. A host clock that is wrong or jumps therefore changes nothing; its error is only reported
//! ([`Clock::host_skew`]). With SQLite the database's time is the host's.
//!
//! ```text
//!   asked ──────────── the database reads its clock ──────────── answered        (monotonic)
//!                                 `time`
//! ```
//!
//! The database read its clock somewhere between the question and the answer, so an anchor bounds how far that clock is
//! ahead of the monotonic one: at least `time - answered`, at most `time - asked`. `now` uses the lower bound, so it is late
//! by a round trip at most and never early, however long the question waited for a connection. Bounds of two anchors that
//! do not meet prove that the database's clock was set in between: a [`ClockStep`]. The clock follows it at once. Only a
//! disagreement of up to [`MAX_HOLD`] is waited for, so that `now` does not go back all the time.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use everbell_core::store::{Store, StoreResult};
use jiff::{SignedDuration, Timestamp};

/// A boxed future, which a trait object can return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A source of the time of day, and of elapsed time.
///
/// [`Clock::now`] is for slots and records. Everything that waits or measures uses [`Clock::sleep`] and
/// [`Clock::monotonic`], which go on whatever happens to the time of day.
pub trait Clock: Debug + Send + Sync {
    /// The current time. It goes back only when the database's clock was set back by more than two seconds.
    fn now(&self) -> Timestamp;

    /// Time since some moment, which only grows and also counts the time in which the machine was suspended. Unlike
    /// [`Clock::now`] it is never corrected.
    fn monotonic(&self) -> Duration;

    /// Resolves when this much monotonic time has passed.
    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()>;

    /// Reads the database's clock, and returns how far it was set since the last anchor.
    fn anchor<'a>(&'a self, store: &'a dyn Store) -> BoxFuture<'a, StoreResult<Option<ClockStep>>>;

    /// How far the host's clock is ahead of this one.
    fn host_skew(&self) -> SignedDuration;
}

/// A step of the database's clock; or another database with another clock answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockStep {
    /// How far it was set forward; negative if it was set back.
    pub by: SignedDuration,
}

/// The clocks of a host. A seam for tests: the real one is [`Host`].
pub trait HostTime: Debug + Send + Sync {
    /// The wall clock, which people set and which may be wrong.
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

/// Waits until `time` has passed on the monotonic clock of the machine. Timers of the runtime stop while the machine is
/// suspended, so the clock is checked every few seconds.
pub async fn sleep_on(host: &impl HostTime, time: Duration) {
    let end = host.monotonic().saturating_add(time);
    loop {
        let left = end.saturating_sub(host.monotonic());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(MAX_SLEEP)).await;
    }
}

/// A clock that is anchored to the database.
#[derive(Debug)]
pub struct DatabaseClock<H = Host> {
    host: H,
    anchor: Mutex<Anchor>,
}

#[derive(Clone, Copy, Debug)]
struct Anchor {
    /// How far the database's clock is ahead of the monotonic clock of the host. `None` before the first answer.
    ahead: Option<Bounds>,
    /// When that was learned, by the monotonic clock.
    monotonic: Duration,
    /// The latest time that was returned.
    last: Timestamp,
}

/// A value that lies somewhere between two others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    low: SignedDuration,
    high: SignedDuration,
}

impl Bounds {
    /// The bounds that an answer proves: the database read its clock between the question and the answer.
    fn from_answer(time: Timestamp, asked: Duration, answered: Duration) -> Bounds {
        let time = time.duration_since(Timestamp::UNIX_EPOCH);
        let since = |monotonic: Duration| time.saturating_sub(signed(monotonic));
        Bounds { low: since(answered), high: since(asked) }
    }

    /// Returns the bounds after a while: two clocks run at slightly different speeds.
    fn widened(self, age: Duration) -> Bounds {
        let drift = signed(MAX_DRIFT_PER_SECOND.saturating_mul(u32::try_from(age.as_secs()).unwrap_or(u32::MAX)));
        Bounds { low: self.low.saturating_sub(drift), high: self.high.saturating_add(drift) }
    }

    /// Returns the intersection, or how far the second lies beyond the first if there is none.
    fn narrowed(self, new: Bounds) -> Result<Bounds, SignedDuration> {
        if new.low > self.high {
            Err(new.low.saturating_sub(self.high))
        } else if new.high < self.low {
            Err(new.high.saturating_sub(self.low))
        } else {
            Ok(Bounds { low: self.low.max(new.low), high: self.high.min(new.high) })
        }
    }
}

/// The drift of two clocks is less than a millisecond per second.
const MAX_DRIFT_PER_SECOND: Duration = Duration::from_millis(1);

/// The largest step back that `now` waits out, and the largest step of any direction that is not reported.
pub const MAX_HOLD: Duration = Duration::from_secs(2);

/// The longest sleep before the clock is checked again.
const MAX_SLEEP: Duration = Duration::from_secs(5);

impl DatabaseClock {
    /// Creates a clock for a store, and anchors it.
    pub async fn start(store: &dyn Store) -> StoreResult<DatabaseClock> {
        DatabaseClock::start_on(Host::default(), store).await
    }
}

impl<H: HostTime> DatabaseClock<H> {
    /// Like [`DatabaseClock::start`], with other clocks of the machine.
    pub async fn start_on(host: H, store: &dyn Store) -> StoreResult<DatabaseClock<H>> {
        let never = Anchor { ahead: None, monotonic: host.monotonic(), last: Timestamp::MIN };
        let clock = DatabaseClock { host, anchor: Mutex::new(never) };
        clock.anchor(store).await?;
        Ok(clock)
    }

    fn locked(&self) -> MutexGuard<'_, Anchor> {
        self.anchor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn signed(time: Duration) -> SignedDuration {
    SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX)
}

/// Returns a duration after `time`, at most the end of time.
pub(crate) fn later(time: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| time.checked_add(by).ok()).unwrap_or(Timestamp::MAX)
}

/// Returns a duration before `time`, at least the beginning of time.
pub(crate) fn earlier(time: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| time.checked_sub(by).ok()).unwrap_or(Timestamp::MIN)
}

/// Returns the duration from `from` to `to`; zero if that is backwards.
pub(crate) fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

impl<H: HostTime> Clock for DatabaseClock<H> {
    fn now(&self) -> Timestamp {
        let monotonic = signed(self.host.monotonic());
        let mut anchor = self.locked();
        let ahead = anchor.ahead.map_or(SignedDuration::ZERO, |ahead| ahead.low);
        let now = Timestamp::UNIX_EPOCH.checked_add(monotonic.saturating_add(ahead)).unwrap_or(Timestamp::MAX);
        if now >= anchor.last || anchor.last.duration_since(now) > signed(MAX_HOLD) {
            anchor.last = now;
        }
        anchor.last
    }

    fn monotonic(&self) -> Duration {
        self.host.monotonic()
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
        Box::pin(sleep_on(&self.host, time))
    }

    fn anchor<'a>(&'a self, store: &'a dyn Store) -> BoxFuture<'a, StoreResult<Option<ClockStep>>> {
        Box::pin(async move {
            let asked = self.host.monotonic();
            let time = store.now().await?;
            let answered = self.host.monotonic();
            let new = Bounds::from_answer(time, asked, answered);
            let mut anchor = self.locked();
            let known = anchor.ahead.map(|known| known.widened(answered.saturating_sub(anchor.monotonic)));
            let (ahead, stepped) = match known.map(|known| known.narrowed(new)) {
                None => (new, None),
                Some(Ok(both)) => (both, None),
                Some(Err(by)) => (new, Some(ClockStep { by }).filter(|step| step.by.unsigned_abs() > MAX_HOLD)),
            };
            (anchor.ahead, anchor.monotonic) = (Some(ahead), answered);
            Ok(stepped)
        })
    }

    fn host_skew(&self) -> SignedDuration {
        self.host.wall().duration_since(self.now())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

    use everbell_store::memory::MemoryStore;

    use super::*;

    /// A machine whose clocks a test sets, in seconds.
    #[derive(Clone, Debug, Default)]
    pub(crate) struct Machine {
        pub(crate) wall: Arc<AtomicI64>,
        pub(crate) monotonic: Arc<AtomicU64>,
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
    async fn small_disagreement_holds_the_clock_until_the_database_has_caught_up() {
        let (clock, machine, store) = clock().await;
        machine.monotonic.store(10, Ordering::Relaxed);
        assert_eq!(clock.now(), at(1_010));
        store.set_now(at(1_008));
        assert_eq!(clock.anchor(&store).await.unwrap(), None);
        assert_eq!(clock.now(), at(1_010));
        machine.monotonic.store(11, Ordering::Relaxed);
        assert_eq!(clock.now(), at(1_010));
        machine.monotonic.store(14, Ordering::Relaxed);
        assert_eq!(clock.now(), at(1_012));
    }

    #[tokio::test]
    async fn clock_follows_a_step_in_either_direction_at_once_and_reports_it() {
        for (to, by) in [(4_600, 3_590), (1_013, 3), (1_007, -3), (10, -1_000), (34_561_000, 34_559_990)] {
            let (clock, machine, store) = clock().await;
            machine.monotonic.store(10, Ordering::Relaxed);
            assert_eq!(clock.now(), at(1_010));
            store.set_now(at(to));
            let step = clock.anchor(&store).await.unwrap().unwrap_or_else(|| panic!("a step of {by} s"));
            let error = (step.by - SignedDuration::from_secs(by)).unsigned_abs();
            assert!(error <= Duration::from_millis(10), "{step:?} is not {by} s, but for what clocks drift in 10 s");
            assert_eq!(clock.now(), at(to));
            assert_eq!(clock.anchor(&store).await.unwrap(), None, "it is reported once");
            machine.monotonic.store(12, Ordering::Relaxed);
            assert_eq!(clock.now(), at(to + 2));
            assert_eq!(clock.monotonic(), Duration::from_secs(12), "no anchor corrects it");
        }
    }

    #[test]
    fn slow_answer_is_never_early_and_still_proves_a_step() {
        let seconds = SignedDuration::from_secs;
        let bounds = |time, asked, answered| {
            Bounds::from_answer(at(time), Duration::from_secs(asked), Duration::from_secs(answered))
        };
        // Asked at 0, answered at 30: the database read its clock at some moment between.
        let slow = bounds(1_000, 0, 30);
        assert_eq!(slow, Bounds { low: seconds(970), high: seconds(1_000) });
        // A quick answer narrows the bounds, and another slow answer does not widen them.
        let quick = slow.narrowed(bounds(1_020, 40, 40)).unwrap();
        assert_eq!(quick, Bounds { low: seconds(980), high: seconds(980) });
        assert_eq!(quick.narrowed(bounds(1_030, 41, 71)), Ok(quick));
        // However slow, an answer from another hour is proof.
        assert_eq!(quick.narrowed(bounds(4_630, 41, 71)), Err(seconds(3_579)));
        assert_eq!(quick.narrowed(bounds(-2_570, 41, 71)), Err(seconds(-3_591)));
        assert_eq!(quick.widened(Duration::from_secs(2_000)), Bounds { low: seconds(978), high: seconds(982) });
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
