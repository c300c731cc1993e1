//! [`Run`]: what a handler knows about the run it works on, and what it can say meanwhile.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use everbell_core::store::Claim;
use everbell_core::{
    Definition, EarlierAttempt, JobKey, Json, MAX_OUTPUT_BYTES, OrgId, OutputSoFar, Run as RunRecord, RunId, Target,
    TraceContext, Trigger,
};
use jiff::civil::Date;
use jiff::{Timestamp, Zoned};
use tracing::{Span, info_span};

use crate::events::{Event, Events, RunInfo};
use crate::lease::Lease;
use crate::remote_side::RemoteSide;
use crate::run_signals::RunSignals;
use crate::trace::TracingHook;

/// The run that a handler works on. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Run(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    claim: Claim,
    upstreams: Vec<RunRecord>,
    events: Events,
    signals: Arc<RunSignals>,
    lease: Lease,
    output: Mutex<Tail>,
    /// The number of callers that wait in [`Run::canceled`].
    awaiting_stop: AtomicUsize,
    span: OnceLock<Span>,
    tracing: TracingHook,
    remote_side: RemoteSide,
}

/// Counts a caller until it is dropped.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(count: &'a AtomicUsize) -> Counted<'a> {
        count.fetch_add(1, Ordering::Relaxed);
        Counted(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The end of the output, and its total length.
#[derive(Debug, Default)]
struct Tail {
    end: VecDeque<u8>,
    bytes: u64,
}

impl Tail {
    fn push(&mut self, text: &[u8]) {
        self.bytes += text.len() as u64;
        let text = &text[text.len().saturating_sub(MAX_OUTPUT_BYTES)..];
        let surplus = (self.end.len() + text.len()).saturating_sub(MAX_OUTPUT_BYTES);
        self.end.drain(..surplus);
        self.end.extend(text);
    }
}

impl Run {
    pub(crate) fn new(
        claim: Claim,
        upstreams: Vec<RunRecord>,
        events: Events,
        signals: Arc<RunSignals>,
        lease: Lease,
        tracing: TracingHook,
    ) -> Run {
        let (output, awaiting_stop, span) = (Mutex::default(), AtomicUsize::new(0), OnceLock::new());
        let remote_side = RemoteSide::default();
        Run(Arc::new(Inner {
            claim,
            upstreams,
            events,
            signals,
            lease,
            output,
            awaiting_stop,
            span,
            tracing,
            remote_side,
        }))
    }

    /// Returns the id of the run.
    pub fn id(&self) -> RunId {
        self.0.claim.run.id
    }

    /// Returns the key of the job; `None` for a trial of a target.
    pub fn job_key(&self) -> Option<&JobKey> {
        self.0.claim.run.job_key.as_ref()
    }

    /// Returns the version of the job.
    pub fn job_version(&self) -> Option<u32> {
        self.0.claim.run.job_version
    }

    /// Returns the job, with its schedule and policies; `None` for a trial of a target.
    pub fn job(&self) -> Option<&Definition> {
        self.0.claim.job.as_deref()
    }

    /// Returns the target.
    pub fn target(&self) -> &Target {
        &self.0.claim.run.target
    }

    /// Returns the cause of this run: a slot, a person, a backfill, the end of another run.
    pub fn trigger(&self) -> &Trigger {
        &self.0.claim.run.trigger
    }

    /// Returns the run of another job whose end started this one, with its result; `None` for other triggers, and if that
    /// run was deleted meanwhile. If this job waited for runs of several jobs, it is the one that ended last.
    pub fn upstream(&self) -> Option<&RunRecord> {
        let last = self.trigger().upstream().first();
        self.0.upstreams.iter().find(|run| Some(&run.id) == last)
    }

    /// Returns the runs of other jobs that this job waited for, with their results, the one that ended last first. Runs that
    /// were deleted meanwhile are missing.
    pub fn upstreams(&self) -> &[RunRecord] {
        &self.0.upstreams
    }

    /// Returns the trace of the request that created this run, or its one-time job: for calls that shall belong to it.
    ///
    /// Every attempt has the same one. Slots of recurring jobs have none: they follow from the clock, not from a request.
    pub fn trace_context(&self) -> Option<&TraceContext> {
        self.0.claim.run.trace_context.as_ref()
    }

    /// Returns the payload as text. [`Payload`](crate::Payload) reads it into a type.
    pub fn payload(&self) -> &Json {
        &self.0.claim.run.payload
    }

    /// Returns the org, for a per-org job.
    pub fn org(&self) -> Option<&OrgId> {
        self.0.claim.run.org.as_ref()
    }

    /// Returns the org-local date of the slot.
    pub fn local_date(&self) -> Option<Date> {
        self.0.claim.run.local_date
    }

    /// Returns the nominal instant, in the job's zone; `None` for a run by hand, and for a run of an org, whose zone
    /// may have changed since: it has [`Run::local_date`].
    pub fn slot(&self) -> Option<Zoned> {
        if self.org().is_some() {
            return None;
        }
        let zone = self.job()?.spec.as_ref().ok()?.zone().as_jiff().clone();
        Some(self.slot_utc()?.to_zoned(zone))
    }

    /// Returns the nominal instant; `None` for a run by hand.
    pub fn slot_utc(&self) -> Option<Timestamp> {
        self.0.claim.run.slot_at
    }

    /// Returns when it should start: the slot, or the time that an operator moved it to.
    pub fn scheduled_at(&self) -> Timestamp {
        self.0.claim.run.scheduled_at
    }

    /// Returns when this attempt started.
    pub fn started_at(&self) -> Timestamp {
        self.0.claim.run.started_at.unwrap_or(self.0.claim.run.scheduled_at)
    }

    /// Whether the slot was older than the job's grace when it was planned: no scheduler was running when it was due.
    pub fn is_catch_up(&self) -> bool {
        self.0.claim.run.catch_up
    }

    /// Returns how many earlier slots were folded into this run.
    pub fn folded(&self) -> u64 {
        self.0.claim.run.folded
    }

    /// Returns the number of the attempt, from 1. It may exceed the job's attempts, because an attempt that a shutdown
    /// stopped may not count: see [`Run::attempts_used`].
    pub fn attempt(&self) -> u32 {
        self.0.claim.run.attempt
    }

    /// Returns how many of the job's attempts are used up, this one included.
    pub fn attempts_used(&self) -> u32 {
        self.0.claim.run.attempts_used()
    }

    /// Returns the attempts before this one and why they ended, oldest first.
    pub fn earlier_attempts(&self) -> &[EarlierAttempt] {
        &self.0.claim.run.earlier_attempts
    }

    /// Returns a number that grows with every attempt, also on other instances: a resource that has seen a larger one
    /// should refuse this one.
    pub fn fence(&self) -> u32 {
        self.attempt()
    }

    /// Returns a key that is the same for the same slot on every instance and for every attempt: pass it to services
    /// that must act only once.
    pub fn idempotency_key(&self) -> String {
        self.0.claim.run.idempotency_key()
    }

    /// Returns the lease: how long this run may go on unless it is renewed, for work outside of this process.
    pub fn lease(&self) -> Lease {
        self.0.lease.clone()
    }

    /// Whether this run should stop: it took too long, it was canceled, its lease is lost, or its instance shuts down.
    /// Some time after that it is dropped at its next `.await`.
    pub fn is_canceled(&self) -> bool {
        self.0.signals.is_canceled()
    }

    /// Resolves when this run should stop.
    pub async fn canceled(&self) {
        let _waiting = Counted::new(&self.0.awaiting_stop);
        self.0.signals.canceled().await;
    }

    /// Whether a caller waits in [`Run::canceled`].
    pub(crate) fn awaits_stop(&self) -> bool {
        self.0.awaiting_stop.load(Ordering::Relaxed) > 0
    }

    /// Adds a line to the output of the run. The last 64 KiB are saved, now and then while it is at work, and at its
    /// end.
    pub fn log(&self, line: impl AsRef<str>) {
        let line = line.as_ref();
        let mut output = self.tail();
        output.push(line.as_bytes());
        if !line.ends_with('\n') {
            output.push(b"\n");
        }
    }

    /// Adds bytes to the output of the run, as they come. The last 64 KiB are saved.
    pub fn write_output(&self, bytes: &[u8]) {
        self.tail().push(bytes);
    }

    /// Reports the progress, from 0 to 1, to listeners of events.
    pub fn progress(&self, done: f64, message: impl Into<String>) {
        self.0.events.publish(Event::Progress {
            run: self.info(),
            done: done.clamp(0.0, 1.0),
            message: message.into(),
        });
    }

    /// Returns the output so far.
    pub fn output(&self) -> String {
        let tail = self.tail();
        let bytes: Vec<u8> = tail.end.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns the number of bytes printed so far.
    pub(crate) fn printed(&self) -> u64 {
        self.tail().bytes
    }

    /// Returns the output so far, as it is saved.
    pub(crate) fn output_so_far(&self) -> Option<OutputSoFar> {
        OutputSoFar::new(self.id(), self.attempt(), &self.output())
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.0.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the span that the handler runs in, for the logs of work that leaves its task: use `run.span().in_scope(..)`
    /// in `spawn_blocking`, and `.instrument(run.span().clone())` ([`tracing::Instrument`]) for futures that are spawned.
    ///
    /// It is called `everbell.run` and has the fields `run`, `attempt`, `target_label`, and if the run has them `job`,
    /// `version`, `org`, `slot` and `trace_id`. With [`Builder::tracing`](crate::Builder::tracing) it is a child of the span
    /// that asked for the run.
    pub fn span(&self) -> &Span {
        self.0.span.get_or_init(|| {
            let run = &self.0.claim.run;
            let span = info_span!(
                "everbell.run",
                run = %run.id,
                attempt = run.attempt,
                target_label = %run.target,
                job = run.job_key.as_ref().map(display),
                version = run.job_version,
                org = run.org.as_ref().map(display),
                slot = run.slot_at.as_ref().map(display),
                trace_id = run.trace_context.as_ref().map(TraceContext::trace_id),
            );
            if let Some(parent) = &run.trace_context {
                self.0.tracing.set_parent(&span, parent);
            }
            span
        })
    }

    /// Returns the run token, which lets a remote side report about this attempt over the HTTP API, and no other run or
    /// attempt; `None` unless the target has [`TargetOptions::remote_lease`](crate::TargetOptions::remote_lease). It is a
    /// secret.
    pub fn token(&self) -> Option<&str> {
        self.0.remote_side.token()
    }

    /// Hands the run over to its remote side when the handler returns, whatever it returns: the run goes on, and belongs to no
    /// instance. Its remote side, which was given [`Run::token`], sends heartbeats and ends it.
    ///
    /// Does nothing and returns `false` if there is no token.
    pub fn hand_over(&self) -> bool {
        self.0.remote_side.hand_over()
    }

    pub(crate) fn remote_side(&self) -> &RemoteSide {
        &self.0.remote_side
    }

    pub(crate) fn info(&self) -> RunInfo {
        info(&self.0.claim)
    }
}

pub(crate) fn info(claim: &Claim) -> RunInfo {
    info_of(&claim.run)
}

pub(crate) fn info_of(run: &everbell_core::Run) -> RunInfo {
    RunInfo {
        id: run.id,
        job: run.job_key.clone(),
        org: run.org.clone(),
        target: run.target.clone(),
        trigger: run.trigger.kind(),
        attempt: run.attempt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_output_is_kept() {
        let mut tail = Tail::default();
        for n in 0..MAX_OUTPUT_BYTES {
            tail.push(format!("{n},").as_bytes());
        }
        assert_eq!(tail.end.len(), MAX_OUTPUT_BYTES);
        let text = String::from_utf8(tail.end.iter().copied().collect()).unwrap();
        assert!(text.ends_with(&format!(",{},", MAX_OUTPUT_BYTES - 1)), "{}", &text[text.len() - 20..]);
        tail.push(&vec![b'x'; 3 * MAX_OUTPUT_BYTES]);
        assert!(tail.end.iter().all(|b| *b == b'x') && tail.end.len() == MAX_OUTPUT_BYTES);
    }
}
