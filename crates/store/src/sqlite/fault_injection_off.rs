//! A stand-in for `fault_injection.rs` where no test can ask for faults: it does nothing, at no cost.

use std::sync::atomic::AtomicBool;

use everbell_core::store::StoreResult;

#[derive(Debug, Default)]
pub(super) struct Faults {}

#[derive(Clone, Copy)]
pub(super) enum Call {
    Statement,
    Commit,
}

pub(super) struct Later;

#[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the other one has something to look at")]
impl Later {
    pub(super) fn heard(self) -> StoreResult<()> {
        Ok(())
    }
}

#[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the other one has something to look at")]
impl Faults {
    pub(super) fn before(&self, _what: &str, _call: Call, _broken: &AtomicBool) -> StoreResult<Later> {
        Ok(Later)
    }
}
