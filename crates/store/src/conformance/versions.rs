//! Continuity from one version of a job to the next: waiting runs, failures, and the last run.

use everbell_core::change::{self, Edit, JobView};
use everbell_core::store::{JobFilter, JobSort, Recorded, RunFilter};
use everbell_core::{Definition, JobId, Overlap, RunId, RunStatus, SkipReason};
use jiff::Timestamp;

use super::Fresh;
use super::given::{at, job, job_at, job_id, org_id, with};
use super::org_timers::three;
use super::prune::prune;
use super::world::{World, failure, success};

/// The next version, which says something else about itself and no more.
async fn edit(world: &World, key: &str, version: u32, now: Timestamp) -> JobId {
    let id = job_id(key, version);
    let edit = || Edit { description: Some(format!("version {version}")), ..Edit::default() };
    world
        .try_change(key, now, |view: &JobView| change::new_version(view, edit(), id, false, "ana", now))
        .await
        .unwrap();
    id
}

async fn skips(world: &World, now: Timestamp) -> Vec<Option<&'static str>> {
    world.plan(now).await.runs.iter().map(|run| run.skipped).collect()
}

pub async fn a_run_of_the_version_before_is_in_the_way(fresh: Fresh) {
    let world = World::new(&fresh);
    let old = world.create(job("hourly", "0 * * * *")).await.job.definition.id;
    world.plan(at("01:00")).await;
    let first = world.start(at("01:00")).await;
    edit(&world, "hourly", 2, at("01:10")).await;
    let new = edit(&world, "hourly", 3, at("01:20")).await;
    assert_eq!(skips(&world, at("02:00")).await, [Some("overlap")]);
    let skipped = world.runs_like(&RunFilter { job_id: Some(new), ..RunFilter::default() }).await;
    assert_eq!(skipped[0].skip, Some(SkipReason::Overlap { blocking: first[0].run.id }));
    let by_hand = world.run_now("hourly", "by hand", at("02:10")).await;
    assert_eq!(by_hand.runs[0].status, RunStatus::Skipped);

    // It is still a run of its own version.
    let running = |id| RunFilter { job_id: Some(id), status: vec![RunStatus::Running], ..RunFilter::default() };
    let ids: Vec<RunId> = world.runs_like(&running(old)).await.iter().map(|run| run.id).collect();
    assert_eq!((ids, world.runs_like(&running(new)).await.len()), (vec![first[0].run.id], 0));

    world.finish(&first, &success(), at("02:30")).await;
    assert_eq!(skips(&world, at("03:00")).await, [None]);
}

pub async fn a_run_that_waits_has_its_turn_in_the_next_version(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("hourly", "0 * * * *"), |policies| policies.overlap = Overlap::Queue)).await;
    world.plan(at("01:00")).await;
    let first = world.start(at("01:00")).await;
    let waiting = world.plan(at("02:00")).await.runs[0].id;
    edit(&world, "hourly", 2, at("02:10")).await;
    assert_eq!(skips(&world, at("03:00")).await, [Some("overlap")], "one waits already");
    assert_eq!(world.start(at("03:00")).await.len(), 0, "not before the first has ended");
    world.finish(&first, &success(), at("03:10")).await;
    let second = world.start(at("03:10")).await;
    assert_eq!(second.iter().map(|claim| claim.run.id).collect::<Vec<_>>(), [waiting]);
    assert_eq!(skips(&world, at("04:00")).await, [None]);
    assert_eq!(world.start(at("04:00")).await.len(), 0, "it waits for the run of the version before");
    world.finish(&second, &success(), at("04:10")).await;
    assert_eq!(world.start(at("04:10")).await.len(), 1);
}

pub async fn failures_are_counted_on(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.run_due(&failure(), at("01:00")).await;
    world.plan(at("02:00")).await;
    let at_work = world.start(at("02:00")).await;
    edit(&world, "hourly", 2, at("02:10")).await;
    assert_eq!(world.get("hourly").await.job.state.consecutive_failures, 1);
    let recorded = world.finish(&at_work, &failure(), at("02:20")).await;
    assert_eq!(recorded, [Recorded::Applied { consecutive_failures: 2 }]);
    assert_eq!(world.get("hourly").await.job.state.consecutive_failures, 2, "of the version that lives");
    world.run_due(&success(), at("03:00")).await;
    assert_eq!(world.get("hourly").await.job.state.consecutive_failures, 0);
}

pub async fn the_last_run_stays_until_there_is_another(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    let last = |row: everbell_core::store::JobRow| row.last_run.map(|run| run.id);
    let first = world.run_due(&failure(), at("01:00")).await[0].run.id;
    edit(&world, "hourly", 2, at("01:10")).await;
    edit(&world, "hourly", 3, at("01:20")).await;
    assert_eq!(last(world.get("hourly").await), Some(first));
    let failed = JobFilter { last_status: vec![RunStatus::Failed], ..JobFilter::default() };
    let living = JobFilter { status: vec![everbell_core::JobStatus::Active], ..failed };
    assert_eq!(world.keys(&living).await, ["hourly"]);
    let newest = JobFilter { sort: JobSort::LastRun, ..living };
    assert_eq!(world.keys(&newest).await, ["hourly"]);
    let second = world.run_due(&success(), at("02:00")).await[0].run.id;
    assert_eq!(last(world.get("hourly").await), Some(second));
    edit(&world, "hourly", 4, at("02:10")).await;
    prune(&world, at("09:00"), 100).await.unwrap();
    assert_eq!(last(world.get("hourly").await), None, "it is kept no longer");
}

pub async fn a_slot_that_was_skipped_ahead_is_no_last_run(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    let first = world.run_due(&success(), at("01:00")).await[0].run.id;
    let now = at("01:10");
    world.try_change("hourly", now, |view| change::skip_next(view, 2, "ana", now)).await.unwrap();
    assert_eq!(world.get("hourly").await.last_run.map(|run| run.id), Some(first));
    edit(&world, "hourly", 2, at("01:20")).await;
    let row = world.get("hourly").await;
    assert_eq!(row.last_run.map(|run| run.id), Some(first));
    assert_eq!(row.timer.unwrap().next_run_at, Some(at("04:00")), "and it is skipped in the next version as well");
}

pub async fn a_run_of_an_org_is_in_the_way_of_the_next_version(fresh: Fresh) {
    let (world, old) = three(&fresh).await;
    world.plan(at("09:00")).await;
    let first = world.start(at("09:00")).await;
    assert_eq!(first.iter().map(|claim| claim.run.org.clone()).collect::<Vec<_>>(), [Some(org_id("utc"))]);
    let new = edit(&world, "brief", 2, at("10:00")).await;
    world.reconcile_orgs(at("10:00")).await;
    let later = at("2026-11-16T09:00:00Z");
    world.plan(later).await;
    let of = |id| RunFilter { job_id: Some(id), org: Some(org_id("utc")), ..RunFilter::default() };
    let runs = world.runs_like(&of(new)).await;
    assert_eq!(runs[0].skip, Some(SkipReason::Overlap { blocking: first[0].run.id }), "{runs:?}");
    assert_eq!(world.runs_like(&of(old)).await[0].status, RunStatus::Running);
}

pub async fn a_failure_is_not_counted_for_another_job_of_the_same_key(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("nightly", "0 * * * *")).await;
    world.plan(at("01:00")).await;
    let claims = world.start(at("01:00")).await;
    world.retire("nightly", at("01:10")).await;
    let other = everbell_core::with!(Definition {
        id: job_id("nightly", 2),
        version: 2,
        ..job_at("nightly", "0 5 * * *", at("01:20"))
    });
    world.create(other).await;
    world.finish(&claims, &failure(), at("01:30")).await;
    assert_eq!(world.get("nightly").await.job.state.consecutive_failures, 0, "the run is of the job that was retired");
}
