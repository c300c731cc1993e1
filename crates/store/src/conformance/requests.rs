//! Requests with an idempotency key: answered once, remembered, forgotten when they failed.

use everbell_core::store::Remembered;

use super::Fresh;
use super::given::at;
use super::world::World;

async fn begin(world: &World, key: &str, byte: u8) -> Remembered {
    world.store.begin_request(key, &[byte; 32], at("01:00")).await.unwrap()
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
