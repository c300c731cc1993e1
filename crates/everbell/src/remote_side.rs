//! A handler that hands its run over: work that ends later, in another program.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::run::Run;

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

impl Run {
    /// Returns the run token, which lets a remote side report about this attempt over the HTTP API, and no other run or
    /// attempt; `None` unless the target has [`TargetOptions::remote_lease`](crate::TargetOptions::remote_lease). It is a
    /// secret.
    pub fn token(&self) -> Option<&str> {
        self.remote_side().token.get().map(String::as_str)
    }

    /// Hands the run over to its remote side when the handler returns, whatever it returns: the run goes on, and belongs to no
    /// instance. Its remote side, which was given [`Run::token`], sends heartbeats and ends it.
    ///
    /// Does nothing and returns `false` if there is no token.
    pub fn hand_over(&self) -> bool {
        let can = self.token().is_some();
        self.remote_side().handed_over.store(can, Ordering::Relaxed);
        can
    }

    pub(crate) fn offer(&self, token: String) {
        // It is offered once.
        drop(self.remote_side().token.set(token));
    }

    pub(crate) fn is_handed_over(&self) -> bool {
        self.remote_side().handed_over.load(Ordering::Relaxed)
    }
}
