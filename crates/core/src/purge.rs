//! Whether a job may be deleted for good, and what is left of requests for it.

use crate::ids::{JobKey, RunId};
use crate::store::{StoreError, StoreResult};

/// Stands in place of the reason why a request of the inbox was refused, which may quote its payload.
pub const REMOVED_REASON: &str = "removed when the job was purged";

/// Refuses to delete a job while runs of it are at work: their handlers would report to a run that is gone.
pub fn expect_idle(key: &JobKey, at_work: &[RunId]) -> StoreResult<()> {
    let Some(first) = at_work.first() else { return Ok(()) };
    let others = match at_work.len() {
        1 => String::new(),
        runs => format!(" and {} more of its runs", runs - 1),
    };
    let are = if others.is_empty() { "is" } else { "are" };
    let what = format!(
        "job `{key}` cannot be purged: run {first}{others} {are} running; wait until they have ended, or cancel them"
    );
    Err(StoreError::Conflict { what })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn runs_at_work_are_named() {
        let key = JobKey::new("reminder").unwrap();
        let run = |number| RunId::by_hand(Timestamp::UNIX_EPOCH, [number; 10]);
        assert!(expect_idle(&key, &[]).is_ok());
        let text = expect_idle(&key, &[run(1), run(2), run(3)]).unwrap_err().to_string();
        assert!(text.contains(&format!("run {} and 2 more of its runs are running", run(1))), "{text}");
    }
}
