use jiff::civil::date;

use super::*;

fn day(date: Date, runs: &[(RunStatus, u64)], planned: u64) -> Day {
    Day { date, runs: Counts::new(runs.iter().copied()), planned, href: Some(format!("/runs?day={date}")) }
}

fn input(days: &[Day]) -> Calendar<'_> {
    Calendar { id: "c", job: "a&b", today: date(2026, 11, 15), weeks: WEEKS, weeks_ahead: 2, days }
}

#[test]
fn weeks_are_columns_that_begin_on_monday() {
    // The 15th of November 2026 is a Sunday.
    let given = input(&[]);
    assert_eq!((first(&given), last(&given)), (date(2026, 6, 1), date(2026, 11, 29)));
    assert_eq!(corner(&given, date(2026, 6, 1)), (LEFT, TOP));
    assert_eq!(corner(&given, date(2026, 11, 15)), (LEFT + 23.0 * PITCH, TOP + 6.0 * PITCH));
    let drawn = calendar(&given);
    for name in [">Mon</text>", ">Wed</text>", ">Fri</text>", ">Jun</text>", ">Nov</text>"] {
        assert!(drawn.contains(name), "{name}: {drawn}");
    }
    assert!(drawn.contains("class=\"c-today\"") && drawn.contains("2026-06-01 to 2026-11-29: no runs, 0 planned."));
}

#[test]
fn a_day_shows_the_worst_and_leads_to_its_runs() {
    let days = [
        day(date(2026, 11, 13), &[(RunStatus::Succeeded, 22), (RunStatus::Failed, 2)], 0),
        day(date(2026, 11, 14), &[(RunStatus::Succeeded, 6)], 0),
        day(date(2026, 11, 16), &[], 3),
    ];
    let drawn = calendar(&input(&days));
    let title = "Fri 2026-11-13 · 24 runs: 22 succeeded, 2 failed";
    assert!(
        drawn.contains(&format!("<a href=\"/runs?day=2026-11-13\" aria-label=\"{title}\"><title>{title}")),
        "{drawn}"
    );
    assert!(drawn.contains("fill=\"url(#c-bad)\""), "{drawn}");
    assert!(drawn.contains("Mon 2026-11-16 · 3 runs planned") && drawn.contains("class=\"c-plan\""), "{drawn}");
    assert!(drawn.contains("Days of a&amp;b") && !drawn.contains("style"), "{drawn}");
}

#[test]
fn more_runs_are_darker() {
    let depth = |runs| super::depth(&day(date(2026, 11, 13), &[(RunStatus::Succeeded, runs)], 0), 100);
    assert!(depth(1) < depth(50) && depth(50) < depth(100));
    assert!((depth(100) - 1.0).abs() < 1e-9 && depth(1) >= 0.5);
}

#[test]
fn one_failure_of_many_is_seen_and_does_not_hide_the_others() {
    let near = |found: f64, wanted: f64| (found - wanted).abs() < 1e-9;
    assert!(near(others(287, 288), 0.3) && near(others(1, 2), 0.5) && near(others(0, 3), 1.0));
    let rects =
        |runs: &[(RunStatus, u64)]| calendar(&input(&[day(date(2026, 11, 13), runs, 0)])).matches("rx=\"2").count();
    assert_eq!(rects(&[(RunStatus::Succeeded, 287), (RunStatus::Failed, 1)]), 2);
    assert_eq!((rects(&[(RunStatus::Succeeded, 3)]), rects(&[(RunStatus::Failed, 3)])), (1, 1));
}

#[test]
fn days_outside_are_left_out_and_the_end_of_time_is_fine() {
    let days = [day(date(2020, 1, 1), &[(RunStatus::Failed, 1)], 0), day(date(2026, 11, 30), &[], 1)];
    assert!(!calendar(&input(&days)).contains("<a "));
    for today in [Date::MIN, Date::MAX, date(2024, 2, 29)] {
        let drawn = calendar(&Calendar { today, weeks: 1, weeks_ahead: 0, ..input(&[]) });
        assert!(!drawn.contains("NaN"), "{drawn}");
    }
}

#[test]
fn the_table_has_the_same_days() {
    let days = [
        day(date(2026, 11, 16), &[], 3),
        day(date(2026, 11, 13), &[(RunStatus::Succeeded, 22), (RunStatus::Failed, 2)], 0),
        day(date(2026, 11, 12), &[], 0),
    ];
    let table = calendar_table(&input(&days));
    let friday = "Fri 2026-11-13</a></th><td>24 runs: 22 succeeded, 2 failed</td><td>0</td>";
    let monday = "Mon 2026-11-16</a></th><td>no runs</td><td>3</td>";
    assert!(table.find(friday).unwrap() < table.find(monday).unwrap(), "{table}");
    assert!(!table.contains("2026-11-12"), "{table}");
}
