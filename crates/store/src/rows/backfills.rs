//! Rows of `backfills`, and of runs as far as a backfill cares.

use everbell_core::backfill::{
    Backfill, BackfillCounts, BackfillOrder, BackfillSettings, BackfillStatus, OpenRun, Pace, SlotRun,
};
use everbell_core::store::{AuditEntry, MAX_BACKFILLS, MAX_LOOKED_UP, Origin, StoreError, StoreResult};
use everbell_core::{BackfillId, Invalid, JobKey, RunId, RunStatus, Trigger};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::from_row::by_name;
use super::run::{trace_context, trigger};
use super::{corrupt, org, org_text, word};
use crate::micros::Micros;

/// The actor of the steps of backfills.
const EVERBELL: &str = "everbell";

/// A row of `backfills`.
#[derive(Clone, Debug)]
pub(crate) struct BackfillColumns {
    pub(crate) id: Uuid,
    pub(crate) revision: i64,
    pub(crate) job_key: String,
    pub(crate) org_id: String,
    pub(crate) requested_at: Micros,
    pub(crate) requested_by: String,
    pub(crate) reason: Option<String>,
    pub(crate) from_at: Micros,
    pub(crate) to_at: Micros,
    pub(crate) status: String,
    pub(crate) progress: String,
    pub(crate) updated_at: Micros,
}

by_name!(BackfillColumns {
    id,
    revision,
    job_key,
    org_id,
    requested_at,
    requested_by,
    reason,
    from_at,
    to_at,
    status,
    progress,
    updated_at
});

/// The columns that only statements read, beside those of a row.
pub(crate) struct DerivedColumns {
    pub(crate) is_open: bool,
    pub(crate) paused_ok: bool,
    pub(crate) run_trigger: String,
}

impl DerivedColumns {
    pub(crate) fn new(backfill: &Backfill) -> DerivedColumns {
        DerivedColumns {
            is_open: backfill.is_open(),
            paused_ok: backfill.settings.paused_ok,
            run_trigger: Trigger::Backfill(backfill.id).to_string(),
        }
    }
}

impl BackfillColumns {
    pub(crate) fn new(backfill: &Backfill) -> BackfillColumns {
        BackfillColumns {
            id: backfill.id.as_uuid(),
            revision: i64::try_from(backfill.revision).unwrap_or(i64::MAX),
            job_key: backfill.job_key.to_string(),
            org_id: org_text(backfill.org.as_ref()).to_owned(),
            requested_at: backfill.requested_at.into(),
            requested_by: backfill.requested_by.clone(),
            reason: backfill.reason.clone(),
            from_at: backfill.from.into(),
            to_at: backfill.to.into(),
            status: backfill.status.as_str().to_owned(),
            progress: Progress::new(backfill).write(),
            updated_at: backfill.updated_at.into(),
        }
    }

    pub(crate) fn read(self) -> StoreResult<Backfill> {
        let bad = |why| corrupt("backfills", self.id, why);
        let unreadable = |error: serde_json::Error| Invalid::new("progress", error.to_string());
        let progress: Progress = serde_json::from_str(&self.progress).map_err(unreadable).map_err(bad)?;
        let times = |micros: Vec<i64>| micros.into_iter().map(|micros| Micros(micros).into()).collect();
        let open_run = |(id, slot): (String, i64)| Ok(OpenRun { id: id.parse()?, slot: Micros(slot).into() });
        Ok(Backfill {
            id: BackfillId::from_uuid(self.id),
            revision: super::count(self.revision),
            job_key: JobKey::new(&self.job_key).map_err(bad)?,
            org: org(&self.org_id).map_err(bad)?,
            requested_at: self.requested_at.into(),
            requested_by: self.requested_by,
            reason: self.reason,
            from: self.from_at.into(),
            to: self.to_at.into(),
            settings: BackfillSettings {
                order: word(BackfillOrder::ALL, BackfillOrder::as_str, &progress.order).map_err(bad)?,
                parallel: progress.parallel,
                rate: progress.rate.as_deref().map(str::parse).transpose().map_err(bad)?,
                paused_ok: progress.paused_ok,
            },
            status: word(BackfillStatus::ALL, BackfillStatus::as_str, &self.status).map_err(bad)?,
            stopped_because: progress.stopped_because,
            reached: progress.reached.map(|micros| Micros(micros).into()),
            again: times(progress.again),
            open: progress.open.into_iter().map(open_run).collect::<Result<_, Invalid>>().map_err(bad)?,
            counts: BackfillCounts {
                created: progress.created,
                existing: progress.existing,
                succeeded: progress.succeeded,
                failed: progress.failed,
                canceled: progress.canceled,
            },
            next_at: Micros(progress.next_at).into(),
            pace: Pace { since: Micros(progress.pace_since).into(), ended: progress.pace_ended },
            updated_at: self.updated_at.into(),
            trace_context: trace_context(progress.trace_context.as_deref()),
        })
    }
}

/// The settings of a backfill and how far it is, as JSON.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Progress {
    order: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<String>,
    paused_ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped_because: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reached: Option<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    again: Vec<i64>,
    open: Vec<(String, i64)>,
    created: u64,
    existing: u64,
    succeeded: u64,
    failed: u64,
    canceled: u64,
    next_at: i64,
    pace_since: i64,
    pace_ended: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_context: Option<String>,
}

impl Progress {
    fn new(backfill: &Backfill) -> Progress {
        let micros = |time: Timestamp| Micros::from(time).0;
        let Backfill { settings, counts, .. } = backfill;
        Progress {
            order: settings.order.to_string(),
            parallel: settings.parallel,
            rate: settings.rate.map(|rate| rate.to_string()),
            paused_ok: settings.paused_ok,
            stopped_because: backfill.stopped_because.clone(),
            reached: backfill.reached.map(micros),
            again: backfill.again.iter().copied().map(micros).collect(),
            open: backfill.open.iter().map(|open| (open.id.to_string(), micros(open.slot))).collect(),
            created: counts.created,
            existing: counts.existing,
            succeeded: counts.succeeded,
            failed: counts.failed,
            canceled: counts.canceled,
            next_at: micros(backfill.next_at),
            pace_since: micros(backfill.pace.since),
            pace_ended: backfill.pace.ended,
            trace_context: backfill.trace_context.as_ref().map(|context| context.as_stored().to_owned()),
        }
    }

    fn write(&self) -> String {
        // Texts and numbers always have a form in JSON.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A run that was looked up.
#[derive(Clone, Debug)]
pub(crate) struct SlotRunColumns {
    pub(crate) id: Uuid,
    pub(crate) at: Micros,
    pub(crate) trigger: String,
    pub(crate) status: String,
    pub(crate) attempt: i32,
}

by_name!(SlotRunColumns { id, at, trigger, status, attempt });

impl SlotRunColumns {
    pub(crate) fn read(self) -> StoreResult<SlotRun> {
        let bad = |why| corrupt("runs", self.id, why);
        Ok(SlotRun {
            id: RunId::from_uuid(self.id),
            at: self.at.into(),
            trigger: trigger(&self.trigger).map_err(bad)?,
            status: word(RunStatus::ALL, RunStatus::as_str, &self.status).map_err(bad)?,
            attempt: u32::try_from(self.attempt).unwrap_or(0),
        })
    }
}

/// Refuses a limit of a list of backfills that is too low or too high.
pub(crate) fn check_backfills(limit: u32) -> StoreResult<()> {
    if (1..=MAX_BACKFILLS).contains(&limit) {
        return Ok(());
    }
    Err(Invalid::new("limit", format!("must be from 1 to {MAX_BACKFILLS}, not {limit}")).into())
}

/// Refuses to look up too many runs at once.
pub(crate) fn check_looked_up(asked: usize) -> StoreResult<()> {
    if asked <= MAX_LOOKED_UP {
        return Ok(());
    }
    Err(Invalid::new("runs", format!("at most {MAX_LOOKED_UP} are looked up at once, not {asked}")).into())
}

/// The refusal of a write to a backfill that has another revision by now.
pub(crate) fn changed_meanwhile(backfill: &Backfill) -> StoreError {
    StoreError::Conflict { what: format!("backfill {} was changed by another request", backfill.id) }
}

/// The time and the actor of a step. It is not written.
pub(crate) fn step_entry(now: Timestamp) -> AuditEntry {
    AuditEntry {
        id: Uuid::nil(),
        at: now,
        actor: EVERBELL.to_owned(),
        action: "job.backfill_step".to_owned(),
        object: "backfill".to_owned(),
        reason: None,
        before: None,
        after: None,
        request: None,
        origin: Origin::default(),
    }
}
