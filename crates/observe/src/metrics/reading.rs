//! [`Reading`]: what the database holds, as of a moment ago.

use std::time::Duration;

use everbell::{Everbell, StoreResult, Timestamp};
use everbell_core::store::{Counts, Instance, OrgCounts};
use tracing::warn;

use super::catalog as c;
use super::per_job::{self, JobGauges, Successes};
use super::text::Text;

/// How long a reading is good for.
const MAX_AGE: Duration = Duration::from_secs(1);
/// How long the database may take, well below the timeout of a scrape.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(5);

/// A reading of the database, and when it was taken, by the monotonic clock.
#[derive(Debug)]
pub(super) struct Reading {
    read: Duration,
    /// `None`: the database did not answer.
    found: Option<StoreFigures>,
}

#[derive(Debug)]
struct StoreFigures {
    counts: Counts,
    oldest_transaction_at: Option<Timestamp>,
    orgs: OrgCounts,
    instances: Vec<Instance>,
    jobs: Vec<JobGauges>,
}

impl Reading {
    /// The one that is there if it is good, or a new one.
    pub(super) async fn fresh<'a>(
        known: &'a mut Option<Reading>,
        bell: &Everbell,
        successes: Option<&Successes>,
    ) -> &'a Reading {
        let now = bell.clock().monotonic();
        let good = known.take().filter(|reading| now.saturating_sub(reading.read) < MAX_AGE);
        let reading = match good {
            Some(reading) => reading,
            None => Reading::take(bell, successes).await,
        };
        known.insert(reading)
    }

    async fn take(bell: &Everbell, successes: Option<&Successes>) -> Reading {
        let found = match tokio::time::timeout(DATABASE_TIMEOUT, read(bell, successes)).await {
            Ok(Ok(found)) => Some(found),
            Ok(Err(error)) => {
                warn!(%error, "metrics: could not read the database; its gauges are left out");
                None
            }
            Err(_) => {
                warn!("metrics: the database does not answer; its gauges are left out");
                None
            }
        };
        // The time at which it was complete: a slow reading is as fresh as a fast one.
        Reading { read: bell.clock().monotonic(), found }
    }

    pub(super) fn render(&self, text: &mut Text, now: Timestamp) {
        text.gauge(&c::DATABASE_UP, if self.found.is_some() { 1.0 } else { 0.0 });
        let Some(StoreFigures { counts, oldest_transaction_at, orgs, instances, jobs }) = &self.found else { return };
        render_counts(counts, text, now);
        text.gauge(&c::OLDEST_TRANSACTION_AGE, oldest_transaction_at.map_or(0.0, |at| age(at, now)));
        render_orgs(orgs, text);
        let named = |instance: &Instance, value| ([instance.id.to_string(), instance.host.clone()], value);
        #[allow(clippy::cast_precision_loss, reason = "milliseconds of many thousand years are exact")]
        let skew = |instance: &Instance| instance.clock_skew_ms as f64 / 1e3;
        text.gauges(&c::CLOCK_SKEW, instances.iter().map(|instance| named(instance, skew(instance))));
        let age = |instance: &Instance| age(instance.heartbeat_at, now);
        text.gauges(&c::HEARTBEAT_AGE, instances.iter().map(|instance| named(instance, age(instance))));
        per_job::render(jobs, text);
    }
}

async fn read(bell: &Everbell, successes: Option<&Successes>) -> StoreResult<StoreFigures> {
    let store = &**bell.store();
    let counts = store.counts(bell.now()).await?;
    let oldest_transaction_at = store.status().await?.oldest_transaction_at;
    let orgs = store.count_orgs().await?;
    let instances = store.list_instances().await?;
    let jobs = match successes {
        Some(successes) => successes.read(store).await?,
        None => Vec::new(),
    };
    Ok(StoreFigures { counts, oldest_transaction_at, orgs, instances, jobs })
}

#[allow(clippy::cast_precision_loss, reason = "exact up to 2^53")]
fn render_counts(counts: &Counts, text: &mut Text, now: Timestamp) {
    let kind = |one_time| if one_time { "one_time" } else { "recurring" };
    let jobs = counts.jobs.iter();
    let jobs = jobs.map(|group| ([group.status.to_string(), kind(group.one_time).to_owned()], group.jobs as f64));
    text.gauges(&c::JOBS, jobs);
    text.gauge(&c::JOBS_ERRORED, counts.errored_jobs as f64);
    let runs = counts.active_runs.iter();
    text.gauges(
        &c::RUNS_ACTIVE,
        runs.map(|group| ([group.target.to_string(), group.status.to_string()], group.runs as f64)),
    );
    text.gauge(&c::DUE_BACKLOG, counts.due_timers as f64);
    text.gauge(&c::OLDEST_DUE_AGE, counts.oldest_due_at.map_or(0.0, |at| age(at, now)));
}

fn render_orgs(orgs: &OrgCounts, text: &mut Text) {
    text.gauge(&c::ORGS, f64::from(orgs.orgs));
    text.gauge(&c::ORG_TIMERS_ERRORED, f64::from(orgs.errored));
    text.gauge(&c::ORGS_WAITING, f64::from(orgs.waiting));
    text.gauge(&c::ORG_UPDATES, f64::from(orgs.org_updates));
}

/// How long ago; nothing if that is to come.
fn age(at: Timestamp, now: Timestamp) -> f64 {
    now.duration_since(at).as_secs_f64().max(0.0)
}
