//! Backfills, as the API shows them.

use everbell::client::{BackfillBegun, BackfillOfAll, BackfillPlan, BackfillReport, BackfillSize, BackfillSlot};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::{SweepBegunDocument, time};

/// A backfill that was begun, or what it would do.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Backfill)]
pub(crate) struct BackfillDocument {
    /// Absent for a dry run.
    pub(crate) id: Option<String>,
    pub(crate) dry_run: bool,
    pub(crate) from: String,
    pub(crate) to: String,
    /// The org that it is for, of a job that fires for each.
    pub(crate) org_id: Option<String>,
    /// The walk over the orgs that makes its runs, if it is for all of them.
    pub(crate) sweep: Option<SweepBegunDocument>,
    /// How many slots get a run. For all orgs: at most so many in a dry run, because some may have one already, else absent.
    pub(crate) to_create: Option<u64>,
    /// Whom a dry run for all orgs has counted.
    pub(crate) orgs: Option<BackfillOrgsDocument>,
    pub(crate) slots: Vec<SlotDocument>,
}

/// The orgs that a dry run has counted.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BackfillOrgs)]
pub(crate) struct BackfillOrgsDocument {
    /// How many were looked at: the first thousand by their id, if there are more.
    pub(crate) looked_at: u64,
    pub(crate) more: bool,
    /// How many of them have slots in the range.
    pub(crate) with_slots: u64,
}

/// A slot of a backfill.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SlotDocument {
    pub(crate) slot_at: String,
    /// The same in the zone of the job or the org.
    pub(crate) local: String,
    /// `create`, or `skip` if it has a run already.
    pub(crate) action: &'static str,
    /// What became of the run that it has.
    pub(crate) because: Option<&'static str>,
    /// The run that it has, or gets.
    pub(crate) run_id: Option<String>,
}

/// How far a backfill is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BackfillReport)]
pub(crate) struct BackfillReportDocument {
    pub(crate) id: String,
    /// `running`, or `done` when all its runs are made and none of them is pending or running.
    pub(crate) status: &'static str,
    pub(crate) asked_at: String,
    pub(crate) asked_by: String,
    pub(crate) reason: Option<String>,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) pending: u64,
    pub(crate) running: u64,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) canceled: u64,
}

/// A backfill whose waiting runs were canceled.
#[derive(Serialize, ToSchema)]
#[schema(as = StoppedBackfill)]
pub(crate) struct StoppedDocument {
    pub(crate) id: String,
    /// How many runs had not begun and were canceled.
    pub(crate) canceled: u64,
}

impl BackfillDocument {
    pub(crate) fn planned(plan: &BackfillPlan, from: Timestamp, to: Timestamp) -> BackfillDocument {
        let local = |slot: Timestamp| slot.to_zoned(plan.zone.as_jiff().clone()).to_string();
        let slot = |BackfillSlot { slot, existing }: &BackfillSlot| SlotDocument {
            slot_at: time(*slot),
            local: local(*slot),
            action: if existing.is_some() { "skip" } else { "create" },
            because: existing.map(|(_, status)| status.as_str()),
            run_id: existing.map(|(run, _)| run.to_string()),
        };
        BackfillDocument {
            id: None,
            dry_run: true,
            from: time(from),
            to: time(to),
            org_id: plan.org.as_ref().map(ToString::to_string),
            sweep: None,
            to_create: Some(plan.wanted().len() as u64),
            orgs: None,
            slots: plan.slots.iter().map(slot).collect(),
        }
    }

    pub(crate) fn begun(begun: &BackfillBegun, from: Timestamp, to: Timestamp) -> BackfillDocument {
        let mut document = BackfillDocument::planned(&begun.plan, from, to);
        for run in &begun.runs {
            let slot = run.slot_at.map(time);
            if let Some(made) = document.slots.iter_mut().find(|own| Some(&own.slot_at) == slot.as_ref()) {
                made.run_id = Some(run.id.to_string());
            }
        }
        let created = begun.runs.len() as u64;
        BackfillDocument { id: Some(begun.id.to_string()), dry_run: false, to_create: Some(created), ..document }
    }

    pub(crate) fn of_all(begun: &BackfillOfAll, from: Timestamp, to: Timestamp) -> BackfillDocument {
        BackfillDocument {
            id: Some(begun.id.to_string()),
            dry_run: false,
            from: time(from),
            to: time(to),
            org_id: None,
            sweep: Some(SweepBegunDocument::from(&begun.sweep)),
            to_create: None,
            orgs: None,
            slots: Vec::new(),
        }
    }

    pub(crate) fn sized(size: BackfillSize, from: Timestamp, to: Timestamp) -> BackfillDocument {
        let BackfillSize { looked_at, more, with_slots, slots } = size;
        BackfillDocument {
            id: None,
            dry_run: true,
            from: time(from),
            to: time(to),
            org_id: None,
            sweep: None,
            to_create: Some(slots),
            orgs: Some(BackfillOrgsDocument { looked_at, more, with_slots }),
            slots: Vec::new(),
        }
    }
}

impl From<&BackfillReport> for BackfillReportDocument {
    fn from(report: &BackfillReport) -> BackfillReportDocument {
        let count = |status: &str| report.runs.get(status).copied().unwrap_or(0);
        BackfillReportDocument {
            id: report.id.to_string(),
            status: if report.is_done() { "done" } else { "running" },
            asked_at: time(report.asked.at),
            asked_by: report.asked.actor.clone(),
            reason: report.asked.reason.clone(),
            from: time(report.from),
            to: time(report.to),
            pending: count("pending"),
            running: count("running"),
            succeeded: count("succeeded"),
            failed: count("failed"),
            canceled: count("canceled"),
        }
    }
}
