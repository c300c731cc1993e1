//! The runs of the same job before and after a run.

use everbell::{RunFilter, RunRecord};
use everbell_core::store::{Cursor, PageRequest};
use jiff::SignedDuration;

use crate::UiRequest;
use everbell_http::problem::Problem;

/// How far ahead the next run is looked for, step by step: a list begins with the newest, so the next one is the last of
/// a page that is not too long.
const SEARCH_STEPS: [SignedDuration; 5] = [
    SignedDuration::from_mins(1),
    SignedDuration::from_mins(20),
    SignedDuration::from_hours(6),
    SignedDuration::from_hours(5 * 24),
    SignedDuration::from_hours(100 * 24),
];
const MAX_PAGE_RUNS: u32 = 200;

/// The ids of the run before and of the one after, as far as they are easily found.
pub(super) async fn load(request: &UiRequest, run: &RunRecord) -> Result<(Option<String>, Option<String>), Problem> {
    let Some(key) = &run.job_key else { return Ok((None, None)) };
    let filter = RunFilter { job_key: Some(key.clone()), ..RunFilter::default() };
    let here = Cursor { value: String::new(), id: run.id.as_uuid() };
    let before = request.runs().list(&filter, &PageRequest { limit: 1, after: Some(here) }).await?;
    let previous = before.items.first().map(|run| run.id.to_string());
    Ok((previous, after(request, run, &filter).await?))
}

async fn after(request: &UiRequest, run: &RunRecord, filter: &RunFilter) -> Result<Option<String>, Problem> {
    let newest = request.runs().list(filter, &PageRequest { limit: 1, after: None }).await?;
    if newest.items.first().is_none_or(|newest| newest.id == run.id) {
        return Ok(None);
    }
    for ahead in SEARCH_STEPS {
        let from = run.id.time();
        let filter = RunFilter { from: Some(from), to: from.checked_add(ahead).ok(), ..filter.clone() };
        let page = request.runs().list(&filter, &PageRequest { limit: MAX_PAGE_RUNS, after: None }).await?;
        if page.next.is_some() {
            return Ok(None);
        }
        let later = page.items.iter().rev().find(|other| other.id > run.id);
        if let Some(later) = later {
            return Ok(Some(later.id.to_string()));
        }
    }
    Ok(None)
}
