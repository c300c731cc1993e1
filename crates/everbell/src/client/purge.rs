//! Deleting a job for good: [`Jobs::purge`].

use everbell_core::store::{JobRef, PurgedJob, StoreError, StoreResult};
use everbell_core::{Invalid, JobKey};

use super::Facts;
use super::jobs::Jobs;
use super::names::IntoJobRef;
use super::trail::facts_of;

/// The most ended runs, and the most gaps, that one transaction deletes.
const MAX_PURGED_ROWS: u32 = 5_000;

impl Jobs {
    /// Deletes a job of any kind for good: all its versions with their payloads, its runs with results and output, gaps,
    /// timers and org overrides. There is no way back; [`Jobs::retire`] keeps the history.
    ///
    /// A job that has not finished may be purged: it never fires again, and runs that have not started are deleted. While
    /// a run of it is at work this is refused with [`StoreError::Conflict`](crate::StoreError::Conflict), and nothing
    /// changes: wait for its end, or cancel it.
    ///
    /// The audit trail keeps its entries about the job, without the facts before and after, which may repeat the payload,
    /// and gets one about the purge. The reasons of entries stay. Requests of the inbox for the key lose their payloads, and
    /// why they were refused, here and in the audit trail. Two texts may quote a value of a payload and stay: problems of the
    /// job and their messages, which repeat how a run failed, until they are pruned with the history; and the log of the
    /// program.
    ///
    /// A long history is deleted in several transactions, of which the first one retires the job; if one of them fails,
    /// purge it again.
    ///
    /// ```
    /// # use everbell::{Everbell, Schedule};
    /// # async fn nothing() {}
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let bell = Everbell::builder().database("sqlite::memory:").target("nothing", nothing).build().await?;
    /// # bell.jobs().create(Schedule::cron("tick", "@daily").target("nothing")).await?;
    /// let purged = bell.jobs().by("ana").because("erasure request 7").purge("tick").await?;
    /// assert_eq!((purged.versions, purged.runs), (1, 0));
    /// assert!(bell.jobs().get("tick").await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn purge(&self, job: impl IntoJobRef) -> StoreResult<PurgedJob> {
        Ok(self.purge_by_key(job).await?.1)
    }

    /// Like [`Jobs::purge`], with the key of the job, which nothing but the answer knows afterwards.
    #[doc(hidden)]
    pub async fn purge_by_key(&self, job: impl IntoJobRef) -> StoreResult<(JobKey, PurgedJob)> {
        let job = job.into_job_ref()?;
        if let Some(deed) = self.context.done_before().await? {
            return deed.purged.ok_or_else(|| StoreError::Conflict { what: not_recorded(&job, deed.job.is_some()) });
        }
        let row = self.context.parts.store.get_job(&job).await?;
        let key = all_versions(&job, &row.job.definition.key)?;
        let mut before = facts_of(&row);
        before.retain(|name, _| !REMOVED_FACTS.contains(&name.as_str()));
        let audit = self.entry_of_purge(&key, &before);
        let mut purged = PurgedJob::default();
        while !purged.finished {
            purged = purged.and(self.context.parts.store.purge_job(&key, MAX_PURGED_ROWS, purged, &audit).await?);
        }
        Ok((key, purged))
    }

    fn entry_of_purge(&self, key: &JobKey, before: &Facts) -> everbell_core::store::AuditEntry {
        let none = Facts::new();
        self.context.entry("job.purge", format!("job:{key}"), self.context.now(), Some(before), Some(&none))
    }
}

/// Says what is known of a request that was carried out before, and did not record what it deleted: an earlier release
/// deleted the job, or the key was used for `another` request.
fn not_recorded(job: &JobRef, another: bool) -> String {
    if another {
        return "this key was used for another request".to_owned();
    }
    let name = match job {
        JobRef::Key(key) | JobRef::Version(key, _) => key.to_string(),
        JobRef::Id(id) => id.to_string(),
    };
    format!("this request has deleted job `{name}` before; how many versions, runs and gaps it had was not recorded")
}

/// Facts about a job that may say something about people.
const REMOVED_FACTS: [&str; 4] = ["payload", "description", "labels", "pauseReason"];

/// A purge is of a key: the versions of a job are one history.
fn all_versions(job: &JobRef, key: &JobKey) -> Result<JobKey, Invalid> {
    match job {
        JobRef::Version(..) => {
            let reason = format!("a purge deletes all versions of a job: name it `{key}`, without a version");
            Err(Invalid::new("jobKey", reason))
        }
        JobRef::Key(_) | JobRef::Id(_) => Ok(key.clone()),
    }
}
