//! The evaluator: reads facts, asks [`decide`], and writes what it says.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;

use everbell::{Everbell, StoreError, Timestamp};
use everbell_core::alert::{
    AlertWrite, Alerts, ClusterFacts, Decision, InstanceFact, Message, NewDelivery, Notice, Problem, Rule, decide,
    decide_instances, summarize,
};
use everbell_core::store::{Instance, JobRef, JobRow, StoreResult};
use everbell_core::{InstanceId, JobKey, RunId};
use jiff::SignedDuration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::{info, warn};
use uuid::Uuid;

use super::facts::{Facts, gather};
use super::message::{Links, compose};
use super::summary::compose_summary;
use super::timing::UsualTimes;
use super::{evaluates, is_elected};

/// How often the evaluator looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// How often it writes down how far it looked, if nothing else is written.
const NOTE_INTERVAL: Duration = Duration::from_mins(1);
/// How much of the time before the last look counts as new: outcomes may be committed late. What was reported is not reported
/// again.
const OVERLAP: Duration = Duration::from_mins(2);
/// How far back it looks after an outage.
const MAX_LOOK_BACK: Duration = Duration::from_hours(7 * 24);

/// The most problems that one transaction writes, so that it ends in time also when everything fails at once.
const MAX_PROBLEMS_AT_ONCE: usize = 500;

/// How long after it was written its last look may be for an evaluator that never stopped.
const AWAY_AFTER: Duration = Duration::from_mins(2);

pub(super) struct Evaluator {
    bell: Everbell,
    rules: Vec<Rule>,
    /// The channels that get a summary instead of more messages than this at once.
    limits: BTreeMap<String, usize>,
    links: Links,
    usual: UsualTimes,
    /// Since when every look succeeded. Before a lease is over, others may not have had the chance of a heartbeat.
    steady_since: Option<Instant>,
    /// Instances without a recent heartbeat, and since when: after a step of the clock that is true of all for a moment.
    silent: BTreeMap<InstanceId, Instant>,
    /// How far lost instances were looked for.
    instances_since: Option<Timestamp>,
    /// How far the last decision had looked when this instance last read it; only news from then on matter.
    looked_at: Option<Timestamp>,
}

/// The time of a look.
pub(super) struct Look {
    pub(super) now: Timestamp,
    /// The beginning of what is news.
    pub(super) since: Timestamp,
    /// Whether no instance evaluated for some time before.
    pub(super) was_away: bool,
}

/// The result of an evaluation.
#[derive(Debug, PartialEq, Eq)]
enum Evaluation {
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
    pub(super) fn new(bell: Everbell, rules: Vec<Rule>, limits: BTreeMap<String, usize>, links: Links) -> Evaluator {
        Evaluator {
            bell,
            rules,
            limits,
            links,
            usual: UsualTimes::default(),
            steady_since: None,
            silent: BTreeMap::new(),
            instances_since: None,
            looked_at: None,
        }
    }

    /// Looks until it is dropped, and wakes the deliverer when there is something to send.
    pub(super) async fn run(mut self, woken: &Notify) -> Infallible {
        if !evaluates(&self.rules) {
            return std::future::pending().await;
        }
        loop {
            let looked = self.look().await;
            if looked.is_err() {
                self.steady_since = None;
            }
            match looked {
                Ok(Evaluation::Written) => woken.notify_one(),
                Ok(Evaluation::WrittenSome) => {
                    woken.notify_one();
                    continue;
                }
                Ok(Evaluation::Outrun) => info!("another instance evaluated the notification rules at the same time"),
                Ok(Evaluation::Passed | Evaluation::Unchanged) => {}
                Err(error) => warn!(%error, "could not evaluate the notification rules; retrying"),
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    async fn look(&mut self) -> StoreResult<Evaluation> {
        let bell = self.bell.clone();
        let store = bell.store();
        let instances = store.list_instances().await?;
        if is_elected(&bell, &instances) != Some(true) {
            return Ok(Evaluation::Passed);
        }
        let now = self.bell.now();
        // Problems that closed since any news could have begun.
        let closed_since = self.looked_at.unwrap_or_else(|| earlier(now, MAX_LOOK_BACK));
        let alerts = store.read_alerts(earlier(closed_since, OVERLAP)).await?;
        self.looked_at = alerts.looked_at;
        let since = news_since(&alerts, now);
        let was_away = alerts.looked_at.is_some_and(|at| at < earlier(now, AWAY_AFTER));
        let look = Look { now, since, was_away };
        let Facts { jobs, rows, gone } =
            gather(&**store, &self.rules, &alerts.problems, &look, &mut self.usual).await?;
        let cluster = self.cluster_facts(instances, since, now);
        let about_instances = cluster
            .as_ref()
            .map(|facts| decide_instances(&self.rules, facts, &alerts.problems, now))
            .unwrap_or_default();
        let Decision { mut problems, mut notices } =
            decide(&self.rules, &jobs, &gone, &alerts.problems, now).and(about_instances);
        let is_more = problems.len() > MAX_PROBLEMS_AT_ONCE;
        if is_more {
            // The next look finds the others, and the news of this one.
            problems.truncate(MAX_PROBLEMS_AT_ONCE);
            let written: BTreeSet<Uuid> = problems.iter().map(|problem| problem.id).collect();
            notices.retain(|notice| written.contains(&notice.problem.id));
        }
        let is_noted = alerts.looked_at.is_some_and(|at| earlier(now, NOTE_INTERVAL) < at);
        if problems.is_empty() && notices.is_empty() && is_noted {
            return Ok(Evaluation::Unchanged);
        }
        let deliveries = self.deliveries(notices, &rows, now).await?;
        let changed = !problems.is_empty() || !deliveries.is_empty();
        let looked_at = if is_more { alerts.looked_at.unwrap_or(since) } else { now };
        let write = AlertWrite { looked_at, problems, deliveries };
        if !store.write_alerts(alerts.generation, &write).await? {
            return Ok(Evaluation::Outrun);
        }
        if cluster.is_some() && !is_more {
            self.instances_since = Some(earlier(now, OVERLAP));
        }
        log_changes(&write.problems, now);
        Ok(match (changed, is_more) {
            (_, true) => Evaluation::WrittenSome,
            (true, false) => Evaluation::Written,
            (false, false) => Evaluation::Unchanged,
        })
    }

    /// The messages that notices become.
    async fn deliveries(
        &self,
        notices: Vec<Notice>,
        rows: &BTreeMap<JobKey, JobRow>,
        now: Timestamp,
    ) -> StoreResult<Vec<NewDelivery>> {
        let mut deliveries = Vec::with_capacity(notices.len());
        for message in summarize(notices, &self.limits, now) {
            deliveries.push(match message {
                Message::One(notice) => {
                    let run = self.run_of(notice.problem.run).await?;
                    let row = notice.problem.job().and_then(|job| rows.get(job));
                    new_delivery(&notice, compose(&notice, row, run.as_ref(), &self.links), now)
                }
                Message::Many(summary) => {
                    let message = compose_summary(&summary, &self.links);
                    // It keeps its place among the messages about the first problem.
                    let first = new_delivery(&summary.notices[0], message, now);
                    NewDelivery { id: summary.id, ..first }
                }
            });
        }
        Ok(deliveries)
    }

    /// Facts about instances, if a rule asks about them and all that are alive had the time to send a heartbeat: after an
    /// outage of the database, or of this instance, none of them did for a while.
    fn cluster_facts(&mut self, instances: Vec<Instance>, since: Timestamp, now: Timestamp) -> Option<ClusterFacts> {
        if !self.rules.iter().any(Rule::asks_about_instances) {
            return None;
        }
        let alive_since = self.bell.alive_since().min(now);
        let is_silent = |instance: &&Instance| instance.heartbeat_at < alive_since;
        let silent = instances.iter().filter(is_silent).map(|instance| instance.id);
        let begun = Instant::now();
        self.silent = silent.map(|id| (id, self.silent.get(&id).copied().unwrap_or(begun))).collect();
        let news_since = *self.instances_since.get_or_insert(since);
        let steady_since = *self.steady_since.get_or_insert(begun);
        let lease = &self.bell.options().lease;
        if steady_since.elapsed() < lease.duration {
            return None;
        }
        let is_certain = |instance: &Instance| {
            self.silent.get(&instance.id).is_none_or(|since| since.elapsed() >= 2 * lease.heartbeat)
        };
        let fact = |instance: Instance| InstanceFact {
            id: instance.id,
            host: instance.host,
            roles: instance.roles,
            started_at: instance.started_at,
            heartbeat_at: instance.heartbeat_at,
        };
        let instances = instances.into_iter().filter(is_certain).map(fact).collect();
        Some(ClusterFacts { instances, alive_since, news_since })
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

fn log_changes(problems: &[Problem], now: Timestamp) {
    for problem in problems {
        let (kind, about) = (problem.kind.as_str(), problem.subject.to_string());
        match &problem.closed_because {
            Some(because) => info!(kind, about, "problem closed: {because}"),
            None if problem.opened_at == now => info!(kind, about, "problem opened: {}", problem.reason),
            None => {}
        }
    }
}

/// From when on failures and gaps are news. Before the first evaluation nothing is news.
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

/// Returns the time that lies this long before `at`.
pub(super) fn earlier(at: Timestamp, by: Duration) -> Timestamp {
    at.checked_sub(SignedDuration::try_from(by).unwrap_or_default()).unwrap_or(Timestamp::MIN)
}

/// The job of a problem, or nothing if it was deleted.
pub(super) fn by_key(key: &everbell_core::JobKey) -> JobRef {
    JobRef::Key(key.clone())
}
