//! Rows of runs that their remote sides hold.

use std::time::Duration;

use everbell_core::handover::Progress;
use everbell_core::remote::HeldRun;
use everbell_core::store::StoreError;
use uuid::Uuid;

use super::from_row::by_name;
use super::{LoadedJobs, SettlingColumns, corrupt, settling};
use crate::micros::Micros;

/// A running run that was handed over.
#[derive(Clone, Debug)]
pub(crate) struct HeldRunColumns {
    settling: SettlingColumns,
    lease_until: Micros,
    remote_lease: i64,
    remote_deadline: Micros,
    started_at: Option<Micros>,
    cancel_by: Option<String>,
}

by_name!(HeldRunColumns { lease_until, remote_lease, remote_deadline, started_at, cancel_by } flatten { settling });

impl HeldRunColumns {
    pub(crate) fn job_id(&self) -> Option<Uuid> {
        self.settling.job_id
    }

    fn read(self, learned: &LoadedJobs) -> Option<HeldRun> {
        Some(HeldRun {
            settling: settling(&[self.settling], learned).pop()?,
            lease_until: self.lease_until.into(),
            lease: milliseconds(self.remote_lease),
            deadline: self.remote_deadline.into(),
            started_at: self.started_at.map(Into::into),
            cancel_by: self.cancel_by,
        })
    }
}

/// Runs with what their jobs say about attempts.
pub(crate) fn held_runs(rows: Vec<HeldRunColumns>, learned: &LoadedJobs) -> Vec<HeldRun> {
    rows.into_iter().filter_map(|row| row.read(learned)).collect()
}

/// The progress of a run; `None` if its remote side said nothing about it.
pub(crate) fn progress(permille: Option<i32>, message: Option<String>) -> Option<Progress> {
    let permille = permille.and_then(|permille| u16::try_from(permille).ok());
    (permille.is_some() || message.is_some()).then_some(Progress { permille, message })
}

/// A time as it is stored.
pub(crate) fn milliseconds(stored: i64) -> Duration {
    Duration::from_millis(u64::try_from(stored).unwrap_or(0))
}

/// A time as it is to be stored.
pub(crate) fn to_milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// The stored key that run tokens are signed with.
pub(crate) fn key(stored: Vec<u8>) -> Result<[u8; 32], StoreError> {
    <[u8; 32]>::try_from(stored).map_err(|_| corrupt("secrets", "run_tokens", "must have 32 bytes"))
}
