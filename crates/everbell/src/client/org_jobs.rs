//! A job and an org together: how they stand, and what the org wants of the job.

use everbell_core::change::JobView;
use everbell_core::org::{self, Org, OrgFacts, Override, OverrideWrite};
use everbell_core::store::{JobOrg, JobOrgFilter, JobRef, JobRow, OrgJob, Page, PageRequest, StoreError, StoreResult};
use everbell_core::{Invalid, JobKey, JobStatus, OrgId, Scope, Spec, Timer};
use serde_json::{Value, json};

use super::names::IntoJobRef;
use super::orgs::{Orgs, object};
use super::{Context, Facts};

impl Orgs {
    /// Writes an org's override of a job, which need not exist yet: off, or at another local time.
    pub async fn set_override(&self, org: &OrgId, write: &OverrideWrite) -> StoreResult<Override> {
        let now = self.context.now();
        let wanted = org::override_of(write, &self.context.actor, now)?;
        let there = self.find_override(org, &write.job_key).await?;
        if let Some(same) = there.as_ref().filter(|own| same_wish(own, &wanted)) {
            return Ok(same.clone());
        }
        let (before, after) = (there.as_ref().map(override_facts), override_facts(&wanted));
        let audit = self.context.entry("org.override", object(org), now, before.as_ref(), Some(&after));
        let written = self.context.parts.store.write_override(org, write, &audit).await?;
        self.context.parts.follow().await;
        Ok(written)
    }

    /// Removes an org's override of a job.
    pub async fn clear_override(&self, org: &OrgId, job: &JobKey) -> StoreResult<()> {
        let there = self.find_override(org, job).await?.ok_or_else(|| StoreError::not_found("override", job))?;
        let (now, before) = (self.context.now(), override_facts(&there));
        let audit = self.context.entry("org.override_clear", object(org), now, Some(&before), None);
        self.context.parts.store.delete_override(org, job, &audit).await?;
        self.context.parts.follow().await;
        Ok(())
    }

    /// Lists the overrides of an org, by job key.
    pub async fn overrides(&self, org: &OrgId) -> StoreResult<Vec<Override>> {
        self.context.parts.store.list_overrides(org).await
    }

    async fn find_override(&self, org: &OrgId, job: &JobKey) -> StoreResult<Option<Override>> {
        Ok(self.overrides(org).await?.into_iter().find(|override_| override_.job_key == *job))
    }

    /// Lists the current per-org jobs, as this org sees them, by key; at most 1,000.
    pub async fn jobs_of(&self, org: &OrgId) -> StoreResult<Vec<OrgJob>> {
        self.context.parts.store.org_jobs(org).await
    }

    /// Lists the orgs of a per-org job, a page at a time, by id.
    pub async fn of_job(
        &self,
        job: impl IntoJobRef,
        filter: &JobOrgFilter,
        page: &PageRequest,
    ) -> StoreResult<Page<JobOrg>> {
        let store = &self.context.parts.store;
        let row = store.get_job(&job.into_job_ref()?).await?;
        expect_per_org(&row)?;
        store.job_orgs(row.job.definition.id, filter, page).await
    }
}

fn same_wish(is: &Override, wanted: &Override) -> bool {
    is.enabled == wanted.enabled && is.expression == wanted.expression
}

/// One fact for each job, so that the entry names the job.
fn override_facts(override_: &Override) -> Facts {
    let value = json!({ "enabled": override_.enabled, "cronExpression": override_.expression });
    Facts::from_iter([(format!("override:{}", override_.job_key), value)])
}

/// Refuses a job that does not fire for each org.
pub(super) fn expect_per_org(row: &JobRow) -> Result<(), Invalid> {
    if row.job.definition.scope == Scope::PerOrg {
        return Ok(());
    }
    let reason = format!("job `{}` does not fire for orgs: its scope is `global`", row.job.definition.key);
    Err(Invalid::new("orgId", reason))
}

/// A job and an org, as they were read.
#[derive(Clone, Debug)]
pub(super) struct JobOfOrg {
    pub(super) row: JobRow,
    pub(super) org: Org,
    pub(super) override_: Option<Override>,
    /// The timer of the job for the org.
    pub(super) timer: Option<Timer>,
}

impl JobOfOrg {
    pub(super) async fn read(context: &Context, job: &JobRef, org: &OrgId) -> StoreResult<JobOfOrg> {
        let store = &context.parts.store;
        let row = store.get_job(job).await?;
        expect_per_org(&row)?;
        let place = store.get_org(org).await?;
        if row.job.state.status != JobStatus::Retired
            && let Some(found) =
                store.org_jobs(org).await?.into_iter().find(|own| own.job.definition.id == row.job.definition.id)
        {
            return Ok(JobOfOrg { row, org: place, override_: found.override_, timer: found.timer });
        }
        let all = store.list_overrides(org).await?;
        let override_ = all.into_iter().find(|override_| override_.job_key == row.job.definition.key);
        Ok(JobOfOrg { row, org: place, override_, timer: None })
    }

    pub(super) fn facts(&self) -> OrgFacts {
        OrgFacts {
            lifecycle: (&self.row.job.state).into(),
            place: self.org.place.clone(),
            override_: self.override_.clone(),
        }
    }

    /// Returns the schedule of the job in the org's zone, with its override.
    pub(super) fn spec(&self) -> Result<Spec, Invalid> {
        let spec = org::spec_for(&self.row.job.definition, &self.facts());
        spec.map_err(|reason| Invalid::new("timezone", reason))
    }

    /// The job without its active runs: they affect runs, never the timer.
    pub(super) fn view(&self) -> JobView {
        let definition = &self.row.job.definition;
        let timer = self.timer.clone().unwrap_or_else(|| {
            everbell_core::with!(Timer {
                org: Some(self.org.id.clone()),
                ..Timer::new(definition.id, definition.created_at)
            })
        });
        JobView {
            job: self.row.job.clone(),
            timer,
            org: Some(self.facts()),
            active: Vec::new(),
            upstream_succeeded_at: None,
        }
    }

    /// The facts about its timer in the audit trail.
    pub(super) fn timer_facts(timer: &Timer) -> Facts {
        let next = timer.next_run_at.map_or(Value::Null, |at| json!(at.to_string()));
        Facts::from_iter([("nextRunAt".to_owned(), next)])
    }
}
