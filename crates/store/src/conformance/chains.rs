//! Chains: what starts when runs end, in the transaction that ends them.

use everbell_core::after::{After, ChainOn};
use everbell_core::chain::ChainLink;
use everbell_core::change::{self, Edit};
use everbell_core::settle::{Outcome, Then};
use everbell_core::store::{Claim, GapFilter, JobRef, Recorded, RunFilter, StoreError};
use everbell_core::{
    Definition, Failure, FailureCode, GapReason, Invalid, JobKey, JobStatus, Overlap, Run, RunId, RunStatus, Spec,
    Trigger, TriggerType, Zone,
};

use super::Fresh;
use super::given::{at, audit, by_hand, job, job_id, with};
use super::world::{World, canceled, failure, settled, success};

fn after(parent: &str, on: ChainOn) -> After {
    After { job_key: JobKey::new(parent).unwrap(), on, manual: false }
}

/// A job that starts after another one.
fn follower(key: &str, after: After) -> Definition {
    everbell_core::with!(Definition { spec: Ok(Spec::following(after, Zone::utc())), ..job(key, "0 * * * *") })
}

fn after_success(key: &str, parent: &str) -> Definition {
    follower(key, after(parent, ChainOn::Success))
}

/// `extract` every hour, and `load` after each of its successes; the first run of `extract` is at work.
async fn extracting(world: &World) -> Vec<Claim> {
    world.create(job("extract", "0 * * * *")).await;
    world.create(after_success("load", "extract")).await;
    world.plan(at("01:00")).await;
    world.start(at("01:00")).await
}

async fn runs_of(world: &World, key: &str) -> Vec<Run> {
    let filter = RunFilter { job_key: Some(JobKey::new(key).unwrap()), ..RunFilter::default() };
    world.runs_like(&filter).await
}

pub async fn a_success_starts_the_next_job_once(fresh: Fresh) {
    let world = World::new(&fresh);
    let claims = extracting(&world).await;
    let cause = claims[0].run.id;
    assert_eq!(world.get("load").await.next_run_at(), None, "it has no clock");
    assert!(runs_of(&world, "load").await.is_empty(), "its parent is still at work");
    assert_eq!(world.finish(&claims, &success(), at("01:05")).await, [Recorded::Applied { consecutive_failures: 0 }]);
    assert_eq!(world.finish(&claims, &success(), at("01:06")).await, [Recorded::LeaseLost], "sent again");
    let runs = runs_of(&world, "load").await;
    assert_eq!(runs.len(), 1);
    let key = JobKey::new("load").unwrap();
    assert_eq!(runs[0].id, RunId::after(&key, None, cause, at("01:05")));
    assert_eq!((&runs[0].trigger, runs[0].status), (&Trigger::After(cause), RunStatus::Pending));
    assert_eq!((runs[0].slot_at, runs[0].scheduled_at), (None, at("01:05")));
    let started = world.store.runs_after(cause, at("01:05"), 10).await.unwrap();
    assert_eq!(started.iter().map(|run| run.id).collect::<Vec<_>>(), [runs[0].id]);
    let of_kind = |kind| RunFilter { trigger: Some(kind), ..RunFilter::default() };
    assert_eq!(world.runs_like(&of_kind(TriggerType::After)).await.len(), 1);
    assert_eq!(world.runs_like(&of_kind(TriggerType::Manual)).await.len(), 0);
    let claimed = world.start(at("01:05")).await;
    assert_eq!(claimed.iter().map(|claim| claim.run.id).collect::<Vec<_>>(), [runs[0].id]);
    world.finish(&claimed, &success(), at("01:07")).await;
    assert_eq!(world.get("load").await.last_run.map(|run| run.status), Some(RunStatus::Succeeded));
}

pub async fn only_the_last_attempt_counts_and_only_the_outcome_that_was_asked_for(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("extract", "0 * * * *"), |values| values.max_attempts = 2)).await;
    for (key, on) in [("good", ChainOn::Success), ("bad", ChainOn::Failure), ("both", ChainOn::Any)] {
        world.create(follower(key, after("extract", on))).await;
    }
    world.plan(at("01:00")).await;
    let first = world.start(at("01:00")).await;
    world.finish(&first, &failure(), at("01:01")).await;
    let count = async |key| runs_of(&world, key).await.len();
    assert_eq!((count("good").await, count("bad").await, count("both").await), (0, 0, 0), "it is tried again");
    let again = world.start(at("01:02")).await;
    world.finish(&again, &failure(), at("01:03")).await;
    assert_eq!((count("good").await, count("bad").await, count("both").await), (0, 1, 1));
    world.plan(at("02:00")).await;
    let claims: Vec<Claim> = world.start(at("02:00")).await;
    let (extract, others): (Vec<_>, Vec<_>) =
        claims.into_iter().partition(|claim| claim.run.job_key.as_ref().unwrap().as_str() == "extract");
    world.finish(&others, &success(), at("02:01")).await;
    world.finish(&extract, &canceled(), at("02:02")).await;
    assert_eq!((count("good").await, count("bad").await, count("both").await), (0, 1, 2), "canceled at work");
}

pub async fn a_lost_run_and_one_that_gives_up_have_failed(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("extract", "0 * * * *")).await;
    world.create(follower("alarm", after("extract", ChainOn::Failure))).await;
    world.plan(at("01:00")).await;
    let claims = world.start(at("01:00")).await;
    world.finish(&claims, &Outcome::Lost(None), at("01:10")).await;
    assert_eq!(runs_of(&world, "alarm").await.len(), 1);
    let alarm = world.start(at("01:10")).await;
    world.finish(&alarm, &success(), at("01:11")).await;
    world.plan(at("02:00")).await;
    let claims = world.start(at("02:00")).await;
    let failure = Failure::new(FailureCode::HANDLER_ERROR, "no");
    world.finish(&claims, &Outcome::Failed { failure, then: Then::GiveUp }, at("02:01")).await;
    assert_eq!(runs_of(&world, "alarm").await.len(), 2);
}

pub async fn a_run_that_never_began_starts_nothing(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("extract", "0 * * * *")).await;
    world.create(follower("any", after("extract", ChainOn::Any))).await;
    let id = world.plan(at("01:00")).await.runs[0].id;
    let entry = audit("run.cancel", &format!("run:{id}"), at("01:01"));
    world.store.cancel_run(id, "ana", at("01:01"), &entry).await.unwrap();
    assert!(runs_of(&world, "any").await.is_empty());
}

pub async fn runs_by_hand_start_others_only_if_asked(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("extract", "0 * * * *")).await;
    world.create(after_success("usual", "extract")).await;
    world.create(follower("also", After { manual: true, ..after("extract", ChainOn::Success) })).await;
    world.run_now("extract", "by hand", at("00:30")).await;
    let claims = world.start(at("00:30")).await;
    world.finish(&claims, &success(), at("00:31")).await;
    assert_eq!(runs_of(&world, "usual").await.len(), 0);
    let also = runs_of(&world, "also").await;
    assert_eq!(also.len(), 1);
    assert_eq!(also[0].trigger, Trigger::After(by_hand(at("00:30"), "by hand")));
}

pub async fn chains_go_on_also_within_one_batch(fresh: Fresh) {
    let world = World::new(&fresh);
    let mut claims = extracting(&world).await;
    world.create(with(after_success("report", "load"), |values| values.overlap = Overlap::Allow)).await;
    world.finish(&claims, &success(), at("01:05")).await;
    world.plan(at("02:00")).await;
    claims = world.start(at("02:00")).await;
    assert_eq!(claims.len(), 2, "the next extract, and load");
    // Both end in one batch: load starts again, and report after the load that ended.
    let transitions: Vec<_> = claims.iter().map(|claim| settled(claim, &success(), at("02:05"))).collect();
    world.store.record(&transitions, at("02:05")).await.unwrap();
    assert_eq!((runs_of(&world, "load").await.len(), runs_of(&world, "report").await.len()), (2, 1));
    let loads = runs_of(&world, "load").await;
    assert_eq!(loads[0].status, RunStatus::Pending, "it does not overlap with the one that ended");
}

pub async fn overlap_decides_about_the_next_run(fresh: Fresh) {
    let world = World::new(&fresh);
    let claims = extracting(&world).await;
    world.finish(&claims, &success(), at("01:05")).await;
    let first = runs_of(&world, "load").await[0].id;
    world.plan(at("02:00")).await;
    let claims = world.start(at("02:00")).await;
    let extract: Vec<Claim> = claims.into_iter().filter(|claim| claim.run.id != first).collect();
    world.finish(&extract, &success(), at("02:05")).await;
    let runs = runs_of(&world, "load").await;
    assert_eq!((runs.len(), runs[0].status), (2, RunStatus::Skipped));
    assert_eq!(runs[0].skip.as_ref().map(ToString::to_string), Some(format!("run {first} is still active")));
    assert_eq!(runs[0].trigger, Trigger::After(extract[0].run.id), "it says which run it was for");
}

pub async fn a_pause_leaves_a_gap_and_a_retired_job_nothing(fresh: Fresh) {
    let world = World::new(&fresh);
    let claims = extracting(&world).await;
    world.pause("load", at("01:01")).await;
    world.finish(&claims, &success(), at("01:05")).await;
    assert!(runs_of(&world, "load").await.is_empty());
    let gaps = world.gaps(&GapFilter { job_id: Some(job_id("load", 1)), ..GapFilter::default() }).await;
    assert_eq!(gaps.len(), 1);
    assert_eq!((gaps[0].reason, gaps[0].first_slot_at, gaps[0].slots), (GapReason::Paused, at("01:05"), 1));
    world.resume("load", everbell_core::plan::Missed::RunOnce, at("01:30")).await;
    assert!(runs_of(&world, "load").await.is_empty(), "what a pause held back is over");
    world.plan(at("02:00")).await;
    let claims = world.start(at("02:00")).await;
    world.retire("load", at("02:01")).await;
    world.finish(&claims, &success(), at("02:05")).await;
    assert!(runs_of(&world, "load").await.is_empty());
    assert_eq!(world.store.chain_links(10).await.unwrap(), []);
}

pub async fn versions_of_both_jobs_follow_the_keys(fresh: Fresh) {
    let world = World::new(&fresh);
    let claims = extracting(&world).await;
    let edit = |id, description: &'static str| {
        move |view: &change::JobView| {
            let edit = Edit { description: Some(description.to_owned()), ..Edit::default() };
            change::new_version(view, edit, id, true, "ana", at("01:01"))
        }
    };
    world.try_change("extract", at("01:01"), edit(job_id("extract", 2), "two")).await.unwrap();
    world.try_change("load", at("01:01"), edit(job_id("load", 2), "two")).await.unwrap();
    world.finish(&claims, &success(), at("01:05")).await;
    let runs = runs_of(&world, "load").await;
    assert_eq!(runs.iter().map(|run| run.job_version).collect::<Vec<_>>(), [Some(2)], "the current version, once");
    let link = ChainLink { job_key: JobKey::new("load").unwrap(), after: after("extract", ChainOn::Success) };
    assert_eq!(world.store.chain_links(10).await.unwrap(), [link]);
    let read = world.get("load").await.job.definition;
    assert_eq!(read.spec.as_ref().unwrap().after(), Some(&after("extract", ChainOn::Success)));
    assert_eq!(world.get("load").await.job.state.status, JobStatus::Active);
}

pub async fn chains_that_cannot_work_are_refused(fresh: Fresh) {
    let world = World::new(&fresh);
    let create = async |definition: Definition| {
        let entry = audit("job.create", &format!("job:{}", definition.key), at("00:00"));
        world.store.create_job(&change::create(definition), &entry).await.map(drop)
    };
    let refused = |done: Result<(), StoreError>| match done {
        Err(StoreError::Invalid(Invalid { field: "after.job", reason, .. })) => reason,
        other => panic!("{other:?}"),
    };
    let unknown = refused(create(after_success("b", "a")).await);
    assert!(unknown.contains("no current job `a`"), "{unknown}");
    create(job("a", "0 * * * *")).await.unwrap();
    create(after_success("b", "a")).await.unwrap();
    create(after_success("c", "b")).await.unwrap();
    let own = refused(create(after_success("d", "d")).await);
    assert!(own.contains("cannot start after itself"), "{own}");
    // An edit of another job closes the circle.
    let edit = |view: &change::JobView| {
        let spec = Spec::following(after("c", ChainOn::Any), Zone::utc());
        let edit = Edit { spec: Some(spec), ..Edit::default() };
        change::new_version(view, edit, job_id("a", 2), true, "ana", at("00:01"))
    };
    let circle = refused(world.try_change("a", at("00:01"), edit).await.map(drop));
    assert!(circle.contains("`a` starts after `c` starts after `b` starts after `a`"), "{circle}");
    assert_eq!(world.get("a").await.job.definition.version, 1, "nothing has changed");
    world.retire("a", at("00:02")).await;
    let retired = refused(create(after_success("e", "a")).await);
    assert!(retired.contains("no current job `a`"), "{retired}");
    assert!(world.store.get_job(&JobRef::Key(JobKey::new("e").unwrap())).await.is_err());
}
