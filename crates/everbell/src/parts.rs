//! [`Parts`]: what an instance is made of, and its clients work with.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use everbell_core::calendar::CalendarName;
use everbell_core::store::Store;
use everbell_core::{Source, Target};
use tokio::sync::RwLock;

use crate::clock::Clock;
use crate::engine::{EngineOptions, Starting};
use crate::events::Events;
use crate::run_token::RunTokens;
use crate::targets::Serving;

/// The parts that an instance is made of.
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) targets: Serving,
    /// Targets that other programs serve.
    pub(crate) known: BTreeSet<Target>,
    pub(crate) options: EngineOptions,
    pub(crate) events: Events,
    pub(crate) run_tokens: RunTokens,
    /// The instances of this program that have begun and are not listed yet.
    pub(crate) starting: Starting,
    /// The calendars that this program declares, as of its last sync.
    pub(crate) declared_calendars: RwLock<DeclaredCalendars>,
}

/// The calendars that a program declares, which can only be changed there.
#[derive(Debug)]
pub(crate) struct DeclaredCalendars {
    /// The kind of owner.
    pub(crate) source: Source,
    pub(crate) names: BTreeSet<CalendarName>,
}

impl fmt::Debug for Parts {
    /// Leaves out the store, which may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let served = self.targets.now();
        let targets: Vec<&str> = served.names().map(Target::as_str).collect();
        f.debug_struct("Parts").field("targets", &targets).field("options", &self.options).finish_non_exhaustive()
    }
}
