//! The evaluator against brute force.
//!
//! Random schedules are made as data and printed, so nothing here parses. What should happen is found by looking at
//! every minute of a few days on jiff's wall clock. No code is shared with the evaluator: no bit sets, no calendar, no
//! table of offset changes.
//!
//! A failure names a seed and a case. `EVERBELL_ORACLE_SEED` repeats a seed, `EVERBELL_ORACLE_CASES` runs more of them.

mod generate;
mod schedule;
mod timeline;

use everbell_core::cron::{Dst, DstFold, DstGap, Expression};
use everbell_core::{Spec, Zone};
use jiff::Timestamp;
use jiff::civil::{Date, date};

use crate::random::Random;
use schedule::Schedule;
use timeline::{Expected, Timeline};

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;

/// Zones that are known for their changes, and a year in which each did something of its own.
const ZONES: [(&str, i16); 25] = [
    ("America/New_York", 2027),
    ("Europe/London", 1971),
    ("Australia/Lord_Howe", 2026),
    ("Pacific/Chatham", 2025),
    ("Africa/Cairo", 2023),
    ("Asia/Beirut", 2023),
    ("America/Sao_Paulo", 2018),
    ("America/Havana", 2024),
    ("Antarctica/Troll", 2026),
    ("Pacific/Apia", 2011),
    ("America/Santiago", 2022),
    ("America/St_Johns", 2006),
    ("Africa/Casablanca", 2026),
    ("Europe/Dublin", 1971),
    ("America/Asuncion", 2024),
    ("Asia/Amman", 2022),
    ("America/Nuuk", 2023),
    ("Pacific/Kwajalein", 1993),
    ("Europe/Volgograd", 2020),
    ("Asia/Pyongyang", 2018),
    ("Asia/Tehran", 2022),
    ("America/Caracas", 2016),
    ("Europe/Riga", 2000),
    ("Pacific/Kwajalein", 1969),
    ("UTC", 2027),
];

/// Counts of compared cases, so that a test that compares nothing fails.
#[derive(Default)]
struct RunHistogram {
    cases: usize,
    near_change: usize,
    never_fires: usize,
    with_slots: usize,
    slots: usize,
    dense: usize,
    gaps: usize,
    folds: usize,
    skipped: usize,
    previous: usize,
    counted: u64,
}

/// One question to the evaluator.
struct Case {
    spec: Spec,
    /// Where the expected slots are known.
    start: i64,
    end: i64,
    label: String,
}

macro_rules! random_cases {
    ($($name:ident: $seed:literal),+ $(,)?) => {$(
        #[test]
        fn $name() {
            compare_random_cases($seed);
        }
    )+};
}

// Several tests, so that they run side by side.
random_cases! {
    random_schedules_1: 0x0ca7_0001,
    random_schedules_2: 0x0ca7_0002,
    random_schedules_3: 0x0ca7_0003,
    random_schedules_4: 0x0ca7_0004,
    random_schedules_5: 0x0ca7_0005,
    random_schedules_6: 0x0ca7_0006,
}

fn compare_random_cases(seed: u64) {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = number("EVERBELL_ORACLE_SEED").unwrap_or(seed);
    let cases = number("EVERBELL_ORACLE_CASES").unwrap_or(4_000);
    let mut random = Random::new(seed);
    let mut histogram = RunHistogram::default();
    while (histogram.cases as u64) < cases {
        let window = Window::random(&mut random);
        histogram.near_change += if window.near_change { 16 } else { 0 };
        for _ in 0..16 {
            window.compare(&mut random, &mut histogram, seed);
        }
    }
    let cases = histogram.cases;
    assert!(histogram.near_change * 2 > cases, "{} of {cases} cases are near a change", histogram.near_change);
    assert!(histogram.with_slots * 3 > cases * 2, "{} of {cases} cases have slots", histogram.with_slots);
    assert!(histogram.slots > cases * 25, "{} slots in {cases} cases", histogram.slots);
    assert!(histogram.dense > cases / 20, "{} of {cases} cases are dense", histogram.dense);
    assert!(histogram.previous > cases * 2, "{} previous slots in {cases} cases", histogram.previous);
    assert!(histogram.counted > cases as u64 * 100, "{} counted in {cases} cases", histogram.counted);
    assert!(histogram.gaps > cases / 20, "{} of {cases} cases fall into a gap", histogram.gaps);
    assert!(histogram.folds > cases / 20, "{} of {cases} cases fall into a fold", histogram.folds);
    assert!(histogram.skipped > cases / 100, "{} skipped gaps in {cases} cases", histogram.skipped);
    assert!(histogram.never_fires < cases / 50, "{} of {cases} cases never fire", histogram.never_fires);
}

/// A few days of a zone, used for several schedules.
struct Window {
    zone: Zone,
    timeline: Timeline,
    near_change: bool,
    /// The instant that schedules are aimed at: the change, if there is one.
    aim: i64,
    start: i64,
    end: i64,
}

impl Window {
    fn random(random: &mut Random) -> Window {
        let (name, year) = random.pick(&ZONES);
        let zone = Zone::get(name).unwrap();
        let year = if random.percent(30) { year } else { random.between(1970, 2037) as i16 };
        let from = date(year, 1, 1).to_zoned(zone.as_jiff().clone()).unwrap().timestamp();
        let anywhere = from.as_second() + random.between(0, 364 * DAY);
        // Where clocks never change any more, or not that year, the window lies anywhere.
        let changes: Vec<i64> = zone
            .as_jiff()
            .following(from)
            .map(|change| change.timestamp().as_second())
            .take_while(|at| *at < from.as_second() + 366 * DAY)
            .collect();
        let near_change = !changes.is_empty() && random.percent(90);
        let aim = if near_change { random.pick(&changes) } else { anywhere };
        let start = aim + random.between(-2 * DAY, 2 * HOUR);
        let end = start + random.between(2 * DAY, 3 * DAY);
        // Wider by the largest change of all, a whole day at the date line: the other half of a fold must be seen.
        let timeline = Timeline::new(zone.as_jiff(), start - 25 * HOUR, end + 25 * HOUR, 60);
        Window { zone, timeline, near_change, aim, start, end }
    }

    fn compare(&self, random: &mut Random, histogram: &mut RunHistogram, seed: u64) {
        // Read on the slower of the two clocks, the time after a change lies in the gap or in the fold.
        let offset =
            [self.aim - 1, self.aim].map(|second| self.zone.as_jiff().to_offset(at(second))).into_iter().min().unwrap();
        let aimed = offset.to_datetime(at(self.aim + random.between(-HOUR / 4, HOUR - 1)));
        let schedule = generate::schedule(random, aimed);
        let dst = Dst { gap: random.pick(DstGap::ALL), fold: random.pick(DstFold::ALL) };
        let start = self.start + random.between(0, (self.end - self.start) / 4);
        let text = schedule.text();
        let label = format!(
            "seed {seed:#x} case {}: `{text}` in {}, gap {}, fold {}, after {}",
            histogram.cases,
            self.zone,
            dst.gap.as_str(),
            dst.fold.as_str(),
            Timestamp::from_second(start).unwrap(),
        );
        histogram.cases += 1;
        let expression = match Expression::parse(&text) {
            Ok(expression) => expression,
            Err(error) => {
                assert_eq!(error.code(), "never_fires", "{label}: {error}");
                assert!(!matches_some_day(&schedule), "{label}: refused, and some day matches");
                histogram.never_fires += 1;
                return;
            }
        };
        let spec = Spec::recurring(expression, self.zone.clone(), Timestamp::UNIX_EPOCH).with_dst(dst);
        let expected = self.timeline.expected(&schedule, dst);
        histogram.gaps += usize::from(expected.in_gap);
        histogram.folds += usize::from(expected.in_fold);
        Case { spec, start, end: self.end, label }.check(random, &expected, histogram);
    }
}

impl Case {
    fn check(&self, random: &mut Random, expected: &Expected, histogram: &mut RunHistogram) {
        self.check_next(random, expected, histogram);
        self.check_previous(random, expected, histogram);
        self.check_counts(random, expected, histogram);
    }

    /// Two thousand slots are enough of a dense schedule; each is found from the one before.
    fn check_next(&self, random: &mut Random, expected: &Expected, histogram: &mut RunHistogram) {
        let label = &self.label;
        let wanted: Vec<i64> = between(&expected.slots, self.start, self.end).iter().copied().take(2_000).collect();
        let end = if wanted.len() == 2_000 { wanted[1_999] } else { self.end };
        let part = Timestamp::new(self.start, random.pick(&[0, 1, 500_000_000, 999_999_999])).unwrap();
        let found: Vec<i64> =
            self.spec.slots_after(part).map(Timestamp::as_second).take_while(|slot| *slot <= end).collect();
        assert!(found == wanted, "{label}\n  {}", difference(&found, &wanted));
        for slot in wanted.iter().step_by(1 + wanted.len() / 20) {
            assert!(self.spec.matches(at(*slot)), "{label}: {} does not match", at(*slot));
            for near in [slot - 1, slot + 1, random.between(self.start, self.end)] {
                let matches = expected.slots.binary_search(&near).is_ok();
                assert_eq!(self.spec.matches(at(near)), matches, "{label}: {}", at(near));
            }
        }
        histogram.slots += wanted.len();
        histogram.with_slots += usize::from(!wanted.is_empty());
        histogram.dense += usize::from(wanted.len() > 200);
    }

    fn check_previous(&self, random: &mut Random, expected: &Expected, histogram: &mut RunHistogram) {
        for _ in 0..6 {
            let t = random.between(self.start, self.end);
            let found = self.spec.prev_at_or_before(at(t)).map(Timestamp::as_second);
            let wanted = between(&expected.slots, self.start, t).last();
            // Earlier slots are another window's business.
            let found = found.filter(|slot| *slot > self.start);
            assert_eq!(found.map(at), wanted.copied().map(at), "{}: before {}", self.label, at(t));
            histogram.previous += usize::from(wanted.is_some());
        }
    }

    fn check_counts(&self, random: &mut Random, expected: &Expected, histogram: &mut RunHistogram) {
        for _ in 0..4 {
            let after = random.between(self.start, self.end);
            let until = random.between(after, self.end);
            let label = format!("{}: in ({}, {}]", self.label, at(after), at(until));
            let wanted = between(&expected.slots, after, until).len() as u64;
            assert_eq!(self.spec.count_between(at(after), at(until)), wanted, "{label}");
            histogram.counted += wanted;
        }
        let found = self.spec.dst_skipped_between(at(self.start), at(self.end));
        let wanted: Vec<Timestamp> = between(&expected.skipped, self.start, self.end).iter().copied().map(at).collect();
        assert_eq!(found, wanted, "{}: skipped", self.label);
        histogram.skipped += wanted.len();
    }
}

/// Offsets with seconds, as most zones had before 1970, looked at second by second.
#[test]
fn offsets_with_seconds() {
    let seed = 0x0ca7_5ec5;
    let mut random = Random::new(seed);
    let mut histogram = RunHistogram::default();
    for (name, change) in [
        ("Africa/Monrovia", "1972-01-07T00:44:30Z"),
        ("Europe/Paris", "1911-03-10T23:50:39Z"),
        ("Asia/Kolkata", "1905-12-31T18:38:50Z"),
        ("America/Guyana", "1911-08-01T03:52:39Z"),
        ("Europe/Dublin", "1916-05-21T02:25:21Z"),
    ] {
        let zone = Zone::get(name).unwrap();
        let aim = change.parse::<Timestamp>().unwrap().as_second();
        let (start, end) = (aim - 3 * HOUR, aim + 3 * HOUR);
        let change = zone.changes_between(at(start), at(end));
        assert!(
            change.iter().any(|change| change.at == at(aim)),
            "{name} changes at {}, not at {}",
            change[0].at,
            at(aim)
        );
        let timeline = Timeline::new(zone.as_jiff(), start - 2 * HOUR, end + 2 * HOUR, 1);
        let window = Window { zone, timeline, near_change: true, aim, start, end };
        for _ in 0..60 {
            window.compare(&mut random, &mut histogram, seed);
        }
    }
    assert!(histogram.slots > 1_000, "{} slots", histogram.slots);
}

/// Days that take years to come, over seventy years, day by day.
#[test]
fn rare_dates() {
    use schedule::Item::{self, Any, LastOf, LastWeekday, NearestWeekday, Nth, Value};
    let leap_day: &[(&[Item], u32, &[Item], &str)] = &[
        (&[Value(29)], 2, &[Any { step: 1 }], "0 12 29 2 *"),
        (&[Any { step: 1 }], 2, &[Nth { weekday: 1, count: 5 }], "0 12 * 2 1#5"),
        (&[LastWeekday], 2, &[Any { step: 1 }], "0 12 LW 2 *"),
        (&[NearestWeekday(31)], 0, &[Any { step: 1 }], "0 12 31W * *"),
        (&[NearestWeekday(29)], 2, &[Any { step: 1 }], "0 12 29W 2 *"),
        (&[Value(29)], 2, &[Any { step: 7 }], "0 12 29 2 */7"),
        (&[Any { step: 28 }], 2, &[LastOf(0)], "0 12 */28 2 0L"),
        (&[Value(13)], 0, &[Value(5)], "0 12 13 * 5"),
        (&[Any { step: 30 }], 10, &[LastOf(1)], "0 12 */30 10 MONL"),
    ];
    for (days, month, weekdays, text) in leap_day {
        let schedule = dates(days, *month, weekdays);
        for (name, from) in
            [("UTC", date(1901, 1, 1)), ("America/New_York", date(1963, 3, 1)), ("Australia/Sydney", date(2072, 2, 29))]
        {
            let zone = Zone::get(name).unwrap();
            let noon = |date: Date| date.at(12, 0, 0, 0).to_zoned(zone.as_jiff().clone()).unwrap().timestamp();
            let until = from.checked_add(jiff::Span::new().years(70)).unwrap();
            let wanted: Vec<Timestamp> = from
                .series(jiff::Span::new().days(1))
                .take_while(|day| *day < until)
                .filter(|day| schedule.on(*day))
                .map(noon)
                .collect();
            let spec = Spec::recurring(Expression::parse(text).unwrap(), zone.clone(), Timestamp::UNIX_EPOCH);
            let (start, end) = (noon(from.yesterday().unwrap()), noon(until.yesterday().unwrap()));
            let found: Vec<Timestamp> = spec.slots_after(start).take_while(|slot| *slot <= end).collect();
            assert!(!wanted.is_empty() && found == wanted, "`{text}` in {name} from {from}: {found:?}, not {wanted:?}");
            assert_eq!(spec.count_between(start, end), wanted.len() as u64, "`{text}` in {name} from {from}");
            let mut backwards: Vec<Timestamp> = std::iter::successors(spec.prev_at_or_before(end), |slot| {
                spec.prev_at_or_before(*slot - jiff::SignedDuration::from_nanos(1))
            })
            .take_while(|slot| *slot > start)
            .collect();
            backwards.reverse();
            assert!(backwards == wanted, "`{text}` in {name} backwards from {until}: {backwards:?}, not {wanted:?}");
        }
    }
}

/// Noon on these days; month 0 is every month.
fn dates(days: &[schedule::Item], month: u32, weekdays: &[schedule::Item]) -> Schedule {
    use schedule::{Field, FieldKind, Item};
    let field = |kind, items: &[Item]| Field { kind, items: items.to_vec(), text: String::new() };
    let month = if month == 0 { Item::Any { step: 1 } } else { Item::Value(month) };
    Schedule {
        second: None,
        minute: field(FieldKind::Minute, &[Item::Value(0)]),
        hour: field(FieldKind::Hour, &[Item::Value(12)]),
        day_of_month: field(FieldKind::DayOfMonth, days),
        month: field(FieldKind::Month, &[month]),
        day_of_week: field(FieldKind::DayOfWeek, weekdays),
    }
}

/// In 28 years with a leap day each four, every date meets every weekday.
fn matches_some_day(schedule: &Schedule) -> bool {
    date(1970, 1, 1).series(jiff::Span::new().days(1)).take(366 * 28).any(|date| schedule.on(date))
}

/// The part of a sorted list in `(after, until]`.
fn between(sorted: &[i64], after: i64, until: i64) -> &[i64] {
    &sorted[sorted.partition_point(|slot| *slot <= after)..sorted.partition_point(|slot| *slot <= until)]
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// The first few slots that only one side has.
fn difference(found: &[i64], wanted: &[i64]) -> String {
    let only = |these: &[i64], those: &[i64]| -> Vec<String> {
        these.iter().filter(|slot| !those.contains(slot)).take(3).map(|slot| at(*slot).to_string()).collect()
    };
    format!("found but not expected: {:?}; expected but not found: {:?}", only(found, wanted), only(wanted, found))
}
