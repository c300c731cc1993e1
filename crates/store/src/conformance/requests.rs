//! Requests with an idempotency key: answered once, remembered, forgotten when they failed.

use std::time::Duration;

use everbell_core::store::{REQUEST_KEPT, REQUEST_PATIENCE, Remembered};
use jiff::Timestamp;

use super::Fresh;
use super::given::at;
use super::world::World;

/// The shortest time that every store can tell.
const MOMENT: Duration = Duration::from_micros(1);

async fn begin(world: &World, key: &str, byte: u8) -> Remembered {
    begin_at(world, key, byte, at("01:00")).await
}

async fn begin_at(world: &World, key: &str, byte: u8, now: Timestamp) -> Remembered {
    world.store.begin_request(key, &[byte; 32], now).await.unwrap()
}

fn answered(body: &str) -> Remembered {
    Remembered::Answered(200, body.to_owned())
}

pub async fn a_request_is_answered_once(fresh: Fresh) {
    let world = World::new(&fresh);
    assert_eq!(begin(&world, "key-1", 1).await, Remembered::New);
    assert_eq!(begin(&world, "key-1", 1).await, Remembered::InProgress, "somebody is at it");
    let body = r#"{"jobKey":"größe ⏰"}"#;
    world.store.end_request("key-1", Some((201, body))).await.unwrap();
    for _ in 0..2 {
        assert_eq!(begin(&world, "key-1", 1).await, Remembered::Answered(201, body.to_owned()));
    }
}

pub async fn another_request_under_the_same_key_is_told(fresh: Fresh) {
    let world = World::new(&fresh);
    begin(&world, "key-1", 1).await;
    assert_eq!(begin(&world, "key-1", 2).await, Remembered::Different);
    world.store.end_request("key-1", Some((200, ""))).await.unwrap();
    assert_eq!(begin(&world, "key-1", 2).await, Remembered::Different, "also when the first was answered");
    assert_eq!(begin(&world, "key-1", 1).await, Remembered::Answered(200, String::new()));
}

pub async fn keys_are_apart(fresh: Fresh) {
    let world = World::new(&fresh);
    for key in ["a", "A", "a ", "", "a%", "ключ"] {
        assert_eq!(begin(&world, key, 1).await, Remembered::New, "{key:?}");
    }
    world.store.end_request("a", Some((204, ""))).await.unwrap();
    assert_eq!(begin(&world, "A", 1).await, Remembered::InProgress);
}

pub async fn a_failed_request_is_forgotten(fresh: Fresh) {
    let world = World::new(&fresh);
    begin(&world, "key-1", 1).await;
    world.store.end_request("key-1", None).await.unwrap();
    assert_eq!(begin(&world, "key-1", 2).await, Remembered::New, "it may be tried again, also differently");
}

pub async fn ending_an_unknown_request_does_nothing(fresh: Fresh) {
    let world = World::new(&fresh);
    world.store.end_request("never", None).await.unwrap();
    world.store.end_request("never", Some((200, "late"))).await.unwrap();
    assert_eq!(begin(&world, "never", 1).await, Remembered::New);
}

pub async fn an_answer_is_kept_for_a_day(fresh: Fresh) {
    let world = World::new(&fresh);
    begin(&world, "key-1", 1).await;
    world.store.end_request("key-1", Some((200, "first"))).await.unwrap();
    let last = at("01:00") + REQUEST_KEPT;
    assert_eq!(begin_at(&world, "key-1", 1, last).await, answered("first"));
    assert_eq!(begin_at(&world, "key-1", 2, last).await, Remembered::Different);
    let after = last + MOMENT;
    assert_eq!(begin_at(&world, "key-1", 2, after).await, Remembered::New, "also a different one");
    assert_eq!(begin_at(&world, "key-1", 1, after).await, Remembered::Different, "the new one has taken the place");
    assert_eq!(begin_at(&world, "key-1", 2, after).await, Remembered::InProgress, "and the old answer is gone");
    world.store.end_request("key-1", Some((200, "second"))).await.unwrap();
    assert_eq!(begin_at(&world, "key-1", 2, after + REQUEST_KEPT).await, answered("second"), "its own day");
}

pub async fn a_request_whose_process_died_is_given_up(fresh: Fresh) {
    let world = World::new(&fresh);
    begin(&world, "key-1", 1).await;
    let last = at("01:00") + REQUEST_PATIENCE;
    assert_eq!(begin_at(&world, "key-1", 1, last).await, Remembered::InProgress);
    assert_eq!(begin_at(&world, "key-1", 2, last).await, Remembered::Different);
    let after = last + MOMENT;
    assert_eq!(begin_at(&world, "key-1", 2, after).await, Remembered::New, "also a different one");
    assert_eq!(begin_at(&world, "key-1", 2, after + REQUEST_PATIENCE).await, Remembered::InProgress, "its own time");
    world.store.end_request("key-1", Some((200, "late"))).await.unwrap();
    let later = after + REQUEST_PATIENCE + REQUEST_PATIENCE;
    assert_eq!(begin_at(&world, "key-1", 2, later).await, answered("late"), "what is answered is not given up");
}

pub async fn an_answer_stays_whatever_comes_late(fresh: Fresh) {
    let world = World::new(&fresh);
    begin(&world, "key-1", 1).await;
    world.store.end_request("key-1", Some((200, "first"))).await.unwrap();
    world.store.end_request("key-1", Some((500, "second"))).await.unwrap();
    world.store.end_request("key-1", None).await.unwrap();
    assert_eq!(begin(&world, "key-1", 1).await, answered("first"));
}

pub async fn one_of_many_takes_the_place_of_a_dead_one(fresh: Fresh) {
    let world = World::new(&fresh);
    begin(&world, "key-1", 1).await;
    let mut tasks = tokio::task::JoinSet::new();
    for byte in 0..8 {
        let store = fresh.reconnect().await;
        let now = at("01:00") + REQUEST_PATIENCE + MOMENT;
        tasks.spawn(async move { store.begin_request("key-1", &[byte; 32], now).await.unwrap() });
    }
    let answers = tasks.join_all().await;
    let new = answers.iter().filter(|answer| **answer == Remembered::New).count();
    let different = answers.iter().filter(|answer| **answer == Remembered::Different).count();
    assert_eq!((new, different), (1, 7), "{answers:?}");
}

pub async fn one_of_many_may_answer(fresh: Fresh) {
    let world = World::new(&fresh);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = fresh.reconnect().await;
        tasks.spawn(async move { store.begin_request("key-1", &[1; 32], at("01:00")).await.unwrap() });
    }
    let answers = tasks.join_all().await;
    let new = answers.iter().filter(|answer| **answer == Remembered::New).count();
    assert_eq!(new, 1, "{answers:?}");
    assert!(answers.iter().all(|answer| matches!(answer, Remembered::New | Remembered::InProgress)), "{answers:?}");
    assert_eq!(begin(&world, "key-1", 1).await, Remembered::InProgress);
}
