//! An expression field by field: what each says, and which are wrong and why.

use everbell_core::cron::{Expression, FieldName, MAX_EXPRESSION_BYTES, ParseError};

/// One field of an expression.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) text: String,
    /// The meaning of the field, or the error and the allowed values.
    pub(crate) meaning: Result<String, (String, &'static str)>,
}

/// The place at fault in an expression, with what is before and behind it.
pub(crate) struct Marked {
    pub(crate) before: String,
    pub(crate) fault: String,
    pub(crate) behind: String,
}

impl Marked {
    pub(crate) fn new(error: &ParseError) -> Marked {
        let part = |range: std::ops::Range<usize>| error.expression.get(range).unwrap_or_default().to_owned();
        Marked {
            before: part(0..error.span.start),
            fault: part(error.span.clone()),
            behind: part(error.span.end..error.expression.len()),
        }
    }
}

const FIELD_NAMES: [FieldName; 6] = [
    FieldName::Second,
    FieldName::Minute,
    FieldName::Hour,
    FieldName::DayOfMonth,
    FieldName::Month,
    FieldName::DayOfWeek,
];

/// Returns the fields of an expression, or of the expansion of a macro. A fixed rate has none.
pub(crate) fn parts(text: &str) -> Vec<Part> {
    let known = Expression::parse(text);
    let text = match &known {
        Ok(expression) if expression.is_fixed_rate() => return Vec::new(),
        Ok(expression) if text.trim_start().starts_with('@') => expression.normalized(),
        _ => text,
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let Some(first) = 6_usize.checked_sub(words.len()).filter(|first| *first < 2 && text.len() <= MAX_EXPRESSION_BYTES)
    else {
        return Vec::new();
    };
    let named = words.iter().zip(first..);
    named
        .map(|(word, position)| Part {
            name: label(FIELD_NAMES[position]),
            text: (*word).to_owned(),
            meaning: field_meaning(word, position),
        })
        .collect()
}

fn label(field: FieldName) -> &'static str {
    match field {
        FieldName::Second => "Second",
        FieldName::Minute => "Minute",
        FieldName::Hour => "Hour",
        FieldName::DayOfMonth => "Day of month",
        FieldName::Month => "Month",
        FieldName::DayOfWeek => "Day of week",
    }
}

/// Reads a field by itself, so that the fault of one does not hide that of another.
fn field_meaning(word: &str, position: usize) -> Result<String, (String, &'static str)> {
    let mut fields = ["0", "*", "*", "*", "*", "*"];
    fields[position] = word;
    match Expression::parse(&fields.join(" ")) {
        Ok(alone) => Ok(alone
            .normalized()
            .split(' ')
            .nth(position)
            .map(|text| meaning(FIELD_NAMES[position], text))
            .unwrap_or_default()),
        Err(error) => {
            let reason = error.to_string();
            let own = format!("{}: ", FIELD_NAMES[position]);
            Err((reason.strip_prefix(&own).unwrap_or(&reason).to_owned(), error.allowed()))
        }
    }
}

/// Describes a normalized field.
fn meaning(field: FieldName, text: &str) -> String {
    let items: Vec<String> = text.split(',').map(|item| item_meaning(field, item)).collect();
    let said = items.join(", ");
    let is_number = text.starts_with(|c: char| c.is_ascii_digit()) && said.starts_with(|c: char| c.is_ascii_digit());
    if is_number { format!("{} {said}", unit(field)) } else { said }
}

fn item_meaning(field: FieldName, item: &str) -> String {
    let unit = unit(field);
    if let Some((base, step)) = item.split_once('/') {
        let rate = step.parse().map_or_else(|_| step.to_owned(), ordinal);
        return match base.split_once('-') {
            Some((first, last)) => {
                format!("every {rate} {unit} from {} to {}", value(field, first), value(field, last))
            }
            None => format!("every {rate} {unit}"),
        };
    }
    match (field, item) {
        (_, "*") => format!("every {unit}"),
        (FieldName::DayOfMonth, "L") => "the last day".to_owned(),
        (FieldName::DayOfMonth, "LW") => "the last weekday".to_owned(),
        (FieldName::DayOfMonth, _) if item.ends_with('W') => {
            format!("the weekday nearest day {}", item.trim_end_matches('W'))
        }
        (FieldName::DayOfWeek, _) if item.ends_with('L') => {
            format!("the last {}", value(field, item.trim_end_matches('L')))
        }
        _ => match (item.split_once('#'), item.split_once('-')) {
            (Some((day, count)), _) => {
                format!("the {} {}", count.parse().map_or_else(|_| count.to_owned(), ordinal), value(field, day))
            }
            (None, Some((first, last))) => format!("{} to {}", value(field, first), value(field, last)),
            (None, None) => value(field, item),
        },
    }
}

fn unit(field: FieldName) -> &'static str {
    match field {
        FieldName::Second => "second",
        FieldName::Minute => "minute",
        FieldName::Hour => "hour",
        FieldName::DayOfMonth | FieldName::DayOfWeek => "day",
        FieldName::Month => "month",
    }
}

/// A number, or the name that people have for it.
fn value(field: FieldName, text: &str) -> String {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    const DAYS: [&str; 8] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    let number: Option<usize> = text.parse().ok();
    let name = match field {
        FieldName::Month => number.and_then(|number| MONTHS.get(number.checked_sub(1)?)),
        FieldName::DayOfWeek => number.and_then(|number| DAYS.get(number)),
        _ => None,
    };
    name.map_or_else(|| text.to_owned(), |name| (*name).to_owned())
}

fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meanings_of(text: &str) -> Vec<String> {
        let shown = |part: &Part| match &part.meaning {
            Ok(meaning) => format!("{} {}: {meaning}", part.name, part.text),
            Err((reason, _)) => format!("{} {}: ! {reason}", part.name, part.text),
        };
        parts(text).iter().map(shown).collect()
    }

    #[test]
    fn every_field_is_said_in_words() {
        assert_eq!(
            meanings_of("30 9-17 15W,L */3 mon-fri"),
            [
                "Minute 30: minute 30",
                "Hour 9-17: hour 9 to 17",
                "Day of month 15W,L: the weekday nearest day 15, the last day",
                "Month */3: every 3rd month",
                "Day of week mon-fri: Monday to Friday",
            ]
        );
        assert_eq!(
            meanings_of("*/10 0,30 10-20/5 1 jan,6 5#2,sunL"),
            [
                "Second */10: every 10th second",
                "Minute 0,30: minute 0, 30",
                "Hour 10-20/5: every 5th hour from 10 to 20",
                "Day of month 1: day 1",
                "Month jan,6: Jan, Jun",
                "Day of week 5#2,sunL: the 2nd Friday, the last Sunday",
            ]
        );
        assert_eq!(meanings_of("@weekly")[4], "Day of week 0: Sunday");
        assert_eq!(meanings_of("* * * * *")[1], "Hour *: every hour");
    }

    #[test]
    fn every_wrong_field_is_told() {
        let meanings = meanings_of("61 25 * foo 5");
        assert_eq!(meanings[0], "Minute 61: ! 61 is outside 0-59");
        assert_eq!(meanings[1], "Hour 25: ! 25 is outside 0-23");
        assert_eq!(meanings[3], "Month foo: ! `foo` is not a month");
        assert_eq!(meanings[4], "Day of week 5: Friday");
    }

    #[test]
    fn what_has_no_fields_has_no_parts() {
        let long = format!("{} * * * *", "1,".repeat(300));
        for text in ["", "@every 90s", "@soon", "* * *", "1 2 3 4 5 6 7", &long] {
            assert_eq!(parts(text), [], "{text}");
        }
    }

    #[test]
    fn the_place_at_fault_is_marked() {
        let marked = Marked::new(&Expression::parse("0 25 * * *").unwrap_err());
        assert_eq!((marked.before.as_str(), marked.fault.as_str(), marked.behind.as_str()), ("0 ", "25", " * * *"));
        let marked = Marked::new(&Expression::parse("é").unwrap_err());
        assert_eq!((marked.before.as_str(), marked.fault.as_str()), ("", "é"));
    }
}
