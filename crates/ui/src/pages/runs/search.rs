//! A page of runs that is made in a bounded time, also where no index knows the filter.
//!
//! Runs of a rare target may be anywhere in a long history. Such a list is read from the newest to the oldest in slices of
//! time, each as long as the ones before allow; when the time is over, the page has what was found so far, and the next
//! page goes on from there.

use std::time::Duration;

use everbell::{Everbell, RunFilter, RunId, RunRecord, RunStatus, StoreResult};
use everbell_core::store::{Cursor, PageRequest};
use jiff::{SignedDuration, Timestamp};

/// How long a page may look for its rows.
const SEARCH_BUDGET: Duration = Duration::from_millis(40);
/// The duration of a query that finds nothing, regardless of the length of the slice.
const ROUND_TRIP: Duration = Duration::from_millis(4);
/// The first slice.
const FIRST_SLICE: SignedDuration = SignedDuration::from_hours(2);
/// How much longer each slice is, if there is time for it.
const SLICE_GROWTH: u32 = 8;
/// Behind a slice of this length everything is looked at at once: there is hardly anything.
const MAX_SLICE: SignedDuration = SignedDuration::from_hours(1_000 * 24);

/// The result of a search.
pub(crate) struct SearchResult {
    pub(crate) items: Vec<RunRecord>,
    /// Where to go on.
    pub(crate) next: Option<Cursor>,
    /// The oldest time that was searched, if the search stopped early.
    pub(crate) back_to: Option<Timestamp>,
}

/// A page of a list, newest first.
pub(crate) async fn search(bell: &Everbell, filter: &RunFilter, request: &PageRequest) -> StoreResult<SearchResult> {
    let runs = bell.runs();
    if is_indexed(filter) {
        let page = runs.list(filter, request).await?;
        return Ok(SearchResult { items: page.items, next: page.next, back_to: None });
    }
    let (now, begun) = (bell.now(), bell.clock().monotonic());
    let since = |at: Duration| bell.clock().monotonic().saturating_sub(at);
    let newest = request.after.as_ref().map(|cursor| RunId::from_uuid(cursor.id).time());
    let mut slices = Slices::new(newest.or(filter.to).map_or(now, |at| at.min(now)));
    let (mut items, mut after) = (Vec::new(), request.after.clone());
    loop {
        let bound = slices.bound();
        let part = RunFilter { from: filter.from.max(bound), ..filter.clone() };
        let left = request.limit - u32::try_from(items.len()).unwrap_or(request.limit);
        let asked = bell.clock().monotonic();
        let page = runs.list(&part, &PageRequest { limit: left.max(1), after: after.take() }).await?;
        items.extend(page.items);
        let Some(bound) = bound.filter(|bound| page.next.is_none() && filter.from.is_none_or(|from| from < *bound))
        else {
            return Ok(SearchResult { items, next: page.next, back_to: None });
        };
        let next = Cursor { value: String::new(), id: RunId::first_at(bound).as_uuid() };
        let is_full = items.len() >= request.limit as usize;
        if is_full || !slices.advance(since(asked), SEARCH_BUDGET.saturating_sub(since(begun))) {
            return Ok(SearchResult { items, next: Some(next), back_to: (!is_full).then_some(bound) });
        }
        after = Some(next);
    }
}

/// Whether an index leads to rows that nearly all belong.
fn is_indexed(filter: &RunFilter) -> bool {
    let others = !filter.target.is_empty()
        || filter.trigger.is_some()
        || filter.org.is_some()
        || filter.instance.is_some()
        || filter.failure_code.is_some();
    let of_job = filter.job_id.is_some() || filter.job_key.is_some();
    match filter.status.as_slice() {
        [] => !others,
        statuses if statuses.iter().all(|status| !status.is_terminal()) => !of_job,
        [RunStatus::Succeeded | RunStatus::Failed | RunStatus::Skipped] => !others && !of_job,
        _ => false,
    }
}

/// How far back it is looked.
struct Slices {
    /// The newer end of the slice.
    end: Timestamp,
    span: SignedDuration,
}

impl Slices {
    fn new(end: Timestamp) -> Slices {
        Slices { end, span: FIRST_SLICE }
    }

    /// The older end of the slice, in whole milliseconds as ids have them; nothing for the last.
    fn bound(&self) -> Option<Timestamp> {
        let bound = (self.span < MAX_SLICE).then(|| self.end.checked_sub(self.span).ok()).flatten()?;
        Timestamp::from_millisecond(bound.as_millisecond()).ok()
    }

    /// To the next slice, which is longer if one that takes so much longer than the last fits into the time that is left.
    fn advance(&mut self, took: Duration, left: Duration) -> bool {
        if took > left {
            return false;
        }
        self.end = self.bound().unwrap_or(self.end);
        if took.saturating_sub(ROUND_TRIP) * SLICE_GROWTH <= left {
            self.span *= SLICE_GROWTH as i32;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use everbell::{JobKey, Target};

    use super::*;

    #[test]
    fn slices_grow_while_there_is_time() {
        let ms = Duration::from_millis;
        let end: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let mut slices = Slices::new(end);
        assert_eq!(slices.bound(), Some("2026-11-15T10:00:00Z".parse().unwrap()));
        assert!(slices.advance(ms(5), ms(50)));
        assert_eq!(slices.bound(), Some("2026-11-14T18:00:00Z".parse().unwrap()));
        assert!(slices.advance(ms(20), ms(30)));
        assert_eq!(slices.bound(), Some("2026-11-14T02:00:00Z".parse().unwrap()));
        assert!(!slices.advance(ms(20), ms(10)));
        let mut count = 1;
        while slices.bound().is_some() {
            assert!(slices.advance(ms(0), ms(10)));
            count += 1;
        }
        assert!(count < 8, "{count}");
    }

    #[test]
    fn what_an_index_knows_is_asked_at_once() {
        let with = |status: &[RunStatus]| RunFilter { status: status.to_vec(), ..RunFilter::default() };
        let of_job = |filter| RunFilter { job_key: Some(JobKey::new("a").unwrap()), ..filter };
        let of_target = |filter| RunFilter { target: vec![Target::new("a").unwrap()], ..filter };
        for (filter, indexed) in [
            (with(&[]), true),
            (with(&[RunStatus::Failed]), true),
            (with(&[RunStatus::Canceled]), false),
            (of_job(with(&[])), true),
            (of_job(with(&[RunStatus::Failed])), false),
            (of_target(with(&[])), false),
            (of_target(with(&[RunStatus::Pending, RunStatus::Running])), true),
        ] {
            assert_eq!(is_indexed(&filter), indexed, "{filter:?}");
        }
    }
}
