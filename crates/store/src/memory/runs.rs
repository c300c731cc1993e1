//! Runs and gaps as people ask for them.

use everbell_core::store::{
    AuditEntry, Canceled, Deed, GapFilter, Page, PageRequest, RunFilter, SlotOutcome, StoreError, StoreResult,
};
use everbell_core::{Gap, JobId, OrgId, Run, RunId, RunStatus};
use jiff::Timestamp;
use uuid::Uuid;

use super::pages::{self, Direction};
use super::state::{Active, State, StoredGap, micros};
use crate::rows::check_cap;

impl State {
    pub(super) fn insert_run(&mut self, run: &Run, audit: &AuditEntry) -> StoreResult<()> {
        if self.run(run.id).is_some() {
            return Err(StoreError::Conflict { what: format!("a run with the id `{}` exists", run.id) });
        }
        let run = Run {
            slot_at: run.slot_at.map(micros),
            scheduled_at: micros(run.scheduled_at),
            created_at: micros(run.created_at),
            ..run.clone()
        };
        let deed = Deed { runs: vec![run.id], ..Deed::default() };
        self.active.insert(run.id, Active::new(run));
        self.write_audit(audit);
        self.write_deed(audit, deed);
        Ok(())
    }

    pub(super) fn cancel_run(
        &mut self,
        run: RunId,
        by: &str,
        now: Timestamp,
        audit: &AuditEntry,
    ) -> StoreResult<Canceled> {
        let canceled = match self.cancel(run, by, now) {
            Some(RunStatus::Running) => Canceled::Requested,
            Some(_) => Canceled::AtOnce,
            None => return Ok(Canceled::TooLate(self.get_run(run)?.status)),
        };
        self.write_audit(audit);
        self.write_deed(audit, Deed { runs: vec![run], ..Deed::default() });
        Ok(canceled)
    }

    pub(super) fn get_run(&self, run: RunId) -> StoreResult<&Run> {
        self.run(run).ok_or_else(|| StoreError::not_found("run", run))
    }

    pub(super) fn whole_run(&self, run: RunId) -> StoreResult<Run> {
        Ok(Run { output: self.outputs.get(&run).cloned(), ..self.get_run(run)?.clone() })
    }

    pub(super) fn list_runs(&self, filter: &RunFilter, page: &PageRequest) -> StoreResult<Page<Run>> {
        let wanted = self.runs().filter(|run| is_wanted(run, filter)).cloned().collect();
        pages::by_time(wanted, page, Direction::Down, |run: &Run| (run.id.time(), run.id.as_uuid()))
    }

    pub(super) fn count_runs(&self, filter: &RunFilter, cap: u32) -> StoreResult<u32> {
        check_cap(cap)?;
        Ok(self.runs().filter(|run| is_wanted(run, filter)).take(cap as usize).count() as u32)
    }

    pub(super) fn list_gaps(
        &self,
        filter: &GapFilter,
        page: &PageRequest,
    ) -> StoreResult<Page<(JobId, Option<OrgId>, Gap)>> {
        let wanted =
            self.gaps.iter().filter(|(_, gap)| is_wanted_gap(gap, filter) && self.is_of_key(gap, filter)).collect();
        let page = pages::by_time(wanted, page, Direction::Down, |(id, stored): &(&Uuid, &StoredGap)| {
            (stored.gap.first_slot_at, **id)
        })?;
        let row = |stored: &StoredGap| (stored.owner.0, stored.owner.1.clone(), stored.gap.clone());
        let items = page.items.into_iter().map(|(_, stored)| row(stored)).collect();
        Ok(Page { items, next: page.next, unreadable: page.unreadable })
    }

    fn is_of_key(&self, gap: &StoredGap, filter: &GapFilter) -> bool {
        let key = || self.jobs.get(&gap.owner.0).map(|job| &job.definition.key);
        filter.job_key.as_ref().is_none_or(|wanted| key() == Some(wanted))
    }

    /// A run before a gap; among gaps the one that begins last, which is the narrowest.
    pub(super) fn slot_outcome(&self, job: JobId, org: Option<&OrgId>, slot: Timestamp) -> Option<SlotOutcome> {
        let owner = (job, org.cloned());
        let slot = micros(slot);
        if let Some(id) = self.slots.get(&(owner.clone(), slot)) {
            return self.run(*id).map(|run| SlotOutcome::Run(Box::new(run.clone())));
        }
        let holds = |gap: &Gap| (gap.first_slot_at..=gap.last_slot_at).contains(&slot);
        let holding = self.gaps.values().filter(|stored| stored.owner == owner && holds(&stored.gap));
        holding.max_by_key(|stored| stored.gap.first_slot_at).map(|stored| SlotOutcome::Gap(stored.gap.clone()))
    }
}

fn is_wanted(run: &Run, filter: &RunFilter) -> bool {
    filter.job_id.is_none_or(|id| run.job_id == Some(id))
        && filter.job_key.as_ref().is_none_or(|key| run.job_key.as_ref() == Some(key))
        && (filter.status.is_empty() || filter.status.contains(&run.status))
        && (filter.target.is_empty() || filter.target.contains(&run.target))
        && filter.trigger.is_none_or(|trigger| run.trigger.kind() == trigger)
        && filter.org.as_ref().is_none_or(|org| run.org.as_ref() == Some(org))
        && filter.instance.is_none_or(|instance| run.claimed.is_some_and(|(_, by)| by == instance))
        && filter
            .failure_code
            .as_ref()
            .is_none_or(|code| run.failure.as_ref().is_some_and(|failure| failure.code.as_str() == code))
        && filter.from.is_none_or(|from| run.id >= RunId::first_from(from))
        && filter.to.is_none_or(|to| run.id < RunId::first_from(to))
}

fn is_wanted_gap(stored: &StoredGap, filter: &GapFilter) -> bool {
    filter.job_id.is_none_or(|id| stored.owner.0 == id)
        && filter.org.as_ref().is_none_or(|org| stored.owner.1.as_ref() == Some(org))
        && filter.reason.is_none_or(|reason| stored.gap.reason == reason)
        && filter.from.is_none_or(|from| stored.gap.last_slot_at >= micros(from))
        && filter.to.is_none_or(|to| stored.gap.first_slot_at < micros(to))
}
