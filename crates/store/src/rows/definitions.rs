//! Definitions that were read before, and those that one piece of work needs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use everbell_core::store::{StoreError, StoreResult};
use everbell_core::{Definition, JobId};
use uuid::Uuid;

use super::job::JobColumns;

/// Definitions that were read before. They never change, so a copy is as good as the row; only the version that one
/// supersedes may be deleted.
#[derive(Debug, Default)]
pub(crate) struct Definitions(Mutex<HashMap<JobId, Arc<Definition>>>);

/// The most cached definitions; above that all are forgotten: reading them again is cheap, and nothing grows without
/// bound.
const MAX_DEFINITIONS: usize = 50_000;

impl Definitions {
    fn known(&self) -> MutexGuard<'_, HashMap<JobId, Arc<Definition>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, id: JobId) -> Option<Arc<Definition>> {
        self.known().get(&id).cloned()
    }

    /// Remembers the definition. One whose schedule cannot be read is not kept: another release may read it.
    pub(crate) fn keep(&self, definition: Definition) -> Arc<Definition> {
        let definition = Arc::new(definition);
        let mut known = self.known();
        if known.len() >= MAX_DEFINITIONS {
            known.clear();
        }
        if definition.spec.is_ok() {
            known.insert(definition.id, Arc::clone(&definition));
        }
        definition
    }

    /// Forgets definitions that were deleted, or whose predecessor was.
    pub(crate) fn forget(&self, ids: impl IntoIterator<Item = JobId>) {
        let mut known = self.known();
        for id in ids {
            known.remove(&id);
        }
    }

    /// Returns the jobs that are cached, and the ids of the others, which have to be read.
    pub(crate) fn look_up(&self, ids: impl Iterator<Item = JobId>) -> LoadedJobs {
        let known = self.known();
        let mut learned = LoadedJobs { found: HashMap::with_capacity(ids.size_hint().0), ..LoadedJobs::default() };
        for id in ids {
            match known.get(&id) {
                Some(definition) => drop(learned.found.insert(id, Arc::clone(definition))),
                None => learned.missing.push(id.as_uuid()),
            }
        }
        learned.missing.sort_unstable();
        learned.missing.dedup();
        learned
    }
}

/// The definitions that one task needs. They stay here even if the cache forgets them.
#[derive(Debug, Default)]
pub(crate) struct LoadedJobs {
    found: HashMap<JobId, Arc<Definition>>,
    missing: Vec<Uuid>,
    unreadable: HashMap<JobId, String>,
}

impl LoadedJobs {
    /// The jobs that are still to be read.
    pub(crate) fn missing(&self) -> &[Uuid] {
        &self.missing
    }

    /// Takes in what was read. What makes no sense is noted, and hides none of the others.
    pub(crate) fn add(&mut self, rows: Vec<JobColumns>, known: &Definitions) -> StoreResult<()> {
        for row in rows {
            let id = JobId::from_uuid(row.id);
            match row.read(known) {
                Ok(job) => drop(self.found.insert(id, job.definition)),
                Err(StoreError::Corrupt { what }) => drop(self.unreadable.insert(id, what)),
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    pub(crate) fn get(&self, id: JobId) -> Option<Arc<Definition>> {
        self.found.get(&id).cloned()
    }

    /// Why there is no definition of this job.
    pub(crate) fn why_not(&self, id: JobId) -> String {
        self.unreadable.get(&id).cloned().unwrap_or_else(|| "its job is missing".to_owned())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use everbell_core::{JobKey, Spec, Target, Zone};
    use jiff::Timestamp;

    use super::*;

    /// A job of this number.
    pub(crate) fn definition(number: usize) -> Definition {
        let mut tail = [0; 10];
        tail[..8].copy_from_slice(&number.to_be_bytes());
        everbell_core::with!(Definition {
            created_by: "ana".to_owned(),
            ..Definition::new(
                JobId::new(Timestamp::UNIX_EPOCH, tail),
                JobKey::new("job").unwrap(),
                Target::new("log").unwrap(),
                Ok(Spec::recurring("0 * * * *".parse().unwrap(), Zone::utc(), Timestamp::UNIX_EPOCH)),
                Timestamp::UNIX_EPOCH
            )
        })
    }

    #[test]
    fn what_one_needs_stays_when_everything_else_is_forgotten() {
        let known = Definitions::default();
        let first = definition(0);
        known.keep(first.clone());
        let learned = known.look_up([first.id, definition(1).id, definition(1).id].into_iter());
        assert_eq!(learned.missing(), [definition(1).id.as_uuid()]);
        for number in 1..=MAX_DEFINITIONS {
            known.keep(everbell_core::with!(Definition { id: definition(number).id, ..first.clone() }));
        }
        assert_eq!(known.get(first.id), None, "forgotten");
        assert_eq!(learned.get(first.id).as_deref(), Some(&first));
        assert_eq!(learned.why_not(definition(1).id), "its job is missing");
    }
}
