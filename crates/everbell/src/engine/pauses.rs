//! The pauses that failures bring: too many in a row, or one whose handler asks for it.

use everbell_core::change::{self, JobChange, JobView};
use everbell_core::store::{JobRef, Store, StoreError};
use everbell_core::{Invalid, JobId, JobKey, JobStatus, Pause, storable_text};
use jiff::Timestamp;
use tracing::error;

use super::{EVERBELL, Shared, audit};
use crate::events::{Event, Events};

/// The store that a pause is written to, and the events that report it.
pub(super) type Writer<'a> = (&'a dyn Store, &'a Events);

/// As long as the reason of a pause may be.
const MAX_REASON_CHARS: usize = 500;

/// Pauses a job that failed too often in a row. Whether it did is asked again under the lock of its row: another
/// instance may have recorded a success since.
pub(super) async fn pause_failing(shared: &Shared, job: JobId, key: &JobKey) {
    pause_failing_in((&*shared.store, &shared.events), job, key, shared.now()).await;
}

/// Like [`pause_failing`], for a process that need not be an instance.
pub(super) async fn pause_failing_in(place: Writer<'_>, job: JobId, key: &JobKey, now: Timestamp) {
    let reason = |view: &JobView| view.job.definition.policies.pause_reason(view.job.state.consecutive_failures);
    pause(place, (job, key), now, "too many failures in a row", &reason).await;
}

/// Pauses a job because the handler of a failed run asked for it.
pub(super) async fn pause_asked(shared: &Shared, job: JobId, key: &JobKey, reason: &str) {
    let reason = presentable(reason);
    let place = (&*shared.store, &shared.events);
    pause(place, (job, key), shared.now(), &reason, &|_| Some(reason.clone())).await;
}

/// Pauses a job if there is a reason and it is active: an existing pause stays as it is.
async fn pause(
    (store, events): Writer<'_>,
    (job, key): (JobId, &JobKey),
    now: Timestamp,
    audited: &str,
    reason: &(dyn Fn(&JobView) -> Option<String> + Send + Sync),
) {
    let decide = |view: &JobView| -> Result<JobChange, Invalid> {
        let reason = reason(view)
            .filter(|_| view.job.state.status == JobStatus::Active)
            .ok_or_else(|| Invalid::new("status", "there is no reason to pause the job"))?;
        change::pause(view, Pause { reason, by: EVERBELL.to_owned(), at: now, until: None })
    };
    let entry = audit("job.pause", format!("job:{key}"), Some(audited.to_owned()), now);
    match store.change_job(&JobRef::Id(job), None, &decide, &entry).await {
        Ok(changed) => {
            events.publish_change(&changed);
            let reason = changed.job.job.state.pause.map_or_else(String::new, |pause| pause.reason);
            events.publish(Event::Paused { job, key: key.clone(), reason });
        }
        // It succeeded since, or another writer was faster.
        Err(StoreError::Invalid(_) | StoreError::Conflict { .. } | StoreError::Stale { .. }) => {}
        Err(error) => error!(job_id = %job, %error, "could not pause a failing job; will retry at the next failure"),
    }
}

/// Turns a handler's text into a valid reason: neither too short nor too long.
fn presentable(reason: &str) -> String {
    let clean: String = storable_text(reason.trim(), usize::MAX).chars().take(MAX_REASON_CHARS).collect();
    let clean = clean.trim();
    if clean.chars().count() < 3 { format!("its handler asked for it: {clean}") } else { clean.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_made_presentable() {
        for (reason, wanted) in [
            (" gone ", "gone"),
            ("", "its handler asked for it: "),
            ("?", "its handler asked for it: ?"),
            ("a\0b", "a\u{fffd}b"),
        ] {
            assert_eq!(presentable(reason), wanted);
        }
        assert_eq!(presentable(&"é".repeat(9_999)).chars().count(), MAX_REASON_CHARS);
    }
}
