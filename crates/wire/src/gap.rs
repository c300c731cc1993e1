//! Slots without a run, and what happened at a time.

use everbell_core::{self as core, JobId, OrgId, RunId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Run;
use crate::words::words;

words!(
    /// Why slots got no run.
    GapReason from core::GapReason {
        /// No instance was running in time.
        Missed = "missed",
        /// They were folded into a later run.
        Coalesced = "coalesced",
        /// The job was paused.
        Paused = "paused",
        /// Their local time does not exist.
        DstGap = "dst_gap",
        /// They were older than `catchUpWindow`.
        Expired = "expired",
        /// The schedule could not be read.
        Errored = "errored",
        /// A calendar of the job excludes the day.
        Excluded = "excluded",
        /// A freeze was in force.
        Frozen = "frozen",
        /// The job starts after several others, and not all of them ended as required.
        Incomplete = "incomplete",
    }
);

words!(
    /// The explanation of what happened at a given time.
    ExplanationOutcome {
        /// A run.
        Run = "run",
        /// No run, for the reason of the gap.
        Gap = "gap",
        /// The slot is in the future.
        Ahead = "ahead",
        /// The slot fires at another time.
        Moved = "moved",
        /// The job was paused, and the slot has no outcome yet.
        Paused = "paused",
        /// The schedule could not be read, and the slot has no outcome yet.
        Errored = "errored",
        /// The job does not fire at this time.
        NoSlot = "no_slot",
        /// The job does not fire at set times: it starts when runs of another job end.
        Following = "following",
        /// A calendar of the job excludes the day.
        Excluded = "excluded",
        /// The job did not exist.
        BeforeCreation = "before_creation",
        /// Its history was pruned.
        Unknown = "unknown",
    }
);

/// Slots that got no run, and why.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// Its id.
    pub id: String,
    /// The id of the job's version.
    pub job_id: String,
    /// An alias of `jobId`.
    #[schema(deprecated)]
    pub job_definition_id: String,
    /// The key of the job. Absent in explanations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub job_key: Option<String>,
    /// The org, for a job with scope `per_org`.
    pub org_id: Option<String>,
    /// The first of the slots.
    pub first_slot_at: Timestamp,
    /// The last of the slots.
    pub last_slot_at: Timestamp,
    /// How many slots there are.
    pub slots: u64,
    /// Why they got no run.
    pub reason: GapReason,
    /// The actor that caused it, if there is one.
    pub actor: Option<String>,
    /// The run that the slots were folded into, for the reason `coalesced`. Absent in explanations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub run_id: Option<String>,
}

/// The explanation of what happened at a given time.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The time.
    pub at: Timestamp,
    /// The outcome.
    pub outcome: ExplanationOutcome,
    /// The outcome, in words.
    pub detail: String,
    /// The run of the slot, or the run that the slot was folded into.
    pub run: Option<Run>,
    /// The gap that contains the slot.
    pub gap: Option<Gap>,
    /// The slot before a time that is no slot.
    pub previous_slot_at: Option<Timestamp>,
    /// The slot after a time that is no slot.
    pub next_slot_at: Option<Timestamp>,
}

impl Gap {
    /// A gap of a job, or of a job and an org.
    pub fn new(job: JobId, org: Option<&OrgId>, gap: &core::Gap) -> Gap {
        Gap {
            id: gap.id(job, org).to_string(),
            job_id: job.to_string(),
            job_definition_id: job.to_string(),
            job_key: None,
            org_id: org.map(ToString::to_string),
            first_slot_at: gap.first_slot_at,
            last_slot_at: gap.last_slot_at,
            slots: gap.slots,
            reason: gap.reason.into(),
            actor: gap.actor.clone(),
            run_id: None,
        }
    }

    /// Adds the key of the job, if that is known.
    #[must_use]
    pub fn with_job_key(self, key: Option<&core::JobKey>) -> Gap {
        Gap { job_key: key.map(ToString::to_string), ..self }
    }

    /// Adds the run that its slots were folded into, if there is one.
    #[must_use]
    pub fn with_run(self, run: Option<RunId>) -> Gap {
        Gap { run_id: run.map(|run| run.to_string()), ..self }
    }
}
