//! [`Inflight`]: the runs that this instance holds, from the claim until their outcome is recorded.
//!
//! A handler has a place until it ends, so that the next ones start while its outcome is recorded. Outcomes that wait for the
//! database take no place, but no more runs are taken while there are very many of them.

mod places;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use everbell_core::store::Claim;
use everbell_core::{OnLeaseLoss, RunId, Target};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use self::places::Taken;
pub(super) use self::places::{Rooms, Take};
use crate::run::Run;

/// A run and its attempt: a run that is tried again may be back before the outcome of the last attempt is forgotten.
pub(crate) type Attempt = (RunId, u32);

/// Why a handler shall stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Its cancellation was asked for.
    Canceled { by: String },
    /// The run does not belong to this instance any more.
    LeaseLost,
    /// The instance ends.
    Shutdown,
}

#[derive(Debug)]
pub(crate) struct Inflight {
    /// The most handlers at once.
    capacity: u32,
    /// The most outcomes in one transaction.
    batch: u32,
    runs: Mutex<TrackedRuns>,
    left: Notify,
    /// Notified when a handler is called, and when one has ended.
    changed: Notify,
}

#[derive(Debug, Default)]
struct TrackedRuns {
    entries: BTreeMap<Attempt, Entry>,
    all: Taken,
    of_targets: BTreeMap<Target, Taken>,
    /// Whether the loops that take runs were woken for free places, and have not reserved any since.
    announced: bool,
}

impl TrackedRuns {
    /// A handler begins or ends.
    fn count(&mut self, target: &Target, is_backfill: bool, begins: bool) {
        if !self.of_targets.contains_key(target) {
            self.of_targets.insert(target.clone(), Taken::default());
        }
        for taken in [Some(&mut self.all), self.of_targets.get_mut(target)].into_iter().flatten() {
            for (count, by) in [(&mut taken.working, 1), (&mut taken.backfills, u32::from(is_backfill))] {
                *count = if begins { *count + by } else { count.saturating_sub(by) };
            }
        }
    }
}

#[derive(Debug)]
struct Entry {
    target: Target,
    is_backfill: bool,
    stop: watch::Sender<Option<Stop>>,
    /// When the request that granted or renewed its lease last was sent, by the monotonic clock.
    renewed: watch::Sender<Duration>,
    on_lease_loss: OnLeaseLoss,
    supervisor: Option<AbortHandle>,
    /// The buffer that its handler prints into.
    prints: Option<Printing>,
    /// Whether the handler was called.
    called: bool,
    /// Whether the handler has ended and its outcome waits to be recorded.
    ended: bool,
}

/// The signals that the executor of a run receives.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) asked: watch::Receiver<Option<Stop>>,
    pub(super) renewed: watch::Receiver<Duration>,
}

impl Entry {
    /// Requests may be answered in another order than they were sent.
    fn renew(&self, sent: Duration) {
        self.renewed.send_if_modified(|renewed| {
            let is_later = sent > *renewed;
            *renewed = sent.max(*renewed);
            is_later
        });
    }

    /// The first reason counts.
    fn ask(&self, why: &Stop) -> bool {
        self.stop.send_if_modified(|stop| stop.is_none() && stop.replace(why.clone()).is_none())
    }
}

/// A handler that may print.
#[derive(Debug)]
struct Printing {
    run: Run,
    /// When it started, or when its output was last saved, by the monotonic clock, and the number of bytes printed by
    /// then.
    kept_at: Duration,
    kept: u64,
}

impl Inflight {
    pub(super) fn new(capacity: u32, batch: u32) -> Inflight {
        let held = TrackedRuns { all: Taken { total: capacity, ..Taken::default() }, ..TrackedRuns::default() };
        Inflight { capacity, batch, runs: Mutex::new(held), left: Notify::new(), changed: Notify::new() }
    }

    fn runs(&self) -> MutexGuard<'_, TrackedRuns> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a run that was claimed with a request sent at `sent`. Returns the signals to stop it and of its renewed
    /// lease.
    pub(super) fn begin(&self, claim: &Claim, sent: Duration, on_lease_loss: OnLeaseLoss) -> Begun {
        let (stop, asked) = watch::channel(None);
        let (renew, renewed) = watch::channel(sent);
        let entry = Entry {
            target: claim.run.target.clone(),
            is_backfill: claim.run.is_backfill(),
            stop,
            renewed: renew,
            on_lease_loss,
            supervisor: None,
            prints: None,
            called: false,
            ended: false,
        };
        let mut runs = self.runs();
        runs.count(&entry.target, entry.is_backfill, true);
        runs.entries.insert((claim.run.id, claim.run.attempt), entry);
        Begun { asked, renewed }
    }

    /// The lease of this instance, and with it that of every run, was renewed by a request that was sent at `sent`. A run
    /// that was claimed later keeps its later time.
    pub(super) fn renew_all(&self, sent: Duration) {
        for entry in self.runs().entries.values() {
            entry.renew(sent);
        }
    }

    /// Leases were renewed by a request that was sent at `sent`.
    pub(super) fn renew(&self, attempts: impl IntoIterator<Item = Attempt>, sent: Duration) {
        let runs = self.runs();
        for entry in attempts.into_iter().filter_map(|attempt| runs.entries.get(&attempt)) {
            entry.renew(sent);
        }
    }

    /// Asks a handler to stop whose run belongs to another instance by now, unless its job lets it continue.
    pub(super) fn lose(&self, attempt: Attempt) {
        let runs = self.runs();
        let entry = runs.entries.get(&attempt).filter(|entry| !entry.ended);
        if let Some(entry) = entry.filter(|entry| entry.on_lease_loss == OnLeaseLoss::Stop) {
            entry.ask(&Stop::LeaseLost);
        }
    }

    /// Remembers the task to abort if the run is abandoned.
    pub(super) fn supervised(&self, attempt: Attempt, supervisor: AbortHandle) {
        if let Some(entry) = self.runs().entries.get_mut(&attempt) {
            entry.supervisor = Some(supervisor);
        }
    }

    /// Notes where its handler will print, from `begun` on.
    pub(super) fn prints(&self, attempt: Attempt, run: Run, begun: Duration) {
        if let Some(entry) = self.runs().entries.get_mut(&attempt) {
            entry.prints = Some(Printing { kept_at: begun, kept: 0, run });
        }
    }

    /// Runs that have printed more than was kept, `every` or longer before `now`, those first whose turn was the longest ago,
    /// with how many bytes they have printed.
    pub(super) fn unsaved_outputs(&self, now: Duration, every: Duration, most: usize) -> Vec<(Run, u64)> {
        let runs = self.runs();
        let printing = runs.entries.values().filter(|entry| !entry.ended).filter_map(|entry| entry.prints.as_ref());
        let due = printing.filter(|printing| now.saturating_sub(printing.kept_at) >= every);
        let mut unsaved_outputs: Vec<(&Printing, u64)> = due
            .map(|printing| (printing, printing.run.printed()))
            .filter(|(printing, bytes)| *bytes > printing.kept)
            .collect();
        unsaved_outputs.sort_by_key(|(printing, _)| printing.kept_at);
        unsaved_outputs.into_iter().take(most).map(|(printing, bytes)| (printing.run.clone(), bytes)).collect()
    }

    /// Notes that the output of an attempt is saved up to this byte.
    pub(super) fn kept(&self, attempt: Attempt, bytes: u64, at: Duration) {
        if let Some(printing) = self.runs().entries.get_mut(&attempt).and_then(|entry| entry.prints.as_mut()) {
            (printing.kept_at, printing.kept) = (at, bytes);
        }
    }

    /// Its handler is called now.
    pub(super) fn called(&self, attempt: Attempt) {
        if let Some(entry) = self.runs().entries.get_mut(&attempt) {
            entry.called = true;
        }
        self.changed.notify_waiters();
    }

    /// Resolves when every handler was called, or has ended without that.
    pub(crate) async fn all_called(&self) {
        loop {
            let changed = self.changed.notified();
            if self.runs().entries.values().all(|entry| entry.called || entry.ended) {
                return;
            }
            changed.await;
        }
    }

    /// Its handler has ended, so its place is free. Returns whether enough are free to look for runs at once.
    pub(super) fn ended(&self, attempt: Attempt) -> bool {
        let mut runs = self.runs();
        let Some(entry) = runs.entries.get_mut(&attempt).filter(|entry| !entry.ended) else { return false };
        entry.ended = true;
        let (target, is_backfill) = (entry.target.clone(), entry.is_backfill);
        runs.count(&target, is_backfill, false);
        let of_target = runs.of_targets.get(&target).copied().unwrap_or_default();
        let is_news = !runs.announced && runs.all.has_many_free(self.batch) && of_target.has_many_free(self.batch);
        runs.announced |= is_news;
        drop(runs);
        self.changed.notify_waiters();
        is_news
    }

    /// Its outcome is recorded, or will never be. Returns whether it was a run of a backfill.
    pub(super) fn remove(&self, attempt: Attempt) -> bool {
        let mut runs = self.runs();
        let Some(entry) = runs.entries.remove(&attempt) else { return false };
        if !entry.ended {
            runs.count(&entry.target, entry.is_backfill, false);
        }
        if runs.entries.is_empty() {
            self.left.notify_waiters();
        }
        entry.is_backfill
    }

    /// Asks a handler to stop, if it is at work.
    pub(super) fn stop(&self, attempt: Attempt, why: &Stop) -> bool {
        let runs = self.runs();
        let Some(entry) = runs.entries.get(&attempt).filter(|entry| !entry.ended) else { return false };
        entry.ask(why)
    }

    /// Asks every handler to stop.
    pub(crate) fn stop_all(&self, why: &Stop) {
        for entry in self.runs().entries.values().filter(|entry| !entry.ended) {
            entry.ask(why);
        }
    }

    /// Ends everything without a word.
    pub(super) fn abort_all(&self) {
        for entry in self.runs().entries.values() {
            entry.supervisor.as_ref().inspect(|supervisor| supervisor.abort());
        }
    }

    /// The attempts that this instance holds.
    pub(super) fn attempts(&self) -> Vec<Attempt> {
        self.runs().entries.keys().copied().collect()
    }

    /// The attempts whose handlers have not ended.
    pub(crate) fn working(&self) -> Vec<Attempt> {
        self.runs().entries.iter().filter(|(_, entry)| !entry.ended).map(|(attempt, _)| *attempt).collect()
    }

    /// Whether the handler of an attempt waits until it is asked to stop.
    pub(crate) fn awaits_stop(&self, attempt: Attempt) -> bool {
        self.runs()
            .entries
            .get(&attempt)
            .and_then(|entry| entry.prints.as_ref())
            .is_some_and(|own| own.run.awaits_stop())
    }

    pub(crate) fn contains(&self, attempt: Attempt) -> bool {
        self.runs().entries.contains_key(&attempt)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs().entries.is_empty()
    }

    /// Whether some handler has not ended.
    pub(crate) fn is_working(&self) -> bool {
        self.runs().all.working > 0
    }

    /// Resolves when nothing is held.
    pub(super) async fn emptied(&self) {
        loop {
            let left = self.left.notified();
            if self.is_empty() {
                return;
            }
            left.await;
        }
    }
}
