//! Times as people read them: in a zone, with an offset, and relative to now.

use everbell_core::Zone;
use jiff::{Timestamp, Zoned};

use super::output::{Cell, clock_face};
use everbell_wire::elapsed::wait;

/// An instant in a zone.
pub(crate) fn local(at: Timestamp, zone: &Zone) -> Zoned {
    at.to_zoned(zone.as_jiff().clone())
}

/// Drops fractions of a second.
pub(crate) fn whole_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// `2026-11-16 08:00 +01:00`; seconds only if there are any.
pub(crate) fn stamp(at: Timestamp, zone: &Zone) -> String {
    let there = local(at, zone);
    format!("{} {} {}", there.date(), clock_face(there.time()), there.strftime("%:z"))
}

/// `2026-11-16T08:00:00+01:00`, for programs.
pub(crate) fn exact(at: Timestamp, zone: &Zone) -> String {
    at.display_with_offset(zone.as_jiff().to_offset(at)).to_string()
}

/// A time for people and for programs; a dash if there is none.
pub(crate) fn fire_cell(at: Option<Timestamp>, zone: &Zone) -> Cell {
    at.map_or_else(|| Cell::both("-", ""), |at| Cell::both(stamp(at, zone), &exact(at, zone)))
}

/// The time of an event, always with seconds; a dash if there is none.
pub(crate) fn stamp_cell(at: Option<Timestamp>, zone: &Zone) -> Cell {
    let shown = |at: Timestamp| local(at, zone).strftime("%Y-%m-%d %H:%M:%S %:z").to_string();
    let at = at.map(whole_second);
    at.map_or_else(|| Cell::both("-", ""), |at| Cell::both(shown(at), &exact(at, zone)))
}

/// `Mon 2026-11-16 08:00 CET`.
pub(crate) fn spoken(at: Timestamp, zone: &Zone) -> String {
    let there = local(at, zone);
    format!("{} {} {}", there.strftime("%a %Y-%m-%d"), clock_face(there.time()), abbreviation(at, zone))
}

/// `CET`, or the offset where a zone has no letters.
fn abbreviation(at: Timestamp, zone: &Zone) -> String {
    zone.as_jiff().to_offset_info(at).abbreviation().to_owned()
}

/// `in 3m 12s`, `now`, `17h 18m ago`.
pub(crate) fn away(at: Timestamp, now: Timestamp) -> String {
    match at.duration_since(now).as_secs() {
        0 => "now".to_owned(),
        ahead @ 1.. => format!("in {}", wait(ahead)),
        gone => format!("{} ago", wait(-gone)),
    }
}

/// The time that has passed.
pub(crate) fn since(at: Timestamp, now: Timestamp) -> String {
    wait(now.duration_since(at).as_secs().max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_the_zone() {
        let (at, paris) = ("2026-11-16T07:00:00Z".parse().unwrap(), Zone::get("Europe/Paris").unwrap());
        assert_eq!(stamp(at, &paris), "2026-11-16 08:00 +01:00");
        assert_eq!(exact(at, &paris), "2026-11-16T08:00:00+01:00");
        assert_eq!(spoken(at, &paris), "Mon 2026-11-16 08:00 CET");
        let sao_paulo = Zone::get("America/Sao_Paulo").unwrap();
        assert_eq!(spoken(at, &sao_paulo), "Mon 2026-11-16 04:00 -03");
    }

    #[test]
    fn times_are_relative_to_now() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let words = |second| away(at(second), at(1_000));
        assert_eq!([words(1_192), words(1_000), words(940)], ["in 3m 12s", "now", "1m ago"]);
        assert_eq!((since(at(940), at(1_000)), since(at(1_010), at(1_000))), ("1m".to_owned(), "0s".to_owned()));
    }
}
