//! Times as people type them: `2027-03-13T00:00:00Z`, `2027-03-13 09:00`, `+15m`, `tomorrow 08:00`.
//!
//! A time without an offset is a local time of a zone, and must exist there exactly once: a guess would be wrong half of
//! the time.

use std::fmt;

use crate::clock_face;
use everbell_core::Zone;
use jiff::civil::{Date, DateTime, Time};
use jiff::fmt::temporal::{Pieces, PiecesOffset, TimeZoneAnnotation, TimeZoneAnnotationKind};
use jiff::tz::AmbiguousOffset;
use jiff::{Span, Timestamp, Zoned};

const FORMS: &str = "RFC 3339 such as `2027-03-13T00:00:00Z`, a local time such as `2027-03-13 09:00` or `2027-03-13`, \
                     `now`, `+15m`, `-2h`, `today 08:00` or `tomorrow 08:00`";

/// Formats that do not depend on the current time.
const ABSOLUTE: &str =
    "RFC 3339 such as `2027-03-13T00:00:00Z`, or a local time such as `2027-03-13T09:00` or `2027-03-13`";

/// No place on earth was ever further from UTC.
const MAX_OFFSET_SECONDS: i32 = 18 * 3_600;

/// Reads times that a person typed.
pub struct TimeReader<'a> {
    /// The time that relative times count from.
    pub now: Timestamp,
    /// The zone of times without an offset.
    pub zone: &'a Zone,
}

/// Why a time cannot be used, and what to try.
#[derive(Debug)]
pub struct Refusal {
    /// The problem.
    pub reason: String,
    /// A next step.
    pub hint: Option<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl TimeReader<'_> {
    /// Reads the value of a flag. An error names the flag.
    pub fn read(&self, flag: &str, text: &str) -> Result<Timestamp, Refusal> {
        self.instant(text.trim())
            .and_then(|found| {
                if is_in_range(found) {
                    return Ok(found);
                }
                Err(Refusal { reason: out_of_range(text), hint: None })
            })
            .map_err(|Refusal { reason, hint }| Refusal { reason: format!("{flag}: {reason}"), hint })
    }

    /// Reads a time that does not depend on the current time: with an offset, or a local time in the zone.
    pub fn absolute(&self, text: &str) -> Result<Timestamp, Refusal> {
        let found = self.dated(text, ABSOLUTE)?;
        if is_in_range(found) { Ok(found) } else { Err(Refusal { reason: out_of_range(text), hint: None }) }
    }

    fn instant(&self, text: &str) -> Result<Timestamp, Refusal> {
        if text.eq_ignore_ascii_case("now") {
            return Ok(self.now);
        }
        if text.starts_with(['+', '-']) {
            return self.relative(text);
        }
        if let Some(found) = self.named_day(text) {
            return found;
        }
        self.dated(text, FORMS)
    }

    /// Reads a date, with or without a time; `forms` are the formats that an error suggests.
    fn dated(&self, text: &str, forms: &str) -> Result<Timestamp, Refusal> {
        let pieces = Pieces::parse(text).map_err(|_| not_a_time(text, forms))?;
        refuse_leap_second(text)?;
        let zone = match pieces.time_zone_annotation() {
            Some(annotation) => Some(zone_in_brackets(annotation)?),
            None => None,
        };
        match (pieces.time(), pieces.offset()) {
            (Some(time), Some(offset)) => exact(pieces.date().to_datetime(time), offset, zone.as_ref()),
            (Some(time), None) => local(pieces.date().to_datetime(time), zone.as_ref().unwrap_or(self.zone)),
            (None, None) => start_of_day(pieces.date(), zone.as_ref().unwrap_or(self.zone)),
            (None, Some(_)) => Err(not_a_time(text, forms)),
        }
    }

    /// `+15m`, `-2h`, `+1d`: from now. A day is one of the calendar, so it keeps the time of day.
    fn relative(&self, text: &str) -> Result<Timestamp, Refusal> {
        let span: Span = text.parse().map_err(|_| not_a_time(text, FORMS))?;
        let there = self.present().checked_add(span);
        there.map(|there| there.timestamp()).map_err(|_| Refusal { reason: out_of_range(text), hint: None })
    }

    /// `today 08:00`, `tomorrow`; nothing if the text begins with neither.
    fn named_day(&self, text: &str) -> Option<Result<Timestamp, Refusal>> {
        let (day, time) = text.split_once(' ').map_or((text, None), |(day, time)| (day, Some(time.trim())));
        let today = self.present().date();
        let date = match day.to_ascii_lowercase().as_str() {
            "today" => today,
            "tomorrow" => today.tomorrow().ok()?,
            _ => return None,
        };
        let Some(time) = time else {
            return Some(start_of_day(date, self.zone));
        };
        let time = time.parse::<Time>().map_err(|_| not_a_time(text, FORMS));
        let time = refuse_leap_second(text).and(time);
        Some(time.and_then(|time| local(date.to_datetime(time), self.zone)))
    }

    fn present(&self) -> Zoned {
        self.now.to_zoned(self.zone.as_jiff().clone())
    }
}

/// Whether an instant is in the supported range.
pub fn is_in_range(instant: Timestamp) -> bool {
    (1900..=2199).contains(&jiff::tz::Offset::UTC.to_datetime(instant).year())
}

/// The message for a time outside of the supported years.
pub fn out_of_range(text: &str) -> String {
    format!("`{}` is outside the years 1900 to 2199", excerpt(text))
}

fn not_a_time(text: &str, forms: &str) -> Refusal {
    Refusal { reason: format!("`{}` is not a time", excerpt(text)), hint: Some(format!("use {forms}")) }
}

/// Escapes typed text for a message, and cuts it to a printable length.
pub fn excerpt(text: &str) -> String {
    text.chars().take(64).flat_map(char::escape_debug).collect()
}

fn zone_in_brackets(annotation: &TimeZoneAnnotation<'_>) -> Result<Zone, Refusal> {
    match annotation.kind() {
        TimeZoneAnnotationKind::Named(name) => {
            Zone::get(name.as_str()).map_err(|error| Refusal { reason: error.to_string(), hint: None })
        }
        // An offset has a place of its own, behind the time.
        _ => Err(Refusal {
            reason: "only the name of a time zone may be in brackets".to_owned(),
            hint: Some("write an offset after the time, as in `2027-03-13T00:00:00+01:00`".to_owned()),
        }),
    }
}

/// Refuses the second 60: no clock here has it, and a parser would quietly read it as 59.
fn refuse_leap_second(text: &str) -> Result<(), Refusal> {
    let clock = text.split_once(['T', 't', ' ']).map_or("", |(_, clock)| clock);
    let clock = clock.split(['Z', 'z', '+', '-', '[', '.', ',']).next().unwrap_or_default();
    let digits: String = clock.chars().filter(char::is_ascii_digit).collect();
    if digits.get(4..6) != Some("60") {
        return Ok(());
    }
    Err(Refusal { reason: format!("`{}` has the second 60; seconds go from 0 to 59", excerpt(text)), hint: None })
}

/// A time with an offset is an instant; a zone in brackets must agree, unless the time is given in UTC.
fn exact(time: DateTime, offset: PiecesOffset, zone: Option<&Zone>) -> Result<Timestamp, Refusal> {
    let numeric = offset.to_numeric_offset();
    if numeric.seconds().abs() > MAX_OFFSET_SECONDS {
        return Err(Refusal { reason: format!("the offset {numeric} is not from -18:00 to +18:00"), hint: None });
    }
    let reason = || out_of_range(&time.to_string());
    let instant = numeric.to_timestamp(time).map_err(|_| Refusal { reason: reason(), hint: None })?;
    if let (PiecesOffset::Numeric(_), Some(zone)) = (offset, zone) {
        let there = zone.as_jiff().to_offset(instant);
        if there != numeric {
            return Err(Refusal {
                reason: format!("the offset {numeric} is not that of {zone} at {}", face(time)),
                hint: Some(format!("write one of the two; {zone} is at {there} then")),
            });
        }
    }
    Ok(instant)
}

/// A time of the wall clock, which must exist exactly once.
fn local(time: DateTime, zone: &Zone) -> Result<Timestamp, Refusal> {
    let ambiguous = zone.as_jiff().to_ambiguous_timestamp(time);
    let too_far = |_| Refusal { reason: out_of_range(&time.to_string()), hint: None };
    match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { .. } => ambiguous.unambiguous().map_err(too_far),
        AmbiguousOffset::Gap { after, .. } => {
            let moved = ambiguous.later().map_err(too_far)?;
            Err(Refusal {
                reason: format!("{} does not exist in {zone}: clocks go forward and skip it", face(time)),
                hint: Some(format!("give an offset, such as `{}`", moved.display_with_offset(after))),
            })
        }
        AmbiguousOffset::Fold { before, after } => {
            let first = ambiguous.earlier().map_err(too_far)?;
            let second = ambiguous.later().map_err(too_far)?;
            Err(Refusal {
                reason: format!("{} happens twice in {zone}: clocks go back, so it is {first} or {second}", face(time)),
                hint: Some(format!(
                    "give an offset: `{}` or `{}`",
                    first.display_with_offset(before),
                    second.display_with_offset(after)
                )),
            })
        }
    }
}

/// The first instant of a date. Midnight itself may be missing or happen twice; the day still begins once.
fn start_of_day(date: Date, zone: &Zone) -> Result<Timestamp, Refusal> {
    let too_far = |_| Refusal { reason: out_of_range(&date.to_string()), hint: None };
    let noon = date.at(12, 0, 0, 0).to_zoned(zone.as_jiff().clone()).map_err(too_far)?;
    let start = noon.start_of_day().map_err(too_far)?;
    if start.date() == date {
        return Ok(start.timestamp());
    }
    Err(Refusal { reason: format!("{date} does not exist in {zone}: the calendar skips it"), hint: None })
}

fn face(time: DateTime) -> String {
    format!("{} {}", time.date(), clock_face(time.time()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_in(zone: &str, text: &str) -> Result<String, String> {
        let zone = Zone::get(zone).unwrap();
        let reader = TimeReader { now: "2027-03-12T20:15:00Z".parse().unwrap(), zone: &zone };
        let with_hint =
            |Refusal { reason, hint }| reason + &hint.map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
        reader.read("--from", text).map(|found| found.to_string()).map_err(with_hint)
    }

    #[test]
    fn every_form_is_read() {
        for (text, instant) in [
            ("2027-03-13T00:00:00Z", "2027-03-13T00:00:00Z"),
            ("2027-03-13t00:00:00z", "2027-03-13T00:00:00Z"),
            ("2027-03-13T00:00:00+05:30", "2027-03-12T18:30:00Z"),
            ("2027-03-13T00:00:00.25Z", "2027-03-13T00:00:00.25Z"),
            ("2027-03-13T00:00:00[Europe/Paris]", "2027-03-12T23:00:00Z"),
            ("2027-03-13T00:00:00+01:00[europe/paris]", "2027-03-12T23:00:00Z"),
            ("2027-03-13T00:00:00Z[Europe/Paris]", "2027-03-13T00:00:00Z"),
            ("2027-03-13[Europe/Paris]", "2027-03-12T23:00:00Z"),
            ("2027-03-13T00:00", "2027-03-13T05:00:00Z"),
            ("2027-03-13 00:00", "2027-03-13T05:00:00Z"),
            (" 2027-03-13 00:00:30 ", "2027-03-13T05:00:30Z"),
            ("2027-03-13", "2027-03-13T05:00:00Z"),
            ("now", "2027-03-12T20:15:00Z"),
            ("+15m", "2027-03-12T20:30:00Z"),
            ("-2h", "2027-03-12T18:15:00Z"),
            ("+1h30m", "2027-03-12T21:45:00Z"),
            ("today 08:00", "2027-03-12T13:00:00Z"),
            ("Tomorrow 08:00", "2027-03-13T13:00:00Z"),
            ("tomorrow", "2027-03-13T05:00:00Z"),
        ] {
            assert_eq!(read_in("America/New_York", text).as_deref(), Ok(instant), "{text}");
        }
    }

    #[test]
    fn days_are_those_of_the_zone() {
        // It is already the 13th in Tokyo.
        assert_eq!(read_in("Asia/Tokyo", "today 08:00").as_deref(), Ok("2027-03-12T23:00:00Z"));
        // Two calendar days, one of them short: the time of day stays 15:15.
        assert_eq!(read_in("America/New_York", "+2d").as_deref(), Ok("2027-03-14T19:15:00Z"));
        // Midnight did not exist; the day began at 01:00.
        assert_eq!(read_in("America/Sao_Paulo", "2018-11-04").as_deref(), Ok("2018-11-04T03:00:00Z"));
    }

    #[test]
    fn a_local_time_in_a_gap_is_refused() {
        assert_eq!(
            read_in("America/New_York", "2027-03-14 02:30").unwrap_err(),
            "--from: 2027-03-14 02:30 does not exist in America/New_York: clocks go forward and skip it\n  \
             hint: give an offset, such as `2027-03-14T03:30:00-04:00`"
        );
        assert_eq!(
            read_in("Pacific/Apia", "2011-12-30").unwrap_err(),
            "--from: 2011-12-30 does not exist in Pacific/Apia: the calendar skips it"
        );
    }

    #[test]
    fn a_local_time_in_a_fold_is_refused_with_both_instants() {
        assert_eq!(
            read_in("America/New_York", "2027-11-07T01:30").unwrap_err(),
            "--from: 2027-11-07 01:30 happens twice in America/New_York: clocks go back, so it is \
             2027-11-07T05:30:00Z or 2027-11-07T06:30:00Z\n  \
             hint: give an offset: `2027-11-07T01:30:00-04:00` or `2027-11-07T01:30:00-05:00`"
        );
    }

    #[test]
    fn an_offset_must_agree_with_the_zone() {
        assert_eq!(
            read_in("UTC", "2027-03-13T00:00:00-05:00[Europe/Paris]").unwrap_err(),
            "--from: the offset -05 is not that of Europe/Paris at 2027-03-13 00:00\n  \
             hint: write one of the two; Europe/Paris is at +01 then"
        );
    }

    #[test]
    fn years_out_of_range_are_refused() {
        for text in ["1899-12-31T23:59:59Z", "2200-01-01", "9999-12-31 23:59", "+1000y", "-9000y", "0001-01-01T00:00Z"]
        {
            let error = read_in("UTC", text).unwrap_err();
            assert!(error.ends_with("is outside the years 1900 to 2199"), "{text}: {error}");
        }
        assert!(read_in("UTC", "1900-01-01").is_ok() && read_in("UTC", "2199-12-31T23:59:59Z").is_ok());
    }

    #[test]
    fn relative_times_are_not_absolute() {
        let reader = TimeReader { now: Timestamp::UNIX_EPOCH, zone: &Zone::utc() };
        for text in ["now", "+15m", "-2h", "today 08:00", "tomorrow", "soon"] {
            let Refusal { reason, hint } = reader.absolute(text).unwrap_err();
            assert_eq!((reason, hint), (format!("`{text}` is not a time"), Some(format!("use {ABSOLUTE}"))));
        }
        for named in ["2027-03-13T00:00:00Z", "2027-03-13T09:00", "2027-03-13"] {
            assert!(ABSOLUTE.contains(named) && reader.absolute(named).is_ok(), "{named}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_the_forms() {
        for text in
            ["", "soon", "+", "-", "+5", "08:00", "2027-13-01", "2027-03-13T25:00", "tomorrow noon", "2027-03-13Z"]
        {
            let error = read_in("UTC", text).unwrap_err();
            assert!(error.starts_with(&format!("--from: `{text}` is not a time\n  hint: use RFC 3339")), "{error}");
        }
        let error = read_in("UTC", "2027-03-13T00:00:00[Europe/Pariss]").unwrap_err();
        assert!(error.starts_with("--from: unknown time zone `Europe/Pariss`; did you mean `Europe/Paris`"), "{error}");
        let error = read_in("UTC", "2027-03-13T00:00:00[+01:00]").unwrap_err();
        assert!(error.starts_with("--from: only the name of a time zone may be in brackets\n"), "{error}");
    }
}
