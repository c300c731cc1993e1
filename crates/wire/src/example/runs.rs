//! Runs, gaps and statistics.

use std::collections::BTreeMap;

use serde_json::json;

use super::{ACTOR, Example, INSTANCE_ID, JOB_ID, NEXT_RUN_AT, NOW, RUN_ID, SLOT_AT, at, raw};
use crate::gap::{ExplanationOutcome, GapReason};
use crate::job::{After, Chain, ChainJob, ChainOn};
use crate::run::{CancelOutcome, Origin, RunNowOutcome, RunStatus, Skip, TriggerType};
use crate::{Canceled, Explanation, Gap, RemoteRun, Run, RunNow, RunsNow, Stats, Top, TopBy, TopItem};

const MANUAL_RUN_ID: &str = "01a49743-4b00-7952-a964-6ea2a0366012";

impl Example for Run {
    fn example() -> Run {
        Run {
            id: RUN_ID.to_owned(),
            trigger_type: TriggerType::Scheduled,
            scheduled_at: at(SLOT_AT),
            started_at: Some(at("2027-03-15T07:00:00.05Z")),
            finished_at: Some(at("2027-03-15T07:00:04.25Z")),
            status: RunStatus::Succeeded,
            runner_instance_id: Some(INSTANCE_ID.to_owned()),
            created_at: at("2027-03-15T07:00:00.02Z"),
            updated_at: at("2027-03-15T07:00:04.25Z"),
            duration_ms: Some(4_200),
            lag_ms: Some(50),
            origin: Origin::Slot,
            trigger_label: "schedule:0 8 * * 1-5".to_owned(),
            slot_at: Some(at(SLOT_AT)),
            slot_at_local: Some("2027-03-15T08:00:00+01:00[Europe/Berlin]".to_owned()),
            attempt: 1,
            claimed_at: Some(at("2027-03-15T07:00:00.04Z")),
            idempotency_key: format!("run:{RUN_ID}"),
            trace_id: None,
            result: Some(json!({ "sent": 12 })),
            output: Some("12 reports sent\n".to_owned()),
            ..manual_run()
        }
    }

    fn example_item() -> Run {
        Run { output: None, ..Run::example() }
    }
}

/// A run that was just asked for.
fn manual_run() -> Run {
    Run {
        id: MANUAL_RUN_ID.to_owned(),
        job_definition_id: Some(JOB_ID.to_owned()),
        job_id: Some(JOB_ID.to_owned()),
        job_key: Some("daily-report".to_owned()),
        job_version: Some(1),
        target: "send-report".to_owned(),
        payload_snapshot: raw(&json!({ "format": "pdf" })),
        trigger_type: TriggerType::Manual,
        scheduled_at: at(NOW),
        started_at: None,
        finished_at: None,
        status: RunStatus::Pending,
        failure_code: None,
        failure_message: None,
        failure_details: None,
        runner_instance_id: None,
        created_at: at(NOW),
        updated_at: at(NOW),
        duration_ms: None,
        lag_ms: None,
        origin: Origin::Manual,
        trigger_label: format!("manual:{ACTOR}"),
        slot_at: None,
        slot_at_local: None,
        attempt: 0,
        earlier_attempts: Vec::new(),
        next_attempt_at: None,
        folded_slots: 0,
        queued: false,
        claimed_at: None,
        lease_until: None,
        cancel_requested: false,
        cancel_requested_by: None,
        skip_reason: None,
        skip_detail: None,
        active_run_id: None,
        org_id: None,
        local_date: None,
        backfill_id: None,
        upstream_run_id: None,
        upstream_run_ids: Vec::new(),
        started_runs: None,
        idempotency_key: format!("run:{MANUAL_RUN_ID}"),
        trace_id: Some("4bf92f3577b34da6a3ce929d0e0e4736".to_owned()),
        remote: None,
        result: None,
        output: None,
    }
}

impl Example for RemoteRun {
    fn example() -> RemoteRun {
        RemoteRun {
            run_id: RUN_ID.to_owned(),
            attempt: 1,
            status: RunStatus::Running,
            cancel_requested: false,
            lease_until: Some(at("2027-03-15T09:31:00Z")),
            deadline: Some(at("2027-03-15T10:00:00Z")),
        }
    }
}

impl Example for RunNow {
    fn example() -> RunNow {
        RunNow { outcome: RunNowOutcome::Started, run: manual_run(), next_run_at: Some(at(NEXT_RUN_AT)) }
    }
}

/// Returns a requested run that was skipped because another one was active.
pub fn skipped_run() -> RunNow {
    let run = Run {
        status: RunStatus::Skipped,
        finished_at: Some(at(NOW)),
        skip_reason: Some(Skip::Overlap),
        skip_detail: Some(format!("run {RUN_ID} was active")),
        active_run_id: Some(RUN_ID.to_owned()),
        ..manual_run()
    };
    RunNow { outcome: RunNowOutcome::Skipped, run, ..RunNow::example() }
}

impl Example for RunsNow {
    fn example() -> RunsNow {
        RunsNow::One(Box::new(RunNow::example()))
    }
}

/// Returns the trial of a target.
pub fn tried_target() -> RunNow {
    let run = Run {
        job_definition_id: None,
        job_id: None,
        job_key: None,
        job_version: None,
        trigger_type: TriggerType::AdHoc,
        origin: Origin::AdHoc,
        trigger_label: format!("ad_hoc:{ACTOR}"),
        ..manual_run()
    };
    RunNow { run, next_run_at: None, ..RunNow::example() }
}

impl Example for Canceled {
    fn example() -> Canceled {
        let finished_at = at("2027-03-15T09:30:01Z");
        let run = Run {
            status: RunStatus::Canceled,
            finished_at: Some(finished_at),
            updated_at: finished_at,
            cancel_requested: true,
            cancel_requested_by: Some(ACTOR.to_owned()),
            ..manual_run()
        };
        Canceled { outcome: CancelOutcome::Canceled, run }
    }
}

impl Example for Gap {
    fn example() -> Gap {
        Gap {
            id: "01a48729-9f00-8d31-b2c4-7f0e5a6b9c55".to_owned(),
            job_id: JOB_ID.to_owned(),
            job_definition_id: JOB_ID.to_owned(),
            job_key: Some("daily-report".to_owned()),
            org_id: None,
            first_slot_at: at("2027-03-11T07:00:00Z"),
            last_slot_at: at("2027-03-12T07:00:00Z"),
            slots: 2,
            reason: GapReason::Paused,
            actor: Some(ACTOR.to_owned()),
            run_id: None,
        }
    }
}

impl Example for Explanation {
    fn example() -> Explanation {
        Explanation {
            at: at(SLOT_AT),
            outcome: ExplanationOutcome::Run,
            detail: "This slot has a run; its status is succeeded.".to_owned(),
            run: Some(Run::example_item()),
            gap: None,
            previous_slot_at: None,
            next_slot_at: None,
        }
    }
}

impl Example for Chain {
    fn example() -> Chain {
        let after = |job: &str| After { job: job.to_owned(), on: ChainOn::Success, manual: false };
        let job = |key: &str, parents: &[&str]| ChainJob {
            job_key: key.to_owned(),
            after: parents.iter().map(|parent| after(parent)).collect(),
        };
        Chain { jobs: vec![job("daily-report", &[]), job("mail-report", &["daily-report"])], groups: Vec::new() }
    }
}

impl Example for Stats {
    fn example() -> Stats {
        Stats {
            from: at("2027-02-13T09:30:00Z"),
            runs: 8,
            complete: true,
            by_status: BTreeMap::from([("failed".to_owned(), 2), ("succeeded".to_owned(), 6)]),
            by_failure_code: BTreeMap::from([("timeout".to_owned(), 2)]),
            success_rate: Some(0.75),
            duration_ms_p50: Some(4_200),
            duration_ms_p95: Some(900_000),
            duration_ms_max: Some(900_000),
            lag_ms_p50: Some(50),
            lag_ms_p95: Some(120),
            lag_ms_max: Some(120),
        }
    }
}

impl Example for Top {
    fn example() -> Top {
        Top {
            from: at("2027-03-14T09:00:00Z"),
            counted_since: at("2027-03-14T09:00:00Z"),
            complete: true,
            by: TopBy::Failures,
            items: vec![TopItem {
                job_key: Some("daily-report".to_owned()),
                target: None,
                runs: 48,
                succeeded: 44,
                failed: 4,
                canceled: 0,
                skipped: 0,
                failure_rate: Some(4.0 / 48.0),
                time_spent_ms: 201_600,
                p50_ms: Some(4_200),
                p95_ms: Some(9_000),
                longest_ms: Some(9_400),
                mean_delay_ms: Some(50),
                max_delay_ms: Some(120),
            }],
        }
    }
}
