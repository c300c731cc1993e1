//! [`OrgSchedules`]: when per-org jobs fire, and for how many orgs.

use std::collections::HashMap;
use std::time::Duration;

use everbell_core::org::{OrgGroups, OrgSchedule, OrgSlot, past_slots};
use everbell_core::store::{JobRow, MAX_ORG_FIRES, MAX_ORG_GROUPS, OrgFires, StoreResult};
use everbell_core::{EARLIEST, JobId, LATEST, OrgId, Scope};
use jiff::Timestamp;

use super::{Jobs, Reports};
use crate::clock::later;

/// Slots lie on whole microseconds at the finest.
const MICROSECOND: Duration = Duration::from_micros(1);

/// The schedules of per-org jobs for all their orgs, as they were read together.
#[derive(Clone, Debug, Default)]
pub struct OrgSchedules {
    jobs: HashMap<JobId, (OrgSchedule, Option<OrgSlot>)>,
    is_cut: bool,
}

impl OrgSchedules {
    /// The schedule of a job. `None` for a job that fires once for all orgs, or that has no slot to come.
    pub fn get(&self, job: JobId) -> Option<&OrgSchedule> {
        self.jobs.get(&job).map(|(schedule, _)| schedule)
    }

    /// The orgs that a job still has to fire for because of an earlier slot: those that are due, and those that jitter delays.
    pub fn waiting(&self, job: JobId) -> Option<&OrgSlot> {
        self.jobs.get(&job).and_then(|(_, waiting)| waiting.as_ref())
    }

    /// Whether there are more zones and overrides than are read, so that some orgs are counted at the wrong time or not at all.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The orgs that a job still has to fire for, and its slots at or after `from` and before `until`.
    pub(super) fn fires(
        &self,
        job: JobId,
        (now, from, until): (Timestamp, Timestamp, Timestamp),
    ) -> impl Iterator<Item = OrgSlot> {
        let waiting = self.waiting(job).filter(|waiting| from <= now && waiting.at < until).cloned();
        let first = if from > now { from } else { later(now, MICROSECOND) };
        waiting.into_iter().chain(self.get(job).into_iter().flat_map(move |schedule| schedule.slots(first, until)))
    }
}

impl FromIterator<(JobId, OrgSchedule)> for OrgSchedules {
    fn from_iter<T: IntoIterator<Item = (JobId, OrgSchedule)>>(schedules: T) -> OrgSchedules {
        let jobs = schedules.into_iter().map(|(job, schedule)| (job, (schedule, None)));
        OrgSchedules { jobs: jobs.collect(), is_cut: false }
    }
}

impl Reports {
    /// Reads when these jobs fire for their orgs before `until`. Jobs that fire once for all orgs are left out, and one that is
    /// named twice is one.
    pub async fn org_schedules<'a>(
        &self,
        jobs: impl IntoIterator<Item = &'a JobRow>,
        until: Timestamp,
    ) -> StoreResult<OrgSchedules> {
        let now = self.context.now();
        let jobs = jobs.into_iter().filter(|row| row.job.definition.scope == Scope::PerOrg);
        let jobs: HashMap<JobId, &JobRow> = jobs.map(|row| (row.id(), row)).collect();
        if jobs.is_empty() || until <= now {
            return Ok(OrgSchedules::default());
        }
        let store = &self.context.parts.store;
        let groups = store.org_groups(MAX_ORG_GROUPS).await?;
        let is_cut = groups.len() >= MAX_ORG_GROUPS as usize;
        let groups = OrgGroups::new(groups);
        let fires = store.org_fires(EARLIEST, until, MAX_ORG_FIRES).await?;
        let has_all = fires.iter().map(|fires| fires.orgs).sum::<u64>() < MAX_ORG_FIRES.into();
        let mut timers: HashMap<JobId, Vec<OrgFires>> = HashMap::new();
        for fires in fires {
            timers.entry(fires.job).or_default().push(fires);
        }
        let own = jobs.into_values().filter_map(|row| {
            let schedule = OrgSchedule::new(&row.job.definition, &row.job.state, &groups, now)?;
            let timers = timers.remove(&row.id()).unwrap_or_default();
            let waiting = waiting(&schedule, &timers, now);
            let armed = timers.into_iter().filter(|_| has_all).map(|fires| (fires.at, fires.orgs, fires.first_org));
            Some((row.id(), (schedule.with_armed(armed), waiting)))
        });
        Ok(OrgSchedules { jobs: own.collect(), is_cut })
    }
}

/// The timers that fire before the next slot.
fn waiting(schedule: &OrgSchedule, timers: &[OrgFires], now: Timestamp) -> Option<OrgSlot> {
    let next = later(now, MICROSECOND);
    let bound = if schedule.jitter().is_zero() {
        next
    } else {
        schedule.slots(next, LATEST).next().map_or(LATEST, |slot| slot.at)
    };
    let early: Vec<&OrgFires> = timers.iter().filter(|fires| fires.at < bound).collect();
    let first_org: Option<&OrgId> = early.iter().map(|fires| &fires.first_org).min();
    let orgs = early.iter().map(|fires| fires.orgs).sum();
    Some(OrgSlot {
        at: early.iter().map(|fires| fires.at).min()?.max(now),
        orgs,
        runs: orgs,
        zones: 0,
        first_org: first_org.cloned(),
        within: Duration::ZERO,
    })
}

impl Jobs {
    /// Returns the last slots of a per-org job for all its orgs, as they are now, the oldest first: at most this many, and
    /// about this many runs. Empty for other jobs.
    pub async fn past_org_slots(&self, row: &JobRow, most_slots: usize, most_runs: u64) -> StoreResult<Vec<Timestamp>> {
        if row.job.definition.scope != Scope::PerOrg {
            return Ok(Vec::new());
        }
        let groups = OrgGroups::new(self.context.parts.store.org_groups(MAX_ORG_GROUPS).await?);
        Ok(past_slots(&row.job.definition, &groups, self.context.now(), (most_slots, most_runs)))
    }

    /// Returns the next slots of a per-org job for all its orgs, at or after `from`, at most 1,000. Empty for other jobs.
    pub async fn next_org_slots(
        &self,
        job: impl super::IntoJobRef,
        from: Option<Timestamp>,
        count: usize,
    ) -> StoreResult<Vec<OrgSlot>> {
        let row = self.get(job).await?;
        let now = self.context.now();
        let from = from.map_or(now, |from| from.max(now));
        let schedules = Reports::new(self.context.clone()).org_schedules([&row], LATEST).await?;
        Ok(schedules.fires(row.id(), (now, from, LATEST)).take(count.min(super::fires::MAX_FIRES)).collect())
    }
}
