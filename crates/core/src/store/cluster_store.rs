//! [`ClusterStore`]: the database itself, instances and their leases, time, and upkeep.

use async_trait::async_trait;
use jiff::Timestamp;

use super::interceptor::{Call, Interceptor, audit_entry, verbs};
use super::{
    AuditEntry, Beat, ClockTrace, Counts, Instance, LeaseReport, PruneBefore, Pruned, Rearmed, StoreResult,
    StoreStatus, Wakeup,
};
use crate::ids::{App, InstanceId};
use crate::job::Source;
use crate::release::{ReleaseId, ReleaseStatus, Releases};
use crate::settle::Settling;

verbs! {
    /// Knows the database, its clock and its instances, with the leases that they hold, and cleans up.
    pub trait ClusterStore {
        /// The database's own clock, which every instance anchors itself on. For SQLite that is the host's.
        async fn now(&self) -> StoreResult<Timestamp>;

        /// Returns its product, schema version and size, and anything that slows it down.
        async fn status(&self) -> StoreResult<StoreStatus>;

        /// Closes the database in good order: what was committed is in its file afterwards, where it has one. Calls
        /// that come later fail. A store that has nothing to close does nothing.
        async fn close(&self) -> StoreResult<()>;

        /// How many jobs, active runs and due timers there are. Reads no history, so it may be asked every few seconds.
        async fn counts(&self, now: Timestamp) -> StoreResult<Counts>;

        /// Records that the instance is alive, and its description, and renews its lease until `lease_until`. The lease
        /// of an instance covers every run that it holds: a run is held until the later of its own lease, which the
        /// claim granted, and that of its instance. No lease becomes shorter: an abandoned request may arrive late.
        ///
        /// `None` renews no lease. The runs of an instance that never had one, or that is not known, count by their own.
        ///
        /// With `looks` the answer also says whether there is work for the targets of the instance, so that an idle one need
        /// not ask for it otherwise. That may read all runs of these targets that are at work.
        async fn heartbeat(
            &self,
            instance: &Instance,
            lease_until: Option<Timestamp>,
            looks: bool,
        ) -> StoreResult<Beat>;

        /// Lists all known instances, oldest first. Leaves out those that cannot be read: the next heartbeat rewrites
        /// them, or they are forgotten.
        async fn list_instances(&self) -> StoreResult<Vec<Instance>>;

        /// Forgets an instance that has ended, and at `planned_until` or before scheduled for the last time. One that still
        /// holds runs stays known until they are settled. See [`ReportStore::last_departure`](super::ReportStore::last_departure).
        async fn leave(&self, instance: InstanceId, planned_until: Timestamp, now: Timestamp) -> StoreResult<()>;

        /// Asks an instance to take no more work, or to take work again.
        async fn drain_instance(&self, instance: InstanceId, draining: bool, audit: &AuditEntry) -> StoreResult<()>;

        /// The releases of a program that were seen, the current one last; none of a program that never declared a job.
        async fn releases(&self, source: Source, app: &App) -> StoreResult<Releases>;

        /// Notes that an instance of this release was seen at `now`, and returns whether the release may change jobs, as
        /// [`Releases::declare`] decides, in one transaction.
        async fn declare_release(
            &self,
            source: Source,
            app: &App,
            release: &ReleaseId,
            now: Timestamp,
        ) -> StoreResult<ReleaseStatus>;

        /// Notes that an instance of this release is running at `now`, as [`Releases::see`] does.
        async fn see_release(&self, source: Source, app: &App, release: &ReleaseId, now: Timestamp) -> StoreResult<()>;

        /// Removes instances that sent no heartbeat since `before`, except for those that still hold runs.
        async fn remove_instances(&self, before: Timestamp) -> StoreResult<u64>;

        /// Returns the runs that the instance still holds, by id, and which of them are to be stopped. A run that is
        /// missing from the answer is lost.
        async fn held_runs(&self, instance: InstanceId) -> StoreResult<Vec<LeaseReport>>;

        /// Like [`held_runs`](Self::held_runs), and extends the own lease of each of them that is still held at `now`;
        /// the others are left out. Only for neighbours of a release that does not know the leases of instances. No
        /// lease becomes shorter.
        async fn extend_leases(
            &self,
            instance: InstanceId,
            now: Timestamp,
            until: Timestamp,
        ) -> StoreResult<Vec<LeaseReport>>;

        /// Running runs whose own lease and that of whose instance ended before `now`, oldest first. It may read every
        /// active run, so it is asked when a heartbeat reports a lapsed lease, and seldom otherwise.
        async fn expired_leases(&self, now: Timestamp, limit: u32) -> StoreResult<Vec<Settling>>;

        /// Running runs that are leased to this instance, by id: for one that is known to be dead.
        async fn leases_of(&self, instance: InstanceId, limit: u32) -> StoreResult<Vec<Settling>>;

        /// The last trusted time, and when the youngest entry was written.
        async fn clock_trace(&self) -> StoreResult<ClockTrace>;

        /// Remembers a time that is trusted, in the place of the one before.
        async fn write_trusted_time(&self, at: Timestamp) -> StoreResult<()>;

        /// Arms timers from `now` again that a clock which was ahead has moved into the future, at most `limit` of
        /// them, in one transaction. Such a timer has a mark more than [`FUTURE_TOLERANCE`](super::FUTURE_TOLERANCE)
        /// after `now` that comes from there: from a run or gap that was written after `now`, or from a version that
        /// was created or changed then. A mark that an operator moved at a true time stays. See
        /// [`rearm`](crate::rearm).
        ///
        /// Leases that end after `lease_until` end there, and heartbeats after `now` count as made now, so that an
        /// instance that died in that future is noticed. The audit entry is written if a timer was armed; its reason
        /// says what was done.
        async fn rearm_timers(
            &self,
            now: Timestamp,
            lease_until: Timestamp,
            limit: u32,
            audit: &AuditEntry,
        ) -> StoreResult<Rearmed>
        // The store writes the entry with its own reason.
        where (|_| false);

        /// Deletes what is older than `before`, at most `limit` of each kind: ended runs, gaps, audit entries, requests
        /// with an idempotency key, and sessions that have ended. A run is as old as the later of its slot and its end,
        /// so one of a backfill is not deleted as soon as it ends. Gives way to the hot path: a call holds its locks
        /// only briefly, and the caller waits between calls.
        ///
        /// A version of a one-time job goes with its timer when it was retired before `before.history` and nothing
        /// refers to it any more: no run, no gap, and no current job that depends on its key. It stays as long as an
        /// older version of its key is recurring, so that numbers of versions are not used again. The version that
        /// superseded it supersedes none then. Those that were retired first go first; ties by id. Requests of the inbox
        /// that were answered before `before.history` go too, and are not counted; nor are problems that closed and messages
        /// that ended before it.
        async fn prune(&self, before: PruneBefore, limit: u32) -> StoreResult<Pruned>;

        passed_through {
            /// Returns the store behind all interceptors, for code that knows one database: a write within a transaction of
            /// the application needs the store that the application's connection belongs to.
            fn as_any(&self) -> &dyn std::any::Any;

            /// Whether an instance can lose the database while others still reach it. Such an instance stops its
            /// handlers before its leases end. Where no partition exists, as with a file on one machine, nothing has to
            /// be stopped.
            fn can_partition(&self) -> bool;

            /// Whether a request that another program writes into the inbox wakes this store at this moment. Where it does
            /// not, the inbox is looked at every second.
            fn hears_others(&self) -> bool;

            /// Resolves after a change, here or on another instance, that may give a loop something to do: a job armed
            /// earlier, a run inserted, a cancellation. It does not resolve after calls that changed nothing, so that a
            /// loop which wakes itself comes to rest. It is only a hint: it may resolve without reason, and it may miss
            /// changes (behind a pooler it always does), so every loop also polls. In-process changes after the start
            /// of the call are not missed.
            fn woken(&self) -> Wakeup<'_>;
        }
    }
}
