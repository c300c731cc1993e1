//! Requests that may be sent again: deed and memory are one, and answers are kept.

use std::time::Duration;

use everbell_core::change::{self, JobView};
use everbell_core::plan::{Missed, RunNow};
use everbell_core::store::{AuditEntry, Deed, LastAdmin, REQUEST_RETENTION, Remembered, RequestKey, StoreResult};
use jiff::Timestamp;

use super::Fresh;
use super::given::{LOG, assert_refused, at, audit, by_hand, job, trial};
use super::world::{World, by_key, pause_of};

/// The shortest time that every store can represent.
const MOMENT: Duration = Duration::from_micros(1);

fn request(key: &str, byte: u8) -> RequestKey {
    RequestKey { key: key.to_owned(), fingerprint: [byte; 32] }
}

fn entry(key: &str, byte: u8, now: Timestamp) -> AuditEntry {
    AuditEntry { request: Some(request(key, byte)), ..audit("request.done", "thing", now) }
}

async fn find(world: &World, key: &str, byte: u8) -> Remembered {
    find_at(world, key, byte, at("01:00")).await
}

async fn find_at(world: &World, key: &str, byte: u8, now: Timestamp) -> Remembered {
    world.store.find_request(&request(key, byte), now).await.unwrap()
}

async fn answer(world: &World, key: &str, body: &str, now: Timestamp) {
    world.store.remember_answer(&request(key, 1), (200, body), now).await.unwrap();
}

fn answered(body: &str) -> Remembered {
    Remembered::Answered(200, body.to_owned())
}

/// A run by hand that carries out a request.
async fn run_now(world: &World, key: &str, name: &str, now: Timestamp) -> StoreResult<usize> {
    let wanted = RunNow { id: by_hand(now, name), actor: "ana", payload: None, overlap: None, trace_context: None };
    let decide = |view: &JobView| change::run_now(view, &wanted, now);
    let done = world.store.change_job(&by_key("daily"), None, &decide, &entry(key, 1, now)).await;
    done.map(|changed| changed.runs.len())
}

pub async fn an_answer_is_remembered(fresh: Fresh) {
    let world = World::new(&fresh);
    assert_eq!(find(&world, "key-1", 1).await, Remembered::New);
    let body = r#"{"jobKey":"größe ⏰"}"#;
    world.store.remember_answer(&request("key-1", 1), (201, body), at("01:00")).await.unwrap();
    for _ in 0..2 {
        assert_eq!(find(&world, "key-1", 1).await, Remembered::Answered(201, body.to_owned()));
    }
}

pub async fn another_request_under_the_same_key_is_told(fresh: Fresh) {
    let world = World::new(&fresh);
    world.store.append_audit(&entry("key-1", 1, at("01:00"))).await.unwrap();
    assert_eq!(find(&world, "key-1", 2).await, Remembered::Different);
    answer(&world, "key-1", "", at("01:00")).await;
    assert_eq!(find(&world, "key-1", 2).await, Remembered::Different, "also when the first was answered");
    assert_eq!(find(&world, "key-1", 1).await, answered(""));
    let other = request("key-1", 2);
    world.store.remember_answer(&other, (200, "other"), at("01:00")).await.unwrap();
    assert_eq!(find(&world, "key-1", 1).await, answered(""), "the other one has no answer here");
}

pub async fn keys_are_apart(fresh: Fresh) {
    let world = World::new(&fresh);
    for key in ["a", "A", "a ", "", "a%", "ключ"] {
        assert_eq!(find(&world, key, 1).await, Remembered::New, "{key:?}");
        world.store.append_audit(&entry(key, 1, at("01:00"))).await.unwrap();
    }
    answer(&world, "a", "", at("01:00")).await;
    assert!(matches!(find(&world, "A", 1).await, Remembered::Done(_)));
}

pub async fn a_deed_is_remembered_with_what_it_made(fresh: Fresh) {
    let world = World::new(&fresh);
    let created = entry("create", 1, at("00:00"));
    let new = change::create(job("daily", "0 9 * * *"));
    world.store.create_job(&new, &created).await.unwrap();
    let (id, run) = (new.definition.id, by_hand(at("01:00"), "one"));
    let deed = Deed { entry: created.id, job: Some(id), ..Deed::default() };
    assert_eq!(find(&world, "create", 1).await, Remembered::Done(deed));

    run_now(&world, "run", "one", at("01:00")).await.unwrap();
    let Remembered::Done(deed) = find(&world, "run", 1).await else { panic!("it is not remembered") };
    assert_eq!((deed.job, deed.successor, deed.runs), (Some(id), None, vec![run]));

    let pause = |view: &JobView| change::pause(view, pause_of(at("01:30")));
    let paused = entry("pause", 1, at("01:30"));
    world.store.change_job(&by_key("daily"), None, &pause, &paused).await.unwrap();
    let Remembered::Done(deed) = find(&world, "pause", 1).await else { panic!("it is not remembered") };
    assert_eq!((deed.entry, deed.pending), (paused.id, 1), "one run had not begun");

    let resume = |view: &JobView| change::resume(view, Missed::Skip, "ana", at("10:30"));
    let resumed = entry("resume", 1, at("10:30"));
    let changed = world.store.change_job(&by_key("daily"), None, &resume, &resumed).await.unwrap();
    let Remembered::Done(deed) = find_at(&world, "resume", 1, at("10:30")).await else { panic!("not remembered") };
    assert_eq!((changed.gaps.len(), deed.gaps), (1, changed.gaps));

    let (cancel, trial) = (entry("cancel", 1, at("10:40")), trial("try", LOG, at("10:40")));
    world.store.cancel_run(run, "ana", at("10:40"), &cancel).await.unwrap();
    world.store.insert_run(&trial, &entry("try", 1, at("10:40"))).await.unwrap();
    for (key, run) in [("cancel", run), ("try", trial.id)] {
        let Remembered::Done(deed) = find_at(&world, key, 1, at("10:40")).await else { panic!("not remembered") };
        assert_eq!(deed.runs, [run], "{key}");
    }
    let page = world.store.list_audit(None, &super::given::page(100)).await.unwrap();
    assert!(page.items.iter().all(|entry| entry.request.is_none()), "the trail does not tell keys");
}

pub async fn a_deed_is_done_once(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("daily", "0 9 * * *")).await;
    assert_eq!(run_now(&world, "key-1", "one", at("01:00")).await.unwrap(), 1);
    let before = (world.get("daily").await, world.actions(None).await);
    assert_refused(run_now(&world, "key-1", "two", at("02:00")).await, "conflict");
    assert_eq!(world.runs().await.len(), 1, "nothing has changed");
    assert_eq!((world.get("daily").await, world.actions(None).await), before);
    answer(&world, "key-1", "first", at("02:00")).await;
    assert_refused(run_now(&world, "key-1", "two", at("02:00")).await, "conflict");
    assert_eq!(find_at(&world, "key-1", 1, at("02:00")).await, answered("first"));
    let key = |text| entry(text, 1, at("02:00"));
    assert_refused(world.store.insert_run(&trial("try", LOG, at("02:00")), &key("key-1")).await, "conflict");
    let revoked = world.store.revoke_token("nobody", at("02:00"), LastAdmin::Revoke, &key("key-2")).await;
    assert_refused(revoked, "not found");
    assert_eq!(find(&world, "key-2", 1).await, Remembered::New, "what was refused was not done");
}

pub async fn an_answer_is_kept_for_a_day(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("daily", "0 9 * * *")).await;
    answer(&world, "key-1", "first", at("01:00")).await;
    run_now(&world, "key-2", "one", at("01:00")).await.unwrap();
    let last = at("01:00") + REQUEST_RETENTION;
    assert_eq!(find_at(&world, "key-1", 1, last).await, answered("first"));
    assert_eq!(find_at(&world, "key-1", 2, last).await, Remembered::Different);
    assert_refused(run_now(&world, "key-2", "two", last).await, "conflict");
    let after = last + MOMENT;
    for key in ["key-1", "key-2"] {
        assert_eq!(find_at(&world, key, 2, after).await, Remembered::New, "also a different one");
        run_now(&world, key, key, after).await.unwrap();
        assert!(matches!(find_at(&world, key, 1, after).await, Remembered::Done(_)), "the new one takes the place");
    }
    answer(&world, "key-1", "second", after).await;
    assert_eq!(find_at(&world, "key-1", 1, after + REQUEST_RETENTION).await, answered("second"), "its own day");
}

pub async fn an_answer_stays_whatever_comes_late(fresh: Fresh) {
    let world = World::new(&fresh);
    answer(&world, "key-1", "first", at("01:00")).await;
    answer(&world, "key-1", "second", at("01:01")).await;
    assert_eq!(find(&world, "key-1", 1).await, answered("first"));
}

pub async fn one_of_many_does_it(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("daily", "0 9 * * *")).await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..8 {
        let world = World { store: fresh.reconnect().await };
        tasks.spawn(async move { run_now(&world, "key-1", &format!("run-{number}"), at("01:00")).await.is_ok() });
    }
    let done = tasks.join_all().await.into_iter().filter(|done| *done).count();
    assert_eq!((done, world.runs().await.len()), (1, 1));
}
