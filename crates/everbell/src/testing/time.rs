//! Time that passes, and instances that stop and start.

use std::collections::BTreeSet;
use std::time::Duration;

use everbell_core::store::{JobRef, PlanDue, RunFilter, StoreResult};
use everbell_core::{JobKey, RunStatus, Target};
use jiff::Timestamp;

use super::bell::{IntoTime, TestBell, instance};
use super::ran::Drained;
use crate::clock::{Host, HostTime, earlier, later};
use crate::engine::{Attempt, Step, Wait};
use crate::inbox::Left;
use crate::run_signals::Stop;

/// How long a handler may take, in real time, before the clock moves on without it.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a handler may take that waits to be canceled: most likely the timeout of its job has to pass first.
const CANCELED_TIMEOUT: Duration = Duration::from_secs(1);
/// The first wait for handlers, in the time of Tokio.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// How much of Tokio's time handlers may sleep if a test has paused it: then it passes at once.
const MAX_PAUSED_WAIT: Duration = Duration::from_hours(24);
/// The real time that handlers get between two waits in paused time, for sockets and other programs.
const REAL_WAIT: Duration = Duration::from_millis(2);

/// How often in a row steps may fail before a test does.
const MAX_FAILURES: u32 = 100;

impl TestBell {
    /// Lets time pass. Everything that becomes due happens at its time, one after the other.
    pub async fn advance_to(&mut self, time: impl IntoTime) {
        let end = time.into_time();
        loop {
            let next = self.turn().await.min(end);
            if self.now() >= end {
                return;
            }
            self.set_time(next);
        }
    }

    /// Like [`TestBell::advance_to`], for a duration.
    pub async fn advance_by(&mut self, time: Duration) {
        self.advance_to(later(self.now(), time)).await;
    }

    /// Does everything that can be done now, and returns how the runs ended.
    pub async fn drain(&mut self) -> Drained {
        let before = self.ended().await;
        self.turn().await;
        let after = self.ended().await;
        let new = |of: fn(&Drained) -> usize| of(&after) - of(&before);
        Drained { succeeded: new(|d| d.succeeded), failed: new(|d| d.failed), canceled: new(|d| d.canceled) }
    }

    /// Crashes the instance now, with everything unrecorded. Another one takes its place as soon as time passes.
    pub fn crash(&mut self) {
        self.engine = instance(&self.bell);
        self.started = false;
        self.slow.clear();
        self.crashed = true;
    }

    /// Lets time pass until this job fires, and crashes the instance while its handler works: the handler has begun, and
    /// what it did is done, but nothing of it is recorded. One that does not wait for anything has come to its end.
    pub async fn crash_during(&mut self, job: &str) {
        let key = JobKey::new(job).unwrap_or_else(|error| panic!("{error}"));
        let row = self.store.get_job(&JobRef::Key(key)).await.unwrap_or_else(|error| panic!("{error}"));
        let next = row.timer.and_then(|timer| timer.next_run_at);
        let next = next.unwrap_or_else(|| panic!("job `{job}` no longer fires"));
        self.advance_to(earlier(next, Duration::from_micros(1))).await;
        self.set_time(next);
        self.engine.planner.step().await.unwrap_or_else(|error| panic!("{error}"));
        self.engine.claimer.step().await.unwrap_or_else(|error| panic!("{error}"));
        let called = tokio::time::timeout(HANDLER_TIMEOUT, self.engine.shared.inflight.all_called()).await;
        assert!(called.is_ok(), "the handler of job `{job}` was not called");
        // It goes on as far as it can without a wait.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        self.crash();
    }

    /// Stops the instance in order, as a deployment does, and starts another one: handlers may finish within
    /// [`EngineOptions::shutdown_grace`](crate::EngineOptions), which passes if they need it, and are stopped after that.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.turn().await;
    }

    /// Stops the instance in order, and starts another one after this time. Nothing happens meanwhile: this is how to test
    /// which missed slots are caught up ([`Schedule::catch_up`](crate::Schedule::catch_up)) and how late a slot may be
    /// ([`Schedule::grace`](crate::Schedule::grace)).
    ///
    /// After [`TestBell::crash`] or [`TestBell::crash_during`] there is nothing to stop: the process just stays away.
    pub async fn down_for(&mut self, time: Duration) {
        self.stop().await;
        self.set_time(later(self.now(), time));
        self.turn().await;
    }

    /// Ends the instance, with everything that is due now, and puts one in its place that has done nothing yet.
    async fn stop(&mut self) {
        if self.started {
            self.turn().await;
            let options = self.bell.options().clone();
            let planned_until = self.now();
            self.stopping = true;
            self.let_handlers_end(options.shutdown_grace).await;
            self.engine.shared.inflight.stop_all(&Stop::Shutdown);
            // They have some real time again, to do what they do when they are asked to stop.
            self.slow.clear();
            self.let_handlers_end(options.cancel_grace).await;
            self.stopping = false;
            let left = self.store.leave(self.engine.shared.instance, planned_until, self.now()).await;
            left.unwrap_or_else(|error| panic!("{error}"));
        }
        let abandoned = !self.engine.shared.inflight.is_empty();
        self.engine = instance(&self.bell);
        self.started = false;
        self.slow.clear();
        self.crashed |= abandoned;
    }

    /// Lets time pass until every handler has ended and is recorded, but no more than this.
    async fn let_handlers_end(&mut self, time: Duration) {
        let end = later(self.now(), time);
        while !self.engine.shared.inflight.is_empty() {
            let next = self.turn().await.min(end);
            if self.now() >= end {
                return;
            }
            if !self.engine.shared.inflight.is_empty() {
                self.set_time(next);
            }
        }
    }

    /// Runs the loops until nothing is left to do now; returns when there will be more.
    pub(super) async fn turn(&mut self) -> Timestamp {
        self.started = true;
        let mut failures = 0;
        loop {
            let engine = &mut self.engine;
            let beat = engine.heartbeat.step().await;
            let [asked, resumed, progress, filled, planned, claimed] = if self.stopping {
                [const { Ok(Wait::ForSignal) }; 6]
            } else {
                let asked = self.bell.answer_inbox(&mut self.inbox).await;
                let asked = asked.map(|left| if left == Left::More { Wait::No } else { Wait::ForSignal });
                let resumed = engine.resumer.step().await;
                // Not as a loop would, which waits a moment between two looks.
                let progress = engine.reconciler.look(engine.shared.now()).await;
                let progress = progress.map(|more| if more { Wait::No } else { Wait::ForSignal });
                let filled = engine.backfiller.step().await;
                [asked, resumed, progress, filled, engine.planner.step().await, engine.claimer.step().await]
            };
            self.let_handlers_work().await;
            let recorded = self.engine.recorder.step().await;
            let reaped = if self.crashed { self.engine.reaper.step().await } else { Ok(Wait::ForSignal) };
            let now = self.now();
            // What fails is done again, as a loop would do.
            let again = |wait: &StoreResult<Wait>| match wait {
                Ok(Wait::No) | Err(_) => true,
                Ok(Wait::For(time)) => time.is_zero(),
                Ok(Wait::ForSignal) => false,
            };
            let steps = [&beat, &asked, &resumed, &progress, &filled, &planned, &claimed, &recorded, &reaped];
            if let Some(error) = steps.iter().find_map(|step| step.as_ref().err()) {
                failures += 1;
                assert!(failures < MAX_FAILURES, "the store fails again and again: {error}");
            }
            if steps.into_iter().any(again) {
                continue;
            }
            // Not asked without need: it reads the runs.
            self.crashed = self.crashed && self.has_orphans().await;
            let idle = self.is_idle().await;
            let times = [filled, planned, claimed, reaped].into_iter().filter_map(|wait| match wait {
                Ok(Wait::For(time)) if !idle => Some(later(now, time)),
                _ => None,
            });
            let times = times.chain(if idle { self.next_fire().await } else { None });
            let pauses = self.store.pauses_ending(1).await.unwrap_or_default();
            let times = times.chain(pauses.into_iter().map(|(_, until)| until)).chain(self.clock.next_sleeper());
            return times.min().unwrap_or(Timestamp::MAX);
        }
    }

    /// Waits for handlers, but not forever: one that waits for the clock, or for the test, runs on while time passes.
    async fn let_handlers_work(&mut self) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let first_wait = self.handler_timeout.map_or(FIRST_WAIT, |timeout| timeout.min(FIRST_WAIT));
        let (host, mut waited, mut wait) = (Host::default(), Duration::ZERO, first_wait);
        let begun = host.monotonic();
        loop {
            let busy = self.busy();
            if busy.is_empty() {
                return;
            }
            let ended = async {
                while !self.busy().is_empty() {
                    self.engine.shared.signals.record.notified().await;
                }
            };
            if tokio::time::timeout(wait, ended).await.is_ok() {
                return;
            }
            waited += wait;
            let really = host.monotonic().saturating_sub(begun);
            let stuck = busy.iter().all(|attempt| self.engine.shared.inflight.awaits_stop(*attempt));
            let usual = if stuck { CANCELED_TIMEOUT } else { HANDLER_TIMEOUT };
            if really >= self.handler_timeout.unwrap_or(usual) {
                self.slow.extend(busy);
                return;
            }
            // Under `start_paused` no real time passes: handlers may sleep for much longer, or wait for a socket. Tokio's
            // paused time stands still while a blocking task is at work.
            if really < waited / 2 {
                wait = if waited < MAX_PAUSED_WAIT { wait * 2 } else { FIRST_WAIT };
                // It cannot fail, because nothing aborts it and it does not panic.
                drop(tokio::task::spawn_blocking(|| std::thread::sleep(REAL_WAIT)).await);
            }
        }
    }

    /// The handlers at work that time waits for.
    fn busy(&self) -> BTreeSet<Attempt> {
        let working = self.engine.shared.inflight.working();
        working.into_iter().filter(|attempt| !self.slow.contains(attempt)).collect()
    }

    /// Whether no run is pending or running. Then nothing happens before the next fire, and no loop has to poll.
    async fn is_idle(&self) -> bool {
        self.store.counts(self.now()).await.is_ok_and(|counts| counts.active_runs.is_empty())
    }

    /// Returns when the next timer fires, if none is due now.
    async fn next_fire(&self) -> Option<Timestamp> {
        if self.stopping {
            return None;
        }
        let targets: Vec<Target> = self.engine.shared.targets.now().names().cloned().collect();
        self.store.plan_due(&PlanDue::new(self.now(), 1, &targets), &crate::engine::decide).await.ok()?.next_due_at
    }

    async fn has_orphans(&self) -> bool {
        let filter = RunFilter { status: vec![RunStatus::Running], ..RunFilter::default() };
        let running = self.list(&filter).await;
        running.iter().any(|run| !self.engine.shared.inflight.contains((run.id, run.attempt)))
    }
}
