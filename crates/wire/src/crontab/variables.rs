//! The variables of a crontab, and how each is imported.

use std::collections::BTreeMap;

use everbell_core::Zone;

use super::MAX_LABEL_BYTES;

/// Variables that mean something to cron itself and nothing here.
const LEFT_OUT: [(&str, &str); 6] = [
    ("MAILFROM", "no mail is sent"),
    ("CONTENT_TYPE", "no mail is sent"),
    ("CONTENT_TRANSFER_ENCODING", "no mail is sent"),
    ("RANDOM_DELAY", "`policies.jitter` does this for each job"),
    ("LOGNAME", "cron does not let it be set; the user that runs the command has it"),
    ("USER", "the user that runs the command has it"),
];

/// The variables that hold at a line.
pub(super) struct Variables {
    pub(super) zone: Zone,
    pub(super) shell: Option<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) mailto: Option<String>,
}

/// Reads `NAME = value`, with or without quotes.
pub(super) fn variable(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once('=')?;
    let (name, value) = (unquoted(name.trim()), unquoted(value.trim()));
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some((name, value))
}

/// Removes quotes that surround a text.
fn unquoted(text: &str) -> &str {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}

impl Variables {
    pub(super) fn new(zone: &Zone) -> Variables {
        Variables { zone: zone.clone(), shell: None, env: BTreeMap::new(), mailto: None }
    }

    /// Sets a variable for the lines below. Returns its effect, or why it has none.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<String, String> {
        if let Some((_, why)) = LEFT_OUT.iter().find(|(left_out, _)| *left_out == name) {
            return Ok(format!("{name}: left out: {why}"));
        }
        Ok(match name {
            "CRON_TZ" => {
                let zone = Zone::get(value);
                self.zone =
                    zone.map_err(|error| format!("CRON_TZ: {error}; the lines below keep {}", self.zone.name()))?;
                format!("CRON_TZ: the lines below are read in {}", self.zone.name())
            }
            "SHELL" if !value.starts_with('/') => {
                return Err(format!("SHELL: must be an absolute path such as `/bin/bash`, not `{value}`"));
            }
            "SHELL" => {
                self.shell = Some(value.to_owned());
                format!("SHELL: `{value}` runs the lines below")
            }
            "MAILTO" if value.is_empty() => {
                self.mailto = None;
                "MAILTO: empty; output and failures are stored with each run".to_owned()
            }
            "MAILTO" if value.len() > MAX_LABEL_BYTES => {
                self.mailto = None;
                format!("MAILTO: left out: it is longer than the {MAX_LABEL_BYTES} bytes of a label")
            }
            "MAILTO" => {
                self.mailto = Some(value.to_owned());
                "MAILTO: kept as the label `mailto`; a rule in the configuration mails failures to it".to_owned()
            }
            _ if name.starts_with("EVERBELL_") => format!("{name}: left out: the name is reserved for the run"),
            _ => {
                self.env.insert(name.to_owned(), value.to_owned());
                match name {
                    "TZ" => format!(
                        "TZ: set for the commands below, but not for their times, which stay in {}; CRON_TZ or `--tz` sets those",
                        self.zone.name()
                    ),
                    "HOME" => "HOME: set for the lines below, which start in this folder".to_owned(),
                    _ => format!("{name}: set for the lines below"),
                }
            }
        })
    }
}
