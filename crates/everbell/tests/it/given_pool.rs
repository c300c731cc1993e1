//! Everbell in a pool of the application.

use std::sync::Arc;
use std::time::Duration;

use everbell::{EngineOptions, Event, Everbell, JobFilter, Payload, RunError, RunStatus, Schedule};
use everbell_store::testing::TestDatabase;
use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio::sync::Notify;

use crate::given::{heard, within};

/// A pool of an application that has its own ideas about sessions.
async fn pool_of(database: &TestDatabase, size: u32) -> PgPool {
    let options = database.url().parse::<PgConnectOptions>().unwrap().application_name("shop").options([
        ("statement_timeout", "123s"),
        ("search_path", "shop"),
        ("default_transaction_isolation", "serializable"),
        ("default_transaction_read_only", "on"),
    ]);
    let name = "set application_name = 'pool of the shop'";
    // Only here: the listener has a connection of its own, with the options of the pool.
    let pool = PgPoolOptions::new().max_connections(size).after_connect(move |connection, _| {
        // Not as a query, which would stay prepared.
        Box::pin(async move { sqlx::raw_sql(name).execute(connection).await.map(|_| ()) })
    });
    pool.connect_with(options).await.unwrap()
}

async fn double(Payload(number): Payload<u32>) -> Result<u32, RunError> {
    Ok(number * 2)
}

async fn bell(pool: &PgPool) -> Everbell {
    let yearly = Schedule::cron("yearly", "0 0 1 1 *").target("double").payload(21);
    let options = EngineOptions::default().poll(Duration::from_mins(1));
    let builder = Everbell::builder().pool(pool.clone()).options(options).target("double", double);
    builder.schedule(yearly).build().await.unwrap()
}

/// The whole life of a run by hand, and of one by a timer.
async fn lives(bell: &Everbell) {
    let (mut events, running) = (bell.events(), bell.start());
    let asked = bell.jobs().run_now("yearly").await.unwrap().run().id;
    heard(&mut events, |event| matches!(event, Event::Finished { run, .. } if run.id == asked)).await;
    let done = bell.runs().get(asked).await.unwrap();
    assert_eq!((done.status, done.result.unwrap().as_str()), (RunStatus::Succeeded, "42"));
    let soon = bell.now() + Duration::from_millis(700);
    bell.jobs().create(Schedule::once("soon", soon).target("double").payload(1)).await.unwrap();
    let is_soon = |event: &Event| matches!(event, Event::Finished { run, .. } if run.job.as_ref().is_some_and(|job| job.as_str() == "soon"));
    heard(&mut events, is_soon).await;
    within(running.shutdown()).await.unwrap();
}

#[tokio::test]
async fn runs_live_in_the_pool_and_leave_its_sessions_as_they_were() {
    let database = TestDatabase::create().await;
    let pool = pool_of(&database, 4).await;
    lives(&bell(&pool).await).await;
    let mut all = Vec::new();
    for _ in 0..4 {
        let mut connection = pool.acquire().await.unwrap();
        for (setting, value) in [
            ("application_name", "pool of the shop"),
            ("statement_timeout", "123s"),
            ("lock_timeout", "0"),
            ("idle_in_transaction_session_timeout", "0"),
            ("search_path", "shop"),
            ("enable_seqscan", "on"),
            ("plan_cache_mode", "auto"),
            ("transaction_isolation", "serializable"),
            ("transaction_read_only", "on"),
        ] {
            let shown = sqlx::query_scalar("select current_setting($1)").bind(setting).persistent(false);
            let shown: String = shown.fetch_one(&mut *connection).await.unwrap();
            let value = if setting == "statement_timeout" { "123s".to_owned() } else { value.to_owned() };
            assert_eq!((setting, shown.replace("2min 3s", "123s")), (setting, value));
        }
        let prepared = sqlx::query_scalar("select statement from pg_prepared_statements").persistent(false);
        let prepared: Vec<String> = prepared.fetch_all(&mut *connection).await.unwrap();
        assert_eq!(prepared, Vec::<String>::new());
        all.push(connection);
    }
    drop(all);
    pool.close().await;
}

#[tokio::test]
async fn a_pool_of_one_is_enough() {
    let database = TestDatabase::create().await;
    let pool = pool_of(&database, 1).await;
    lives(&bell(&pool).await).await;
    pool.close().await;
}

#[tokio::test]
async fn the_application_keeps_its_half_while_many_runs_are_at_work() {
    const RUNS: usize = 60;
    let database = TestDatabase::create().await;
    let pool = pool_of(&database, 4).await;
    let bell = bell(&pool).await;
    let (mut events, running) = (bell.events(), bell.start());
    let done = Arc::new(Notify::new());
    let (over, shop) = (Arc::clone(&done), pool.clone());
    // Two at once, again and again: both are always to be had.
    let shop = tokio::spawn(async move {
        let mut served = 0_u32;
        let mut over = std::pin::pin!(over.notified());
        loop {
            let (mut one, mut other) = (shop.acquire().await.unwrap(), shop.acquire().await.unwrap());
            let working = "select count(*) from pg_stat_activity
                           where application_name = 'pool of the shop' and state <> 'idle' and datname = current_database()";
            let working: i64 = sqlx::query_scalar(working).fetch_one(&mut *one).await.unwrap();
            assert!(working <= 3, "at most two are borrowed: {working}");
            sqlx::query("select 1").execute(&mut *other).await.unwrap();
            served += 1;
            if is_over(&mut over).await {
                return served;
            }
        }
    });
    for _ in 0..RUNS {
        bell.jobs().run_now("yearly").force().await.unwrap();
    }
    for _ in 0..RUNS {
        heard(&mut events, |event| matches!(event, Event::Finished { .. })).await;
    }
    done.notify_one();
    assert!(within(shop).await.unwrap() > 0);
    within(running.shutdown()).await.unwrap();
    pool.close().await;
}

/// Whether it has happened by now.
async fn is_over(over: &mut std::pin::Pin<&mut tokio::sync::futures::Notified<'_>>) -> bool {
    tokio::time::timeout(Duration::from_millis(1), over).await.is_ok()
}

#[tokio::test]
async fn transactions_need_no_second_connection() {
    let database = TestDatabase::create().await;
    let pool = pool_of(&database, 2).await;
    let bell = bell(&pool).await;
    let later = bell.now() + Duration::from_hours(1);
    let writable = "set transaction read write";
    let (mut one, mut other) = (pool.begin().await.unwrap(), pool.begin().await.unwrap());
    for (tx, key) in [(&mut one, "one"), (&mut other, "other")] {
        sqlx::query(writable).execute(&mut **tx).await.unwrap();
        // Unknown here, so that everything is read that there is to know about targets.
        let unknown = Schedule::once(key, later).target("unknown");
        let error = bell.jobs().create_in(tx, &unknown).await.unwrap_err().to_string();
        assert!(error.starts_with("target: unknown target `unknown`"), "{error}");
        bell.jobs().create_in(tx, &Schedule::once(key, later).target("double").payload(1)).await.unwrap();
    }
    one.commit().await.unwrap();
    other.commit().await.unwrap();
    assert_eq!(bell.jobs().count(&JobFilter::default(), 10).await.unwrap(), 3);
    pool.close().await;
}

#[tokio::test]
async fn a_closed_pool_is_named_and_the_engine_ends_in_order() {
    let database = TestDatabase::create().await;
    let pool = pool_of(&database, 4).await;
    let bell = bell(&pool).await;
    let running = bell.start();
    within(pool.close()).await;
    let error = bell.jobs().get("yearly").await.unwrap_err().to_string();
    assert!(error.contains("the application has closed the pool that it gave to everbell"), "{error}");
    let error = bell.jobs().run_now("yearly").await.unwrap_err();
    assert!(!matches!(error, everbell::StoreError::Unavailable { maybe_done: true, .. }), "nothing was sent: {error}");
    within(running.shutdown()).await.unwrap();
    let error = Everbell::builder().pool(pool).build().await.unwrap_err().to_string();
    assert!(error.contains("closed the pool"), "{error}");
}

/// An application that rotates its password tells its pool, and expects that everbell connects like that too.
#[tokio::test]
async fn the_listener_connects_again_as_the_pool_does_by_then() {
    let database = TestDatabase::create().await;
    let options: PgConnectOptions = database.url().parse().unwrap();
    let pool = PgPoolOptions::new().max_connections(4).connect_with(options.clone().application_name("before"));
    let pool = pool.await.unwrap();
    let bell = bell(&pool).await;
    let listeners = async |name: &str| {
        let count = sqlx::query_scalar::<_, i64>(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity
             where datname = current_database() and application_name = $1 and query ilike 'listen %'",
        );
        count.bind(name).fetch_one(&pool).await.unwrap()
    };
    pool.set_connect_options(options.application_name("after"));
    let found = async {
        while listeners("before").await == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        while listeners("after").await == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    within(found).await;
    drop(bell);
    pool.close().await;
}
