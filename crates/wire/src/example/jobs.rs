//! Jobs, and actions on them.

use std::collections::BTreeMap;

use serde_json::json;

use super::{ACTOR, BACKFILL_ID, CREATED_AT, Example, JOB_ID, NEXT_JOB_ID, NEXT_RUN_AT, NOW, RUN_ID, SLOT_AT, at, raw};
use crate::backfill::{BackfillOrder, BackfillStatus, SlotAction};
use crate::bulk::{BulkAction, BulkOutcome};
use crate::job::{JobStatus, ResumeAction, ScheduleType, Scope, Source};
use crate::policies::Retry;
use crate::run::RunStatus;
use crate::{
    Backfill, BackfillReport, BackfillSlot, Bulk, BulkItem, ChangedField, Fire, Fires, Job, JobDeclaration, LastRun,
    NewVersion, Paused, Policies, Preview, PurgedJob, Resumed, Resumption, StoppedBackfill, Superseded,
};

impl Example for Job {
    fn example() -> Job {
        let last_run = LastRun {
            id: RUN_ID.to_owned(),
            status: RunStatus::Succeeded,
            scheduled_at: at(SLOT_AT),
            finished_at: Some(at("2027-03-15T07:00:04.25Z")),
            duration_ms: Some(4_200),
            failure_code: None,
        };
        Job { last_run: Some(last_run), ..created_job() }
    }

    fn example_item() -> Job {
        Job { warnings: None, ..Job::example() }
    }
}

/// Returns the job as it is created.
pub fn created_job() -> Job {
    Job {
        id: JOB_ID.to_owned(),
        job_key: "daily-report".to_owned(),
        version: 1,
        target: "send-report".to_owned(),
        payload: raw(&json!({ "format": "pdf" })),
        schedule_type: ScheduleType::Recurring,
        cron_expression: Some("0 8 * * 1-5".to_owned()),
        run_at: None,
        after: None,
        after_group: None,
        after_within: None,
        timezone: "Europe/Berlin".to_owned(),
        status: JobStatus::Active,
        pause_reason: None,
        supersedes_job_id: None,
        created_by: ACTOR.to_owned(),
        updated_by: ACTOR.to_owned(),
        created_at: at(CREATED_AT),
        updated_at: at(CREATED_AT),
        description: "Sends the sales report".to_owned(),
        schedule_text: "At 08:00 on weekdays".to_owned(),
        next_run_at: Some(at(NEXT_RUN_AT)),
        next_org_id: None,
        next_run_at_local: Some("2027-03-16T08:00:00+01:00[Europe/Berlin]".to_owned()),
        rescheduled_from: None,
        next_run_frozen: None,
        next_run_frozen_until: None,
        last_run: None,
        consecutive_failures: 0,
        error: None,
        paused_by: None,
        paused_at: None,
        paused_until: None,
        start_at: None,
        end_at: None,
        policies: policies(),
        labels: BTreeMap::from([("team".to_owned(), "sales".to_owned())]),
        scope: Scope::Global,
        source: Source::Api,
        declaration: None,
        revision: 1,
        warnings: Some(Vec::new()),
    }
}

/// Returns a job that went back to its declaration.
pub fn restored_job() -> Job {
    let declaration = JobDeclaration { source: Source::Code, app: "billing".to_owned(), version: 3, edited: false };
    Job {
        version: 3,
        revision: 5,
        source: Source::Code,
        declaration: Some(declaration),
        supersedes_job_id: Some(NEXT_JOB_ID.to_owned()),
        ..Job::example()
    }
}

fn policies() -> Policies {
    let retry = Retry { max_attempts: 3, initial: "PT30S".to_owned(), max: "PT1H".to_owned() };
    Policies { retry, ..Policies::default() }
}

/// The job after a change now.
fn changed(job: Job) -> Job {
    Job { updated_at: at(NOW), revision: 2, ..job }
}

/// Returns the next version of the job, with another timeout.
pub fn updated_job() -> Job {
    Job {
        id: NEXT_JOB_ID.to_owned(),
        version: 2,
        supersedes_job_id: Some(JOB_ID.to_owned()),
        created_at: at(NOW),
        policies: Policies { timeout: "PT30M".to_owned(), ..policies() },
        ..changed(Job::example())
    }
}

/// Returns the job after it was retired.
pub fn retired_job() -> Job {
    Job { status: JobStatus::Retired, next_run_at: None, next_run_at_local: None, ..changed(Job::example()) }
}

/// Returns the job after its next run was moved by two hours.
pub fn rescheduled_job() -> Job {
    Job {
        next_run_at: Some(at("2027-03-16T09:00:00Z")),
        next_run_at_local: Some("2027-03-16T10:00:00+01:00[Europe/Berlin]".to_owned()),
        rescheduled_from: Some(at(NEXT_RUN_AT)),
        ..changed(Job::example())
    }
}

/// Returns the job after its next two runs were skipped.
pub fn skipped_job() -> Job {
    Job {
        next_run_at: Some(at("2027-03-18T07:00:00Z")),
        next_run_at_local: Some("2027-03-18T08:00:00+01:00[Europe/Berlin]".to_owned()),
        ..changed(Job::example())
    }
}

impl Example for ChangedField {
    fn example() -> ChangedField {
        ChangedField { field: "policies.timeout".to_owned(), from: json!("PT15M"), to: json!("PT30M") }
    }
}

impl Example for NewVersion {
    fn example() -> NewVersion {
        let superseded = Superseded {
            id: JOB_ID.to_owned(),
            version: 1,
            status: JobStatus::Retired,
            next_run_at: Some(at(NEXT_RUN_AT)),
        };
        NewVersion { job: updated_job(), superseded, changes: vec![ChangedField::example()] }
    }
}

impl Example for Paused {
    fn example() -> Paused {
        let job = Job {
            status: JobStatus::Paused,
            pause_reason: Some("The mail server is down".to_owned()),
            paused_by: Some(ACTOR.to_owned()),
            paused_at: Some(at(NOW)),
            paused_until: Some(at("2027-03-16T05:00:00Z")),
            next_run_at: None,
            next_run_at_local: None,
            ..changed(Job::example())
        };
        Paused { job, held_runs: 0, canceled_runs: 0 }
    }
}

impl Example for PurgedJob {
    fn example() -> PurgedJob {
        PurgedJob { job_key: "daily-report".to_owned(), versions: 2, runs: 14, gaps: 1 }
    }
}

impl Example for Resumed {
    fn example() -> Resumed {
        let resumed =
            Resumption { missed_slots: 0, action: ResumeAction::FireOnce, run_ids: Vec::new(), released_runs: 0 };
        Resumed { job: changed(Job::example()), resumed }
    }
}

impl Example for Bulk {
    fn example() -> Bulk {
        let item = BulkItem {
            id: JOB_ID.to_owned(),
            job_key: "daily-report".to_owned(),
            outcome: BulkOutcome::WouldChange,
            next_run_at: Some(at(NEXT_RUN_AT)),
            run_id: None,
            detail: None,
            changes: Vec::new(),
        };
        Bulk { dry_run: true, action: BulkAction::Pause, changed: 1, items: vec![item] }
    }
}

impl Example for Backfill {
    fn example() -> Backfill {
        let slot = BackfillSlot {
            slot_at: at("2027-03-01T07:00:00Z"),
            local: "2027-03-01T08:00:00+01:00[Europe/Berlin]".to_owned(),
            action: SlotAction::Create,
            because: None,
            run_id: Some("01a44e99-4d80-8c07-8a55-6b1d03b5e9f4".to_owned()),
        };
        Backfill {
            id: Some(BACKFILL_ID.to_owned()),
            dry_run: false,
            from: at("2027-02-28T23:00:00Z"),
            to: at("2027-03-01T23:00:00Z"),
            org_id: None,
            org_update: None,
            to_create: Some(1),
            total: Some(1),
            exact: true,
            order: Some(BackfillOrder::Oldest),
            parallel: Some(4),
            rate: Some("10/m".to_owned()),
            paused_ok: false,
            orgs: None,
            slots: vec![slot],
        }
    }
}

/// Returns the plan of a backfill.
pub fn planned_backfill() -> Backfill {
    let slots =
        |slots: Vec<BackfillSlot>| slots.into_iter().map(|slot| BackfillSlot { run_id: None, ..slot }).collect();
    let Backfill { slots: created, .. } = Backfill::example();
    Backfill { id: None, dry_run: true, slots: slots(created), ..Backfill::example() }
}

impl Example for BackfillReport {
    fn example() -> BackfillReport {
        BackfillReport {
            id: BACKFILL_ID.to_owned(),
            job_key: "daily-report".to_owned(),
            status: BackfillStatus::Running,
            asked_at: at(NOW),
            asked_by: ACTOR.to_owned(),
            reason: Some("The report of March 1 is missing".to_owned()),
            from: at("2027-02-28T23:00:00Z"),
            to: at("2027-03-01T23:00:00Z"),
            pending: 1_195,
            running: 4,
            succeeded: 240,
            failed: 1,
            canceled: 0,
            org_id: None,
            left: 1_195,
            existing: 0,
            order: Some(BackfillOrder::Oldest),
            parallel: Some(4),
            rate: Some("10/m".to_owned()),
            paused_ok: false,
            runs_per_hour: Some(590),
            estimated_done_at: Some(at("2027-03-15T11:32:00Z")),
            waits_for: None,
            stopped_because: None,
        }
    }
}

impl Example for StoppedBackfill {
    fn example() -> StoppedBackfill {
        StoppedBackfill { id: BACKFILL_ID.to_owned(), canceled: 1 }
    }
}

impl Example for Fires {
    fn example() -> Fires {
        let fire = |day| {
            Fire::at(at(&format!("2027-03-{day}T07:00:00Z")), format!("2027-03-{day}T08:00:00+01:00[Europe/Berlin]"))
        };
        Fires { items: vec![fire(16), fire(17)] }
    }
}

impl Example for Preview {
    fn example() -> Preview {
        Preview {
            valid: true,
            expression: "0 8 * * 1-5".to_owned(),
            normalized: "0 8 * * 1-5".to_owned(),
            description: "At 08:00 on weekdays".to_owned(),
            timezone: "Europe/Berlin".to_owned(),
            next: Fires::example().items,
            warnings: Vec::new(),
        }
    }
}
