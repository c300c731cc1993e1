//! A schedule as data: what an expression means, told without parsing it and without bit sets.

use jiff::civil::{Date, Weekday};

/// Where a field stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Second,
    Minute,
    Hour,
    DayOfMonth,
    Month,
    DayOfWeek,
}

/// One part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Any { step: u32 },
    Value(u32),
    From { first: u32, step: u32 },
    Range { first: u32, last: u32, step: u32 },
    LastDay,
    LastWeekday,
    NearestWeekday(u32),
    Nth { weekday: u32, count: u32 },
    LastOf(u32),
}

/// A list, with the text that was printed for it.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) kind: FieldKind,
    pub(crate) items: Vec<Item>,
    pub(crate) text: String,
}

/// A whole expression.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) second: Option<Field>,
    pub(crate) minute: Field,
    pub(crate) hour: Field,
    pub(crate) day_of_month: Field,
    pub(crate) month: Field,
    pub(crate) day_of_week: Field,
}

impl FieldKind {
    pub(crate) fn range(self) -> (u32, u32) {
        match self {
            FieldKind::Second | FieldKind::Minute => (0, 59),
            FieldKind::Hour => (0, 23),
            FieldKind::DayOfMonth => (1, 31),
            FieldKind::Month => (1, 12),
            FieldKind::DayOfWeek => (0, 6),
        }
    }
}

impl Field {
    /// The text begins with a star (or is `?`).
    pub(crate) fn star(&self) -> bool {
        matches!(self.items[0], Item::Any { .. })
    }

    /// Whether this number is in the list, by walking through each item.
    pub(crate) fn has(&self, value: u32) -> bool {
        let (min, max) = self.kind.range();
        let week = self.kind == FieldKind::DayOfWeek;
        self.items.iter().any(|item| match *item {
            Item::Any { step } => walk(min, max, step, self.kind).any(|v| v == value),
            Item::Value(v) => v == value || (week && v == 7 && value == 0),
            Item::From { first, step } => {
                walk(if week { first % 7 } else { first }, max, step, self.kind).any(|v| v == value)
            }
            // Sunday is 7 only at the end of a week.
            Item::Range { first: 7, last, step } if week => walk(0, last % 7, step, self.kind).any(|v| v == value),
            Item::Range { first, last, step } => walk(first, last, step, self.kind).any(|v| v == value),
            _ => false,
        })
    }
}

/// `first`, `first + step`, … as far as `last`, counting from the maximum on to the minimum.
fn walk(first: u32, last: u32, step: u32, kind: FieldKind) -> impl Iterator<Item = u32> {
    let (min, max) = kind.range();
    let week = kind == FieldKind::DayOfWeek;
    let mut passed = Vec::new();
    let mut value = first;
    loop {
        passed.push(if week { value % 7 } else { value });
        if value == last {
            break;
        }
        value = match value {
            // Up to 7 only where the range says so; otherwise the week begins again.
            v if week && v >= max && last != 7 => min,
            v if !week && v >= max => min,
            v => v + 1,
        };
    }
    passed.into_iter().step_by(step as usize)
}

impl Schedule {
    pub(crate) fn text(&self) -> String {
        let fields = [&self.minute, &self.hour, &self.day_of_month, &self.month, &self.day_of_week];
        let texts: Vec<&str> = self.second.iter().chain(fields).map(|field| field.text.as_str()).collect();
        texts.join(" ")
    }

    /// Follows elapsed time (T8): the minute or hour field begins with a star.
    pub(crate) fn wildcard(&self) -> bool {
        self.minute.star() || self.hour.star()
    }

    /// Whether a date matches: month, and either or both day fields (T3).
    pub(crate) fn on(&self, date: Date) -> bool {
        let by_date =
            self.day_of_month.has(date.day() as u32) || self.day_of_month.items.iter().any(|i| special_date(*i, date));
        let weekday = date.weekday().to_sunday_zero_offset() as u32;
        let by_weekday =
            self.day_of_week.has(weekday) || self.day_of_week.items.iter().any(|i| special_weekday(*i, date));
        let either = !self.day_of_month.star() && !self.day_of_week.star();
        self.month.has(date.month() as u32) && if either { by_date || by_weekday } else { by_date && by_weekday }
    }
}

fn weekend(date: Date) -> bool {
    matches!(date.weekday(), Weekday::Saturday | Weekday::Sunday)
}

fn special_date(item: Item, date: Date) -> bool {
    let length = date.days_in_month();
    let on = |day: i8| Date::new(date.year(), date.month(), day).unwrap();
    match item {
        Item::LastDay => date.day() == length,
        Item::LastWeekday => !weekend(date) && (date.day() + 1..=length).all(|day| weekend(on(day))),
        Item::NearestWeekday(day) => {
            let day = day as i8;
            if day > length {
                return false;
            }
            let nearest = match on(day).weekday() {
                Weekday::Saturday if day == 1 => 3,
                Weekday::Saturday => day - 1,
                Weekday::Sunday if day == length => day - 2,
                Weekday::Sunday => day + 1,
                _ => day,
            };
            date.day() == nearest
        }
        _ => false,
    }
}

fn special_weekday(item: Item, date: Date) -> bool {
    let nth = |weekday: u32, nth: i8| {
        let weekday = Weekday::from_sunday_zero_offset((weekday % 7) as i8).unwrap();
        date.nth_weekday_of_month(nth, weekday).is_ok_and(|found| found == date)
    };
    match item {
        Item::Nth { weekday, count } => nth(weekday, count as i8),
        Item::LastOf(weekday) => nth(weekday, -1),
        _ => false,
    }
}
