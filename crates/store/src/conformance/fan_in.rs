//! Jobs that start after several others: groups of runs, in the transactions that end these runs.

use std::time::Duration;

use everbell_core::after::{After, ChainOn};
use everbell_core::chain::{ChainLink, RunGroup};
use everbell_core::change::{self, Edit};
use everbell_core::fan_in::{FanIn, GroupBy};
use everbell_core::plan::Missed;
use everbell_core::store::{Claim, GapFilter, PurgedJob, RunFilter, StoreError};
use everbell_core::{Definition, Gap, GapReason, Invalid, JobKey, Run, RunId, RunStatus, Spec, Trigger, Zone};

use super::Fresh;
use super::given::{at, audit, job, job_id, per_org};
use super::world::{World, failure, success};

fn key(text: &str) -> JobKey {
    JobKey::new(text).unwrap()
}

fn after(parent: &str) -> After {
    After { job_key: key(parent), on: ChainOn::Success, manual: false }
}

/// A job that starts when runs of the others of the same slot have succeeded, at most two hours apart.
fn after_all(name: &str, parents: &[&str]) -> Definition {
    let parents = parents.iter().map(|parent| after(parent)).collect();
    let fan_in = FanIn { parents, group: GroupBy::Slot, within: Duration::from_hours(2) };
    everbell_core::with!(Definition { spec: Ok(Spec::following_all(fan_in, Zone::utc())), ..job(name, "0 * * * *") })
}

fn claim_of<'a>(claims: &'a [Claim], name: &str) -> &'a [Claim] {
    let place = claims.iter().position(|claim| claim.run.job_key == Some(key(name)));
    let place = place.unwrap_or_else(|| panic!("no run of {name}: {claims:?}"));
    &claims[place..=place]
}

async fn runs_of(world: &World, name: &str) -> Vec<Run> {
    world.runs_like(&RunFilter { job_key: Some(key(name)), ..RunFilter::default() }).await
}

async fn groups(world: &World, name: &str) -> Vec<RunGroup> {
    world.store.run_groups(&key(name), None, 100).await.unwrap()
}

async fn gaps(world: &World) -> Vec<Gap> {
    world.gaps(&GapFilter::default()).await
}

/// `a` and `b` every hour, and `c` after both; the first runs of `a` and `b` are at work.
async fn both_at_work(world: &World) -> Vec<Claim> {
    world.create(job("a", "0 * * * *")).await;
    world.create(job("b", "0 * * * *")).await;
    world.create(after_all("c", &["a", "b"])).await;
    world.plan(at("01:00")).await;
    world.start(at("01:00")).await
}

pub async fn the_job_starts_once_when_all_have_ended(fresh: Fresh) {
    let world = World::new(&fresh);
    let claims = both_at_work(&world).await;
    assert_eq!(world.get("c").await.next_run_at(), None, "it has no clock");
    world.finish(claim_of(&claims, "a"), &success(), at("01:05")).await;
    assert!(runs_of(&world, "c").await.is_empty(), "b is still at work");
    let open = groups(&world, "c").await;
    assert_eq!((open.len(), open[0].name.as_str()), (1, "2026-11-15T01:00:00Z"));
    assert_eq!((open[0].opened_at, open[0].deadline, open[0].closed_at), (at("01:05"), at("03:05"), None));
    world.finish(claim_of(&claims, "b"), &success(), at("01:30")).await;
    world.finish(claim_of(&claims, "b"), &success(), at("01:31")).await;
    let (a, b) = (claim_of(&claims, "a")[0].run.id, claim_of(&claims, "b")[0].run.id);
    let runs = runs_of(&world, "c").await;
    assert_eq!(runs.len(), 1, "also if an outcome is sent twice");
    assert_eq!(runs[0].id, RunId::after(&key("c"), None, b, at("01:30")));
    assert_eq!((&runs[0].trigger, runs[0].status), (&Trigger::AfterAll(vec![b, a]), RunStatus::Pending));
    let closed = &groups(&world, "c").await[0];
    assert_eq!((closed.closed_at, closed.started), (Some(at("01:30")), Some(runs[0].id)));
    let started = world.store.runs_after(b, at("01:30"), 10).await.unwrap();
    assert_eq!(started.iter().map(|run| run.id).collect::<Vec<_>>(), [runs[0].id], "by the run that ended last");
    let claimed = world.start(at("01:30")).await;
    assert_eq!(claimed.iter().map(|claim| claim.run.id).collect::<Vec<_>>(), [runs[0].id]);
    assert_eq!(world.store.expire_run_groups(10, at("09:00")).await.unwrap(), None);
    assert_eq!(gaps(&world).await, [], "nothing is missing");
}

pub async fn ends_of_one_transaction_start_the_job_once(fresh: Fresh) {
    let world = World::new(&fresh);
    let claims = both_at_work(&world).await;
    world.finish(&claims, &success(), at("01:05")).await;
    assert_eq!(runs_of(&world, "c").await.len(), 1);
    world.plan(at("02:00")).await;
    let all = world.start(at("02:00")).await;
    world.finish(&all, &success(), at("02:05")).await;
    assert_eq!(runs_of(&world, "c").await.len(), 2, "each slot has a group of its own");
}

pub async fn arms_of_a_chain_meet_for_the_slot_at_its_beginning(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("extract", "0 * * * *")).await;
    for arm in ["left", "right"] {
        let spec = Spec::following(after("extract"), Zone::utc());
        world.create(everbell_core::with!(Definition { spec: Ok(spec), ..job(arm, "0 * * * *") })).await;
    }
    world.create(after_all("report", &["left", "right"])).await;
    world.plan(at("01:00")).await;
    let extract = world.start(at("01:00")).await;
    world.finish(&extract, &success(), at("01:01")).await;
    let arms = world.start(at("01:01")).await;
    world.finish(claim_of(&arms, "left"), &success(), at("01:02")).await;
    world.plan(at("02:00")).await;
    let next = world.start(at("02:00")).await;
    world.finish(claim_of(&next, "extract"), &success(), at("02:01")).await;
    assert!(runs_of(&world, "report").await.is_empty());
    world.finish(claim_of(&arms, "right"), &success(), at("02:02")).await;
    assert_eq!(runs_of(&world, "report").await.len(), 1);
    let names: Vec<String> = groups(&world, "report").await.into_iter().map(|group| group.name).collect();
    assert_eq!(names, ["2026-11-15T01:00:00Z"], "of the slot of extract");
}

pub async fn a_wait_that_is_over_becomes_a_gap(fresh: Fresh) {
    let world = World::new(&fresh);
    let claims = both_at_work(&world).await;
    world.finish(claim_of(&claims, "a"), &success(), at("01:05")).await;
    world.finish(claim_of(&claims, "b"), &failure(), at("01:06")).await;
    assert_eq!(world.store.expire_run_groups(10, at("03:04")).await.unwrap(), Some(at("03:05")), "the next deadline");
    assert_eq!(gaps(&world).await, []);
    assert_eq!(world.store.expire_run_groups(10, at("03:20")).await.unwrap(), None);
    let found: Vec<_> = gaps(&world).await.iter().map(|gap| (gap.reason, gap.first_slot_at, gap.slots)).collect();
    assert_eq!(found, [(GapReason::Incomplete, at("03:05"), 1)]);
    world.store.expire_run_groups(10, at("03:21")).await.unwrap();
    assert_eq!(gaps(&world).await.len(), 1, "once");
    let group = &groups(&world, "c").await[0];
    assert_eq!((group.closed_at, group.started), (Some(at("03:05")), None));
    let runs: Vec<(RunStatus, bool)> = group.runs.iter().map(|run| (run.status, run.counts)).collect();
    assert_eq!(runs, [(RunStatus::Succeeded, true), (RunStatus::Failed, false)]);
    let until = world.store.run_groups(&key("c"), Some(at("01:04")), 10).await.unwrap();
    assert_eq!(until, [], "it opened later");
}

pub async fn a_paused_job_gets_a_gap_instead_of_a_run(fresh: Fresh) {
    let world = World::new(&fresh);
    let claims = both_at_work(&world).await;
    world.finish(claim_of(&claims, "a"), &success(), at("01:05")).await;
    world.pause("c", at("01:10")).await;
    world.finish(claim_of(&claims, "b"), &success(), at("01:20")).await;
    let reasons: Vec<GapReason> = gaps(&world).await.iter().map(|gap| gap.reason).collect();
    assert_eq!((runs_of(&world, "c").await.len(), reasons), (0, vec![GapReason::Paused]));
    world.resume("c", Missed::Skip, at("01:30")).await;
    world.plan(at("02:00")).await;
    let claims = world.start(at("02:00")).await;
    world.finish(claim_of(&claims, "a"), &success(), at("02:05")).await;
    world.retire("c", at("02:10")).await;
    world.finish(claim_of(&claims, "b"), &success(), at("02:20")).await;
    assert!(runs_of(&world, "c").await.is_empty(), "it is retired");
    assert_eq!(world.store.expire_run_groups(10, at("09:00")).await.unwrap(), None, "its group is closed");
    assert_eq!(gaps(&world).await.len(), 1, "without a gap");
}

pub async fn versions_follow_the_keys_and_links_name_each_parent(fresh: Fresh) {
    let world = World::new(&fresh);
    let claims = both_at_work(&world).await;
    world.finish(claim_of(&claims, "a"), &success(), at("01:05")).await;
    let edit = |id, at| {
        move |view: &change::JobView| {
            let edit = Edit { description: Some("two".to_owned()), ..Edit::default() };
            change::new_version(view, edit, id, true, "ana", at)
        }
    };
    world.try_change("b", at("01:10"), edit(job_id("b", 2), at("01:10"))).await.unwrap();
    world.try_change("c", at("01:11"), edit(job_id("c", 2), at("01:11"))).await.unwrap();
    world.finish(claim_of(&claims, "b"), &success(), at("01:20")).await;
    let versions: Vec<_> = runs_of(&world, "c").await.iter().map(|run| run.job_version).collect();
    assert_eq!(versions, [Some(2)]);
    let link = |parent| ChainLink { job_key: key("c"), after: after(parent) };
    assert_eq!(world.store.chain_links(10).await.unwrap(), [link("a"), link("b")]);
    let read = world.get("c").await.job.definition;
    assert_eq!(read.spec, after_all("c", &["a", "b"]).spec);
}

pub async fn closed_groups_are_forgotten_and_purged(fresh: Fresh) {
    let world = World::new(&fresh);
    let claims = both_at_work(&world).await;
    world.finish(&claims, &success(), at("01:05")).await;
    world.store.expire_run_groups(10, at("2026-12-16T00:00:00Z")).await.unwrap();
    assert_eq!(groups(&world, "c").await.len(), 1);
    world.store.expire_run_groups(10, at("2026-12-18T00:00:00Z")).await.unwrap();
    assert_eq!(groups(&world, "c").await, []);
    let c = world.start(at("01:06")).await;
    world.finish(&c, &success(), at("01:07")).await;
    world.plan(at("02:00")).await;
    let claims = world.start(at("02:00")).await;
    world.finish(claim_of(&claims, "a"), &success(), at("02:05")).await;
    assert_eq!(groups(&world, "c").await.len(), 1);
    let entry = audit("job.purge", "job:c", at("02:10"));
    world.store.purge_job(&key("c"), 100, PurgedJob::default(), &entry).await.unwrap();
    assert_eq!(groups(&world, "c").await, []);
}

pub async fn jobs_that_cannot_be_waited_for_are_refused(fresh: Fresh) {
    let world = World::new(&fresh);
    let create = async |definition: Definition| {
        let entry = audit("job.create", &format!("job:{}", definition.key), at("00:00"));
        world.store.create_job(&change::create(definition), &entry).await.map(drop)
    };
    let refused = |done: Result<(), StoreError>| match done {
        Err(StoreError::Invalid(Invalid { field: "after", reason, .. })) => reason,
        other => panic!("{other:?}"),
    };
    create(job("a", "0 * * * *")).await.unwrap();
    let unknown = refused(create(after_all("c", &["a", "b"])).await);
    assert!(unknown.contains("no current job `b`"), "{unknown}");
    create(job("b", "0 * * * *")).await.unwrap();
    create(per_org(job("o", "0 * * * *"))).await.unwrap();
    let orgs = refused(create(after_all("c", &["a", "o"])).await);
    assert!(orgs.contains("`o` fires for each org"), "{orgs}");
    create(after_all("c", &["a", "b"])).await.unwrap();
    create(after_all("d", &["b", "c"])).await.unwrap();
    let edit = |view: &change::JobView| {
        let spec = after_all("b", &["a", "d"]).spec.unwrap();
        change::new_version(
            view,
            Edit { spec: Some(spec), ..Edit::default() },
            job_id("b", 2),
            true,
            "ana",
            at("00:01"),
        )
    };
    let circle = refused(world.try_change("b", at("00:01"), edit).await.map(drop));
    assert!(circle.contains("`b` starts after `d` starts after"), "{circle}");
}
