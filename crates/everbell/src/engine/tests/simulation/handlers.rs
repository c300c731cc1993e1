//! Handlers of the simulation, and answers that come late.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use everbell_core::Target;
use everbell_core::settle::Outcome;
use everbell_core::store::RunStore;
use everbell_store::conformance::dice::Dice;
use everbell_store::conformance::faults::KeptBack;
use everbell_store::memory::MemoryStore;

use super::super::lab::{action, error, ok};
use super::diary::Diary;
use super::world::Faults;
use crate::clock::Clock;
use crate::run::Run;
use crate::targets::{TargetOptions, Targets};
use crate::testing::ManualClock;

pub(super) const TARGETS: [&str; 5] = ["quick", "slow", "flaky", "hangs", "panics"];

/// Handlers of one instance, whose fate is decided by the seed, the run and the attempt.
pub(super) struct Handlers<'a> {
    pub(super) clock: &'a Arc<ManualClock>,
    pub(super) diary: &'a Arc<Diary>,
    pub(super) store: &'a Arc<MemoryStore>,
    pub(super) instance: u64,
    pub(super) seed: u64,
}

impl Handlers<'_> {
    pub(super) fn targets(&self) -> Targets {
        let mut targets = Targets::default();
        let mut serve = |label: &str, fate: fn(Run, Arc<ManualClock>, Dice) -> TimerChange| {
            let (clock, diary, store) = (Arc::clone(self.clock), Arc::clone(self.diary), Arc::clone(self.store));
            let (instance, seed) = (self.instance, self.seed);
            let handler = action(move |run: Run| {
                let dice = Dice::new(seed ^ run.id().as_uuid().as_u128() as u64 ^ u64::from(run.attempt()));
                let (diary, store, clock) = (Arc::clone(&diary), Arc::clone(&store), Arc::clone(&clock));
                async move {
                    let record = store.get_run(run.id()).await.unwrap();
                    let _until_the_end = diary.begin(&run, &record, instance);
                    fate(run, clock, dice).await
                }
            });
            assert!(targets.add(Target::new(label).unwrap(), handler, TargetOptions::default()));
        };
        serve("quick", |_, _, _| fate(async { ok() }));
        serve("flaky", |_, _, mut dice| fate(async move { if dice.one_in(2) { error("no") } else { ok() } }));
        serve("panics", |_, _, mut dice| {
            fate(async move { if dice.one_in(2) { std::panic::resume_unwind(Box::new("planned")) } else { ok() } })
        });
        serve("slow", |run, clock, mut dice| {
            let time = Duration::from_secs(dice.below(90) as u64);
            fate(async move {
                tokio::select! {
                    biased;
                    () = run.canceled() => error("stopped"),
                    () = clock.sleep(time) => ok(),
                }
            })
        });
        serve("hangs", |_, clock, mut dice| {
            let time = Duration::from_secs(20 + dice.below(400) as u64);
            fate(async move {
                clock.sleep(time).await;
                ok()
            })
        });
        targets
    }
}

type TimerChange = Pin<Box<dyn Future<Output = Outcome> + Send>>;

fn fate(outcome: impl Future<Output = Outcome> + Send + 'static) -> TimerChange {
    Box::pin(outcome)
}

/// Keeps back some answers to claims, by the clock of the instance: for a moment, for long, or for ever.
pub(super) fn late_answers(
    clock: &Arc<ManualClock>,
    faults: &Arc<Faults>,
    seed: u64,
) -> impl Fn(u32) -> Option<KeptBack> + Send + Sync + use<> {
    let (clock, faults) = (Arc::clone(clock), Arc::clone(faults));
    move |call| {
        let mut dice = Dice::new(seed ^ (u64::from(call) << 24) ^ 0xa5);
        if faults.mended.load(Ordering::Relaxed) || !dice.one_in(4) {
            return None;
        }
        let seconds = *dice.pick(&[1, 3, 14, 40, 70, 1_000_000]).unwrap();
        let clock = Arc::clone(&clock);
        Some(Box::pin(async move { clock.sleep(Duration::from_secs(seconds)).await }))
    }
}
