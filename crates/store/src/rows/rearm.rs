//! Gaps that were written while a clock was ahead, and what is left of them.

use everbell_core::store::{ClockTrace, Due};
use jiff::Timestamp;
use uuid::Uuid;

use super::GapColumns;
use crate::micros::Micros;

/// Changes of gaps.
#[derive(Debug, Default)]
pub(crate) struct GapCuts {
    pub(crate) delete: Vec<Uuid>,
    /// Id, last slot, slots.
    pub(crate) shorten: Vec<(Uuid, Micros, i64)>,
}

impl GapCuts {
    /// Asks about each gap. One that cannot be read is left as it is.
    pub(crate) fn new(rows: Vec<GapColumns>, dues: &[Due], now: Timestamp) -> GapCuts {
        let mut cuts = GapCuts::default();
        for row in rows {
            let id = row.id;
            let Ok((job, org, gap)) = row.read() else { continue };
            let Some(due) = dues.iter().find(|due| due.job.id == job && due.timer.org == org) else { continue };
            match due.cut_gap(&gap, now) {
                Some(left) => {
                    let slots = i64::try_from(left.slots).unwrap_or(i64::MAX);
                    cuts.shorten.push((id, left.last_slot_at.into(), slots));
                }
                None => cuts.delete.push(id),
            }
        }
        cuts
    }

    pub(crate) fn len(&self) -> u32 {
        (self.delete.len() + self.shorten.len()) as u32
    }
}

/// Collects what a store asks about, in a closure that may only read.
#[derive(Debug, Default)]
pub(crate) struct Asked(std::sync::Mutex<Vec<Due>>);

impl Asked {
    pub(crate) fn add(&self, due: &Due) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(due.clone());
    }

    pub(crate) fn into_inner(self) -> Vec<Due> {
        self.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The columns of a trace.
pub(crate) fn clock_trace((trusted_at, newest_at): (Option<Micros>, Option<Micros>)) -> ClockTrace {
    ClockTrace { trusted_at: trusted_at.map(Into::into), newest_at: newest_at.map(Into::into) }
}
