//! Runs that were lost or shut down: the attempts that they had before, and what an instance can write that comes back.

use everbell_core::change::{self, Edit, JobView};
use everbell_core::settle::{Next, Outcome, Transition, settle};
use everbell_core::store::{Canceled, Claim, Recorded, RunFilter};
use everbell_core::{
    EarlierAttempt, Failure, FailureCode, JobStatus, OnLost, OutputSoFar, Policies, PolicyValues, RunStatus,
};
use jiff::Timestamp;

use super::Fresh;
use super::given::{at, audit, instance_id, job, job_id, with};
use super::world::{World, canceled, failure, settled, success};

/// A run of a job with three attempts whose lost runs are retried, started at 01:00 on the first instance.
async fn running(world: &World) -> Claim {
    let definition = with(job("sturdy", "0 1 * * *"), |values| {
        values.max_attempts = 3;
        values.on_lost = OnLost::Retry;
    });
    world.create(definition).await;
    world.plan(at("01:00")).await;
    world.start(at("01:00")).await.remove(0)
}

fn shut_down() -> Outcome {
    Outcome::ShutDown("its instance shut down".to_owned())
}

fn earlier(attempt: u32, code: FailureCode, time: &str, counts: bool) -> EarlierAttempt {
    EarlierAttempt::new(attempt, code, at(time), counts)
}

/// Settles every run whose lease has ended as lost, as a reaper does.
async fn reap(world: &World, now: Timestamp) -> Vec<Recorded> {
    let expired = world.store.expired_leases(now, 10).await.unwrap();
    let lost: Vec<_> = expired.iter().filter_map(|run| settle(run, Outcome::Lost(None), now)).collect();
    world.store.record(&lost, now).await.unwrap()
}

pub async fn earlier_attempts_are_remembered_in_their_order(fresh: Fresh) {
    let world = World::new(&fresh);
    let first = running(&world).await;
    assert_eq!(first.run.earlier_attempts, []);
    world.finish(std::slice::from_ref(&first), &shut_down(), at("01:05:00.000001")).await;
    let stopped = earlier(1, FailureCode::SHUTDOWN, "01:05:00.000001", false);
    assert_eq!(world.run(first.run.id).await.earlier_attempts, std::slice::from_ref(&stopped), "while it waits");

    let second = world.start(at("01:06")).await.remove(0);
    assert_eq!((second.run.attempt, &second.run.earlier_attempts), (2, &vec![stopped.clone()]), "taken over at once");
    assert_eq!(second.run.attempts_used(), 1);
    let expired = world.store.expired_leases(at("02:00"), 10).await.unwrap();
    assert_eq!(expired[0].earlier, std::slice::from_ref(&stopped), "settle has to know");
    assert_eq!(world.store.leases_of(instance_id(1), 10).await.unwrap(), expired);
    reap(&world, at("02:00")).await;

    let third = world.start(at("02:10")).await.remove(0);
    let all = [stopped, earlier(2, FailureCode::LOST, "02:00", true)];
    assert_eq!((third.run.attempt, third.run.attempts_used(), &third.run.earlier_attempts[..]), (3, 2, &all[..]));
    world.finish(&[third], &success(), at("02:11")).await;
    let ended = world.run(first.run.id).await;
    assert_eq!((ended.status, &ended.earlier_attempts[..]), (RunStatus::Succeeded, &all[..]), "for good");
    assert_eq!(world.runs_like(&RunFilter::default()).await[0].earlier_attempts, all, "also in lists");
    let words = "attempt 1 was stopped by a shutdown and does not count, attempt 2 was lost, attempt 3 succeeded";
    assert_eq!(ended.attempts_in_words().as_deref(), Some(words));
}

pub async fn a_run_in_its_first_attempt_has_no_earlier_one(fresh: Fresh) {
    let world = World::new(&fresh);
    let first = running(&world).await;
    world.finish(std::slice::from_ref(&first), &success(), at("01:05")).await;
    let run = world.run(first.run.id).await;
    assert_eq!((run.earlier_attempts.len(), run.attempts_in_words()), (0, None));
}

pub async fn a_canceled_run_keeps_its_earlier_attempts(fresh: Fresh) {
    let world = World::new(&fresh);
    let first = running(&world).await;
    world.finish(std::slice::from_ref(&first), &failure(), at("01:05")).await;
    let entry = audit("run.cancel", "run", at("01:05"));
    world.store.cancel_run(first.run.id, "ana", at("01:05"), &entry).await.unwrap();
    let run = world.run(first.run.id).await;
    let failed = earlier(1, FailureCode::HANDLER_ERROR, "01:05", true);
    assert_eq!((run.status, run.earlier_attempts), (RunStatus::Canceled, vec![failed]), "while it waited");

    let world = World::new(&fresh);
    world.create(with(job("stopped", "0 3 * * *"), |values| values.max_attempts = 2)).await;
    world.plan(at("03:00")).await;
    let claims = world.start(at("03:00")).await;
    world.finish(&claims, &failure(), at("03:01")).await;
    let claims = world.start(at("03:02")).await;
    world.finish(&claims, &canceled(), at("03:03")).await;
    assert_eq!(world.run(claims[0].run.id).await.earlier_attempts.len(), 1, "while it was at work");
}

pub async fn a_lost_run_that_waits_for_its_retry_is_canceled_at_once(fresh: Fresh) {
    let world = World::new(&fresh);
    let first = running(&world).await;
    reap(&world, at("01:10")).await;
    let entry = audit("run.cancel", "run", at("01:10"));
    let canceled = world.store.cancel_run(first.run.id, "ana", at("01:10"), &entry).await.unwrap();
    assert_eq!(canceled, Canceled::AtOnce);
    let run = world.run(first.run.id).await;
    assert_eq!((run.status, run.failure.unwrap().code), (RunStatus::Canceled, FailureCode::CANCELED));
    assert_eq!(run.earlier_attempts, [earlier(1, FailureCode::LOST, "01:10", true)]);
    assert_eq!(world.start(at("02:10")).await.len(), 0);
}

/// Whatever ends its attempt: nobody has to wait for another one, which would be stopped as it begins.
pub async fn a_run_that_was_asked_to_stop_is_canceled_instead_of_retried(fresh: Fresh) {
    let world = World::new(&fresh);
    for (hour, outcome) in [Outcome::Lost(None), failure(), shut_down()].into_iter().enumerate() {
        let time = |minute: &str| at(&format!("0{}:{minute}", hour + 1));
        let once = with(job(&format!("once-{hour}"), &format!("once 0{}:00", hour + 1)), |values| {
            values.max_attempts = 3;
            values.on_lost = OnLost::Retry;
        });
        world.create(once).await;
        world.plan(time("00")).await;
        let claims = world.start(time("00")).await;
        let run = claims[0].run.id;
        let output = OutputSoFar::new(run, 1, "so far\n").unwrap();
        world.store.save_outputs(&[output]).await.unwrap();
        let entry = audit("run.cancel", "run", time("01"));
        let asked = world.store.cancel_run(run, "ben", time("01"), &entry).await.unwrap();
        assert_eq!(asked, Canceled::Requested, "{outcome:?}");
        // Its handler ended a minute before that could be written.
        let transition = settled(&claims[0], &outcome, time("02")).finished_at(time("02"));
        let recorded = world.store.record(&[transition], time("03")).await.unwrap();
        assert_eq!(recorded, [Recorded::Canceled { by: "ben".to_owned() }], "{outcome:?}");
        let ended = world.run(run).await;
        assert_eq!((ended.status, ended.finished_at), (RunStatus::Canceled, Some(time("02"))), "{outcome:?}");
        assert_eq!(ended.failure.unwrap().message, "canceled by ben");
        assert_eq!((ended.attempt, ended.earlier_attempts.len(), ended.cancel_by), (1, 1, None), "{outcome:?}");
        assert_eq!(ended.output.as_deref(), Some("so far\n"), "{outcome:?}");
        assert_eq!(world.start(time("59")).await.len(), 0, "{outcome:?}");
        let row = world.get(&format!("once-{hour}")).await;
        assert_eq!(row.job.state.status, JobStatus::Retired, "{outcome:?}: its only run has ended");
        assert_eq!(row.job.state.consecutive_failures, 0, "{outcome:?}");
    }
}

pub async fn a_claim_that_is_given_back_is_no_attempt(fresh: Fresh) {
    let world = World::new(&fresh);
    let first = running(&world).await;
    let failure = Failure::new(FailureCode::LOST, "never started");
    let to = Next::Retry { not_before: at("01:01"), failure, ended: None };
    let (run_id, attempt) = (first.run.id, first.run.attempt);
    let back = Transition { run_id, attempt, from: RunStatus::Running, to, output: None };
    world.store.record(std::slice::from_ref(&back), at("01:01")).await.unwrap();
    let again = world.start(at("01:01")).await.remove(0);
    assert_eq!((again.run.attempt, again.run.earlier_attempts.len()), (2, 0));

    let entry = audit("run.cancel", "run", at("01:02"));
    world.store.cancel_run(run_id, "ben", at("01:02"), &entry).await.unwrap();
    let back = Transition { attempt: 2, ..back };
    let recorded = world.store.record(&[back], at("01:03")).await.unwrap();
    assert_eq!(recorded, [Recorded::Canceled { by: "ben".to_owned() }], "nobody works on it");
    let run = world.run(run_id).await;
    assert_eq!((run.status, run.finished_at), (RunStatus::Canceled, Some(at("01:03"))));
}

pub async fn a_lost_run_is_retried_and_its_old_instance_can_write_nothing(fresh: Fresh) {
    let world = World::new(&fresh);
    let old = running(&world).await;
    assert_eq!(reap(&world, at("01:10")).await, [Recorded::Applied { consecutive_failures: 0 }], "no failure yet");
    let waiting = world.run(old.run.id).await;
    assert_eq!((waiting.status, waiting.failure.unwrap().code), (RunStatus::Pending, FailureCode::LOST));

    let writes = async |when: &str| {
        let output = OutputSoFar::new(old.run.id, old.run.attempt, "from the old instance\n").unwrap();
        assert_eq!(world.store.save_outputs(&[output]).await.unwrap(), [], "{when}");
        for outcome in [success(), failure(), shut_down(), canceled()] {
            let recorded = world.finish(std::slice::from_ref(&old), &outcome, at("01:12")).await;
            assert_eq!(recorded, [Recorded::LeaseLost], "{when}: {outcome:?}");
        }
    };
    writes("while the run waits").await;
    let new = world.start_on(2, at("01:11"), 10).await.remove(0);
    assert_eq!((new.run.id, new.run.attempt), (old.run.id, 2));
    assert_eq!(new.run.idempotency_key(), old.run.idempotency_key());
    writes("while another instance works on it").await;
    let leases = world.store.extend_leases(instance_id(1), at("01:00"), at("01:30")).await.unwrap();
    assert_eq!(leases, [], "the lease is not that of the old instance");

    world.finish(&[new], &success(), at("01:12")).await;
    writes("after it has ended").await;
    let run = world.run(old.run.id).await;
    assert_eq!((run.status, run.attempt, run.output), (RunStatus::Succeeded, 2, None));
    assert_eq!(run.claimed.unwrap().1, instance_id(2));
}

pub async fn a_lost_run_follows_the_policies_of_its_own_version(fresh: Fresh) {
    let world = World::new(&fresh);
    running(&world).await;
    let policies = || Policies::new(PolicyValues { max_attempts: 7, ..PolicyValues::default() }).unwrap();
    let edit = || Edit { policies: Some(policies()), ..Edit::default() };
    let (id, now) = (job_id("sturdy", 2), at("01:00:30"));
    let decide = |view: &JobView| change::new_version(view, edit(), id, false, "ana", now);
    world.try_change("sturdy", now, decide).await.unwrap();
    let expired = world.store.expired_leases(at("02:00"), 10).await.unwrap();
    assert_eq!((expired[0].max_attempts, expired[0].on_lost), (3, OnLost::Retry));
    assert_eq!(world.store.leases_of(instance_id(1), 10).await.unwrap(), expired);
}
