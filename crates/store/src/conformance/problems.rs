//! Problems and the outbox: a decision is written once, and a message is taken by one instance at a time.

use everbell_core::alert::{
    AlertWrite, Change, Delivery, DeliveryEnd, DeliveryStatus, Kind, Mute, NewDelivery, Note, NotifiedRule, Problem,
    ProblemChange, Subject,
};
use everbell_core::store::{DeliveryFilter, PageRequest, ProblemFilter, PruneBefore, StoreError};
use everbell_core::{InstanceId, JobKey, OrgId, Run, RunId};
use uuid::Uuid;

use super::Fresh;
use super::given::{at, audit, job, json};
use super::world::{World, failure, success};

fn problem(number: u128, job: &str) -> Problem {
    Problem {
        id: Uuid::from_u128(number),
        kind: Kind::Failed,
        subject: Subject::Job(JobKey::new(job).unwrap()),
        opened_at: at("01:00"),
        closed_at: None,
        closed_because: None,
        since: at("00:59"),
        mark_at: at("00:59"),
        count: 2,
        reason: "exit code 1: 'quoted' \"twice\" é".to_owned(),
        run: Some(RunId::from_uuid(Uuid::from_u128(77))),
        told: vec![NotifiedRule { rule: "all".to_owned(), at: at("01:00") }],
        acknowledged: None,
        muted: None,
    }
}

fn closed(problem: &Problem, when: &str) -> Problem {
    Problem { closed_at: Some(at(when)), closed_because: Some("a run succeeded".to_owned()), ..problem.clone() }
}

fn delivery(number: u128, problem: Option<u128>, channel: &str) -> NewDelivery {
    NewDelivery {
        id: Uuid::from_u128(number),
        problem: problem.map(Uuid::from_u128),
        rule: problem.map(|_| "all".to_owned()),
        channel: channel.to_owned(),
        change: if problem.is_some() { Change::Opened } else { Change::Test },
        message: json(r#"{"text":"é"}"#),
        created_at: at("01:00"),
        available_at: at("01:00"),
    }
}

fn write(problems: Vec<Problem>, deliveries: Vec<NewDelivery>) -> AlertWrite {
    AlertWrite { looked_at: at("01:00"), problems, deliveries }
}

async fn written(world: &World, problems: Vec<Problem>, deliveries: Vec<NewDelivery>) {
    let generation = world.store.read_alerts(at("00:00")).await.unwrap().generation;
    assert!(world.store.write_alerts(generation, &write(problems, deliveries)).await.unwrap());
}

/// Takes messages for the channel `ops`.
async fn claimed(world: &World, now: &str, until: &str) -> Vec<(u128, u32)> {
    let channels = ["ops".to_owned()];
    let claimed = world.store.claim_deliveries(&channels, at(now), at(until), 10).await.unwrap();
    claimed.iter().map(|delivery| (delivery.new.id.as_u128(), delivery.attempt)).collect()
}

async fn listed(world: &World, filter: &DeliveryFilter) -> Vec<Delivery> {
    world.store.list_deliveries(filter, &PageRequest::default()).await.unwrap().items
}

pub async fn a_problem_reads_back_as_it_was_written(fresh: Fresh) {
    let world = World::new(&fresh);
    let empty = world.store.read_alerts(at("00:00")).await.unwrap();
    assert_eq!((empty.generation, empty.looked_at, empty.problems.len()), (0, None, 0));
    let note = Note { by: "token:ops".to_owned(), at: at("01:01"), reason: Some("known".to_owned()) };
    let full = Problem {
        acknowledged: Some(note.clone()),
        muted: Some(Mute { note, until: Some(at("02:00")) }),
        ..closed(&problem(1, "a"), "01:30")
    };
    written(&world, vec![full.clone(), problem(2, "b")], vec![]).await;
    let alerts = world.store.read_alerts(at("01:30")).await.unwrap();
    assert_eq!((alerts.generation, alerts.looked_at), (1, Some(at("01:00"))));
    assert_eq!(alerts.problems, [full.clone(), problem(2, "b")]);
    let later = world.store.read_alerts(at("01:31")).await.unwrap();
    assert_eq!(later.problems, [problem(2, "b")]);
}

pub async fn of_two_decisions_from_the_same_state_one_is_written(fresh: Fresh) {
    let world = World::new(&fresh);
    let first = write(vec![problem(1, "a")], vec![delivery(11, Some(1), "ops")]);
    let second = write(vec![problem(2, "b")], vec![delivery(12, Some(2), "ops")]);
    let (one, other) = tokio::join!(world.store.write_alerts(0, &first), world.store.write_alerts(0, &second));
    assert!(one.unwrap() ^ other.unwrap());
    assert_eq!(world.store.read_alerts(at("00:00")).await.unwrap().problems.len(), 1);
    assert_eq!(listed(&world, &DeliveryFilter::default()).await.len(), 1);
}

pub async fn a_problem_is_not_opened_twice(fresh: Fresh) {
    let world = World::new(&fresh);
    written(&world, vec![problem(1, "a")], vec![]).await;
    let twin = write(vec![problem(2, "a")], vec![delivery(12, Some(2), "ops")]);
    let refused = world.store.write_alerts(1, &twin).await;
    assert!(matches!(refused, Err(StoreError::Conflict { .. })), "{refused:?}");
    assert_eq!(listed(&world, &DeliveryFilter::default()).await, []);
    // Another kind is another problem, and so is the next one after the end of the first.
    let other = Problem { kind: Kind::JobError, ..problem(3, "a") };
    written(&world, vec![closed(&problem(1, "a"), "01:10"), problem(2, "a"), other], vec![]).await;
    assert_eq!(world.store.read_alerts(at("02:00")).await.unwrap().problems.len(), 2);
}

pub async fn each_org_of_a_job_has_problems_of_its_own(fresh: Fresh) {
    let world = World::new(&fresh);
    let of_org = |number, job: &str, org: &str| Problem {
        subject: Subject::JobOfOrg(JobKey::new(job).unwrap(), OrgId::new(org).unwrap()),
        ..problem(number, job)
    };
    let all = vec![problem(1, "a"), of_org(2, "a", "acme"), of_org(3, "a", "bolt"), of_org(4, "b", "acme")];
    written(&world, all.clone(), vec![]).await;
    assert_eq!(world.store.read_alerts(at("02:00")).await.unwrap().problems, all);
    let twin = write(vec![of_org(5, "a", "acme")], vec![]);
    let refused = world.store.write_alerts(1, &twin).await;
    assert!(matches!(refused, Err(StoreError::Conflict { .. })), "{refused:?}");
    let listed = async |job: Option<&str>, org: Option<&str>| {
        let (job, org) = (job.map(|job| JobKey::new(job).unwrap()), org.map(|org| OrgId::new(org).unwrap()));
        let filter = ProblemFilter { job, org, ..ProblemFilter::default() };
        let page = world.store.list_problems(&filter, &PageRequest::default()).await.unwrap();
        page.items.iter().map(|problem| problem.id.as_u128()).collect::<Vec<_>>()
    };
    assert_eq!(listed(Some("a"), None).await, [3, 2, 1]);
    assert_eq!(listed(None, Some("acme")).await, [4, 2]);
    assert_eq!(listed(Some("a"), Some("acme")).await, [2]);
    // The end of one leaves the others open.
    written(&world, vec![closed(&of_org(2, "a", "acme"), "01:10"), of_org(5, "a", "acme")], vec![]).await;
    assert_eq!(world.store.read_alerts(at("02:00")).await.unwrap().problems.len(), 4);
}

pub async fn an_operator_changes_a_problem_and_voids_decisions_that_did_not_see_it(fresh: Fresh) {
    let world = World::new(&fresh);
    written(&world, vec![problem(1, "a")], vec![]).await;
    let entry = audit("problem.mute", "problem:1", at("01:05"));
    let note = Note { by: "token:ops".to_owned(), at: at("01:05"), reason: None };
    let mute = ProblemChange::Mute(Mute { note: note.clone(), until: Some(at("02:00")) });
    let muted = world.store.change_problem(Uuid::from_u128(1), &mute, &entry).await.unwrap();
    assert!(muted.is_muted(at("01:59")) && !muted.is_muted(at("02:00")));
    assert!(!world.store.write_alerts(1, &write(vec![closed(&problem(1, "a"), "01:06")], vec![])).await.unwrap());
    assert_eq!(world.store.read_alerts(at("00:00")).await.unwrap().problems, [muted]);
    assert_eq!(world.actions(None).await, ["problem.mute"]);
    let missing = world.store.change_problem(Uuid::from_u128(9), &mute, &entry).await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })), "{missing:?}");
    written(&world, vec![closed(&problem(1, "a"), "01:06")], vec![]).await;
    let acknowledge = ProblemChange::Acknowledge(note);
    let late = audit("problem.acknowledge", "problem:1", at("01:07"));
    let refused = world.store.change_problem(Uuid::from_u128(1), &acknowledge, &late).await;
    assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
}

pub async fn problems_are_listed_newest_first(fresh: Fresh) {
    let world = World::new(&fresh);
    let many = vec![problem(1, "a"), closed(&problem(2, "b"), "01:30"), problem(3, "c")];
    written(&world, many, vec![]).await;
    let ids = async |filter: ProblemFilter, limit: u32| {
        let page = world.store.list_problems(&filter, &PageRequest { limit, after: None }).await.unwrap();
        let more = page.next.clone();
        (page.items.iter().map(|problem| problem.id.as_u128()).collect::<Vec<_>>(), more)
    };
    assert_eq!(ids(ProblemFilter::default(), 10).await.0, [3, 2, 1]);
    assert_eq!(ids(ProblemFilter { open: Some(true), ..ProblemFilter::default() }, 10).await.0, [3, 1]);
    assert_eq!(ids(ProblemFilter { open: Some(false), ..ProblemFilter::default() }, 10).await.0, [2]);
    let job = Some(JobKey::new("a").unwrap());
    assert_eq!(ids(ProblemFilter { job, ..ProblemFilter::default() }, 10).await.0, [1]);
    assert_eq!(ids(ProblemFilter { kind: Some(Kind::Missed), ..ProblemFilter::default() }, 10).await.0, [0; 0]);
    let (first, after) = ids(ProblemFilter::default(), 2).await;
    assert_eq!(first, [3, 2]);
    let rest = PageRequest { limit: 2, after };
    let rest = world.store.list_problems(&ProblemFilter::default(), &rest).await.unwrap();
    assert_eq!((rest.items.len(), rest.next), (1, None));
    assert!(
        world.store.list_problems(&ProblemFilter::default(), &PageRequest { limit: 0, after: None }).await.is_err()
    );
}

pub async fn a_message_is_taken_by_one_instance_at_a_time(fresh: Fresh) {
    let world = World::new(&fresh);
    let quiet = NewDelivery { available_at: at("07:00"), ..delivery(13, Some(3), "ops") };
    let deliveries = vec![delivery(11, Some(1), "ops"), delivery(12, Some(2), "mail"), quiet];
    written(&world, vec![problem(1, "a"), problem(2, "b"), problem(3, "c")], deliveries).await;
    assert_eq!(claimed(&world, "00:59", "02:00").await, []);
    let (one, other) = tokio::join!(claimed(&world, "01:00", "01:02"), claimed(&world, "01:00", "01:02"));
    assert_eq!([one, other].concat(), [(11, 1)]);
    // Until the lease is over.
    assert_eq!(claimed(&world, "01:01:59", "01:03").await, []);
    assert_eq!(claimed(&world, "01:02", "01:04").await, [(11, 2)]);
    // The end of an attempt that was given up changes nothing.
    let end = async |attempt, end: DeliveryEnd| {
        world.store.end_delivery(Uuid::from_u128(11), attempt, &end, at("01:03")).await.unwrap()
    };
    assert!(!end(1, DeliveryEnd::Dead("late".to_owned())).await);
    assert!(end(2, DeliveryEnd::Retry(at("01:05"), "status 500".to_owned())).await);
    assert_eq!(claimed(&world, "01:04:59", "02:00").await, []);
    assert_eq!(claimed(&world, "01:05", "02:00").await, [(11, 3)]);
    assert!(end(3, DeliveryEnd::Delivered).await);
    assert!(!end(3, DeliveryEnd::Delivered).await);
    assert_eq!(claimed(&world, "06:59", "08:00").await, []);
    assert_eq!(claimed(&world, "07:00", "08:00").await, [(13, 1)]);
}

pub async fn messages_about_a_problem_keep_their_order(fresh: Fresh) {
    let world = World::new(&fresh);
    let over = NewDelivery { change: Change::Recovered, ..delivery(12, Some(1), "ops") };
    let elsewhere = delivery(13, Some(1), "mail");
    written(&world, vec![problem(1, "a")], vec![delivery(11, Some(1), "ops"), over, elsewhere]).await;
    assert_eq!(claimed(&world, "01:00", "01:02").await, [(11, 1)]);
    assert_eq!(claimed(&world, "01:01", "01:03").await, []);
    let dead = DeliveryEnd::Dead("gone".to_owned());
    assert!(world.store.end_delivery(Uuid::from_u128(11), 1, &dead, at("01:01")).await.unwrap());
    assert_eq!(claimed(&world, "01:01", "01:03").await, [(12, 1)]);
}

pub async fn messages_are_listed_with_their_fate(fresh: Fresh) {
    let world = World::new(&fresh);
    written(&world, vec![problem(1, "a")], vec![delivery(11, Some(1), "ops")]).await;
    let test = delivery(12, None, "mail");
    let entry = audit("notify.test", "channel:mail", at("01:02"));
    world.store.insert_delivery(&test, &entry).await.unwrap();
    assert_eq!(world.actions(None).await, ["notify.test"]);
    assert_eq!(claimed(&world, "01:00", "01:02").await, [(11, 1)]);
    let dead = DeliveryEnd::Dead("status 404".to_owned());
    assert!(world.store.end_delivery(Uuid::from_u128(11), 1, &dead, at("01:01")).await.unwrap());
    let all = listed(&world, &DeliveryFilter::default()).await;
    let expected = Delivery {
        new: delivery(11, Some(1), "ops"),
        status: DeliveryStatus::Dead,
        attempt: 1,
        next_attempt_at: at("01:00"),
        error: Some("status 404".to_owned()),
        ended_at: Some(at("01:01")),
    };
    assert_eq!(all.iter().map(|delivery| delivery.new.id.as_u128()).collect::<Vec<_>>(), [12, 11]);
    assert_eq!((&all[1], &all[0].new), (&expected, &test));
    let count = async |filter: DeliveryFilter| listed(&world, &filter).await.len();
    let none = DeliveryFilter::default();
    assert_eq!(count(DeliveryFilter { status: Some(DeliveryStatus::Pending), ..none.clone() }).await, 1);
    assert_eq!(count(DeliveryFilter { channel: Some("ops".to_owned()), ..none.clone() }).await, 1);
    assert_eq!(count(DeliveryFilter { problem: Some(Uuid::from_u128(2)), ..none.clone() }).await, 0);
    assert_eq!(count(DeliveryFilter { id: Some(Uuid::from_u128(12)), ..none }).await, 1);
}

pub async fn a_problem_of_an_instance_is_not_one_of_a_job(fresh: Fresh) {
    let world = World::new(&fresh);
    let id = InstanceId::from_uuid(Uuid::from_u128(5));
    let lost = |number: u128| Problem {
        kind: Kind::InstanceLost,
        subject: Subject::Instance(id, "host-é".to_owned()),
        run: None,
        ..problem(number, "a")
    };
    // A job may be named like the instance.
    written(&world, vec![lost(1), problem(2, &id.to_string())], vec![]).await;
    let alerts = world.store.read_alerts(at("00:00")).await.unwrap();
    assert_eq!(alerts.problems, [lost(1), problem(2, &id.to_string())]);
    let of_job = ProblemFilter { job: JobKey::new(&id.to_string()).ok(), ..ProblemFilter::default() };
    let found = world.store.list_problems(&of_job, &PageRequest::default()).await.unwrap();
    assert_eq!(found.items, [problem(2, &id.to_string())]);
    let twin = world.store.write_alerts(1, &write(vec![lost(3)], vec![])).await;
    assert!(matches!(twin, Err(StoreError::Conflict { .. })), "{twin:?}");
}

pub async fn messages_for_a_removed_channel_are_given_up(fresh: Fresh) {
    let world = World::new(&fresh);
    let quiet = NewDelivery { available_at: at("07:00"), ..delivery(14, Some(1), "night") };
    let mine = vec![delivery(11, Some(1), "old"), delivery(12, Some(1), "ops"), delivery(13, Some(1), "other"), quiet];
    written(&world, vec![problem(1, "a")], mine).await;
    // Another instance has this channel, and tries.
    let other = ["other".to_owned()];
    let taken = world.store.claim_deliveries(&other, at("01:05"), at("01:30"), 10).await.unwrap();
    assert_eq!(taken.len(), 1);
    let known = ["ops".to_owned()];
    let abandon = async |stale: &str, now: &str| {
        world.store.abandon_deliveries(&known, at(stale), "its channel is gone", at(now)).await.unwrap()
    };
    assert_eq!(abandon("01:00", "01:10").await, 0, "it became due just then");
    assert_eq!(abandon("01:00:01", "01:10").await, 1);
    let given_up = DeliveryFilter { status: Some(DeliveryStatus::Dead), ..DeliveryFilter::default() };
    let given_up = listed(&world, &given_up).await;
    assert_eq!((given_up.len(), given_up[0].new.channel.as_str()), (1, "old"));
    assert_eq!((given_up[0].error.as_deref(), given_up[0].ended_at), (Some("its channel is gone"), Some(at("01:10"))));
    let retry = DeliveryEnd::Retry(at("01:20"), "refused".to_owned());
    assert!(world.store.end_delivery(Uuid::from_u128(13), 1, &retry, at("01:10")).await.unwrap());
    assert_eq!(abandon("01:20", "01:30").await, 0, "it is tried again");
    assert_eq!(abandon("01:20:01", "01:30").await, 1);
    assert_eq!(abandon("07:01", "07:11").await, 1, "after quiet hours");
}

pub async fn the_last_success_of_each_job_is_found(fresh: Fresh) {
    let world = World::new(&fresh);
    for key in ["a", "b", "c", "never"] {
        world.create(job(key, "0 * * * *")).await;
    }
    world.pause("never", at("00:30")).await;
    world.run_due(&success(), at("01:00")).await;
    world.pause("b", at("01:30")).await;
    world.run_due(&success(), at("02:00")).await;
    world.pause("c", at("02:30")).await;
    world.run_due(&failure(), at("03:00")).await;
    let runs = world.runs().await;
    let end = |key: &str, slot: &str| {
        let is_it =
            |run: &&Run| run.slot_at == Some(at(slot)) && run.job_key.as_ref().is_some_and(|own| own.as_str() == key);
        let run = runs.iter().find(is_it).unwrap();
        (JobKey::new(key).unwrap(), run.finished_at.unwrap())
    };
    let keys = ["unknown", "c", "never", "b", "a"].map(|key| JobKey::new(key).unwrap());
    let found = world.store.last_successes(&keys).await.unwrap();
    assert_eq!(found, [end("a", "02:00"), end("b", "01:00"), end("c", "02:00")]);
    assert_eq!(world.store.last_successes(&keys[1..2]).await.unwrap(), [end("c", "02:00")]);
    assert_eq!(world.store.last_successes(&[]).await.unwrap(), []);
}

pub async fn old_problems_and_messages_are_pruned(fresh: Fresh) {
    let world = World::new(&fresh);
    let many = vec![problem(1, "a"), closed(&problem(2, "b"), "01:30"), closed(&problem(3, "c"), "01:30")];
    written(&world, many, vec![delivery(11, Some(2), "ops"), delivery(12, Some(3), "ops")]).await;
    assert_eq!(claimed(&world, "01:00", "01:02").await, [(11, 1), (12, 1)]);
    let ended = world.store.end_delivery(Uuid::from_u128(11), 1, &DeliveryEnd::Delivered, at("01:31")).await;
    assert!(ended.unwrap());
    world.store.prune(PruneBefore::all(at("01:30")), 10).await.unwrap();
    assert_eq!(listed(&world, &DeliveryFilter::default()).await.len(), 2);
    world.store.prune(PruneBefore::all(at("01:32")), 10).await.unwrap();
    let left = world.store.read_alerts(at("00:00")).await.unwrap().problems;
    assert_eq!(left.iter().map(|problem| problem.id.as_u128()).collect::<Vec<_>>(), [1, 3]);
    let left = listed(&world, &DeliveryFilter::default()).await;
    assert_eq!(left.iter().map(|delivery| delivery.new.id.as_u128()).collect::<Vec<_>>(), [12]);
}
