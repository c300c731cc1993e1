//! Problems, and the outbox of messages about them.

use std::collections::BTreeMap;

use async_trait::async_trait;
use everbell_core::alert::{
    AlertWrite, Alerts, Delivery, DeliveryEnd, DeliveryStatus, NewDelivery, Problem, ProblemChange,
};
use everbell_core::store::{
    AlertStore, AuditEntry, DeliveryFilter, Page, PageRequest, ProblemFilter, StoreError, StoreResult,
};
use everbell_core::{JobKey, RunId, RunStatus};
use jiff::Timestamp;
use uuid::Uuid;

use super::MemoryStore;
use super::pages::{self, Direction};
use super::state::{State, micros};
use crate::rows::alerts::{EndValues, ProblemColumns};
use crate::rows::check_limit;

/// Problems and the outbox.
#[derive(Debug, Default)]
pub(super) struct StoredAlerts {
    generation: u64,
    looked_at: Option<Timestamp>,
    problems: BTreeMap<Uuid, Problem>,
    deliveries: BTreeMap<Uuid, StoredDelivery>,
}

#[derive(Debug)]
struct StoredDelivery {
    delivery: Delivery,
    lease_until: Option<Timestamp>,
}

#[async_trait]
impl AlertStore for MemoryStore {
    async fn read_alerts(&self, closed_since: Timestamp) -> StoreResult<Alerts> {
        self.with(|state| {
            let is_wanted = |problem: &&Problem| problem.closed_at.is_none_or(|at| at >= micros(closed_since));
            let StoredAlerts { generation, looked_at, problems, .. } = &state.alerts;
            let problems = problems.values().filter(is_wanted).cloned().collect();
            Ok(Alerts { generation: *generation, looked_at: *looked_at, problems })
        })
    }

    async fn write_alerts(&self, generation: u64, write: &AlertWrite) -> StoreResult<bool> {
        self.with(|state| {
            let alerts = &mut state.alerts;
            if alerts.generation != generation {
                return Ok(false);
            }
            let mut problems = alerts.problems.clone();
            for problem in &write.problems {
                let problem = ProblemColumns::new(problem).read()?;
                let is_twin = |other: &Problem| {
                    let is_same = other.kind == problem.kind && other.subject == problem.subject;
                    is_same && other.is_open() && other.id != problem.id
                };
                if problem.is_open() && problems.values().any(is_twin) {
                    return Err(StoreError::Conflict { what: "such a problem is open already".to_owned() });
                }
                problems.insert(problem.id, problem);
            }
            alerts.problems = problems;
            alerts.generation += 1;
            alerts.looked_at = Some(micros(write.looked_at));
            write.deliveries.iter().for_each(|delivery| alerts.insert(delivery));
            Ok(true)
        })
    }

    async fn change_problem(&self, problem: Uuid, change: &ProblemChange, audit: &AuditEntry) -> StoreResult<Problem> {
        self.once_quietly(audit, |state| {
            let found = state.alerts.problems.get(&problem);
            let before = found.ok_or_else(|| StoreError::not_found("problem", problem))?;
            let after = ProblemColumns::new(&before.changed(change, audit.at)?).read()?;
            state.alerts.problems.insert(problem, after.clone());
            state.alerts.generation += 1;
            state.write_audit(audit);
            Ok(after)
        })
    }

    async fn list_problems(&self, filter: &ProblemFilter, page: &PageRequest) -> StoreResult<Page<Problem>> {
        check_limit(page.limit)?;
        self.with(|state| {
            let is_wanted = |problem: &&Problem| {
                filter.open.is_none_or(|open| open == problem.is_open())
                    && filter.kind.is_none_or(|kind| kind == problem.kind)
                    && filter.job.as_ref().is_none_or(|job| problem.job() == Some(job))
                    && filter.org.as_ref().is_none_or(|org| problem.subject.org() == Some(org))
            };
            let rows = state.alerts.problems.values().filter(is_wanted).cloned().collect();
            Ok(pages::by_text(rows, page, Direction::Down, |problem| (String::new(), problem.id)))
        })
    }

    async fn insert_delivery(&self, delivery: &NewDelivery, audit: &AuditEntry) -> StoreResult<()> {
        self.once_quietly(audit, |state| {
            state.alerts.insert(delivery);
            state.write_audit(audit);
            Ok(())
        })
    }

    async fn claim_deliveries(
        &self,
        channels: &[String],
        now: Timestamp,
        lease_until: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<Delivery>> {
        self.with(|state| {
            let now = micros(now);
            let alerts = &mut state.alerts;
            let is_due = |stored: &StoredDelivery| {
                let Delivery { new, status, next_attempt_at, .. } = &stored.delivery;
                *status == DeliveryStatus::Pending
                    && *next_attempt_at <= now
                    && stored.lease_until.is_none_or(|until| until <= now)
                    && channels.contains(&new.channel)
                    && !alerts.has_earlier(new)
            };
            let mut due: Vec<(Timestamp, Uuid)> = alerts
                .deliveries
                .values()
                .filter(|stored| is_due(stored))
                .map(|stored| (stored.delivery.next_attempt_at, stored.delivery.new.id))
                .collect();
            due.sort_unstable();
            due.truncate(limit as usize);
            let mut claimed = Vec::new();
            for (_, id) in due {
                if let Some(stored) = alerts.deliveries.get_mut(&id) {
                    stored.delivery.attempt += 1;
                    stored.lease_until = Some(micros(lease_until));
                    claimed.push(stored.delivery.clone());
                }
            }
            Ok(claimed)
        })
    }

    async fn end_delivery(&self, delivery: Uuid, attempt: u32, end: &DeliveryEnd, now: Timestamp) -> StoreResult<bool> {
        self.with(|state| {
            let held = |stored: &&mut StoredDelivery| {
                stored.delivery.attempt == attempt && stored.delivery.status == DeliveryStatus::Pending
            };
            let Some(stored) = state.alerts.deliveries.get_mut(&delivery).filter(held) else { return Ok(false) };
            let EndValues { status, next_attempt_at, error, ended_at } = EndValues::new(end, now);
            let delivery = &mut stored.delivery;
            (delivery.status, delivery.error) = (status, error);
            delivery.next_attempt_at = next_attempt_at.map_or(delivery.next_attempt_at, Into::into);
            delivery.ended_at = ended_at.map(Into::into);
            stored.lease_until = None;
            Ok(true)
        })
    }

    async fn abandon_deliveries(
        &self,
        channels: &[String],
        stale_since: Timestamp,
        error: &str,
        now: Timestamp,
    ) -> StoreResult<u64> {
        self.with(|state| {
            let (stale_since, now) = (micros(stale_since), micros(now));
            let pending = |stored: &StoredDelivery| stored.delivery.status == DeliveryStatus::Pending;
            let is_served = |stored: &StoredDelivery| {
                stored.delivery.next_attempt_at >= stale_since || stored.lease_until.is_some_and(|until| until > now)
            };
            let all = state.alerts.deliveries.values().filter(|stored| pending(stored));
            let served: Vec<String> =
                all.filter(|stored| is_served(stored)).map(|stored| stored.delivery.new.channel.clone()).collect();
            let has_nobody = |channel: &String| !channels.contains(channel) && !served.contains(channel);
            let mut given_up = 0;
            for stored in state.alerts.deliveries.values_mut().filter(|stored| pending(stored)) {
                if has_nobody(&stored.delivery.new.channel) {
                    stored.delivery.status = DeliveryStatus::Dead;
                    stored.delivery.error = Some(error.to_owned());
                    stored.delivery.ended_at = Some(now);
                    stored.lease_until = None;
                    given_up += 1;
                }
            }
            Ok(given_up)
        })
    }

    async fn last_successes(&self, jobs: &[JobKey]) -> StoreResult<Vec<(JobKey, Timestamp)>> {
        self.with(|state| {
            let mut newest: BTreeMap<JobKey, (RunId, Timestamp)> = BTreeMap::new();
            for run in state.runs().filter(|run| run.status == RunStatus::Succeeded) {
                let Some((key, at)) = run.job_key.as_ref().zip(run.finished_at) else { continue };
                let is_newer = newest.get(key).is_none_or(|(known, _)| *known < run.id);
                if jobs.contains(key) && is_newer {
                    newest.insert(key.clone(), (run.id, at));
                }
            }
            Ok(newest.into_iter().map(|(key, (_, at))| (key, at)).collect())
        })
    }

    async fn list_deliveries(&self, filter: &DeliveryFilter, page: &PageRequest) -> StoreResult<Page<Delivery>> {
        check_limit(page.limit)?;
        self.with(|state| {
            let is_wanted = |delivery: &&Delivery| {
                filter.id.is_none_or(|id| id == delivery.new.id)
                    && filter.channel.as_ref().is_none_or(|channel| *channel == delivery.new.channel)
                    && filter.problem.is_none_or(|problem| Some(problem) == delivery.new.problem)
                    && filter.status.is_none_or(|status| status == delivery.status)
            };
            let rows = state.alerts.deliveries.values().map(|stored| &stored.delivery);
            let rows = rows.filter(is_wanted).cloned().collect();
            Ok(pages::by_text(rows, page, Direction::Down, |delivery| (String::new(), delivery.new.id)))
        })
    }
}

impl StoredAlerts {
    fn insert(&mut self, new: &NewDelivery) {
        let available_at = micros(new.available_at);
        let new = NewDelivery { created_at: micros(new.created_at), available_at, ..new.clone() };
        let delivery = Delivery {
            status: DeliveryStatus::Pending,
            attempt: 0,
            next_attempt_at: available_at,
            error: None,
            ended_at: None,
            new,
        };
        self.deliveries.entry(delivery.new.id).or_insert(StoredDelivery { delivery, lease_until: None });
    }

    /// Whether an earlier message about the same problem waits for the same channel.
    fn has_earlier(&self, new: &NewDelivery) -> bool {
        let is_earlier = |other: &StoredDelivery| {
            let Delivery { new: other, status, .. } = &other.delivery;
            *status == DeliveryStatus::Pending && other.problem == new.problem && other.channel == new.channel
        };
        new.problem.is_some() && self.deliveries.range(..new.id).any(|(_, other)| is_earlier(other))
    }
}

impl State {
    /// Deletes messages and problems that ended before this time.
    pub(super) fn prune_alerts(&mut self, before: Timestamp, limit: usize) {
        let StoredAlerts { problems, deliveries, .. } = &mut self.alerts;
        let old = deliveries.iter().filter(|(_, stored)| stored.delivery.ended_at.is_some_and(|at| at < before));
        let old: Vec<Uuid> = old.map(|(id, _)| *id).take(limit).collect();
        deliveries.retain(|id, _| !old.contains(id));
        let is_named = |id: Uuid| deliveries.values().any(|stored| stored.delivery.new.problem == Some(id));
        let closed = problems.values().filter(|problem| problem.closed_at.is_some_and(|at| at < before));
        let closed: Vec<Uuid> = closed.map(|problem| problem.id).filter(|id| !is_named(*id)).take(limit).collect();
        problems.retain(|id, _| !closed.contains(id));
    }
}
