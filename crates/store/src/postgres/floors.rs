//! Floors: the times at which a look for pending runs or due timers starts.
//!
//! An open transaction elsewhere keeps dead entries in an index, and each look from the beginning walks through all of
//! them: looks get slower without bound, although they find nothing there. So a look starts at a floor, the oldest
//! entry that was alive a few seconds ago, and once in [`FULL_LOOK_INTERVAL`] it starts at the very beginning. Rows
//! inserted below the floor wait until then at the longest; this store's own inserts lower the floor at once, and so
//! does a notification of another instance about a change by a person. While there are few dead rows there is no floor,
//! because then a full look costs nothing.
//!
//! Due timers of targets that this instance does not serve are in the same index, and stay there if no live instance serves
//! them. So a look for timers has a floor as well while many of the oldest due timers are of other targets.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use everbell_core::store::{StartRuns, StoreError};
use tokio::time::Instant;

use super::PostgresStore;
use super::statement::Statement;
use super::timers::column;
use crate::micros::Micros;

/// A look begins at the very beginning when the last that did is older than this.
const FULL_LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// The floor is at least this far below the time of the full look, for what is inserted a moment late.
const FLOOR_MARGIN: Duration = Duration::from_secs(5);
/// With fewer dead rows there is no floor.
pub(super) const MIN_DEAD_ROWS: i64 = 5_000;
/// With fewer due timers of other targets before those of this instance there is no floor.
pub(super) const MIN_FOREIGN_TIMERS: i64 = 1_000;
/// Year 1: before every time that is stored.
pub(super) const EARLIEST_TIME: Micros = Micros(-62_135_596_800_000_000);

/// The floors of several looks, by name.
#[derive(Debug, Default)]
pub(super) struct Floors(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    floors: HashMap<String, Floor>,
    /// Counts how often everything was forgotten.
    forgotten: u64,
    /// The oldest that was inserted since the last full look began.
    inserted: Option<Micros>,
}

#[derive(Clone, Copy, Debug)]
struct Floor {
    at: Micros,
    looked: Instant,
}

/// The start of a look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) since: Micros,
    /// It begins at the very beginning, and a new floor shall be found after it.
    pub(super) is_full: bool,
    forgotten: u64,
}

impl Floors {
    /// The look of this name that is made now.
    pub(super) fn look(&self, name: &str, now: Instant) -> Look {
        let mut state = self.state();
        let forgotten = state.forgotten;
        match state.floors.get(name) {
            Some(floor) if now.duration_since(floor.looked) < FULL_LOOK_INTERVAL => {
                Look { since: floor.at, is_full: false, forgotten }
            }
            Some(_) => {
                state.inserted = None;
                Look { since: EARLIEST_TIME, is_full: true, forgotten }
            }
            // The first one has nothing to learn from.
            None => {
                state.floors.insert(name.to_owned(), Floor { at: EARLIEST_TIME, looked: now });
                Look { since: EARLIEST_TIME, is_full: false, forgotten }
            }
        }
    }

    /// Sets the floor after a full look that was made at `now`. `oldest` is the oldest entry that is alive; without `many`
    /// dead rows there is no floor. Nothing is set if everything was forgotten since the look began.
    pub(super) fn found(&self, name: &str, look: Look, oldest: Option<Micros>, now: Micros, many: bool) {
        let mut state = self.state();
        if state.forgotten != look.forgotten {
            return;
        }
        let margin = Micros(now.0.saturating_sub(i64::try_from(FLOOR_MARGIN.as_micros()).unwrap_or(i64::MAX)));
        let alive = oldest.into_iter().chain(state.inserted);
        let at = if many { alive.fold(margin, Micros::min) } else { EARLIEST_TIME };
        state.floors.insert(name.to_owned(), Floor { at, looked: Instant::now() });
    }

    /// Something was inserted here.
    pub(super) fn lower(&self, at: Micros) {
        let mut state = self.state();
        state.inserted = Some(state.inserted.map_or(at, |known| known.min(at)));
        for floor in state.floors.values_mut() {
            floor.at = floor.at.min(at);
        }
    }

    /// Something may have been inserted anywhere: the next looks begin at the beginning.
    pub(super) fn forget(&self) {
        let mut state = self.state();
        state.forgotten += 1;
        for floor in state.floors.values_mut() {
            floor.at = EARLIEST_TIME;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PostgresStore {
    /// Finds where the next looks for pending runs begin. The runs are claimed by now, so a failure only means that the next
    /// looks are full ones.
    pub(super) async fn find_run_floors(&self, request: &StartRuns<'_>, looks: &[Look]) {
        let full = request.targets.iter().zip(looks).filter(|(_, look)| look.is_full);
        let full: Vec<(&str, Look)> = full.map(|(wanted, look)| (wanted.target.as_str(), *look)).collect();
        if full.is_empty() {
            return;
        }
        let oldest = async {
            let (dead, _) = self.count_dead_rows().await?;
            if dead < MIN_DEAD_ROWS {
                return Ok(None);
            }
            let query = sqlx::query_as(include_str!("sql/oldest_pending.sql"));
            let query = query.bind(column(&full, |(target, _)| (*target).to_owned()));
            let rows: Vec<(String, Micros)> =
                self.within("looking for pending runs", query.fetch_all_on(&self.loops)).await?;
            Ok::<_, StoreError>(Some(rows.into_iter().collect::<HashMap<_, _>>()))
        };
        let Ok(oldest) = oldest.await else { return };
        for (target, look) in full {
            let at = oldest.as_ref().and_then(|oldest| oldest.get(target).copied());
            self.run_floors.found(target, look, at, Micros::from(request.now), oldest.is_some());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Micros = Micros(1_000_000_000);
    const OLD: Micros = Micros(900_000_000);

    fn engaged(oldest: Option<Micros>) -> Floors {
        let floors = Floors::default();
        let look = full_look(&floors);
        assert!(look.since == EARLIEST_TIME);
        floors.found("a", look, oldest, NOW, true);
        floors
    }

    fn full_look(floors: &Floors) -> Look {
        assert!(!floors.look("a", Instant::now()).is_full, "only now and then");
        let look = floors.look("a", Instant::now() + FULL_LOOK_INTERVAL);
        assert!(look.is_full);
        look
    }

    fn since(floors: &Floors) -> Micros {
        floors.look("a", Instant::now()).since
    }

    #[test]
    fn a_floor_is_the_oldest_entry_or_a_little_before_now() {
        assert_eq!(since(&engaged(Some(OLD))), OLD);
        assert_eq!(since(&engaged(None)), Micros(995_000_000));
        assert_eq!(since(&engaged(Some(Micros(999_000_000)))), Micros(995_000_000));
    }

    #[test]
    fn without_many_dead_rows_there_is_no_floor() {
        let floors = Floors::default();
        floors.found("a", full_look(&floors), None, NOW, false);
        let look = floors.look("a", Instant::now());
        assert!(look.since == EARLIEST_TIME && !look.is_full);
    }

    #[test]
    fn now_and_then_a_look_is_a_full_one() {
        let floors = engaged(None);
        full_look(&floors);
        assert_eq!(floors.look("b", Instant::now()).since, EARLIEST_TIME, "each name has its own");
    }

    #[test]
    fn what_is_inserted_below_lowers_it() {
        let floors = engaged(None);
        floors.lower(Micros(998_000_000));
        assert_eq!(since(&floors), Micros(995_000_000));
        floors.lower(OLD);
        assert_eq!(since(&floors), OLD);
        floors.forget();
        assert_eq!(since(&floors), EARLIEST_TIME);
    }

    #[test]
    fn what_is_inserted_during_a_full_look_is_not_missed() {
        let floors = Floors::default();
        let look = full_look(&floors);
        floors.lower(OLD);
        floors.found("a", look, None, NOW, true);
        assert_eq!(since(&floors), OLD);
        let look = full_look(&floors);
        floors.forget();
        floors.found("a", look, None, NOW, true);
        assert_eq!(since(&floors), EARLIEST_TIME);
    }
}
