//! `save_outputs`: what runs print, while they are at work and afterwards.

use everbell_core::settle::Outcome;
use everbell_core::store::{Claim, PruneBefore, SlotOutcome};
use everbell_core::{OutputSoFar, RunStatus};
use jiff::Timestamp;

use super::Fresh;
use super::given::{at, audit, job, with};
use super::world::{World, failure, settled, success};

/// A job of two attempts whose first run is at work.
async fn running(world: &World) -> Claim {
    world.create(with(job("chatty", "0 * * * *"), |values| values.max_attempts = 2)).await;
    world.plan(at("01:00")).await;
    world.start(at("01:00")).await.remove(0)
}

impl World {
    async fn prints(&self, claim: &Claim, text: &str) {
        let output = OutputSoFar::new(claim.run.id, claim.run.attempt, text).unwrap();
        assert_eq!(self.store.save_outputs(&[output]).await.unwrap(), [claim.run.id]);
    }

    async fn printed(&self, claim: &Claim) -> Option<String> {
        self.run(claim.run.id).await.output
    }

    /// The claim of the next attempt.
    async fn again(&self, claim: &Claim, now: Timestamp) -> Claim {
        let again = self.start(now).await.remove(0);
        assert_eq!((again.run.id, again.run.attempt), (claim.run.id, claim.run.attempt + 1));
        again
    }
}

pub async fn what_a_run_printed_so_far_is_read_with_it(fresh: Fresh) {
    let world = World::new(&fresh);
    let claim = running(&world).await;
    assert_eq!(world.printed(&claim).await, None);
    assert_eq!(world.store.save_outputs(&[]).await.unwrap(), []);
    for so_far in ["one\n", "one\ntwo “quoted” \u{1f514}\n"] {
        world.prints(&claim, so_far).await;
        let run = world.run(claim.run.id).await;
        assert_eq!((run.output.as_deref(), run.status), (Some(so_far), RunStatus::Running));
        assert_eq!(run.lease_until, Some(claim.lease_until), "printing is no sign of life");
    }
    let end = settled(&claim, &success(), at("01:05")).with_output("all of it\n");
    world.store.record(&[end], at("01:05")).await.unwrap();
    assert_eq!(world.printed(&claim).await.as_deref(), Some("all of it\n"), "the last word counts");
}

pub async fn only_the_attempt_at_work_can_add_to_its_output(fresh: Fresh) {
    let world = World::new(&fresh);
    let first = running(&world).await;
    let late = |text: &str| OutputSoFar { run_id: first.run.id, attempt: 1, text: text.to_owned() };
    let other = OutputSoFar { attempt: 2, ..late("of an attempt that never was\n") };
    assert_eq!(world.store.save_outputs(&[other]).await.unwrap(), []);
    assert_eq!(world.printed(&first).await, None);
    world.finish(std::slice::from_ref(&first), &failure(), at("01:05")).await;
    assert_eq!(world.store.save_outputs(&[late("while it waits\n")]).await.unwrap(), []);
    assert_eq!(world.printed(&first).await, None);
    let second = world.again(&first, at("01:30")).await;
    assert_eq!(world.store.save_outputs(&[late("from the first attempt\n")]).await.unwrap(), []);
    assert_eq!(world.printed(&second).await, None);
    world.prints(&second, "mine\n").await;
    world.finish(&[second], &success(), at("01:31")).await;
    let late = OutputSoFar { attempt: 2, ..late("after its end\n") };
    assert_eq!(world.store.save_outputs(&[late]).await.unwrap(), []);
    assert_eq!(world.printed(&first).await.as_deref(), Some("mine\n"));
}

pub async fn a_lost_run_keeps_what_was_heard_of_it(fresh: Fresh) {
    let world = World::new(&fresh);
    let claim = running(&world).await;
    world.prints(&claim, "the last thing before the lights went out\n").await;
    world.finish(std::slice::from_ref(&claim), &Outcome::Lost(None), at("01:05")).await;
    let run = world.run(claim.run.id).await;
    assert_eq!(run.status, RunStatus::Failed);
    assert_eq!(run.output.as_deref(), Some("the last thing before the lights went out\n"));
}

pub async fn a_failed_attempt_is_read_until_the_next_begins(fresh: Fresh) {
    let world = World::new(&fresh);
    let claim = running(&world).await;
    let end = settled(&claim, &failure(), at("01:05")).with_output("no disk\n");
    world.store.record(&[end], at("01:05")).await.unwrap();
    assert_eq!(world.printed(&claim).await.as_deref(), Some("no disk\n"));
    let again = world.again(&claim, at("01:30")).await;
    assert_eq!(again.run.output, None);
    assert_eq!(world.printed(&again).await, None, "what another attempt printed is not this one's");

    let world = World::new(&fresh);
    world.create(with(job("stopped", "0 * * * *"), |values| values.max_attempts = 2)).await;
    world.plan(at("02:00")).await;
    let claims = world.start(at("02:00")).await;
    let claim = claims.iter().find(|claim| claim.run.job_key.as_ref().unwrap().as_str() == "stopped").unwrap();
    let end = settled(claim, &failure(), at("02:05")).with_output("no net\n");
    world.store.record(&[end], at("02:05")).await.unwrap();
    let entry = audit("run.cancel", "run", at("02:05"));
    world.store.cancel_run(claim.run.id, "ana", at("02:05"), &entry).await.unwrap();
    let run = world.run(claim.run.id).await;
    assert_eq!((run.status, run.output.as_deref()), (RunStatus::Canceled, Some("no net\n")));
}

pub async fn a_run_that_waits_tells_when_it_is_tried_again(fresh: Fresh) {
    let world = World::new(&fresh);
    let claim = running(&world).await;
    let next = async || world.run(claim.run.id).await.next_attempt_at;
    assert_eq!((claim.run.next_attempt_at, next().await), (None, None));
    world.finish(std::slice::from_ref(&claim), &failure(), at("01:05")).await;
    assert_eq!(next().await, Some(at("01:05:10")), "after the backoff");
    let listed = world.runs().await;
    assert_eq!(listed[0].next_attempt_at, Some(at("01:05:10")));
    let again = world.again(&claim, at("01:30")).await;
    assert_eq!((again.run.next_attempt_at, next().await), (None, None));
    world.finish(&[again], &failure(), at("01:31")).await;
    assert_eq!(next().await, None, "it was the last");
}

pub async fn lists_leave_out_what_runs_printed(fresh: Fresh) {
    let world = World::new(&fresh);
    let claim = running(&world).await;
    world.prints(&claim, "much\n").await;
    for ended in [false, true] {
        if ended {
            world.finish(std::slice::from_ref(&claim), &success(), at("01:05")).await;
        }
        assert_eq!(world.printed(&claim).await.as_deref(), Some("much\n"));
        assert_eq!(world.runs().await[0].output, None);
        assert_eq!(world.get("chatty").await.last_run.unwrap().output, None);
        let (job, slot) = (claim.run.job_id.unwrap(), claim.run.slot_at.unwrap());
        match world.store.slot_outcome(job, None, slot).await.unwrap() {
            Some(SlotOutcome::Run(run)) => assert_eq!((run.id, run.output), (claim.run.id, None)),
            other => panic!("{other:?}"),
        }
    }
}

pub async fn outputs_go_with_their_runs(fresh: Fresh) {
    let world = World::new(&fresh);
    let claim = running(&world).await;
    world.prints(&claim, "soon forgotten\n").await;
    world.finish(std::slice::from_ref(&claim), &success(), at("01:05")).await;
    let later = at("2030-01-01T00:00:00Z");
    assert_eq!(world.store.prune(PruneBefore::all(later), 100).await.unwrap().runs, 1);
    assert!(world.store.get_run(claim.run.id).await.is_err());
}
