//! [`Inflight`]: the runs that this instance holds, from the claim until their outcome is recorded.
//!
//! Its size is the bound of everything behind: handlers at work, and outcomes that wait for the database.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use everbell_core::store::{Claim, TargetRoom};
use everbell_core::{RunId, Target};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use crate::run::Run;
use crate::targets::Targets;

/// A run and its attempt: a run that is tried again may be back before the outcome of the last attempt is forgotten.
pub(crate) type Attempt = (RunId, u32);

/// Why a handler shall stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Somebody wants it.
    Canceled { by: String },
    /// The run does not belong to this instance any more.
    LeaseLost,
    /// The instance ends.
    Shutdown,
}

#[derive(Debug)]
pub(crate) struct Inflight {
    capacity: u32,
    runs: Mutex<BTreeMap<Attempt, Entry>>,
    left: Notify,
}

#[derive(Debug)]
struct Entry {
    target: Target,
    stop: watch::Sender<Option<Stop>>,
    supervisor: Option<AbortHandle>,
    /// What its handler prints into.
    prints: Option<Printing>,
    /// The handler has ended; what came out waits to be recorded.
    ended: bool,
}

impl Entry {
    /// The first reason counts.
    fn ask(&self, why: &Stop) -> bool {
        self.stop.send_if_modified(|stop| stop.is_none() && stop.replace(why.clone()).is_none())
    }
}

/// A handler that may print.
#[derive(Debug)]
struct Printing {
    run: Run,
    /// When it began, or when what it printed was kept last, by the monotonic clock, and how many bytes of that were printed
    /// by then.
    kept_at: Duration,
    kept: u64,
}

impl Inflight {
    pub(super) fn new(capacity: u32) -> Inflight {
        Inflight { capacity, runs: Mutex::default(), left: Notify::new() }
    }

    fn runs(&self) -> MutexGuard<'_, BTreeMap<Attempt, Entry>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many more runs of each target may be taken, and how many in all.
    pub(super) fn room(&self, targets: &Targets) -> (Vec<TargetRoom>, u32) {
        let runs = self.runs();
        let room = self.capacity.saturating_sub(u32::try_from(runs.len()).unwrap_or(u32::MAX));
        let mut taken: BTreeMap<&Target, u32> = BTreeMap::new();
        for entry in runs.values() {
            *taken.entry(&entry.target).or_default() += 1;
        }
        let rooms = targets.iter().filter_map(|(target, served)| {
            let limit = served.options.concurrency.unwrap_or(self.capacity);
            let room = limit.saturating_sub(taken.get(target).copied().unwrap_or(0)).min(room);
            (room > 0).then(|| TargetRoom { target: target.clone(), room })
        });
        (rooms.collect(), room)
    }

    /// A run was claimed. Tells when it shall stop.
    pub(super) fn begin(&self, claim: &Claim) -> watch::Receiver<Option<Stop>> {
        let (stop, asked) = watch::channel(None);
        let entry = Entry { target: claim.run.target.clone(), stop, supervisor: None, prints: None, ended: false };
        self.runs().insert((claim.run.id, claim.run.attempt), entry);
        asked
    }

    /// What to abort when nobody cares any more.
    pub(super) fn supervised(&self, attempt: Attempt, supervisor: AbortHandle) {
        if let Some(entry) = self.runs().get_mut(&attempt) {
            entry.supervisor = Some(supervisor);
        }
    }

    /// Where its handler will print, from `begun` on.
    pub(super) fn prints(&self, attempt: Attempt, run: Run, begun: Duration) {
        if let Some(entry) = self.runs().get_mut(&attempt) {
            entry.prints = Some(Printing { kept_at: begun, kept: 0, run });
        }
    }

    /// Runs that have printed more than was kept, `every` or longer before `now`, those first whose turn was the longest ago,
    /// with how many bytes they have printed.
    pub(super) fn unkept(&self, now: Duration, every: Duration, most: usize) -> Vec<(Run, u64)> {
        let runs = self.runs();
        let printing = runs.values().filter(|entry| !entry.ended).filter_map(|entry| entry.prints.as_ref());
        let due = printing.filter(|printing| now.saturating_sub(printing.kept_at) >= every);
        let mut unkept: Vec<(&Printing, u64)> = due
            .map(|printing| (printing, printing.run.printed()))
            .filter(|(printing, bytes)| *bytes > printing.kept)
            .collect();
        unkept.sort_by_key(|(printing, _)| printing.kept_at);
        unkept.into_iter().take(most).map(|(printing, bytes)| (printing.run.clone(), bytes)).collect()
    }

    /// What an attempt had printed is kept.
    pub(super) fn kept(&self, attempt: Attempt, bytes: u64, at: Duration) {
        if let Some(printing) = self.runs().get_mut(&attempt).and_then(|entry| entry.prints.as_mut()) {
            (printing.kept_at, printing.kept) = (at, bytes);
        }
    }

    /// Its handler has ended.
    pub(super) fn ended(&self, attempt: Attempt) {
        if let Some(entry) = self.runs().get_mut(&attempt) {
            entry.ended = true;
        }
    }

    /// Its outcome is recorded, or will never be.
    pub(super) fn remove(&self, attempt: Attempt) {
        let mut runs = self.runs();
        runs.remove(&attempt);
        if runs.is_empty() {
            self.left.notify_waiters();
        }
    }

    /// Asks a handler to stop, if it is at work.
    pub(super) fn stop(&self, attempt: Attempt, why: &Stop) -> bool {
        let runs = self.runs();
        let Some(entry) = runs.get(&attempt).filter(|entry| !entry.ended) else { return false };
        entry.ask(why)
    }

    /// Asks every handler to stop.
    pub(super) fn stop_all(&self, why: &Stop) {
        for entry in self.runs().values().filter(|entry| !entry.ended) {
            entry.ask(why);
        }
    }

    /// Ends everything without a word.
    pub(super) fn abort_all(&self) {
        for entry in self.runs().values() {
            entry.supervisor.as_ref().inspect(|supervisor| supervisor.abort());
        }
    }

    /// What is held.
    pub(super) fn attempts(&self) -> Vec<Attempt> {
        self.runs().keys().copied().collect()
    }

    /// Whose handlers have not ended.
    pub(crate) fn working(&self) -> Vec<Attempt> {
        self.runs().iter().filter(|(_, entry)| !entry.ended).map(|(attempt, _)| *attempt).collect()
    }

    pub(crate) fn contains(&self, attempt: Attempt) -> bool {
        self.runs().contains_key(&attempt)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs().is_empty()
    }

    /// Whether some handler has not ended.
    pub(crate) fn is_working(&self) -> bool {
        self.runs().values().any(|entry| !entry.ended)
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
