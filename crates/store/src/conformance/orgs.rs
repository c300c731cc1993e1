//! `write_orgs`, `delete_org`, overrides, and the lists of orgs.

use everbell_core::org::{Org, OrgWrite, OverrideWrite};
use everbell_core::store::{JobOrgFilter, OrgFilter, OrgWritten, PageRequest, StoreError, StoreResult};
use everbell_core::{JobKey, Json};
use jiff::Timestamp;

use super::Fresh;
use super::given::{assert_refused, at, audit, job, org, org_id, per_org};
use super::world::World;

fn named(id: &str, zone: &str, name: &str) -> OrgWrite {
    OrgWrite { name: Some(name.to_owned()), ..org(id, zone) }
}

pub(super) fn override_write(enabled: bool, expression: Option<&str>) -> OverrideWrite {
    let job_key = JobKey::new("brief").unwrap();
    OverrideWrite { job_key, enabled, expression: expression.map(str::to_owned) }
}

async fn try_put(world: &World, writes: &[OrgWrite], now: Timestamp) -> StoreResult<Vec<OrgWritten>> {
    world.store.write_orgs(writes, &audit("org.write", "orgs", now)).await
}

async fn ids(world: &World, filter: &OrgFilter) -> Vec<String> {
    let all = in_pages(world, filter, 1_000).await;
    for limit in [1, 2, 3] {
        assert_eq!(in_pages(world, filter, limit).await, all, "pages of {limit}");
    }
    all.iter().map(|org| org.id.to_string()).collect()
}

async fn in_pages(world: &World, filter: &OrgFilter, limit: u32) -> Vec<Org> {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let page = world.store.list_orgs(filter, &PageRequest { limit, after }).await.unwrap();
        assert!(page.items.len() <= limit as usize);
        rows.extend(page.items);
        after = page.next;
        if after.is_none() {
            return rows;
        }
    }
}

pub async fn an_org_reads_back_as_it_was_written(fresh: Fresh) {
    let world = World::new(&fresh);
    let settings = Json::parse("settings", r#"{"plan":"gold","é":["🔔",9007199254740993]}"#).unwrap();
    let write = OrgWrite { settings: Some(settings.clone()), ..named("acme", "europe/paris", "Ácme \"& Co\"") };
    let [written] = &world.put(&[write], at("08:00")).await[..] else { panic!() };
    assert!(written.created && written.changed);
    let org = world.store.get_org(&org_id("acme")).await.unwrap();
    assert_eq!(org, written.org);
    assert_eq!((org.name.as_str(), org.settings), ("Ácme \"& Co\"", settings));
    assert_eq!((org.place.timezone.as_str(), org.place.enabled, org.revision), ("Europe/Paris", true, 1));
    assert_eq!((org.created_at, org.updated_at, org.updated_by.as_str()), (at("08:00"), at("08:00"), "ana"));
    assert_eq!(world.actions(Some("orgs")).await, ["org.write"]);
}

pub async fn an_unknown_org_is_not_found(fresh: Fresh) {
    let world = World::new(&fresh);
    let nobody = org_id("nobody");
    let entry = audit("org.write", "orgs", at("08:00"));
    let store = &world.store;
    let missing = |error: StoreError| assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    missing(store.get_org(&nobody).await.unwrap_err());
    missing(store.delete_org(&nobody, None, &entry).await.unwrap_err());
    missing(store.write_override(&nobody, &override_write(false, None), &entry).await.unwrap_err());
    missing(store.delete_override(&nobody, &override_write(false, None).job_key, &entry).await.unwrap_err());
    missing(store.list_overrides(&nobody).await.unwrap_err());
    missing(store.org_jobs(&nobody).await.unwrap_err());
    let only = OrgWrite { only_existing: true, ..org("nobody", "UTC") };
    missing(try_put(&world, &[only], at("08:00")).await.unwrap_err());
    assert_eq!(world.actions(None).await, Vec::<String>::new());
}

pub async fn orgs_are_written_all_or_none(fresh: Fresh) {
    let world = World::new(&fresh);
    let bad = [org("a", "UTC"), org("b", "Mars/Base"), org("c", "UTC")];
    let error = try_put(&world, &bad, at("08:00")).await.unwrap_err();
    assert!(error.to_string().contains("org `b`") && error.to_string().contains("Mars/Base"), "{error}");
    assert_refused(try_put(&world, &[org("a", "UTC"), org("a", "UTC")], at("08:00")).await, "invalid");
    assert_eq!(ids(&world, &OrgFilter::default()).await, Vec::<String>::new());
    let written = world.put(&[org("b", "UTC"), org("a", "UTC")], at("08:00")).await;
    assert_eq!(written.iter().map(|one| one.org.id.as_str()).collect::<Vec<_>>(), ["b", "a"], "in the same order");
    let written = world.put(&[org("a", "UTC"), org("c", "UTC")], at("09:00")).await;
    let told: Vec<_> = written.iter().map(|one| (one.created, one.changed, one.org.revision)).collect();
    assert_eq!(told, [(false, false, 1), (true, true, 1)]);
}

pub async fn ten_thousand_orgs_are_one_write(fresh: Fresh) {
    let world = World::new(&fresh);
    let many: Vec<OrgWrite> = (0..10_000).map(|n| org(&format!("org-{n:05}"), "UTC")).collect();
    assert_eq!(world.put(&many, at("08:00")).await.len(), 10_000);
    assert_eq!(world.store.count_orgs().await.unwrap().orgs, 10_000);
}

pub async fn an_org_that_changed_meanwhile_is_not_written(fresh: Fresh) {
    let world = World::new(&fresh);
    world.put(&[org("acme", "UTC")], at("08:00")).await;
    let second = OrgWrite { expected_revision: Some(1), ..org("acme", "Asia/Tokyo") };
    world.put(std::slice::from_ref(&second), at("09:00")).await;
    assert_refused(try_put(&world, &[second], at("10:00")).await, "stale");
    let entry = audit("org.delete", "org:acme", at("10:00"));
    assert_refused(world.store.delete_org(&org_id("acme"), Some(1), &entry).await, "stale");
    let new = OrgWrite { expected_revision: Some(1), ..org("new", "UTC") };
    assert_refused(try_put(&world, &[new], at("10:00")).await, "stale");
    let found = world.store.get_org(&org_id("acme")).await.unwrap();
    assert_eq!((found.revision, found.place.moved.unwrap().from.as_str()), (2, "UTC"));
}

pub async fn orgs_are_found_by_text_zone_and_state(fresh: Fresh) {
    let world = World::new(&fresh);
    let off = OrgWrite { enabled: Some(false), ..named("delta", "UTC", "Fourth") };
    let all =
        [named("beta", "Asia/Tokyo", "Second"), named("Alpha", "UTC", "First_%"), named("gamma", "UTC", "Third"), off];
    world.put(&all, at("08:00")).await;
    let none = OrgFilter::default();
    assert_eq!(ids(&world, &none).await, ["Alpha", "beta", "delta", "gamma"], "by their bytes");
    let text = |text: &str| OrgFilter { text: Some(text.to_owned()), ..OrgFilter::default() };
    assert_eq!(ids(&world, &text("ALPH")).await, ["Alpha"]);
    assert_eq!(ids(&world, &text("ir")).await, ["Alpha", "gamma"]);
    assert_eq!(ids(&world, &text("t_%")).await, ["Alpha"], "text is text and no pattern");
    let zone = OrgFilter { timezone: Some("Asia/Tokyo".to_owned()), ..none.clone() };
    assert_eq!(ids(&world, &zone).await, ["beta"]);
    assert_eq!(ids(&world, &OrgFilter { enabled: Some(false), ..none.clone() }).await, ["delta"]);
    assert_eq!(ids(&world, &OrgFilter { errored: Some(true), ..none.clone() }).await, Vec::<String>::new());
    assert_eq!(ids(&world, &OrgFilter { errored: Some(false), enabled: Some(true), ..none }).await.len(), 3);
}

pub async fn a_deleted_org_is_gone_with_what_it_overrides(fresh: Fresh) {
    let world = World::new(&fresh);
    world.put(&[org("acme", "UTC")], at("08:00")).await;
    let acme = org_id("acme");
    let entry = audit("org.override", "org:acme", at("08:10"));
    world.store.write_override(&acme, &override_write(false, None), &entry).await.unwrap();
    world.store.delete_org(&acme, None, &audit("org.delete", "org:acme", at("09:00"))).await.unwrap();
    assert!(matches!(world.store.get_org(&acme).await, Err(StoreError::NotFound { .. })));
    assert_eq!(ids(&world, &OrgFilter::default()).await, Vec::<String>::new());
    assert_eq!(world.store.count_orgs().await.unwrap().orgs, 0);
    let again = world.put(&[org("acme", "Asia/Tokyo")], at("10:00")).await;
    assert!(again[0].created && again[0].org.place.moved.is_none());
    assert_eq!(world.store.list_overrides(&acme).await.unwrap(), []);
    world.reconcile_orgs(at("10:00")).await;
    assert_eq!(ids(&world, &OrgFilter::default()).await, ["acme"], "it is not removed with what it was");
}

pub async fn an_override_is_written_listed_and_taken_back(fresh: Fresh) {
    let world = World::new(&fresh);
    world.put(&[org("acme", "UTC"), org("other", "UTC")], at("08:00")).await;
    let acme = org_id("acme");
    let store = &world.store;
    let entry = |minute: &str| audit("org.override", "org:acme", at(minute));
    let first = store.write_override(&acme, &override_write(true, Some("30 7 * * *")), &entry("08:10")).await.unwrap();
    assert_eq!((first.enabled, first.expression.as_deref()), (true, Some("30 7 * * *")));
    assert_eq!((first.updated_by.as_str(), first.updated_at), ("ana", at("08:10")));
    let other = OverrideWrite { job_key: JobKey::new("Alpha").unwrap(), ..override_write(false, None) };
    store.write_override(&acme, &other, &entry("08:20")).await.unwrap();
    let second = store.write_override(&acme, &override_write(false, None), &entry("08:30")).await.unwrap();
    let listed = store.list_overrides(&acme).await.unwrap();
    assert_eq!(listed.iter().map(|override_| override_.job_key.as_str()).collect::<Vec<_>>(), ["Alpha", "brief"]);
    assert_eq!(listed[1], second);
    assert_eq!(store.list_overrides(&org_id("other")).await.unwrap(), []);
    assert_refused(
        store.write_override(&acme, &override_write(true, Some("61 * * * *")), &entry("08:40")).await,
        "invalid",
    );
    store.delete_override(&acme, &second.job_key, &entry("08:50")).await.unwrap();
    let gone = store.delete_override(&acme, &second.job_key, &entry("08:55")).await;
    assert!(matches!(gone, Err(StoreError::NotFound { .. })));
    assert_eq!(store.list_overrides(&acme).await.unwrap().len(), 1);
    assert_eq!(store.get_org(&acme).await.unwrap().place.changed_at, at("08:50"));
}

pub async fn a_job_and_an_org_see_each_other(fresh: Fresh) {
    let world = World::new(&fresh);
    world.put(&[org("acme", "Asia/Tokyo"), org("zeta", "UTC")], at("00:00")).await;
    let brief = world.create(per_org(job("brief", "0 9 * * *"))).await.job.definition.id;
    world.create(per_org(job("audit", "0 12 * * *"))).await;
    world.create(job("global", "0 12 * * *")).await;
    let acme = org_id("acme");
    world
        .store
        .write_override(&acme, &override_write(false, None), &audit("o", "org:acme", at("00:01")))
        .await
        .unwrap();
    world.reconcile_orgs(at("00:02")).await;
    let jobs = world.store.org_jobs(&acme).await.unwrap();
    let keys: Vec<_> = jobs.iter().map(|row| row.job.definition.key.as_str()).collect();
    assert_eq!(keys, ["audit", "brief"]);
    assert_eq!(jobs[0].timer.as_ref().unwrap().next_run_at, Some(at("03:00")), "noon in Tokyo");
    assert_eq!(jobs[1].timer.as_ref().and_then(|timer| timer.next_run_at), None);
    assert!(jobs[1].override_.as_ref().is_some_and(|override_| !override_.enabled));
    let page = PageRequest { limit: 10, after: None };
    let orgs = world.store.job_orgs(brief, &JobOrgFilter::default(), &page).await.unwrap();
    let seen: Vec<_> = orgs
        .items
        .iter()
        .map(|row| {
            (row.org.id.as_str(), row.override_.is_some(), row.timer.as_ref().and_then(|timer| timer.next_run_at))
        })
        .collect();
    assert_eq!(seen, [("acme", true, None), ("zeta", false, Some(at("09:00")))]);
    let armed = JobOrgFilter { armed: Some(true), ..JobOrgFilter::default() };
    let armed = world.store.job_orgs(brief, &armed, &page).await.unwrap();
    assert_eq!(armed.items.len(), 1);
}
