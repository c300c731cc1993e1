//! Reports over all jobs, and absences of instances.

use std::collections::BTreeMap;

use async_trait::async_trait;
use everbell_core::org::{GroupOverride, OrgGroup};
use everbell_core::outage::{Absence, LateOutcome, LateRange, LateSlots};
use everbell_core::store::{
    AuditEntry, GapCount, MAX_LATE_SLOTS, OrgFires, Page, PageRequest, ReportStore, StoreResult,
};
use everbell_core::{GapReason, JobId, JobKey, OrgId, Run, RunStatus, Trigger};
use jiff::Timestamp;

use super::MemoryStore;
use super::pages::{self, Direction};
use super::state::{State, micros};
use crate::rows::reports::{check_absences, check_org_fires, check_org_groups, folded_until};

#[async_trait]
impl ReportStore for MemoryStore {
    async fn last_departure(&self) -> StoreResult<Option<Timestamp>> {
        self.with(|state| Ok(state.departed_at))
    }

    async fn add_absence(&self, absence: &Absence) -> StoreResult<()> {
        self.with(|state| {
            state.absences.entry(micros(absence.from)).or_insert(micros(absence.until));
            Ok(())
        })
    }

    async fn absences(&self, from: Option<Timestamp>, to: Option<Timestamp>, limit: u32) -> StoreResult<Vec<Absence>> {
        check_absences(limit)?;
        self.with(|state| {
            let all = state.absences.iter().rev().map(|(from, until)| Absence { from: *from, until: *until });
            let wanted = all.filter(|absence| {
                from.is_none_or(|from| absence.until >= from) && to.is_none_or(|to| absence.from < to)
            });
            Ok(wanted.take(limit as usize).collect())
        })
    }

    async fn late_slots(&self, range: &LateRange) -> StoreResult<Vec<LateSlots>> {
        self.with(|state| Ok(state.late_slots(range)))
    }

    async fn count_gaps(&self, from: Timestamp, to: Timestamp) -> StoreResult<Vec<GapCount>> {
        self.with(|state| {
            let mut counts: BTreeMap<&'static str, GapCount> = BTreeMap::new();
            let begins = |at: Timestamp| from <= at && at < to;
            for gap in state.gaps.values().map(|stored| &stored.gap).filter(|gap| begins(gap.first_slot_at)) {
                let none = GapCount { reason: gap.reason, gaps: 0, slots: 0 };
                let count = counts.entry(gap.reason.as_str()).or_insert(none);
                (count.gaps, count.slots) = (count.gaps + 1, count.slots + gap.slots);
            }
            Ok(counts.into_values().collect())
        })
    }

    async fn org_fires(&self, from: Timestamp, to: Timestamp, limit: u32) -> StoreResult<Vec<OrgFires>> {
        check_org_fires(limit)?;
        self.with(|state| {
            let timers = state.timers.iter().filter_map(|((job, org), timer)| {
                let at = timer.next_run_at.filter(|at| from <= *at && *at < to)?;
                Some((at, *job, org.clone()?))
            });
            let mut timers: Vec<(Timestamp, JobId, OrgId)> = timers.collect();
            timers.sort();
            timers.truncate(limit as usize);
            let mut fires: Vec<OrgFires> = Vec::new();
            for (at, job, org) in timers {
                match fires.last_mut().filter(|last| last.at == at && last.job == job) {
                    Some(last) => last.orgs += 1,
                    None => fires.push(OrgFires { job, at, first_org: org, orgs: 1 }),
                }
            }
            Ok(fires)
        })
    }

    async fn org_groups(&self, limit: u32) -> StoreResult<Vec<OrgGroup>> {
        check_org_groups(limit)?;
        self.with(|state| Ok(state.org_groups().into_iter().take(limit as usize).collect()))
    }

    async fn job_keys(&self, jobs: &[JobId]) -> StoreResult<Vec<(JobId, JobKey)>> {
        self.with(|state| {
            let mut jobs = jobs.to_vec();
            jobs.sort_unstable();
            jobs.dedup();
            let keys = jobs.into_iter().filter_map(|id| Some((id, state.jobs.get(&id)?.definition.key.clone())));
            Ok(keys.take(1_000).collect())
        })
    }

    async fn list_backfill_entries(&self, page: &PageRequest) -> StoreResult<Page<AuditEntry>> {
        self.with(|state| {
            let wanted = state.audit.values().filter(|entry| entry.action == "job.backfill");
            pages::by_time(wanted.cloned().collect(), page, Direction::Down, |entry: &AuditEntry| (entry.at, entry.id))
        })
    }
}

impl State {
    /// Forgets absences that ended before this time, the earliest first.
    pub(super) fn prune_absences(&mut self, before: Timestamp, limit: usize) {
        let old = self.absences.iter().filter(|(_, until)| **until < before).map(|(from, _)| *from);
        let old: Vec<Timestamp> = old.take(limit).collect();
        self.absences.retain(|from, _| !old.contains(from));
    }

    fn org_groups(&self) -> Vec<OrgGroup> {
        type Words = (Option<JobKey>, String, bool, Option<String>);
        let mut groups: BTreeMap<Words, (u64, OrgId)> = BTreeMap::new();
        let mut add = |words: Words, org: &OrgId| {
            let (orgs, first) = groups.entry(words).or_insert_with(|| (0, org.clone()));
            *orgs += 1;
            *first = first.clone().min(org.clone());
        };
        let enabled: BTreeMap<&OrgId, &str> = self
            .living_orgs()
            .filter(|org| org.place.enabled)
            .map(|org| (&org.id, org.place.timezone.as_str()))
            .collect();
        for (org, timezone) in &enabled {
            add((None, (*timezone).to_owned(), true, None), org);
        }
        for ((org, job_key), own) in &self.overrides {
            if let Some(timezone) = enabled.get(org) {
                add((Some(job_key.clone()), (*timezone).to_owned(), own.enabled, own.expression.clone()), org);
            }
        }
        let group = |((job_key, timezone, enabled, expression), (orgs, first_org)): (Words, (u64, OrgId))| {
            let override_ = job_key.map(|job_key| GroupOverride { job_key, enabled, expression });
            OrgGroup { timezone, override_, orgs, first_org }
        };
        groups.into_iter().map(group).collect()
    }

    fn late_slots(&self, range: &LateRange) -> Vec<LateSlots> {
        let decided = micros(range.decided_from)..micros(range.decided_until);
        let folded_until = folded_until(range);
        let gaps = self.gaps.values().filter(|stored| decided.contains(&stored.created_at)).filter_map(|stored| {
            let outcome = match stored.gap.reason {
                GapReason::Missed => LateOutcome::Missed,
                GapReason::Coalesced => LateOutcome::Coalesced,
                GapReason::Expired => LateOutcome::Expired,
                _ => return None,
            };
            let gap = &stored.gap;
            let begins = range.gaps_from <= gap.first_slot_at && gap.first_slot_at < range.until;
            let reaches = begins && gap.last_slot_at >= range.slots_from;
            reaches.then_some((stored.owner.0, outcome, gap.slots, gap.first_slot_at, gap.last_slot_at))
        });
        let runs = self.active.values().map(|active| &active.run).chain(self.ended.values());
        let runs = runs.filter(|run| decided.contains(&run.created_at)).filter_map(|run: &Run| {
            let end = if run.folded > 0 { folded_until } else { range.until };
            let slot = run.slot_at.filter(|slot| range.slots_from <= *slot && *slot < end)?;
            let outcome = match (&run.trigger, run.status) {
                (Trigger::Backfill(_), RunStatus::Canceled) => return None,
                (Trigger::Backfill(_), _) => LateOutcome::Backfilled,
                (_, RunStatus::Skipped) => LateOutcome::Skipped,
                _ => LateOutcome::Ran,
            };
            Some((run.job_id?, outcome, 1, slot, slot))
        });
        let mut late: BTreeMap<(JobKey, &'static str), LateSlots> = BTreeMap::new();
        for (job, outcome, slots, first_slot_at, last_slot_at) in gaps.chain(runs) {
            let Some(job) = self.jobs.get(&job) else { continue };
            let job_key = job.definition.key.clone();
            let none = LateSlots { job_key: job_key.clone(), outcome, slots: 0, first_slot_at, last_slot_at };
            let entry = late.entry((job_key, outcome.as_str())).or_insert(none);
            entry.slots += slots;
            entry.first_slot_at = entry.first_slot_at.min(first_slot_at);
            entry.last_slot_at = entry.last_slot_at.max(last_slot_at);
        }
        late.into_values().take(MAX_LATE_SLOTS as usize).collect()
    }
}
