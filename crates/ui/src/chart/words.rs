//! Instants, durations and counts as text.

use everbell_core::Zone;
use jiff::Timestamp;

use everbell_wire::clock_face;
use everbell_wire::elapsed;

/// `2026-11-13 08:00`, with seconds if there are any.
pub(super) fn stamp(at: Timestamp, zone: &Zone) -> String {
    let there = at.to_zoned(zone.as_jiff().clone());
    format!("{} {}", there.date(), clock_face(there.time()))
}

/// `2026-11-13 08:00–09:00`; the day of the end only if it is another.
pub(crate) fn period(from: Timestamp, to: Timestamp, zone: &Zone) -> String {
    let (start, end) = (from.to_zoned(zone.as_jiff().clone()), to.to_zoned(zone.as_jiff().clone()));
    let face = clock_face(end.time());
    if start.date() == end.date() || end.duration_since(&start).as_hours() < 24 {
        format!("{}–{face}", stamp(from, zone))
    } else {
        format!("{} – {} {face}", stamp(from, zone), end.date())
    }
}

/// `2.1 s`, `3 m 12 s`; the spaces do not break.
pub(super) fn took(millis: i64) -> String {
    spaced(&elapsed::took(millis))
}

/// The span of a tick: `0`, `500 ms`, `1 s`, `5 m`.
pub(super) fn round_span(millis: i64) -> String {
    if millis == 0 {
        return "0".to_owned();
    }
    spaced(&elapsed::took(millis).replace(".0s", "s"))
}

fn spaced(text: &str) -> String {
    let mut spaced = String::new();
    for character in text.chars() {
        if character.is_ascii_alphabetic() && spaced.ends_with(|last: char| last.is_ascii_digit()) {
            spaced.push('\u{a0}');
        }
        spaced.push(character);
    }
    spaced
}

/// `1 run`, `12 runs`, `1,159 runs`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// `312 orgs in 5 zones`. Zones are left out if there is one, or if their number is not known.
pub(crate) fn orgs_in_zones(orgs: u64, zones: u64) -> String {
    let zones = if zones > 1 { format!(" in {}", counted(zones, "zone")) } else { String::new() };
    format!("{}{zones}", counted(orgs, "org"))
}

/// Digits in groups of three: `1,159`.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// As much of a name as there is room for.
pub(super) fn shortened(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_the_zone() {
        let paris = Zone::get("Europe/Paris").unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert_eq!(stamp(at("2026-11-13T07:00:00Z"), &paris), "2026-11-13 08:00");
        assert_eq!(stamp(at("2026-11-13T07:00:05.9Z"), &paris), "2026-11-13 08:00:05");
        let hour = period(at("2026-11-13T22:00:00Z"), at("2026-11-13T23:00:00Z"), &paris);
        assert_eq!(hour, "2026-11-13 23:00–00:00");
        let days = period(at("2026-11-12T23:00:00Z"), at("2026-11-14T23:00:00Z"), &paris);
        assert_eq!(days, "2026-11-13 00:00 – 2026-11-15 00:00");
    }

    #[test]
    fn spans_have_a_space_before_their_unit() {
        let shown = |millis| took(millis).replace('\u{a0}', " ");
        assert_eq!([shown(-5), shown(20), shown(2_149), shown(192_000)], ["0 ms", "20 ms", "2.1 s", "3 m 12 s"]);
        let tick = |millis| round_span(millis).replace('\u{a0}', " ");
        assert_eq!([tick(0), tick(500), tick(1_000), tick(1_500)], ["0", "500 ms", "1 s", "1.5 s"]);
        assert_eq!([tick(60_000), tick(3_600_000)], ["1 m", "1 h"]);
    }

    #[test]
    fn counts_read_easily() {
        let shown = |count| counted(count, "run");
        assert_eq!(
            [shown(0), shown(1), shown(4_812), shown(1_048_120)],
            ["0 runs", "1 run", "4,812 runs", "1,048,120 runs"]
        );
        assert_eq!([shortened("abc", 3), shortened("abcd", 3), shortened("🛎🛎🛎🛎", 2)], ["abc", "ab…", "🛎…"]);
    }
}
