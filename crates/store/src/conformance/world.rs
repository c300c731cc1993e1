//! [`World`]: a store with the few steps that most cases begin with.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::change::{self, JobChange, JobView, NewJob};
use everbell_core::org::OrgWrite;
use everbell_core::plan::{Missed, RunNow};
use everbell_core::settle::{Outcome, Then, Transition, settle};
use everbell_core::store::{
    Changed, Claim, GapFilter, JobFilter, JobRef, JobRow, OrgWritten, PageRequest, PlanDue, Planned, Recorded,
    RunFilter, StartRuns, Store, StoreResult, TargetRoom,
};
use everbell_core::{Definition, Failure, FailureCode, Gap, Invalid, JobKey, OrgId, Pause, Run, RunId, Target};
use jiff::Timestamp;

use super::Fresh;
use super::given::{self, LOG, MAIL, audit, core_plan, settling};

/// How long leases last here.
pub(super) const LEASE: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) store: Arc<dyn Store>,
}

impl World {
    pub(super) fn new(fresh: &Fresh) -> World {
        World { store: fresh.store() }
    }

    pub(super) async fn create(&self, definition: Definition) -> JobRow {
        self.insert(&change::create(definition)).await
    }

    /// A job with a timer for each org, of which this is one, in the job's zone.
    pub(super) async fn create_for(&self, org: &str, definition: Definition) -> JobRow {
        let zone = definition.spec.as_ref().unwrap().zone().name();
        self.put(&[given::org(org, zone)], definition.created_at).await;
        let now = definition.created_at;
        let row = self.create(given::per_org(definition)).await;
        self.reconcile_orgs(now).await;
        row
    }

    /// Writes orgs. Their timers are not reconciled yet.
    pub(super) async fn put(&self, writes: &[OrgWrite], now: Timestamp) -> Vec<OrgWritten> {
        self.store.write_orgs(writes, &audit("org.write", "orgs", now)).await.unwrap()
    }

    /// Reconciles the timers of orgs until nothing is left to do.
    pub(super) async fn reconcile_orgs(&self, now: Timestamp) {
        while self.store.reconcile_orgs(now, 100).await.unwrap().more {}
    }

    pub(super) async fn insert(&self, new: &NewJob) -> JobRow {
        let definition = &new.definition;
        let entry = audit("job.create", &format!("job:{}", definition.key), definition.created_at);
        self.store.create_job(new, &entry).await.unwrap()
    }

    pub(super) async fn try_change(
        &self,
        key: &str,
        now: Timestamp,
        decide: impl Fn(&JobView) -> Result<JobChange, Invalid> + Send + Sync,
    ) -> StoreResult<Changed> {
        let entry = audit("job.change", &format!("job:{key}"), now);
        self.store.change_job(&by_key(key), None, &decide, &entry).await
    }

    pub(super) async fn pause(&self, key: &str, now: Timestamp) -> Changed {
        self.try_change(key, now, |view| change::pause(view, pause_of(now))).await.unwrap()
    }

    pub(super) async fn resume(&self, key: &str, missed: Missed, now: Timestamp) -> Changed {
        self.try_change(key, now, |view| change::resume(view, missed, "ana", now)).await.unwrap()
    }

    pub(super) async fn retire(&self, key: &str, now: Timestamp) -> Changed {
        self.try_change(key, now, |view| change::retire(view, "ana", now)).await.unwrap()
    }

    /// A run by hand. The name makes its id.
    pub(super) async fn run_now(&self, key: &str, name: &str, now: Timestamp) -> Changed {
        let request =
            RunNow { id: given::by_hand(now, name), actor: "ana", payload: None, overlap: None, trace_context: None };
        self.try_change(key, now, |view| change::run_now(view, &request, now)).await.unwrap()
    }

    pub(super) async fn get(&self, key: &str) -> JobRow {
        self.store.get_job(&by_key(key)).await.unwrap()
    }

    /// Plans everything that is due.
    pub(super) async fn plan(&self, now: Timestamp) -> Planned {
        self.store.plan_due(&PlanDue::new(now, 1_000, &targets()), &core_plan).await.unwrap()
    }

    /// Starts everything that may start, on the first instance.
    pub(super) async fn start(&self, now: Timestamp) -> Vec<Claim> {
        self.start_some(now, 1_000).await
    }

    pub(super) async fn start_some(&self, now: Timestamp, limit: u32) -> Vec<Claim> {
        self.start_on(1, now, limit).await
    }

    pub(super) async fn start_on(&self, instance: u8, now: Timestamp, limit: u32) -> Vec<Claim> {
        let targets = room(&[(LOG, 1_000), (MAIL, 1_000)]);
        let instance = given::instance_id(instance);
        let request = StartRuns { instance, targets: &targets, limit, now, lease_until: now + LEASE };
        self.store.start_runs(&request).await.unwrap()
    }

    /// Records the same outcome for each claim.
    pub(super) async fn finish(&self, claims: &[Claim], outcome: &Outcome, now: Timestamp) -> Vec<Recorded> {
        let transitions: Vec<Transition> = claims.iter().map(|claim| settled(claim, outcome, now)).collect();
        self.store.record(&transitions, now).await.unwrap()
    }

    /// Plans, starts and finishes what is due, all at the same time.
    pub(super) async fn run_due(&self, outcome: &Outcome, now: Timestamp) -> Vec<Claim> {
        self.plan(now).await;
        let claims = self.start(now).await;
        self.finish(&claims, outcome, now).await;
        claims
    }

    pub(super) async fn run(&self, id: RunId) -> Run {
        self.store.get_run(id).await.unwrap()
    }

    /// Every run, newest first.
    pub(super) async fn runs(&self) -> Vec<Run> {
        self.runs_like(&RunFilter::default()).await
    }

    pub(super) async fn runs_like(&self, filter: &RunFilter) -> Vec<Run> {
        self.runs_in_pages(filter, 1_000).await
    }

    pub(super) async fn runs_in_pages(&self, filter: &RunFilter, limit: u32) -> Vec<Run> {
        let (mut rows, mut after) = (Vec::new(), None);
        loop {
            let page = self.store.list_runs(filter, &PageRequest { limit, after }).await.unwrap();
            assert!(page.items.len() <= limit as usize, "a page of {} for a limit of {limit}", page.items.len());
            assert!(page.unreadable.is_empty(), "{:?}", page.unreadable);
            rows.extend(page.items);
            after = page.next;
            if after.is_none() {
                return rows;
            }
        }
    }

    pub(super) async fn jobs_in_pages(&self, filter: &JobFilter, limit: u32) -> Vec<JobRow> {
        let (mut rows, mut after) = (Vec::new(), None);
        loop {
            let page = self.store.list_jobs(filter, &PageRequest { limit, after }).await.unwrap();
            assert!(page.items.len() <= limit as usize, "a page of {} for a limit of {limit}", page.items.len());
            assert!(page.unreadable.is_empty(), "{:?}", page.unreadable);
            rows.extend(page.items);
            after = page.next;
            if after.is_none() {
                return rows;
            }
        }
    }

    /// The keys of the jobs that a filter lets through, in its order.
    pub(super) async fn keys(&self, filter: &JobFilter) -> Vec<String> {
        let rows = self.jobs_in_pages(filter, 1_000).await;
        rows.iter().map(|row| row.job.definition.key.to_string()).collect()
    }

    pub(super) async fn gaps(&self, filter: &GapFilter) -> Vec<Gap> {
        self.gaps_in_pages(filter, 1_000).await.into_iter().map(|(_, _, gap)| gap).collect()
    }

    pub(super) async fn gaps_in_pages(
        &self,
        filter: &GapFilter,
        limit: u32,
    ) -> Vec<(everbell_core::JobId, Option<OrgId>, Gap)> {
        let (mut rows, mut after) = (Vec::new(), None);
        loop {
            let page = self.store.list_gaps(filter, &PageRequest { limit, after }).await.unwrap();
            assert!(page.items.len() <= limit as usize, "a page of {} for a limit of {limit}", page.items.len());
            rows.extend(page.items);
            after = page.next;
            if after.is_none() {
                return rows;
            }
        }
    }

    /// The actions of the audit trail, newest first.
    pub(super) async fn actions(&self, object: Option<&str>) -> Vec<String> {
        let page = self.store.list_audit(object, &given::page(1_000)).await.unwrap();
        page.items.into_iter().map(|entry| entry.action).collect()
    }
}

pub(super) fn by_key(key: &str) -> JobRef {
    JobRef::Key(JobKey::new(key).unwrap())
}

pub(super) fn pause_of(now: Timestamp) -> Pause {
    Pause { reason: "maintenance".to_owned(), by: "ana".to_owned(), at: now, until: None }
}

pub(super) fn targets() -> Vec<Target> {
    vec![given::target(LOG), given::target(MAIL)]
}

pub(super) fn room(of: &[(&str, u32)]) -> Vec<TargetRoom> {
    of.iter().map(|(label, room)| TargetRoom { target: given::target(label), room: *room, backfills: true }).collect()
}

pub(super) fn settled(claim: &Claim, outcome: &Outcome, now: Timestamp) -> Transition {
    settle(&settling(claim), outcome.clone(), now).unwrap()
}

pub(super) fn success() -> Outcome {
    Outcome::Succeeded { result: None }
}

pub(super) fn failure() -> Outcome {
    Outcome::Failed { failure: Failure::new(FailureCode::HANDLER_ERROR, "no"), then: Then::RETRY }
}

pub(super) fn canceled() -> Outcome {
    Outcome::Canceled { by: "ana".to_owned() }
}
