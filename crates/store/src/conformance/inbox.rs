//! The inbox: requests that others write with plain SQL are answered once.

use everbell_core::enqueue;
use everbell_core::purge::REMOVED_REASON;
use everbell_core::store::{
    AuditEntry, InboxAnswer, InboxRequest, JobFilter, JobRow, PurgedJob, RefusedRequest, Replacement, StoreResult,
};
use everbell_core::{Definition, JobKey, JobStatus, RunStatus, with};

use super::Fresh;
use super::given::{assert_refused, at, audit, job_at, job_id, page};
use super::prune::prune;
use super::world::{World, success};

fn request(target: &str) -> InboxRequest {
    InboxRequest {
        target: target.to_owned(),
        payload: Some(r#"{"user":7}"#.to_owned()),
        key: Some("reminder".to_owned()),
        run_at: Some("2026-11-15T05:00:00Z".to_owned()),
        role: Some("shop".to_owned()),
        traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned()),
        priority: Some(10),
        if_unfinished: Some("replace".to_owned()),
        ..InboxRequest::default()
    }
}

fn create(key: &str) -> InboxAnswer {
    InboxAnswer::Create(Box::new(enqueue::create(job_at(key, "once 02:00", at("01:00")))))
}

async fn answer(world: &World, id: i64, answer: &InboxAnswer, now: &str) -> StoreResult<bool> {
    world.store.answer_inbox(id, answer, &audit("inbox", &format!("inbox:{id}"), at(now))).await
}

pub async fn requests_are_read_back_oldest_first(fresh: Fresh) {
    let world = World::new(&fresh);
    let cron = InboxRequest {
        cron: Some("0 8 * * *".to_owned()),
        timezone: Some("Europe/Paris".to_owned()),
        run_at: None,
        payload: None,
        priority: None,
        if_unfinished: None,
        ..request("brief")
    };
    let first = world.store.write_inbox(&request("remind")).await.unwrap();
    let second = world.store.write_inbox(&cron).await.unwrap();
    assert!(second > first);
    let open = world.store.open_inbox(10, &[]).await.unwrap();
    assert_eq!(open, [InboxRequest { id: first, ..request("remind") }, InboxRequest { id: second, ..cron }]);
    assert_eq!(world.store.open_inbox(1, &[]).await.unwrap().len(), 1);
    let without = world.store.open_inbox(1, &[first, second + 1]).await.unwrap();
    assert_eq!(without.iter().map(|request| request.id).collect::<Vec<_>>(), [second], "the limit counts the others");
    assert_eq!(world.store.open_inbox(10, &[first, second]).await.unwrap(), []);
}

pub async fn a_request_is_answered_once_together_with_its_job(fresh: Fresh) {
    let world = World::new(&fresh);
    let id = world.store.write_inbox(&request("log")).await.unwrap();
    assert!(answer(&world, id, &create("one"), "01:00").await.unwrap());
    assert!(!answer(&world, id, &create("two"), "01:00").await.unwrap(), "another one was faster");
    assert!(!answer(&world, id + 1_000, &create("two"), "01:00").await.unwrap(), "there is none");
    assert_eq!(world.store.open_inbox(10, &[]).await.unwrap(), []);
    assert_eq!(world.keys(&JobFilter::default()).await, ["one"]);
    assert_eq!(world.actions(None).await, ["inbox"]);
    assert_eq!(world.run_due(&success(), at("02:00")).await.len(), 1, "it fires");
    assert_eq!(world.store.refused_inbox(10).await.unwrap(), []);
}

pub async fn a_request_whose_key_is_taken_stays_open(fresh: Fresh) {
    let world = World::new(&fresh);
    world.insert(&enqueue::create(job_at("taken", "once 02:00", at("01:00")))).await;
    let id = world.store.write_inbox(&request("log")).await.unwrap();
    let InboxAnswer::Create(mut job) = create("taken") else { unreachable!("made above") };
    std::sync::Arc::make_mut(&mut job.definition).id = job_id("taken", 5);
    assert_refused(answer(&world, id, &InboxAnswer::Create(job), "01:00").await, "conflict");
    assert_eq!(world.store.open_inbox(10, &[]).await.unwrap().len(), 1);
    assert_eq!(world.actions(None).await, ["job.create"]);
}

/// The answer that replaces this job by one at 03:00.
fn replace(row: &JobRow) -> InboxAnswer {
    let key = row.key().as_str();
    let definition = with!(Definition { id: job_id(key, 2), ..job_at(key, "once 03:00", at("01:10")) });
    let (job, revision) = (row.job.definition.id, row.job.state.revision);
    InboxAnswer::Replace(Box::new(Replacement { job, revision, definition }))
}

pub async fn a_request_replaces_an_unfinished_job_once(fresh: Fresh) {
    let world = World::new(&fresh);
    let old = world.insert(&enqueue::create(job_at("due", "once 01:05", at("01:00")))).await;
    world.plan(at("01:05")).await;
    let id = world.store.write_inbox(&request("log")).await.unwrap();
    assert!(answer(&world, id, &replace(&world.get("due").await), "01:10").await.unwrap());
    let new = world.get("due").await;
    assert_eq!((new.version(), new.status(), new.next_run_at()), (2, JobStatus::Active, Some(at("03:00"))));
    assert_eq!(new.job.definition.supersedes, Some(old.job.definition.id));
    let statuses: Vec<RunStatus> = world.runs().await.iter().map(|run| run.status).collect();
    assert_eq!(statuses, [RunStatus::Canceled], "the run that waited");
    assert_eq!(world.actions(None).await, ["inbox", "job.create"], "one entry about the request");
    assert!(!answer(&world, id, &replace(&new), "01:20").await.unwrap(), "it was answered");
    assert_eq!(world.get("due").await.version(), 2);
    assert_eq!(world.store.open_inbox(10, &[]).await.unwrap(), []);
    assert_eq!(world.run_due(&success(), at("03:00")).await.len(), 1);
}

pub async fn a_replacement_of_a_job_that_changed_meanwhile_stays_open(fresh: Fresh) {
    let world = World::new(&fresh);
    let read = world.insert(&enqueue::create(job_at("due", "once 02:00", at("01:00")))).await;
    world.pause("due", at("01:01")).await;
    let id = world.store.write_inbox(&request("log")).await.unwrap();
    assert_refused(answer(&world, id, &replace(&read), "01:10").await, "stale");
    assert_eq!(world.get("due").await.version(), 1);
    assert_eq!(world.store.open_inbox(10, &[]).await.unwrap().len(), 1);
    assert!(answer(&world, id, &replace(&world.get("due").await), "01:11").await.unwrap());
    assert_eq!((world.get("due").await.version(), world.get("due").await.status()), (2, JobStatus::Paused));
}

pub async fn a_request_that_keeps_a_job_is_answered_with_its_key(fresh: Fresh) {
    let world = World::new(&fresh);
    let before = world.insert(&enqueue::create(job_at("kept", "once 02:00", at("01:00")))).await;
    let id = world.store.write_inbox(&request("log")).await.unwrap();
    let keep = InboxAnswer::Keep(JobKey::new("kept").unwrap());
    assert!(answer(&world, id, &keep, "01:10").await.unwrap());
    assert!(!answer(&world, id, &keep, "01:20").await.unwrap());
    assert_eq!(world.get("kept").await, before);
    assert_eq!(world.store.open_inbox(10, &[]).await.unwrap(), []);
    assert_eq!(world.store.refused_inbox(10).await.unwrap(), []);
    assert_eq!(world.actions(None).await, ["inbox", "job.create"]);
}

/// Plain SQL may write anything, and a row that cannot be answered would be read again for ever.
pub async fn a_request_with_a_key_of_any_length_is_answered(fresh: Fresh) {
    let world = World::new(&fresh);
    // Not alike, so that no database stores them in less.
    let key: String = (0_u64..3_000).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string()).collect();
    let id = world.store.write_inbox(&InboxRequest { key: Some(key.clone()), ..request("remind") }).await.unwrap();
    assert!(answer(&world, id, &InboxAnswer::Refuse("too long".to_owned()), "01:00").await.unwrap());
    assert_eq!(world.store.open_inbox(10, &[]).await.unwrap(), []);
    let refused = world.store.refused_inbox(10).await.unwrap();
    assert_eq!(refused.iter().map(|refused| refused.request.key.clone()).collect::<Vec<_>>(), [Some(key)]);
}

pub async fn refused_requests_are_listed_latest_first(fresh: Fresh) {
    let world = World::new(&fresh);
    for (now, reason) in [("01:00", "no such target"), ("01:30", "no such zone")] {
        let id = world.store.write_inbox(&request("remind")).await.unwrap();
        assert!(answer(&world, id, &InboxAnswer::Refuse(reason.to_owned()), now).await.unwrap());
    }
    assert_eq!(world.store.open_inbox(10, &[]).await.unwrap(), []);
    let refused = world.store.refused_inbox(10).await.unwrap();
    let told: Vec<_> = refused.iter().map(|RefusedRequest { reason, at, .. }| (reason.as_str(), *at)).collect();
    assert_eq!(told, [("no such zone", at("01:30")), ("no such target", at("01:00"))]);
    assert_eq!(refused[1].request, InboxRequest { id: refused[1].request.id, ..request("remind") });
    assert_eq!(world.store.refused_inbox(1).await.unwrap().len(), 1);
    assert_eq!(world.actions(None).await.len(), 2);
}

pub async fn answered_requests_are_pruned_with_the_history(fresh: Fresh) {
    let world = World::new(&fresh);
    for now in ["01:00", "03:00"] {
        let id = world.store.write_inbox(&request("remind")).await.unwrap();
        answer(&world, id, &InboxAnswer::Refuse("no".to_owned()), now).await.unwrap();
    }
    world.store.write_inbox(&request("open")).await.unwrap();
    assert_eq!(prune(&world, at("02:00"), 100).await.unwrap().inbox, 1);
    assert_eq!(world.store.refused_inbox(10).await.unwrap().len(), 1);
    assert_eq!(prune(&world, at("2026-11-17T00:00:00Z"), 100).await.unwrap().inbox, 1);
    assert_eq!(world.store.refused_inbox(10).await.unwrap().len(), 0);
    assert_eq!(world.store.open_inbox(10, &[]).await.unwrap().len(), 1, "one without an answer stays");
}

pub async fn no_more_answered_requests_are_pruned_than_the_limit_and_they_are_counted(fresh: Fresh) {
    let world = World::new(&fresh);
    for _ in 0..5 {
        let id = world.store.write_inbox(&request("remind")).await.unwrap();
        answer(&world, id, &InboxAnswer::Refuse("no".to_owned()), "01:00").await.unwrap();
    }
    let mut rounds = Vec::new();
    for _ in 0..4 {
        rounds.push(prune(&world, at("02:00"), 2).await.unwrap().inbox);
    }
    assert_eq!(rounds, [2, 2, 1, 0]);
}

pub async fn a_purge_removes_payloads_and_reasons_of_the_requests_for_its_job(fresh: Fresh) {
    let world = World::new(&fresh);
    let write = async |key: &str| {
        let request = InboxRequest { key: Some(key.to_owned()), ..request("remind") };
        world.store.write_inbox(&request).await.unwrap()
    };
    let refuse = async |id: i64, reason: &str, now: &str| {
        let entry = audit("inbox.refuse", &format!("inbox:{id}"), at(now));
        let entry = AuditEntry { reason: Some(reason.to_owned()), ..entry };
        world.store.answer_inbox(id, &InboxAnswer::Refuse(reason.to_owned()), &entry).await.unwrap()
    };
    let early = write("private").await;
    assert!(refuse(early, r#"invalid type: string "Ana""#, "00:50").await);
    let (private, other, open) = (write("private").await, write("other").await, write("private").await);
    answer(&world, private, &create("private"), "01:00").await.unwrap();
    assert!(refuse(other, "no", "01:00").await);
    let again = write("private").await;
    assert!(refuse(again, "its key is taken", "01:10").await);
    let entry = audit("job.purge", "job:private", at("01:20"));
    let key = everbell_core::JobKey::new("private").unwrap();
    assert!(world.store.purge_job(&key, 100, PurgedJob::default(), &entry).await.unwrap().finished);
    let refused = world.store.refused_inbox(10).await.unwrap();
    let left: Vec<_> = refused
        .iter()
        .map(|refused| (refused.request.id, refused.request.payload.is_some(), refused.reason.as_str()))
        .collect();
    assert_eq!(left, [(again, false, REMOVED_REASON), (other, true, "no"), (early, false, REMOVED_REASON)]);
    let mut reasons = Vec::new();
    for id in [early, other, again] {
        let trail = world.store.list_audit(Some(&format!("inbox:{id}")), &page(10)).await.unwrap().items;
        reasons.extend(trail.into_iter().map(|entry| entry.reason.unwrap_or_default()));
    }
    assert_eq!(reasons, [REMOVED_REASON, "no", REMOVED_REASON]);
    let waiting = world.store.open_inbox(10, &[]).await.unwrap();
    assert_eq!((waiting[0].id, waiting[0].payload.is_some()), (open, true), "it is about the next job of this key");
}

pub async fn one_of_many_answers_a_request(fresh: Fresh) {
    let world = World::new(&fresh);
    let id = world.store.write_inbox(&request("log")).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..8 {
        let world = world.clone();
        tasks.spawn(async move { answer(&world, id, &create(&format!("job-{n}")), "01:00").await.unwrap() });
    }
    let answered = tasks.join_all().await.into_iter().filter(|answered| *answered).count();
    assert_eq!(answered, 1);
    assert_eq!(world.keys(&JobFilter::default()).await.len(), 1);
}
