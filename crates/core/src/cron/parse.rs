//! Text to [`Expression`].

use std::fmt;
use std::ops::Range;

use super::describe;
use super::error::{FieldName, ParseError, ParseErrorKind};
use super::every::Every;
use super::field::{Field, Normalized};
use super::search::Fields;
use super::warn::{self, Warning};

/// The longest text that is read as an expression.
pub const MAX_EXPRESSION_BYTES: usize = 256;

const FIVE: [FieldName; 5] =
    [FieldName::Minute, FieldName::Hour, FieldName::DayOfMonth, FieldName::Month, FieldName::DayOfWeek];

const MACROS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// A valid schedule expression.
///
/// Five fields `minute hour day-of-month month day-of-week`, or six with leading seconds; or a macro such as `@daily`;
/// or a fixed rate such as `@every 90s`. Fields hold lists (`1,15`), ranges (`9-17`, also around the end: `22-2`,
/// `FRI-MON`), steps (`*/5`, `10-30/5`, `7/10` = from 7 to the maximum), names in any case; day-of-month knows `L`, `LW`
/// and `15W`, day-of-week `5#2` and `5L`. When both day fields are restricted, a day matches if either does; a field
/// that begins with `*` is not restricted, also `*/2`, and then both must match.
///
/// An expression that could never fire is refused when it is parsed.
///
/// ```
/// use everbell_core::cron::Expression;
///
/// let weekdays: Expression = "0 9 * * mon-fri".parse()?;
/// assert_eq!(weekdays.normalized(), "0 9 * * 1-5");
/// assert_eq!(weekdays.describe(), "At 09:00 on weekdays");
///
/// let error = "61 9 * * *".parse::<Expression>().unwrap_err();
/// assert_eq!(error.to_string(), "minute: 61 is outside 0-59");
/// # Ok::<(), everbell_core::cron::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    source: String,
    /// Unless it is the same as the source.
    normalized: Option<String>,
    pub(crate) kind: Kind,
}

/// The two kinds of expressions: fields, and `@every`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Fields(Fields),
    Every(Every),
}

impl Expression {
    /// Reads an expression. Nothing is expanded before its length and its numbers are known to be small.
    pub fn parse(text: &str) -> Result<Expression, ParseError> {
        let refuse =
            |span: Range<usize>, field, kind| ParseError { expression: head(text).to_owned(), span, field, kind };
        if text.len() > MAX_EXPRESSION_BYTES {
            return Err(refuse(0..head(text).len(), None, ParseErrorKind::TooLong));
        }
        let mut first_words = [(0, ""); 6];
        let (count, end) = split(text, &mut first_words);
        let words = &first_words[..count.min(6)];
        let Some((at, first)) = words.first().copied() else {
            return Err(refuse(0..text.len(), None, ParseErrorKind::Empty));
        };
        if first.starts_with('@') {
            return parse_macro(text, words, end).map_err(|(span, kind)| refuse(span, None, kind));
        }
        if !matches!(count, 5 | 6) {
            return Err(refuse(at..end, None, ParseErrorKind::FieldCount(count)));
        }
        if let Some((seconds, fields)) = parse_normalized(text, words, end) {
            let kind = Fields::new(seconds.as_ref(), &fields);
            if kind.ever_matches() {
                return Ok(Expression { source: text[at..end].to_owned(), normalized: None, kind: Kind::Fields(kind) });
            }
        }
        let mut normalized = Normalized::with_capacity(text.len() + 8);
        let mut read = |name, (at, word): (usize, &str)| {
            Field::parse(name, word, at, &mut normalized).map_err(|(span, kind)| refuse(span, Some(name), kind))
        };
        let seconds = if count == 6 { Some(read(FieldName::Second, (at, first))?) } else { None };
        let mut fields = [Field::default(); 5];
        for ((name, slot), word) in FIVE.iter().zip(&mut fields).zip(&words[count - 5..]) {
            *slot = read(*name, *word)?;
        }
        let kind = Fields::new(seconds.as_ref(), &fields);
        if !kind.ever_matches() {
            let dates = &words[count - 3..];
            let span = dates[0].0..dates[2].0 + dates[2].1.len();
            return Err(refuse(span, Some(FieldName::DayOfMonth), ParseErrorKind::NeverFires));
        }
        let mut normalized = normalized.into_text();
        // `0/2` grows to `0-59/2`: a text full of them stays as it was written, so that it can always be read again.
        if normalized.len() > MAX_EXPRESSION_BYTES {
            normalized = words.iter().map(|(_, word)| *word).collect::<Vec<_>>().join(" ");
        }
        Ok(Expression::new(text.trim().to_owned(), normalized, Kind::Fields(kind)))
    }

    fn new(source: String, normalized: String, kind: Kind) -> Expression {
        let normalized = Some(normalized).filter(|normalized| *normalized != source);
        Expression { source, normalized, kind }
    }

    /// A fixed rate in whole seconds, from 1 to 366 days; the same as `@every <interval>`.
    pub fn every(seconds: u64) -> Option<Expression> {
        let every = Every::new(seconds)?;
        let text = format!("@every {every}");
        Some(Expression { source: text, normalized: None, kind: Kind::Every(every) })
    }

    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Returns the expression in numbers, without macros, names or redundant steps.
    pub fn normalized(&self) -> &str {
        self.normalized.as_deref().unwrap_or(&self.source)
    }

    /// The schedule in plain English, such as `At 09:00 on weekdays`.
    pub fn describe(&self) -> String {
        describe::describe(&self.kind)
    }

    /// Whether seconds are given, so that it may fire more often than once a minute.
    pub fn has_seconds(&self) -> bool {
        match &self.kind {
            Kind::Fields(fields) => fields.has_seconds(),
            Kind::Every(every) => every.seconds() % 60 != 0,
        }
    }

    /// Whether it is a fixed rate (`@every`), which needs an anchor and knows no zone.
    pub fn is_fixed_rate(&self) -> bool {
        matches!(self.kind, Kind::Every(_))
    }

    /// Returns the warnings that hold in every time zone: see [`Warning`]. [`crate::Spec::warnings`] adds those about
    /// DST.
    pub fn warnings(&self) -> Vec<Warning> {
        match &self.kind {
            Kind::Fields(fields) => warn::of_fields(fields),
            Kind::Every(_) => Vec::new(),
        }
    }
}

impl std::str::FromStr for Expression {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Expression::parse(text)
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

/// `words` are the first ones of the text, of which the last ends at `end`.
fn parse_macro(text: &str, words: &[(usize, &str)], end: usize) -> Result<Expression, (Range<usize>, ParseErrorKind)> {
    let (at, name) = words[0];
    if name.eq_ignore_ascii_case("@every") {
        let start = words.get(1).map_or(end, |(at, _)| *at);
        let every = Every::parse(&text[start..end]).ok_or((start..end, ParseErrorKind::BadInterval))?;
        return Ok(Expression::new(text.trim().to_owned(), format!("@every {every}"), Kind::Every(every)));
    }
    let known = MACROS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    match (known, words.get(1)) {
        (Some((_, meaning)), None) => {
            let expanded = Expression::parse(meaning).map_err(|error| (at..end, error.kind))?;
            Ok(Expression::new(text.trim().to_owned(), expanded.normalized().to_owned(), expanded.kind))
        }
        (Some(_), Some((rest, _))) => Err((*rest..end, ParseErrorKind::Unexpected)),
        (None, _) => Err((at..end, ParseErrorKind::UnknownMacro)),
    }
}

/// Reads an expression that is written in normal form, as most are: with seconds, if it has any, and the other fields.
fn parse_normalized(text: &str, words: &[(usize, &str)], end: usize) -> Option<(Option<Field>, [Field; 5])> {
    // One space between two words, and nothing else.
    let letters: usize = words.iter().map(|(_, word)| word.len()).sum();
    let is_spaced = words[1..].iter().all(|(at, _)| text.as_bytes()[at - 1] == b' ');
    if !is_spaced || letters + words.len() - 1 != end - words[0].0 {
        return None;
    }
    let (seconds, words) = words.split_at(words.len() - FIVE.len());
    let seconds = match seconds.first() {
        Some((_, word)) => Some(Field::parse_normalized(FieldName::Second, word)?),
        None => None,
    };
    let mut fields = [Field::default(); 5];
    for ((name, slot), (_, word)) in FIVE.iter().zip(&mut fields).zip(words) {
        *slot = Field::parse_normalized(*name, word)?;
    }
    Some((seconds, fields))
}

/// Finds the first words between spaces and tabs, each with the byte at which it begins. Returns how many words there are in
/// all, and where the last one ends.
fn split<'a>(text: &'a str, first: &mut [(usize, &'a str)]) -> (usize, usize) {
    let (mut count, mut end) = (0, 0);
    let is_gap = |b: &u8| matches!(b, b' ' | b'\t');
    let bytes = text.as_bytes();
    while let Some(gap) = bytes[end..].iter().position(|b| !is_gap(b)) {
        let at = end + gap;
        end = at + bytes[at..].iter().position(is_gap).unwrap_or(bytes.len() - at);
        if let Some(slot) = first.get_mut(count) {
            *slot = (at, &text[at..end]);
        }
        count += 1;
    }
    (count, end)
}

/// At most as many bytes as an expression may have, cut between characters.
fn head(text: &str) -> &str {
    let mut end = text.len().min(MAX_EXPRESSION_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
