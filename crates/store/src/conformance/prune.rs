//! Pruning: what is old and over goes, in bounded steps.

use everbell_core::plan::Missed;
use everbell_core::store::{
    GapFilter, JobFilter, JobSort, PruneBefore, Pruned, Remembered, RequestKey, RunFilter, StoreResult,
};
use everbell_core::{Overlap, RunStatus};
use jiff::Timestamp;

use super::Fresh;
use super::given::{assert_refused, at, audit, job, with};
use super::world::{World, by_key, failure, success};

const TOMORROW: &str = "2026-11-16T12:00:00Z";

pub async fn old_runs_go_and_young_ones_stay(fresh: Fresh) {
    let world = World::new(&fresh);
    let row = world.create(job("hourly", "0 * * * *")).await;
    for hour in ["01:00", "02:00", "03:00", "04:00"] {
        let outcome = if hour == "02:00" { failure() } else { success() };
        world.run_due(&outcome, at(hour)).await;
    }
    let gone = world.runs().await[3].id;
    let pruned = prune(&world, at("03:00"), 100).await.unwrap();
    assert_eq!(pruned.runs, 2);
    let left: Vec<_> = world.runs().await.iter().map(|run| run.slot_at).collect();
    assert_eq!(left, [Some(at("04:00")), Some(at("03:00"))]);
    assert_refused(world.store.get_run(gone).await, "not found");
    assert_eq!(world.store.slot_outcome(row.job.definition.id, None, at("01:00")).await.unwrap(), None);
    assert_eq!(prune(&world, at("03:00"), 100).await.unwrap().runs, 0, "nothing is left to do");
}

pub async fn a_run_of_an_old_slot_that_ended_lately_stays(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.plan(at("01:00")).await;
    let claims = world.start(at("01:00")).await;
    world.finish(&claims, &success(), at("09:00")).await;
    assert_eq!(prune(&world, at("05:00"), 100).await.unwrap().runs, 0);
    assert_eq!(prune(&world, at("10:00"), 100).await.unwrap().runs, 1);
}

pub async fn active_runs_are_never_pruned(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("hourly", "0 * * * *"), |values| values.overlap = Overlap::Queue)).await;
    world.plan(at("01:00")).await;
    world.start(at("01:00")).await;
    world.plan(at("02:00")).await;
    assert_eq!(prune(&world, at(TOMORROW), 100).await.unwrap().runs, 0);
    let statuses: Vec<_> = world.runs().await.iter().map(|run| (run.status, run.held)).collect();
    assert_eq!(statuses, [(RunStatus::Pending, true), (RunStatus::Running, false)]);
}

pub async fn a_job_shows_the_last_of_the_runs_that_are_kept(fresh: Fresh) {
    let world = World::new(&fresh);
    let beside = with(job("beside", "0 1,2 * * *"), |values| {
        values.overlap = Overlap::Allow;
        values.max_concurrent_runs = 2;
    });
    world.create(beside).await;
    world.create(job("once a day", "30 1 * * *")).await;
    world.plan(at("01:00")).await;
    let long = world.start(at("01:00")).await;
    world.run_due(&success(), at("01:30")).await;
    world.run_due(&failure(), at("02:00")).await;
    let by_last = JobFilter { sort: JobSort::LastRun, ..JobFilter::default() };
    let failed = JobFilter { last_status: vec![RunStatus::Failed], ..by_last.clone() };
    let running = JobFilter { last_status: vec![RunStatus::Running], ..by_last.clone() };
    assert_eq!(world.keys(&by_last).await, ["beside", "once a day"]);
    assert_eq!((world.keys(&failed).await, world.keys(&running).await), (vec!["beside".to_owned()], vec![]));
    // What is at work stays, so it is the last one; and of the other job nothing is left.
    assert_eq!(prune(&world, at("03:00"), 100).await.unwrap().runs, 2);
    assert_eq!(world.get("beside").await.last_run.map(|run| run.id), Some(long[0].run.id));
    assert_eq!(world.get("once a day").await.last_run, None);
    assert_eq!((world.keys(&failed).await, world.keys(&running).await), (vec![], vec!["beside".to_owned()]));
    assert_eq!(world.keys(&by_last).await, ["beside", "once a day"]);
    world.finish(&long, &success(), at("03:00")).await;
    assert_eq!(prune(&world, at(TOMORROW), 1).await.unwrap().runs, 1);
    assert_eq!(world.get("beside").await.last_run, None);
    let ended = JobFilter { last_status: RunStatus::ALL.to_vec(), ..by_last.clone() };
    assert_eq!(world.keys(&ended).await, [""; 0]);
    world.run_due(&success(), at("2026-11-16T01:30:00Z")).await;
    assert_eq!(world.keys(&by_last).await, ["once a day", "beside"], "and it goes on");
}

pub async fn skipped_and_canceled_runs_are_pruned_too(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    let pending = world.plan(at("01:00")).await.runs[0].id;
    world.plan(at("02:00")).await;
    let entry = audit("run.cancel", "run", at("02:30"));
    world.store.cancel_run(pending, "ana", at("02:30"), &entry).await.unwrap();
    assert_eq!(prune(&world, at(TOMORROW), 100).await.unwrap().runs, 2);
    assert_eq!(world.runs().await, []);
}

pub async fn no_more_of_a_kind_goes_than_the_limit(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    for hour in 1..=7 {
        world.run_due(&success(), at(&format!("{hour:02}:00"))).await;
        answer(&world, &format!("key-{hour}"), "01:00").await;
        world.store.append_audit(&audit("did", "it", at("01:00"))).await.unwrap();
    }
    let mut rounds = Vec::new();
    for _ in 0..4 {
        let pruned = prune(&world, at(TOMORROW), 3).await.unwrap();
        rounds.push((pruned.runs, pruned.audit, pruned.answers));
    }
    // One entry more: that of the job's creation.
    assert_eq!(rounds, [(3, 3, 3), (3, 3, 3), (1, 2, 1), (0, 0, 0)]);
}

/// Requests go with the rest here; that they need not is one case.
pub(super) async fn prune(world: &World, before: Timestamp, limit: u32) -> StoreResult<Pruned> {
    world.store.prune(PruneBefore::all(before), limit).await
}

fn request(key: &str) -> RequestKey {
    RequestKey { key: key.to_owned(), fingerprint: [1; 32] }
}

async fn find(world: &World, key: &str, now: &str) -> Remembered {
    world.store.find_request(&request(key), at(now)).await.unwrap()
}

async fn answer(world: &World, key: &str, now: &str) {
    world.store.remember_answer(&request(key), (200, key), at(now)).await.unwrap();
}

pub async fn gaps_audit_entries_and_answers_go_with_their_time(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.pause("hourly", at("00:30")).await;
    world.resume("hourly", Missed::Skip, at("02:30")).await;
    world.pause("hourly", at("05:30")).await;
    world.resume("hourly", Missed::Skip, at("08:30")).await;
    answer(&world, "old", "02:00").await;
    answer(&world, "young", "05:00").await;

    let pruned = prune(&world, at("04:00"), 100).await.unwrap();
    assert_eq!(pruned, Pruned { gaps: 1, audit: 3, answers: 1, ..Pruned::default() });
    let gaps = world.gaps(&GapFilter::default()).await;
    assert_eq!((gaps.len(), gaps[0].last_slot_at), (1, at("08:00")));
    assert_eq!(world.actions(None).await.len(), 2);
    assert_eq!(find(&world, "old", "09:00").await, Remembered::New);
    assert_eq!(find(&world, "young", "09:00").await, Remembered::Answered(200, "young".to_owned()));
}

pub async fn requests_have_a_time_of_their_own(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.run_due(&success(), at("01:00")).await;
    answer(&world, "old", "02:00").await;
    answer(&world, "young", "05:00").await;
    let before = PruneBefore { requests: at("05:00"), ..PruneBefore::all(Timestamp::UNIX_EPOCH) };
    let pruned = world.store.prune(before, 100).await.unwrap();
    assert_eq!(pruned, Pruned { answers: 1, ..Pruned::default() });
    assert_eq!(find(&world, "young", "05:00").await, Remembered::Answered(200, "young".to_owned()));
    let before = PruneBefore { requests: at("05:00"), ..PruneBefore::all(at(TOMORROW)) };
    let pruned = world.store.prune(before, 100).await.unwrap();
    assert_eq!((pruned.runs, pruned.answers), (1, 0));
}

pub async fn audit_entries_have_a_time_of_their_own(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.run_due(&success(), at("01:00")).await;
    world.store.append_audit(&audit("did", "it", at("02:00"))).await.unwrap();
    let before = PruneBefore { audit: Timestamp::UNIX_EPOCH, ..PruneBefore::all(at(TOMORROW)) };
    let pruned = world.store.prune(before, 100).await.unwrap();
    assert_eq!((pruned.runs, pruned.audit), (1, 0), "the trail outlives the history");
    assert_eq!(world.actions(None).await, ["did", "job.create"]);
    let before = PruneBefore { audit: at("02:00"), ..PruneBefore::all(Timestamp::UNIX_EPOCH) };
    assert_eq!(world.store.prune(before, 100).await.unwrap(), Pruned { audit: 1, ..Pruned::default() });
    assert_eq!(world.actions(None).await, ["did"]);
}

pub async fn jobs_timers_and_tokens_stay(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("active", "0 * * * *")).await;
    world.create(job("retired", "0 * * * *")).await;
    world.retire("retired", at("00:10")).await;
    world.run_due(&success(), at("01:00")).await;
    let before = world.get("active").await;
    prune(&world, at("2027-11-15T00:00:00Z"), 1_000).await.unwrap();
    let after = world.get("active").await;
    assert_eq!((after.job, after.timer, after.last_run), (before.job, before.timer, None));
    assert_eq!(world.keys(&JobFilter::default()).await, ["active", "retired"]);
    assert!(world.store.get_job(&by_key("retired")).await.is_ok());
    assert_eq!(world.plan(at("02:00")).await.runs.len(), 1, "it goes on");
}

pub async fn a_slot_whose_run_was_pruned_does_not_run_again(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.run_due(&success(), at("01:00")).await;
    prune(&world, at(TOMORROW), 100).await.unwrap();
    assert_eq!(world.plan(at("01:30")).await.timers, 0, "the mark is behind it");
    assert_eq!(world.runs_like(&RunFilter::default()).await, []);
}
