//! The repairer: finds active jobs that would never fire again, and brings them back.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::change::{self, JobView};
use everbell_core::repair::{self, Repair};
use everbell_core::store::{Cursor, JobFilter, JobRef, JobRow, PageRequest, StoreError, StoreResult, StoredCalendar};
use everbell_core::{JobId, JobKey, JobStatus};
use tokio::sync::Notify;
use tracing::warn;

use super::{EVERBELL, Shared, Step, Wait, audit, random};
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
            Repair::Arm => "it was active but had no next run, although its schedule continues",
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
                warn!(job = %key, %error, "cannot repair an active job that has no next run");
                Ok(())
            }
        }
    }
}

impl Repairer {
    /// Brings jobs up to calendars whose edit did not reach all of them, because a server died or a job was busy.
    async fn follow_calendars(&self) -> StoreResult<()> {
        let Shared { store, events, signals, .. } = &*self.shared;
        let stored = store.calendars().await?;
        let is_behind = |stored: &StoredCalendar| stored.applied_version < stored.calendar.version();
        if !stored.iter().any(is_behind) {
            return Ok(());
        }
        let current: Vec<_> = stored.iter().map(|stored| Arc::clone(&stored.calendar)).collect();
        let mut is_complete = true;
        for job in store.calendar_jobs().await?.iter().filter(|job| !job.definition.is_current(&current)) {
            let (now, key) = (self.shared.now(), &job.definition.key);
            let id = JobId::new(now, random());
            let decide = |view: &JobView| change::follow_calendars(view, current.clone(), id, EVERBELL, now);
            let entry = audit("job.new_version", format!("job:{key}"), Some("follows its calendars".to_owned()), now);
            match store.change_job(&JobRef::Id(job.definition.id), None, &decide, &entry).await {
                Ok(changed) => {
                    events.publish_change(&changed);
                    signals.plan.notify_one();
                }
                Err(error) if error.is_transient() => return Err(error),
                // It was edited or retired meanwhile: an edit takes the current days.
                Err(StoreError::Invalid(_)) => {}
                Err(error) => {
                    is_complete = false;
                    warn!(job = %key, %error, "cannot bring a job up to its calendars");
                }
            }
        }
        if is_complete {
            for stored in stored.iter().filter(|stored| is_behind(stored)) {
                store.calendar_applied(stored.calendar.name(), stored.calendar.version()).await?;
            }
        }
        Ok(())
    }
}

impl Step for Repairer {
    const NAME: &'static str = "repairer";

    async fn step(&mut self) -> StoreResult<Wait> {
        if self.after.is_none() {
            self.follow_calendars().await?;
        }
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
