//! Runs and gaps, as the API shows them.

use everbell::{Explanation, RunRecord as Run};
use everbell_core::store::SlotOutcome;
use everbell_core::{Gap, JobId, OrgId, SkipReason, Trigger, Zone};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{SweepBegunDocument, parsed, raw, time, times};

/// A run. The first seventeen members never change their meaning.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Run)]
pub(crate) struct RunDocument {
    pub(crate) id: String,
    /// The version of the job; absent for a trial of a target.
    pub(crate) job_definition_id: Option<String>,
    pub(crate) job_key: Option<String>,
    pub(crate) job_version: Option<u32>,
    pub(crate) target: String,
    #[schema(value_type = Value)]
    pub(crate) payload_snapshot: Option<Box<RawValue>>,
    /// `scheduled`, `manual` or `ad_hoc`.
    pub(crate) trigger_type: &'static str,
    pub(crate) scheduled_at: String,
    pub(crate) started_at: Option<String>,
    pub(crate) finished_at: Option<String>,
    /// `pending`, `running`, `succeeded`, `failed`, `canceled` or `skipped`.
    pub(crate) status: &'static str,
    pub(crate) failure_code: Option<String>,
    pub(crate) failure_message: Option<String>,
    pub(crate) failure_details: Option<Value>,
    pub(crate) runner_instance_id: Option<String>,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    /// Of the last attempt.
    pub(crate) duration_ms: Option<i64>,
    /// How long after it was meant to it started. Only of a first attempt: later ones wait for each other.
    pub(crate) lag_ms: Option<i64>,
    /// `slot`, `catch_up`, `backfill`, `manual` or `ad_hoc`.
    pub(crate) origin: &'static str,
    /// Such as `schedule:0 8 * * *` or `manual:token:ops`.
    pub(crate) trigger_label: String,
    /// The nominal instant; absent for a run by hand.
    pub(crate) slot_at: Option<String>,
    /// The same in the zone of the job, or of the org if that has not changed since.
    pub(crate) slot_at_local: Option<String>,
    /// The current or last attempt, from 1; 0 before the first.
    pub(crate) attempt: u32,
    /// When the next attempt may begin, of a run that waits for one after a failure.
    pub(crate) next_attempt_at: Option<String>,
    /// How many earlier slots were folded into it.
    pub(crate) folded_slots: u64,
    /// It waits until the active runs of its job have ended.
    pub(crate) queued: bool,
    pub(crate) claimed_at: Option<String>,
    pub(crate) lease_until: Option<String>,
    /// Somebody asked it to stop.
    pub(crate) cancel_requested: bool,
    /// Who did.
    pub(crate) cancel_requested_by: Option<String>,
    /// `overlap`, `dependency` or `operator`.
    pub(crate) skip_reason: Option<&'static str>,
    /// The same in words.
    pub(crate) skip_detail: Option<String>,
    /// The run in the way of a skipped one.
    pub(crate) active_run_id: Option<String>,
    pub(crate) org_id: Option<String>,
    /// The org-local date of the slot.
    pub(crate) local_date: Option<String>,
    pub(crate) backfill_id: Option<String>,
    /// The same for the same slot on every instance and for every attempt.
    pub(crate) idempotency_key: String,
    /// What the handler returned.
    pub(crate) result: Option<Value>,
    /// The end of what its last attempt printed; so far, while it runs. Only for a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub(crate) output: Option<String>,
}

/// What became of a run by hand.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RunNow)]
pub(crate) struct RunNowDocument {
    /// `started`, `queued` or `skipped`.
    pub(crate) outcome: &'static str,
    pub(crate) run: RunDocument,
    /// The next fire of the job, which stays as it was.
    pub(crate) next_run_at: Option<String>,
}

/// What became of runs by hand for orgs.
#[derive(Serialize, ToSchema)]
#[schema(as = RunNowOrgs)]
pub(crate) struct RunNowOrgsDocument {
    /// One for each org that was named.
    pub(crate) items: Vec<OrgRunDocument>,
    /// The walk over the orgs that makes the runs, if they are for all of them.
    pub(crate) sweep: Option<SweepBegunDocument>,
}

/// What became of a run by hand for one of several orgs.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OrgRun)]
pub(crate) struct OrgRunDocument {
    pub(crate) org_id: String,
    /// `started`, `queued`, `skipped` or `refused`.
    pub(crate) outcome: &'static str,
    pub(crate) run: Option<RunDocument>,
    /// Why it was refused.
    pub(crate) detail: Option<String>,
}

/// A run by hand, or several for orgs.
#[derive(ToSchema)]
#[serde(untagged)]
#[schema(as = RunsNow)]
#[allow(dead_code, reason = "only its shape is wanted")]
pub(crate) enum RunsNowDocument {
    One(Box<RunNowDocument>),
    Orgs(RunNowOrgsDocument),
}

/// What became of a wish to cancel.
#[derive(Serialize, ToSchema)]
#[schema(as = Canceled)]
pub(crate) struct CanceledDocument {
    /// `canceled`, or `requested` if its handler was asked to stop.
    pub(crate) outcome: &'static str,
    pub(crate) run: RunDocument,
}

/// Slots that got no run, and why.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Gap)]
pub(crate) struct GapDocument {
    pub(crate) id: String,
    pub(crate) job_definition_id: String,
    pub(crate) org_id: Option<String>,
    pub(crate) first_slot_at: String,
    pub(crate) last_slot_at: String,
    pub(crate) slots: u64,
    /// `missed`, `coalesced`, `paused`, `dst_gap`, `expired` or `errored`.
    pub(crate) reason: &'static str,
    pub(crate) actor: Option<String>,
}

/// What became of a time.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Explanation)]
pub(crate) struct ExplanationDocument {
    pub(crate) at: String,
    /// `run`, `gap`, `ahead`, `moved`, `paused`, `errored`, `no_slot`, `before_creation` or `unknown`.
    pub(crate) outcome: &'static str,
    /// The same in words.
    pub(crate) detail: String,
    /// The run of the slot, or the run that a slot was folded into.
    pub(crate) run: Option<RunDocument>,
    pub(crate) gap: Option<GapDocument>,
    pub(crate) previous_slot_at: Option<String>,
    pub(crate) next_slot_at: Option<String>,
}

impl RunDocument {
    /// Without everything that a target got, returned or printed.
    pub(crate) fn without_contents(self) -> RunDocument {
        RunDocument {
            payload_snapshot: None,
            failure_code: None,
            failure_message: None,
            failure_details: None,
            result: None,
            output: None,
            ..self
        }
    }

    /// Without its output, for lists. The zone is that of its job.
    pub(crate) fn of(run: &Run, zone: Option<&Zone>) -> RunDocument {
        let failure = run.failure.as_ref();
        let local = run.slot_at.zip(zone).map(|(slot, zone)| slot.to_zoned(zone.as_jiff().clone()).to_string());
        RunDocument {
            id: run.id.to_string(),
            job_definition_id: run.job_id.map(|id| id.to_string()),
            job_key: run.job_key.as_ref().map(ToString::to_string),
            job_version: run.job_version,
            target: run.target.to_string(),
            payload_snapshot: raw(&run.payload),
            trigger_type: run.trigger.kind().as_str(),
            scheduled_at: time(run.scheduled_at),
            started_at: times(run.started_at),
            finished_at: times(run.finished_at),
            status: run.status.as_str(),
            failure_code: failure.map(|failure| failure.code.as_str().to_owned()),
            failure_message: failure.map(|failure| failure.message.clone()),
            failure_details: parsed(failure.and_then(|failure| failure.details.as_ref())),
            runner_instance_id: run.claimed.map(|(_, instance)| instance.to_string()),
            created_at: time(run.created_at),
            updated_at: time(run.finished_at.or(run.started_at).unwrap_or(run.created_at)),
            duration_ms: between_ms(run.started_at, run.finished_at),
            // Of another attempt it would be the wait between attempts.
            lag_ms: between_ms(Some(run.scheduled_at), run.started_at.filter(|_| run.attempt <= 1)),
            origin: origin(run),
            trigger_label: run.trigger.to_string(),
            slot_at: times(run.slot_at),
            slot_at_local: local,
            attempt: run.attempt,
            next_attempt_at: times(run.next_attempt_at),
            folded_slots: run.folded,
            queued: run.held,
            claimed_at: times(run.claimed.map(|(at, _)| at)),
            lease_until: times(run.lease_until),
            cancel_requested: run.cancel_by.is_some(),
            cancel_requested_by: run.cancel_by.clone(),
            skip_reason: run.skip.as_ref().map(SkipReason::as_str),
            skip_detail: run.skip.as_ref().map(ToString::to_string),
            active_run_id: match &run.skip {
                Some(SkipReason::Overlap { blocking }) => Some(blocking.to_string()),
                _ => None,
            },
            org_id: run.org.as_ref().map(ToString::to_string),
            local_date: run.local_date.map(|date| date.to_string()),
            backfill_id: match &run.trigger {
                Trigger::Backfill(id) => Some(id.to_string()),
                _ => None,
            },
            idempotency_key: run.idempotency_key(),
            result: parsed(run.result.as_ref()),
            output: None,
        }
    }

    /// With its output.
    pub(crate) fn whole(run: &Run, zone: Option<&Zone>) -> RunDocument {
        RunDocument { output: Some(run.output.clone().unwrap_or_default()), ..RunDocument::of(run, zone) }
    }
}

fn origin(run: &Run) -> &'static str {
    match &run.trigger {
        Trigger::Schedule(_) if run.catch_up => "catch_up",
        Trigger::Schedule(_) => "slot",
        Trigger::Backfill(_) => "backfill",
        Trigger::Manual(_) => "manual",
        Trigger::AdHoc(_) => "ad_hoc",
    }
}

/// Milliseconds from the one to the other; never negative.
pub(super) fn between_ms(from: Option<Timestamp>, to: Option<Timestamp>) -> Option<i64> {
    let (from, to) = from.zip(to)?;
    Some(((to.as_microsecond() - from.as_microsecond()) / 1_000).max(0))
}

impl GapDocument {
    pub(crate) fn of(job: JobId, org: Option<&OrgId>, gap: &Gap) -> GapDocument {
        GapDocument {
            id: gap.id(job, org).to_string(),
            job_definition_id: job.to_string(),
            org_id: org.map(ToString::to_string),
            first_slot_at: time(gap.first_slot_at),
            last_slot_at: time(gap.last_slot_at),
            slots: gap.slots,
            reason: gap.reason.as_str(),
            actor: gap.actor.clone(),
        }
    }
}

impl ExplanationDocument {
    pub(crate) fn of(
        at: Timestamp,
        (job, org): (JobId, Option<&OrgId>),
        zone: Option<&Zone>,
        told: &Explanation,
    ) -> ExplanationDocument {
        let (outcome, detail) = in_words(told);
        let mut document = ExplanationDocument {
            at: time(at),
            outcome,
            detail,
            run: None,
            gap: None,
            previous_slot_at: None,
            next_slot_at: None,
        };
        match told {
            Explanation::Settled(SlotOutcome::Run(run)) => document.run = Some(RunDocument::of(run, zone)),
            Explanation::Settled(SlotOutcome::Gap(gap)) => document.gap = Some(GapDocument::of(job, org, gap)),
            Explanation::Folded { gap, run } => {
                document.gap = Some(GapDocument::of(job, org, gap));
                document.run = Some(RunDocument::of(run, zone));
            }
            Explanation::NoSlot { previous, next } => {
                document.previous_slot_at = times(*previous);
                document.next_slot_at = times(*next);
            }
            Explanation::BeforeCreation { .. }
            | Explanation::Ahead
            | Explanation::Moved { .. }
            | Explanation::Paused(_)
            | Explanation::Errored(_)
            | Explanation::Unknown => {}
        }
        document
    }
}

/// How many slots a gap has, and since when.
fn slots_of(gap: &Gap) -> String {
    let slots = if gap.slots == 1 { "one slot".to_owned() } else { format!("{} slots", gap.slots) };
    format!("{slots} from {}", gap.first_slot_at)
}

/// A word for programs and a sentence for people.
pub(crate) fn in_words(told: &Explanation) -> (&'static str, String) {
    match told {
        Explanation::Settled(SlotOutcome::Run(run)) => match &run.skip {
            Some(SkipReason::Operator { actor }) => ("run", format!("This slot was skipped by {actor}.")),
            Some(skip) => ("run", format!("This slot was skipped: {skip}.")),
            None => ("run", format!("This slot got a run, which is {}.", run.status)),
        },
        Explanation::Settled(SlotOutcome::Gap(gap)) => {
            ("gap", format!("This slot got no run: {} ({}).", gap.reason, slots_of(gap)))
        }
        Explanation::Ahead => ("ahead", "This slot is still to come, or is being planned.".to_owned()),
        Explanation::Moved { from, to } => {
            ("moved", format!("This slot has no fire of its own: the fire of {from} was moved to {to}."))
        }
        Explanation::Folded { gap, run } => {
            ("gap", format!("This slot was folded into another run: {} ({}).", run.id, slots_of(gap)))
        }
        Explanation::Paused(pause) => (
            "paused",
            format!(
                "The job was paused when this slot went by: {}. It gets its outcome when the job is resumed.",
                pause.reason
            ),
        ),
        Explanation::Errored(error) => (
            "errored",
            format!("The job could not fire when this slot went by: {error}. It becomes a gap when that is mended."),
        ),
        Explanation::NoSlot { .. } => ("no_slot", "The job does not fire at this time.".to_owned()),
        Explanation::BeforeCreation { created_at } => {
            ("before_creation", format!("The job did not exist yet: it was made at {created_at}."))
        }
        Explanation::Unknown => (
            "unknown",
            "Nothing is known of this slot any more: its history was pruned, or its version ended before.".to_owned(),
        ),
    }
}
