//! Hours are counted newest first, each twice, and a window says honestly what it has.

use std::collections::BTreeSet;

use everbell_core::counting::{
    COUNT_DELAY, COUNTER_RETENTION, CountingProgress, HourToCount, MAX_LIVE_HOURS, RECOUNT_DELAY, hour_of,
};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

fn at(text: &str) -> Timestamp {
    format!("2026-11-{text}:00Z").parse().unwrap()
}

const HOUR: i64 = 3_600;

/// Counts until nothing is left to do, and returns the hours in their order.
fn count_all(progress: &mut CountingProgress, now: Timestamp, kept_since: Timestamp) -> Vec<HourToCount> {
    let mut counted = Vec::new();
    while let Some(hour) = progress.next_hour(now, kept_since) {
        assert_eq!(hour.counted_at, progress.counted.get(&hour.hour).copied());
        progress.counted.insert(hour.hour, now);
        counted.push(hour);
        assert!(counted.len() < 20_000, "it ends");
    }
    counted
}

fn progress(oldest: &str) -> CountingProgress {
    CountingProgress { oldest: Some(at(oldest)), ..CountingProgress::default() }
}

#[test]
fn an_upgraded_database_is_counted_from_the_newest_hour_back() {
    let mut progress = progress("15T01:20");
    let hours: Vec<_> = count_all(&mut progress, at("15T05:04"), Timestamp::MIN).iter().map(|hour| hour.hour).collect();
    assert_eq!(hours, [at("15T03:00"), at("15T02:00"), at("15T01:00")]);
    let next = progress.next_hour(at("15T05:05"), Timestamp::MIN).unwrap();
    assert_eq!((next.hour, next.end(), next.counted_at), (at("15T04:00"), at("15T05:00"), None));
}

#[test]
fn an_hour_is_counted_again_after_26_hours_and_never_a_third_time() {
    let mut progress = progress("15T01:20");
    count_all(&mut progress, at("15T02:10"), Timestamp::MIN);
    count_all(&mut progress, at("16T03:59"), Timestamp::MIN);
    assert_eq!(progress.counted[&at("15T01:00")], at("15T02:10"));
    count_all(&mut progress, at("16T04:00"), Timestamp::MIN);
    assert_eq!(progress.counted[&at("15T01:00")], at("16T04:00"));
    count_all(&mut progress, at("20T04:00"), Timestamp::MIN);
    assert_eq!(progress.counted[&at("15T01:00")], at("16T04:00"));
}

#[test]
fn hours_that_lost_runs_to_the_retention_stay_as_they_are() {
    let mut progress = progress("15T01:20");
    count_all(&mut progress, at("15T02:10"), Timestamp::MIN);
    let again = count_all(&mut progress, at("16T12:00"), at("16T00:30"));
    assert_eq!(again.last().map(|hour| hour.hour), Some(at("16T01:00")), "the first whole hour that is kept");
    assert_eq!(progress.counted[&at("15T01:00")], at("15T02:10"));
}

#[test]
fn a_clock_that_was_ahead_counts_for_nothing() {
    let mut progress = progress("15T01:20");
    count_all(&mut progress, at("15T20:10"), Timestamp::MIN);
    assert_eq!(progress.window(at("15T00:00"), at("15T03:30")).live_from, at("15T01:00"), "counted at a time ahead");
    let hours = count_all(&mut progress, at("15T03:30"), Timestamp::MIN);
    assert_eq!(hours[0], HourToCount { hour: at("15T02:00"), counted_at: Some(at("15T20:10")) });
    assert_eq!(progress.window(at("15T00:00"), at("15T03:30")).live_from, at("15T03:00"));
}

#[test]
fn a_window_says_since_when_everything_is_counted() {
    let now = at("15T12:30");
    let mut progress = progress("10T00:00");
    let window = progress.window(at("14T12:30"), now);
    assert_eq!((window.from, window.live_from), (at("14T12:00"), at("15T10:00")), "three hours from the runs");
    assert_eq!((window.counted_since, window.complete), (at("15T10:00"), false));
    for hour in ["15T11:00", "15T10:00", "15T09:00"] {
        progress.counted.insert(at(hour), now);
    }
    let window = progress.window(at("14T12:30"), now);
    assert_eq!((window.live_from, window.counted_since, window.complete), (at("15T12:00"), at("15T09:00"), false));
    count_all(&mut progress, now, Timestamp::MIN);
    let window = progress.window(at("14T12:30"), now);
    assert_eq!((window.counted_since, window.complete), (at("14T12:00"), true));
    // The retention deletes runs, and the counters stay.
    progress.oldest = Some(at("15T11:30"));
    let window = progress.window(at("14T12:30"), now);
    assert_eq!((window.counted_since, window.complete), (at("14T12:00"), true));
    assert!(CountingProgress::default().window(at("14T12:30"), now).complete, "there is nothing");
}

proptest! {
    #[test]
    fn every_hour_of_history_is_counted_at_its_time(
        oldest in 0_i64..300 * HOUR, now in 0_i64..400 * HOUR, kept in 0_i64..400 * HOUR, steps in 1_usize..8,
    ) {
        let second = |second: i64| Timestamp::from_second(1_790_000_000 + second).unwrap();
        let (oldest, kept_since) = (second(oldest), second(now - kept));
        let mut progress = CountingProgress { oldest: Some(oldest), ..CountingProgress::default() };
        for step in 0..steps {
            let now = second(now + step as i64 * 7 * HOUR);
            let hours = count_all(&mut progress, now, kept_since);
            prop_assert!(hours.is_sorted_by(|a, b| a.hour > b.hour), "newest first, each once");
            for hour in &hours {
                prop_assert_eq!(hour_of(hour.hour), hour.hour);
                prop_assert!(hour.end() + COUNT_DELAY <= now && hour.hour >= kept_since && hour.end() > oldest);
                if let Some(before) = hour.counted_at {
                    prop_assert!(before < hour.end() + RECOUNT_DELAY && hour.end() + RECOUNT_DELAY <= now);
                }
            }
            let counted: BTreeSet<Timestamp> = progress.counted.keys().copied().collect();
            let mut hour = hour_of(oldest);
            while hour + SignedDuration::from_hours(1) + COUNT_DELAY <= now {
                let is_kept = hour >= kept_since && hour >= now - COUNTER_RETENTION;
                prop_assert_eq!(counted.contains(&hour), is_kept, "{}", hour);
                hour += SignedDuration::from_hours(1);
            }
        }
    }

    #[test]
    fn no_hour_of_a_window_is_counted_twice_or_left_out(
        counted in prop::collection::btree_set(0_i64..60, 0..60), oldest in 0_i64..60, from in 0_i64..60, now in 0_i64..62,
    ) {
        let hour = |number: i64| Timestamp::from_second(1_790_002_800 + number * HOUR).unwrap();
        let from = hour(from.min(now));
        let now_at = hour(now) + SignedDuration::from_mins(17);
        let counted = counted.into_iter().filter(|number| *number < now);
        let progress = CountingProgress {
            counted: counted.map(|number| (hour(number), now_at)).collect(),
            oldest: Some(hour(oldest.min(now))),
        };
        let window = progress.window(from, now_at);
        prop_assert!(window.from == from && window.from <= window.live_from && window.live_from <= hour(now));
        prop_assert!(hour(now).duration_since(window.live_from) < SignedDuration::from_hours(MAX_LIVE_HOURS));
        prop_assert!(window.from <= window.counted_since && window.counted_since <= window.live_from);
        let missing = |at: &Timestamp| !progress.counted.contains_key(at) && *at >= hour(oldest.min(now));
        let hours = (0..62).map(hour).filter(|at| *at >= window.from && *at < window.live_from);
        prop_assert_eq!(window.complete, !hours.clone().any(|at| missing(&at)));
        prop_assert!(!hours.filter(|at| *at >= window.counted_since).any(|at| missing(&at)));
    }
}
