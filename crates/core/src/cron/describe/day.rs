//! Days and months.

use super::super::search::{Days, Fields};
use super::words::{Progression, circular_run, list, members, month, numbers, ordinal, phrase, ranges, weekday};

const ALL_DATES: u32 = 0xffff_fffe;
const ALL_WEEKDAYS: u8 = 0x7f;
const ALL_MONTHS: u16 = 0x1ffe;
const MONDAY_TO_FRIDAY: u8 = 0b011_1110;
const WEEKEND: u8 = 0b100_0001;
/// The most days of one month that are listed as dates: `24 and 25 December`.
const MAX_DATES: usize = 4;

/// On which days.
pub(super) enum DayText {
    /// On all days, perhaps only `in June`.
    Every { months: String },
    /// `on weekdays`, `on day 1 of the month`.
    Some(String),
}

pub(super) fn text(fields: &Fields, budget: usize) -> DayText {
    let days = &fields.days;
    let any_date = days.dom == ALL_DATES;
    let any_weekday = days.dow == ALL_WEEKDAYS;
    let months = Months(fields.months);
    if any_date && any_weekday || days.either && (any_date || any_weekday) {
        return DayText::Every { months: months.suffix("in") };
    }
    if !days.either && any_date {
        return DayText::Some(weekdays_in(days, months, budget));
    }
    if !days.either && any_weekday {
        return DayText::Some(dates_in(days, months, budget));
    }
    let dates = dates(days, "the month", budget);
    let both = if days.either {
        format!("on {dates}, OR on {}", weekdays(days, "the month", budget))
    } else {
        format!("on {dates}, only when it is {}", one_of_weekdays(days, budget))
    };
    DayText::Some(phrase(&both, ", ", &months.suffix("only in")))
}

/// The selected months, bits 1 to 12.
#[derive(Clone, Copy)]
struct Months(u16);

impl Months {
    fn only(self) -> Option<&'static str> {
        self.0.is_power_of_two().then(|| month(self.0.trailing_zeros()))
    }

    /// `in June to August`; nothing if all months are selected.
    fn suffix(self, preposition: &str) -> String {
        if self.0 == ALL_MONTHS {
            return String::new();
        }
        let months = members(u64::from(self.0));
        if let Some((first, last)) = circular_run(&months, 12) {
            return format!("{preposition} {} to {}", month(first), month(last));
        }
        let names: Vec<String> = months.into_iter().map(|number| month(number).to_owned()).collect();
        format!("{preposition} {}", list(&names, "and"))
    }
}

/// `on 1 January`, `on day 1 of the month in June to August`.
fn dates_in(days: &Days, months: Months, budget: usize) -> String {
    let Some(name) = months.only() else {
        let text = format!("on {}", dates(days, "the month", budget));
        return phrase(&text, " ", &months.suffix("in"));
    };
    let plain = members(u64::from(days.dom));
    let singles = ranges(&plain);
    if special_dates(days, budget).is_empty() && singles.len() == plain.len() && plain.len() <= MAX_DATES {
        return format!("on {} {name}", list(&singles, "and"));
    }
    format!("on {}", dates(days, name, budget))
}

/// `day 1, 15 and the last day of the month`.
fn dates(days: &Days, month: &str, budget: usize) -> String {
    let plain = members(u64::from(days.dom));
    let special = special_dates(days, budget);
    if special.is_empty()
        && let Some(run) = Progression::from_values(plain.iter().copied())
        && run.is_run()
    {
        let Progression { first, last, step, .. } = run;
        return match step {
            1 => format!("day {first} to {last} of {month}"),
            // A step that goes on to the end of the month has no last day worth naming.
            _ if last + step > 31 => format!("every {} day of {month} from day {first}", ordinal(step)),
            _ => format!("every {} day of {month} from day {first} to {last}", ordinal(step)),
        };
    }
    let mut items = Vec::new();
    match (plain.as_slice(), numbers(&plain, budget)) {
        ([], _) => {}
        ([first, .., last], None) => items.push(format!("{} chosen days from day {first} to {last}", plain.len())),
        _ => {
            items = ranges(&plain);
            items[0].insert_str(0, "day ");
        }
    }
    items.extend(special);
    format!("{} of {month}", list(&items, "and"))
}

/// `L`, `LW` and `15W` in words.
fn special_dates(days: &Days, budget: usize) -> Vec<String> {
    let mut items = Vec::new();
    if days.last_day {
        items.push("the last day".to_owned());
    }
    if days.last_weekday {
        items.push("the last weekday".to_owned());
    }
    let nearest = members(u64::from(days.nearest_weekday));
    if nearest.len() <= 3 {
        items.extend(nearest.iter().map(|day| format!("the weekday nearest day {day}")));
    } else {
        let inner = ranges(&nearest).join(", ");
        items.push(match (nearest.as_slice(), inner.len() <= budget) {
            ([first, .., last], false) => {
                format!("the weekdays nearest {} chosen days from day {first} to {last}", nearest.len())
            }
            // In brackets: the list around it has its own "and".
            _ => format!("the weekdays nearest days ({inner})"),
        });
    }
    items
}

/// `on weekdays in June`, `on the second Friday of June`.
fn weekdays_in(days: &Days, months: Months, budget: usize) -> String {
    match months.only() {
        Some(name) if days.dow == 0 => format!("on {}", weekdays(days, name, budget)),
        _ => phrase(&format!("on {}", weekdays(days, "the month", budget)), " ", &months.suffix("in")),
    }
}

/// `Monday to Thursday`, `weekends and the second Friday of the month`.
fn weekdays(days: &Days, month: &str, budget: usize) -> String {
    let plain = monday_first(days.dow);
    let mut items: Vec<String> = match (days.dow, circular_run(&members(u64::from(days.dow)), 7)) {
        (MONDAY_TO_FRIDAY, _) => vec!["weekdays".to_owned()],
        (WEEKEND, _) => vec!["weekends".to_owned()],
        (_, Some((first, last))) => vec![format!("{} to {}", weekday(first), weekday(last))],
        _ => plain.iter().map(|day| weekday(*day).to_owned()).collect(),
    };
    let special = special_weekdays(days, budget).unwrap_or_else(|chosen| vec![chosen]);
    let end = if special.is_empty() { String::new() } else { format!(" of {month}") };
    items.extend(special);
    format!("{}{end}", list(&items, "and"))
}

/// `a Saturday or Sunday`, `a weekday`, `the second Friday of the month`.
fn one_of_weekdays(days: &Days, budget: usize) -> String {
    let plain = monday_first(days.dow);
    let mut items: Vec<String> = if days.dow == MONDAY_TO_FRIDAY {
        vec!["weekday".to_owned()]
    } else {
        plain.iter().map(|day| weekday(*day).to_owned()).collect()
    };
    if let Some(first) = items.first_mut() {
        first.insert_str(0, "a ");
    }
    let special = special_weekdays(days, budget).unwrap_or_else(|chosen| vec![format!("one of {chosen}")]);
    let end = if special.is_empty() { "" } else { " of the month" };
    items.extend(special);
    format!("{}{end}", list(&items, "or"))
}

/// `5#2` and `5L` in words, or, if that is too long, how many they are.
fn special_weekdays(days: &Days, budget: usize) -> Result<Vec<String>, String> {
    const COUNTS: [&str; 6] = ["first", "second", "third", "fourth", "fifth", "last"];
    let weeks = (0..5).map(|week| (days.nth >> (7 * week)) as u8 & ALL_WEEKDAYS).chain([days.last_dow]);
    let items: Vec<String> = weeks
        .zip(COUNTS)
        .flat_map(|(set, count)| monday_first(set).into_iter().map(move |day| format!("the {count} {}", weekday(day))))
        .collect();
    match items.as_slice() {
        [first, .., last] if list(&items, "and").len() > budget => {
            Err(format!("{} chosen days of the week from {first} to {last}", items.len()))
        }
        _ => Ok(items),
    }
}

/// Weekdays in the order of a calendar's page; Sunday is 0.
fn monday_first(set: u8) -> Vec<u32> {
    (1..=7).map(|day| day % 7).filter(|day| set & (1 << day) != 0).collect()
}
