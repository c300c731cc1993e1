//! Why an expression was refused: which field, which characters, what is allowed.

use std::fmt;
use std::ops::Range;

use super::field::{MONTHS, WEEKDAYS};

/// One of the six places of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldName {
    /// The optional first of six.
    Second,
    /// 0-59.
    Minute,
    /// 0-23.
    Hour,
    /// 1-31, `L`, `LW`, `nW`.
    DayOfMonth,
    /// 1-12 or names.
    Month,
    /// 0-7 or names, `n#k`, `nL`.
    DayOfWeek,
}

impl FieldName {
    /// A name for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            FieldName::Second => "second",
            FieldName::Minute => "minute",
            FieldName::Hour => "hour",
            FieldName::DayOfMonth => "day-of-month",
            FieldName::Month => "month",
            FieldName::DayOfWeek => "day-of-week",
        }
    }

    /// Describes the values that this field accepts, in one line.
    pub const fn allowed(self) -> &'static str {
        match self {
            FieldName::Second | FieldName::Minute => "0-59, lists `0,30`, ranges `10-20`, steps `*/5`, or `*`",
            FieldName::Hour => "0-23, lists `9,17`, ranges `9-17`, steps `*/2`, or `*`",
            FieldName::DayOfMonth => {
                "1-31, lists, ranges, steps, `L` (last day), `LW` (last weekday), `15W` (weekday nearest the 15th), `*` or `?`"
            }
            FieldName::Month => "1-12 or jan-dec, lists, ranges, steps, or `*`",
            FieldName::DayOfWeek => {
                "0-7 or sun-sat (0 and 7 are Sunday), lists, ranges, steps, `5#2` (second Friday), `5L` (last Friday), `*` or `?`"
            }
        }
    }

    pub(crate) const fn range(self) -> (u32, u32) {
        match self {
            FieldName::Second | FieldName::Minute => (0, 59),
            FieldName::Hour => (0, 23),
            FieldName::DayOfMonth => (1, 31),
            FieldName::Month => (1, 12),
            FieldName::DayOfWeek => (0, 7),
        }
    }
}

impl fmt::Display for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An expression that was refused.
///
/// `Display` is one line; [`ParseError::render`] shows the expression with the place marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The text that was refused; at most [`super::MAX_EXPRESSION_BYTES`] of it.
    pub expression: String,
    /// The bytes at fault, inside `expression`.
    pub span: Range<usize>,
    /// The field at fault, unless the whole expression is.
    pub field: Option<FieldName>,
    /// The error itself.
    pub kind: ParseErrorKind,
}

/// The kinds of errors in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseErrorKind {
    /// Nothing but white space.
    Empty,
    /// More bytes than an expression may have.
    TooLong,
    /// Neither five nor six fields.
    FieldCount(usize),
    /// A number outside the field's range.
    OutOfRange,
    /// Letters that are no name of this field.
    UnknownName,
    /// Characters that have no meaning here.
    Unexpected,
    /// A value is missing, as in `1,,2`, `5-` or `*/`.
    MissingValue,
    /// A step that is zero or not a number.
    BadStep,
    /// The count of `5#2` is not 1 to 5.
    BadCount,
    /// `L`, `W`, `#` or `?` in a field or place that does not know it.
    Misplaced,
    /// A `@name` that is no macro.
    UnknownMacro,
    /// The duration of `@every`.
    BadInterval,
    /// No date ever matches, such as 30 February.
    NeverFires,
}

impl ParseError {
    /// A stable word for programs.
    pub const fn code(&self) -> &'static str {
        match self.kind {
            ParseErrorKind::Empty => "empty",
            ParseErrorKind::TooLong => "too_long",
            ParseErrorKind::FieldCount(_) => "field_count",
            ParseErrorKind::OutOfRange => "out_of_range",
            ParseErrorKind::UnknownName => "unknown_name",
            ParseErrorKind::Unexpected => "unexpected",
            ParseErrorKind::MissingValue => "missing_value",
            ParseErrorKind::BadStep => "bad_step",
            ParseErrorKind::BadCount => "bad_count",
            ParseErrorKind::Misplaced => "misplaced",
            ParseErrorKind::UnknownMacro => "unknown_macro",
            ParseErrorKind::BadInterval => "bad_interval",
            ParseErrorKind::NeverFires => "never_fires",
        }
    }

    /// The characters at fault.
    pub fn text(&self) -> &str {
        self.expression.get(self.span.clone()).unwrap_or("")
    }

    /// Describes the values that are accepted at the position of the error.
    pub fn allowed(&self) -> &'static str {
        match (&self.kind, self.field) {
            (ParseErrorKind::BadStep, _) => "a step is a whole number from 1 to 999",
            (ParseErrorKind::BadCount, _) => "a count from 1 to 5, as in `5#2` (second Friday)",
            (ParseErrorKind::BadInterval, _) => "a duration such as `90s`, `5m` or `1h30m`, from 1s to 366d",
            (ParseErrorKind::UnknownMacro, _) => {
                "@yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, or `@every 90s`"
            }
            (ParseErrorKind::Unexpected, None) => "nothing after a macro",
            (_, Some(field)) => field.allowed(),
            (_, None) => "`minute hour day-of-month month day-of-week`, with an optional leading seconds field",
        }
    }

    /// Guesses what the writer meant, if the error suggests it.
    pub fn hint(&self) -> Option<&'static str> {
        let text = self.text();
        match self.kind {
            _ if names_a_zone(self.word()) => {
                Some("the time zone is a separate setting (`timezone`), not part of the expression")
            }
            ParseErrorKind::Empty => Some("every day at 09:00 is `0 9 * * *`"),
            ParseErrorKind::FieldCount(1) if text == "*" => Some("every minute is `* * * * *`"),
            ParseErrorKind::FieldCount(_) if text.contains(" #") => Some("a comment is not part of the expression"),
            ParseErrorKind::FieldCount(7) => Some(NO_YEARS),
            ParseErrorKind::OutOfRange if self.field == Some(FieldName::DayOfWeek) && text.len() == 4 => Some(NO_YEARS),
            ParseErrorKind::OutOfRange if self.field == Some(FieldName::Hour) && text == "24" => {
                Some("midnight is hour 0")
            }
            ParseErrorKind::UnknownName if self.begins_with_a_name() => {
                Some("names have three letters, such as `jan` or `mon`")
            }
            ParseErrorKind::Unexpected if text.contains('~') => {
                Some("random ranges are not supported; use `jitter` to spread the load")
            }
            ParseErrorKind::MissingValue if text.contains('-') => Some("a range has two ends, as in `1-5`"),
            ParseErrorKind::Misplaced => self.hint_of_letter(),
            ParseErrorKind::UnknownMacro if text.eq_ignore_ascii_case("@reboot") => {
                Some("everbell fires on a schedule, not on a restart; use a one-time job")
            }
            ParseErrorKind::BadInterval if text.contains([' ', '\t']) => Some("write it without spaces, as in `1h30m`"),
            ParseErrorKind::BadInterval if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) => {
                Some("a number needs a unit: `s`, `m`, `h`, `d` or `w`")
            }
            ParseErrorKind::NeverFires => Some("use `L` for the last day of a month"),
            _ => None,
        }
    }

    fn hint_of_letter(&self) -> Option<&'static str> {
        match (self.field, self.text().bytes().last()?.to_ascii_lowercase()) {
            (_, b'h') => Some("`H` is Jenkins syntax; write a number, and use `jitter` to spread the load"),
            (Some(FieldName::DayOfWeek), b'l') => Some("for the last Friday of a month write `5L`"),
            (Some(FieldName::DayOfMonth), b'l') => Some("`L` stands alone: it is the last day of a month"),
            (Some(FieldName::DayOfWeek), b'w') => Some("`LW` and `15W` belong to the day-of-month field"),
            (_, b'?') => Some("`?` stands alone in a day field, where it means `*`"),
            _ => None,
        }
    }

    /// The word around the characters at fault.
    fn word(&self) -> &str {
        let (before, after) = self.expression.split_at_checked(self.span.start).unwrap_or_default();
        let start = before.rfind([' ', '\t']).map_or(0, |blank| blank + 1);
        let end = after.find([' ', '\t']).map_or(self.expression.len(), |blank| before.len() + blank);
        &self.expression[start..end]
    }

    fn begins_with_a_name(&self) -> bool {
        let known: &[&str] = match self.field {
            Some(FieldName::Month) => &MONTHS,
            Some(FieldName::DayOfWeek) => &WEEKDAYS,
            _ => return false,
        };
        self.text().get(..3).is_some_and(|start| known.iter().any(|name| name.eq_ignore_ascii_case(start)))
    }

    /// The expression with the place marked by carets, and what is wrong with it.
    ///
    /// ```text
    ///    61 2 * * *
    ///    ^^ minute: 61 is outside 0-59
    /// ```
    pub fn render(&self) -> String {
        if self.expression.trim().is_empty() {
            return format!("   {self}");
        }
        // What is shown is as wide as the terminal will make it: one column a character, and nothing that moves it.
        let replaced = |c: char| match c {
            '\t' => ' ',
            c if is_plain(c) => c,
            _ => '\u{fffd}',
        };
        let shown = |text: &str| -> String { text.chars().map(replaced).collect() };
        let before = shown(self.expression.get(..self.span.start).unwrap_or("")).chars().count();
        let marked = shown(self.text()).chars().count().max(1);
        format!("   {}\n   {}{} {self}", shown(&self.expression), " ".repeat(before), "^".repeat(marked))
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(field) = self.field {
            write!(f, "{field}: ")?;
        }
        let text = escaped(self.text());
        match self.kind {
            ParseErrorKind::Empty => f.write_str("the expression is empty"),
            ParseErrorKind::TooLong => {
                write!(f, "the expression is longer than {} bytes", super::MAX_EXPRESSION_BYTES)
            }
            ParseErrorKind::FieldCount(1) => f.write_str("five or six fields are needed, not 1"),
            ParseErrorKind::FieldCount(found) => write!(f, "five or six fields are needed, not {found}"),
            ParseErrorKind::OutOfRange => {
                let (min, max) = self.field.map_or((0, 0), FieldName::range);
                write!(f, "{text} is outside {min}-{max}")
            }
            ParseErrorKind::UnknownName => match self.field {
                Some(FieldName::Month) => write!(f, "`{text}` is not a month"),
                Some(FieldName::DayOfWeek) => write!(f, "`{text}` is not a weekday"),
                _ => write!(f, "`{text}` is not a number"),
            },
            ParseErrorKind::Unexpected => write!(f, "`{text}` has no meaning here"),
            ParseErrorKind::MissingValue if text.is_empty() => f.write_str("a value is missing"),
            ParseErrorKind::MissingValue => write!(f, "`{text}` lacks a value"),
            ParseErrorKind::BadStep => write!(f, "`{text}` is not a step"),
            ParseErrorKind::BadCount => write!(f, "`{text}` is not a count from 1 to 5"),
            ParseErrorKind::Misplaced => write!(f, "`{text}` is not allowed in this place"),
            ParseErrorKind::UnknownMacro => write!(f, "`{text}` is not a known macro"),
            ParseErrorKind::BadInterval if text.is_empty() => f.write_str("an interval from 1s to 366d is missing"),
            ParseErrorKind::BadInterval => write!(f, "`{text}` is not an interval from 1s to 366d"),
            ParseErrorKind::NeverFires => write!(f, "no date ever matches `{text}`"),
        }
    }
}

impl std::error::Error for ParseError {}

const NO_YEARS: &str = "a year field is not supported; bound the schedule with `startAt` and `endAt`";

/// `TZ=…`, or a place such as `Europe/Paris`.
fn names_a_zone(word: &str) -> bool {
    let place = |part: &str| part.len() > 1 && part.chars().all(|c| c.is_alphabetic() || matches!(c, '_' | '-'));
    word.to_ascii_lowercase().contains("tz=")
        || word.split_once('/').is_some_and(|(area, city)| place(area) && place(city))
}

/// The beginning of a text, with all that cannot be seen made visible.
fn escaped(text: &str) -> String {
    let escape = |c: char| if is_plain(c) { c.to_string() } else { c.escape_debug().to_string() };
    text.chars().take(40).map(escape).collect()
}

/// A character that a terminal shows as it is: no control, no mark that changes the order or joins another.
fn is_plain(c: char) -> bool {
    c == ' ' || c.is_ascii_graphic() || (!c.is_ascii() && c.escape_debug().len() == 1)
}
