//! Counters of runs by hour, job and target.

use std::collections::BTreeMap;

use async_trait::async_trait;
use everbell_core::counting::{CountingProgress, HourToCount};
use everbell_core::store::{Bucket, CounterGroup, CounterKey, CounterStore, RunCounters, StoreResult};
use everbell_core::{JobKey, Run, RunStatus};
use jiff::Timestamp;

use super::MemoryStore;
use super::state::{State, micros};

/// The counters that are kept.
#[derive(Debug, Default)]
pub(super) struct StoredCounters {
    /// By the start of the hour.
    hours: BTreeMap<(Timestamp, CounterGroup), RunCounters>,
    /// When each hour was counted.
    counted: BTreeMap<Timestamp, Timestamp>,
}

impl StoredCounters {
    /// Deletes the counters of a job.
    pub(super) fn purge(&mut self, key: &JobKey) {
        self.hours.retain(|(_, of), _| !matches!(&of.key, CounterKey::Job(job) if job == key));
    }
}

#[async_trait]
impl CounterStore for MemoryStore {
    async fn counting_progress(&self) -> StoreResult<CountingProgress> {
        self.with(|state| {
            let oldest = state.ended.values().filter_map(ended_at).min();
            Ok(CountingProgress { counted: state.counters.counted.clone(), oldest })
        })
    }

    async fn count_hour(&self, hour: &HourToCount, now: Timestamp) -> StoreResult<bool> {
        self.with(|state| {
            if state.counters.counted.get(&hour.hour).copied() != hour.counted_at {
                return Ok(false);
            }
            let counted = state.count_ended_runs(hour.hour, hour.end(), None);
            state.counters.hours.retain(|(start, _), _| *start != hour.hour);
            state.counters.hours.extend(counted.into_iter().map(|(key, counters)| ((hour.hour, key), counters)));
            state.counters.counted.insert(hour.hour, micros(now));
            Ok(true)
        })
    }

    async fn count_ended_runs(
        &self,
        from: Timestamp,
        to: Timestamp,
        job: Option<&JobKey>,
    ) -> StoreResult<Vec<(CounterGroup, RunCounters)>> {
        self.with(|state| Ok(state.count_ended_runs(from, to, job).into_iter().collect()))
    }

    async fn read_counters(
        &self,
        from: Timestamp,
        to: Timestamp,
        job: Option<&JobKey>,
    ) -> StoreResult<Vec<(CounterGroup, RunCounters)>> {
        self.with(|state| {
            let mut sums: BTreeMap<CounterGroup, RunCounters> = BTreeMap::new();
            let is_wanted = |hour: &Timestamp, key: &CounterGroup| {
                (from..to).contains(hour) && job.is_none_or(|job| key.key == CounterKey::Job(job.clone()))
            };
            for ((_, key), counters) in state.counters.hours.iter().filter(|((hour, key), _)| is_wanted(hour, key)) {
                sums.entry(key.clone()).or_default().merge(counters);
            }
            Ok(sums.into_iter().collect())
        })
    }

    async fn read_hourly_counters(&self, from: Timestamp, to: Timestamp, job: &JobKey) -> StoreResult<Vec<Bucket>> {
        self.with(|state| {
            let mut buckets: BTreeMap<Timestamp, Bucket> = BTreeMap::new();
            let of = CounterKey::Job(job.clone());
            let hours = state.counters.hours.iter();
            for ((hour, _), counters) in hours.filter(|((hour, group), _)| (from..to).contains(hour) && group.key == of)
            {
                let bucket = buckets.entry(*hour).or_insert_with(|| Bucket::of_hour(*hour));
                for status in RunStatus::ALL {
                    bucket.add(*status, counters.count(*status));
                }
            }
            Ok(buckets.into_values().collect())
        })
    }

    async fn prune_counters(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.with(|state| {
            let StoredCounters { hours, counted } = &mut state.counters;
            let old = hours.keys().take_while(|(hour, _)| *hour < before).take(limit as usize);
            let old: Vec<_> = old.cloned().collect();
            for key in &old {
                hours.remove(key);
            }
            counted.retain(|hour, _| *hour >= before);
            Ok(old.len() as u64)
        })
    }
}

/// When a run ended; a skipped one at its slot.
fn ended_at(run: &Run) -> Option<Timestamp> {
    if run.status == RunStatus::Skipped { Some(run.id.time()) } else { run.finished_at }
}

impl State {
    fn count_ended_runs(
        &self,
        from: Timestamp,
        to: Timestamp,
        job: Option<&JobKey>,
    ) -> BTreeMap<CounterGroup, RunCounters> {
        let mut counted: BTreeMap<CounterGroup, RunCounters> = BTreeMap::new();
        let ended = self.ended.values().filter(|run| ended_at(run).is_some_and(|at| (from..to).contains(&at)));
        for run in ended {
            let Some(definition) = run.job_id.and_then(|id| self.jobs.get(&id)).map(|job| &job.definition) else {
                continue;
            };
            let key = if definition.is_one_time() {
                CounterKey::OneTime(run.target.clone())
            } else {
                CounterKey::Job(definition.key.clone())
            };
            if job.is_none_or(|job| key == CounterKey::Job(job.clone())) {
                let target = Some(run.target.clone());
                counted.entry(CounterGroup { key, target }).or_default().add_run(run);
            }
        }
        counted
    }
}
