//! Observers: shown every event when it happens, so that what they count is exact.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use everbell::core::TriggerType;
use everbell::testing::TestBell;
use everbell::{Builder, Event, Everbell, Overlap, Round, Schedule};

use super::given::nothing;

/// The events seen, as words, and how often.
#[derive(Clone, Default)]
struct EventCounts(Arc<Mutex<BTreeMap<String, u64>>>);

impl EventCounts {
    fn note(&self, event: &Event) {
        let (word, times) = match event {
            Event::Fired { skipped: Some(reason), .. } => (format!("skipped {reason}"), 1),
            Event::Fired { slot, .. } => (format!("fired {}", if slot.is_some() { "slot" } else { "by hand" }), 1),
            Event::Gap { gap, .. } => (format!("gap {}", gap.reason), gap.slots),
            Event::Started { run, .. } => (format!("started {}", run.trigger), 1),
            Event::Finished { run, status, .. } => (format!("{status} {}", run.trigger), 1),
            Event::Reaped { info, .. } => (format!("reaped {:?}", info.as_ref().map(|info| info.trigger)), 1),
            Event::Round { round, claimed: Some(claimed), .. } => {
                (format!("claimed {}", round.as_str()), u64::from(*claimed))
            }
            Event::Round { round, claimed: None, .. } => (format!("no {}", round.as_str()), 1),
            _ => return,
        };
        *self.0.lock().unwrap().entry(word).or_default() += times;
    }

    fn times(&self, word: &str) -> u64 {
        self.0.lock().unwrap().get(word).copied().unwrap_or_default()
    }
}

async fn hang(run: everbell::Run) {
    run.canceled().await;
}

fn app() -> (Builder, EventCounts) {
    let seen = EventCounts::default();
    let observer = seen.clone();
    let builder = Everbell::builder().target("nothing", nothing).target("hang", hang);
    (builder.observe(move |event| observer.note(event)), seen)
}

#[tokio::test]
async fn everything_is_seen_also_more_than_a_listener_could_remember() {
    let (app, seen) = app();
    let minutely = Schedule::cron("minutely", "* * * * *").target("nothing");
    let mut test = TestBell::start(app.schedule(minutely), "2027-01-01T00:00:00Z").await;
    let mut listener = test.bell().events();
    test.advance_by(Duration::from_hours(30)).await;
    test.jobs().run_now("minutely").await.unwrap();
    test.drain().await;
    for word in ["fired slot", "started scheduled", "succeeded scheduled"] {
        assert_eq!(seen.times(word), 1_800, "{word}");
    }
    for word in ["fired by hand", "started manual", "succeeded manual"] {
        assert_eq!(seen.times(word), 1, "{word}");
    }
    assert_eq!((seen.times("claimed plan"), seen.times("claimed start")), (1_800, 1_801));
    assert!(listener.recv().await.is_some() && listener.missed() > 0, "that is why there are observers");
}

#[tokio::test]
async fn what_operators_do_to_slots_is_seen() {
    let (app, seen) = app();
    let hourly = Schedule::cron("hourly", "0 * * * *").target("hang").overlap(Overlap::Skip);
    let mut test = TestBell::start(app.schedule(hourly), "2027-01-01T00:30:00Z").await;
    test.jobs().skip_next("hourly", 2).await.unwrap();
    assert_eq!(seen.times("skipped operator"), 2);
    test.jobs().pause("hourly", "maintenance").await.unwrap();
    test.advance_to("2027-01-01T07:30:00Z").await;
    test.jobs().resume("hourly").await.unwrap();
    assert_eq!(seen.times("gap paused"), 5, "03:00 to 07:00");
    test.advance_to("2027-01-01T08:00:00Z").await;
    test.jobs().run_now("hourly").await.unwrap();
    assert_eq!((seen.times("fired slot"), seen.times("skipped overlap")), (1, 1));
}

#[tokio::test]
async fn a_run_that_is_lost_is_seen_with_what_it_was() {
    let (app, seen) = app();
    let daily = Schedule::cron("daily", "0 9 * * *").target("nothing");
    let mut test = TestBell::start(app.schedule(daily), "2027-01-01T00:00:00Z").await;
    test.crash_during("daily").await;
    test.advance_by(Duration::from_mins(5)).await;
    assert_eq!(seen.times(&format!("reaped {:?}", Some(TriggerType::Scheduled))), 1);
}

#[tokio::test]
async fn rounds_tell_when_they_began_and_what_failed() {
    let rounds = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&rounds);
    let builder = Everbell::builder().target("nothing", nothing).observe(move |event| {
        if let Event::Round { round, at, claimed, .. } = event {
            noted.lock().unwrap().push((*round, *at, *claimed));
        }
    });
    let daily = Schedule::cron("daily", "0 9 * * *").target("nothing");
    let mut test = TestBell::start(builder.schedule(daily), "2027-01-01T00:00:00Z").await;
    rounds.lock().unwrap().clear();
    test.advance_to("2027-01-01T09:00:00Z").await;
    let rounds = rounds.lock().unwrap();
    let nine = "2027-01-01T09:00:00Z".parse().unwrap();
    assert!(rounds.contains(&(Round::Plan, nine, Some(1))), "{rounds:?}");
    assert!(rounds.contains(&(Round::Start, nine, Some(1))), "{rounds:?}");
}
