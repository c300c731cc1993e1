//! Orgs and overrides: rows of both databases, and what is refused in the same words by every store.

use std::collections::{HashMap, HashSet};

use everbell_core::org::{
    self, JobLifecycle, Org, OrgFacts, OrgSettings, OrgTimer, OrgWrite, Override, TimezoneChange, Written,
};
use everbell_core::store::{AuditEntry, Cursor, JobOrg, OrgCounts, OrgJob, OrgWritten, Page, StoreError, StoreResult};
use everbell_core::{Invalid, JobId, JobKey, JobStatus, Json, OrgId, Timer};
use uuid::Uuid;

use super::from_row::by_name;
use super::{Definitions, JobColumns, TimerColumns, corrupt, count, word};
use crate::micros::Micros;

/// The most orgs that are counted.
pub(crate) const MAX_COUNTED_ORGS: u32 = 10_000;
/// The most jobs of an org, and org updates, that are listed.
pub(crate) const MAX_LISTED: u32 = 1_000;

/// An org to be written, and whether timers care.
pub(crate) type OrgValues = (OrgColumns, bool);

/// The orgs as they shall be, from those that are there, gone ones too: the answers in the order of the requests, and what
/// is to be written, with whether timers care.
pub(crate) fn decide_writes(
    mut there: HashMap<String, Org>,
    writes: &[OrgWrite],
    audit: &AuditEntry,
) -> StoreResult<(Vec<OrgWritten>, Vec<OrgValues>)> {
    let mut seen = HashSet::with_capacity(writes.len());
    let (mut answers, mut rows) = (Vec::with_capacity(writes.len()), Vec::new());
    for write in writes {
        if !seen.insert(&write.id) {
            return Err(Invalid::repeated_org(&write.id).into());
        }
        let old = there.remove(write.id.as_str());
        let living = old.as_ref().filter(|org| !org.place.deleted);
        if write.only_existing && living.is_none() {
            return Err(StoreError::not_found("org", &write.id));
        }
        StoreError::expect_revision("org", &write.id, write.expected_revision, living.map(|org| org.revision))?;
        let created = living.is_none();
        let done = org::written(old.as_ref(), write, &audit.actor, Micros::from(audit.at).into());
        match (done.map_err(|refused| of_several(refused, &write.id, writes.len()))?, old) {
            (Written::New(org, timers_care), _) => {
                rows.push((OrgColumns::from(&*org), timers_care));
                answers.push(OrgWritten::new(*org, created, true));
            }
            (Written::Same, Some(org)) => answers.push(OrgWritten::new(org, false, false)),
            (Written::Same, None) => return Err(StoreError::not_found("org", &write.id)),
        }
    }
    Ok((answers, rows))
}

/// A refusal that says which of several orgs is meant.
fn of_several(refused: Invalid, org: &OrgId, count: usize) -> StoreError {
    if count == 1 { refused.into() } else { refused.for_org(org).into() }
}

/// A page of rows that are in the order of their org; there is one row more if there is another page.
pub(crate) fn page_of<R, T>(
    rows: Vec<R>,
    limit: u32,
    read: impl Fn(R) -> StoreResult<T>,
    id: impl Fn(&R) -> &String,
) -> Page<T> {
    super::page_of(rows, limit, |row| Cursor { value: id(row).clone(), id: Uuid::nil() }, |row| id(row).clone(), read)
}

/// A row of `orgs`.
#[derive(Clone, Debug)]
pub(crate) struct OrgColumns {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) settings: String,
    pub(crate) place: OrgSettingsColumns,
    pub(crate) revision: i64,
    pub(crate) created_at: Micros,
    pub(crate) updated_by: String,
    pub(crate) updated_at: Micros,
}

by_name!(OrgColumns { id, name, settings, revision, created_at, updated_by, updated_at } flatten { place });

/// The columns of `orgs` that decide when its jobs fire.
#[derive(Clone, Debug)]
pub(crate) struct OrgSettingsColumns {
    pub(crate) timezone: String,
    pub(crate) enabled: bool,
    pub(crate) deleted: bool,
    pub(crate) changed_at: Micros,
    pub(crate) moved_from: Option<String>,
    pub(crate) moved_at: Option<Micros>,
}

by_name!(OrgSettingsColumns { timezone, enabled, deleted, changed_at, moved_from, moved_at });

impl OrgSettingsColumns {
    pub(crate) fn read(self) -> OrgSettings {
        let moved = self.moved_from.zip(self.moved_at).map(|(from, at)| TimezoneChange { from, at: at.into() });
        OrgSettings {
            timezone: self.timezone,
            enabled: self.enabled,
            deleted: self.deleted,
            changed_at: self.changed_at.into(),
            moved,
        }
    }
}

impl OrgColumns {
    pub(crate) fn read(self) -> StoreResult<Org> {
        let bad = |why| corrupt("orgs", &self.id, why);
        Ok(everbell_core::with!(Org {
            settings: Json::parse("settings", &self.settings).map_err(bad)?,
            name: self.name,
            revision: count(self.revision),
            updated_at: self.updated_at.into(),
            ..Org::new(OrgId::new(&self.id).map_err(bad)?, self.place.read(), self.updated_by, self.created_at.into())
        }))
    }
}

impl From<&Org> for OrgColumns {
    fn from(org: &Org) -> Self {
        let place = &org.place;
        OrgColumns {
            id: org.id.to_string(),
            name: org.name.clone(),
            settings: org.settings.to_string(),
            place: OrgSettingsColumns {
                timezone: place.timezone.clone(),
                enabled: place.enabled,
                deleted: place.deleted,
                changed_at: place.changed_at.into(),
                moved_from: place.moved.as_ref().map(|moved| moved.from.clone()),
                moved_at: place.moved.as_ref().map(|moved| moved.at.into()),
            },
            revision: org.revision as i64,
            created_at: org.created_at.into(),
            updated_by: org.updated_by.clone(),
            updated_at: org.updated_at.into(),
        }
    }
}

/// The columns of a row of `org_overrides`; all `None` where a join found no row.
#[derive(Clone, Debug, Default)]
pub(crate) struct OverrideColumns {
    pub(crate) for_job: Option<String>,
    pub(crate) wanted: Option<bool>,
    pub(crate) own_expression: Option<String>,
    pub(crate) overridden_by: Option<String>,
    pub(crate) overridden_at: Option<Micros>,
}

by_name!(OverrideColumns { for_job, wanted, own_expression, overridden_by, overridden_at });

impl OverrideColumns {
    pub(crate) fn read(self) -> StoreResult<Option<Override>> {
        let (Some(key), Some(enabled), Some(updated_by), Some(updated_at)) =
            (self.for_job, self.wanted, self.overridden_by, self.overridden_at)
        else {
            return Ok(None);
        };
        let job_key = JobKey::new(&key).map_err(|why| corrupt("org_overrides", &key, why))?;
        let expression = self.own_expression;
        Ok(Some(Override { job_key, enabled, expression, updated_by, updated_at: updated_at.into() }))
    }
}

/// The timer of a job for an org; all empty where a join found none.
#[derive(Clone, Debug)]
pub(crate) struct MaybeTimerColumns {
    pub(crate) next_run_at: Option<Micros>,
    pub(crate) last_slot_at: Option<Micros>,
    pub(crate) rescheduled_from: Option<Micros>,
    pub(crate) last_local_date: Option<String>,
    pub(crate) timer_error: Option<String>,
}

by_name!(MaybeTimerColumns { next_run_at, last_slot_at, rescheduled_from, last_local_date, timer_error });

impl MaybeTimerColumns {
    /// The timer and what is wrong with it. One that cannot be read is none, and that is what is wrong.
    fn read(self, job_id: Uuid, org_id: String) -> (Option<Timer>, Option<String>) {
        let timer = self.last_slot_at.map(|last_slot_at| TimerColumns {
            job_id,
            org_id,
            next_run_at: self.next_run_at,
            last_slot_at,
            rescheduled_from: self.rescheduled_from,
            last_local_date: self.last_local_date,
        });
        match timer.map(TimerColumns::read).transpose() {
            Ok(timer) => (timer, self.timer_error),
            Err(why) => (None, Some(self.timer_error.unwrap_or_else(|| why.to_string()))),
        }
    }
}

/// An org as a job sees it.
#[derive(Clone, Debug)]
pub(crate) struct JobOrgColumns {
    pub(crate) org: OrgColumns,
    pub(crate) override_: OverrideColumns,
    pub(crate) timer: MaybeTimerColumns,
}

by_name!(JobOrgColumns {} flatten { org, override_, timer });

impl JobOrgColumns {
    pub(crate) fn read(self, job: JobId) -> StoreResult<JobOrg> {
        let (timer, error) = self.timer.read(job.as_uuid(), self.org.id.clone());
        Ok(JobOrg { org: self.org.read()?, override_: self.override_.read()?, timer, error })
    }
}

/// A job as an org sees it.
#[derive(Clone, Debug)]
pub(crate) struct OrgJobColumns {
    pub(crate) job: JobColumns,
    pub(crate) override_: OverrideColumns,
    pub(crate) timer: MaybeTimerColumns,
}

by_name!(OrgJobColumns {} flatten { job, override_, timer });

impl OrgJobColumns {
    pub(crate) fn read(self, org: &OrgId, known: &Definitions) -> StoreResult<OrgJob> {
        let (timer, error) = self.timer.read(self.job.id, org.to_string());
        Ok(OrgJob { job: self.job.read(known)?, override_: self.override_.read()?, timer, error })
    }
}

/// The facts that decide about a timer of an org that is due.
#[derive(Clone, Debug)]
pub(crate) struct FactsColumns {
    pub(crate) job_id: Uuid,
    pub(crate) org_id: String,
    pub(crate) status: String,
    pub(crate) errored: bool,
    pub(crate) job_changed_at: Micros,
    pub(crate) place: OrgSettingsColumns,
    pub(crate) override_: OverrideColumns,
}

by_name!(FactsColumns { job_id, org_id, status, errored, job_changed_at } flatten { place, override_ });

impl FactsColumns {
    pub(crate) fn read(self) -> StoreResult<((Uuid, String), OrgFacts)> {
        let status = word(JobStatus::ALL, JobStatus::as_str, &self.status);
        let status = status.map_err(|why| corrupt("jobs", self.job_id, why))?;
        let lifecycle = JobLifecycle { status, errored: self.errored, changed_at: self.job_changed_at.into() };
        let facts = OrgFacts { lifecycle, place: self.place.read(), override_: self.override_.read()? };
        Ok(((self.job_id, self.org_id), facts))
    }
}

/// A timer of an org and why it is errored.
#[derive(Clone, Debug)]
pub(crate) struct OrgTimerColumns {
    pub(crate) job_id: Uuid,
    pub(crate) org_id: String,
    pub(crate) next_run_at: Option<Micros>,
    pub(crate) last_slot_at: Micros,
    pub(crate) rescheduled_from: Option<Micros>,
    pub(crate) last_local_date: Option<String>,
    pub(crate) error: Option<String>,
}

by_name!(OrgTimerColumns { job_id, org_id, next_run_at, last_slot_at, rescheduled_from, last_local_date, error });

impl OrgTimerColumns {
    pub(crate) fn read(self) -> StoreResult<OrgTimer> {
        let timer = TimerColumns {
            job_id: self.job_id,
            org_id: self.org_id,
            next_run_at: self.next_run_at,
            last_slot_at: self.last_slot_at,
            rescheduled_from: self.rescheduled_from,
            last_local_date: self.last_local_date,
        };
        Ok(OrgTimer { timer: timer.read()?, error: self.error, active: Vec::new() })
    }
}

/// How many there are of what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrgCountColumns {
    orgs: i64,
    errored: i64,
    waiting: i64,
    org_updates: i64,
}

by_name!(OrgCountColumns { orgs, errored, waiting, org_updates });

impl OrgCountColumns {
    pub(crate) fn read(self) -> OrgCounts {
        let number = |value: i64| u32::try_from(value).unwrap_or(u32::MAX);
        OrgCounts {
            orgs: number(self.orgs),
            errored: number(self.errored),
            waiting: number(self.waiting),
            org_updates: number(self.org_updates),
        }
    }
}
