//! Rows about all jobs together: absences of instances, late slots, counted gaps, fires of orgs, groups of orgs.

use everbell_core::org::{GroupOverride, OrgGroup};
use everbell_core::outage::{Absence, LateOutcome, LateRange, LateSlots};
use everbell_core::store::{GapCount, MAX_ABSENCES, MAX_ORG_FIRES, MAX_ORG_GROUPS, OrgFires, StoreResult};
use everbell_core::{GapReason, Invalid, JobId, JobKey, OrgId};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::from_row::by_name;
use super::{corrupt, count, word};
use crate::micros::Micros;

/// How much later than the absence the slot of a run may be that slots of the absence were folded into.
const FOLDED_WITHIN: SignedDuration = SignedDuration::from_mins(1);

/// Returns the end of the slots of runs that slots of the range were folded into, exclusive.
pub(crate) fn folded_until(range: &LateRange) -> Timestamp {
    range.until.checked_add(FOLDED_WITHIN).unwrap_or(range.until)
}

/// A row of `absences`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AbsenceColumns {
    pub(crate) from_at: Micros,
    pub(crate) until_at: Micros,
}

by_name!(AbsenceColumns { from_at, until_at });

impl AbsenceColumns {
    pub(crate) fn read(self) -> Absence {
        Absence { from: self.from_at.into(), until: self.until_at.into() }
    }
}

/// Slots of a job with one outcome.
#[derive(Clone, Debug)]
pub(crate) struct LateSlotsColumns {
    pub(crate) job_key: String,
    pub(crate) outcome: String,
    pub(crate) slots: i64,
    pub(crate) first_slot_at: Micros,
    pub(crate) last_slot_at: Micros,
}

by_name!(LateSlotsColumns { job_key, outcome, slots, first_slot_at, last_slot_at });

impl LateSlotsColumns {
    pub(crate) fn read(self) -> StoreResult<LateSlots> {
        let read = || -> Result<_, Invalid> {
            Ok(LateSlots {
                job_key: JobKey::new(&self.job_key)?,
                outcome: word(LateOutcome::ALL, LateOutcome::as_str, &self.outcome)?,
                slots: count(self.slots),
                first_slot_at: self.first_slot_at.into(),
                last_slot_at: self.last_slot_at.into(),
            })
        };
        read().map_err(|why| corrupt("jobs", &self.job_key, why))
    }
}

/// The gaps of a reason.
#[derive(Clone, Debug)]
pub(crate) struct GapCountColumns {
    pub(crate) reason: String,
    pub(crate) gaps: i64,
    pub(crate) slots: i64,
}

by_name!(GapCountColumns { reason, gaps, slots });

/// Those that can be read, in the order of the words.
pub(crate) fn gap_counts(mut rows: Vec<GapCountColumns>) -> Vec<GapCount> {
    rows.sort_by(|a, b| a.reason.cmp(&b.reason));
    let read = |row: &GapCountColumns| {
        let reason = GapReason::from_word(&row.reason)?;
        Some(GapCount { reason, gaps: count(row.gaps), slots: count(row.slots) })
    };
    rows.iter().filter_map(read).collect()
}

/// Timers of orgs that fire at the same time for the same job.
#[derive(Clone, Debug)]
pub(crate) struct OrgFiresColumns {
    pub(crate) job_id: Uuid,
    pub(crate) next_run_at: Micros,
    pub(crate) first_org: String,
    pub(crate) orgs: i64,
}

by_name!(OrgFiresColumns { job_id, next_run_at, first_org, orgs });

impl OrgFiresColumns {
    pub(crate) fn read(self) -> StoreResult<OrgFires> {
        let first_org = OrgId::new(&self.first_org).map_err(|why| corrupt("timers", self.job_id, why))?;
        let job = JobId::from_uuid(self.job_id);
        Ok(OrgFires { job, at: self.next_run_at.into(), first_org, orgs: count(self.orgs) })
    }
}

/// Enabled orgs of a zone, or those with the same override of a job.
#[derive(Clone, Debug)]
pub(crate) struct OrgGroupColumns {
    pub(crate) job_key: Option<String>,
    pub(crate) timezone: String,
    pub(crate) wanted: bool,
    pub(crate) own_expression: Option<String>,
    pub(crate) orgs: i64,
    pub(crate) first_org: String,
}

by_name!(OrgGroupColumns { job_key, timezone, wanted, own_expression, orgs, first_org });

impl OrgGroupColumns {
    pub(crate) fn read(self) -> StoreResult<OrgGroup> {
        let first_org = OrgId::new(&self.first_org).map_err(|why| corrupt("orgs", &self.first_org, why))?;
        let job_key = self.job_key.as_deref().map(JobKey::new).transpose();
        let job_key = job_key.map_err(|why| corrupt("org_overrides", &self.first_org, why))?;
        let (enabled, expression) = (self.wanted, self.own_expression);
        let override_ = job_key.map(|job_key| GroupOverride { job_key, enabled, expression });
        Ok(OrgGroup { timezone: self.timezone, override_, orgs: count(self.orgs), first_org })
    }
}

/// The key of a job.
pub(crate) fn job_key((id, key): (Uuid, String)) -> StoreResult<(JobId, JobKey)> {
    Ok((JobId::from_uuid(id), JobKey::new(&key).map_err(|why| corrupt("jobs", id, why))?))
}

/// Refuses a limit of a list of absences that is too low or too high.
pub(crate) fn check_absences(limit: u32) -> StoreResult<()> {
    check(limit, MAX_ABSENCES)
}

/// Refuses a limit of a list of fires that is too low or too high.
pub(crate) fn check_org_fires(limit: u32) -> StoreResult<()> {
    check(limit, MAX_ORG_FIRES)
}

/// Refuses a limit of a list of groups that is too low or too high.
pub(crate) fn check_org_groups(limit: u32) -> StoreResult<()> {
    check(limit, MAX_ORG_GROUPS)
}

fn check(limit: u32, most: u32) -> StoreResult<()> {
    if (1..=most).contains(&limit) {
        return Ok(());
    }
    Err(Invalid::new("limit", format!("must be from 1 to {most}, not {limit}")).into())
}
