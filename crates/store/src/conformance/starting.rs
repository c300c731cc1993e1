//! `start_runs`: which runs an instance gets, and in what order.

use std::time::Duration;

use everbell_core::change;
use everbell_core::plan::Backfill;
use everbell_core::store::{Claim, StartRuns, TargetRoom};
use everbell_core::{BackfillId, Backoff, CatchUp, Overlap, RunId, RunStatus, SkipReason, Trigger};
use jiff::Timestamp;

use super::Fresh;
use super::given::{LOG, MAIL, at, audit, instance_id, job, target, to, trial, with};
use super::world::{LEASE, World, failure, room, success};

pub async fn a_started_run_is_leased_to_its_instance(fresh: Fresh) {
    let world = World::new(&fresh);
    let row = world.create(job("hourly", "0 * * * *")).await;
    world.plan(at("01:00")).await;
    let now = at("01:00:02");
    let claims = world.start(now).await;
    let [claim] = &claims[..] else { panic!("{claims:?}") };
    assert_eq!((claim.run.status, claim.run.attempt), (RunStatus::Running, 1));
    assert_eq!(claim.run.claimed, Some((now, instance_id(1))));
    assert_eq!((claim.run.started_at, claim.run.finished_at), (Some(now), None));
    assert_eq!((claim.lease_until, claim.run.lease_until), (now + LEASE, Some(now + LEASE)));
    assert_eq!(claim.job, Some(row.job.definition));
    assert_eq!(world.run(claim.run.id).await, claim.run);
    assert_eq!(world.start_on(2, now, 10).await, [], "it is taken");
}

fn slots(claims: &[Claim]) -> Vec<Timestamp> {
    claims.iter().map(|claim| claim.run.scheduled_at).collect()
}

pub async fn runs_start_in_the_order_of_their_time(fresh: Fresh) {
    let world = World::new(&fresh);
    for minute in [30, 10, 50, 20, 40] {
        world.create(job(&format!("at-{minute}"), &format!("{minute} 1 * * *"))).await;
    }
    world.plan(at("02:00")).await;
    assert_eq!(slots(&world.start_some(at("02:00"), 2).await), [at("01:10"), at("01:20")]);
    assert_eq!(slots(&world.start_some(at("02:00"), 2).await), [at("01:30"), at("01:40")]);
    assert_eq!(slots(&world.start_some(at("02:00"), 2).await), [at("01:50")]);
    assert_eq!(world.start_some(at("02:00"), 2).await, []);
}

pub async fn runs_of_the_same_instant_start_in_the_order_of_their_ids(fresh: Fresh) {
    let world = World::new(&fresh);
    for name in ["c", "a", "d", "b"] {
        world.create(job(name, "0 1 * * *")).await;
    }
    world.plan(at("01:00")).await;
    let mut started = Vec::new();
    for _ in 0..4 {
        started.extend(world.start_some(at("01:00"), 1).await.iter().map(|claim| claim.run.id));
    }
    assert_eq!(started.len(), 4);
    assert!(started.is_sorted(), "{started:?}");
}

pub async fn an_instance_gets_no_more_of_a_target_than_it_has_room_for(fresh: Fresh) {
    let world = World::new(&fresh);
    for number in 0..4 {
        world.create(job(&format!("log-{number}"), &format!("{number} 1 * * *"))).await;
        world.create(to(job(&format!("mail-{number}"), &format!("{number} 1 * * *")), MAIL)).await;
    }
    world.plan(at("02:00")).await;
    let now = at("02:00");
    let started = async |targets: &[(&str, u32)], limit| {
        let targets = room(targets);
        let request = StartRuns { instance: instance_id(1), targets: &targets, limit, now, lease_until: now + LEASE };
        let claims = world.store.start_runs(&request).await.unwrap();
        let count = |label: &str| claims.iter().filter(|claim| claim.run.target.as_str() == label).count();
        (count(LOG), count(MAIL))
    };
    assert_eq!(started(&[], 10).await, (0, 0), "it serves nothing");
    assert_eq!(started(&[("unknown", 5), (MAIL, 0)], 10).await, (0, 0));
    assert_eq!(started(&[(LOG, 1), (MAIL, 2)], 10).await, (1, 2));
    assert_eq!(started(&[(LOG, 5)], 1).await, (1, 0), "no more than the limit");
    assert_eq!(started(&[(LOG, 5), (MAIL, 5)], 10).await, (2, 2), "what is left");
}

pub async fn a_full_target_does_not_keep_others_waiting(fresh: Fresh) {
    let world = World::new(&fresh);
    for number in 0..5 {
        world.create(job(&format!("log-{number}"), &format!("{number} 1 * * *"))).await;
    }
    world.create(to(job("mail", "59 1 * * *"), MAIL)).await;
    world.plan(at("02:00")).await;
    let targets = room(&[(LOG, 1), (MAIL, 1)]);
    let now = at("02:00");
    let request = StartRuns { instance: instance_id(1), targets: &targets, limit: 2, now, lease_until: now + LEASE };
    let claims = world.store.start_runs(&request).await.unwrap();
    let labels: Vec<_> = claims.iter().map(|claim| claim.run.target.as_str()).collect();
    assert_eq!(labels, [LOG, MAIL]);
}

pub async fn backfills_that_are_not_wanted_do_not_keep_others_waiting(fresh: Fresh) {
    let world = World::new(&fresh);
    let several = |key: &str| {
        with(job(key, "0 * * * *"), |values| {
            values.catch_up = CatchUp::None;
            values.max_concurrent_runs = 10;
        })
    };
    world.create(several("filled")).await;
    world.create(several("other")).await;
    world.plan(at("05:30")).await;
    let slots = [at("01:00"), at("02:00"), at("03:00"), at("04:00")];
    let request =
        Backfill { id: BackfillId::new(at("05:30"), [7; 10]), slots: &slots, parallel: None, trace_context: None };
    world.try_change("filled", at("05:30"), |view| change::backfill(view, &request)).await.unwrap();
    let run = world.run_now("other", "now", at("05:31")).await.runs[0].id;
    let started = async |backfills: bool, room: u32| {
        let now = at("05:40");
        let targets = [TargetRoom { target: target(LOG), room, backfills }];
        let instance = instance_id(1);
        let request = StartRuns { instance, targets: &targets, limit: 100, now, lease_until: now + LEASE };
        world.store.start_runs(&request).await.unwrap()
    };
    let is_backfill = |claim: &Claim| matches!(claim.run.trigger, Trigger::Backfill(_));
    let others = started(false, 100).await;
    assert!(others.iter().any(|claim| claim.run.id == run) && !others.iter().any(is_backfill), "{others:?}");
    assert_eq!(started(false, 100).await, [], "only backfills are left");
    assert!(started(true, 1).await.iter().all(is_backfill));
}

pub async fn a_backfill_is_beside_the_schedule(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("hourly", "0 * * * *"), |values| values.catch_up = CatchUp::None)).await;
    world.plan(at("05:30")).await;
    let past = [at("01:00"), at("02:00"), at("03:00"), at("04:00")];
    let id = BackfillId::new(at("05:30"), [7; 10]);
    let request = Backfill { id, slots: &past, parallel: Some(2), trace_context: None };
    world.try_change("hourly", at("05:30"), |view| change::backfill(view, &request)).await.unwrap();
    let of_backfill = |claims: &[Claim]| claims.iter().filter(|claim| claim.run.is_backfill()).count();
    // As many at once as were asked for, although the job allows one.
    let mut at_work = world.start_some(at("05:31"), 100).await;
    at_work.extend(world.start_some(at("05:31"), 100).await);
    assert_eq!((at_work.len(), of_backfill(&at_work)), (2, 2));
    // A live slot is neither skipped nor held, and does not make room for the backfill.
    let planned = world.plan(at("06:00")).await;
    assert_eq!(planned.runs.iter().map(|run| run.skipped).collect::<Vec<_>>(), [None]);
    let live = world.start_some(at("06:00"), 100).await;
    assert_eq!(slots(&live), [at("06:00")]);
    // The next live slot waits for the live one alone, and the rest of the backfill for the backfill.
    let second = world.plan(at("07:00")).await;
    assert_eq!(second.runs[0].skipped, Some("overlap"));
    let skipped = world.store.get_run(second.runs[0].id).await.unwrap();
    assert_eq!(skipped.skip, Some(SkipReason::Overlap { blocking: live[0].run.id }));
    world.finish(&at_work[..1], &success(), at("07:01")).await;
    let next = world.start_some(at("07:02"), 100).await;
    assert_eq!((next.len(), of_backfill(&next)), (1, 1));
}

pub async fn a_stopped_backfill_leaves_what_runs(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("hourly", "0 * * * *"), |values| values.catch_up = CatchUp::None)).await;
    world.plan(at("05:30")).await;
    let past = [at("01:00"), at("02:00"), at("03:00")];
    let request =
        Backfill { id: BackfillId::new(at("05:30"), [7; 10]), slots: &past, parallel: None, trace_context: None };
    let made = world.try_change("hourly", at("05:30"), |view| change::backfill(view, &request)).await.unwrap();
    let running = world.start_some(at("05:31"), 100).await;
    let pending: Vec<RunId> = made.runs.iter().map(|run| run.id).filter(|id| *id != running[0].run.id).collect();
    world.try_change("hourly", at("05:32"), |view| Ok(change::cancel_runs(view, &pending))).await.unwrap();
    for id in pending {
        assert_eq!(world.store.get_run(id).await.unwrap().status, RunStatus::Canceled);
    }
    let run = world.store.get_run(running[0].run.id).await.unwrap();
    assert_eq!((run.status, run.cancel_by), (RunStatus::Running, None));
}

pub async fn the_oldest_of_all_targets_start_first(fresh: Fresh) {
    let world = World::new(&fresh);
    for minute in 0..8 {
        let label = if minute % 2 == 0 { LOG } else { MAIL };
        world.create(to(job(&format!("job-{minute}"), &format!("{minute} 1 * * *")), label)).await;
    }
    world.plan(at("02:00")).await;
    let claims = world.start_some(at("02:00"), 4).await;
    assert_eq!(slots(&claims), ["01:00", "01:01", "01:02", "01:03"].map(at));
}

pub async fn a_retry_starts_not_before_its_time(fresh: Fresh) {
    let world = World::new(&fresh);
    let backoff = Backoff { initial: Duration::from_mins(5), max: Duration::from_mins(5) };
    let definition = with(job("flaky", "0 1 * * *"), |values| {
        values.max_attempts = 3;
        values.backoff = backoff;
    });
    world.create(definition).await;
    world.run_due(&failure(), at("01:00")).await;
    assert_eq!(world.start(at("01:04:59.999999")).await, []);
    let claims = world.start(at("01:05")).await;
    assert_eq!(claims[0].run.attempt, 2);
    assert_eq!((claims[0].run.started_at, claims[0].run.scheduled_at), (Some(at("01:05")), at("01:00")));
}

pub async fn a_held_run_waits_until_the_others_have_ended(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("hourly", "0 * * * *"), |values| values.overlap = Overlap::Queue)).await;
    world.plan(at("01:00")).await;
    world.plan(at("02:00")).await;
    let first = world.start(at("02:00")).await;
    assert_eq!(slots(&first), [at("01:00")]);
    assert_eq!(world.start(at("02:01")).await, [], "the first is at work");
    world.finish(&first, &success(), at("02:02")).await;
    let second = world.start(at("02:02")).await;
    assert_eq!((slots(&second), second[0].run.held), (vec![at("02:00")], false));
    assert!(!world.run(second[0].run.id).await.held);
}

pub async fn a_pending_run_that_is_not_held_keeps_held_ones_waiting(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("hourly", "0 * * * *"), |values| values.overlap = Overlap::Queue)).await;
    world.plan(at("01:00")).await;
    world.plan(at("02:00")).await;
    // No room for more than one, and the one that is not held comes first; then it is at work.
    let claims = world.start_some(at("02:00"), 5).await;
    assert_eq!(slots(&claims), [at("01:00")], "both are pending, but only one may be active");
}

pub async fn held_runs_start_one_after_the_other_in_order(fresh: Fresh) {
    let world = World::new(&fresh);
    let definition = with(job("all", "0 * * * *"), |values| values.catch_up = CatchUp::All);
    world.create(definition).await;
    assert_eq!(world.plan(at("04:30")).await.runs.len(), 4);
    let mut started = Vec::new();
    for minute in 31..40 {
        let now = at(&format!("04:{minute}"));
        let claims = world.start(now).await;
        assert!(claims.len() <= 1, "{claims:?}");
        started.extend(slots(&claims));
        world.finish(&claims, &success(), now).await;
    }
    assert_eq!(started, [at("01:00"), at("02:00"), at("03:00"), at("04:00")]);
}

pub async fn a_held_run_starts_in_its_place_among_the_others(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("all", "0 * * * *"), |values| values.catch_up = CatchUp::All)).await;
    for (key, cron, priority) in
        [("urgent", "45 3 * * *", 3), ("usual", "30 2 * * *", 0), ("patient", "15 0 * * *", -3)]
    {
        world.create(with(job(key, cron), |values| values.priority = priority)).await;
    }
    world.plan(at("03:50")).await;
    let mut started = Vec::new();
    for minute in 50..59 {
        let now = at(&format!("03:{minute}"));
        let claims = world.start_some(now, 1).await;
        assert!(claims.len() <= 1, "{claims:?}");
        started.extend(slots(&claims));
        world.finish(&claims, &success(), now).await;
    }
    let expected = ["03:45", "01:00", "02:00", "02:30", "03:00", "00:15"];
    assert_eq!(started, expected.map(at), "by priority, then by time");
}

pub async fn as_many_held_runs_are_active_as_the_job_allows(fresh: Fresh) {
    let world = World::new(&fresh);
    let definition = with(job("all", "0 * * * *"), |values| {
        values.catch_up = CatchUp::All;
        values.max_concurrent_runs = 2;
    });
    world.create(definition).await;
    world.plan(at("05:30")).await;
    let mut active = world.start(at("05:30")).await;
    active.extend(world.start(at("05:30")).await);
    assert_eq!(slots(&active), [at("01:00"), at("02:00")]);
    assert_eq!(world.start(at("05:30")).await, []);
    world.finish(&active[1..], &success(), at("05:31")).await;
    assert_eq!(slots(&world.start(at("05:31")).await), [at("03:00")]);
}

pub async fn held_runs_wait_for_their_own_job_only(fresh: Fresh) {
    let world = World::new(&fresh);
    for key in ["a", "b"] {
        world.create(with(job(key, "0 * * * *"), |values| values.overlap = Overlap::Queue)).await;
    }
    world.plan(at("01:00")).await;
    let first = world.start(at("01:00")).await;
    world.plan(at("02:00")).await;
    let of_a: Vec<Claim> =
        first.into_iter().filter(|claim| claim.run.job_key.as_ref().unwrap().as_str() == "a").collect();
    world.finish(&of_a, &success(), at("02:01")).await;
    let claims = world.start(at("02:01")).await;
    let ids: Vec<RunId> = claims.iter().map(|claim| claim.run.id).collect();
    assert_eq!(ids, [RunId::for_slot(super::given::job_id("a", 1), None, at("02:00"))]);
}

pub async fn runs_of_a_retired_job_still_start_and_those_of_a_paused_one_wait(fresh: Fresh) {
    let world = World::new(&fresh);
    for key in ["paused", "retired"] {
        world.create(job(key, "0 * * * *")).await;
    }
    world.plan(at("01:00")).await;
    world.pause("paused", at("01:01")).await;
    world.retire("retired", at("01:01")).await;
    let claims = world.start(at("01:02")).await;
    let keys: Vec<_> = claims.iter().filter_map(|claim| claim.run.job_key.as_ref()).map(ToString::to_string).collect();
    assert_eq!(keys, ["retired"]);
}

pub async fn a_canceled_run_never_starts(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    let run = world.plan(at("01:00")).await.runs[0].id;
    world.store.cancel_run(run, "ana", at("01:00"), &audit("run.cancel", "run", at("01:00"))).await.unwrap();
    assert_eq!(world.start(at("01:01")).await, []);
}

pub async fn a_trial_of_a_target_has_no_job(fresh: Fresh) {
    let world = World::new(&fresh);
    let run = trial("one", MAIL, at("01:00"));
    world.store.insert_run(&run, &audit("target.try", "target:mail", at("01:00"))).await.unwrap();
    let claims = world.start(at("01:00")).await;
    assert_eq!((claims[0].run.id, &claims[0].job), (run.id, &None));
    let recorded = world.finish(&claims, &failure(), at("01:01")).await;
    assert_eq!(recorded, [everbell_core::store::Recorded::Applied { consecutive_failures: 0 }]);
}
