//! Due timers on their way to their plans: what both databases read about them, put together.

use std::collections::HashMap;
use std::sync::Arc;

use everbell_core::freeze::{Freeze, frozen_spans};
use everbell_core::org::OrgFacts;
use everbell_core::store::{Due, PlanFn};
use everbell_core::{ActiveRun, Definition, JobId, Timer};
use jiff::Timestamp;
use uuid::Uuid;

use super::{ActiveColumns, LoadedJobs, PlanBatch, TimerColumns, org_text};
use crate::micros::Micros;

/// A job and an org, or the empty text for none.
pub(crate) type Owner = (Uuid, String);

/// The context that plans need besides the timers and their jobs.
#[derive(Default)]
pub(crate) struct PlanContext {
    /// Pending and running runs, oldest first.
    pub(crate) active: HashMap<Owner, Vec<ActiveRun>>,
    pub(crate) orgs: HashMap<Owner, OrgFacts>,
    /// When the jobs that others depend on last succeeded, by key.
    pub(crate) upstream: HashMap<String, Timestamp>,
    /// The freezes that may concern due slots.
    pub(crate) freezes: Vec<Freeze>,
}

/// Timers that can be planned, with their jobs.
pub(crate) struct DueTimers(Vec<(Arc<Definition>, Timer)>);

impl DueTimers {
    /// Groups the timers with their jobs. Adds those that cannot be read, or whose jobs cannot, to the batch as errors.
    pub(crate) fn new(timers: Vec<TimerColumns>, learned: &LoadedJobs, batch: &mut PlanBatch) -> DueTimers {
        let mut readable = Vec::with_capacity(timers.len());
        for row in timers {
            let id = JobId::from_uuid(row.job_id);
            match (learned.get(id), row.clone().read()) {
                (Some(job), Ok(timer)) => readable.push((job, timer)),
                (Some(job), Err(error)) => batch.add_unreadable(job, row, error.to_string()),
                (None, _) => batch.add_without_job(row, learned.why_not(id)),
            }
        }
        DueTimers(readable)
    }

    /// The keys of the jobs that these depend on.
    pub(crate) fn upstream_keys(&self) -> Vec<String> {
        let on = self.0.iter().filter_map(|(job, _)| job.policies.depends_on.as_ref());
        on.map(|on| on.job_key.to_string()).collect()
    }

    /// Asks for a plan for each, and adds it to the batch.
    pub(crate) fn plan(self, mut context: PlanContext, now: Timestamp, plan: &PlanFn<'_>, batch: &mut PlanBatch) {
        for (job, timer) in self.0 {
            let owner = (timer.job_id.as_uuid(), org_text(timer.org.as_ref()).to_owned());
            let on = job.policies.depends_on.as_ref();
            let due = Due {
                active: context.active.remove(&owner).unwrap_or_default(),
                upstream_succeeded_at: on.and_then(|on| context.upstream.get(on.job_key.as_str()).copied()),
                org: context.orgs.remove(&owner),
                frozen: frozen_spans(&context.freezes, &job),
                job,
                timer,
            };
            let decided = plan(&due, now);
            batch.add(&due.job, decided);
        }
    }
}

/// The jobs whose timers belong to no org, and the owners of the other timers.
pub(crate) fn owners_of(timers: &[TimerColumns]) -> (Vec<Uuid>, Vec<Owner>) {
    let (global, of_orgs): (Vec<_>, Vec<_>) = timers.iter().partition(|timer| timer.org_id.is_empty());
    let owner = |timer: &TimerColumns| (timer.job_id, timer.org_id.clone());
    (global.into_iter().map(|timer| timer.job_id).collect(), of_orgs.into_iter().map(owner).collect())
}

/// Active runs, oldest first, by job and org.
pub(crate) fn active_by_owner(mut rows: Vec<ActiveColumns>) -> HashMap<Owner, Vec<ActiveRun>> {
    rows.sort_unstable_by_key(|row| row.run_id);
    let mut active: HashMap<Owner, Vec<ActiveRun>> = HashMap::new();
    for row in rows {
        let run = row.read();
        active.entry((row.job_id, row.org_id)).or_default().push(run);
    }
    active
}

/// Returns when jobs last succeeded, by key; leaves out those that never did.
pub(crate) fn successes_by_key(rows: Vec<(String, Option<Micros>)>) -> HashMap<String, Timestamp> {
    rows.into_iter().filter_map(|(key, at)| Some((key, at?.into()))).collect()
}
