//! The repairer: finds active jobs that would never fire again, and brings them back.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::change::{self, JobView};
use everbell_core::repair::{self, Repair};
use everbell_core::store::{Cursor, JobFilter, JobRef, JobRow, PageRequest, StoreError, StoreResult};
use everbell_core::{JobKey, JobStatus};
use tokio::sync::Notify;
use tracing::warn;

use super::{EVERBELL, Shared, Step, Wait, audit};
use crate::events::Event;

/// How many jobs are read at once.
const PAGE_JOBS: u32 = 200;
/// The pause between two pages.
const PAGE_PAUSE: Duration = Duration::from_millis(200);
/// How often all of them are looked at.
const REPAIR_INTERVAL: Duration = Duration::from_mins(5);

#[derive(Debug)]
pub(crate) struct Repairer {
    shared: Arc<Shared>,
    /// How far this round came.
    after: Option<Cursor>,
    /// The repairs of this round.
    repaired: Vec<(JobKey, Repair)>,
}

impl Repairer {
    pub(super) fn new(shared: &Arc<Shared>) -> Repairer {
        Repairer { shared: Arc::clone(shared), after: None, repaired: Vec::new() }
    }

    async fn repair(&mut self, row: &JobRow, repair: Repair) -> StoreResult<()> {
        let Shared { store, events, signals, .. } = &*self.shared;
        let (now, key) = (self.shared.now(), &row.job.definition.key);
        let reason = match repair {
            Repair::Arm => "it was active and had no next fire although its schedule goes on",
            Repair::EndError => "its schedule can be read again",
        };
        let entry = audit("job.repaired", format!("job:{key}"), Some(reason.to_owned()), now);
        let decide = |view: &JobView| change::repair(view, EVERBELL, now);
        match store.change_job(&JobRef::Id(row.job.definition.id), None, &decide, &entry).await {
            Ok(changed) => {
                events.publish_change(&changed);
                signals.plan.notify_one();
                self.repaired.push((key.clone(), repair));
                Ok(())
            }
            Err(error) if error.is_transient() => Err(error),
            // Another writer was faster.
            Err(StoreError::Invalid(_) | StoreError::Conflict { .. } | StoreError::Stale { .. }) => Ok(()),
            // One that cannot be repaired does not keep the others from it.
            Err(error) => {
                warn!(job = %key, %error, "cannot repair an active job that has no next fire");
                Ok(())
            }
        }
    }
}

impl Step for Repairer {
    const NAME: &'static str = "repairer";

    async fn step(&mut self) -> StoreResult<Wait> {
        let filter = JobFilter { status: vec![JobStatus::Active], scheduled: Some(false), ..JobFilter::default() };
        let page = PageRequest { limit: PAGE_JOBS, after: self.after.clone() };
        let page = self.shared.store.list_jobs(&filter, &page).await?;
        for row in &page.items {
            if let Some(repair) = repair::needed(&row.job, row.timer.as_ref()) {
                self.repair(row, repair).await?;
            }
        }
        self.after = page.next;
        if self.after.is_some() {
            return Ok(Wait::For(PAGE_PAUSE));
        }
        self.shared.events.publish(Event::Repaired { jobs: std::mem::take(&mut self.repaired) });
        Ok(Wait::For(REPAIR_INTERVAL))
    }

    fn signal(_: &Shared) -> Option<&Notify> {
        None
    }
}
