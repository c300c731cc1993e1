//! What somebody broke about one org or one job stops none of the others.

use everbell_core::change;
use everbell_core::org::OrgWrite;
use everbell_core::store::{JobOrgFilter, JobRef, PageRequest, Store};
use everbell_core::{Definition, JobId, OrgId, Scope};
use everbell_store::sqlite::SqliteStore;

use super::sqlite::Folder;
use super::sqlite_world::{at, audit, job, plan_due};

async fn broken(folder: &Folder, sql: &'static str) {
    use sqlx::ConnectOptions;
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(folder.file()).foreign_keys(false);
    sqlx::raw_sql(sql).execute(&mut options.connect().await.unwrap()).await.unwrap();
}

async fn per_org(store: &SqliteStore, key: &str) -> JobId {
    let definition = Definition { scope: Scope::PerOrg, ..(*job(key, "0 * * * *").definition).clone() };
    let number = definition.id.as_uuid().as_u128();
    store.create_job(&change::create(definition), &audit(number)).await.unwrap().job.definition.id
}

async fn orgs(store: &SqliteStore) {
    let write = |name: &str| OrgWrite { timezone: Some("UTC".to_owned()), ..OrgWrite::of(OrgId::new(name).unwrap()) };
    store.write_orgs(&[write("a"), write("b"), write("c")], &audit(1)).await.unwrap();
}

async fn sweep(store: &SqliteStore) {
    for _ in 0..100 {
        if !store.sweep_orgs(at("00:00:00"), 2).await.unwrap().more {
            return;
        }
    }
    panic!("a sweep without an end");
}

async fn armed(store: &SqliteStore, job: JobId) -> usize {
    let filter = JobOrgFilter { armed: Some(true), ..JobOrgFilter::default() };
    store.job_orgs(job, &filter, &PageRequest { limit: 100, after: None }).await.unwrap().items.len()
}

#[tokio::test]
async fn an_org_that_is_nowhere_is_errored_alone() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file()).await.unwrap();
    orgs(&store).await;
    let id = per_org(&store, "brief").await;
    sweep(&store).await;
    broken(&folder, "delete from orgs where id = 'b'").await;
    let planned = plan_due(&store, at("01:00:00"), 10).await.unwrap();
    assert_eq!(planned.runs.len(), 2);
    let [(job, org, why)] = &planned.org_errors[..] else { panic!("{planned:?}") };
    assert_eq!((*job, org.as_str()), (id, "b"));
    assert!(why.contains("cannot be read"), "{why}");
}

#[tokio::test]
async fn a_job_that_cannot_be_read_stops_no_other_sweep() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file()).await.unwrap();
    orgs(&store).await;
    let bad = per_org(&store, "bad").await;
    let good = per_org(&store, "good").await;
    drop(store);
    broken(&folder, "update jobs set policies = '{' where job_key = 'bad'").await;
    // Another process, which has not read the job before.
    let store = SqliteStore::open(&folder.file()).await.unwrap();
    sweep(&store).await;
    assert_eq!(armed(&store, good).await, 3);
    assert_eq!(store.list_sweeps().await.unwrap(), []);
    broken(&folder, "update jobs set policies = '{}' where job_key = 'bad'").await;
    let error = store.get_job(&JobRef::Id(bad)).await.unwrap().job.state.error;
    assert!(error.is_some_and(|why| why.contains("policies")), "it is shown");
}

#[tokio::test]
async fn a_timer_that_cannot_be_read_is_made_anew() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file()).await.unwrap();
    orgs(&store).await;
    let id = per_org(&store, "brief").await;
    sweep(&store).await;
    broken(&folder, "update timers set last_local_date = 'never', next_run_at = null where org_id = 'b'").await;
    broken(&folder, "update orgs set waiting = 1").await;
    sweep(&store).await;
    assert_eq!(armed(&store, id).await, 3);
}
