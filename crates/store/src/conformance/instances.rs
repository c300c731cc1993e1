//! Instances: heartbeats, draining, forgetting.

use everbell_core::store::Instance;

use super::Fresh;
use super::given::{LOG, MAIL, assert_refused, at, audit, instance, instance_id, target};
use super::world::World;

pub async fn a_heartbeat_makes_an_instance_known(fresh: Fresh) {
    let world = World::new(&fresh);
    assert_eq!(world.store.list_instances().await.unwrap(), []);
    let one = everbell_core::with!(Instance {
        host: "host \"one\" \u{2603}".to_owned(),
        pid: u32::MAX,
        roles: vec!["scheduler".to_owned(), "a,b".to_owned()],
        targets: vec![target(LOG), target("mail, urgent")],
        clock_skew_ms: -86_400_000,
        ..instance(1, at("00:01"))
    });
    assert!(!world.store.heartbeat(&one, None, false).await.unwrap().draining);
    assert_eq!(world.store.list_instances().await.unwrap(), [one]);
}

pub async fn a_later_heartbeat_updates_everything(fresh: Fresh) {
    let world = World::new(&fresh);
    world.store.heartbeat(&instance(1, at("00:01")), None, false).await.unwrap();
    let later = everbell_core::with!(Instance {
        version: "0.2.0".to_owned(),
        roles: vec![],
        targets: vec![target(MAIL)],
        clock_skew_ms: 7,
        process: Some("boot namespace 4711 12".to_owned()),
        ..instance(1, at("00:02"))
    });
    world.store.heartbeat(&later, None, false).await.unwrap();
    assert_eq!(world.store.list_instances().await.unwrap(), [later]);
}

pub async fn instances_are_listed_oldest_first(fresh: Fresh) {
    let world = World::new(&fresh);
    for (number, started) in [(3, "00:02"), (1, "00:03"), (2, "00:01")] {
        let one = everbell_core::with!(Instance { started_at: at(started), ..instance(number, at("01:00")) });
        world.store.heartbeat(&one, None, false).await.unwrap();
    }
    let ids: Vec<_> = world.store.list_instances().await.unwrap().iter().map(|one| one.id).collect();
    assert_eq!(ids, [instance_id(2), instance_id(3), instance_id(1)]);
}

pub async fn an_instance_learns_that_it_shall_drain(fresh: Fresh) {
    let world = World::new(&fresh);
    world.store.heartbeat(&instance(1, at("00:01")), None, false).await.unwrap();
    world.store.heartbeat(&instance(2, at("00:01")), None, false).await.unwrap();
    let entry = |action| audit(action, "instance:1", at("00:02"));
    world.store.drain_instance(instance_id(1), true, &entry("instance.drain")).await.unwrap();
    assert!(
        world.store.heartbeat(&instance(1, at("00:03")), None, false).await.unwrap().draining,
        "its own word does not undo the wish"
    );
    assert!(
        !world.store.heartbeat(&instance(2, at("00:03")), None, false).await.unwrap().draining,
        "the other is not meant"
    );
    let draining: Vec<_> = world.store.list_instances().await.unwrap().iter().map(|one| one.draining).collect();
    assert_eq!(draining, [true, false]);
    world.store.drain_instance(instance_id(1), false, &entry("instance.undrain")).await.unwrap();
    assert!(!world.store.heartbeat(&instance(1, at("00:04")), None, false).await.unwrap().draining);
    assert_eq!(world.actions(Some("instance:1")).await, ["instance.undrain", "instance.drain"]);
}

pub async fn an_unknown_instance_cannot_be_drained(fresh: Fresh) {
    let world = World::new(&fresh);
    let entry = audit("instance.drain", "instance:9", at("00:02"));
    assert_refused(world.store.drain_instance(instance_id(9), true, &entry).await, "not found");
    assert_eq!(world.actions(None).await, [""; 0]);
}

pub async fn silent_instances_are_forgotten(fresh: Fresh) {
    let world = World::new(&fresh);
    for (number, heard) in [(1, "01:00"), (2, "02:00"), (3, "03:00")] {
        world.store.heartbeat(&instance(number, at(heard)), None, false).await.unwrap();
    }
    assert_eq!(world.store.remove_instances(at("02:00")).await.unwrap(), 1, "before, not at");
    let ids: Vec<_> = world.store.list_instances().await.unwrap().iter().map(|one| one.id).collect();
    assert_eq!(ids, [instance_id(2), instance_id(3)]);
    assert_eq!(world.store.remove_instances(at("02:00")).await.unwrap(), 0);
    world.store.heartbeat(&instance(1, at("04:00")), None, false).await.unwrap();
    assert_eq!(world.store.list_instances().await.unwrap().len(), 3, "one that speaks again is known again");
}

pub async fn an_instance_that_leaves_is_forgotten(fresh: Fresh) {
    let world = World::new(&fresh);
    for number in [1, 2] {
        world.store.heartbeat(&instance(number, at("01:00")), None, false).await.unwrap();
    }
    world.store.leave(instance_id(1), at("23:00"), at("23:00")).await.unwrap();
    world.store.leave(instance_id(1), at("23:00"), at("23:00")).await.unwrap();
    let ids: Vec<_> = world.store.list_instances().await.unwrap().iter().map(|one| one.id).collect();
    assert_eq!(ids, [instance_id(2)], "and only that one");
}
