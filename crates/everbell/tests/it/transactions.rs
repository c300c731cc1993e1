//! Jobs and runs that are written in a transaction of the application.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use everbell::{
    EngineOptions, Event, Everbell, JobRow, JobStatus, OrgId, OrgWrite, Payload, RunError, RunNow, RunStatus, Schedule,
    StoreError, StoreResult, Timestamp,
};
use everbell_store::testing::TestDatabase;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, PgPool, Postgres, Sqlite, SqlitePool, Transaction};
use tokio::time::Instant;

use crate::given::{heard, trail};

/// A wake-up takes a moment, also on a busy machine; the loops poll once in a minute.
const WAKE_TIME: Duration = Duration::from_secs(20);

/// An application with a table of its own beside everbell.
pub(crate) struct App {
    pub(crate) bell: Everbell,
    pub(crate) pool: Pool,
    /// Gone with the test.
    _database: Option<TestDatabase>,
    folder: Option<PathBuf>,
}

pub(crate) enum Pool {
    Postgres(PgPool),
    Sqlite(SqlitePool),
}

enum Tx {
    Postgres(Transaction<'static, Postgres>),
    Sqlite(Transaction<'static, Sqlite>),
}

pub(crate) async fn double(Payload(number): Payload<u32>) -> Result<u32, RunError> {
    Ok(number * 2)
}

/// Loops that poll so rarely that only a wake-up explains what they notice.
async fn bell(url: &str) -> Everbell {
    let yearly = Schedule::cron("yearly", "0 0 1 1 *").target("double").payload(21);
    let options = EngineOptions::default().poll(Duration::from_mins(1));
    Everbell::builder().database(url).options(options).target("double", double).schedule(yearly).build().await.unwrap()
}

pub(crate) fn folder() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("everbell-tx-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

impl App {
    pub(crate) async fn postgres() -> App {
        let database = TestDatabase::create().await;
        // Nothing of everbell is to be found there.
        let options = database.url().parse::<PgConnectOptions>().unwrap().options([("search_path", "shop")]);
        let pool = PgPoolOptions::new().max_connections(2).connect_with(options).await.unwrap();
        sqlx::raw_sql("create schema shop; create table orders (id integer)").execute(&pool).await.unwrap();
        let bell = bell(database.url()).await;
        App { bell, pool: Pool::Postgres(pool), _database: Some(database), folder: None }
    }

    pub(crate) async fn sqlite() -> App {
        let folder = folder();
        let file = folder.join("app.db");
        let bell = bell(&format!("sqlite:{}", file.display())).await;
        let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(&file)).await.unwrap();
        sqlx::raw_sql("create table orders (id integer)").execute(&pool).await.unwrap();
        App { bell, pool: Pool::Sqlite(pool), _database: None, folder: Some(folder) }
    }

    async fn begin(&self) -> Tx {
        match &self.pool {
            Pool::Postgres(pool) => Tx::Postgres(pool.begin().await.unwrap()),
            Pool::Sqlite(pool) => Tx::Sqlite(pool.begin().await.unwrap()),
        }
    }

    async fn orders(&self) -> i64 {
        let count = "select count(*) from orders";
        match &self.pool {
            Pool::Postgres(pool) => sqlx::query_scalar(count).fetch_one(pool).await.unwrap(),
            Pool::Sqlite(pool) => sqlx::query_scalar(count).fetch_one(pool).await.unwrap(),
        }
    }

    /// The audit entries of a job.
    async fn trail(&self, key: &str) -> Vec<String> {
        let object = format!(" job:{key} ");
        let entries = trail(&**self.bell.store()).await.into_iter().filter(|line| line.contains(&object));
        entries.map(|line| line.split(&object).next().unwrap().to_owned()).collect()
    }

    async fn exists(&self, key: &str) -> bool {
        match self.bell.jobs().get(key).await {
            Ok(_) => true,
            Err(StoreError::NotFound { .. }) => false,
            Err(other) => panic!("{other}"),
        }
    }
}

impl Drop for App {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            // What is left in a folder for temporary files does not fail a test.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

impl Tx {
    async fn order(&mut self) {
        let insert = "insert into orders values (1)";
        match self {
            Tx::Postgres(tx) => drop(sqlx::query(insert).execute(&mut **tx).await.unwrap()),
            Tx::Sqlite(tx) => drop(sqlx::query(insert).execute(&mut **tx).await.unwrap()),
        }
    }

    /// The connection itself, as `&mut *tx` is for a caller.
    async fn create(&mut self, bell: &Everbell, schedule: &Schedule) -> StoreResult<JobRow> {
        let jobs = bell.jobs().by("web");
        match self {
            Tx::Postgres(tx) => jobs.create_in(&mut **tx, schedule).await,
            Tx::Sqlite(tx) => jobs.create_in(&mut **tx, schedule).await,
        }
    }

    async fn retire(&mut self, bell: &Everbell, key: &str) -> StoreResult<JobStatus> {
        let jobs = bell.jobs().by("web");
        let changed = match self {
            Tx::Postgres(tx) => jobs.retire_in(tx, key).await?,
            Tx::Sqlite(tx) => jobs.retire_in(tx, key).await?,
        };
        Ok(changed.job.status())
    }

    async fn run_now(&mut self, bell: &Everbell, payload: Option<&str>) -> StoreResult<RunNow> {
        let mut request = bell.jobs().by("web").run_now("yearly");
        if let Some(payload) = payload {
            request = request.payload(payload);
        }
        match self {
            Tx::Postgres(tx) => request.in_tx(tx).await,
            Tx::Sqlite(tx) => request.in_tx(tx).await,
        }
    }

    async fn commit(self) {
        match self {
            Tx::Postgres(tx) => tx.commit().await.unwrap(),
            Tx::Sqlite(tx) => tx.commit().await.unwrap(),
        }
    }

    async fn rollback(self) {
        match self {
            Tx::Postgres(tx) => tx.rollback().await.unwrap(),
            Tx::Sqlite(tx) => tx.rollback().await.unwrap(),
        }
    }
}

pub(crate) fn once(key: &str, at: Timestamp) -> Schedule {
    Schedule::once(key, at).target("double").payload(4)
}

fn soon(bell: &Everbell) -> Timestamp {
    bell.now() + Duration::from_millis(700)
}

fn is_run_of(key: &str) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::Finished { run, .. } if run.job.as_ref().is_some_and(|job| job.as_str() == key))
}

/// A test for each database, of a function that takes an [`App`].
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        $(mod $name {
            #[tokio::test]
            async fn postgres() {
                super::$name(super::App::postgres().await).await;
            }

            #[tokio::test]
            async fn sqlite() {
                super::$name(super::App::sqlite().await).await;
            }
        })+
    };
}

on_both! {
    a_job_fires_after_the_commit_and_never_after_a_rollback,
    a_job_that_was_due_before_the_commit_fires_at_once,
    a_run_by_hand_starts_with_the_commit,
    a_job_is_replaced_in_one_transaction,
    a_refusal_leaves_the_transaction_usable,
    a_job_for_each_org_is_a_part_of_the_transaction_too,
}

async fn a_job_fires_after_the_commit_and_never_after_a_rollback(app: App) {
    let bell = &app.bell;
    let (mut events, running) = (bell.events(), bell.start());
    let mut tx = app.begin().await;
    tx.order().await;
    tx.create(bell, &once("given-up", soon(bell))).await.unwrap();
    tx.rollback().await;

    let mut tx = app.begin().await;
    tx.order().await;
    let row = tx.create(bell, &once("kept", soon(bell))).await.unwrap();
    assert_eq!((row.key().as_str(), row.version(), row.status()), ("kept", 1, JobStatus::Active));
    assert!(!app.exists("kept").await, "nobody sees it before the commit");
    tx.commit().await;
    heard(&mut events, is_run_of("kept")).await;
    assert_eq!(app.orders().await, 1);
    assert_eq!(app.trail("kept").await, ["web job.create"]);
    assert_eq!((app.exists("given-up").await, app.trail("given-up").await.len()), (false, 0));
    running.shutdown().await.unwrap();
}

async fn a_job_that_was_due_before_the_commit_fires_at_once(app: App) {
    let bell = &app.bell;
    let (mut events, running) = (bell.events(), bell.start());
    let due = soon(bell);
    let mut tx = app.begin().await;
    tx.create(bell, &once("late", due)).await.unwrap();
    while bell.now() <= due {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tx.commit().await;
    let committed = Instant::now();
    heard(&mut events, is_run_of("late")).await;
    assert!(committed.elapsed() < WAKE_TIME, "the loops were woken, and did not poll");
    running.shutdown().await.unwrap();
}

async fn a_run_by_hand_starts_with_the_commit(app: App) {
    let bell = &app.bell;
    let (mut events, running) = (bell.events(), bell.start());
    let mut tx = app.begin().await;
    let given_up = tx.run_now(bell, None).await.unwrap().run().id;
    tx.rollback().await;

    let mut tx = app.begin().await;
    let RunNow::Started(run) = tx.run_now(bell, None).await.unwrap() else { panic!("nothing is active") };
    assert!(bell.runs().get(run.id).await.is_err(), "nobody sees it before the commit");
    tx.commit().await;
    let committed = Instant::now();
    heard(&mut events, |event| matches!(event, Event::Finished { run: done, .. } if done.id == run.id)).await;
    assert!(committed.elapsed() < WAKE_TIME, "the loops were woken, and did not poll");
    let done = bell.runs().get(run.id).await.unwrap();
    assert_eq!((done.status, done.result.unwrap().as_str()), (RunStatus::Succeeded, "42"));
    assert!(bell.runs().get(given_up).await.is_err());
    assert_eq!(app.trail("yearly").await[1..], ["web job.run_now"]);
    running.shutdown().await.unwrap();
}

async fn a_job_is_replaced_in_one_transaction(app: App) {
    let bell = &app.bell;
    let (old, new) = (bell.now() + Duration::from_hours(1), bell.now() + Duration::from_hours(2));
    bell.jobs().create(once("reminder", old)).await.unwrap();
    for commit in [false, true] {
        let mut tx = app.begin().await;
        assert_eq!(tx.retire(bell, "reminder").await.unwrap(), JobStatus::Retired);
        assert_eq!(tx.create(bell, &once("reminder", new)).await.unwrap().version(), 2);
        if commit {
            tx.commit().await;
        } else {
            tx.rollback().await;
        }
        let row = bell.jobs().get("reminder").await.unwrap();
        let (at, version) = if commit { (new, 2) } else { (old, 1) };
        assert_eq!((row.version(), row.status()), (version, JobStatus::Active));
        assert!(row.next_run_at().unwrap().duration_since(at).abs() < jiff::SignedDuration::from_secs(1));
    }
    assert_eq!(app.trail("reminder").await, ["code job.create", "web job.retire", "web job.create"]);
    let mut tx = app.begin().await;
    tx.create(bell, &once("short", new)).await.unwrap();
    tx.retire(bell, "short").await.unwrap();
    tx.commit().await;
    assert_eq!(bell.jobs().get("short").await.unwrap().status(), JobStatus::Retired);
}

async fn a_refusal_leaves_the_transaction_usable(app: App) {
    let bell = &app.bell;
    let later = bell.now() + Duration::from_hours(1);
    let mut tx = app.begin().await;
    tx.order().await;
    tx.create(bell, &once("twice", later)).await.unwrap();
    for (schedule, said) in [
        (once("twice", later), "conflict: creating job `twice`: a current job has this key"),
        (once("a", later).target("dubble"), "target: unknown target `dubble`; known: `double`"),
        (once("a", later).payload("four"), "payload: target `double` cannot read the payload of job `a`"),
        (once("a", bell.now() - Duration::from_secs(1)), "runAt: must be in the future"),
        (once("", later), "jobKey: must be 1 to 200 bytes long"),
    ] {
        let error = tx.create(bell, &schedule).await.unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
        assert!(!app.exists("a").await);
    }
    let error = tx.run_now(bell, Some("many")).await.unwrap_err().to_string();
    assert!(error.starts_with("payload: target `double` cannot read the payload"), "{error}");
    let error = tx.retire(bell, "unknown").await.unwrap_err();
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    tx.order().await;
    tx.commit().await;
    assert_eq!((app.orders().await, app.exists("twice").await), (2, true));
    assert_eq!(app.trail("twice").await, ["web job.create"]);
}

async fn a_job_for_each_org_is_a_part_of_the_transaction_too(app: App) {
    let bell = &app.bell;
    let acme = OrgId::new("acme").unwrap();
    let org = OrgWrite { timezone: Some("Europe/Paris".to_owned()), ..OrgWrite::new(acme.clone()) };
    bell.orgs().set(org).await.unwrap();
    let (mut events, running) = (bell.events(), bell.start());
    let mut tx = app.begin().await;
    let schedule = Schedule::cron("briefing", "* * * * * *").target("double").payload(3).per_org();
    tx.create(bell, &schedule).await.unwrap();
    tx.commit().await;
    heard(&mut events, is_run_of("briefing")).await;

    let asked = |bell: &Everbell| bell.jobs().run_now("briefing").for_org(&acme).force();
    let for_no_org = bell.jobs().run_now("yearly").for_org(&acme);
    let (run, refused) = match app.begin().await {
        Tx::Postgres(mut tx) => {
            let refused = for_no_org.in_tx(&mut tx).await.unwrap_err();
            let run = asked(bell).in_tx(&mut tx).await.unwrap().run().id;
            tx.commit().await.unwrap();
            (run, refused)
        }
        Tx::Sqlite(mut tx) => {
            let refused = for_no_org.in_tx(&mut tx).await.unwrap_err();
            let run = asked(bell).in_tx(&mut tx).await.unwrap().run().id;
            tx.commit().await.unwrap();
            (run, refused)
        }
    };
    assert!(matches!(refused, StoreError::Invalid(_)), "{refused}");
    heard(&mut events, |event| matches!(event, Event::Finished { run: done, .. } if done.id == run)).await;
    assert_eq!(bell.runs().get(run).await.unwrap().org, Some(acme));
    running.shutdown().await.unwrap();
}

/// On PostgreSQL two programs may have the same job in hand: the second waits, and decides by what the first wrote.
#[tokio::test]
async fn changes_in_two_transactions_follow_each_other() {
    let app = App::postgres().await;
    let Pool::Postgres(pool) = &app.pool else { unreachable!() };
    let mut first = pool.begin().await.unwrap();
    app.bell.jobs().pause("yearly", "first").in_tx(&mut first).await.unwrap();
    let (bell, mut second) = (app.bell.clone(), pool.begin().await.unwrap());
    // In a task of its own, so that its future must be `Send`.
    let waiting = tokio::spawn(async move {
        let changed = bell.jobs().retire_in(&mut second, "yearly").await;
        second.commit().await.unwrap();
        changed
    });
    let is_blocked = "select exists (select from pg_stat_activity where wait_event_type = 'Lock'
                      and datname = current_database())";
    while !sqlx::query_scalar::<_, bool>(AssertSqlSafe(is_blocked)).fetch_one(&mut *first).await.unwrap() {
        tokio::task::yield_now().await;
    }
    first.commit().await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().job.status(), JobStatus::Retired);
    assert_eq!(app.trail("yearly").await[1..], ["code job.pause", "code job.retire"]);
}
