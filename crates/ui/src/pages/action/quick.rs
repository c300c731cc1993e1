//! Times that buttons select.

use jiff::civil::{Date, Weekday};
use jiff::{Span, Timestamp, Zoned};

use everbell_core::Zone;

/// Returns the time of a button, relative to `from` in local time. Unknown words have none.
pub(super) fn quick(word: &str, from: Timestamp, zone: &Zone) -> Option<Timestamp> {
    let from = from.to_zoned(zone.as_jiff().clone());
    let there = match word {
        "+15m" => later(&from, Span::new().minutes(15)),
        "+1h" => later(&from, Span::new().hours(1)),
        "+4h" => later(&from, Span::new().hours(4)),
        "+1d" => later(&from, Span::new().days(1)),
        "tomorrow" => from.date().tomorrow().ok().and_then(|date| morning(date, &from)),
        "monday" => from.date().nth_weekday(1, Weekday::Monday).ok().and_then(|date| morning(date, &from)),
        _ => None,
    };
    there.map(|there| there.timestamp())
}

/// A day is one of the calendar, so it keeps the time of day.
fn later(from: &Zoned, span: Span) -> Option<Zoned> {
    from.checked_add(span).ok()
}

fn morning(date: Date, like: &Zoned) -> Option<Zoned> {
    date.at(8, 0, 0, 0).to_zoned(like.time_zone().clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buttons_stand_for_times() {
        let paris = Zone::get("Europe/Paris").unwrap();
        // A Saturday; clocks go back in the night that follows.
        let from = "2026-10-24T10:00:00Z".parse().unwrap();
        for (word, at) in [
            ("+15m", "2026-10-24T10:15:00Z"),
            ("+1h", "2026-10-24T11:00:00Z"),
            ("+4h", "2026-10-24T14:00:00Z"),
            ("+1d", "2026-10-25T11:00:00Z"),
            ("tomorrow", "2026-10-25T07:00:00Z"),
            ("monday", "2026-10-26T07:00:00Z"),
        ] {
            assert_eq!(quick(word, from, &paris), Some(at.parse().unwrap()), "{word}");
        }
        assert_eq!(quick("never", from, &paris), None);
    }
}
