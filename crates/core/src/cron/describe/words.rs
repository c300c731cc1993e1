//! Numbers, lists and names as people write them.

/// `1 hour 30 minutes`, `90 seconds`; a single unit goes without its number, so that `Every hour` reads well.
pub(in crate::cron) fn interval(seconds: u64) -> String {
    // "90 seconds" is said, "150 seconds" is not.
    if seconds != 60 && seconds < 120 {
        return if seconds == 1 { "second".to_owned() } else { format!("{seconds} seconds") };
    }
    let parts = [
        (seconds / 86_400, "day"),
        (seconds / 3_600 % 24, "hour"),
        (seconds / 60 % 60, "minute"),
        (seconds % 60, "second"),
    ];
    let said: Vec<(u64, &str)> = parts.into_iter().filter(|(count, _)| *count > 0).collect();
    if let [(1, unit)] = said[..] {
        return unit.to_owned();
    }
    let said: Vec<String> = said.iter().map(|(n, unit)| format!("{n} {}", plural(unit, *n != 1))).collect();
    said.join(" ")
}

pub(super) fn plural(noun: &str, many: bool) -> String {
    format!("{noun}{}", if many { "s" } else { "" })
}

/// The numbers of the set bits, ascending.
pub(in crate::cron) fn members(bits: u64) -> Vec<u32> {
    (0..64).filter(|n| bits & (1 << n) != 0).collect()
}

/// Numbers at one distance: `first, first + step, … last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cron) struct Progression {
    pub(in crate::cron) first: u32,
    pub(in crate::cron) last: u32,
    pub(in crate::cron) step: u32,
    pub(in crate::cron) count: usize,
}

impl Progression {
    /// Ascending numbers, if there are at least two and all are at one distance.
    pub(in crate::cron) fn from_values(values: impl IntoIterator<Item = u32>) -> Option<Progression> {
        let mut values = values.into_iter();
        let first = values.next()?;
        let mut last = values.next()?;
        let step = last - first;
        let mut count = 2;
        for value in values {
            if value - last != step {
                return None;
            }
            last = value;
            count += 1;
        }
        Some(Progression { first, last, step, count })
    }

    /// Begins with 0 and goes on as far as `size` allows, like `*/7`.
    pub(in crate::cron) fn fills_from_zero(self, size: u32) -> bool {
        self.first == 0 && self.last + self.step >= size
    }

    /// Long enough to be said as "every … from … to …" instead of a list.
    pub(super) fn is_run(self) -> bool {
        self.count >= 5 || self.step == 1 && self.count >= 3
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(in crate::cron) fn list(items: &[String], conjunction: &str) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [head @ .., last] => format!("{} {conjunction} {last}", head.join(", ")),
    }
}

/// Ascending numbers as items of a list, three and more in a row as `4-9`.
pub(super) fn ranges(values: &[u32]) -> Vec<String> {
    let mut items = Vec::new();
    for run in values.chunk_by(|a, b| a + 1 == *b) {
        match run {
            [first, _, .., last] => items.push(format!("{first}-{last}")),
            _ => items.extend(run.iter().map(u32::to_string)),
        }
    }
    items
}

/// The list of these numbers, unless it is longer than `budget`.
pub(super) fn numbers(values: &[u32], budget: usize) -> Option<String> {
    Some(list(&ranges(values), "and")).filter(|text| text.len() <= budget)
}

/// `2nd`, `3rd`, `11th`.
pub(super) fn ordinal(n: u32) -> String {
    let ending = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

/// Both texts with `separator` between them; the first alone if the second is empty.
pub(super) fn phrase(text: &str, separator: &str, more: &str) -> String {
    if more.is_empty() { text.to_owned() } else { format!("{text}{separator}{more}") }
}

pub(in crate::cron) fn month(number: u32) -> &'static str {
    const NAMES: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    NAMES[(number as usize + 11) % 12]
}

/// Sunday is 0.
pub(in crate::cron) fn weekday(number: u32) -> &'static str {
    const NAMES: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
    NAMES[number as usize % 7]
}

/// First and last of at least three neighbours on a circle of `size`, if these are all: November to February.
pub(super) fn circular_run(values: &[u32], size: u32) -> Option<(u32, u32)> {
    if values.len() < 3 || values.len() >= size as usize {
        return None;
    }
    let neighbours = |a: u32, b: u32| (a + 1) % size == b % size;
    let (first, last) = (*values.first()?, *values.last()?);
    let breaks: Vec<(u32, u32)> = values
        .windows(2)
        .map(|pair| (pair[0], pair[1]))
        .chain([(last, first)])
        .filter(|(a, b)| !neighbours(*a, *b))
        .collect();
    match breaks[..] {
        [(end, start)] => Some((start, end)),
        _ => None,
    }
}
