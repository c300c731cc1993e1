//! Random schedules, biased towards a moment so that something happens near it.

use jiff::civil::DateTime;

use super::schedule::{Field, FieldKind, Item, Schedule};
use crate::random::Random;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 8] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun"];

pub(crate) fn schedule(random: &mut Random, near: DateTime) -> Schedule {
    let fixed = random.percent(50);
    Schedule {
        second: random.percent(25).then(|| second(random)),
        minute: time(random, FieldKind::Minute, near.minute() as u32, fixed),
        hour: time(random, FieldKind::Hour, near.hour() as u32, fixed),
        day_of_month: day_of_month(random, near),
        month: month(random, near.month() as u32),
        day_of_week: day_of_week(random, near),
    }
}

fn second(random: &mut Random) -> Field {
    let value = random.below(60);
    let items = match random.below(20) {
        0 => vec![Item::Any { step: 1 }],
        1..=3 => vec![Item::Any { step: random.pick(&[15, 20, 30, 45]) }],
        4..=6 => vec![numbers(random, FieldKind::Second, value)],
        7..=9 => vec![Item::Value(0), Item::Value(value)],
        _ => vec![Item::Value(value)],
    };
    print(random, FieldKind::Second, items)
}

fn time(random: &mut Random, kind: FieldKind, near: u32, fixed: bool) -> Field {
    let steps = if kind == FieldKind::Hour { [2, 3, 5, 6, 7, 12] } else { [5, 7, 10, 15, 30, 45] };
    // A fixed-time schedule begins neither of its time fields with a star.
    let choice = if fixed { 38 + random.below(62) } else { random.below(100) };
    let items = match choice {
        0..=17 => vec![Item::Any { step: 1 }],
        18..=34 => vec![Item::Any { step: random.pick(&steps) }],
        35..=37 => vec![Item::Any { step: random.pick(&steps) }, numbers(random, kind, near)],
        38..=39 => vec![numbers(random, kind, near), Item::Any { step: 1 }],
        40..=59 => vec![Item::Value(around(random, kind, near))],
        60..=79 => list(random, kind, near),
        _ => vec![numbers(random, kind, near)],
    };
    print(random, kind, items)
}

fn day_of_month(random: &mut Random, near: DateTime) -> Field {
    let day = near.day() as u32;
    let items = match random.below(100) {
        0..=44 => vec![Item::Any { step: 1 }],
        45..=54 => vec![Item::Any { step: 1 + random.below(6) }],
        55..=69 => list(random, FieldKind::DayOfMonth, day),
        70..=79 => vec![numbers(random, FieldKind::DayOfMonth, day)],
        80..=83 => vec![Item::LastDay],
        84..=87 => vec![Item::LastWeekday],
        88..=93 => vec![Item::NearestWeekday(around(random, FieldKind::DayOfMonth, day))],
        94..=95 => vec![Item::Any { step: 3 }, Item::LastDay],
        _ => vec![
            numbers(random, FieldKind::DayOfMonth, day),
            Item::NearestWeekday(around(random, FieldKind::DayOfMonth, day)),
            Item::LastDay,
        ],
    };
    print(random, FieldKind::DayOfMonth, items)
}

fn month(random: &mut Random, near: u32) -> Field {
    let items = match random.below(100) {
        0..=59 => vec![Item::Any { step: 1 }],
        60..=64 => vec![Item::Any { step: 1 + random.below(4) }],
        65..=84 => vec![Item::Value(near)],
        85..=92 => list(random, FieldKind::Month, near),
        _ => vec![numbers(random, FieldKind::Month, near)],
    };
    print(random, FieldKind::Month, items)
}

fn day_of_week(random: &mut Random, near: DateTime) -> Field {
    let weekday = near.weekday().to_sunday_zero_offset() as u32;
    let of = |random: &mut Random| if random.percent(60) { weekday } else { random.below(8) };
    let count = (near.day() as u32 - 1) / 7 + 1;
    let items = match random.below(100) {
        0..=54 => vec![Item::Any { step: 1 }],
        55..=62 => vec![Item::Any { step: 1 + random.below(4) }],
        63..=74 => list(random, FieldKind::DayOfWeek, weekday),
        75..=86 => vec![numbers(random, FieldKind::DayOfWeek, weekday)],
        87..=92 => {
            vec![Item::Nth { weekday: of(random), count: if random.percent(70) { count } else { 1 + random.below(5) } }]
        }
        93..=96 => vec![Item::LastOf(of(random))],
        _ => vec![
            Item::LastOf(of(random)),
            Item::Nth { weekday: of(random), count },
            numbers(random, FieldKind::DayOfWeek, weekday),
        ],
    };
    print(random, FieldKind::DayOfWeek, items)
}

/// A few values, ranges or steps.
fn list(random: &mut Random, kind: FieldKind, near: u32) -> Vec<Item> {
    (0..=random.below(3))
        .map(|_| if random.percent(75) { Item::Value(around(random, kind, near)) } else { numbers(random, kind, near) })
        .collect()
}

fn numbers(random: &mut Random, kind: FieldKind, near: u32) -> Item {
    let (min, max) = kind.range();
    let step = if random.percent(50) { 1 } else { 1 + random.below(max) };
    let first = around(random, kind, near);
    if random.percent(25) {
        return Item::From { first, step };
    }
    let last = match (random.percent(70), kind) {
        (true, _) => min + (first - min + random.below(4)) % (max - min + 1),
        (false, FieldKind::DayOfWeek) => random.below(8),
        (false, _) => min + random.below(max - min + 1),
    };
    Item::Range { first, last, step }
}

/// A value at or close to `near`, or now and then any.
fn around(random: &mut Random, kind: FieldKind, near: u32) -> u32 {
    let (min, max) = kind.range();
    let size = max - min + 1;
    match random.below(10) {
        0..=3 => near,
        4..=6 => min + (near - min + size + random.below(4) - 1) % size,
        7 if matches!(kind, FieldKind::Second | FieldKind::Minute) => random.pick(&[0, 15, 30, 45, 59]),
        8 if kind == FieldKind::DayOfWeek => 7,
        _ => min + random.below(size),
    }
}

fn print(random: &mut Random, kind: FieldKind, items: Vec<Item>) -> Field {
    let texts: Vec<String> = items.iter().map(|item| print_item(random, kind, *item, items.len() == 1)).collect();
    Field { kind, text: texts.join(","), items }
}

fn print_item(random: &mut Random, kind: FieldKind, item: Item, alone: bool) -> String {
    let day_field = matches!(kind, FieldKind::DayOfMonth | FieldKind::DayOfWeek);
    let stepped = |random: &mut Random, text: String, step: u32| match step {
        1 if random.percent(80) => text,
        _ => format!("{text}/{step}"),
    };
    let text = match item {
        Item::Any { step: 1 } if day_field && alone && random.percent(15) => "?".to_owned(),
        Item::Any { step } => stepped(random, "*".to_owned(), step),
        Item::Value(value) => number(random, kind, value),
        Item::From { first, step } => format!("{}/{step}", number(random, kind, first)),
        Item::Range { first, last, step } => {
            let range = format!("{}-{}", number(random, kind, first), number(random, kind, last));
            stepped(random, range, step)
        }
        Item::LastDay => "L".to_owned(),
        Item::LastWeekday => "LW".to_owned(),
        Item::NearestWeekday(day) => format!("{day}W"),
        Item::Nth { weekday, count } => format!("{}#{count}", number(random, kind, weekday)),
        Item::LastOf(weekday) => format!("{}L", number(random, kind, weekday)),
    };
    if random.percent(30) { text.to_ascii_lowercase() } else { text }
}

fn number(random: &mut Random, kind: FieldKind, value: u32) -> String {
    match kind {
        FieldKind::Month if random.percent(30) => MONTHS[value as usize - 1].to_ascii_uppercase(),
        // `0-7` is a week and `sun-sun` a day: as the last of a range, 7 keeps its meaning only as a number.
        FieldKind::DayOfWeek if value != 7 && random.percent(30) => WEEKDAYS[value as usize].to_ascii_uppercase(),
        _ if random.percent(10) => format!("{value:02}"),
        _ => value.to_string(),
    }
}
