//! The card about backfills that are not over.

use everbell::client::BackfillReport;
use everbell_core::backfill::BackfillStatus;

use crate::clock::Clock;
use crate::markup::{Markup, url_part};
use crate::request::UiRequest;
use everbell_http::problem::Problem;

/// How many backfills are named.
const MAX_LISTED_BACKFILLS: usize = 5;

/// Backfills that create runs, or whose runs have not all ended.
pub(super) struct BackfillCard {
    pub(super) lines: Vec<BackfillLine>,
    /// How many are not named.
    pub(super) more: usize,
}

/// A backfill.
pub(super) struct BackfillLine {
    pub(super) key: String,
    pub(super) part: String,
    pub(super) text: String,
    pub(super) done_at: Option<Markup>,
}

/// Returns the card, if there is an open backfill; `None` for a role that may not read runs.
pub(super) async fn card(request: &UiRequest, clock: &Clock) -> Result<Option<BackfillCard>, Problem> {
    if !request.may_read_runs() {
        return Ok(None);
    }
    let open = request.jobs().open_backfills(None).await?;
    let lines = open.iter().take(MAX_LISTED_BACKFILLS).map(|report| BackfillLine::new(report, clock)).collect();
    let more = open.len().saturating_sub(MAX_LISTED_BACKFILLS);
    Ok((!open.is_empty()).then_some(BackfillCard { lines, more }))
}

impl BackfillLine {
    fn new(report: &BackfillReport, clock: &Clock) -> BackfillLine {
        let key = report.job_key.to_string();
        let (mut text, mut done_at) = (String::new(), None);
        if let Some(details) = &report.details {
            let progress = &details.progress;
            let left = progress.left + progress.pending + progress.running;
            let done = progress.counts.ended() + progress.counts.existing;
            text = format!("{done} of {} slots done, {} failed", done + left, progress.counts.failed);
            match (details.backfill.status, details.waits_for) {
                (BackfillStatus::Paused, _) => text.push_str(", paused"),
                (BackfillStatus::Stopped, _) => text.push_str(", stopped"),
                (_, Some(why)) => text = format!("{text}, waits: {why}"),
                _ => {}
            }
            done_at = progress.done_at.map(|at| clock.away(at));
        }
        BackfillLine { part: url_part(&key), key, text, done_at }
    }
}
