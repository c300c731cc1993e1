//! Stores, clocks and small programs for tests.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use everbell::clock::{BoxFuture, Clock, ClockStep, Host, HostTime, sleep_on};
use everbell::core::store::{AuditEntry, PageRequest, Store, StoreResult};
use everbell::{Builder, Event, EventStream, Everbell, Handler, RunRecord, Schedule, Timestamp};
use everbell_store::memory::MemoryStore;
use everbell_store::testing::TestDatabase;
use jiff::SignedDuration;

/// A store that may need something to live as long as it.
pub(crate) struct Stored {
    pub(crate) store: Arc<dyn Store>,
    _database: Option<TestDatabase>,
}

impl Stored {
    pub(crate) fn memory() -> Stored {
        Stored { store: Arc::new(MemoryStore::new()), _database: None }
    }

    pub(crate) async fn sqlite() -> Stored {
        Stored { store: everbell_store::connect("sqlite::memory:").await.unwrap(), _database: None }
    }

    pub(crate) async fn postgres() -> Stored {
        let database = TestDatabase::create().await;
        Stored { store: everbell_store::connect(database.url()).await.unwrap(), _database: Some(database) }
    }
}

/// A test for each store, of a function that takes a [`Stored`].
macro_rules! on_every_store {
    ($($name:ident),+ $(,)?) => {
        $(mod $name {
            use crate::given::Stored;

            #[tokio::test]
            async fn memory() {
                super::$name(Stored::memory()).await;
            }

            #[tokio::test]
            async fn sqlite() {
                super::$name(Stored::sqlite().await).await;
            }

            #[tokio::test]
            async fn postgres() {
                super::$name(Stored::postgres().await).await;
            }
        })+
    };
}
pub(crate) use on_every_store;

/// A clock that a test moves. It goes on by a millisecond when it is asked, so that everything has its order.
#[derive(Debug)]
pub(crate) struct Manual(Mutex<Timestamp>);

impl Manual {
    pub(crate) fn new(at: &str) -> Arc<Manual> {
        Arc::new(Manual(Mutex::new(time(at))))
    }

    pub(crate) fn set(&self, at: &str) {
        *self.0.lock().unwrap() = time(at);
    }
}

impl Clock for Manual {
    fn now(&self) -> Timestamp {
        let mut now = self.0.lock().unwrap();
        *now += Duration::from_millis(1);
        *now
    }

    fn monotonic(&self) -> Duration {
        Duration::try_from(self.0.lock().unwrap().duration_since(Timestamp::UNIX_EPOCH)).unwrap()
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn anchor<'a>(&'a self, _: &'a dyn Store) -> BoxFuture<'a, StoreResult<Option<ClockStep>>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn host_skew(&self) -> SignedDuration {
        SignedDuration::ZERO
    }
}

/// The clock of the machine: a store in memory has none.
#[derive(Debug, Default)]
pub(crate) struct Real(Host);

impl Clock for Real {
    fn now(&self) -> Timestamp {
        self.0.wall()
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
        Box::pin(sleep_on(&self.0, time))
    }

    fn anchor<'a>(&'a self, _: &'a dyn Store) -> BoxFuture<'a, StoreResult<Option<ClockStep>>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn host_skew(&self) -> SignedDuration {
        SignedDuration::ZERO
    }
}

/// `12:00` is a time of the day on which all tests take place.
pub(crate) fn time(text: &str) -> Timestamp {
    let whole = if text.contains('T') { text.to_owned() } else { format!("2026-11-15T{text}:00Z") };
    whole.parse().unwrap()
}

/// A program on this store, at this time.
pub(crate) fn at(stored: &Stored, clock: &Arc<Manual>) -> Builder {
    Everbell::builder().store(Arc::clone(&stored.store)).clock(Arc::clone(clock) as Arc<dyn Clock>)
}

/// A target that does nothing.
pub(crate) async fn nothing() {}

/// A schedule of the target `nothing`.
pub(crate) fn daily(key: &str) -> Schedule {
    Schedule::cron(key, "0 9 * * *").target("nothing")
}

pub(crate) fn page() -> PageRequest {
    PageRequest { limit: 100, after: None }
}

/// The audit trail, oldest first, as `actor action object reason before after`.
pub(crate) async fn trail(store: &dyn Store) -> Vec<String> {
    let entries = store.list_audit(None, &page()).await.unwrap().items;
    let line = |entry: &AuditEntry| {
        let (reason, before, after) = (&entry.reason, &entry.before, &entry.after);
        let mut line = format!("{} {} {}", entry.actor, entry.action, entry.object);
        line += &reason.as_ref().map_or(String::new(), |reason| format!(" ({reason})"));
        line += &before.as_ref().map_or(String::new(), |before| format!(" {before}"));
        line + &after.as_ref().map_or(String::new(), |after| format!(" -> {after}"))
    };
    entries.iter().rev().map(line).collect()
}

/// The last line of the audit trail.
pub(crate) async fn last_entry(store: &dyn Store) -> String {
    trail(store).await.pop().unwrap()
}

/// Waits for an event that is wanted.
pub(crate) async fn heard(events: &mut EventStream, wanted: impl Fn(&Event) -> bool) -> Arc<Event> {
    let search = async {
        loop {
            let event = events.recv().await.unwrap();
            if wanted(&event) {
                return event;
            }
        }
    };
    within(search).await
}

/// Fails a test that waits in vain.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_mins(1), future).await.expect("it happens within a minute")
}

/// Runs this handler once with this payload, and returns the run.
pub(crate) async fn perform<A: 'static>(handler: impl Handler<A>, payload: impl serde::Serialize) -> RunRecord {
    perform_with(Everbell::builder().target("handler", handler), payload, |schedule| schedule).await
}

pub(crate) async fn perform_with(
    builder: Builder,
    payload: impl serde::Serialize,
    schedule: impl FnOnce(Schedule) -> Schedule,
) -> RunRecord {
    let job = schedule(Schedule::cron("job", "0 0 1 1 *").target("handler").payload(payload));
    let builder = builder.store(Arc::new(MemoryStore::new())).clock(Arc::new(Real::default()));
    let bell = builder.schedule(job).build().await.unwrap();
    let mut events = bell.events();
    let asked = bell.jobs().run_now("job").await.unwrap();
    let ended = async { drop(heard(&mut events, |event| matches!(event, Event::Finished { .. })).await) };
    within(bell.run_until(ended)).await.unwrap();
    bell.runs().get(asked.run().id).await.unwrap()
}
