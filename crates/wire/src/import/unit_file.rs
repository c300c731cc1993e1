//! Unit files of systemd: sections with assignments.

use std::time::Duration;

/// The assignments of a unit file, in order.
#[derive(Debug, Default)]
pub(super) struct UnitFile(Vec<(String, String, String)>);

impl UnitFile {
    /// Reads a unit file. Lines that are no assignments are ignored, as systemd does with a warning.
    pub(super) fn parse(text: &str) -> UnitFile {
        let (mut unit, mut section, mut whole) = (UnitFile::default(), String::new(), String::new());
        for line in text.lines() {
            let line = line.trim();
            if whole.is_empty() && (line.is_empty() || line.starts_with(['#', ';'])) {
                continue;
            }
            if let Some(begun) = line.strip_suffix('\\') {
                whole.push_str(begun);
                whole.push(' ');
                continue;
            }
            let line = std::mem::take(&mut whole) + line;
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                name.clone_into(&mut section);
            } else if let Some((name, value)) = line.split_once('=') {
                unit.0.push((section.clone(), name.trim().to_owned(), value.trim().to_owned()));
            }
        }
        unit
    }

    /// The values of a setting that may be repeated. An empty one forgets those before it.
    pub(super) fn all(&self, section: &str, name: &str) -> Vec<&str> {
        let mut values = Vec::new();
        for (_, _, value) in self.0.iter().filter(|(of, named, _)| of == section && named == name) {
            if value.is_empty() {
                values.clear();
            } else {
                values.push(value.as_str());
            }
        }
        values
    }

    /// The value of a setting; the last one counts.
    pub(super) fn last(&self, section: &str, name: &str) -> Option<&str> {
        self.all(section, name).pop()
    }

    /// Whether a setting says yes.
    pub(super) fn is_on(&self, section: &str, name: &str) -> bool {
        let word = self.last(section, name).unwrap_or_default().to_lowercase();
        ["1", "yes", "y", "true", "t", "on"].contains(&word.as_str())
    }
}

/// Reads a span such as `1h 30min`; a number without a unit is seconds. `infinity` is none.
pub(super) fn span(text: &str) -> Option<Duration> {
    let text = text.trim().to_lowercase();
    let mut rest = text.as_str();
    let mut seconds = 0.0_f64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "ms" | "msec" => 0.001,
            "" | "s" | "sec" | "second" | "seconds" => 1.0,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hour" | "hours" => 3_600.0,
            "d" | "day" | "days" => 86_400.0,
            "w" | "week" | "weeks" => 604_800.0,
            _ => return None,
        };
        seconds += number * unit;
        rest = rest[letters..].trim_start();
    }
    Duration::try_from_secs_f64(seconds).ok().filter(|_| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_file_is_read_as_systemd_reads_it() {
        let text = "# c\n[Timer]\nOnCalendar=daily\nOnCalendar=\nOnCalendar = a\nOnCalendar=b\nPersistent=Yes\n\
                    [Service]\nExecStart=/bin/a \\\n  --b\nnothing\n; c\n";
        let unit = UnitFile::parse(text);
        assert_eq!(unit.all("Timer", "OnCalendar"), ["a", "b"]);
        assert!(unit.is_on("Timer", "Persistent") && !unit.is_on("Timer", "WakeSystem"));
        assert_eq!(unit.last("Service", "ExecStart"), Some("/bin/a  --b"));
        assert_eq!(unit.last("Timer", "ExecStart"), None);
    }

    #[test]
    fn spans_have_units() {
        for (text, seconds) in [("90", 90), ("15min", 900), ("1h 30min", 5_400), ("1h30m", 5_400), ("2d", 172_800)] {
            assert_eq!(span(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "infinity", "3 moons", "x"] {
            assert_eq!(span(text), None, "{text}");
        }
    }
}
