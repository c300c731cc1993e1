//! [`Origins`]: the slots at which the chains of runs began.

use std::collections::BTreeMap;

use everbell_core::RunId;
use everbell_core::store::StoreResult;
use jiff::Timestamp;
use uuid::Uuid;

use super::corrupt;
use super::from_row::by_name;
use crate::micros::Micros;

/// The most runs of a chain that are followed: chains have no circles, so this only bounds damaged rows.
const MAX_STEPS: u32 = 200;

/// A run, as far as its cause is asked for.
#[derive(Clone, Debug)]
pub(crate) struct CauseColumns {
    pub(crate) id: Uuid,
    pub(crate) trigger: String,
    pub(crate) by_slot: bool,
    pub(crate) at: Micros,
    pub(crate) scheduled_at: Micros,
}

by_name!(CauseColumns { id, trigger, by_slot, at, scheduled_at });

/// A run whose chain is being followed: the run that was reached, and the time of the last one that was read.
#[derive(Debug)]
struct Walk {
    reached: Option<Uuid>,
    time: Option<Timestamp>,
}

/// The walks from runs to the beginnings of their chains.
#[derive(Debug)]
pub(crate) struct Origins {
    walks: BTreeMap<Uuid, Walk>,
    steps: u32,
}

impl Origins {
    pub(crate) fn new(runs: impl Iterator<Item = Uuid>) -> Origins {
        Origins { walks: runs.map(|run| (run, Walk { reached: Some(run), time: None })).collect(), steps: 0 }
    }

    /// The runs to read next. None: every chain was followed to its beginning.
    pub(crate) fn next(&self) -> Option<Vec<Uuid>> {
        let mut runs: Vec<Uuid> = self.walks.values().filter_map(|walk| walk.reached).collect();
        runs.sort_unstable();
        runs.dedup();
        Some(runs).filter(|runs| !runs.is_empty() && self.steps < MAX_STEPS)
    }

    /// Takes one step for each walk. A chain whose beginning was deleted begins at the oldest run that is left.
    pub(crate) fn step(&mut self, rows: &[CauseColumns]) -> StoreResult<()> {
        self.steps += 1;
        let rows: BTreeMap<Uuid, &CauseColumns> = rows.iter().map(|row| (row.id, row)).collect();
        for walk in self.walks.values_mut() {
            let Some(row) = walk.reached.take().and_then(|run| rows.get(&run)) else { continue };
            walk.time = Some(if row.by_slot { row.at.into() } else { row.scheduled_at.into() });
            let trigger =
                super::run::trigger(&row.trigger).map_err(|why| corrupt("runs", RunId::from_uuid(row.id), why))?;
            walk.reached = trigger.upstream().first().map(RunId::as_uuid);
        }
        Ok(())
    }

    /// When the chain of this run began.
    pub(crate) fn origin_of(&self, run: Uuid) -> Option<Timestamp> {
        self.walks.get(&run)?.time
    }
}
