//! Targets that admins define: revisions, limits, and deletes that jobs stand in the way of.

use everbell_core::store::{MAX_STORED_TARGETS, StoreError, StoreResult, StoredTarget};
use everbell_core::{Json, Target};

use super::Fresh;
use super::given::{at, audit, job, target, to};
use super::world::World;

fn json(text: &str) -> Json {
    Json::parse("definition", text).unwrap()
}

async fn put(world: &World, label: &str, text: &str, expected: Option<u32>, when: &str) -> StoreResult<StoredTarget> {
    let entry = audit("target.put", &format!("target:{label}"), at(when));
    world.store.put_target(&Target::new(label).unwrap(), &json(text), expected, &entry).await
}

async fn delete(world: &World, label: &str, expected: Option<u32>, force: bool) -> StoreResult<()> {
    let entry = audit("target.delete", &format!("target:{label}"), at("05:00"));
    world.store.delete_target(&target(label), expected, force, &entry).await
}

pub async fn a_target_reads_back_as_it_was_written(fresh: Fresh) {
    let world = World::new(&fresh);
    assert_eq!(world.store.stored_targets().await.unwrap(), []);
    let text = r#"{"type":"http","url":"https://é.example/\"x\"","headers":{"A":{"env":"B"}}}"#;
    let first = put(&world, "hook", text, None, "01:00").await.unwrap();
    assert_eq!((first.revision, first.definition.as_str()), (1, text));
    assert_eq!((first.created_at, first.updated_at), (at("01:00"), at("01:00")));
    put(&world, "a-second", "{}", Some(0), "01:01").await.unwrap();
    let all = world.store.stored_targets().await.unwrap();
    assert_eq!(all.iter().map(|stored| stored.label.as_str()).collect::<Vec<_>>(), ["a-second", "hook"]);
    assert_eq!(all[1], first);
    assert_eq!(world.actions(Some("target:hook")).await, ["target.put"]);
}

pub async fn a_target_has_revisions(fresh: Fresh) {
    let world = World::new(&fresh);
    let missing = put(&world, "hook", "{}", Some(1), "01:00").await;
    assert!(matches!(missing, Err(StoreError::Stale { expected: 1, found: Some(0), .. })), "{missing:?}");
    put(&world, "hook", "{}", Some(0), "01:00").await.unwrap();
    let second = put(&world, "hook", r#"{"a":1}"#, Some(1), "01:02").await.unwrap();
    assert_eq!((second.revision, second.created_at, second.updated_at), (2, at("01:00"), at("01:02")));
    let stale = put(&world, "hook", "{}", Some(1), "01:03").await;
    assert!(matches!(stale, Err(StoreError::Stale { expected: 1, found: Some(2), .. })), "{stale:?}");
    assert_eq!(world.store.stored_targets().await.unwrap(), [second]);
    assert_eq!(put(&world, "hook", "{}", None, "01:04").await.unwrap().revision, 3);
    // Of two first revisions, and of two edits, one is written.
    for expected in [0, 1] {
        let written = tokio::join!(
            put(&world, "both", "{}", Some(expected), "01:05"),
            put(&world, "both", "{}", Some(expected), "01:05")
        );
        assert!(written.0.is_ok() ^ written.1.is_ok(), "{written:?}");
    }
}

pub async fn a_target_that_jobs_name_is_deleted_by_force_only(fresh: Fresh) {
    let world = World::new(&fresh);
    let missing = delete(&world, "mail", None, true).await;
    assert!(matches!(missing, Err(StoreError::NotFound { .. })), "{missing:?}");
    put(&world, "mail", "{}", None, "01:00").await.unwrap();
    world.create(to(job("daily", "0 9 * * *"), "mail")).await;
    world.create(job("other", "0 9 * * *")).await;
    let refused = delete(&world, "mail", None, false).await;
    let Err(StoreError::Conflict { what }) = refused else { panic!("{refused:?}") };
    assert!(what.starts_with("target `mail` is used by daily; "), "{what}");
    let stale = delete(&world, "mail", Some(7), true).await;
    assert!(matches!(stale, Err(StoreError::Stale { .. })), "{stale:?}");
    delete(&world, "mail", Some(1), true).await.unwrap();
    assert_eq!(world.store.stored_targets().await.unwrap(), []);
    put(&world, "mail", "{}", None, "02:00").await.unwrap();
    world.retire("daily", at("03:00")).await;
    delete(&world, "mail", None, false).await.unwrap();
    let actions = world.actions(Some("target:mail")).await;
    assert_eq!(actions.len(), 4, "two writes and two deletes: {actions:?}");
}

pub async fn the_number_of_stored_targets_is_limited(fresh: Fresh) {
    let world = World::new(&fresh);
    for number in 0..MAX_STORED_TARGETS {
        put(&world, &format!("t{number}"), "{}", None, "01:00").await.unwrap();
    }
    let refused = put(&world, "one-more", "{}", None, "01:00").await;
    assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
    put(&world, "t0", "{}", None, "01:00").await.unwrap();
}
