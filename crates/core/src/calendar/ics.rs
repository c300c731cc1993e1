//! A small reader of iCalendar text: whole days with names, as holiday calendars have them.

use jiff::civil::Date;

use super::{DayEntry, MAX_ENTRIES};
use crate::ids::Invalid;

/// The largest text that is read.
const MAX_ICS_BYTES: usize = 2_000_000;

/// One event, as far as it is read.
#[derive(Default)]
struct Event {
    summary: Option<String>,
    start: Option<Moment>,
    end: Option<Moment>,
    duration: Option<String>,
    is_yearly: bool,
    is_canceled: bool,
}

/// A date, and whether it is midnight or has no time of day.
#[derive(Clone, Copy)]
struct Moment {
    date: Date,
    has_time: bool,
    is_midnight: bool,
}

/// Reads the events of an `.ics` text as days. An event with times of day takes the whole days that it touches, as the
/// dates are written; a yearly event becomes a date of every year. Other repetitions are refused, with the name of the
/// event.
pub fn read_ics(text: &str) -> Result<Vec<DayEntry>, Invalid> {
    if text.len() > MAX_ICS_BYTES {
        return Err(refused(&format!("must be at most {MAX_ICS_BYTES} bytes")));
    }
    let mut entries = Vec::new();
    let mut event: Option<Event> = None;
    // Parts of an event, such as alarms, have lines of the same names.
    let mut nested = 0_usize;
    for line in unfolded(text) {
        let Some((name, parameters, value)) = parts(&line) else { continue };
        match (name.as_str(), value.to_ascii_uppercase().as_str()) {
            ("BEGIN", "VEVENT") => event = Some(Event::default()),
            ("BEGIN", _) if event.is_some() => nested += 1,
            ("END", "VEVENT") => {
                entries.extend(event.take().unwrap_or_default().into_entries()?);
                nested = 0;
                if entries.len() > MAX_ENTRIES {
                    return Err(refused(&format!("has more than {MAX_ENTRIES} days and ranges")));
                }
            }
            ("END", _) if nested > 0 => nested -= 1,
            _ => {
                if let Some(event) = event.as_mut().filter(|_| nested == 0) {
                    event.read(&name, &parameters, &value)?;
                }
            }
        }
    }
    if event.is_some() {
        return Err(refused("ends in the middle of an event: `END:VEVENT` is missing"));
    }
    if entries.is_empty() {
        return Err(refused("has no event: `BEGIN:VEVENT` with a `DTSTART` is needed"));
    }
    Ok(entries)
}

impl Event {
    fn read(&mut self, name: &str, parameters: &str, value: &str) -> Result<(), Invalid> {
        match name {
            "SUMMARY" => self.summary = Some(unescaped(value)),
            "DTSTART" => self.start = Some(moment(value).ok_or_else(|| self.bad_time(name, value))?),
            "DTEND" => self.end = Some(moment(value).ok_or_else(|| self.bad_time(name, value))?),
            "DURATION" => self.duration = Some(value.to_owned()),
            "STATUS" => self.is_canceled = value.eq_ignore_ascii_case("CANCELLED"),
            "RRULE" => {
                let mut rules: Vec<String> = value.split(';').map(str::to_ascii_uppercase).collect();
                rules.retain(|rule| !rule.is_empty() && rule != "INTERVAL=1" && !rule.starts_with("WKST="));
                if rules != ["FREQ=YEARLY"] {
                    return Err(self.unsupported(&format!("RRULE:{value}")));
                }
                self.is_yearly = true;
            }
            "RDATE" | "EXDATE" | "EXRULE" | "RECURRENCE-ID" => {
                let parameters = if parameters.is_empty() { String::new() } else { format!(";{parameters}") };
                return Err(self.unsupported(&format!("{name}{parameters}")));
            }
            _ => {}
        }
        Ok(())
    }

    fn into_entries(self) -> Result<Option<DayEntry>, Invalid> {
        if self.is_canceled {
            return Ok(None);
        }
        let Some(start) = self.start else {
            return Err(refused(&format!("the event {} has no DTSTART", self.title())));
        };
        if let Some(duration) = &self.duration {
            return Err(self.unsupported(&format!("DURATION:{duration}")));
        }
        // The end of an event is the first day, or the first instant, after it.
        let last = match self.end {
            Some(end) if end.date > start.date && (!end.has_time || end.is_midnight) => {
                end.date.yesterday().unwrap_or(end.date)
            }
            Some(end) => end.date.max(start.date),
            None => start.date,
        };
        let name = self.summary.as_deref();
        if !self.is_yearly {
            return DayEntry::from_dates(start.date, last, name).map(Some).map_err(in_ics);
        }
        if last != start.date {
            return Err(self.unsupported("RRULE:FREQ=YEARLY on an event of several days"));
        }
        DayEntry::from_yearly(start.date.month(), start.date.day(), name).map(Some).map_err(in_ics)
    }

    fn title(&self) -> String {
        match (&self.summary, self.start) {
            (Some(summary), _) => format!("`{}`", summary.escape_debug()),
            (None, Some(start)) => format!("at {}", start.date),
            (None, None) => "without a SUMMARY".to_owned(),
        }
    }

    fn unsupported(&self, what: &str) -> Invalid {
        let shown: String = what.chars().take(100).flat_map(char::escape_debug).collect();
        let reason = format!(
            "the event {} has `{shown}`, which is not supported; only RRULE:FREQ=YEARLY is, so list the dates instead",
            self.title()
        );
        refused(&reason)
    }

    fn bad_time(&self, name: &str, value: &str) -> Invalid {
        let shown: String = value.chars().take(40).flat_map(char::escape_debug).collect();
        refused(&format!("the event {} has `{name}:{shown}`, which is not a date such as 20271225", self.title()))
    }
}

fn refused(reason: &str) -> Invalid {
    Invalid::new("ics", reason)
}

fn in_ics(problem: Invalid) -> Invalid {
    Invalid { field: "ics", ..problem }
}

/// Lines without their folds: a line that begins with a space or a tab continues the one before.
fn unfolded(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.trim_start_matches('\u{feff}').lines() {
        match (line.strip_prefix([' ', '\t']), lines.last_mut()) {
            (Some(rest), Some(last)) => last.push_str(rest),
            _ => lines.push(line.to_owned()),
        }
    }
    lines
}

/// Name, parameters and value of a line: `DTSTART;VALUE=DATE:20271225`. A colon in quotes belongs to a parameter.
fn parts(line: &str) -> Option<(String, String, String)> {
    let mut is_quoted = false;
    let colon = line.char_indices().find(|(_, c)| {
        is_quoted ^= *c == '"';
        *c == ':' && !is_quoted
    });
    let (head, value) = line.split_at(colon?.0);
    let (name, parameters) = head.split_once(';').unwrap_or((head, ""));
    Some((name.trim().to_ascii_uppercase(), parameters.to_owned(), value[1..].trim().to_owned()))
}

/// `20271225` or `20271225T090000Z`.
fn moment(value: &str) -> Option<Moment> {
    let (date, time) = value.split_once('T').map_or((value, None), |(date, time)| (date, Some(time)));
    if date.len() != 8 || !date.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let date = Date::new(date[..4].parse().ok()?, date[4..6].parse().ok()?, date[6..].parse().ok()?).ok()?;
    let is_midnight = time.is_some_and(|time| time.trim_end_matches('Z') == "000000");
    Some(Moment { date, has_time: time.is_some(), is_midnight })
}

fn unescaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        match (c, c == '\\') {
            (_, true) => match characters.next() {
                Some('n' | 'N') | None => text.push(' '),
                Some(other) => text.push(other),
            },
            _ => text.push(c),
        }
    }
    text
}
