//! The audit trail.

use everbell_core::store::{AuditEntry, Origin, PageRequest};

use super::Fresh;
use super::given::{at, audit, job, json, page};
use super::plain::Plain;
use super::world::World;

async fn append(world: &World, entry: &AuditEntry) {
    world.store.append_audit(entry).await.unwrap();
}

pub async fn an_entry_reads_back(fresh: Fresh) {
    let world = World::new(&fresh);
    let entry = AuditEntry {
        reason: Some("the disk is full; 'quoted' \"twice\"".to_owned()),
        before: Some(json(r#"{"status":"active"}"#)),
        after: Some(json(r#"{"status":"paused","n":18446744073709551615}"#)),
        origin: Origin {
            address: Some("2001:db8::7".to_owned()),
            request_id: Some("r-1".to_owned()),
            role: Some("operator".to_owned()),
        },
        ..audit("job.pause", "job:daily", at("01:00:00.123"))
    };
    append(&world, &entry).await;
    let listed = world.store.list_audit(None, &page(10)).await.unwrap();
    assert_eq!((listed.items.plain(), listed.next), (vec![entry.plain()], None));
}

pub async fn the_trail_is_newest_first_and_in_pages(fresh: Fresh) {
    let world = World::new(&fresh);
    // Three of each instant, so that pages end between equal times.
    for number in 0..12 {
        let action = format!("action-{number:02}");
        append(&world, &audit(&action, "job:a", at(&format!("{:02}:00", number / 3)))).await;
    }
    let whole = world.actions(None).await;
    let expected: Vec<String> = (0..12).rev().map(|number| format!("action-{number:02}")).collect();
    assert_eq!(whole, expected);
    for limit in [1, 2, 7] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let part = world.store.list_audit(None, &PageRequest { limit, after }).await.unwrap();
            assert!(part.items.len() <= limit as usize);
            seen.extend(part.items.into_iter().map(|entry| entry.action));
            after = part.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, whole, "pages of {limit}");
    }
}

pub async fn the_trail_of_one_object(fresh: Fresh) {
    let world = World::new(&fresh);
    for (action, object) in [("one", "job:a"), ("two", "job:b"), ("three", "job:a"), ("four", "job:a%")] {
        append(&world, &audit(action, object, at("01:00"))).await;
    }
    assert_eq!(world.actions(Some("job:a")).await, ["three", "one"]);
    assert_eq!(world.actions(Some("job:a%")).await, ["four"], "text is no pattern");
    assert_eq!(world.actions(Some("job:")).await, [""; 0], "nor a prefix");
    let first = world.store.list_audit(Some("job:a"), &page(1)).await.unwrap();
    assert!(first.next.is_some());
    let rest = PageRequest { limit: 5, after: first.next };
    let second = world.store.list_audit(Some("job:a"), &rest).await.unwrap();
    assert_eq!((second.items.len(), second.items[0].action.as_str()), (1, "one"));
}

pub async fn the_same_entry_twice_is_one_entry(fresh: Fresh) {
    let world = World::new(&fresh);
    let entry = audit("job.pause", "job:a", at("01:00"));
    append(&world, &entry).await;
    append(&world, &entry).await;
    assert_eq!(world.actions(None).await, ["job.pause"], "an answer that was lost may be asked for again");
}

pub async fn every_change_leaves_its_entry(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("daily", "0 9 * * *")).await;
    world.pause("daily", at("01:00")).await;
    world.run_now("daily", "by hand", at("02:00")).await;
    world.retire("daily", at("03:00")).await;
    let trail = world.store.list_audit(Some("job:daily"), &page(10)).await.unwrap();
    let told: Vec<_> = trail.items.iter().map(|entry| (entry.action.as_str(), entry.at)).collect();
    let expected = [
        ("job.change", at("03:00")),
        ("job.change", at("02:00")),
        ("job.change", at("01:00")),
        ("job.create", at("00:00")),
    ];
    assert_eq!(told, expected);
}
