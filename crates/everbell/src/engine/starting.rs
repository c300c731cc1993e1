//! [`Starting`]: instances of this program that are not in the store yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the instances of this program that have begun and have not sent their first heartbeat.
///
/// What a live instance serves is read from the store. A request that arrives right after the start must not be refused
/// only because the row of this instance is still on its way.
#[derive(Debug, Default)]
pub(crate) struct Starting(Arc<AtomicUsize>);

/// An instance that starts, as long as it lives.
#[derive(Debug)]
pub(crate) struct Beginning(Arc<AtomicUsize>);

impl Starting {
    /// Counts an instance until the answer is dropped.
    pub(crate) fn begin(&self) -> Beginning {
        self.0.fetch_add(1, Ordering::SeqCst);
        Beginning(Arc::clone(&self.0))
    }

    /// Whether an instance of this program starts at this moment.
    pub(crate) fn any(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
