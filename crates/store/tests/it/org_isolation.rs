//! A broken org or job does not stop the others.

use everbell_core::change;
use everbell_core::org::OrgWrite;
use everbell_core::store::{JobOrgFilter, JobRef, PageRequest, Store};
use everbell_core::{Definition, JobId, OrgId, Scope};

use super::broken::{Broken, on_both};
use super::sqlite_world::{at, audit, create, job, plan_due};

on_both!(
    an_org_that_is_nowhere_is_errored_alone,
    a_job_that_cannot_be_read_stops_no_other_org_update,
    a_timer_that_cannot_be_read_is_made_anew,
    a_timer_that_cannot_be_read_is_disarmed_alone,
    a_timer_of_an_org_that_cannot_be_read_is_errored_alone,
    an_org_whose_id_cannot_be_read_keeps_no_org_update_busy,
);

pub(super) async fn per_org(store: &dyn Store, key: &str) -> JobId {
    let definition =
        everbell_core::with!(Definition { scope: Scope::PerOrg, ..(*job(key, "0 * * * *").definition).clone() });
    let number = definition.id.as_uuid().as_u128();
    store.create_job(&change::create(definition), &audit(number)).await.unwrap().job.definition.id
}

pub(super) async fn orgs(store: &dyn Store) {
    let write = |name: &str| OrgWrite { timezone: Some("UTC".to_owned()), ..OrgWrite::new(OrgId::new(name).unwrap()) };
    store.write_orgs(&[write("a"), write("b"), write("c")], &audit(1)).await.unwrap();
}

pub(super) async fn org_update(store: &dyn Store) {
    for _ in 0..100 {
        if !store.reconcile_orgs(at("00:00:00"), 2).await.unwrap().more {
            return;
        }
    }
    panic!("an org update without an end");
}

async fn armed(store: &dyn Store, job: JobId) -> usize {
    let filter = JobOrgFilter { armed: Some(true), ..JobOrgFilter::default() };
    store.job_orgs(job, &filter, &PageRequest { limit: 100, after: None }).await.unwrap().items.len()
}

async fn an_org_that_is_nowhere_is_errored_alone(database: Broken) {
    let store = database.open().await;
    orgs(&*store).await;
    let id = per_org(&*store, "brief").await;
    org_update(&*store).await;
    database.run("delete from everbell.orgs where id = 'b'").await;
    let planned = plan_due(&*store, at("01:00:00"), 10).await.unwrap();
    assert_eq!(planned.runs.len(), 2);
    let [(job, org, why)] = &planned.org_errors[..] else { panic!("{planned:?}") };
    assert_eq!((*job, org.as_str()), (id, "b"));
    assert!(why.contains("cannot be read"), "{why}");
}

async fn a_job_that_cannot_be_read_stops_no_other_org_update(database: Broken) {
    let store = database.open().await;
    orgs(&*store).await;
    let bad = per_org(&*store, "bad").await;
    let good = per_org(&*store, "good").await;
    database.run("update everbell.jobs set policies = '{' where job_key = 'bad'").await;
    let store = database.open().await;
    org_update(&*store).await;
    assert_eq!(armed(&*store, good).await, 3);
    assert_eq!(store.list_org_updates().await.unwrap(), []);
    database.run("update everbell.jobs set policies = '{}' where job_key = 'bad'").await;
    let error = store.get_job(&JobRef::Id(bad)).await.unwrap().job.state.error;
    assert!(error.is_some_and(|why| why.contains("policies")), "it is shown");
}

async fn a_timer_that_cannot_be_read_is_made_anew(database: Broken) {
    let store = database.open().await;
    orgs(&*store).await;
    let id = per_org(&*store, "brief").await;
    org_update(&*store).await;
    database.run("update everbell.timers set last_local_date = 'never', next_run_at = null where org_id = 'b'").await;
    database.run("update everbell.orgs set waiting = true").await;
    org_update(&*store).await;
    assert_eq!(armed(&*store, id).await, 3);
}

async fn a_timer_that_cannot_be_read_is_disarmed_alone(database: Broken) {
    let store = database.open().await;
    let bad = create(&*store, "bad", "0 * * * *").await;
    create(&*store, "good", "0 * * * *").await;
    database
        .run("update everbell.timers set last_local_date = 'soon' where job_id = (select id from everbell.jobs where job_key = 'bad')")
        .await;
    let planned = plan_due(&*store, at("01:00:00"), 10).await.unwrap();
    let runs: Vec<&str> = planned.runs.iter().map(|run| run.job.key.as_str()).collect();
    assert_eq!((runs, planned.timers), (vec!["good"], 2));
    let [(id, why)] = &planned.errored[..] else { panic!("{planned:?}") };
    assert!(*id == bad && why.contains("timers"), "{why}");
    let trail = store.list_audit(Some("job:bad"), &PageRequest { limit: 10, after: None }).await.unwrap().items;
    let told = trail.iter().find(|entry| entry.action == "job.errored");
    assert_eq!(told.and_then(|entry| entry.reason.as_ref()), Some(why), "{trail:?}");
    assert_eq!(plan_due(&*store, at("01:30:00"), 10).await.unwrap().timers, 0, "it is disarmed");
}

async fn a_timer_of_an_org_that_cannot_be_read_is_errored_alone(database: Broken) {
    let store = database.open().await;
    orgs(&*store).await;
    let id = per_org(&*store, "brief").await;
    org_update(&*store).await;
    database.run("update everbell.timers set last_local_date = 'soon' where org_id = 'b'").await;
    database.run("update everbell.timers set org_id = ' ' where org_id = 'c'").await;
    let planned = plan_due(&*store, at("01:00:00"), 10).await.unwrap();
    assert_eq!((planned.runs.len(), planned.errored.len()), (1, 0), "{planned:?}");
    let [(job, org, why)] = &planned.org_errors[..] else { panic!("{planned:?}") };
    assert!((*job, org.as_str()) == (id, "b") && why.contains("timers"), "{org}: {why}");
    assert_eq!(plan_due(&*store, at("01:30:00"), 10).await.unwrap().timers, 0, "they are disarmed");
    let planned = plan_due(&*store, at("02:00:00"), 10).await.unwrap();
    assert_eq!((planned.timers, planned.runs.len()), (1, 1), "the job goes on for the others");
}

async fn an_org_whose_id_cannot_be_read_keeps_no_org_update_busy(database: Broken) {
    let store = database.open().await;
    orgs(&*store).await;
    let id = per_org(&*store, "brief").await;
    org_update(&*store).await;
    database.run("update everbell.timers set next_run_at = null").await;
    database.run("update everbell.orgs set id = ' ' where id = 'a'").await;
    database.run("update everbell.orgs set waiting = true").await;
    org_update(&*store).await;
    assert_eq!(armed(&*store, id).await, 2);
}
