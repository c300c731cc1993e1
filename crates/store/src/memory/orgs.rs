//! Orgs, what they override, and their timers.

use std::collections::BTreeMap;

use async_trait::async_trait;
use everbell_core::org::{self, Org, OrgUpdate, OrgWrite, Override, OverrideWrite};
use everbell_core::store::{
    AuditEntry, Changed, DecideFn, JobOrg, JobOrgFilter, JobRef, OrgCounts, OrgFilter, OrgJob, OrgStore,
    OrgUpdateProgress, OrgWritten, Page, PageRequest, StoreError, StoreResult,
};
use everbell_core::{Job, JobId, JobKey, JobStatus, OrgId, Scope};
use jiff::Timestamp;
use uuid::Uuid;

use super::MemoryStore;
use super::pages::{self, Direction};
use super::state::{State, StoredOrg, micros};
use crate::rows::orgs::{MAX_COUNTED_ORGS, MAX_LISTED, decide_writes};

#[async_trait]
impl OrgStore for MemoryStore {
    async fn write_orgs(&self, writes: &[OrgWrite], audit: &AuditEntry) -> StoreResult<Vec<OrgWritten>> {
        self.once(audit, |state| {
            let there = writes.iter().filter_map(|write| state.orgs.get(&write.id));
            let there = there.map(|stored| (stored.org.id.to_string(), stored.org.clone())).collect();
            let (answers, rows) = decide_writes(there, writes, audit)?;
            let care: BTreeMap<String, bool> = rows.into_iter().map(|(row, care)| (row.id, care)).collect();
            for OrgWritten { org, .. } in answers.iter().filter(|written| written.changed) {
                let waited = state.orgs.get(&org.id).is_some_and(|stored| stored.waiting);
                let waiting = waited || care.get(org.id.as_str()) == Some(&true);
                state.orgs.insert(org.id.clone(), StoredOrg { org: org.clone(), waiting });
            }
            state.write_audit(audit);
            Ok(answers)
        })
    }

    async fn delete_org(&self, id: &OrgId, revision: Option<u64>, audit: &AuditEntry) -> StoreResult<()> {
        self.once(audit, |state| {
            let org = state.get_org(id)?;
            StoreError::expect_revision("org", id, revision, Some(org.revision))?;
            let org = org::deleted(&org, &audit.actor, micros(audit.at));
            state.orgs.insert(id.clone(), StoredOrg { org, waiting: true });
            state.overrides.retain(|(org, _), _| org != id);
            state.write_audit(audit);
            Ok(())
        })
    }

    async fn get_org(&self, org: &OrgId) -> StoreResult<Org> {
        self.with(|state| state.get_org(org))
    }

    async fn list_orgs(&self, filter: &OrgFilter, page: &PageRequest) -> StoreResult<Page<Org>> {
        self.with(|state| {
            let errored = |org: &Org| state.timer_errors.keys().any(|(_, own)| own.as_ref() == Some(&org.id));
            let wanted = state.living_orgs().filter(|org| {
                matches_text(org, filter.text.as_deref())
                    && filter.timezone.as_ref().is_none_or(|zone| org.place.timezone == *zone)
                    && filter.enabled.is_none_or(|enabled| org.place.enabled == enabled)
                    && filter.errored.is_none_or(|wanted| errored(org) == wanted)
            });
            Ok(pages::by_text(wanted.cloned().collect(), page, Direction::Up, |org| (org.id.to_string(), Uuid::nil())))
        })
    }

    async fn count_orgs(&self) -> StoreResult<OrgCounts> {
        self.with(|state| {
            let counted = |count: usize| count.min(MAX_COUNTED_ORGS as usize) as u32;
            Ok(OrgCounts {
                orgs: counted(state.living_orgs().count()),
                errored: counted(state.timer_errors.len()),
                waiting: counted(state.orgs.values().filter(|stored| stored.waiting).count()),
                org_updates: counted(state.org_updates.len()),
            })
        })
    }

    async fn write_override(&self, org: &OrgId, write: &OverrideWrite, audit: &AuditEntry) -> StoreResult<Override> {
        self.once(audit, |state| {
            state.get_org(org)?;
            let override_ = org::override_of(write, &audit.actor, micros(audit.at))?;
            state.overrides.insert((org.clone(), write.job_key.clone()), override_.clone());
            state.touch_org(org, audit);
            Ok(override_)
        })
    }

    async fn delete_override(&self, org: &OrgId, key: &JobKey, audit: &AuditEntry) -> StoreResult<()> {
        self.once(audit, |state| {
            state.get_org(org)?;
            let gone = state.overrides.remove(&(org.clone(), key.clone()));
            gone.ok_or_else(|| StoreError::not_found("override", key))?;
            state.touch_org(org, audit);
            Ok(())
        })
    }

    async fn list_overrides(&self, org: &OrgId) -> StoreResult<Vec<Override>> {
        self.with(|state| {
            state.get_org(org)?;
            Ok(state
                .overrides
                .iter()
                .filter(|((own, _), _)| own == org)
                .map(|(_, override_)| override_.clone())
                .collect())
        })
    }

    async fn job_orgs(&self, job: JobId, filter: &JobOrgFilter, page: &PageRequest) -> StoreResult<Page<JobOrg>> {
        self.with(|state| {
            let key = &state.jobs.get(&job).ok_or_else(|| StoreError::not_found("job", job))?.definition.key;
            let rows = state.living_orgs().map(|org| {
                let owner = (job, Some(org.id.clone()));
                JobOrg {
                    org: org.clone(),
                    override_: state.overrides.get(&(org.id.clone(), key.clone())).cloned(),
                    timer: state.timers.get(&owner).cloned(),
                    error: state.timer_errors.get(&owner).cloned(),
                }
            });
            let wanted = rows.filter(|row| {
                let armed = row.timer.as_ref().is_some_and(|timer| timer.next_run_at.is_some());
                matches_text(&row.org, filter.text.as_deref())
                    && filter.errored.is_none_or(|errored| row.error.is_some() == errored)
                    && filter.armed.is_none_or(|wanted| armed == wanted)
            });
            Ok(pages::by_text(wanted.collect(), page, Direction::Up, |row| (row.org.id.to_string(), Uuid::nil())))
        })
    }

    async fn org_jobs(&self, org: &OrgId) -> StoreResult<Vec<OrgJob>> {
        self.with(|state| {
            state.get_org(org)?;
            let mut jobs: Vec<&Job> = state.org_wide_jobs().collect();
            jobs.sort_by(|a, b| a.definition.key.cmp(&b.definition.key));
            jobs.truncate(MAX_LISTED as usize);
            let row = |job: &Job| {
                let owner = (job.definition.id, Some(org.clone()));
                OrgJob {
                    job: job.clone(),
                    override_: state.overrides.get(&(org.clone(), job.definition.key.clone())).cloned(),
                    timer: state.timers.get(&owner).cloned(),
                    error: state.timer_errors.get(&owner).cloned(),
                }
            };
            Ok(jobs.into_iter().map(row).collect())
        })
    }

    async fn change_org_job(
        &self,
        job: &JobRef,
        org: &OrgId,
        expected_revision: Option<u64>,
        decide: &DecideFn<'_>,
        audit: &AuditEntry,
    ) -> StoreResult<Changed> {
        self.once(audit, |state| state.change_job(job, Some(org), expected_revision, decide, audit))
    }

    async fn reconcile_orgs(&self, now: Timestamp, limit: u32) -> StoreResult<OrgUpdateProgress> {
        let progress = self.with(|state| {
            let now = micros(now);
            let mut progress = OrgUpdateProgress::default();
            let waiting = state.look_at_waiting(now, limit, &mut progress);
            let stepped = !waiting && state.step(now, limit, &mut progress);
            let mut removed = false;
            if !waiting && !stepped && state.org_updates.is_empty() {
                let gone = |org: &&OrgId| state.orgs.get(*org).is_some_and(|stored| stored.org.place.deleted);
                let gone: Vec<OrgId> = state.orgs.keys().filter(gone).take(limit as usize).cloned().collect();
                removed = gone.len() == limit as usize;
                for org in gone {
                    state.orgs.remove(&org);
                }
            }
            state.write_org_errors(&progress.planned, now);
            progress.more = waiting || stepped || removed;
            Ok(progress)
        });
        if progress.as_ref().map_or(true, |progress| progress.planned.timers > 0) {
            self.notify.notify_waiters();
        }
        progress
    }

    async fn list_org_updates(&self) -> StoreResult<Vec<OrgUpdate>> {
        self.with(|state| {
            Ok(state.org_updates.values().take(MAX_LISTED as usize).map(|stored| stored.org_update.clone()).collect())
        })
    }

    async fn stop_org_update(&self, id: Uuid, audit: &AuditEntry) -> StoreResult<OrgUpdate> {
        self.once(audit, |state| {
            let stored = state.org_updates.get(&id).ok_or_else(|| StoreError::not_found("org update", id))?;
            stored.org_update.expect_stoppable()?;
            let org_update = stored.org_update.clone();
            state.org_updates.remove(&id);
            state.write_audit(audit);
            Ok(org_update)
        })
    }
}

impl State {
    pub(super) fn get_org(&self, id: &OrgId) -> StoreResult<Org> {
        let stored = self.orgs.get(id).filter(|stored| !stored.org.place.deleted);
        stored.map(|stored| stored.org.clone()).ok_or_else(|| StoreError::not_found("org", id))
    }

    pub(super) fn living_orgs(&self) -> impl Iterator<Item = &Org> {
        self.orgs.values().map(|stored| &stored.org).filter(|org| !org.place.deleted)
    }

    /// Timers care about what an org overrides.
    fn touch_org(&mut self, org: &OrgId, audit: &AuditEntry) {
        if let Some(stored) = self.orgs.get_mut(org) {
            stored.org.place.changed_at = micros(audit.at);
            stored.waiting = true;
        }
        self.write_audit(audit);
    }

    /// The living jobs with a timer for each org.
    pub(super) fn org_wide_jobs(&self) -> impl Iterator<Item = &Job> {
        let living = |job: &&Job| job.definition.scope == Scope::PerOrg && job.state.status != JobStatus::Retired;
        self.jobs.values().filter(living)
    }
}

fn matches_text(org: &Org, text: Option<&str>) -> bool {
    let contains = |text: &str| [org.id.as_str(), &org.name].iter().any(|own| own.to_ascii_lowercase().contains(text));
    text.is_none_or(|text| contains(&text.to_ascii_lowercase()))
}
