//! Random policies for the jobs of a play.

use std::time::Duration;

use everbell_core::{Backoff, CatchUp, OnLeaseLoss, OnLost, Overlap, PolicyValues};
use everbell_store::conformance::dice::Dice;

pub(super) fn policies(dice: &mut Dice) -> impl FnOnce(&mut PolicyValues) {
    let overlap = *dice.pick(Overlap::ALL).unwrap();
    let catch_up = *dice.pick(CatchUp::ALL).unwrap();
    let max_attempts = 1 + dice.below(3) as u32;
    let on_lost = if max_attempts > 1 && dice.one_in(2) { OnLost::Retry } else { OnLost::Fail };
    let timeout = Duration::from_secs(5 + dice.below(60) as u64);
    let pause_after_failures = dice.one_in(3).then_some(4);
    let max_concurrent_runs = 1 + dice.below(2) as u32;
    let on_lease_loss = *dice.pick(&[None, None, Some(OnLeaseLoss::Stop), Some(OnLeaseLoss::Continue)]).unwrap();
    move |values| {
        values.overlap = overlap;
        values.catch_up = catch_up;
        values.max_attempts = max_attempts;
        values.on_lost = on_lost;
        values.timeout = timeout;
        values.pause_after_failures = pause_after_failures;
        values.max_concurrent_runs = max_concurrent_runs;
        values.on_lease_loss = on_lease_loss;
        values.backoff = Backoff { initial: Duration::from_secs(3), max: Duration::from_secs(20) };
    }
}
