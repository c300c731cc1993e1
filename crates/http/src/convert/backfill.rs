//! Backfills.

use everbell::client::{BackfillBegun, BackfillOfAll, BackfillPlan, BackfillReport, BackfillSize, BackfillSlot};
use everbell_wire as wire;
use everbell_wire::backfill::{BackfillOrder, BackfillStatus, SlotAction};
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
        to_create: Some(plan.to_create()),
        total: Some(plan.total),
        exact: plan.is_complete(),
        order: Some(order(plan.settings.order)),
        parallel: plan.settings.parallel,
        rate: plan.settings.rate.map(|rate| rate.to_string()),
        paused_ok: plan.settings.paused_ok,
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
    wire::Backfill { id: Some(begun.id.to_string()), dry_run: false, ..document }
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
        total: None,
        exact: false,
        order: None,
        parallel: None,
        rate: None,
        paused_ok: false,
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
        total: None,
        exact: false,
        order: None,
        parallel: None,
        rate: None,
        paused_ok: false,
        orgs: Some(wire::BackfillOrgs { looked_at, more, with_slots }),
        slots: Vec::new(),
    }
}

fn order(order: everbell_core::backfill::BackfillOrder) -> BackfillOrder {
    BackfillOrder::from_word(order.as_str())
}

/// The progress of a backfill.
pub fn backfill_report(report: &BackfillReport) -> wire::BackfillReport {
    let count = |status: &str| report.runs.get(status).copied().unwrap_or(0);
    let details = report.details.as_deref();
    let (backfill, progress) = (details.map(|details| &details.backfill), details.map(|details| &details.progress));
    let settings = backfill.map(|backfill| &backfill.settings);
    wire::BackfillReport {
        id: report.id.to_string(),
        job_key: report.job_key.to_string(),
        status: BackfillStatus::from_word(report.status().as_str()),
        asked_at: report.asked_at,
        asked_by: report.asked_by.clone(),
        reason: report.reason.clone(),
        from: report.from,
        to: report.to,
        pending: count("pending"),
        running: count("running"),
        succeeded: count("succeeded"),
        failed: count("failed"),
        canceled: count("canceled"),
        org_id: backfill.and_then(|backfill| backfill.org.as_ref()).map(ToString::to_string),
        left: progress.map_or(0, |progress| progress.left),
        existing: progress.map_or(0, |progress| progress.counts.existing),
        order: settings.map(|settings| order(settings.order)),
        parallel: settings.and_then(|settings| settings.parallel),
        rate: settings.and_then(|settings| settings.rate).map(|rate| rate.to_string()),
        paused_ok: settings.is_some_and(|settings| settings.paused_ok),
        runs_per_hour: progress.and_then(|progress| progress.per_hour),
        estimated_done_at: progress.and_then(|progress| progress.done_at),
        waits_for: details.and_then(|details| details.waits_for).map(str::to_owned),
        stopped_because: backfill.and_then(|backfill| backfill.stopped_because.clone()),
    }
}
