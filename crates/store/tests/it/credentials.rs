//! New credentials for a store that is open. Passwords are tested with a real server in `everbell-server`.

use everbell_core::store::{ClusterStore, Store, StoreError, UnavailableReason};
use everbell_store::postgres::{PgPool, PostgresStore};
use everbell_store::renew_credentials;
use everbell_store::sqlite::SqliteStore;
use everbell_store::testing::{OwnServer, TestDatabase, execute};

async fn refusal(store: &dyn Store, url: &str) -> String {
    let error = renew_credentials(store, url).await.unwrap_err();
    assert!(matches!(error, StoreError::Invalid(_)), "{error}");
    error.to_string()
}

#[tokio::test]
async fn another_role_is_taken_only_if_it_can_work() {
    // Roles are those of a whole server, so it is one of its own.
    let database = OwnServer::start();
    let store = PostgresStore::connect(database.url()).await.unwrap();
    let as_user = |user: &str| database.url().replacen("postgres@", &format!("{user}@"), 1);
    let roles = "create role everbell_without_rights login; create role everbell_with_rights login in role postgres";
    execute(database.url(), roles).await;

    let unknown = renew_credentials(&store, &as_user("everbell_unknown")).await.unwrap_err().to_string();
    assert!(unknown.contains("check user and password"), "{unknown}");
    let stranger = renew_credentials(&store, &as_user("everbell_without_rights")).await.unwrap_err();
    assert!(
        matches!(stranger, StoreError::Unavailable { reason: UnavailableReason::Permission, .. }),
        "{stranger}: {stranger:?}"
    );
    // With the refused role this would fail: connections from before a renewal are not used again.
    store.list_instances().await.unwrap();
    let users = "select string_agg(distinct usename, ',') from pg_stat_activity
                 where datname = current_database() and application_name = 'everbell' and query not like 'LISTEN%'";
    let other = PgPool::connect(database.url()).await.unwrap();
    let users = async || sqlx::query_scalar::<_, Option<String>>(users).fetch_one(&other).await.unwrap();
    renew_credentials(&store, &as_user("everbell_with_rights")).await.unwrap();
    store.list_instances().await.unwrap();
    let mine = users().await.unwrap();
    assert!(mine.contains("everbell_with_rights"), "{mine}");
}

#[tokio::test]
async fn only_credentials_can_be_renewed() {
    let database = TestDatabase::create().await;
    let store = PostgresStore::connect(database.url()).await.unwrap();
    let elsewhere = database.url().replacen("@localhost/", "@localhost/other_", 1);
    let told = refusal(&store, &elsewhere).await;
    assert!(told.contains("only credentials can be renewed") && !told.contains("other_"), "{told}");
    assert!(refusal(&store, "sqlite:everbell.db").await.starts_with("database: "));

    let pool = PgPool::connect(database.url()).await.unwrap();
    let given = PostgresStore::from_pool(pool.clone()).await.unwrap();
    let told = refusal(&given, database.url()).await;
    assert!(told.contains("`PgPool::set_connect_options`"), "{told}");
    drop(given);
    pool.close().await;

    let file = SqliteStore::in_memory().await.unwrap();
    assert!(refusal(&file, database.url()).await.contains("has no credentials"));
}
