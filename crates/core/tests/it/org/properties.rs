//! Properties of every life of an org: no local date has two runs, and none is lost without a gap.

use std::collections::{BTreeMap, BTreeSet};

use everbell_core::cron::Expression;
use everbell_core::org::{self, OrgTask, OrgTimer, TimerChange};
use everbell_core::plan::{self, Missed};
use everbell_core::{Spec, Zone};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp, ToSpan};
use proptest::prelude::*;

use super::diary::Diary;

/// From one end of the world to the other, with and without daylight saving, and with odd offsets.
const ZONES: [&str; 14] = [
    "Pacific/Pago_Pago",
    "Pacific/Honolulu",
    "America/Los_Angeles",
    "America/New_York",
    "America/St_Johns",
    "UTC",
    "Europe/Lisbon",
    "Africa/Cairo",
    "Asia/Kathmandu",
    "Asia/Tokyo",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "Pacific/Apia",
    "Pacific/Kiritimati",
];

#[derive(Clone, Debug)]
enum Event {
    Move(&'static str),
    Disable,
    Enable,
    Pause,
    Resume(Missed),
    Sleep(i64),
    Nothing,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => prop::sample::select(&ZONES[..]).prop_map(Event::Move),
        1 => Just(Event::Disable),
        2 => Just(Event::Enable),
        1 => Just(Event::Pause),
        2 => prop_oneof![Just(Missed::Skip), Just(Missed::RunOnce)].prop_map(Event::Resume),
        1 => (0..200_i64).prop_map(Event::Sleep),
        2 => Just(Event::Nothing),
    ]
}

fn daily() -> impl Strategy<Value = &'static str> {
    prop::sample::select(
        &["0 9 * * *", "30 0 * * *", "30 2 * * *", "59 23 * * *", "0 9 * * mon-fri", "0 12 */3 * *"][..],
    )
}

fn policies() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["", "catchUp=none", "catchUp=all", "grace=0", "jitter=600", "catchUp=none grace=0"][..])
}

/// A life: each event comes so many minutes after the one before.
fn life() -> impl Strategy<Value = (&'static str, &'static str, &'static str, i64, Vec<(i64, Event)>)> {
    let events = prop::collection::vec((1..3_000_i64, event()), 1..25);
    (daily(), policies(), prop::sample::select(&ZONES[..]), 0..400_000_i64, events)
}

fn lived((schedule, policies, zone, start, events): (&str, &str, &str, i64, Vec<(i64, Event)>)) -> Diary {
    let begin: Timestamp = "2026-10-01T00:00:00Z".parse().unwrap();
    let mut now = begin + SignedDuration::from_mins(start);
    let mut diary = Diary::new(schedule, policies, zone, now);
    for (minutes, event) in events {
        now += SignedDuration::from_mins(minutes);
        diary.until(now);
        match event {
            Event::Move(zone) => diary.move_to(zone),
            Event::Disable => diary.enable(false),
            Event::Enable => diary.enable(true),
            Event::Pause => diary.pause(),
            Event::Resume(missed) if diary.job.state.pause.is_some() => diary.resume(missed),
            Event::Sleep(hours) => diary.sleep(now + SignedDuration::from_hours(hours)),
            Event::Resume(_) | Event::Nothing => {}
        }
    }
    diary.enable(true);
    if diary.job.state.pause.is_some() {
        diary.resume(Missed::Skip);
    }
    diary.until(now + SignedDuration::from_hours(24 * 12));
    diary
}

/// Events of an org that is created long after the job: it moves, and gets overrides.
fn overrides() -> impl Strategy<Value = (&'static str, &'static str, i64, Vec<(i64, Change)>)> {
    let change = prop_oneof![
        2 => prop::sample::select(&ZONES[..]).prop_map(Change::Move),
        4 => prop::sample::select(&["0 9 * * *", "30 0 * * *", "0 14 * * *", "59 23 * * *"][..]).prop_map(Change::At),
        1 => Just(Change::Disable),
        2 => Just(Change::Enable),
    ];
    (policies(), prop::sample::select(&ZONES[..]), 0..400_000_i64, prop::collection::vec((1..2_000_i64, change), 0..12))
}

#[derive(Clone, Debug)]
enum Change {
    Move(&'static str),
    At(&'static str),
    Disable,
    Enable,
}

fn lived_with_overrides((policies, zone, start, changes): (&str, &str, i64, Vec<(i64, Change)>)) -> (Diary, Date) {
    let job_made: Timestamp = "2026-09-01T00:00:00Z".parse().unwrap();
    let mut now = job_made + SignedDuration::from_hours(24 * 30) + SignedDuration::from_mins(start);
    let mut diary = Diary::of_older_job("0 9 * * *", policies, job_made, zone, now);
    let made = now.to_zoned(Zone::get(zone).unwrap().as_jiff().clone()).date();
    let mut is_on = true;
    for (minutes, change) in changes {
        now += SignedDuration::from_mins(minutes);
        diary.until(now);
        is_on = match change {
            Change::Disable => false,
            Change::Enable => true,
            Change::Move(_) | Change::At(_) => is_on,
        };
        match change {
            Change::Move(zone) => diary.move_to(zone),
            // Days on which it was off belong to the time that it wanted last: a change meanwhile leaves them out.
            Change::At(_) if !is_on => {}
            Change::At(time) => diary.set_override(Some((true, Some(time)))),
            Change::Disable => diary.enable(false),
            Change::Enable => diary.enable(true),
        }
    }
    diary.enable(true);
    diary.until(now + SignedDuration::from_hours(24 * 4));
    (diary, made)
}

/// The dates on which the expression fires, wherever.
fn dates(schedule: &str, first: Date, last: Date) -> BTreeSet<Date> {
    let spec = Spec::recurring(schedule.parse::<Expression>().unwrap(), Zone::utc(), Timestamp::UNIX_EPOCH);
    let midnight = |date: Date| date.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp();
    let after = midnight(first) - SignedDuration::from_nanos(1);
    let end = midnight(last + 1.day());
    spec.slots_after(after).take_while(|slot| *slot < end).map(|slot| org::local_date(&spec, slot)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_local_date_has_one_run_at_most(life in life()) {
        let diary = lived(life);
        let mut runs: BTreeMap<Date, usize> = BTreeMap::new();
        for line in diary.lines.iter().filter(|line| line.gap.is_none()) {
            *runs.entry(line.date).or_default() += 1;
        }
        prop_assert!(runs.values().all(|count| *count == 1), "{runs:?}");
    }

    #[test]
    fn no_local_date_is_lost_without_a_gap(life in life()) {
        let schedule = life.0;
        let diary = lived(life);
        let told: BTreeSet<Date> = diary.lines.iter().map(|line| line.date).collect();
        if let (Some(first), Some(last)) = (told.first(), told.last()) {
            let lost: Vec<Date> = dates(schedule, *first, *last).difference(&told).copied().collect();
            let lines: Vec<String> = diary.lines.iter().map(ToString::to_string).collect();
            prop_assert!(lost.is_empty(), "{lost:?}\n{}", lines.join("\n"));
        }
    }

    #[test]
    fn a_day_on_which_an_org_is_made_or_wants_another_time_is_not_lost(life in overrides()) {
        let (diary, made) = lived_with_overrides(life);
        let lines: Vec<String> = diary.lines.iter().map(ToString::to_string).collect();
        let told: BTreeSet<Date> = diary.lines.iter().map(|line| line.date).collect();
        let last = *told.last().unwrap();
        let lost: Vec<Date> = dates("0 9 * * *", made, last).difference(&told).copied().collect();
        prop_assert!(lost.is_empty(), "{lost:?} of an org made on {made}\n{}", lines.join("\n"));
        let runs: Vec<Date> = diary.lines.iter().filter(|line| line.gap.is_none()).map(|line| line.date).collect();
        let once: BTreeSet<Date> = runs.iter().copied().collect();
        prop_assert_eq!(runs.len(), once.len(), "{}", lines.join("\n"));
    }

    #[test]
    fn a_set_of_timers_that_is_made_anew_is_the_same(life in life()) {
        let mut diary = lived(life);
        let before = diary.timer.clone();
        diary.carry_out(OrgTask::Arm);
        prop_assert_eq!(&diary.timer, &before, "nothing to do");
        // What can be computed is lost, what are facts is not.
        let lost = before.clone().map(|old| OrgTimer { timer: plan::disarm(&old.timer), ..old });
        diary.timer = lost;
        diary.carry_out(OrgTask::Arm);
        prop_assert_eq!(&diary.timer, &before);
        prop_assert_eq!(org::reconcile(&diary.view(), None).change, TimerChange::Keep);
    }
}
