//! Calendars against a naive model: every day is asked one by one, every slot of the plain schedule is looked at.

use std::sync::Arc;

use everbell_core::calendar::{Calendar, CalendarContent, CalendarName, CalendarRules, DayEntry, Weekdays, read_ics};
use everbell_core::plan::{self, PlanContext};
use everbell_core::{GapReason, Spec, Timer, Zone};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};

use crate::given;
use crate::random::Random;

const SCHEDULES: [&str; 9] = [
    "0 9 * * *",
    "*/20 * * * *",
    "30 2 * * * in America/New_York",
    "0 0 * * * in America/Goose_Bay",
    "0,1,2 0,23 * * * in America/Goose_Bay",
    "15 0 * * mon-fri in Africa/Cairo",
    "0 12 31 * * in Pacific/Apia",
    "@every 7h",
    "@every 90m in Europe/Berlin",
];
const ZONES: [Option<&str>; 5] =
    [None, None, Some("Pacific/Apia"), Some("America/Goose_Bay"), Some("America/New_York")];
/// Around changes of clocks, one at a minute past midnight and one that leaves out a whole day.
pub(crate) const STARTS: [&str; 4] =
    ["2027-03-10T00:00:00Z", "2009-10-29T00:00:00Z", "2011-12-20T00:00:00Z", "2024-02-20T00:00:00Z"];

pub(crate) fn calendar(name: &str, zone: Option<&str>, dates: &[String], weekly: &[&str]) -> Arc<Calendar> {
    let content = CalendarContent {
        timezone: zone.map(|zone| Zone::get(zone).unwrap()),
        entries: dates.iter().map(|text| text.parse().unwrap()).collect(),
        weekly: Weekdays::parse(weekly).unwrap(),
    };
    Arc::new(Calendar::new(CalendarName::new(name).unwrap(), 1, content))
}

pub(crate) fn random_calendar(random: &mut Random, start: Date) -> Arc<Calendar> {
    let mut dates = Vec::new();
    for _ in 0..random.below(6) {
        let first = start.checked_add(SignedDuration::from_hours(24 * random.between(-5, 60))).unwrap();
        let last = first.checked_add(SignedDuration::from_hours(24 * random.between(0, 6))).unwrap();
        dates.push(format!("{first}..{last} some days"));
    }
    if random.percent(30) {
        dates.push(format!("*-{:02}-{:02}", random.between(1, 12), random.between(1, 29)));
    }
    let weekly: Vec<&str> = ["mon", "tue", "sat", "sun"].into_iter().filter(|_| random.percent(25)).collect();
    calendar(&format!("c{}", random.below(1_000_000)), random.pick(&ZONES), &dates, &weekly)
}

/// The latest local date that has begun in the zone: that of the instant, or the one before clocks went back over midnight.
fn day(zone: &Zone, t: Timestamp) -> Date {
    let date = |t: Timestamp| t.to_zoned(zone.as_jiff().clone()).date();
    let change = zone.changes_between(t - SignedDuration::from_hours(3), t).pop();
    change.map_or(date(t), |change| date(change.at - SignedDuration::from_secs(1)).max(date(t)))
}

pub(crate) fn is_allowed(rules: &CalendarRules, zone: &Zone, t: Timestamp) -> bool {
    let has = |calendar: &Arc<Calendar>| {
        let zone = calendar.content().timezone.as_ref().unwrap_or(zone);
        let day = day(zone, t);
        let in_entry = |entry: &DayEntry| entry.span.contains(day);
        calendar.content().entries.iter().any(in_entry) || calendar.content().weekly.contains(day.weekday())
    };
    !rules.exclude.iter().any(has) && (rules.only.is_empty() || rules.only.iter().any(has))
}

#[test]
fn slots_are_those_of_allowed_days() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let start: Timestamp = random.pick(&STARTS).parse().unwrap();
        let until = start + SignedDuration::from_hours(24 * 50);
        let date = start.to_zoned(jiff::tz::TimeZone::UTC).date();
        let schedule = random.pick(&SCHEDULES);
        let plain = given::job(schedule, "", start).spec.unwrap();
        let rules = CalendarRules {
            exclude: (0..random.below(3)).map(|_| random_calendar(&mut random, date)).collect(),
            only: (0..random.below(2)).map(|_| random_calendar(&mut random, date)).collect(),
            ..CalendarRules::default()
        };
        let spec = plain.clone().with_calendars(&rules);
        let all: Vec<Timestamp> = plain.slots_after(start).take_while(|slot| *slot <= until).collect();
        let wanted: Vec<Timestamp> =
            all.iter().copied().filter(|slot| is_allowed(&rules, plain.zone(), *slot)).collect();
        let context = format!("seed {seed}: {schedule} with {rules:?}");
        let found: Vec<Timestamp> = spec.slots_after(start).take_while(|slot| *slot <= until).collect();
        assert_eq!(found, wanted, "{context}");
        assert_eq!(spec.count_between(start, until), wanted.len() as u64, "{context}");
        let rows = spec.excluded_between(start, until);
        let excluded: u64 = rows.iter().map(|row| row.slots).sum();
        assert_eq!(excluded as usize, all.len() - wanted.len(), "{context}");
        for _ in 0..20 {
            let t = start + SignedDuration::from_secs(random.between(0, 50 * 86_400));
            let before = wanted.iter().copied().rfind(|slot| *slot <= t);
            assert_eq!(spec.prev_at_or_before(t).filter(|slot| *slot > start), before, "{context} at {t}");
            assert_eq!(spec.next_after(t).filter(|slot| *slot <= until), wanted.iter().copied().find(|s| *s > t));
            let later = start + SignedDuration::from_secs(random.between(0, 50 * 86_400));
            let between = wanted.iter().filter(|slot| **slot > t && **slot <= later).count() as u64;
            assert_eq!(spec.count_between(t, later), between, "{context} from {t} to {later}");
        }
        for slot in &all {
            let is_wanted = wanted.binary_search(slot).is_ok();
            assert_eq!(spec.matches(*slot), is_wanted, "{context} at {slot}");
            assert_eq!(spec.exclusion_at(*slot).is_some(), !is_wanted, "{context} at {slot}");
        }
    }
}

fn weekdays() -> CalendarRules {
    let weekend = calendar("weekend", None, &[], &["sat", "sun"]);
    CalendarRules { exclude: vec![weekend], ..CalendarRules::default() }
}

#[test]
fn a_schedule_without_allowed_days_ends() {
    let from: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
    for schedule in ["0 12 * * sat", "* * * * sun", "@every 24h"] {
        let plain = given::job(schedule, "", "2027-01-02T12:00:00Z".parse().unwrap()).spec.unwrap();
        let spec = plain.with_calendars(&weekdays());
        if schedule.starts_with('@') {
            assert!(spec.next_after(from).is_some());
            continue;
        }
        assert_eq!(spec.next_after(from), None, "{schedule}");
        assert_eq!(spec.prev_at_or_before(from), None, "{schedule}");
        assert_eq!(spec.count_between(from, from + SignedDuration::from_hours(24 * 3_650)), 0, "{schedule}");
    }
    let never = calendar("never", None, &["2020-01-01".to_owned()], &[]);
    let rules = CalendarRules { only: vec![never], ..CalendarRules::default() };
    let spec = given::job("* * * * * *", "", from).spec.unwrap().with_calendars(&rules);
    assert_eq!(spec.next_after(from), None);
    assert_eq!(spec.count_between("2019-01-01T00:00:00Z".parse().unwrap(), from), 86_400);
}

#[test]
fn ten_years_of_seconds_are_counted_by_days() {
    let from: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
    let spec = given::job("* * * * * *", "", from).spec.unwrap().with_calendars(&weekdays());
    let until: Timestamp = "2037-01-01T00:00:00Z".parse().unwrap();
    let days = (0..3_653).map(|day| from + SignedDuration::from_hours(24 * day));
    let working =
        days.filter(|day| !matches!(day.to_zoned(jiff::tz::TimeZone::UTC).weekday().to_monday_zero_offset(), 5 | 6));
    assert_eq!(
        spec.count_between(from - SignedDuration::from_secs(1), until - SignedDuration::from_secs(1)),
        working.count() as u64 * 86_400
    );
    assert!(spec.excluded_between(from, until).len() <= 100, "rows are bounded");
}

/// A plan after a weekend: the excluded slots are a gap of their own, never missed and never caught up.
#[test]
fn excluded_slots_are_gaps_and_are_not_caught_up() {
    for policies in ["catchUp=once", "catchUp=all", "catchUp=none"] {
        let friday: Timestamp = "2027-01-01T09:00:00Z".parse().unwrap();
        let mut job = given::job("0 9 * * *", policies, friday);
        job.spec = job.spec.map(|spec: Spec| spec.with_calendars(&weekdays()));
        let blank = Timer::new(job.id, friday);
        let timer = plan::arm(&job, &blank, &PlanContext::default());
        assert_eq!(timer.next_run_at.unwrap().to_string(), "2027-01-04T09:00:00Z");
        let sunday = "2027-01-03T10:00:00Z".parse().unwrap();
        assert!(plan::plan(&job, &timer, &PlanContext::default(), sunday).gaps.is_empty(), "nothing is due");
        let monday: Timestamp = "2027-01-04T09:00:05Z".parse().unwrap();
        let plan = plan::plan(&job, &timer, &PlanContext::default(), monday);
        let gaps: Vec<_> = plan.gaps.iter().map(|gap| (gap.reason, gap.slots, gap.first_slot_at.to_string())).collect();
        assert_eq!(gaps, [(GapReason::Excluded, 2, "2027-01-02T09:00:00Z".to_owned())], "{policies}");
        assert_eq!(plan.runs.len(), 1);
        assert_eq!((plan.runs[0].catch_up, plan.runs[0].folded), (false, 0), "{policies}");
        assert_eq!(plan.timer.next_run_at.unwrap().to_string(), "2027-01-05T09:00:00Z");
        let again = plan::plan(&job, &plan.timer, &PlanContext::default(), monday);
        assert!(again.gaps.is_empty(), "accounted for once");
    }
}

#[test]
fn days_are_read_and_written_alike() {
    for text in ["2027-01-01", "2027-04-02..2027-04-05", "*-12-25 Christmas", "2027-01-01 New Year", "*-02-29"] {
        assert_eq!(text.parse::<DayEntry>().unwrap().to_string(), text);
    }
    for (text, said) in [
        ("", "is not a day"),
        ("2027-13-01", "is not a day"),
        ("2027-1-1", "is not a day"),
        ("*-02-30", "not a date in any year"),
        ("2027-04-05..2027-04-02", "ends before it begins"),
        ("1800-01-01", "between the years 1900 and 2199"),
        ("tomorrow", "write `2027-01-01`"),
    ] {
        let error = text.parse::<DayEntry>().unwrap_err();
        assert!(error.field == "dates" && error.reason.contains(said), "{text}: {error}");
    }
    assert_eq!(Weekdays::parse(&["Sun", "saturday"]).unwrap().words(), ["sat", "sun"]);
    assert!(Weekdays::parse(&["caturday"]).unwrap_err().reason.contains("allowed: mon, tue"));
}

#[test]
fn an_ics_file_becomes_days() {
    let text = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20271224\r\nDTEND;VALUE=DATE:20271227\r\n\
                SUMMARY:Christmas\\, the\r\n  whole of it\r\nBEGIN:VALARM\r\nSUMMARY:no\r\nEND:VALARM\r\nEND:VEVENT\r\n\
                BEGIN:VEVENT\r\nDTSTART;TZID=\"Europe/Berlin\":20270802T180000\r\nDTEND:20270804T000000Z\r\nEND:VEVENT\r\n\
                BEGIN:VEVENT\nDTSTART;VALUE=DATE:19900501\nRRULE:FREQ=YEARLY;INTERVAL=1\nSUMMARY:Labour Day\nEND:VEVENT\n\
                BEGIN:VEVENT\nDTSTART;VALUE=DATE:20270103\nSTATUS:CANCELLED\nEND:VEVENT\nEND:VCALENDAR\n";
    let days: Vec<String> = read_ics(text).unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(
        days,
        ["2027-12-24..2027-12-26 Christmas, the whole of it", "2027-08-02..2027-08-03", "*-05-01 Labour Day"]
    );
    let event = |lines: &str| format!("BEGIN:VEVENT\nSUMMARY:Party\nDTSTART:20270101\n{lines}\nEND:VEVENT");
    for (text, said) in [
        (event("RRULE:FREQ=WEEKLY"), "the event `Party` has `RRULE:FREQ=WEEKLY`, which is not supported"),
        (event("RRULE:FREQ=YEARLY;BYDAY=1MO"), "only RRULE:FREQ=YEARLY"),
        (event("EXDATE:20270101"), "EXDATE"),
        (event("DTSTART:sometime"), "not a date such as 20271225"),
        ("BEGIN:VEVENT\nSUMMARY:x\nEND:VEVENT".to_owned(), "has no DTSTART"),
        ("BEGIN:VEVENT\nDTSTART:20270101".to_owned(), "END:VEVENT"),
        ("hello".to_owned(), "has no event"),
    ] {
        let error = read_ics(&text).unwrap_err();
        assert!(error.field == "ics" && error.reason.contains(said), "{error}");
    }
}

#[test]
fn an_exclusion_names_calendar_and_day() {
    let holidays = calendar("de", Some("Europe/Berlin"), &["2027-01-01 New Year".to_owned()], &[]);
    let rules = CalendarRules { exclude: vec![holidays], ..CalendarRules::default() };
    let from: Timestamp = "2026-12-01T00:00:00Z".parse().unwrap();
    let spec = given::job("0 * * * *", "", from).spec.unwrap().with_calendars(&rules);
    let eve: Timestamp = "2026-12-31T23:00:00Z".parse().unwrap();
    let exclusion = spec.exclusion_at(eve).unwrap();
    assert_eq!(exclusion.to_string(), "the calendar de excludes 2027-01-01 (New Year)");
    assert_eq!(spec.exclusion_at(eve - SignedDuration::from_hours(1)), None);
    assert_eq!(spec.next_after(eve).unwrap().to_string(), "2027-01-01T23:00:00Z", "the day is that of Berlin");
}
