//! `record`: the effect of a transition on a run and its job.

use everbell_core::settle::{Next, Outcome, Then, Transition};
use everbell_core::store::{Claim, Recorded};
use everbell_core::{Failure, FailureCode, JobStatus, RunStatus};

use super::Fresh;
use super::given::{at, by_hand, job, json, with};
use super::plain::Plain;
use super::world::{World, canceled, failure, settled, success};

const fn applied(consecutive_failures: u32) -> Recorded {
    Recorded::Applied { consecutive_failures }
}

/// A job whose first run is at work.
async fn running(world: &World) -> Vec<Claim> {
    world.create(job("hourly", "0 * * * *")).await;
    world.plan(at("01:00")).await;
    world.start(at("01:00")).await
}

pub async fn a_success_is_written_with_result_and_output(fresh: Fresh) {
    let world = World::new(&fresh);
    let claims = running(&world).await;
    let result = json(r#"{"rows": 12}"#);
    let outcome = Outcome::Succeeded { result: Some(result.clone()) };
    let transition = settled(&claims[0], &outcome, at("01:05")).with_output("line 1\nline 2\n");
    assert_eq!(world.store.record(&[transition], at("01:05")).await.unwrap(), [applied(0)]);
    let run = world.run(claims[0].run.id).await;
    assert_eq!((run.status, run.finished_at), (RunStatus::Succeeded, Some(at("01:05"))));
    assert_eq!((run.result.clone().plain(), run.output.as_deref()), (Some(result.plain()), Some("line 1\nline 2\n")));
    assert_eq!((run.failure, run.lease_until, run.cancel_by), (None, None, None));
    let before = &claims[0].run;
    assert_eq!(
        (run.attempt, run.claimed, run.started_at),
        (1, before.claimed, before.started_at),
        "who and when stays"
    );
    assert_eq!(
        (run.slot_at, run.scheduled_at, run.created_at),
        (before.slot_at, before.scheduled_at, before.created_at)
    );
}

pub async fn a_failure_is_written_with_code_message_and_details(fresh: Fresh) {
    let world = World::new(&fresh);
    let claims = running(&world).await;
    let mut failure = Failure::new(FailureCode::new("no_ink").unwrap(), "the printer has no ink");
    failure.details = Some(json(r#"{"tray":[1,2]}"#));
    let outcome = Outcome::Failed { failure: failure.clone(), then: Then::GiveUp };
    assert_eq!(world.finish(&claims, &outcome, at("01:05")).await, [applied(1)]);
    let run = world.run(claims[0].run.id).await;
    assert_eq!((run.status, run.failure.plain()), (RunStatus::Failed, Some(failure.plain())));
    assert_eq!((run.result, run.output, run.lease_until), (None, None, None));
}

pub async fn a_stopped_run_is_canceled(fresh: Fresh) {
    let world = World::new(&fresh);
    let claims = running(&world).await;
    assert_eq!(world.finish(&claims, &canceled(), at("01:05")).await, [applied(0)]);
    let run = world.run(claims[0].run.id).await;
    assert_eq!((run.status, run.failure.unwrap().message.as_str()), (RunStatus::Canceled, "canceled by ana"));
}

pub async fn a_pending_run_can_be_canceled_by_a_transition(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    let id = world.plan(at("01:00")).await.runs[0].id;
    let to = Next::Finish {
        status: RunStatus::Canceled,
        finished_at: at("01:01"),
        failure: Some(Failure::new(FailureCode::CANCELED, "canceled by ana")),
        result: None,
    };
    let transition = Transition { run_id: id, attempt: 0, from: RunStatus::Pending, to, output: None };
    assert_eq!(world.store.record(&[transition], at("01:01")).await.unwrap(), [applied(0)]);
    assert_eq!(world.run(id).await.status, RunStatus::Canceled);
}

pub async fn only_the_attempt_that_holds_the_run_can_end_it(fresh: Fresh) {
    let world = World::new(&fresh);
    let claims = running(&world).await;
    let before = world.run(claims[0].run.id).await;
    let good = settled(&claims[0], &success(), at("01:05"));
    let wrong = [
        Transition { attempt: 0, ..good.clone() },
        Transition { attempt: 2, ..good.clone() },
        Transition { from: RunStatus::Pending, ..good.clone() },
        Transition { run_id: by_hand(at("01:00"), "unknown"), ..good.clone() },
    ];
    let lost = vec![Recorded::LeaseLost; wrong.len()];
    assert_eq!(world.store.record(&wrong, at("01:05")).await.unwrap(), lost);
    assert_eq!(world.run(claims[0].run.id).await, before, "nothing was written");
    assert_eq!(world.store.record(&[good], at("01:06")).await.unwrap(), [applied(0)]);
}

pub async fn what_has_ended_never_changes_again(fresh: Fresh) {
    let world = World::new(&fresh);
    let claims = running(&world).await;
    world.finish(&claims, &failure(), at("01:05")).await;
    let before = world.run(claims[0].run.id).await;
    for outcome in [success(), failure(), canceled(), Outcome::Lost(None)] {
        assert_eq!(world.finish(&claims, &outcome, at("01:06")).await, [Recorded::LeaseLost], "{outcome:?}");
    }
    assert_eq!(world.run(claims[0].run.id).await, before);
    assert_eq!(world.get("hourly").await.job.state.consecutive_failures, 1, "and counts once");
}

pub async fn answers_come_in_the_order_of_the_questions(fresh: Fresh) {
    let world = World::new(&fresh);
    for number in 0..6 {
        world.create(job(&format!("job-{number}"), &format!("{number} 1 * * *"))).await;
    }
    world.plan(at("02:00")).await;
    let claims = world.start(at("02:00")).await;
    let now = at("02:05");
    let done = |number: usize, outcome: &Outcome| settled(&claims[number], outcome, now);
    let batch = [
        done(5, &failure()),
        Transition { attempt: 7, ..done(0, &success()) },
        done(3, &success()),
        Transition { run_id: by_hand(now, "unknown"), ..done(0, &success()) },
        done(1, &canceled()),
        done(0, &failure()),
    ];
    let lost = Recorded::LeaseLost;
    let expected = [applied(1), lost.clone(), applied(0), lost, applied(0), applied(1)];
    assert_eq!(world.store.record(&batch, now).await.unwrap(), expected);
    let mut statuses = Vec::new();
    for claim in &claims {
        statuses.push(world.run(claim.run.id).await.status.as_str());
    }
    assert_eq!(statuses, ["failed", "canceled", "running", "succeeded", "running", "failed"]);
}

pub async fn the_same_run_twice_in_a_batch_is_recorded_once(fresh: Fresh) {
    let world = World::new(&fresh);
    let claims = running(&world).await;
    let now = at("01:05");
    let batch = [settled(&claims[0], &failure(), now), settled(&claims[0], &success(), now)];
    assert_eq!(world.store.record(&batch, now).await.unwrap(), [applied(1), Recorded::LeaseLost]);
    assert_eq!(world.run(claims[0].run.id).await.status, RunStatus::Failed, "the first counts");
    assert_eq!(world.get("hourly").await.job.state.consecutive_failures, 1);
}

pub async fn an_empty_batch_is_fine(fresh: Fresh) {
    let world = World::new(&fresh);
    assert_eq!(world.store.record(&[], at("01:00")).await.unwrap(), []);
}

pub async fn failures_in_a_row_are_counted(fresh: Fresh) {
    let world = World::new(&fresh);
    let before = world.create(job("hourly", "0 * * * *")).await;
    let mut counts = Vec::new();
    for (hour, outcome) in [failure(), failure(), canceled(), failure(), success(), failure()].iter().enumerate() {
        let now = at(&format!("{:02}:00", hour + 1));
        world.plan(now).await;
        let claims = world.start(now).await;
        let recorded = world.finish(&claims, outcome, now).await;
        let in_state = world.get("hourly").await.job.state.consecutive_failures;
        assert_eq!(recorded, [applied(in_state)]);
        counts.push(in_state);
    }
    assert_eq!(counts, [1, 2, 2, 3, 0, 1], "a success starts the count again, a cancellation does not change it");
    let state = world.get("hourly").await.job.state;
    assert_eq!(state.revision, before.job.state.revision, "an outcome is no edit: it moves no revision");
    assert_eq!((state.updated_at, state.updated_by), (before.job.state.updated_at, before.job.state.updated_by));
}

pub async fn failures_in_one_batch_count_in_its_order(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("many", "0 * * * *"), |values| values.overlap = everbell_core::Overlap::Allow)).await;
    for number in 0..5 {
        world.run_now("many", &format!("run-{number}"), at("00:10")).await;
    }
    let claims = world.start(at("00:10")).await;
    let now = at("00:11");
    let outcomes = [failure(), failure(), success(), failure(), canceled()];
    let batch: Vec<_> = claims.iter().zip(&outcomes).map(|(claim, outcome)| settled(claim, outcome, now)).collect();
    let expected = [1, 2, 0, 1, 1].map(applied);
    assert_eq!(world.store.record(&batch, now).await.unwrap(), expected);
    assert_eq!(world.get("many").await.job.state.consecutive_failures, 1);
}

pub async fn a_retry_is_pending_again_and_keeps_its_attempt(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("flaky", "0 1 * * *"), |values| values.max_attempts = 2)).await;
    world.plan(at("01:00")).await;
    let first = world.start(at("01:00")).await;
    assert_eq!(world.finish(&first, &failure(), at("01:01")).await, [applied(0)], "not a failure yet");
    let waiting = world.run(first[0].run.id).await;
    assert_eq!((waiting.status, waiting.attempt, waiting.held), (RunStatus::Pending, 1, false));
    assert_eq!((waiting.lease_until, waiting.finished_at), (None, None));
    assert_eq!(waiting.failure.unwrap().message, "no", "why the last attempt failed");
    assert_eq!(world.finish(&first, &success(), at("01:02")).await, [Recorded::LeaseLost]);

    let second = world.start(at("01:10")).await;
    assert_eq!((second[0].run.id, second[0].run.attempt), (first[0].run.id, 2));
    assert_eq!(world.finish(&first, &success(), at("01:11")).await, [Recorded::LeaseLost], "the fence moved on");
    assert_eq!(world.finish(&second, &failure(), at("01:12")).await, [applied(1)]);
    let ended = world.run(first[0].run.id).await;
    assert_eq!((ended.status, ended.attempt, ended.started_at), (RunStatus::Failed, 2, Some(at("01:10"))));
}

pub async fn a_success_leaves_no_failure_of_an_earlier_attempt(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("flaky", "0 1 * * *"), |values| values.max_attempts = 2)).await;
    world.run_due(&failure(), at("01:00")).await;
    let second = world.start(at("01:10")).await;
    world.finish(&second, &success(), at("01:11")).await;
    let run = world.run(second[0].run.id).await;
    assert_eq!((run.status, run.failure, run.attempt), (RunStatus::Succeeded, None, 2));
}

pub async fn a_late_answer_counts_until_somebody_settled_the_run(fresh: Fresh) {
    let world = World::new(&fresh);
    let claims = running(&world).await;
    let long_after = at("09:00");
    assert_eq!(world.store.expired_leases(long_after, 10).await.unwrap().len(), 1);
    assert_eq!(world.finish(&claims, &success(), long_after).await, [applied(0)]);
    assert_eq!(world.store.expired_leases(long_after, 10).await.unwrap(), []);
}

pub async fn a_one_time_job_retires_when_its_run_ends(fresh: Fresh) {
    let world = World::new(&fresh);
    for (key, outcome) in [("good", success()), ("bad", failure()), ("stopped", canceled())] {
        world.create(job(key, "once 12:00")).await;
        let claims = world.run_due(&outcome, at("12:00")).await;
        assert_eq!(claims.len(), 1);
        let state = world.get(key).await.job.state;
        assert_eq!((state.status, state.updated_by.as_str()), (JobStatus::Retired, "everbell"), "{key}");
        assert_eq!(state.updated_at, at("12:00"));
    }
}

pub async fn a_one_time_job_waits_for_the_last_attempt(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("once", "once 12:00"), |values| values.max_attempts = 2)).await;
    world.run_due(&failure(), at("12:00")).await;
    assert_eq!(world.get("once").await.job.state.status, JobStatus::Active);
    let second = world.start(at("12:10")).await;
    world.finish(&second, &failure(), at("12:11")).await;
    assert_eq!(world.get("once").await.job.state.status, JobStatus::Retired);
}

pub async fn a_run_by_hand_does_not_retire_a_one_time_job(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("once", "once 12:00")).await;
    world.run_now("once", "early", at("10:00")).await;
    let claims = world.start(at("10:00")).await;
    world.finish(&claims, &success(), at("10:01")).await;
    let row = world.get("once").await;
    assert_eq!((row.job.state.status, row.timer.unwrap().next_run_at), (JobStatus::Active, Some(at("12:00"))));
    assert_eq!(world.plan(at("12:00")).await.runs.len(), 1);
}

pub async fn a_success_ends_the_failures_of_the_one_time_job_that_it_retires(fresh: Fresh) {
    let world = World::new(&fresh);
    for (key, schedule) in [("once", "once 12:00"), ("daily", "0 12 * * *")] {
        world.create(job(key, schedule)).await;
        world.run_now(key, key, at("10:00")).await;
    }
    let by_hand = world.start(at("10:00")).await;
    world.finish(&by_hand, &failure(), at("10:01")).await;
    let state = async |key: &str| {
        let state = world.get(key).await.job.state;
        (state.status, state.consecutive_failures)
    };
    assert_eq!((state("once").await, state("daily").await), ((JobStatus::Active, 1), (JobStatus::Active, 1)));
    let revision = world.get("once").await.job.state.revision;
    assert_eq!(world.run_due(&success(), at("12:00")).await.len(), 2, "in one batch");
    assert_eq!((state("once").await, state("daily").await), ((JobStatus::Retired, 0), (JobStatus::Active, 0)));
    assert_eq!(world.get("once").await.job.state.revision, revision + 1);
}

pub async fn a_large_batch_is_recorded_whole(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("many", "0 * * * *"), |values| values.overlap = everbell_core::Overlap::Allow)).await;
    for number in 0..500 {
        let definition = job(&format!("job-{number}"), "0 1 * * *");
        world.create(definition).await;
    }
    world.plan(at("01:00")).await;
    let claims = world.start(at("01:00")).await;
    assert_eq!(claims.len(), 501);
    let recorded = world.finish(&claims, &success(), at("01:01")).await;
    assert_eq!(recorded, vec![applied(0); 501]);
    assert!(world.runs().await.iter().all(|run| run.status == RunStatus::Succeeded));
}
