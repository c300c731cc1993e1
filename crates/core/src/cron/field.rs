//! One field of an expression: lists of values, ranges and steps, turned into bits.

use std::ops::Range;

use super::error::{FieldName, ParseErrorKind};

pub(crate) const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
pub(crate) const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// One field of an expression, as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Field {
    /// Bit `n` is set when the value `n` matches; Sunday is bit 0 only.
    pub(crate) bits: u64,
    /// The text begins with `*` or is `?`.
    pub(crate) star: bool,
    /// `L`: the last day of the month.
    pub(crate) last_day: bool,
    /// `LW`: the last Monday-to-Friday of the month.
    pub(crate) last_weekday: bool,
    /// Bit `n`: `nW`, the weekday nearest to day `n`.
    pub(crate) nearest_weekday: u32,
    /// Bit `7 * (k - 1) + d`: `d#k`, the k-th of a weekday.
    pub(crate) nth: u64,
    /// Bit `d`: `dL`, the last of a weekday.
    pub(crate) last_dow: u8,
}

/// Fields in plain numbers, without redundant parts, as they are read. Formatting would take most of the time of parsing.
#[derive(Debug)]
pub(crate) struct Normalized {
    text: String,
    /// An item comes next, and is the first of its field.
    begins: bool,
}

impl Normalized {
    /// An empty one with room for about this many bytes.
    pub(crate) fn with_capacity(bytes: usize) -> Normalized {
        Normalized { text: String::with_capacity(bytes), begins: true }
    }

    fn begin_field(&mut self) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.begins = true;
    }

    fn begin_item(&mut self) -> &mut Normalized {
        if !std::mem::take(&mut self.begins) {
            self.text.push(',');
        }
        self
    }

    fn number(&mut self, number: u32) -> &mut Normalized {
        let mut place = 1;
        while number / place >= 10 {
            place *= 10;
        }
        while place > 0 {
            self.text.push(char::from(b'0' + (number / place % 10) as u8));
            place /= 10;
        }
        self
    }

    fn word(&mut self, word: &str) -> &mut Normalized {
        self.text.push_str(word);
        self
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// An error, and its position in the text of the whole expression.
pub(crate) type Fault = (Range<usize>, ParseErrorKind);

impl Field {
    /// Reads a field that is written just as [`Normalized`] writes it, in one pass: lists of `*`, numbers, ranges and steps.
    /// Returns `None` for every other text, which [`Field::parse`] reads.
    pub(crate) fn parse_normalized(name: FieldName, text: &str) -> Option<Field> {
        let (bytes, (min, max)) = (text.as_bytes(), distinct(name));
        let mut field = Field { star: bytes.first() == Some(&b'*'), ..Field::default() };
        let mut at = 0;
        let follows = |at: &mut usize, byte: u8| {
            let follows = bytes.get(*at) == Some(&byte);
            *at += usize::from(follows);
            follows
        };
        loop {
            let (first, last) = if follows(&mut at, b'*') {
                (min, max)
            } else {
                let first = short_number(bytes, &mut at)?;
                let last = if follows(&mut at, b'-') { Some(short_number(bytes, &mut at)?) } else { None };
                if first < min || last.unwrap_or(first) > max || last.is_some_and(|last| last <= first) {
                    return None;
                }
                (first, last.unwrap_or(first))
            };
            let step = if follows(&mut at, b'/') { short_number(bytes, &mut at).filter(|step| *step > 1)? } else { 1 };
            if step > 1 && first == last {
                return None;
            }
            field.bits |= expand(name, first, last, step);
            if at == bytes.len() {
                return Some(field);
            }
            if !follows(&mut at, b',') {
                return None;
            }
        }
    }

    /// Reads the field `text`, which begins at byte `at` of the expression, and adds it to `normalized`.
    pub(crate) fn parse(name: FieldName, text: &str, at: usize, normalized: &mut Normalized) -> Result<Field, Fault> {
        let day_field = matches!(name, FieldName::DayOfMonth | FieldName::DayOfWeek);
        // `?` means `*`, but only alone: in a list it would look like a restriction.
        let text = if text == "?" && day_field { "*" } else { text };
        let mut field = Field { star: text.starts_with('*'), ..Field::default() };
        let mut start = at;
        normalized.begin_field();
        let mut rest = Some(text);
        while let Some(list) = rest {
            let (item, others) = cut(list, b',').map_or((list, None), |(item, others)| (item, Some(others)));
            Item { name, text: item, at: start }.read(&mut field, normalized)?;
            start += item.len() + 1;
            rest = others;
        }
        Ok(field)
    }
}

/// One part of a list.
#[derive(Clone, Copy)]
struct Item<'a> {
    name: FieldName,
    text: &'a str,
    at: usize,
}

impl<'a> Item<'a> {
    fn read(self, field: &mut Field, normalized: &mut Normalized) -> Result<(), Fault> {
        if self.text.is_empty() {
            return Err(self.fault(self.text, ParseErrorKind::MissingValue));
        }
        if self.text == "*" {
            let (min, max) = distinct(self.name);
            field.bits |= expand(self.name, min, max, 1);
            normalized.begin_item().word("*");
            return Ok(());
        }
        // Special items have letters or `#`.
        let is_plain = self.text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'*' | b'-' | b'/'));
        if !is_plain && self.read_special(field, normalized)? {
            return Ok(());
        }
        let (base, step) = match cut(self.text, b'/') {
            Some((base, step)) => (base, Some(self.step(step)?)),
            None => (self.text, None),
        };
        let (first, last) = self.range(base, step.is_some())?;
        let step = step.unwrap_or(1);
        field.bits |= expand(self.name, first, last, step);
        normalized.begin_item();
        match base {
            "*" => normalized.word("*"),
            _ if first == last => {
                normalized.number(first);
                return Ok(());
            }
            _ => normalized.number(first).word("-").number(last),
        };
        if step > 1 {
            normalized.word("/").number(step);
        }
        Ok(())
    }

    /// `L`, `LW`, `nW`, `d#k` and `dL`, where they are possible.
    fn read_special(self, field: &mut Field, normalized: &mut Normalized) -> Result<bool, Fault> {
        let is = |word: &str| self.text.eq_ignore_ascii_case(word);
        let last_weekday = is("LW") || is("WL");
        match self.name {
            FieldName::DayOfMonth if is("L") => {
                field.last_day = true;
                normalized.begin_item().word("L");
            }
            FieldName::DayOfMonth if last_weekday => {
                field.last_weekday = true;
                normalized.begin_item().word("LW");
            }
            _ if last_weekday || is("L") || is("W") || is("H") => {
                return Err(self.fault(self.text, ParseErrorKind::Misplaced));
            }
            _ => return self.read_counted(field, normalized),
        }
        Ok(true)
    }

    fn read_counted(self, field: &mut Field, normalized: &mut Normalized) -> Result<bool, Fault> {
        if let Some((day, count)) = self.text.split_once('#') {
            if self.name != FieldName::DayOfWeek {
                return Err(self.fault(self.text, ParseErrorKind::Misplaced));
            }
            if day.is_empty() || count.is_empty() {
                return Err(self.fault(self.text, ParseErrorKind::MissingValue));
            }
            let day = self.value(day)? % 7;
            let count = match count.as_bytes() {
                [k @ b'1'..=b'5'] => u32::from(k - b'0'),
                _ => return Err(self.fault(count, ParseErrorKind::BadCount)),
            };
            field.nth |= 1 << (7 * (count - 1) + day);
            normalized.begin_item().number(day).word("#").number(count);
            return Ok(true);
        }
        let Some(last) = self.text.char_indices().next_back().map(|(i, _)| i) else { return Ok(false) };
        let (head, tail) = self.text.split_at(last);
        let counts = head.bytes().all(|b| b.is_ascii_digit());
        match (self.name, tail) {
            (FieldName::DayOfMonth, "w" | "W") if counts => {
                let day = self.value(head)?;
                field.nearest_weekday |= 1 << day;
                normalized.begin_item().number(day).word("W");
            }
            // `jul`-like names end in `l` too, but not among the weekdays.
            (FieldName::DayOfWeek, "l" | "L") if counts || weekday(head).is_some() => {
                let day = self.value(head)? % 7;
                field.last_dow |= 1 << day;
                normalized.begin_item().number(day).word("L");
            }
            (_, "w" | "W" | "l" | "L") if counts => return Err(self.fault(self.text, ParseErrorKind::Misplaced)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn step(self, text: &'a str) -> Result<u32, Fault> {
        if text.is_empty() {
            return Err(self.fault(self.text, ParseErrorKind::MissingValue));
        }
        match number(text) {
            Some(step @ 1..=999) => Ok(step),
            _ => Err(self.fault(text, ParseErrorKind::BadStep)),
        }
    }

    /// First and last value of `*`, `a`, `a-b`, or `a/n` (from a to the maximum).
    fn range(self, base: &'a str, stepped: bool) -> Result<(u32, u32), Fault> {
        let (min, max) = distinct(self.name);
        match base {
            "*" => return Ok((min, max)),
            "?" => return Err(self.fault(self.text, ParseErrorKind::Misplaced)),
            "" => return Err(self.fault(self.text, ParseErrorKind::MissingValue)),
            _ => {}
        }
        if let Some((from, to)) = cut(base, b'-') {
            if from.is_empty() || to.is_empty() {
                return Err(self.fault(base, ParseErrorKind::MissingValue));
            }
            let (from, to) = (self.value(from)?, self.value(to)?);
            let first = self.plain(from);
            // `5-5` and `7-0` are one value; `0-7` is a whole week.
            return Ok((first, if from >= to && first == self.plain(to) { first } else { to }));
        }
        let value = self.plain(self.value(base)?);
        Ok((value, if stepped { max } else { value }))
    }

    /// Sunday as 0; everything else as it is.
    fn plain(self, value: u32) -> u32 {
        if self.name == FieldName::DayOfWeek { value % 7 } else { value }
    }

    fn value(self, text: &'a str) -> Result<u32, Fault> {
        let (min, max) = self.name.range();
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            return number(text)
                .filter(|value| (min..=max).contains(value))
                .ok_or_else(|| self.fault(text, ParseErrorKind::OutOfRange));
        }
        let known = match self.name {
            FieldName::Month => position(&MONTHS, text).map(|n| n + 1),
            FieldName::DayOfWeek => weekday(text),
            _ => None,
        };
        known.ok_or_else(|| {
            let kind = match text.to_ascii_uppercase().as_str() {
                "L" | "W" | "LW" | "H" | "?" => ParseErrorKind::Misplaced,
                word if word.bytes().all(|b| b.is_ascii_uppercase()) => ParseErrorKind::UnknownName,
                _ => ParseErrorKind::Unexpected,
            };
            self.fault(text, kind)
        })
    }

    /// Points at `part`, which is a slice of this item.
    fn fault(self, part: &str, kind: ParseErrorKind) -> Fault {
        let inside = (part.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let start = self.at + inside.min(self.text.len());
        (start..start + part.len(), kind)
    }
}

/// Every `step`-th value from `first` to `last`, around the end of the range if `last` is smaller.
fn expand(name: FieldName, first: u32, last: u32, step: u32) -> u64 {
    let (min, max) = distinct(name);
    let size = max - min + 1;
    let end = if last >= first { last } else { last + size };
    let wrapped = |value: u32| if value > max { value - size } else { value };
    if step == 1 && end <= max {
        return (u64::MAX >> (63 - (end - first))) << first;
    }
    (first..=end).step_by(step as usize).fold(0, |bits, value| bits | 1 << wrapped(value))
}

/// The values that differ: Sunday is 0 here, and a week ends on Saturday.
fn distinct(name: FieldName) -> (u32, u32) {
    if name == FieldName::DayOfWeek { (0, 6) } else { name.range() }
}

/// Reads one or two digits without a leading zero, from `at` on.
fn short_number(bytes: &[u8], at: &mut usize) -> Option<u32> {
    let digit = |at: usize| bytes.get(at).filter(|b| b.is_ascii_digit()).map(|b| u32::from(b - b'0'));
    let first = digit(*at)?;
    *at += 1;
    match digit(*at) {
        Some(second) if first > 0 => {
            *at += 1;
            Some(10 * first + second)
        }
        Some(_) => None,
        None => Some(first),
    }
}

/// The parts before and behind this byte of ASCII. Fields are short: a search that is made for long texts takes longer.
fn cut(text: &str, at: u8) -> Option<(&str, &str)> {
    let position = text.bytes().position(|b| b == at)?;
    Some((&text[..position], &text[position + 1..]))
}

/// At most four digits: longer ones are out of every range, and nothing can overflow.
fn number(text: &str) -> Option<u32> {
    let digits = text.trim_start_matches('0');
    if text.is_empty() || digits.len() > 4 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(digits.bytes().fold(0, |n, b| n * 10 + u32::from(b - b'0')))
}

fn position(names: &[&str], text: &str) -> Option<u32> {
    names.iter().position(|name| name.eq_ignore_ascii_case(text)).map(|n| n as u32)
}

fn weekday(text: &str) -> Option<u32> {
    position(&WEEKDAYS, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_read_a_field_agree() {
        use FieldName::{DayOfMonth, DayOfWeek, Hour, Minute, Month, Second};
        let items = "* */1 */2 */99 */100 0 5 05 6 7 12 31 59 60 100 1-5 5-1 5-5 0-7 1-6/2 10-59/7 5/10 1-3/1 1-2-3 */ - 1- L ?";
        let (mut read, items) = (0, items.split(' ').chain([""]).collect::<Vec<_>>());
        for name in [Second, Minute, Hour, DayOfMonth, Month, DayOfWeek] {
            for text in items.iter().flat_map(|one| items.iter().map(move |other| format!("{one},{other}"))) {
                for text in [&text, text.split_once(',').unwrap().0] {
                    let Some(field) = Field::parse_normalized(name, text) else { continue };
                    let mut normalized = Normalized::with_capacity(0);
                    assert_eq!(Field::parse(name, text, 0, &mut normalized).unwrap(), field, "{name:?} `{text}`");
                    assert_eq!(normalized.into_text(), *text, "{name:?}");
                    read += 1;
                }
            }
        }
        assert!(read > 1_000, "{read}");
    }
}
