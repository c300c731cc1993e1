//! Backfills.

use everbell::client::{BackfillBegun, BackfillOfAll, BackfillPlan, BackfillReport, BackfillSize, BackfillSlot};
use everbell_core::JobKey;
use everbell_wire as wire;
use everbell_wire::backfill::{BackfillStatus, SlotAction};
use jiff::Timestamp;

use super::begun_org_update;

/// Converts the plan of a backfill.
pub fn backfill_plan(plan: &BackfillPlan, from: Timestamp, to: Timestamp) -> wire::Backfill {
    let local = |slot: Timestamp| slot.to_zoned(plan.zone.as_jiff().clone()).to_string();
    let slot = |BackfillSlot { slot, existing, .. }: &BackfillSlot| wire::BackfillSlot {
        slot_at: *slot,
        local: local(*slot),
        action: if existing.is_some() { SlotAction::Skip } else { SlotAction::Create },
        because: existing.map(|(_, status)| status.into()),
        run_id: existing.map(|(run, _)| run.to_string()),
    };
    wire::Backfill {
        id: None,
        dry_run: true,
        from,
        to,
        org_id: plan.org.as_ref().map(ToString::to_string),
        org_update: None,
        to_create: Some(plan.wanted().len() as u64),
        orgs: None,
        slots: plan.slots.iter().map(slot).collect(),
    }
}

/// A backfill that was begun.
pub fn begun_backfill(begun: &BackfillBegun, from: Timestamp, to: Timestamp) -> wire::Backfill {
    let mut document = backfill_plan(&begun.plan, from, to);
    for run in &begun.runs {
        if let Some(made) = document.slots.iter_mut().find(|own| Some(own.slot_at) == run.slot_at) {
            made.run_id = Some(run.id.to_string());
        }
    }
    let created = begun.runs.len() as u64;
    wire::Backfill { id: Some(begun.id.to_string()), dry_run: false, to_create: Some(created), ..document }
}

/// A backfill for all orgs that was begun.
pub fn begun_backfill_of_all(begun: &BackfillOfAll, from: Timestamp, to: Timestamp) -> wire::Backfill {
    wire::Backfill {
        id: Some(begun.id.to_string()),
        dry_run: false,
        from,
        to,
        org_id: None,
        org_update: Some(begun_org_update(&begun.org_update)),
        to_create: None,
        orgs: None,
        slots: Vec::new(),
    }
}

/// Converts the size of a backfill for all orgs.
pub fn backfill_size(size: BackfillSize, from: Timestamp, to: Timestamp) -> wire::Backfill {
    let BackfillSize { looked_at, more, with_slots, slots, .. } = size;
    wire::Backfill {
        id: None,
        dry_run: true,
        from,
        to,
        org_id: None,
        org_update: None,
        to_create: Some(slots),
        orgs: Some(wire::BackfillOrgs { looked_at, more, with_slots }),
        slots: Vec::new(),
    }
}

/// The progress of a backfill.
pub fn backfill_report(job_key: &JobKey, report: &BackfillReport) -> wire::BackfillReport {
    let count = |status: &str| report.runs.get(status).copied().unwrap_or(0);
    wire::BackfillReport {
        id: report.id.to_string(),
        job_key: job_key.to_string(),
        status: if report.is_done() { BackfillStatus::Done } else { BackfillStatus::Running },
        asked_at: report.asked.at,
        asked_by: report.asked.actor.clone(),
        reason: report.asked.reason.clone(),
        from: report.from,
        to: report.to,
        pending: count("pending"),
        running: count("running"),
        succeeded: count("succeeded"),
        failed: count("failed"),
        canceled: count("canceled"),
    }
}
