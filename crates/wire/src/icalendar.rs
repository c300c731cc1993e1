//! Text in the form of iCalendar (RFC 5545), for calendars that people subscribe to.
//!
//! Written here, in a page: the crates that write it bring a second library for time.

use std::fmt::Write as _;

use jiff::Timestamp;

/// The most bytes of a line before it is folded.
const MAX_LINE_BYTES: usize = 75;

/// A calendar to subscribe to.
#[derive(Clone, Debug, Default)]
pub struct Feed {
    /// Its name, as calendars show it.
    pub name: String,
    /// The description.
    pub about: String,
    /// Its events.
    pub events: Vec<FeedEvent>,
}

/// An event that takes no time: a job fires.
#[derive(Clone, Debug)]
pub struct FeedEvent {
    /// The time of the event.
    pub at: Timestamp,
    /// The part of its id that distinguishes it from others at the same time. The id stays the same from one reading to the next.
    pub key: String,
    /// One line.
    pub title: String,
    /// More than the title says.
    pub about: String,
    /// A page about it.
    pub url: Option<String>,
    /// Words to group it by.
    pub categories: Vec<String>,
    /// Whether it does not happen.
    pub is_canceled: bool,
}

impl Feed {
    /// Writes the calendar as of `now`.
    pub fn to_text(&self, now: Timestamp) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: &str| fold(&mut text, &format!("{name}:{value}"));
        line("BEGIN", "VCALENDAR");
        line("VERSION", "2.0");
        line("PRODID", "-//everbell//next fires//EN");
        line("CALSCALE", "GREGORIAN");
        line("METHOD", "PUBLISH");
        line("NAME", &escaped(&self.name));
        line("X-WR-CALNAME", &escaped(&self.name));
        line("DESCRIPTION", &escaped(&self.about));
        line("X-WR-CALDESC", &escaped(&self.about));
        line("REFRESH-INTERVAL;VALUE=DURATION", "PT1H");
        line("X-PUBLISHED-TTL", "PT1H");
        for event in &self.events {
            line("BEGIN", "VEVENT");
            let at = moment(event.at);
            line("UID", &format!("{at}-{}@everbell", escaped(&event.key)));
            line("DTSTAMP", &moment(now));
            line("DTSTART", &at);
            line("SUMMARY", &escaped(&event.title));
            line("DESCRIPTION", &escaped(&event.about));
            if let Some(url) = &event.url {
                line("URL", url);
            }
            if !event.categories.is_empty() {
                let words: Vec<String> = event.categories.iter().map(|word| escaped(word)).collect();
                line("CATEGORIES", &words.join(","));
            }
            line("STATUS", if event.is_canceled { "CANCELLED" } else { "CONFIRMED" });
            // A run does not make a person busy.
            line("TRANSP", "TRANSPARENT");
            line("END", "VEVENT");
        }
        line("END", "VCALENDAR");
        text
    }
}

/// A time in UTC: `20261118T020000Z`.
fn moment(at: Timestamp) -> String {
    at.strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// Escapes a text value.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | ';' | ',' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// Adds a line: long ones go on after a line break and a space, never within a character.
fn fold(text: &mut String, line: &str) {
    let (mut rest, mut room) = (line, MAX_LINE_BYTES);
    while rest.len() > room {
        let (head, tail) = rest.split_at(rest.floor_char_boundary(room));
        let _infallible = write!(text, "{head}\r\n ");
        (rest, room) = (tail, MAX_LINE_BYTES - 1);
    }
    text.push_str(rest);
    text.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use everbell_core::calendar::read_ics;

    use super::*;

    fn feed(title: &str) -> Feed {
        let event = FeedEvent {
            at: "2026-11-18T02:00:00Z".parse().unwrap(),
            key: "report".to_owned(),
            title: title.to_owned(),
            about: "0 3 * * *, Europe/Berlin\ntarget `mail`".to_owned(),
            url: Some("https://cron.example/jobs/report".to_owned()),
            categories: vec!["team=a,b".to_owned()],
            is_canceled: false,
        };
        Feed { name: "everbell".to_owned(), about: "All; jobs".to_owned(), events: vec![event] }
    }

    #[test]
    fn a_feed_is_written_as_calendars_read_it() {
        let text = feed("report").to_text("2026-11-17T12:00:00Z".parse().unwrap());
        let event = text.split_once("BEGIN:VEVENT\r\n").unwrap().1;
        let wanted = "UID:20261118T020000Z-report@everbell\r\nDTSTAMP:20261117T120000Z\r\nDTSTART:20261118T020000Z\r\n\
                      SUMMARY:report\r\nDESCRIPTION:0 3 * * *\\, Europe/Berlin\\ntarget `mail`\r\n\
                      URL:https://cron.example/jobs/report\r\nCATEGORIES:team=a\\,b\r\nSTATUS:CONFIRMED\r\n\
                      TRANSP:TRANSPARENT\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
        assert_eq!(event, wanted);
        assert!(
            text.starts_with("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n") && text.contains("X-WR-CALDESC:All\\; jobs\r\n")
        );
    }

    #[test]
    fn whatever_a_title_holds_lines_stay_short_and_a_reader_finds_it() {
        let long = "ä€😀, ".repeat(18);
        for title in [r"a\,;b\", "x", "line\r\nbreak: END:VEVENT", long.trim(), &"x".repeat(75), &"é".repeat(76)] {
            let text = feed(title).to_text(Timestamp::UNIX_EPOCH);
            assert!(text.split("\r\n").all(|line| line.len() <= MAX_LINE_BYTES), "{text}");
            assert!(!text.replace("\r\n", "").contains(['\r', '\n']), "{text}");
            let plain = title.replace('\r', "").replace('\n', " ");
            assert_eq!(read_ics(&text).unwrap()[0].name.as_deref(), Some(plain.as_str()));
        }
    }
}
