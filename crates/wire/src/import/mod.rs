//! Jobs from other schedulers: `CronJobs` of Kubernetes and timers of systemd, as jobs of the `shell` target. Crontabs have
//! a module of their own, [`crontab`](crate::crontab).

mod calendar;
mod command_line;
mod cronjob;
mod timers;
mod unit_file;

use everbell_core::cron::Expression;
use everbell_core::{Draft, Zone};
use serde::Deserialize;

use crate::crontab::{IMPORTED_LABEL, Verdict};

pub use self::cronjob::read as read_cronjobs;
pub use self::timers::{read as read_timer, read_units};

/// The kind of a text with jobs of another scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A crontab.
    #[default]
    Crontab,
    /// Objects of Kubernetes in YAML.
    CronJob,
    /// Unit files of systemd, as `systemctl cat` prints them.
    Timers,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 3] = [Kind::Crontab, Kind::CronJob, Kind::Timers];

    /// Returns the kind as one word: that of the subcommand of `everbell import`.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Crontab => "crontab",
            Kind::CronJob => "cronjob",
            Kind::Timers => "timers",
        }
    }

    /// Finds out what a text is: unit files have sections, objects name their kind, and everything else is a crontab.
    pub fn detect(text: &str) -> Kind {
        let is_section = |line: &str| ["[Timer]", "[Service]"].contains(&line);
        // In a list an object begins with a dash, and its members may be quoted.
        let is_kind = |line: &str| {
            let line = line.trim_start_matches(['-', ' ', '{']).trim_start_matches('"');
            ["kind", "apiVersion"]
                .iter()
                .any(|name| line.strip_prefix(name).is_some_and(|rest| rest.trim_start_matches('"').starts_with(':')))
        };
        if text.lines().map(str::trim).any(is_section) {
            Kind::Timers
        } else if text.lines().map(str::trim).any(is_kind) {
            Kind::CronJob
        } else {
            Kind::Crontab
        }
    }
}

/// One object of a text, and the result of its import.
#[derive(Debug)]
pub struct Item {
    /// Its name in the text.
    pub source: String,
    /// The effect of the object.
    pub verdict: Verdict,
    /// The job, or why there is none.
    pub result: Result<Imported, String>,
}

/// An object that becomes a job.
#[derive(Debug)]
pub struct Imported {
    /// The job, without its target and the label of its file.
    pub draft: Draft,
    /// The schedule in words.
    pub detail: String,
    /// Where the meaning differs, and what is left out.
    pub differences: Vec<String>,
}

impl Imported {
    /// The job with this target, labeled with the name of its file.
    pub fn draft(&self, target: &str, file: &str) -> Draft {
        let mut draft = Draft { target: Some(target.to_owned()), ..self.draft.clone() };
        draft.labels.insert(IMPORTED_LABEL.to_owned(), file.to_owned());
        draft
    }
}

/// Returns the command in the payload of a job, which the target `shell` runs.
pub fn command(draft: &Draft) -> Option<String> {
    let payload = draft.payload.as_ref()?.as_ref().ok()?;
    serde_json::from_str::<Payload>(payload).ok().map(|payload| payload.command)
}

/// The member of a payload that is shown.
#[derive(Deserialize)]
struct Payload {
    command: String,
}

/// Advice to a person about a result, in the words of the caller.
#[derive(Clone, Copy, Debug)]
pub struct Advice {
    /// How to choose another time zone.
    pub zone: &'static str,
    /// How to import suspended objects too.
    pub suspended: &'static str,
}

/// An expression in words, with its zone.
fn described(expression: &str, zone: &Zone) -> Result<String, String> {
    let parsed = Expression::parse(expression).map_err(|error| error.to_string())?;
    Ok(format!("{}, {}", parsed.describe(), zone.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_text_is_detected() {
        for (text, kind) in [
            ("", Kind::Crontab),
            ("# kind: of a comment\n0 1 * * * echo kind: x\n", Kind::Crontab),
            ("MAILTO=a\n@daily x\n", Kind::Crontab),
            ("apiVersion: batch/v1\nkind: CronJob\n", Kind::CronJob),
            ("items:\n- kind: CronJob\n", Kind::CronJob),
            ("{\n  \"apiVersion\": \"v1\"\n}", Kind::CronJob),
            ("# /etc/systemd/system/a.timer\n[Unit]\n[Timer]\nOnCalendar=daily\n", Kind::Timers),
        ] {
            assert_eq!(Kind::detect(text), kind, "{text}");
        }
    }
}
