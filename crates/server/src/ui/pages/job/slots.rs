//! What became of slots: gaps, and the answer to "what happened at this time?".

use everbell::client::Explanation;
use everbell_core::store::{GapFilter, PageRequest, SlotOutcome};
use everbell_core::{Gap, GapReason, Zone};
use jiff::Timestamp;

use crate::http::model::in_words;
use crate::http::problem::Problem;
use crate::ui::clock::Clock;
use crate::ui::markup::Markup;
use crate::ui::pages::action::Subject;
use crate::ui::visit::Visit;

/// Slots in a row that got no run.
pub(super) struct GapLine {
    pub(super) from: Markup,
    pub(super) to: Option<Markup>,
    pub(super) slots: u64,
    pub(super) reason: &'static str,
    pub(super) actor: Option<String>,
}

impl GapLine {
    pub(super) fn of(gap: &Gap, clock: &Clock, zone: &Zone) -> GapLine {
        GapLine {
            from: clock.at(gap.first_slot_at, Some(zone)),
            to: (gap.slots > 1).then(|| clock.at(gap.last_slot_at, Some(zone))),
            slots: gap.slots,
            reason: reason(gap.reason),
            actor: gap.actor.clone(),
        }
    }
}

fn reason(reason: GapReason) -> &'static str {
    match reason {
        GapReason::Missed => "missed: nothing was running, and they were not caught up",
        GapReason::Coalesced => "one later run stands for them",
        GapReason::Paused => "the job was paused",
        GapReason::DstGap => "the local time does not exist on that day",
        GapReason::Expired => "older than the job wants to catch up",
        GapReason::Errored => "the job could not fire",
    }
}

/// The newest gaps of the living version; nothing for who may not read runs.
pub(super) async fn gaps(visit: &Visit, subject: &Subject, limit: u32) -> Result<Option<Vec<Gap>>, Problem> {
    if !visit.may_read_runs() {
        return Ok(None);
    }
    let filter = GapFilter { job_id: Some(subject.row.job.definition.id), ..GapFilter::default() };
    let page = visit.runs().gaps(&filter, &PageRequest { limit, after: None }).await?;
    Ok(Some(page.items.into_iter().map(|(_, _, gap)| gap).collect()))
}

/// What became of a time.
pub(super) struct Told {
    pub(super) at: Markup,
    pub(super) text: String,
    pub(super) run: Option<String>,
    pub(super) before: Option<Markup>,
    pub(super) after: Option<Markup>,
}

/// The answer, if something was asked by who may know.
pub(super) async fn told(visit: &Visit, subject: &Subject, at: Option<Timestamp>) -> Result<Option<Told>, Problem> {
    let Some(at) = at.filter(|_| visit.may_read_runs()) else { return Ok(None) };
    let told = visit.jobs().explain(subject.key.as_str(), at).await?;
    let (clock, zone) = (visit.clock(), Some(&subject.zone));
    let (before, after) = match &told {
        Explanation::NoSlot { previous, next } => (*previous, *next),
        _ => (None, None),
    };
    Ok(Some(Told {
        at: clock.day(at, zone),
        text: in_words(&told).1,
        run: match &told {
            Explanation::Settled(SlotOutcome::Run(run)) => Some(run.id.to_string()),
            _ => None,
        },
        before: before.map(|at| clock.day(at, zone)),
        after: after.map(|at| clock.day(at, zone)),
    }))
}
