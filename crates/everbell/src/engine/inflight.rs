//! [`Inflight`]: the runs that this instance holds, from the claim until their outcome is recorded.
//!
//! A handler has a place until it ends, so that the next ones start while its outcome is recorded. Outcomes that wait for the
//! database take no place, but no more runs are taken while there are very many of them.

mod places;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use everbell_core::store::Claim;
use everbell_core::{OnLeaseLoss, RunId, Target};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use self::places::Taken;
pub(super) use self::places::{Rooms, Take};
use crate::run::Run;
use crate::run_signals::{RunSignals, Stop};

/// A run and its attempt: a run that is tried again may be back before the outcome of the last attempt is forgotten.
pub(crate) type Attempt = (RunId, u32);

#[derive(Debug)]
pub(crate) struct Inflight {
    /// The most handlers at once.
    capacity: u32,
    /// The most outcomes in one transaction.
    batch: u32,
    runs: Mutex<TrackedRuns>,
    left: Notify,
    /// Notified when a handler is called, and when one has ended, once somebody has waited for it.
    changed: Notify,
    is_watched: AtomicBool,
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
    on_lease_loss: OnLeaseLoss,
    tracked: Arc<Tracked>,
    /// Whether the handler has ended and its outcome waits to be recorded.
    ended: bool,
}

/// The part of a run that its executor shares with the others.
#[derive(Debug)]
pub(super) struct Tracked {
    pub(super) signals: Arc<RunSignals>,
    /// The task to abort if the run is abandoned.
    supervisor: OnceLock<AbortHandle>,
    /// The buffer that its handler prints into.
    prints: OnceLock<Printing>,
    /// Whether the handler was called.
    called: AtomicBool,
}

impl Tracked {
    /// Remembers the task to abort if the run is abandoned.
    pub(super) fn supervised(&self, supervisor: AbortHandle) {
        drop(self.supervisor.set(supervisor));
    }

    /// Notes where its handler will print, from `begun` on.
    pub(super) fn prints(&self, run: Run, begun: Duration) {
        drop(self.prints.set(Printing { run, saved: Mutex::new(Saved { at: begun, bytes: 0 }) }));
    }
}

/// A handler that may print.
#[derive(Debug)]
struct Printing {
    run: Run,
    saved: Mutex<Saved>,
}

impl Printing {
    fn saved(&self) -> MutexGuard<'_, Saved> {
        self.saved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When a handler started, or when its output was last saved, by the monotonic clock, and the number of bytes printed by
/// then.
#[derive(Clone, Copy, Debug)]
struct Saved {
    at: Duration,
    bytes: u64,
}

impl Inflight {
    pub(super) fn new(capacity: u32, batch: u32) -> Inflight {
        let held = TrackedRuns { all: Taken { total: capacity, ..Taken::default() }, ..TrackedRuns::default() };
        let (left, changed) = (Notify::new(), Notify::new());
        Inflight { capacity, batch, runs: Mutex::new(held), left, changed, is_watched: AtomicBool::new(false) }
    }

    fn runs(&self) -> MutexGuard<'_, TrackedRuns> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a run that was claimed with a request sent at `sent`.
    pub(super) fn begin(&self, claim: &Claim, sent: Duration, on_lease_loss: OnLeaseLoss) -> Arc<Tracked> {
        let tracked = Arc::new(Tracked {
            signals: RunSignals::new(sent),
            supervisor: OnceLock::new(),
            prints: OnceLock::new(),
            called: AtomicBool::new(false),
        });
        let (target, is_backfill) = (claim.run.target.clone(), claim.run.is_backfill());
        let entry = Entry { target, is_backfill, on_lease_loss, tracked: Arc::clone(&tracked), ended: false };
        let mut runs = self.runs();
        runs.count(&entry.target, entry.is_backfill, true);
        runs.entries.insert((claim.run.id, claim.run.attempt), entry);
        tracked
    }

    /// The lease of this instance, and with it that of every run, was renewed by a request that was sent at `sent`. A run
    /// that was claimed later keeps its later time.
    pub(super) fn renew_all(&self, sent: Duration) {
        for entry in self.runs().entries.values() {
            entry.tracked.signals.renew(sent);
        }
    }

    /// Leases were renewed by a request that was sent at `sent`.
    pub(super) fn renew(&self, attempts: impl IntoIterator<Item = Attempt>, sent: Duration) {
        let runs = self.runs();
        for entry in attempts.into_iter().filter_map(|attempt| runs.entries.get(&attempt)) {
            entry.tracked.signals.renew(sent);
        }
    }

    /// Asks a handler to stop whose run belongs to another instance by now, unless its job lets it continue.
    pub(super) fn lose(&self, attempt: Attempt) {
        let runs = self.runs();
        let entry = runs.entries.get(&attempt).filter(|entry| !entry.ended);
        if let Some(entry) = entry.filter(|entry| entry.on_lease_loss == OnLeaseLoss::Stop) {
            entry.tracked.signals.ask(&Stop::LeaseLost);
        }
    }

    /// Runs that have printed more than was kept, `every` or longer before `now`, those first whose turn was the longest ago,
    /// with how many bytes they have printed.
    pub(super) fn unsaved_outputs(&self, now: Duration, every: Duration, most: usize) -> Vec<(Run, u64)> {
        let runs = self.runs();
        let printing =
            runs.entries.values().filter(|entry| !entry.ended).filter_map(|entry| entry.tracked.prints.get());
        let saved = printing.map(|printing| (*printing.saved(), &printing.run));
        let due = saved.filter(|(saved, _)| now.saturating_sub(saved.at) >= every);
        let mut unsaved_outputs: Vec<(Duration, &Run, u64)> = due
            .map(|(saved, run)| (saved, run, run.printed()))
            .filter(|(saved, _, bytes)| *bytes > saved.bytes)
            .map(|(saved, run, bytes)| (saved.at, run, bytes))
            .collect();
        unsaved_outputs.sort_by_key(|(saved_at, ..)| *saved_at);
        unsaved_outputs.into_iter().take(most).map(|(_, run, bytes)| (run.clone(), bytes)).collect()
    }

    /// Notes that the output of an attempt is saved up to this byte.
    pub(super) fn kept(&self, attempt: Attempt, bytes: u64, at: Duration) {
        if let Some(printing) = self.runs().entries.get(&attempt).and_then(|entry| entry.tracked.prints.get()) {
            *printing.saved() = Saved { at, bytes };
        }
    }

    /// Its handler is called now.
    pub(super) fn called(&self, tracked: &Tracked) {
        tracked.called.store(true, Ordering::SeqCst);
        self.tell_watchers();
    }

    fn tell_watchers(&self) {
        if self.is_watched.load(Ordering::SeqCst) {
            self.changed.notify_waiters();
        }
    }

    /// Resolves when every handler was called, or has ended without that.
    pub(crate) async fn all_called(&self) {
        self.is_watched.store(true, Ordering::SeqCst);
        loop {
            let changed = self.changed.notified();
            if self.runs().entries.values().all(|entry| entry.ended || entry.tracked.called.load(Ordering::SeqCst)) {
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
        self.tell_watchers();
        is_news
    }

    /// Their outcomes are recorded, or will never be.
    pub(super) fn remove(&self, attempts: impl IntoIterator<Item = Attempt>) {
        let mut runs = self.runs();
        let removed: Vec<Entry> = attempts.into_iter().filter_map(|attempt| runs.entries.remove(&attempt)).collect();
        for entry in removed.iter().filter(|entry| !entry.ended) {
            runs.count(&entry.target, entry.is_backfill, false);
        }
        if runs.entries.is_empty() {
            self.left.notify_waiters();
        }
        // The last traces of runs are freed when nobody has to wait for it.
        drop(runs);
        drop(removed);
    }

    /// Asks a handler to stop, if it is at work.
    pub(super) fn stop(&self, attempt: Attempt, why: &Stop) -> bool {
        let runs = self.runs();
        let Some(entry) = runs.entries.get(&attempt).filter(|entry| !entry.ended) else { return false };
        entry.tracked.signals.ask(why)
    }

    /// Asks every handler to stop.
    pub(crate) fn stop_all(&self, why: &Stop) {
        for entry in self.runs().entries.values().filter(|entry| !entry.ended) {
            entry.tracked.signals.ask(why);
        }
    }

    /// Ends everything without a word.
    pub(super) fn abort_all(&self) {
        for entry in self.runs().entries.values() {
            entry.tracked.supervisor.get().inspect(|supervisor| supervisor.abort());
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
            .and_then(|entry| entry.tracked.prints.get())
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
