//! Backfills of a job that are at work.

use everbell::client::BackfillReport;

use crate::pages::action::Subject;
use crate::request::UiRequest;
use everbell_http::problem::Problem;

/// A backfill that is not done.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ActiveBackfill {
    pub(super) id: String,
    pub(super) done: u64,
    pub(super) left: u64,
    pub(super) all: u64,
    /// Whether runs are left that have not started.
    pub(super) can_stop: bool,
}

/// Loads the backfills that are not done; none if the role may not read runs.
pub(super) async fn active(request: &UiRequest, subject: &Subject) -> Result<Vec<ActiveBackfill>, Problem> {
    if !request.may_read_runs() {
        return Ok(Vec::new());
    }
    let reports = request.jobs().backfills(subject.key.as_str()).await?;
    Ok(reports.iter().filter_map(ActiveBackfill::new).collect())
}

impl ActiveBackfill {
    fn new(report: &BackfillReport) -> Option<ActiveBackfill> {
        let count = |status: &str| report.runs.get(status).copied().unwrap_or(0);
        ActiveBackfill::from_counts(report.id.to_string(), count)
    }

    /// `None` if it is done.
    fn from_counts(id: String, count: impl Fn(&str) -> u64) -> Option<ActiveBackfill> {
        let waiting = count("pending");
        let left = waiting + count("running");
        let done = count("succeeded") + count("failed") + count("canceled") + count("skipped");
        (left > 0).then(|| ActiveBackfill { id, done, left, all: done + left, can_stop: waiting > 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backfill_is_active_while_runs_are_left() {
        let of = |pairs: &'static [(&str, u64)]| {
            let count = |status: &str| pairs.iter().find(|(own, _)| *own == status).map_or(0, |(_, count)| *count);
            ActiveBackfill::from_counts("b".to_owned(), count)
        };
        assert_eq!(of(&[("succeeded", 3), ("failed", 1)]), None);
        let active = of(&[("succeeded", 3), ("skipped", 1), ("running", 1), ("pending", 5)]).unwrap();
        assert_eq!((active.done, active.left, active.all, active.can_stop), (4, 6, 10, true));
        assert!(!of(&[("running", 1)]).unwrap().can_stop);
    }
}
