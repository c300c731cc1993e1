//! Fires as they are shown: a row for people, an object for programs.

use everbell_core::Spec;
use jiff::{Timestamp, Zoned};

use super::notes::note;
use crate::cli::output::Gaps;
use crate::elapsed::wait;
use crate::http::model::FireDocument;

/// Weekday, date, time and abbreviation read as one; the rest stands apart.
pub(crate) const GAPS: Gaps = &[1, 1, 1, 2];

/// One instant at which a schedule fires.
pub(crate) struct Fire {
    local: Zoned,
    note: Option<String>,
}

impl Fire {
    /// The next fires, fewer if the schedule ends.
    pub(crate) fn after(spec: &Spec, from: Timestamp, count: u16) -> Vec<Fire> {
        spec.slots_after(from).take(usize::from(count)).map(|at| Fire::new(spec, at)).collect()
    }

    /// The fire of a schedule at this instant.
    pub(crate) fn new(spec: &Spec, at: Timestamp) -> Fire {
        Fire { local: at.to_zoned(spec.zone().as_jiff().clone()), note: note(spec, at) }
    }

    /// What daylight saving did to it.
    pub(crate) fn note(self) -> Option<String> {
        self.note
    }

    pub(crate) fn document(self) -> FireDocument {
        FireDocument { at: self.local.timestamp().to_string(), local: self.local.to_string(), note: self.note }
    }

    /// Weekday, local date, local time, abbreviation of the zone, instant, time to wait; and a note if there is one.
    pub(crate) fn row(&self, from: Timestamp, time_format: &str) -> Vec<String> {
        let at = self.local.timestamp();
        let zone = self.local.time_zone().to_offset_info(at);
        let mut row = vec![
            self.local.strftime("%a").to_string(),
            self.local.date().to_string(),
            self.local.strftime(time_format).to_string(),
            zone.abbreviation().to_owned(),
            at.to_string(),
            format!("in {}", wait(at.duration_since(from).as_secs())),
        ];
        row.extend(self.note.clone());
        row
    }

    pub(crate) fn has_seconds(&self) -> bool {
        self.local.second() != 0
    }
}
