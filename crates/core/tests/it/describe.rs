//! Schedules in words: exact texts, and that no restriction is dropped.

#![allow(clippy::unwrap_used, reason = "a helper of tests may panic too")]

use std::collections::{BTreeSet, HashMap};

use everbell_core::cron::Expression;
use everbell_core::{Spec, Zone};
use jiff::Timestamp;
use proptest::prelude::*;

fn describe(text: &str) -> String {
    Expression::parse(text).unwrap_or_else(|error| panic!("`{text}`: {error}")).describe()
}

/// Lines of an expression and its text; `#` begins a remark.
fn check(table: &str) {
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (expression, expected) = line.split_once('|').unwrap();
        assert_eq!(describe(expression), expected.trim(), "{line}");
    }
}

#[test]
fn rates() {
    check(
        "
        * * * * *              | Every minute
        */5 * * * *            | Every 5 minutes
        0/5 * * * *            | Every 5 minutes
        0,15,30,45 * * * *     | Every 15 minutes
        */30 * * * *           | Every 30 minutes
        0 * * * *              | Every hour
        @hourly                | Every hour
        0 */2 * * *            | Every 2 hours
        0 */8 * * *            | Every 8 hours
        0 */6 * * 1-5          | Every 6 hours on weekdays
        30 */2 * * *           | Every 2 hours from 00:30 to 22:30, every day
        0 */5 * * *            | Every 5 hours from 00:00 to 20:00, every day
        */7 * * * *            | Every 7 minutes, restarting every hour
        */7 * * 6 1-5          | Every 7 minutes, restarting every hour, on weekdays in June
        30 * * * *             | At 30 minutes past every hour
        1 * * * *              | At 1 minute past every hour
        15,45 * * * *          | At 15 and 45 minutes past every hour
        */40 * * * *           | At 0 and 40 minutes past every hour
        2/5 * * * *            | Every 5 minutes from 2 to 57 minutes past every hour
        0-29 * * * *           | Every minute from 0 to 29 minutes past every hour
        0-10,12,14-20 * * * *  | At 0-10, 12 and 14-20 minutes past every hour
        * * * 6 *              | Every minute in June
        0 * 1 * *              | Every hour on day 1 of the month
        ",
    );
}

#[test]
fn times_of_day() {
    check(
        "
        30 2 * * *             | Every day at 02:30
        @daily                 | Every day at 00:00
        0 9 * * 1-5            | At 09:00 on weekdays
        0 9,12,18 * * *        | Every day at 09:00, 12:00 and 18:00
        0 */12 * * *           | Every day at 00:00 and 12:00
        15,45 9,17 * * 1       | At 09:15, 09:45, 17:15 and 17:45 on Monday
        0 22-2 * * *           | Every day at 00:00, 01:00, 02:00, 22:00 and 23:00
        0 9-17 * * 1-5         | Every hour from 09:00 to 17:00 on weekdays
        0 9-17/2 * * *         | Every 2 hours from 09:00 to 17:00, every day
        0 8-12,14-18 * * 1-5   | Every hour from 08:00 to 12:00 and from 14:00 to 18:00 on weekdays
        */15 9-17 * * *        | Every 15 minutes from 09:00 to 17:45, every day
        */15 9 * * *           | Every 15 minutes from 09:00 to 09:45, every day
        * 9-17 * * *           | Every minute from 09:00 to 17:59, every day
        2/5 9-17 * * *         | Every 5 minutes from 09:02 to 17:57, every day
        */7 9-17 * * *         | Every 7 minutes from 09:00 to 17:56, restarting every hour, every day
        */7 9 * * *            | Every 7 minutes from 09:00 to 09:56, every day
        */10 */2 * * *         | Every 10 minutes in every 2nd hour from 0 to 22, every day
        */10 1,4,9,17 * * *    | Every 10 minutes in hours 1, 4, 9 and 17, every day
        0-29 9-17 * * *        | Every minute from 0 to 29 minutes past every hour from 9 to 17, every day
        5,20 9-17 * 6 *        | At 5 and 20 minutes past every hour from 9 to 17, every day in June
        ",
    );
}

#[test]
fn seconds() {
    check(
        "
        * * * * * *            | Every second
        */10 * * * * *         | Every 10 seconds
        */7 * * * * *          | Every 7 seconds, restarting every minute
        0 */5 * * * *          | Every 5 minutes
        30 0 9 * * *           | Every day at 09:00:30
        0,30 0 9 * * *         | Every day at 09:00:00 and 09:00:30
        30 * * * * *           | At 30 seconds past every minute
        1 * * * * *            | At 1 second past every minute
        30 5 * * * *           | At 30 seconds past minute 5 of every hour
        30 */5 * * * *         | At 30 seconds past every 5th minute from 0 to 55 of every hour
        15 30 9-17 * * *       | Every hour from 09:30:15 to 17:30:15, every day
        * 30 9 * * *           | Every second from 09:30:00 to 09:30:59, every day
        1/2 * * * * *          | Every 2 seconds from 1 to 59 seconds past every minute
        */7 0,3,9 * * * *      | Every 7 seconds in minutes 0, 3 and 9 of every hour, restarting every minute
        */10 0-10,20 9,12 * * * | Every 10 seconds in minutes 0-10 and 20 of hours 9 and 12, every day
        ",
    );
}

#[test]
fn days_and_months() {
    check(
        "
        0 9 * * 6,0            | At 09:00 on weekends
        @weekly                | At 00:00 on Sunday
        0 0 * * mon,wed,fri    | At 00:00 on Monday, Wednesday and Friday
        0 0 * * mon-thu        | At 00:00 on Monday to Thursday
        0 0 * * fri-mon        | At 00:00 on Friday to Monday
        0 0 * * 0-6            | Every day at 00:00
        0 0 1 1 *              | At 00:00 on 1 January
        0 0 29 2 *             | At 00:00 on 29 February
        0 0 24,25 12 *         | At 00:00 on 24 and 25 December
        0 0 1 * *              | At 00:00 on day 1 of the month
        0 0 1 1,7 *            | At 00:00 on day 1 of the month in January and July
        0 0 1-7 * *            | At 00:00 on day 1 to 7 of the month
        0 0 1-7 12 *           | At 00:00 on day 1 to 7 of December
        0 0 1-7,15,20-22 * *   | At 00:00 on day 1-7, 15 and 20-22 of the month
        0 0 */2 * *            | At 00:00 on every 2nd day of the month from day 1
        0 0 2-20/3 * *         | At 00:00 on every 3rd day of the month from day 2 to 20
        0 0 */10 * *           | At 00:00 on day 1, 11, 21 and 31 of the month
        0 8 * 6-8 *            | Every day at 08:00 in June to August
        0 8 * 11-2 *           | Every day at 08:00 in November to February
        0 8 * */3 *            | Every day at 08:00 in January, April, July and October
        */5 9-17 * 6-8 1-5     | Every 5 minutes from 09:00 to 17:55 on weekdays in June to August
        ",
    );
}

#[test]
fn special_days() {
    check(
        "
        0 0 L * *              | At 00:00 on the last day of the month
        0 0 L 2 *              | At 00:00 on the last day of February
        0 0 LW * *             | At 00:00 on the last weekday of the month
        0 0 15W * *            | At 00:00 on the weekday nearest day 15 of the month
        0 0 1,15W,L * *        | At 00:00 on day 1, the last day and the weekday nearest day 15 of the month
        0 0 1W,2W,3W,8W,20 * * | At 00:00 on day 20 and the weekdays nearest days (1-3, 8) of the month
        0 0 * * 5#2            | At 00:00 on the second Friday of the month
        0 0 * 6 5#2            | At 00:00 on the second Friday of June
        0 0 * * 5L             | At 00:00 on the last Friday of the month
        0 0 * * mon,5#2        | At 00:00 on Monday and the second Friday of the month
        0 0 * 6-8 5#1,5L       | At 00:00 on the first Friday and the last Friday of the month in June to August
        ",
    );
}

#[test]
fn both_day_fields() {
    check(
        "
        0 9 1,15 * mon         | At 09:00 on day 1 and 15 of the month, OR on Monday
        0 9 L 6-8 1-5          | At 09:00 on the last day of the month, OR on weekdays, only in June to August
        0 0 13 * 5#2           | At 00:00 on day 13 of the month, OR on the second Friday of the month
        # One of the two is every day, so the other does not matter.
        0 0 1 * 0-6            | Every day at 00:00
        0 0 1-31 * mon         | Every day at 00:00
        0 16 */2 * sat         | At 16:00 on every 2nd day of the month from day 1, only when it is a Saturday
        0 0 1 * */2            | At 00:00 on day 1 of the month, only when it is a Tuesday, Thursday, Saturday or Sunday
        0 0 */2 6 5#2,mon      | At 00:00 on every 2nd day of the month from day 1, \
            only when it is a Monday or the second Friday of the month, only in June
        ",
    );
}

#[test]
fn fixed_rates() {
    check(
        "
        @every 1s              | Every second
        @every 60s             | Every minute
        @every 90s             | Every 90 seconds
        @every 150s            | Every 2 minutes 30 seconds
        @every 1h              | Every hour
        @every 90m             | Every 1 hour 30 minutes
        @every 1d              | Every day
        @every 2w              | Every 14 days
        @every 1d1s            | Every 1 day 1 second
        ",
    );
}

#[test]
fn long_lists_become_counts() {
    assert_eq!(
        describe("0 0 * * 1#1,2#1,3#1,4#1,5#1,1#2,2#2,3#2,4#2,5#2,0L"),
        "At 00:00 on 11 chosen days of the week from the first Monday to the last Sunday of the month"
    );
    let long = "1,2,4,6,8,9,11,14,16,18,20,23,25,27,30,32,34,37,39,41,44,46,48,51,53,55,58";
    assert_eq!(
        describe(&format!("{long} {long} 1,3,4,7,9 2,3,7W,9W,20W 1,3,4,6,8,9,10 1#1,2#1,3#1,2L,3L,4L,5#5")),
        "At 27 chosen seconds from 1 to 58 past 27 chosen minutes from 1 to 58 of hours 1, 3, 4, 7 and 9 on day 2, 3, \
         the weekday nearest day 7, the weekday nearest day 9 and the weekday nearest day 20 of the month, OR on \
         7 chosen days of the week from the first Monday to the last Thursday of the month, only in January, March, \
         April, June, August, September and October"
    );
}

/// The times of a day, and the days of two years, one of them a leap year: equal schedules share both.
fn fires(text: &str) -> (Vec<bool>, BTreeSet<i64>) {
    let start: Timestamp = "2023-12-31T23:59:59Z".parse().unwrap();
    let spec = Spec::recurring(Expression::parse(text).unwrap(), Zone::utc(), start);
    let Some(first) = spec.next_after(start) else {
        return Default::default();
    };
    let at = |second: i64| spec.matches(Timestamp::from_second(second).unwrap());
    let (day, time) = (first.as_second().div_euclid(86_400) * 86_400, first.as_second().rem_euclid(86_400));
    let (minute, hour) = (time - time % 60, time - time % 3_600);
    // The first time has the smallest of each field, and the set is their product: one axis after the other shows all.
    let seconds = (0..60).map(|n| day + minute + n);
    let minutes = (0..60).map(|n| day + hour + n * 60 + time % 60);
    let hours = (0..24).map(|n| day + n * 3_600 + time % 3_600);
    let times = seconds.chain(minutes).chain(hours).map(at).collect();
    let origin = start.as_second() + 1;
    (times, (0..731).filter(|n| at(origin + n * 86_400 + time)).collect())
}

/// Fails when one sentence stands for two different schedules: some restriction was dropped.
fn check_family(expressions: impl Iterator<Item = String>) {
    let mut seen = HashMap::new();
    let mut sentences = BTreeSet::new();
    for text in expressions {
        let Ok(expression) = Expression::parse(&text) else {
            continue;
        };
        let sentence = expression.describe();
        if sentence.contains(" chosen ") {
            continue;
        }
        let found = fires(&text);
        let (earlier, known) = seen.entry(sentence.clone()).or_insert_with(|| (text.clone(), found.clone()));
        assert!(*known == found, "`{earlier}` and `{text}` both read \"{sentence}\"");
        sentences.insert(sentence);
    }
    assert!(sentences.len() > 400, "the family is small: {}", sentences.len());
}

fn product(pools: &[&[&str]], format: impl Fn(&[&str]) -> String) -> Vec<String> {
    let mut rows: Vec<Vec<&str>> = vec![Vec::new()];
    for pool in pools {
        rows = rows.iter().flat_map(|row| pool.iter().map(|item| [row.as_slice(), &[*item]].concat())).collect();
    }
    rows.iter().map(|row| format(row)).collect()
}

#[test]
fn different_times_read_differently() {
    let small = [
        "*", "0", "1", "59", "*/2", "1/2", "*/7", "3/7", "3-45/7", "0-6", "5-9", "0,30", "0,29,30", "1,2,7", "*/29",
        "*/40",
    ];
    let hours =
        ["*", "0", "9", "23", "*/2", "1/2", "*/5", "9-17", "9-10", "9,17", "8-12,14-18", "0,3,4,9", "22-2", "6/3"];
    let seconds = ["0", "30", "*", "*/10", "*/7", "5-20", "1,2,7"];
    check_family(product(&[&seconds, &small, &hours], |row| format!("{} * * *", row.join(" "))).into_iter());
}

#[test]
fn different_days_read_differently() {
    let dates = [
        "*",
        "1",
        "31",
        "1,15",
        "1-7",
        "*/2",
        "2/2",
        "2-20/3",
        "1-31",
        "L",
        "LW",
        "15W",
        "1,L",
        "1W,2W,3W,9W",
        "*/9,L",
    ];
    let months = ["*", "1", "2", "6-8", "11-2", "1,7", "*/2"];
    let weekdays = ["*", "1", "0", "1-5", "6,0", "0-6", "1-4", "fri-mon", "*/2", "1,4", "5#2", "5L", "1,5#2", "5#5,1L"];
    check_family(product(&[&dates, &months, &weekdays], |row| format!("0 0 {}", row.join(" "))).into_iter());
}

/// One item of a field with values from `min` to `max`.
fn item(min: u32, max: u32) -> impl Strategy<Value = String> {
    let value = move || min..=max;
    prop_oneof![
        2 => value().prop_map(|a| a.to_string()),
        1 => (value(), value()).prop_map(|(a, b)| format!("{a}-{b}")),
        1 => (value(), value(), 1..12_u32).prop_map(|(a, b, step)| format!("{a}-{b}/{step}")),
        1 => (value(), 1..12_u32).prop_map(|(a, step)| format!("{a}/{step}")),
    ]
}

fn field(min: u32, max: u32, special: &'static [&'static str]) -> impl Strategy<Value = String> {
    let special = prop::sample::select(if special.is_empty() { &["*"][..] } else { special });
    let items = prop_oneof![3 => item(min, max).boxed(), 1 => special.prop_map(str::to_owned).boxed()];
    prop_oneof![
        2 => Just("*".to_owned()),
        2 => (2..30_u32).prop_map(|step| format!("*/{step}")),
        4 => prop::collection::vec(items, 1..5).prop_map(|items| items.join(",")),
        1 => prop::collection::vec(item(min, max), 5..20).prop_map(|items| items.join(",")),
    ]
}

fn fields() -> impl Strategy<Value = [String; 6]> {
    (
        prop_oneof![Just("0".to_owned()).boxed(), field(0, 59, &[]).boxed()],
        field(0, 59, &[]),
        field(0, 23, &[]),
        field(1, 31, &["L", "LW", "1W", "15W", "31W"]),
        field(1, 12, &[]),
        field(0, 7, &["5#2", "1#1", "0#5", "5L", "0L"]),
    )
        .prop_map(|(second, minute, hour, dom, month, dow)| [second, minute, hour, dom, month, dow])
}

fn check_shape(sentence: &str) {
    assert!(!sentence.is_empty() && sentence.len() <= 400, "{} characters: {sentence}", sentence.len());
    assert!(sentence.starts_with("Every ") || sentence.starts_with("At "), "{sentence}");
    assert!(!sentence.contains("  ") && !sentence.contains(" ,") && sentence.trim() == sentence, "{sentence}");
    assert!(!sentence.ends_with(['.', ',']), "{sentence}");
}

proptest! {
    #[test]
    fn every_expression_has_a_sentence(fields in fields()) {
        for text in [fields.join(" "), fields[1..].join(" ")] {
            if let Ok(expression) = Expression::parse(&text) {
                check_shape(&expression.describe());
            }
        }
    }

    #[test]
    fn every_rate_has_a_sentence(seconds in 1..=366 * 86_400_u64) {
        check_shape(&Expression::every(seconds).unwrap().describe());
    }

    #[test]
    fn a_changed_field_changes_the_sentence(one in fields(), other in fields(), which in 0..6_usize) {
        let mut changed = one.clone();
        changed[which].clone_from(&other[which]);
        let texts = [one.join(" "), changed.join(" ")];
        let parsed: Vec<Expression> = texts.iter().filter_map(|text| Expression::parse(text).ok()).collect();
        if let [a, b] = parsed.as_slice() {
            let (sentence, changed) = (a.describe(), b.describe());
            if sentence == changed && !sentence.contains(" chosen ") {
                prop_assert_eq!(fires(&texts[0]), fires(&texts[1]), "`{}` and `{}` both read \"{}\"", a, b, sentence);
            }
        }
    }
}
