//! The evaluator: reads facts, asks [`decide`], and writes what it says.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use everbell::{Everbell, StoreError, Timestamp};
use everbell_core::RunId;
use everbell_core::alert::{AlertWrite, Alerts, Decision, NewDelivery, Notice, Rule, decide};
use everbell_core::store::{Instance, JobRef, StoreResult};
use jiff::SignedDuration;
use tokio::sync::Notify;
use tracing::{info, warn};
use uuid::Uuid;

use super::facts::{Facts, gather};
use super::message::{Links, compose};
use super::{NOTIFIER, evaluates};

/// How often the evaluator looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// How often it writes down how far it looked, if nothing else is written.
const NOTE_INTERVAL: Duration = Duration::from_mins(1);
/// How much of the time before the last look counts as new: outcomes may be committed late. What was told is not told
/// again.
const OVERLAP: Duration = Duration::from_mins(2);
/// How far back it looks after an outage.
const MAX_LOOK_BACK: Duration = Duration::from_hours(7 * 24);

/// The most problems that one transaction writes, so that it ends in time also when everything fails at once.
const MAX_PROBLEMS_AT_ONCE: usize = 500;

pub(super) struct Evaluator {
    bell: Everbell,
    rules: Vec<Rule>,
    links: Links,
    /// How far the last decision had looked when this instance last read it; only news from then on matter.
    looked_at: Option<Timestamp>,
}

/// The result of a look.
#[derive(Debug, PartialEq, Eq)]
enum Looked {
    /// Another instance evaluates.
    Passed,
    /// There was nothing to write.
    Unchanged,
    /// Problems or messages were written.
    Written,
    /// They were, and there are more.
    WrittenSome,
    /// Another decision was faster.
    Outrun,
}

impl Evaluator {
    pub(super) fn new(bell: Everbell, rules: Vec<Rule>, links: Links) -> Evaluator {
        Evaluator { bell, rules, links, looked_at: None }
    }

    /// Looks until it is dropped, and wakes the deliverer when there is something to send.
    pub(super) async fn run(mut self, woken: &Notify) -> Infallible {
        if !evaluates(&self.rules) {
            return std::future::pending().await;
        }
        loop {
            match self.look().await {
                Ok(Looked::Written) => woken.notify_one(),
                Ok(Looked::WrittenSome) => {
                    woken.notify_one();
                    continue;
                }
                Ok(Looked::Outrun) => info!("another instance evaluated the notification rules at the same time"),
                Ok(Looked::Passed | Looked::Unchanged) => {}
                Err(error) => warn!(%error, "could not evaluate the notification rules; retrying"),
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    async fn look(&mut self) -> StoreResult<Looked> {
        let bell = self.bell.clone();
        let store = bell.store();
        if !self.is_elected(&store.list_instances().await?) {
            return Ok(Looked::Passed);
        }
        let now = self.bell.now();
        // Problems that closed since any news could have begun.
        let closed_since = self.looked_at.unwrap_or_else(|| earlier(now, MAX_LOOK_BACK));
        let alerts = store.read_alerts(earlier(closed_since, OVERLAP)).await?;
        self.looked_at = alerts.looked_at;
        let since = news_since(&alerts, now);
        let Facts { jobs, rows, gone } = gather(&**store, &self.rules, &alerts.problems, since).await?;
        let Decision { mut problems, mut notices } = decide(&self.rules, &jobs, &gone, &alerts.problems, now);
        let is_more = problems.len() > MAX_PROBLEMS_AT_ONCE;
        if is_more {
            // The next look finds the others, and the news of this one.
            problems.truncate(MAX_PROBLEMS_AT_ONCE);
            let written: BTreeSet<Uuid> = problems.iter().map(|problem| problem.id).collect();
            notices.retain(|notice| written.contains(&notice.problem.id));
        }
        let is_noted = alerts.looked_at.is_some_and(|at| earlier(now, NOTE_INTERVAL) < at);
        if problems.is_empty() && notices.is_empty() && is_noted {
            return Ok(Looked::Unchanged);
        }
        let mut deliveries = Vec::with_capacity(notices.len());
        for notice in &notices {
            let run = self.run_of(notice.problem.run).await?;
            let message = compose(notice, rows.get(&notice.problem.job), run.as_ref(), &self.links);
            deliveries.push(new_delivery(notice, message, now));
        }
        let changed = !problems.is_empty() || !deliveries.is_empty();
        let looked_at = if is_more { alerts.looked_at.unwrap_or(since) } else { now };
        let write = AlertWrite { looked_at, problems, deliveries };
        if !store.write_alerts(alerts.generation, &write).await? {
            return Ok(Looked::Outrun);
        }
        for problem in &write.problems {
            let (kind, job) = (problem.kind.as_str(), problem.job.as_str());
            match &problem.closed_because {
                Some(because) => info!(kind, job, "problem closed: {because}"),
                None if problem.opened_at == now => info!(kind, job, "problem opened: {}", problem.reason),
                None => {}
            }
        }
        Ok(match (changed, is_more) {
            (_, true) => Looked::WrittenSome,
            (true, false) => Looked::Written,
            (false, false) => Looked::Unchanged,
        })
    }

    /// Whether this instance evaluates: of all that could, the one that started last, which has the newest rules.
    fn is_elected(&self, instances: &[Instance]) -> bool {
        let since = self.bell.alive_since();
        let is_candidate =
            |instance: &&Instance| instance.heartbeat_at >= since && instance.roles.iter().any(|role| role == NOTIFIER);
        let newest = instances.iter().filter(is_candidate).max_by_key(|instance| (instance.started_at, instance.id));
        let host = &self.bell.options().host;
        newest.is_some_and(|newest| newest.pid == std::process::id() && newest.host == *host)
    }

    async fn run_of(&self, run: Option<RunId>) -> StoreResult<Option<everbell_core::Run>> {
        let Some(run) = run else { return Ok(None) };
        match self.bell.store().get_run(run).await {
            Ok(run) => Ok(Some(run)),
            Err(StoreError::NotFound { .. } | StoreError::Corrupt { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// From when on failures and gaps are news. Before the first look there is none: what happened then nobody asked about.
fn news_since(alerts: &Alerts, now: Timestamp) -> Timestamp {
    match alerts.looked_at {
        Some(at) => earlier(at.min(now), OVERLAP).max(earlier(now, MAX_LOOK_BACK)),
        None => now,
    }
}

fn new_delivery(notice: &Notice, message: everbell_core::Json, now: Timestamp) -> NewDelivery {
    NewDelivery {
        id: notice.id,
        problem: Some(notice.problem.id),
        rule: Some(notice.rule.clone()),
        channel: notice.channel.clone(),
        change: notice.change,
        message,
        created_at: now,
        available_at: notice.available_at,
    }
}

/// So long before a time.
pub(super) fn earlier(at: Timestamp, by: Duration) -> Timestamp {
    at.checked_sub(SignedDuration::try_from(by).unwrap_or_default()).unwrap_or(Timestamp::MIN)
}

/// The job of a problem, or nothing if it was deleted.
pub(super) fn by_key(key: &everbell_core::JobKey) -> JobRef {
    JobRef::Key(key.clone())
}
