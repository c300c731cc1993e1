//! A pause holds the runs that have not begun, of any kind; they start when the job is resumed.

use std::time::Duration;

use everbell_core::change::{self, Edit, JobView};
use everbell_core::org::OrgTask;
use everbell_core::plan::{Backfill, Missed};
use everbell_core::store::RunFilter;
use everbell_core::{BackfillId, CatchUp, Overlap, RunStatus};

use super::Fresh;
use super::given::{at, audit, job, job_id, with};
use super::org_timers::three;
use super::world::{World, by_key, failure, pause_of, success};

/// Three runs of a backfill wait.
async fn backfilled(world: &World) {
    world.create(with(job("hourly", "0 * * * *"), |values| values.catch_up = CatchUp::None)).await;
    world.plan(at("05:30")).await;
    let request = Backfill {
        id: BackfillId::new(at("05:30"), [7; 10]),
        slots: &[at("01:00"), at("02:00"), at("03:00")],
        parallel: None,
        trace_context: None,
    };
    let made = world.try_change("hourly", at("05:30"), |view| change::backfill(view, &request)).await.unwrap();
    assert_eq!(made.runs.len(), 3);
}

pub async fn a_paused_job_starts_nothing_that_waits(fresh: Fresh) {
    let world = World::new(&fresh);
    backfilled(&world).await;
    assert_eq!(world.pause("hourly", at("05:31")).await.pending, 3, "all of them wait");
    assert_eq!(world.start(at("05:32")).await, []);
    assert_eq!(world.pause("hourly", at("05:33")).await.pending, 3, "still");
    assert_eq!(world.start(at("06:30")).await, []);
    assert_eq!(world.resume("hourly", Missed::Skip, at("06:40")).await.pending, 3);
    let mut started = 0;
    while let [claim] = &world.start(at("06:41")).await[..] {
        world.finish(std::slice::from_ref(claim), &success(), at("06:41")).await;
        started += 1;
    }
    assert_eq!(started, 3, "each has its turn after the resume");
}

pub async fn other_jobs_start_meanwhile(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("paused", "0 * * * *")).await;
    world.create(job("other", "0 * * * *")).await;
    world.plan(at("01:00")).await;
    world.pause("paused", at("01:00")).await;
    let claims = world.start(at("01:00")).await;
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0].run.job_id, Some(job_id("other", 1)));
}

pub async fn a_retry_waits_until_the_job_is_resumed(fresh: Fresh) {
    let world = World::new(&fresh);
    let retried = with(job("hourly", "0 * * * *"), |values| {
        values.max_attempts = 3;
    });
    world.create(retried).await;
    world.plan(at("01:00")).await;
    let claims = world.start(at("01:00")).await;
    assert_eq!(world.pause("hourly", at("01:01")).await.pending, 0, "it is at work");
    world.finish(&claims, &failure(), at("01:02")).await;
    assert_eq!(world.run(claims[0].run.id).await.status, RunStatus::Pending, "it shall be tried again");
    assert_eq!(world.start(at("01:30")).await, [], "but not while the job is paused");
    assert_eq!(world.resume("hourly", Missed::Skip, at("01:40")).await.pending, 1);
    assert_eq!(world.start(at("01:40")).await.len(), 1);
}

pub async fn a_run_by_hand_starts_on_a_paused_job(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.pause("hourly", at("00:10")).await;
    world.run_now("hourly", "by hand", at("00:20")).await;
    assert_eq!(world.start(at("00:20")).await.len(), 1, "an explicit request wins");
}

pub async fn what_waits_can_be_canceled_with_the_pause(fresh: Fresh) {
    let world = World::new(&fresh);
    backfilled(&world).await;
    let running = world.start(at("05:30")).await;
    assert_eq!(running.len(), 1);
    let pause = |view: &JobView| change::pause_and_cancel(view, pause_of(at("05:31")));
    assert_eq!(world.try_change("hourly", at("05:31"), pause).await.unwrap().pending, 2);
    let canceled = world.runs().await.into_iter().filter(|run| run.status == RunStatus::Canceled);
    assert_eq!(canceled.count(), 2);
    assert_eq!(world.run(running[0].run.id).await.status, RunStatus::Running, "what has begun goes on");
    world.resume("hourly", Missed::Skip, at("05:40")).await;
    assert_eq!(world.start(at("05:40")).await, []);
}

pub async fn the_next_version_keeps_the_pause_or_ends_it(fresh: Fresh) {
    let world = World::new(&fresh);
    backfilled(&world).await;
    world.pause("hourly", at("05:31")).await;
    let edit = |version: u32, activate: bool| {
        move |view: &JobView| {
            change::new_version(view, Edit::default(), job_id("hourly", version), activate, "ana", at("05:32"))
        }
    };
    world.try_change("hourly", at("05:32"), edit(2, false)).await.unwrap();
    assert_eq!(world.start(at("05:33")).await, [], "an edit ends no pause");
    world.try_change("hourly", at("05:34"), edit(3, true)).await.unwrap();
    assert_eq!(world.start(at("05:35")).await.len(), 1, "one that activates the job does");
}

pub async fn retiring_a_paused_job_cancels_what_waits(fresh: Fresh) {
    let world = World::new(&fresh);
    backfilled(&world).await;
    world.pause("hourly", at("05:31")).await;
    assert_eq!(world.retire("hourly", at("05:32")).await.pending, 3);
    assert!(
        world.runs().await.iter().filter(|run| run.slot_at < Some(at("04:00"))).all(|run| run.status.is_terminal())
    );
    assert_eq!(world.start(at("05:33")).await, []);
}

/// A pause and a claim may race: no run starts after the pause was answered.
pub async fn nothing_starts_after_a_pause_was_answered(fresh: Fresh) {
    let world = World::new(&fresh);
    let second = World { store: fresh.reconnect().await };
    let allowed = with(job("hourly", "0 * * * *"), |values| values.overlap = Overlap::Allow);
    world.create(allowed).await;
    for round in 0..150_u64 {
        let now = at("00:10") + Duration::from_secs(round);
        for number in 0..3 {
            world.run_now("hourly", &format!("{round}-{number}"), now).await;
        }
        let starter = second.clone();
        let starting = tokio::spawn(async move { starter.start_some(now, 2).await.len() });
        let entry = audit("job.pause", "job:hourly", now);
        let pause = |view: &JobView| change::pause(view, pause_of(now));
        let paused = world.store.change_job(&by_key("hourly"), None, &pause, &entry).await.unwrap();
        let after = world.start(now).await;
        assert_eq!(after, [], "round {round}");
        let before = starting.await.unwrap() as u64;
        assert_eq!(before + paused.pending, 3, "round {round}: each has begun before, or waits");
        world.resume("hourly", Missed::Skip, now).await;
        let rest = world.start(now).await;
        assert_eq!(rest.len() as u64, paused.pending, "round {round}");
        let running: Vec<_> = world
            .runs_like(&RunFilter { status: vec![RunStatus::Running, RunStatus::Pending], ..RunFilter::default() })
            .await;
        for run in running {
            world.store.cancel_run(run.id, "ana", now, &audit("run.cancel", "run", now)).await.unwrap();
        }
        let done = world.store.extend_leases(super::given::instance_id(1), now, now + Duration::from_mins(1)).await;
        let over: Vec<_> = done.unwrap().into_iter().map(|report| report.run).collect();
        let lost = world.store.expired_leases(now + Duration::from_hours(1), 100).await.unwrap();
        let ended = lost.iter().filter(|run| over.contains(&run.id));
        let ended =
            ended.filter_map(|run| everbell_core::settle::settle(run, everbell_core::settle::Outcome::Lost(None), now));
        world.store.record(&ended.collect::<Vec<_>>(), now).await.unwrap();
    }
}

/// Runs by hand for all orgs are made in steps. The steps after a pause make runs that wait as well.
pub async fn a_pause_holds_runs_that_an_org_update_has_yet_to_make(fresh: Fresh) {
    let (world, _) = three(&fresh).await;
    let work = OrgTask::RunNow { payload: None, overlap: None, trace_context: None };
    world.try_change("brief", at("01:00"), |view| change::for_all_orgs(view, work.clone())).await.unwrap();
    world.store.reconcile_orgs(at("01:00"), 1).await.unwrap();
    world.pause("brief", at("01:01")).await;
    world.reconcile_orgs(at("01:02")).await;
    assert_eq!(world.runs().await.len(), 3, "for each org, also after the pause");
    assert_eq!(world.start(at("01:03")).await, []);
    assert_eq!(world.resume("brief", Missed::Skip, at("01:10")).await.pending, 3);
    assert_eq!(world.start(at("01:10")).await.len(), 3);

    world.pause("brief", at("01:20")).await;
    let again = |view: &JobView| change::for_all_orgs(view, work.clone());
    world.try_change("brief", at("01:21"), again).await.unwrap();
    world.reconcile_orgs(at("01:21")).await;
    let pending = RunFilter { status: vec![RunStatus::Pending], ..RunFilter::default() };
    let skipped = RunFilter { status: vec![RunStatus::Skipped], ..RunFilter::default() };
    let (pending, skipped) = (world.runs_like(&pending).await.len(), world.runs_like(&skipped).await.len());
    assert_eq!((pending, skipped), (0, 3), "the first ones are still at work");
}

/// A pause during an org update holds its runs, whichever commits first.
pub async fn a_pause_and_an_org_update_at_once_start_nothing(fresh: Fresh) {
    let (world, _) = three(&fresh).await;
    let second = World { store: fresh.reconnect().await };
    for round in 0..40_u64 {
        let now = at("01:00") + Duration::from_secs(round);
        let work = OrgTask::RunNow { payload: None, overlap: Some(Overlap::Allow), trace_context: None };
        world.try_change("brief", now, |view| change::for_all_orgs(view, work.clone())).await.unwrap();
        let reconciler = second.clone();
        let reconciling =
            tokio::spawn(async move { while reconciler.store.reconcile_orgs(now, 1).await.unwrap().more {} });
        let pause = |view: &JobView| change::pause(view, pause_of(now));
        world.try_change("brief", now, pause).await.unwrap();
        assert_eq!(world.start(now).await, [], "round {round}: nothing starts after the answer");
        reconciling.await.unwrap();
        assert_eq!(world.start(now).await, [], "round {round}: nor what was made meanwhile");
        assert_eq!(world.resume("brief", Missed::Skip, now).await.pending, 3, "round {round}");
        world.reconcile_orgs(now).await;
        let claims = world.start(now).await;
        assert_eq!(claims.len(), 3, "round {round}");
        world.finish(&claims, &success(), now).await;
    }
}
