//! [`Clock`]: times as a page shows them: in a zone that it names, how far away, and in UTC for who points at them.

use everbell_core::Zone;
use jiff::Timestamp;

use super::markup::Markup;
use everbell_wire::elapsed::{took, wait};

/// The time of a page, and in whose zone it is shown.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    pub(crate) now: Timestamp,
    pub(crate) face: Face,
    pub(crate) mine: Zone,
}

/// In whose zone times are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Face {
    /// The time zone of the job, or else of the user.
    #[default]
    Schedule,
    Mine,
    Utc,
}

impl Face {
    pub(crate) const ALL: [Face; 3] = [Face::Schedule, Face::Mine, Face::Utc];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Face::Schedule => "schedule",
            Face::Mine => "mine",
            Face::Utc => "utc",
        }
    }

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Face::Schedule => "Schedule zone",
            Face::Mine => "My zone",
            Face::Utc => "UTC",
        }
    }
}

impl Clock {
    /// The zone in which something is shown that may have a zone of its own.
    pub(crate) fn zone(&self, own: Option<&Zone>) -> Zone {
        match (self.face, own) {
            (Face::Utc, _) => Zone::utc(),
            (Face::Schedule, Some(own)) => own.clone(),
            _ => self.mine.clone(),
        }
    }

    /// Returns this clock with another face.
    pub(crate) fn with(&self, face: Face) -> Clock {
        Clock { face, ..self.clone() }
    }

    /// `2026-11-16 08:00 CET`, with seconds if there are any; in UTC for who points at it.
    pub(crate) fn at(&self, at: Timestamp, own: Option<&Zone>) -> Markup {
        let there = at.to_zoned(self.zone(own).as_jiff().clone());
        let whole = there.second() == 0 && there.subsec_nanosecond() == 0;
        self.render(at, own, if whole { "%Y-%m-%d %H:%M" } else { "%Y-%m-%d %H:%M:%S" })
    }

    /// `06:12` of today, `Sun 06:12` of this week, else the whole time; in the zone of the person.
    pub(crate) fn short(&self, at: Timestamp) -> Markup {
        let zone = self.zone(None);
        let [there, today] = [at, self.now].map(|at| at.to_zoned(zone.as_jiff().clone()));
        let days = today.date().since(there.date()).map_or(i32::MAX, |span| span.get_days());
        match days {
            0 => marked(at, &zone, &there.strftime("%H:%M").to_string()),
            1..=6 => marked(at, &zone, &there.strftime("%a %H:%M").to_string()),
            _ => self.at(at, None),
        }
    }

    /// `2026-11-16 08:00 CET` as plain text, for the title of something shorter.
    pub(crate) fn words(&self, at: Timestamp, own: Option<&Zone>) -> String {
        let zone = self.zone(own);
        let there = at.to_zoned(zone.as_jiff().clone());
        let format = if there.second() == 0 { "%Y-%m-%d %H:%M" } else { "%Y-%m-%d %H:%M:%S" };
        format!("{} {}", there.strftime(format), zone.as_jiff().to_offset_info(at).abbreviation())
    }

    /// Renders a time with seconds.
    pub(crate) fn second(&self, at: Timestamp, own: Option<&Zone>) -> Markup {
        self.render(at, own, "%Y-%m-%d %H:%M:%S")
    }

    /// Renders a time with milliseconds, for events that follow each other quickly.
    pub(crate) fn exact(&self, at: Timestamp, own: Option<&Zone>) -> Markup {
        self.render(at, own, "%Y-%m-%d %H:%M:%S%.3f")
    }

    /// The time of the day alone if that day is named beside it already; else the same as [`Clock::second`].
    pub(crate) fn beside(&self, at: Timestamp, named: Timestamp, own: Option<&Zone>) -> Markup {
        let zone = self.zone(own);
        let [there, beside] = [at, named].map(|at| at.to_zoned(zone.as_jiff().clone()));
        if there.date() == beside.date() && there.offset() == beside.offset() {
            marked(at, &zone, &there.strftime("%H:%M:%S").to_string())
        } else {
            self.second(at, own)
        }
    }

    /// Renders a time with the day of the week.
    pub(crate) fn day(&self, at: Timestamp, own: Option<&Zone>) -> Markup {
        let there = at.to_zoned(self.zone(own).as_jiff().clone());
        self.render(at, own, if there.second() == 0 { "%a %Y-%m-%d %H:%M" } else { "%a %Y-%m-%d %H:%M:%S" })
    }

    fn render(&self, at: Timestamp, own: Option<&Zone>, format: &str) -> Markup {
        let zone = self.zone(own);
        let name = super::markup::escaped(zone.as_jiff().to_offset_info(at).abbreviation());
        let there = at.to_zoned(zone.as_jiff().clone());
        marked(at, &zone, &format!("{} <span class=\"tz\">{name}</span>", there.strftime(format)))
    }

    /// `in 17h 18m`, `3m ago`; browsers with JavaScript keep it up to date.
    pub(crate) fn away(&self, at: Timestamp) -> Markup {
        let text = match at.duration_since(self.now).as_secs() {
            0 => "now".to_owned(),
            ahead @ 1.. => format!("in {}", wait(ahead)),
            gone => format!("{} ago", wait(-gone)),
        };
        Markup::from_html(format!("<span class=\"away\" data-at=\"{}\">{text}</span>", at.as_millisecond()))
    }

    /// How long something is going on already; browsers with JavaScript count on.
    pub(crate) fn since(&self, at: Timestamp) -> Markup {
        let text = wait(self.now.duration_since(at).as_secs().max(0));
        Markup::from_html(format!("<span class=\"away\" data-since=\"{}\">{text}</span>", at.as_millisecond()))
    }
}

/// A time as HTML, for who points at it in UTC, with the zone and its offset.
fn marked(at: Timestamp, zone: &Zone, html: &str) -> Markup {
    let info = zone.as_jiff().to_offset_info(at);
    // The offset only where letters hide it.
    let offset = if info.abbreviation().starts_with(['+', '-']) {
        String::new()
    } else {
        at.to_zoned(zone.as_jiff().clone()).strftime(" (%:z)").to_string()
    };
    let whole = Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at);
    let place = match zone.name() {
        "UTC" => String::new(),
        name => format!(" · {}{offset}", super::markup::escaped(name)),
    };
    Markup::from_html(format!("<time datetime=\"{whole}\" title=\"{whole}{place}\">{html}</time>"))
}

/// How long something took; a dash if it did not end.
pub(crate) fn lasted(from: Option<Timestamp>, to: Option<Timestamp>) -> String {
    from.zip(to).map_or_else(|| "–".to_owned(), |(from, to)| took(to.duration_since(from).as_millis() as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(face: Face) -> Clock {
        let now = "2026-11-15T13:00:00Z".parse().unwrap();
        Clock { now, face, mine: Zone::get("Asia/Tokyo").unwrap() }
    }

    #[test]
    fn times_are_shown_in_the_chosen_zone() {
        let (at, paris) = ("2026-11-16T07:00:00Z".parse().unwrap(), Zone::get("Europe/Paris").unwrap());
        let shown = |face, own: Option<&Zone>| clock(face).at(at, own).to_string();
        assert_eq!(
            shown(Face::Schedule, Some(&paris)),
            "<time datetime=\"2026-11-16T07:00:00Z\" title=\"2026-11-16T07:00:00Z · Europe/Paris (+01:00)\">2026-11-16 08:00 <span class=\"tz\">CET</span></time>"
        );
        assert!(shown(Face::Schedule, None).contains(">2026-11-16 16:00 <span class=\"tz\">JST<"));
        assert!(shown(Face::Mine, Some(&paris)).contains("16:00"));
        assert!(shown(Face::Utc, Some(&paris)).contains(">2026-11-16 07:00 <span class=\"tz\">UTC<"));
    }

    #[test]
    fn a_day_is_named_once() {
        let (named, paris) = ("2026-11-16T22:59:59Z".parse().unwrap(), Zone::get("Europe/Paris").unwrap());
        let shown = |text: &str| clock(Face::Schedule).beside(text.parse().unwrap(), named, Some(&paris)).to_string();
        assert!(shown("2026-11-16T22:59:59.9Z").contains(">23:59:59</time>"));
        assert!(shown("2026-11-16T23:00:00Z").contains(">2026-11-17 00:00:00 <span"));
    }

    #[test]
    fn it_is_said_how_far_away() {
        let clock = clock(Face::Utc);
        let shown_as = |text: &str| clock.away(text.parse().unwrap()).to_string();
        assert!(shown_as("2026-11-16T07:00:00Z").contains(">in 18h<"));
        assert!(shown_as("2026-11-15T12:57:00Z").contains(">3m ago<"));
        assert!(clock.since("2026-11-15T12:59:00Z".parse().unwrap()).to_string().contains(">1m<"));
    }
}
