//! Orgs and what they override: write, find, list.

use std::collections::BTreeMap;

use everbell_core::org::{self, Org, OrgWrite, Override, OverrideWrite};
use everbell_core::store::{
    AuditEntry, JobOrg, JobOrgFilter, OrgCounts, OrgFilter, OrgJob, OrgWritten, Page, PageRequest, StoreError,
    StoreResult,
};
use everbell_core::{Job, JobId, JobKey, JobStatus, OrgId, Scope};
use uuid::Uuid;

use super::pages::{self, Direction};
use super::state::{State, StoredOrg, micros};
use crate::rows::orgs::{MOST_COUNTED, MOST_LISTED, decide_writes};

impl State {
    pub(super) fn write_orgs(&mut self, writes: &[OrgWrite], audit: &AuditEntry) -> StoreResult<Vec<OrgWritten>> {
        let there = writes.iter().filter_map(|write| self.orgs.get(&write.id));
        let there = there.map(|stored| (stored.org.id.to_string(), stored.org.clone())).collect();
        let (answers, rows) = decide_writes(there, writes, audit)?;
        let care: BTreeMap<String, bool> = rows.into_iter().map(|(row, care)| (row.id, care)).collect();
        for OrgWritten { org, .. } in answers.iter().filter(|written| written.changed) {
            let waited = self.orgs.get(&org.id).is_some_and(|stored| stored.waiting);
            let waiting = waited || care.get(org.id.as_str()) == Some(&true);
            self.orgs.insert(org.id.clone(), StoredOrg { org: org.clone(), waiting });
        }
        self.write_audit(audit);
        Ok(answers)
    }

    pub(super) fn delete_org(&mut self, id: &OrgId, revision: Option<u64>, audit: &AuditEntry) -> StoreResult<()> {
        let org = self.get_org(id)?;
        StoreError::expect_revision("org", id, revision, Some(org.revision))?;
        let org = org::deleted(&org, &audit.actor, micros(audit.at));
        self.orgs.insert(id.clone(), StoredOrg { org, waiting: true });
        self.overrides.retain(|(org, _), _| org != id);
        self.write_audit(audit);
        Ok(())
    }

    pub(super) fn get_org(&self, id: &OrgId) -> StoreResult<Org> {
        let stored = self.orgs.get(id).filter(|stored| !stored.org.place.deleted);
        stored.map(|stored| stored.org.clone()).ok_or_else(|| StoreError::not_found("org", id))
    }

    pub(super) fn list_orgs(&self, filter: &OrgFilter, page: &PageRequest) -> Page<Org> {
        let errored = |org: &Org| self.timer_errors.keys().any(|(_, own)| own.as_ref() == Some(&org.id));
        let wanted = self.living_orgs().filter(|org| {
            matches_text(org, filter.text.as_deref())
                && filter.timezone.as_ref().is_none_or(|zone| org.place.timezone == *zone)
                && filter.enabled.is_none_or(|enabled| org.place.enabled == enabled)
                && filter.errored.is_none_or(|wanted| errored(org) == wanted)
        });
        pages::by_text(wanted.cloned().collect(), page, Direction::Up, |org| (org.id.to_string(), Uuid::nil()))
    }

    pub(super) fn count_orgs(&self) -> OrgCounts {
        let counted = |count: usize| count.min(MOST_COUNTED as usize) as u32;
        OrgCounts {
            orgs: counted(self.living_orgs().count()),
            errored: counted(self.timer_errors.len()),
            waiting: counted(self.orgs.values().filter(|stored| stored.waiting).count()),
            sweeps: counted(self.sweeps.len()),
        }
    }

    fn living_orgs(&self) -> impl Iterator<Item = &Org> {
        self.orgs.values().map(|stored| &stored.org).filter(|org| !org.place.deleted)
    }

    pub(super) fn write_override(
        &mut self,
        org: &OrgId,
        write: &OverrideWrite,
        audit: &AuditEntry,
    ) -> StoreResult<Override> {
        self.get_org(org)?;
        let wish = org::override_of(write, &audit.actor, micros(audit.at))?;
        self.overrides.insert((org.clone(), write.job_key.clone()), wish.clone());
        self.touch_org(org, audit);
        Ok(wish)
    }

    pub(super) fn delete_override(&mut self, org: &OrgId, key: &JobKey, audit: &AuditEntry) -> StoreResult<()> {
        self.get_org(org)?;
        let gone = self.overrides.remove(&(org.clone(), key.clone()));
        gone.ok_or_else(|| StoreError::not_found("override", key))?;
        self.touch_org(org, audit);
        Ok(())
    }

    /// Timers care about what an org overrides.
    fn touch_org(&mut self, org: &OrgId, audit: &AuditEntry) {
        if let Some(stored) = self.orgs.get_mut(org) {
            stored.org.place.changed_at = micros(audit.at);
            stored.waiting = true;
        }
        self.write_audit(audit);
    }

    pub(super) fn list_overrides(&self, org: &OrgId) -> StoreResult<Vec<Override>> {
        self.get_org(org)?;
        Ok(self.overrides.iter().filter(|((own, _), _)| own == org).map(|(_, wish)| wish.clone()).collect())
    }

    pub(super) fn job_orgs(&self, job: JobId, filter: &JobOrgFilter, page: &PageRequest) -> StoreResult<Page<JobOrg>> {
        let key = &self.jobs.get(&job).ok_or_else(|| StoreError::not_found("job", job))?.definition.key;
        let rows = self.living_orgs().map(|org| {
            let owner = (job, Some(org.id.clone()));
            JobOrg {
                org: org.clone(),
                wish: self.overrides.get(&(org.id.clone(), key.clone())).cloned(),
                timer: self.timers.get(&owner).cloned(),
                error: self.timer_errors.get(&owner).cloned(),
            }
        });
        let wanted = rows.filter(|row| {
            let armed = row.timer.as_ref().is_some_and(|timer| timer.next_run_at.is_some());
            matches_text(&row.org, filter.text.as_deref())
                && filter.errored.is_none_or(|errored| row.error.is_some() == errored)
                && filter.armed.is_none_or(|wanted| armed == wanted)
        });
        Ok(pages::by_text(wanted.collect(), page, Direction::Up, |row| (row.org.id.to_string(), Uuid::nil())))
    }

    pub(super) fn org_jobs(&self, org: &OrgId) -> StoreResult<Vec<OrgJob>> {
        self.get_org(org)?;
        let mut jobs: Vec<&Job> = self.org_wide_jobs().collect();
        jobs.sort_by(|a, b| a.definition.key.cmp(&b.definition.key));
        jobs.truncate(MOST_LISTED as usize);
        let row = |job: &Job| {
            let owner = (job.definition.id, Some(org.clone()));
            OrgJob {
                job: job.clone(),
                wish: self.overrides.get(&(org.clone(), job.definition.key.clone())).cloned(),
                timer: self.timers.get(&owner).cloned(),
                error: self.timer_errors.get(&owner).cloned(),
            }
        };
        Ok(jobs.into_iter().map(row).collect())
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
