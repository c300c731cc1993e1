//! The period of a list: typed as a time of the wall clock in a zone that is named beside it, kept in the address with
//! its offset, so that it means the same for everybody who gets the address.

use everbell_core::Zone;
use jiff::Timestamp;
use jiff::fmt::temporal::Pieces;
use serde_json::Value;

use everbell_wire::time_input::TimeReader;

/// The query with its times of the wall clock as the instants that they are in this zone; nothing if it has none.
pub(crate) fn settled(query: &Value, zone: &Zone) -> Option<Value> {
    let mut settled = query.clone();
    for name in ["from", "to"] {
        let text = query.get(name).and_then(Value::as_str);
        if let Some(at) = text.and_then(|text| instant(text, zone, name == "from")) {
            settled[name] = Value::String(spelled(at, zone));
        }
    }
    (settled != *query).then_some(settled)
}

/// RFC 3339 with the offset of this zone.
pub(crate) fn spelled(at: Timestamp, zone: &Zone) -> String {
    at.display_with_offset(zone.as_jiff().to_offset(at)).to_string()
}

/// Returns the value of a local time field. Invalid text stays as it was typed.
pub(crate) fn typed(text: &str, zone: &Zone) -> String {
    let Ok(at) = (TimeReader { now: Timestamp::UNIX_EPOCH, zone }).absolute(text) else { return text.to_owned() };
    let there = at.to_zoned(zone.as_jiff().clone());
    there.strftime(if there.second() == 0 { "%Y-%m-%dT%H:%M" } else { "%Y-%m-%dT%H:%M:%S" }).to_string()
}

/// A time without an offset. One that happens twice, or never, is taken so that the period is the longer one: a list
/// should rather show too much than hide something.
fn instant(text: &str, zone: &Zone, is_begin: bool) -> Option<Timestamp> {
    let pieces = Pieces::parse(text).ok()?;
    if pieces.offset().is_some() || pieces.time_zone_annotation().is_some() {
        return None;
    }
    let there = zone.as_jiff().to_ambiguous_timestamp(pieces.date().to_datetime(pieces.time().unwrap_or_default()));
    if is_begin { there.earlier().ok() } else { there.later().ok() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_go_round() {
        let paris = Zone::get("Europe/Paris").unwrap();
        let query = json!({"from": "2026-11-15T08:00", "to": "2026-11-15T09:30:15", "status": ["failed"]});
        let kept = settled(&query, &paris).unwrap();
        assert_eq!(
            kept,
            json!({"from": "2026-11-15T08:00:00+01:00", "to": "2026-11-15T09:30:15+01:00", "status": ["failed"]})
        );
        assert_eq!(settled(&kept, &paris), None);
        assert_eq!(typed("2026-11-15T08:00:00+01:00", &paris), "2026-11-15T08:00");
        assert_eq!(typed("2026-11-15T08:30:15Z", &paris), "2026-11-15T09:30:15");
        assert_eq!(typed("2026-11-15T08:00:00+01:00", &Zone::utc()), "2026-11-15T07:00");
    }

    #[test]
    fn a_period_is_rather_too_long() {
        let newyork = Zone::get("America/New_York").unwrap();
        let both = |text: &str| settled(&json!({"from": text, "to": text}), &newyork).unwrap();
        let fold = both("2027-11-07T01:30");
        assert_eq!(fold, json!({"from": "2027-11-07T01:30:00-04:00", "to": "2027-11-07T01:30:00-05:00"}));
        let gap = both("2027-03-14T02:30");
        assert_eq!(gap, json!({"from": "2027-03-14T01:30:00-05:00", "to": "2027-03-14T03:30:00-04:00"}));
    }

    #[test]
    fn what_is_no_time_stays() {
        assert_eq!(settled(&json!({"from": "soon", "to": "2027-03-14T02:30:00Z"}), &Zone::utc()), None);
        assert_eq!(settled(&json!({}), &Zone::utc()), None);
        assert_eq!(typed("soon", &Zone::utc()), "soon");
    }
}
