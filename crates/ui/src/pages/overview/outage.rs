//! The card about the last outage, if it ended lately.

use everbell_core::outage::{JobOutage, LateOutcome, Outage};
use jiff::{SignedDuration, Timestamp};

use crate::chart::counted;
use crate::clock::Clock;
use crate::markup::{Markup, url_part};
use crate::request::UiRequest;
use everbell_http::problem::Problem;
use everbell_wire::elapsed::wait;

/// How long an outage is shown after its end.
const SHOWN_FOR: SignedDuration = SignedDuration::from_hours(24);
/// How many jobs are named.
const MAX_LISTED_JOBS: usize = 10;

/// The last outage in which jobs had slots.
pub(super) struct OutageCard {
    pub(super) from: Markup,
    pub(super) until: Markup,
    pub(super) length: String,
    pub(super) text: String,
    pub(super) timeline: String,
    pub(super) jobs: Vec<OutageLine>,
    /// How many jobs are not named.
    pub(super) more: usize,
}

/// A job that missed slots.
pub(super) struct OutageLine {
    pub(super) key: String,
    pub(super) part: String,
    pub(super) text: String,
    /// Where its missed slots are backfilled.
    pub(super) backfill: Option<String>,
}

/// Returns the card, if an outage ended within the last day; `None` for a role that may not read runs.
pub(super) async fn card(request: &UiRequest, clock: &Clock) -> Result<Option<OutageCard>, Problem> {
    if !request.may_read_runs() {
        return Ok(None);
    }
    let since = request.now.checked_sub(SHOWN_FOR).unwrap_or(request.now);
    let outage = request.app.bell.reports().latest_outage(since).await?;
    Ok(outage.map(|outage| OutageCard::new(&outage, clock)))
}

impl OutageCard {
    fn new(outage: &Outage, clock: &Clock) -> OutageCard {
        let (from, until) = (outage.absence.from, outage.absence.until);
        // Caught-up jobs need no attention.
        let open: Vec<&JobOutage> = outage.jobs.iter().filter(|job| !job.is_caught_up()).collect();
        OutageCard {
            from: clock.second(from, None),
            until: clock.second(until, None),
            length: wait(outage.absence.length().as_secs()),
            text: summary(outage),
            timeline: format!("/timeline?range=1h&around={}", url_part(&whole(until).to_string())),
            jobs: open.iter().take(MAX_LISTED_JOBS).map(|job| OutageLine::new(job)).collect(),
            more: open.len().saturating_sub(MAX_LISTED_JOBS),
        }
    }
}

impl OutageLine {
    fn new(job: &JobOutage) -> OutageLine {
        let part = url_part(job.job_key.as_str());
        let range = format!("from={}&to={}", url_part(&text(job.first_slot_at)), url_part(&text(job.last_slot_at)));
        OutageLine {
            key: job.job_key.to_string(),
            text: format!("missed {}", counted(job.missed(), "slot")),
            backfill: job.can_backfill().then(|| format!("/jobs/{part}/backfill?{range}")),
            part,
        }
    }
}

/// `14 jobs missed 282 slots; 12 caught up.`
pub(super) fn summary(outage: &Outage) -> String {
    let jobs = outage.jobs.len() as u64;
    let missed = format!("{} missed {}", counted(jobs, "job"), counted(outage.slots(), "slot"));
    let done = match (outage.caught_up() as u64, outage.count(LateOutcome::Backfilled)) {
        (all, _) if all == jobs && jobs == 1 => "it caught up".to_owned(),
        (all, _) if all == jobs => "all caught up".to_owned(),
        (0, _) => "none caught up".to_owned(),
        (some, _) => format!("{some} caught up"),
    };
    format!("{missed}; {done}.")
}

fn whole(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

fn text(at: Timestamp) -> String {
    at.to_string()
}

#[cfg(test)]
mod tests {
    use everbell_core::JobKey;
    use everbell_core::outage::{Absence, LateSlots};

    use super::*;

    #[test]
    fn a_summary_counts_jobs_and_slots() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let slots = |key: &str, outcome, slots| LateSlots {
            job_key: JobKey::new(key).unwrap(),
            outcome,
            slots,
            first_slot_at: at(10),
            last_slot_at: at(90),
        };
        let absence = Absence { from: at(0), until: at(100) };
        let of = |late: &[LateSlots]| summary(&Outage::new(absence, late));
        let (once, none) = (slots("once", LateOutcome::Ran, 8), slots("none", LateOutcome::Missed, 1));
        assert_eq!(of(std::slice::from_ref(&once)), "1 job missed 8 slots; it caught up.");
        assert_eq!(of(std::slice::from_ref(&none)), "1 job missed 1 slot; none caught up.");
        assert_eq!(of(&[once.clone(), none.clone()]), "2 jobs missed 9 slots; 1 caught up.");
        assert_eq!(of(&[once, slots("all", LateOutcome::Ran, 3)]), "2 jobs missed 11 slots; all caught up.");
        let line = OutageLine::new(&Outage::new(absence, &[none]).jobs[0]);
        assert_eq!(line.text, "missed 1 slot");
        let range = "from=1970-01-01T00%3A00%3A10Z&to=1970-01-01T00%3A01%3A30Z";
        assert_eq!(line.backfill, Some(format!("/jobs/none/backfill?{range}")));
    }
}
