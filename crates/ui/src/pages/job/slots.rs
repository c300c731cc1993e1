//! Gaps of a job, and explanations of single slots.

use everbell::OrgId;
use everbell::client::Explanation;
use everbell_core::store::{GapFilter, PageRequest, SlotOutcome};
use everbell_core::{Gap, GapReason, JobId, RunId, Zone};
use jiff::Timestamp;

use crate::clock::Clock;
use crate::markup::Markup;
use crate::pages::action::Subject;
use crate::request::UiRequest;
use everbell_http::convert::describe;
use everbell_http::problem::Problem;

/// A gap of a version, and of an org where it is for one.
pub(super) type GapOfJob = (JobId, Option<OrgId>, Gap);

/// Slots in a row that got no run.
pub(super) struct GapLine {
    pub(super) from: Markup,
    pub(super) to: Option<Markup>,
    pub(super) slots: u64,
    pub(super) reason: &'static str,
    pub(super) actor: Option<String>,
    /// For whom, of a job that fires for each org.
    pub(super) org: Option<String>,
    /// The run that the slots were merged into.
    pub(super) run: Option<String>,
}

impl GapLine {
    pub(super) fn new((_, org, gap): &GapOfJob, run: Option<RunId>, clock: &Clock, zone: &Zone) -> GapLine {
        GapLine {
            from: clock.at(gap.first_slot_at, Some(zone)),
            to: (gap.slots > 1).then(|| clock.at(gap.last_slot_at, Some(zone))),
            slots: gap.slots,
            reason: reason(gap.reason),
            actor: gap.actor.clone(),
            org: org.as_ref().map(ToString::to_string),
            run: run.map(|run| run.to_string()),
        }
    }
}

fn reason(reason: GapReason) -> &'static str {
    match reason {
        GapReason::Missed => "missed: no scheduler was running, and the job does not catch up",
        GapReason::Coalesced => "merged into one later run",
        GapReason::Paused => "the job was paused",
        GapReason::DstGap => "the local time does not exist on that day",
        GapReason::Expired => "older than the catch-up window of the job",
        GapReason::Errored => "the job could not fire",
        GapReason::Excluded => "a calendar of the job excludes the day",
        GapReason::Frozen => "a freeze was in force",
        GapReason::Incomplete => "not all jobs that it starts after ended as required",
        other => other.as_str(),
    }
}

/// Loads the newest gaps of all versions. Returns `None` if the role may not read runs.
pub(super) async fn gaps(
    request: &UiRequest,
    subject: &Subject,
    limit: u32,
) -> Result<Option<Vec<(GapOfJob, Option<RunId>)>>, Problem> {
    if !request.may_read_runs() {
        return Ok(None);
    }
    let filter = GapFilter { job_key: Some(subject.row.job.definition.key.clone()), ..GapFilter::default() };
    let page = request.runs().gaps(&filter, &PageRequest { limit, after: None }).await?;
    let mut joined: Vec<GapOfJob> = Vec::new();
    for (job, org, gap) in page.items {
        match joined.last_mut() {
            Some((_, None, later)) if org.is_none() && is_right_before(subject, &gap, later) => {
                later.first_slot_at = gap.first_slot_at;
                later.slots += gap.slots;
            }
            _ => joined.push((job, org, gap)),
        }
    }
    let runs = request.runs().covering(&joined).await?;
    Ok(Some(joined.into_iter().zip(runs).collect()))
}

/// Whether no slot lies between two gaps of the same kind: people need not see that they were noted one by one.
fn is_right_before(subject: &Subject, gap: &Gap, later: &Gap) -> bool {
    let Ok(spec) = &subject.row.job.definition.spec else { return false };
    let is_same = gap.reason == later.reason && gap.actor == later.actor;
    is_same && spec.next_after(gap.last_slot_at) == Some(later.first_slot_at)
}

/// The explanation of a time.
pub(super) struct SlotExplanation {
    pub(super) at: Markup,
    pub(super) text: String,
    pub(super) run: Option<String>,
    pub(super) before: Option<Markup>,
    pub(super) after: Option<Markup>,
}

/// The org that is asked about, of a job that fires for each, and its zone; else the zone of the job.
pub(super) async fn asked(request: &UiRequest, subject: &Subject, org: &str) -> Result<(Option<OrgId>, Zone), Problem> {
    let Some(id) = OrgId::new(org).ok().filter(|_| subject.is_for_each()) else {
        return Ok((None, subject.zone.clone()));
    };
    let org = request.orgs().get(&id).await?;
    Ok((Some(id), Zone::get(&org.place.timezone).unwrap_or_else(|_| Zone::utc())))
}

/// Explains a time. Returns `None` without a time, or if the role may not read runs.
pub(super) async fn explain(
    request: &UiRequest,
    subject: &Subject,
    (org, zone): &(Option<OrgId>, Zone),
    at: Option<Timestamp>,
) -> Result<Option<SlotExplanation>, Problem> {
    let Some(at) = at.filter(|_| request.may_read_runs()) else { return Ok(None) };
    let (jobs, key) = (request.jobs(), subject.key.as_str());
    let explanation = match org {
        Some(org) => jobs.explain_for(key, org, at).await?,
        None => jobs.explain(key, at).await?,
    };
    let (clock, zone) = (request.clock(), Some(zone));
    let (before, after) = match &explanation {
        Explanation::NoSlot { previous, next } => (*previous, *next),
        _ => (None, None),
    };
    Ok(Some(SlotExplanation {
        at: clock.day(at, zone),
        text: describe(&explanation).1,
        run: match &explanation {
            Explanation::Settled(SlotOutcome::Run(run)) | Explanation::Folded { run, .. } => Some(run.id.to_string()),
            _ => None,
        },
        before: before.map(|at| clock.day(at, zone)),
        after: after.map(|at| clock.day(at, zone)),
    }))
}
