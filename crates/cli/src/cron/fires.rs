//! Rows of times.

use everbell_core::Spec;
use everbell_wire::preview::note;
use jiff::{Timestamp, Zoned};

use super::super::output::Gaps;
use everbell_wire::elapsed::wait;

/// Weekday, date, time and abbreviation belong together.
pub(super) const GAPS: Gaps = &[1, 1, 1, 2];

/// One instant at which a schedule fires.
pub(super) struct Fire {
    local: Zoned,
    note: Option<String>,
}

impl Fire {
    /// The next fires, fewer if the schedule ends.
    pub(super) fn after(spec: &Spec, from: Timestamp, count: u16) -> Vec<Fire> {
        let fire = |at: Timestamp| Fire { local: at.to_zoned(spec.zone().as_jiff().clone()), note: note(spec, at) };
        spec.slots_after(from).take(usize::from(count)).map(fire).collect()
    }

    /// Weekday, local date, local time, abbreviation of the zone, instant, time to wait; and a note if there is one.
    pub(super) fn row(&self, from: Timestamp, time_format: &str) -> Vec<String> {
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

    pub(super) fn has_seconds(&self) -> bool {
        self.local.second() != 0
    }
}
