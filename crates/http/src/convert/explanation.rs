//! Explanations of times.

use everbell::Explanation;
use everbell_core::chain::RunGroup;
use everbell_core::store::SlotOutcome;
use everbell_core::{Gap, JobId, JobKey, OrgId, Run, SkipReason, Zone};
use everbell_wire as wire;
use everbell_wire::gap::ExplanationOutcome as Outcome;
use jiff::Timestamp;

/// Converts the explanation of a time.
pub fn explanation(
    at: Timestamp,
    (job, org): (JobId, Option<&OrgId>),
    zone: Option<&Zone>,
    found: &Explanation,
) -> wire::Explanation {
    let (outcome, detail) = describe(found);
    let mut document =
        wire::Explanation { at, outcome, detail, run: None, gap: None, previous_slot_at: None, next_slot_at: None };
    match found {
        Explanation::Settled(SlotOutcome::Run(run)) => document.run = Some(wire::Run::new(run, zone)),
        Explanation::Settled(SlotOutcome::Gap(gap)) => document.gap = Some(wire::Gap::new(job, org, gap)),
        Explanation::Folded { gap, run } => {
            document.gap = Some(wire::Gap::new(job, org, gap));
            document.run = Some(wire::Run::new(run, zone));
        }
        Explanation::NoSlot { previous, next } => {
            document.previous_slot_at = *previous;
            document.next_slot_at = *next;
        }
        Explanation::Excluded { next, .. } => document.next_slot_at = *next,
        Explanation::Rolled { to, .. } => document.next_slot_at = Some(*to),
        Explanation::Following { run, .. } => {
            document.run = run.as_ref().map(|run| wire::Run::new(run, zone));
        }
        _ => {}
    }
    document
}

/// How many slots a gap has, and since when.
fn slots_of(gap: &Gap) -> String {
    let slots = if gap.slots == 1 { "one slot".to_owned() } else { format!("{} slots", gap.slots) };
    format!("{slots} from {}", gap.first_slot_at)
}

/// Returns the outcome as a word for programs and a sentence for people.
pub fn describe(explanation: &Explanation) -> (Outcome, String) {
    match explanation {
        Explanation::Settled(SlotOutcome::Run(run)) => match &run.skip {
            Some(SkipReason::Operator { actor }) => (Outcome::Run, format!("This slot was skipped by {actor}.")),
            Some(skip) => (Outcome::Run, format!("This slot was skipped: {skip}.")),
            None => {
                let attempts = run.attempts_in_words().map_or_else(String::new, |words| format!(": {words}"));
                let elsewhere = run.slot_at.filter(|slot| *slot != run.scheduled_at);
                let time =
                    elsewhere.map_or_else(String::new, |_| format!(" It was scheduled at {}.", run.scheduled_at));
                (Outcome::Run, format!("This slot has a run; its status is {}{attempts}.{time}", run.status))
            }
        },
        Explanation::Settled(SlotOutcome::Gap(gap)) => {
            (Outcome::Gap, format!("This slot has no run: {} ({}).", gap.reason, slots_of(gap)))
        }
        Explanation::Ahead => (Outcome::Ahead, "This slot is in the future or is being planned.".to_owned()),
        Explanation::Frozen(freeze) => {
            (Outcome::Ahead, format!("This slot is in the future and gets no run: {freeze}."))
        }
        Explanation::Moved { from, to } => {
            (Outcome::Moved, format!("This slot has no run: the run of {from} was moved to {to}."))
        }
        Explanation::Folded { gap, run } => {
            (Outcome::Gap, format!("This slot was merged into run {} ({}).", run.id, slots_of(gap)))
        }
        Explanation::Paused(pause) => (
            Outcome::Paused,
            format!(
                "The job was paused at this time: {}. The outcome is decided when the job is resumed.",
                pause.reason
            ),
        ),
        Explanation::Errored(error) => (
            Outcome::Errored,
            format!("The job could not fire at this time: {error}. The slot becomes a gap when the job is repaired."),
        ),
        Explanation::NoSlot { .. } => (Outcome::NoSlot, "The job does not fire at this time.".to_owned()),
        Explanation::Excluded { exclusion, .. } => {
            (Outcome::Excluded, format!("The job does not fire at this time: {exclusion}."))
        }
        Explanation::Rolled { exclusion, to } => {
            (Outcome::Moved, format!("This slot fires at {to} instead of its own time: {exclusion}."))
        }
        Explanation::BeforeCreation { created_at } => {
            (Outcome::BeforeCreation, format!("The job did not exist yet: it was created at {created_at}."))
        }
        Explanation::Following { rule, run, parents, group } => {
            let group = group.as_ref().map(|(group, missing)| waited(group, missing));
            let detail = format!("{}{}", following(rule, run.as_deref(), parents), group.unwrap_or_default());
            (Outcome::Following, detail)
        }
        _ => (
            Outcome::Unknown,
            "This slot is unknown: its history was pruned, or its version had already ended.".to_owned(),
        ),
    }
}

/// Names the runs that started a job without a clock, and the last ones that could have.
fn following(rule: &str, run: Option<&Run>, parents: &[(JobKey, Option<Box<Run>>)]) -> String {
    let last = match run.map(|run| (run, run.trigger.upstream())) {
        Some((run, causes @ [_, ..])) => {
            let named: Vec<String> = causes.iter().map(ToString::to_string).collect();
            let which = if causes.len() == 1 { "run" } else { "runs" };
            format!(
                "By this time its last run was {}, which {which} {} started at {}; its status is {}.",
                run.id,
                named.join(" and "),
                run.scheduled_at,
                run.status
            )
        }
        _ => "By this time nothing had started it.".to_owned(),
    };
    let waits = parents.iter().map(|(key, parent)| match parent {
        Some(parent) => format!(" The last run of {key} was {}; its status is {}.", parent.id, parent.status),
        None => format!(" {key} had no run."),
    });
    format!("The job does not fire at set times: it starts {rule}. {last}{}", waits.collect::<String>())
}

/// Describes the last group of runs that a job waited for.
fn waited(group: &RunGroup, missing: &[String]) -> String {
    let missing = if missing.is_empty() { String::new() } else { format!(": {}", missing.join(", ")) };
    match (group.started, group.closed_at) {
        (Some(run), _) => format!(" The runs of {} started run {run}.", group.name),
        (None, Some(at)) => format!(" The wait for runs of {} ended at {at}{missing}.", group.name),
        (None, None) => format!(" For {} it waits until {}{missing}.", group.name, group.deadline),
    }
}
