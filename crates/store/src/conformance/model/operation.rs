//! [`Operation`]: one call of a verb, as data, so that it can be made twice and printed.

use everbell_core::change::NewJob;
use everbell_core::plan::Missed;
use everbell_core::settle::Transition;
use everbell_core::store::{
    AuditEntry, Instance, JobFilter, NewToken, RecentRuns, RequestKey, RunFilter, RunHistogram,
};
use everbell_core::{BackfillId, InstanceId, JobId, OutputSoFar, Overlap, Run, RunId};
use jiff::Timestamp;

#[derive(Clone, Debug)]
pub(super) enum Operation {
    Create(Box<NewJob>, AuditEntry),
    Change { key: String, revision: Option<u64>, change: Change, now: Timestamp, entry: AuditEntry },
    Get(String),
    Plan { now: Timestamp, targets: Vec<&'static str>, start: Option<Box<Operation>> },
    Start { instance: InstanceId, room: [u32; 2], limit: u32, now: Timestamp, lease_until: Timestamp },
    Record { transitions: Vec<Transition>, now: Timestamp },
    Extend { instance: InstanceId, now: Timestamp, until: Timestamp },
    Keep(Vec<OutputSoFar>),
    Expired { now: Timestamp, limit: u32 },
    InsertRun(Box<Run>, AuditEntry),
    Cancel { run: RunId, now: Timestamp, entry: AuditEntry },
    GetRun(RunId),
    SlotOutcome { job: JobId, slot: Timestamp },
    Heartbeat(Box<Instance>, Option<Timestamp>, bool),
    Drain { instance: InstanceId, draining: bool, entry: AuditEntry },
    RemoveInstances(Timestamp),
    CreateToken(NewToken, AuditEntry),
    FindToken { hash: [u8; 32], now: Timestamp },
    RevokeToken { name: String, now: Timestamp, entry: AuditEntry },
    FindRequest(RequestKey, Timestamp),
    Append(AuditEntry),
    RememberAnswer(RequestKey, Timestamp),
    ListJobs(JobFilter, u32),
    ListRuns(RunFilter, u32),
    CountJobs(JobFilter, u32),
    CountRuns(RunFilter, u32),
    RecentRuns(RecentRuns),
    RunHistogram(RunHistogram),
    CountHours(Timestamp),
    ListGaps(u32),
    ListAudit(u32),
    Counts(Timestamp),
    CountTargets,
    ListInstances,
    ListTokens,
    Prune { before: Timestamp, limit: u32 },
}

/// An operator's action, as data.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Pause,
    Resume(Missed),
    Retire,
    NewVersion {
        id: JobId,
        schedule: Option<&'static str>,
        activate: bool,
    },
    Reschedule(Timestamp),
    SkipNext(u32),
    RunNow {
        id: RunId,
        overlap: Option<Overlap>,
    },
    /// Backfills this many of the last slots.
    Backfill {
        id: BackfillId,
        slots: usize,
    },
    Refuse,
}
