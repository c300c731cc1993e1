//! [`RunStore`]: the way of a run, and what is known about runs.

use async_trait::async_trait;
use jiff::Timestamp;

use super::interceptor::{Call, Interceptor, audit_entry, verbs};
use super::{
    AuditEntry, Bucket, Canceled, Claim, GapFilter, Page, PageRequest, PlanDue, PlanFn, Planned, RecentRuns, Recorded,
    RunFilter, RunHistogram, RunSummary, SlotOutcome, StartRuns, StoreResult,
};
use crate::ids::{JobId, OrgId, RunId};
use crate::output::OutputSoFar;
use crate::run::{Gap, Run};
use crate::settle::Transition;

verbs! {
    /// Plans, starts, records and finds runs, and the gaps between them.
    pub trait RunStore {
        /// Locks up to `limit` timers with `next_run_at <= now` of the targets, oldest first, passing over those that
        /// others hold; asks `plan` about each; writes what it says. One transaction. If a current job of one of the targets
        /// has a priority other than 0, whether or not it is due, the limit is `limit_by_priority` instead.
        ///
        /// Written are: runs (one whose slot already exists is passed over and not reported), gaps, and the timer. A
        /// run in `plan.cancel` that is pending is canceled, one that is running is asked to stop. `plan.retire`
        /// retires the job, `plan.error` makes it errored, both in the name of `everbell`. So are the entries in the
        /// audit trail: `job.errored` for a job that became so, one `org.errored` for each job with timers that have a
        /// `plan.org_error`, and one for each of the orgs that it names.
        ///
        /// A new run that [`StartRuns::picks`] begins with its plan: `running`, attempt 1, leased to the instance, as
        /// if [`start_runs`](RunStore::start_runs) had claimed it. The other new runs are pending.
        async fn plan_due(&self, request: &PlanDue<'_>, plan: &PlanFn<'_>) -> StoreResult<Planned>;

        /// Claims pending runs, those of a higher `priority` first, then in the order of `scheduled_at` and id, as many as
        /// there is room for: `running`, attempt + 1, leased to the instance. Claims a retry not before its time, and in the order of that. Claims a held run
        /// only if it is the first held one of its job and org and fewer than `maxConcurrentRuns` others of them are
        /// active and not held; it is no longer held then. Eligibility is judged before any run starts, so one call
        /// claims at most one held run of a job and org. Skips runs that others are claiming at this moment.
        async fn start_runs(&self, request: &StartRuns<'_>) -> StoreResult<Vec<Claim>>;

        /// Writes transitions, each guarded by run, attempt and status. One transaction, one answer for each in the
        /// same order.
        ///
        /// A failure adds one to the failures in a row of its job, a success sets them to none, in the order of the
        /// batch; neither is an edit, so the revision stays. The same run again in a batch is [`Recorded::LeaseLost`].
        /// A one-time job whose slot had its run, and that run ended, is retired. A retry is pending again, not held,
        /// and keeps its attempt until it starts; if its cancellation was asked for, it is [`Recorded::Canceled`] at once:
        /// see [`cancel_retry`](crate::settle::cancel_retry).
        ///
        /// For each run that ends, the current jobs that start after its job are asked with [`Due::follow`](super::Due::follow),
        /// and what they answer is written in the same transaction: their runs are pending.
        async fn record(&self, transitions: &[Transition], now: Timestamp) -> StoreResult<Vec<Recorded>>;

        /// The runs that this run started when it ended, at this time: see [`After`](crate::after::After). Oldest first, at
        /// most `limit`.
        async fn runs_after(&self, ended: RunId, finished_at: Timestamp, limit: u32) -> StoreResult<Vec<Run>>;

        /// Saves the output of runs so far, each guarded by run and attempt, and returns the runs whose output was
        /// saved. Skips runs that are no longer at work, and those that another writer holds at this moment.
        ///
        /// The output stays when the run ends or waits for another attempt without reporting its own, as a lost run
        /// does. It is cleared when the next attempt starts.
        async fn save_outputs(&self, outputs: &[OutputSoFar]) -> StoreResult<Vec<RunId>>;

        /// Inserts a pending run that belongs to no job: a trial of a target.
        async fn insert_run(&self, run: &Run, audit: &AuditEntry) -> StoreResult<()>;

        /// Ends a pending run at once, or asks the executor of a running one to stop.
        async fn cancel_run(&self, run: RunId, by: &str, now: Timestamp, audit: &AuditEntry) -> StoreResult<Canceled>;

        /// One run, with its output.
        async fn get_run(&self, run: RunId) -> StoreResult<Run>;

        /// Runs, a page at a time, newest first: by id, which begins with the time of the slot or of the request.
        async fn list_runs(&self, filter: &RunFilter, page: &PageRequest) -> StoreResult<Page<Run>>;

        /// How many runs there are like this; no more than `cap` are counted, which is 1 to 10,000. They need not be of
        /// the same moment.
        async fn count_runs(&self, filter: &RunFilter, cap: u32) -> StoreResult<u32>;

        /// The newest runs of each of many jobs, in small. By job key, then newest first: by id. A run that cannot be
        /// read is left out; [`RunStore::list_runs`] names it.
        async fn recent_runs(&self, recent_runs: &RecentRuns) -> StoreResult<Vec<RunSummary>>;

        /// Runs counted by time and status: a bucket for each span, also where there is nothing.
        async fn count_runs_by_time(&self, histogram: &RunHistogram) -> StoreResult<Vec<Bucket>>;

        /// Gaps, a page at a time, those with the latest first slot first; ties by their id ([`Gap::id`]).
        async fn list_gaps(&self, filter: &GapFilter, page: &PageRequest)
        -> StoreResult<Page<(JobId, Option<OrgId>, Gap)>>;

        /// Returns the outcome of a slot, if one is recorded.
        async fn slot_outcome(&self, job: JobId, org: Option<&OrgId>, slot: Timestamp) -> StoreResult<Option<SlotOutcome>>;
    }
}
