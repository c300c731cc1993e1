//! Calls in a transaction of the application whose future is dropped half-way, or whose transaction the database undoes.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use everbell::{AppConnection, Everbell, StoreError};
use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgSslMode};
use tokio::net::{TcpListener, UnixStream};

use crate::given::within;
use crate::transactions::{App, Pool, once};

/// More than any call here needs.
const MAX_STEPS: usize = 200;

/// Polls a future until it has waited this many times, and then drops it. Returns `None` if it was dropped.
async fn dropped_after<T>(waits: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut waited = 0;
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending if waited == waits => Poll::Ready(None),
        Poll::Pending => {
            waited += 1;
            Poll::Pending
        }
    })
    .await
}

/// Begins to create a job, drops that, and goes on with the transaction. Returns whether the job was created.
async fn begin_to_create<C: AppConnection>(bell: &Everbell, tx: &mut C, waits: usize) -> bool {
    let schedule = once(&key(waits), bell.now() + Duration::from_hours(1));
    dropped_after(waits, bell.jobs().create_in(tx, &schedule)).await.map(Result::unwrap).is_some()
}

fn key(waits: usize) -> String {
    format!("dropped-{waits}")
}

async fn exists(bell: &Everbell, waits: usize) -> bool {
    match bell.jobs().get(key(waits).as_str()).await {
        Ok(_) => true,
        Err(StoreError::NotFound { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Two orders around a call that is dropped after each possible number of waits: both orders, or none and an error. Returns
/// how many calls were dropped.
async fn drop_at_each_wait(
    bell: &Everbell,
    one: impl AsyncFn(usize) -> (bool, sqlx::Result<()>),
    orders: impl AsyncFn() -> i64,
) -> usize {
    let (mut seen, mut spoiled) = (0, 0);
    for waits in 0..MAX_STEPS {
        let (created, committed) = one(waits).await;
        let new = orders().await - seen;
        seen += new;
        assert_eq!(new, if committed.is_ok() { 2 } else { 0 }, "after {waits} waits: {committed:?}");
        spoiled += usize::from(committed.is_err());
        assert!(spoiled <= 1, "only a call that is dropped while it ends may spoil the transaction: {committed:?}");
        if created {
            assert!(exists(bell, waits).await);
            return waits;
        }
    }
    panic!("the call does not end");
}

/// A way to the database that answers only when the caller waits, so that each answer is waited for.
async fn slow_way(options: PgConnectOptions) -> PgConnectOptions {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let socket = options.get_socket().unwrap().join(format!(".s.PGSQL.{}", options.get_port()));
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut server = UnixStream::connect(&socket).await.unwrap();
            // It ends with either side.
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut server).await });
        }
    });
    let through = PgConnectOptions::new_without_pgpass().host("127.0.0.1").port(port).ssl_mode(PgSslMode::Disable);
    through.username(options.get_username()).database(options.get_database().unwrap())
}

#[tokio::test]
async fn a_dropped_call_never_splits_the_transaction_on_postgres() {
    let app = App::postgres().await;
    let Pool::Postgres(pool) = &app.pool else { panic!("it is PostgreSQL") };
    let way = slow_way((*pool.connect_options()).clone()).await;
    let pool = PgPoolOptions::new().max_connections(1).connect_with(way).await.unwrap();
    let one = async |waits: usize| {
        let mut tx = pool.begin().await.unwrap();
        sqlx::query("insert into shop.orders values (1)").execute(&mut *tx).await.unwrap();
        let created = begin_to_create(&app.bell, &mut tx, waits).await;
        let more = sqlx::query("insert into shop.orders values (2)").execute(&mut *tx).await;
        (created, if let Err(error) = more { Err(error) } else { tx.commit().await })
    };
    let orders = async || sqlx::query_scalar("select count(*) from shop.orders").fetch_one(&pool).await.unwrap();
    let dropped = Box::pin(within(drop_at_each_wait(&app.bell, one, orders))).await;
    assert!(dropped > 5, "its beginning, its statements and its end: {dropped}");
    pool.close().await;
}

#[tokio::test]
async fn a_dropped_call_never_splits_the_transaction_on_sqlite() {
    let app = App::sqlite().await;
    let Pool::Sqlite(pool) = &app.pool else { panic!("it is SQLite") };
    let one = async |waits: usize| {
        let mut tx = pool.begin_with("begin immediate").await.unwrap();
        sqlx::query("insert into orders values (1)").execute(&mut *tx).await.unwrap();
        let created = begin_to_create(&app.bell, &mut tx, waits).await;
        let more = sqlx::query("insert into orders values (2)").execute(&mut *tx).await;
        (created, if let Err(error) = more { Err(error) } else { tx.commit().await })
    };
    let orders = async || sqlx::query_scalar("select count(*) from orders").fetch_one(pool).await.unwrap();
    let dropped = Box::pin(within(drop_at_each_wait(&app.bell, one, orders))).await;
    assert!(dropped > 0, "its beginning at least");
}

/// A deadlock is as the guide says: its error is one to repeat the transaction after, and repeating it works.
#[tokio::test]
async fn a_deadlock_is_told_as_a_lock_and_the_transaction_can_be_repeated() {
    let app = App::postgres().await;
    let Pool::Postgres(pool) = &app.pool else { panic!("it is PostgreSQL") };
    sqlx::query("insert into orders values (1)").execute(pool).await.unwrap();
    let bell = &app.bell;
    // Only this session finds a deadlock, so it is always the one that is sent away.
    let mut ours = pool.begin().await.unwrap();
    sqlx::query("set local deadlock_timeout = '50ms'").execute(&mut *ours).await.unwrap();
    sqlx::query("update orders set id = 2").execute(&mut *ours).await.unwrap();
    let mut theirs = pool.begin().await.unwrap();
    sqlx::query("set local deadlock_timeout = '1min'").execute(&mut *theirs).await.unwrap();
    bell.jobs().pause("yearly", "theirs").in_tx(&mut theirs).await.unwrap();
    let backend: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut *theirs).await.unwrap();
    let waiting = tokio::spawn(async move {
        sqlx::query("update orders set id = 3").execute(&mut *theirs).await.unwrap();
        theirs.commit().await.unwrap();
    });
    let blocked = format!("select cardinality(pg_blocking_pids({backend})) > 0");
    while !sqlx::query_scalar::<_, bool>(AssertSqlSafe(blocked.clone())).fetch_one(&mut *ours).await.unwrap() {
        tokio::task::yield_now().await;
    }
    let error = bell.jobs().retire_in(&mut ours, "yearly").await.unwrap_err();
    assert!(error.is_locked() && error.to_string().contains("conflict with another transaction, try again"), "{error}");
    ours.rollback().await.unwrap();
    within(waiting).await.unwrap();

    let mut again = pool.begin().await.unwrap();
    sqlx::query("update orders set id = 2").execute(&mut *again).await.unwrap();
    bell.jobs().retire_in(&mut again, "yearly").await.unwrap();
    again.commit().await.unwrap();
    assert_eq!(bell.jobs().get("yearly").await.unwrap().status().as_str(), "retired");
}
