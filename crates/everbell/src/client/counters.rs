//! Statistics of many runs, from the counters that instances keep by hour.

use std::collections::BTreeMap;
use std::time::Duration;

use everbell_core::counting::CountedWindow;
use everbell_core::store::{
    Bucket, CounterGroup, CounterKey, RunCounters, StoreResult, counters_by_owner, counters_by_target,
};
use everbell_core::{JobKey, Target};
use jiff::Timestamp;

use super::Runs;

/// Runs that finish while they are counted may be a little ahead of this clock.
const AHEAD: Duration = Duration::from_hours(1);

/// The runs of a window, by job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WindowCounters {
    /// The start of the window, a whole hour.
    pub from: Timestamp,
    /// Every run that ended since then is counted.
    pub counted_since: Timestamp,
    /// Whether every run of the window is counted. An upgraded database counts its past in the background.
    pub complete: bool,
    /// By job.
    pub counters: BTreeMap<CounterKey, RunCounters>,
    /// The same runs by target. Runs of hours that a release without this map has counted are left out.
    pub targets: BTreeMap<Target, RunCounters>,
}

impl WindowCounters {
    /// The counters of a job: empty if none of its runs ended.
    pub fn job(&self, key: &JobKey) -> RunCounters {
        self.counters.get(&CounterKey::Job(key.clone())).cloned().unwrap_or_default()
    }
}

impl Runs {
    /// Counts the runs that ended since the hour of this time, of one job or of all. Hours that instances have counted are
    /// read from their counters, the newest ones from the runs.
    pub async fn counters(&self, since: Timestamp, job: Option<&JobKey>) -> StoreResult<WindowCounters> {
        let (store, now) = (&self.context.parts.store, self.context.now());
        let CountedWindow { from, live_from, counted_since, complete } =
            store.counting_progress().await?.window(since, now);
        let until = now.checked_add(AHEAD).unwrap_or(Timestamp::MAX);
        let mut groups: BTreeMap<CounterGroup, RunCounters> =
            store.read_counters(from, live_from, job).await?.into_iter().collect();
        for (group, live) in store.count_ended_runs(live_from, until, job).await? {
            groups.entry(group).or_default().merge(&live);
        }
        let targets = counters_by_target(&groups);
        Ok(WindowCounters { from, counted_since, complete, counters: counters_by_owner(groups), targets })
    }

    /// How many runs of a job ended in each hour that begins in `[from, to)`, in order; hours without runs are left out. For
    /// up to 400 days, of hours that are counted already: the last few may be missing. Lags and durations are not filled in.
    pub async fn hourly_counters(&self, from: Timestamp, to: Timestamp, job: &JobKey) -> StoreResult<Vec<Bucket>> {
        self.context.parts.store.read_hourly_counters(from, to, job).await
    }
}
