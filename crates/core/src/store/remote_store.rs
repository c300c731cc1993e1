//! [`RemoteStore`]: runs in the hands of their remote sides.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreResult;
use super::interceptor::{Call, Interceptor, audit_entry, verbs};
use crate::handover::{Handover, Progress};
use crate::ids::RunId;
use crate::output::end_of_output;
use crate::remote::HeldRun;

/// A sign of life of a remote side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteUpdate {
    /// The run.
    pub run: RunId,
    /// The attempt that must be the current one.
    pub attempt: u32,
    /// The new end of its lease; `None` extends nothing.
    pub lease_until: Option<Timestamp>,
    /// How far it has come; `None` leaves what is known.
    pub progress: Option<Progress>,
    /// The text that it has printed.
    pub output: Option<AddedOutput>,
}

/// Output that is added to that of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedOutput {
    /// The output that it is added to, which must be the current one.
    pub before: Option<String>,
    /// All of it afterwards.
    pub after: String,
}

impl AddedOutput {
    /// Adds a text to what a run has printed, and keeps the end of it. `None` if there is nothing to add.
    pub fn new(before: Option<&str>, text: &str) -> Option<AddedOutput> {
        if text.is_empty() {
            return None;
        }
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let after = end_of_output(&format!("{}{text}{end}", before.unwrap_or_default()))?;
        Some(AddedOutput { before: before.map(str::to_owned), after })
    }
}

verbs! {
    /// Keeps runs that instances have handed over to their remote sides: see [`remote`](crate::remote). Such a run is leased
    /// to [`InstanceId::REMOTE`](crate::InstanceId::REMOTE), so the lease of no instance covers it, and
    /// [`expired_leases`](super::ClusterStore::expired_leases) leaves it out. It ends as any other does, with
    /// [`record`](super::RunStore::record).
    pub trait RemoteStore {
        /// Returns the key that all instances sign run tokens with: this candidate, if there was none.
        async fn run_token_key(&self, candidate: &[u8; 32]) -> StoreResult<[u8; 32]>;

        /// Hands a running run over to its remote side, guarded by its attempt, with a lease until `lease_until`, and with
        /// its output so far. Returns whether its remote side holds it then: handing it over again extends its lease and
        /// changes nothing else.
        async fn hand_over(
            &self,
            handover: &Handover,
            lease_until: Timestamp,
            output: Option<&str>,
        ) -> StoreResult<bool>;

        /// Writes a sign of life of a run that its remote side holds, guarded by its attempt and the output that is added to.
        /// Returns whether it was written. No lease becomes shorter.
        async fn update_remote(&self, update: &RemoteUpdate) -> StoreResult<bool>;

        /// Runs that their remote sides hold and whose lease or deadline ends before `before`, those that end first come
        /// first, then by id.
        async fn remote_runs(&self, before: Timestamp, limit: u32) -> StoreResult<Vec<HeldRun>>;
    }
}
