//! A handler that hands its run over: work that ends later, in another program.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The state of a run that may be handed over.
#[derive(Default)]
pub(crate) struct RemoteSide {
    token: OnceLock<String>,
    handed_over: AtomicBool,
}

impl fmt::Debug for RemoteSide {
    /// Leaves out the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteSide").field("handed_over", &self.handed_over).finish_non_exhaustive()
    }
}

impl RemoteSide {
    /// The run token, if the run may be handed over.
    pub(crate) fn token(&self) -> Option<&str> {
        self.token.get().map(String::as_str)
    }

    /// Hands the run over if there is a token, and returns whether there is.
    pub(crate) fn hand_over(&self) -> bool {
        let can = self.token().is_some();
        self.handed_over.store(can, Ordering::Relaxed);
        can
    }

    pub(crate) fn offer(&self, token: String) {
        // It is offered once.
        drop(self.token.set(token));
    }

    pub(crate) fn is_handed_over(&self) -> bool {
        self.handed_over.load(Ordering::Relaxed)
    }
}
