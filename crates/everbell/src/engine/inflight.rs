//! [`Inflight`]: the runs that this instance holds, from the claim until their outcome is recorded.
//!
//! Its size is the bound of everything behind: handlers at work, and outcomes that wait for the database.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use everbell_core::places::{Places, Room};
use everbell_core::store::{Claim, TargetRoom};
use everbell_core::{OnLeaseLoss, RunId, Target};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use crate::run::Run;
use crate::targets::Targets;

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
    capacity: u32,
    runs: Mutex<TrackedRuns>,
    left: Notify,
    /// Notified when a handler is called, and when one has ended.
    changed: Notify,
}

#[derive(Debug, Default)]
struct TrackedRuns {
    entries: BTreeMap<Attempt, Entry>,
    /// How many places are reserved for claims that are under way: in all, and of each target.
    reserved: u32,
    reserved_of: BTreeMap<Target, u32>,
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

/// The runs that places are reserved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Take {
    /// Pending ones, of which backfills get no more than their share.
    Pending,
    /// Runs of slots that start with their plan.
    Slots,
}

/// Places that are reserved for the runs of a claim, until it is dropped: how many to ask for.
#[derive(Debug)]
pub(super) struct Rooms<'a> {
    inflight: &'a Inflight,
    pub(super) targets: Vec<TargetRoom>,
    /// For each of the targets whether it has more room than is asked for.
    partial: Vec<bool>,
    /// In all.
    pub(super) limit: u32,
}

impl Rooms<'_> {
    /// Whether there is room for this target.
    pub(super) fn has(&self, target: &Target) -> bool {
        self.targets.iter().any(|room| room.target == *target)
    }

    /// Whether there is room for this target that these claims have not filled.
    pub(super) fn has_left(&self, target: &Target, claims: &[Claim]) -> bool {
        let taken = claims.iter().filter(|claim| claim.run.target == *target).count();
        self.targets.iter().any(|room| room.target == *target && taken < room.room as usize)
    }

    /// Whether there may be more runs, because a target whose room was not all asked for gave as many as it could.
    pub(super) fn may_have_more(&self, claims: &[Claim]) -> bool {
        self.targets.iter().zip(&self.partial).any(|(wanted, partial)| {
            *partial && claims.iter().filter(|claim| claim.run.target == wanted.target).count() >= wanted.room as usize
        })
    }
}

impl Drop for Rooms<'_> {
    fn drop(&mut self) {
        let mut runs = self.inflight.runs();
        runs.reserved -= self.limit;
        for room in &self.targets {
            if let Some(reserved) = runs.reserved_of.get_mut(&room.target) {
                *reserved = reserved.saturating_sub(room.room);
            }
        }
    }
}

impl Inflight {
    pub(super) fn new(capacity: u32) -> Inflight {
        Inflight { capacity, runs: Mutex::default(), left: Notify::new(), changed: Notify::new() }
    }

    fn runs(&self) -> MutexGuard<'_, TrackedRuns> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves places: at most this many for each of the wanted targets, and in all.
    pub(super) fn reserve(
        &self,
        targets: &Targets,
        take: Take,
        most: u32,
        is_wanted: impl Fn(&Target) -> bool,
    ) -> Rooms<'_> {
        let mut runs = self.runs();
        let (mut taken, mut backfills) = (runs.reserved, 0);
        let mut of_targets: BTreeMap<&Target, (u32, u32)> =
            runs.reserved_of.iter().map(|(target, reserved)| (target, (*reserved, 0))).collect();
        for entry in runs.entries.values() {
            let backfill = u32::from(entry.is_backfill);
            let own = of_targets.entry(&entry.target).or_default();
            *own = (own.0 + 1, own.1 + backfill);
            (taken, backfills) = (taken + 1, backfills + backfill);
        }
        let free =
            |total: u32, taken: u32| Room { runs: total.saturating_sub(taken), backfills: false, partial: false };
        let all = match take {
            Take::Pending => Places { total: self.capacity, taken, backfills }.room(),
            Take::Slots => free(self.capacity, taken),
        };
        let mut rooms = Rooms { inflight: self, targets: Vec::new(), partial: Vec::new(), limit: 0 };
        let most = all.runs.min(most);
        let mut wanted = 0_u32;
        for (target, served) in targets.iter().filter(|(target, _)| is_wanted(target)) {
            let total = served.options.concurrency.unwrap_or(self.capacity);
            let (taken, backfills) = of_targets.get(target).copied().unwrap_or_default();
            let own = if all.backfills { Places { total, taken, backfills }.room() } else { free(total, taken) };
            let room = own.runs.min(most);
            if room > 0 {
                wanted = wanted.saturating_add(room);
                rooms.targets.push(TargetRoom { target: target.clone(), room, backfills: own.backfills });
                rooms.partial.push(own.partial);
            }
        }
        rooms.limit = most.min(wanted);
        drop(of_targets);
        runs.reserved += rooms.limit;
        for room in &rooms.targets {
            *runs.reserved_of.entry(room.target.clone()).or_default() += room.room;
        }
        rooms
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
        self.runs().entries.insert((claim.run.id, claim.run.attempt), entry);
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

    /// Its handler has ended.
    pub(super) fn ended(&self, attempt: Attempt) {
        if let Some(entry) = self.runs().entries.get_mut(&attempt) {
            entry.ended = true;
        }
        self.changed.notify_waiters();
    }

    /// Its outcome is recorded, or will never be. Returns whether it was a run of a backfill.
    pub(super) fn remove(&self, attempt: Attempt) -> bool {
        let mut runs = self.runs();
        let is_backfill = runs.entries.remove(&attempt).is_some_and(|entry| entry.is_backfill);
        if runs.entries.is_empty() {
            self.left.notify_waiters();
        }
        is_backfill
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
        self.runs().entries.values().any(|entry| !entry.ended)
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
