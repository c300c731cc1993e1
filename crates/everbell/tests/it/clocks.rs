//! A machine with a wrong clock beside one with a right one.

use std::sync::Arc;
use std::time::Duration;

use everbell::clock::{Clock, DatabaseClock, Host, HostTime};
use everbell::{Event, Everbell, PageRequest, RunFilter, Schedule, Timestamp};
use everbell_store::testing::TestDatabase;

/// A machine whose clock is an hour ahead or behind.
#[derive(Debug)]
struct Wrong(Host, i64);

impl HostTime for Wrong {
    fn wall(&self) -> Timestamp {
        self.0.wall() + jiff::SignedDuration::from_hours(self.1)
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }
}

async fn nothing() {}

/// An instance on a machine that is so many hours off.
async fn instance(url: &str, hours: i64) -> Everbell {
    let store = everbell_store::connect(url).await.unwrap();
    let clock = DatabaseClock::start_on(Wrong(Host::default(), hours), &*store).await.unwrap();
    let skew = clock.host_skew().as_secs();
    assert!((skew - hours * 3_600).abs() < 60, "the skew is told: {skew}");
    let ticks = Schedule::cron("ticks", "* * * * * *").target("nothing");
    let builder = Everbell::builder().store(store).clock(Arc::new(clock)).target("nothing", nothing);
    builder.schedule(ticks).build().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_clock_of_a_machine_changes_no_fire_time() {
    let database = TestDatabase::create().await;
    let (ahead, behind) = (instance(database.url(), 1).await, instance(database.url(), -1).await);
    for bell in [&ahead, &behind] {
        let mut events = bell.events();
        let done = async {
            let mut left = 3;
            while left > 0 {
                left -= u32::from(matches!(&*events.recv().await.unwrap(), Event::Finished { .. }));
            }
        };
        bell.run_until(done).await.unwrap();
    }
    let page = PageRequest { limit: 100, after: None };
    let runs = ahead.runs().list(&RunFilter::default(), &page).await.unwrap().items;
    assert!(runs.len() >= 6);
    let now = ahead.store().now().await.unwrap();
    for run in runs {
        let slot = run.slot_at.unwrap();
        let late = run.created_at.duration_since(slot).as_secs();
        assert!((0..60).contains(&late), "{slot} was planned {late} s late");
        assert!(slot <= now && now.duration_since(slot).as_secs() < 120, "{slot} is not now: {now}");
    }
}
