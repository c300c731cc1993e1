//! Predictions of a change of zone, before it is made.

use everbell_core::FrozenSpan;
use everbell_core::GapReason;
use everbell_core::org::{Verdict, what_if};
use jiff::Timestamp;

use super::diary::Diary;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A job at nine that has fired in Tokyo on the 12th.
fn tokyo(now: &str) -> Diary {
    let mut diary = Diary::new("0 9 * * *", "", "Asia/Tokyo", at("2026-11-10T12:00:00Z"));
    diary.until(at(now));
    diary
}

/// The days after a move, as `date verdict`.
fn days(diary: &Diary, zone: &str) -> Vec<String> {
    let told = what_if(&diary.view(), &[], zone, 3, diary.now).unwrap();
    told.days.iter().map(|day| format!("{} {}", day.date, day.verdict)).collect()
}

#[test]
fn moving_west_after_the_run_does_not_fire_again_today() {
    let diary = tokyo("2026-11-12T06:00:00Z");
    let told = what_if(&diary.view(), &[], "America/Los_Angeles", 3, diary.now).unwrap();
    assert_eq!(told.before, [at("2026-11-13T00:00:00Z"), at("2026-11-14T00:00:00Z"), at("2026-11-15T00:00:00Z")]);
    assert_eq!(told.after, [at("2026-11-13T17:00:00Z"), at("2026-11-14T17:00:00Z"), at("2026-11-15T17:00:00Z")]);
    assert_eq!(
        days(&diary, "America/Los_Angeles"),
        ["2026-11-12 ran_already", "2026-11-13 once", "2026-11-14 once", "2026-11-15 once"]
    );
}

#[test]
fn moving_east_past_the_time_fires_at_once() {
    let mut diary = Diary::new("0 9 * * *", "", "America/Los_Angeles", at("2026-11-10T12:00:00Z"));
    diary.until(at("2026-11-12T16:00:00Z"));
    let told = what_if(&diary.view(), &[], "Asia/Tokyo", 3, diary.now).unwrap();
    assert_eq!(told.after[0], diary.now);
    assert_eq!(
        days(&diary, "Asia/Tokyo"),
        ["2026-11-11 ran_already", "2026-11-12 at_once", "2026-11-13 once", "2026-11-14 once"]
    );
}

#[test]
fn a_day_that_never_comes_does_not_fire_at_all() {
    let mut diary = Diary::new("0 9 * * *", "", "Pacific/Honolulu", at("2026-11-12T00:00:00Z"));
    diary.until(at("2026-11-12T20:00:00Z"));
    assert_eq!(
        days(&diary, "Pacific/Kiritimati"),
        ["2026-11-12 ran_already", "2026-11-13 not_at_all", "2026-11-14 once", "2026-11-15 once", "2026-11-16 once"]
    );
}

#[test]
fn a_freeze_keeps_its_days_from_firing() {
    let diary = tokyo("2026-11-12T06:00:00Z");
    let frozen = [FrozenSpan { from: at("2026-11-13T00:00:00Z"), until: at("2026-11-14T18:00:00Z") }];
    let told = what_if(&diary.view(), &frozen, "America/Los_Angeles", 2, diary.now).unwrap();
    assert_eq!(told.before, [at("2026-11-15T00:00:00Z"), at("2026-11-16T00:00:00Z")]);
    assert_eq!(told.after, [at("2026-11-15T17:00:00Z"), at("2026-11-16T17:00:00Z")]);
    let days: Vec<_> = told.days.iter().map(|day| (day.date.day(), day.verdict, day.gap)).collect();
    let quiet = |day| (day, Verdict::NotAtAll, Some(GapReason::Frozen));
    let expected = [
        (12, Verdict::RanAlready, Some(GapReason::Coalesced)),
        quiet(13),
        quiet(14),
        (15, Verdict::Once, None),
        (16, Verdict::Once, None),
    ];
    assert_eq!(days, expected);
}

#[test]
fn a_long_freeze_of_a_busy_schedule_is_passed_over() {
    let mut diary = Diary::new("*/5 * * * *", "", "UTC", at("2026-11-12T00:00:00Z"));
    diary.until(at("2026-11-12T07:01:00Z"));
    let frozen = [FrozenSpan { from: at("2026-11-12T07:03:00Z"), until: at("2026-12-12T07:00:00Z") }];
    let told = what_if(&diary.view(), &frozen, "UTC", 2, diary.now).unwrap();
    assert_eq!(told.before, [at("2026-12-12T07:00:00Z"), at("2026-12-12T07:05:00Z")]);
}

#[test]
fn the_same_zone_changes_nothing() {
    let diary = tokyo("2026-11-12T06:00:00Z");
    let told = what_if(&diary.view(), &[], "asia/tokyo", 3, diary.now).unwrap();
    assert_eq!(told.before, told.after);
}

#[test]
fn a_schedule_that_fires_often_has_no_days() {
    let mut diary = Diary::new("0 */6 * * *", "", "UTC", at("2026-11-12T00:00:00Z"));
    diary.until(at("2026-11-12T07:00:00Z"));
    let told = what_if(&diary.view(), &[], "Asia/Kathmandu", 2, diary.now).unwrap();
    assert_eq!(told.days, []);
    assert_eq!(told.after, [diary.now, at("2026-11-12T12:15:00Z")], "noon there was 45 minutes ago");
}

#[test]
fn who_is_off_has_no_fires() {
    let mut diary = tokyo("2026-11-12T06:00:00Z");
    diary.enable(false);
    let told = what_if(&diary.view(), &[], "UTC", 3, diary.now).unwrap();
    assert_eq!((told.before, told.after), (vec![], vec![]));
}

#[test]
fn an_unknown_zone_is_refused_with_names_that_are_near() {
    let diary = tokyo("2026-11-12T06:00:00Z");
    let refused = what_if(&diary.view(), &[], "Asia/Tokio", 3, diary.now).unwrap_err();
    assert_eq!(refused.field, "timezone");
    assert!(refused.reason.contains("`Asia/Tokyo`"), "{refused}");
}

/// The prediction agrees with what happens.
#[test]
fn what_is_foretold_comes_to_pass() {
    for zone in ["America/Los_Angeles", "Pacific/Kiritimati", "Pacific/Pago_Pago", "UTC", "Asia/Kathmandu"] {
        for hour in 0..24 {
            let mut diary = tokyo(&format!("2026-11-12T{hour:02}:30:00Z"));
            let told = what_if(&diary.view(), &[], zone, 4, diary.now).unwrap();
            diary.lines.clear();
            diary.move_to(zone);
            diary.until(*told.after.last().unwrap());
            let runs: Vec<Timestamp> =
                diary.lines.iter().filter(|line| line.gap.is_none()).map(|line| line.at).collect();
            assert_eq!(runs, told.after, "{zone} at {hour}");
            let fired = told.days.iter().filter(|day| matches!(day.verdict, Verdict::Once | Verdict::AtOnce));
            assert_eq!(fired.count(), runs.len(), "{zone} at {hour}: {:?}", told.days);
        }
    }
}
