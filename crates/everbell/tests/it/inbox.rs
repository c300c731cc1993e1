//! Requests that other programs write with plain SQL, in their own transactions.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use everbell::{Everbell, JobStatus, Payload, Schedule, State, StoreError, TraceContext};
use everbell_store::testing::{TestDatabase, execute};
use serde_json::json;
use sqlx::{Connection, PgConnection};

use crate::given::{trail, within};

/// The users that handlers were called for, on any instance.
#[derive(Clone, Default)]
pub(crate) struct Users(Arc<Mutex<Vec<u64>>>);

impl Users {
    /// Returns the users in order.
    pub(crate) fn sorted(&self) -> Vec<u64> {
        let mut users = self.0.lock().unwrap().clone();
        users.sort_unstable();
        users
    }
}

#[derive(serde::Deserialize)]
struct Reminder {
    user: u64,
}

async fn remind(Payload(reminder): Payload<Reminder>, State(users): State<Users>) {
    users.0.lock().unwrap().push(reminder.user);
}

pub(crate) async fn bell(url: &str, users: &Users) -> Everbell {
    Everbell::builder().database(url).state(users.clone()).target("remind", remind).build().await.unwrap()
}

/// Waits until this is so.
pub(crate) async fn until<F: Future<Output = bool>>(is_so: impl Fn() -> F) {
    within(async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

async fn two_engines_answer(url: &str, wanted: &'static str, rolled_back: &'static str, other: &'static str) {
    let users = Users::default();
    let (one, two) = (bell(url, &users).await, bell(url, &users).await);
    let steps = async {
        execute(url, wanted).await;
        execute(url, rolled_back).await;
        execute(url, other).await;
        let jobs = one.jobs();
        until(|| async { jobs.refused_requests(10).await.unwrap().len() == 3 }).await;
        until(|| async { users.0.lock().unwrap().len() >= 21 }).await;
        let refused = jobs.refused_requests(10).await.unwrap();
        let told: Vec<_> = refused.iter().rev().map(|refused| refused.reason.as_str()).collect();
        assert!(told[0].contains("later") && told[0].contains("has not finished"), "{told:?}");
        assert!(told[1].contains("unknown time zone"), "{told:?}");
        assert!(told[2].contains("target `remind` cannot read the payload"), "{told:?}");

        let later = jobs.get("later").await.unwrap();
        assert_eq!(later.job.state.status, JobStatus::Active);
        // The databases write spaces as they like.
        assert_eq!(later.job.definition.payload.as_str().replace(' ', ""), r#"{"user":8}"#);
        let trace = later.job.definition.trace_context.as_ref().map(TraceContext::trace_id);
        assert_eq!(trace, Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        let daily = jobs.get("daily").await.unwrap();
        assert_eq!(daily.job.definition.spec.as_ref().unwrap().zone().name(), "Europe/Paris");
        assert!(matches!(jobs.get("never").await, Err(StoreError::NotFound { .. })));
        let trail = trail(&**one.store()).await;
        assert!(
            trail.iter().any(|line| line.starts_with("sql") && line.contains("job.enqueue job:later")),
            "{trail:?}"
        );
        assert!(trail.iter().any(|line| line.starts_with("sql") && line.contains("inbox.refuse inbox:")), "{trail:?}");
    };
    let (done, mut ended) = tokio::sync::watch::channel(false);
    let first = one.run_until(async {
        steps.await;
        done.send_replace(true);
    });
    let second = two.run_until(async { drop(ended.wait_for(|done| *done).await) });
    let (first, second) = within(Box::pin(async { tokio::join!(first, second) })).await;
    first.unwrap();
    second.unwrap();
    assert_eq!(users.sorted(), (100..121).collect::<Vec<_>>(), "each once, and nothing that was rolled back");
}

const WANTED: &str = r#"begin;
select everbell.enqueue('remind', jsonb_build_object('user', n)) from generate_series(100, 119) n;
select everbell.enqueue('remind', '{"user": 8}', clock_timestamp() + interval '1 hour', 'later',
                        '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01');
select everbell.schedule('daily', '0 8 * * *', 'remind', 'Europe/Paris', '{"user": 9}');
select everbell.enqueue('remind', '{"user": 120}', key => 'no-trace', traceparent => 'no such thing');
commit"#;
const ROLLED_BACK: &str = r#"begin;
select everbell.enqueue('remind', '{"user": 666}', null, 'never');
rollback"#;
const REFUSED: &str = r#"
select everbell.enqueue('remind', '{"user": 8}', null, 'later');
select everbell.schedule('broken', '0 8 * * *', 'remind', 'Europe/Pari', '{"user": 9}');
select everbell.enqueue(target => 'remind', payload => '{"name": "Ana"}')"#;

#[tokio::test]
async fn plain_sql_on_postgres() {
    let database = TestDatabase::create().await;
    Box::pin(two_engines_answer(database.url(), WANTED, ROLLED_BACK, REFUSED)).await;
}

/// A batch in which bad requests stand between good ones: each gets its answer, and none keeps the others waiting.
async fn bad_ones_between_good_ones(url: &str, batch: &'static str, last: &str) {
    let users = Users::default();
    let damaged = bell(url, &users).await;
    damaged
        .jobs()
        .create(Schedule::cron("damaged", "@daily").target("remind").payload(json!({ "user": 1 })))
        .await
        .unwrap();
    drop(damaged);
    execute(url, "update everbell.jobs set policies = '{' where job_key = 'damaged'").await;
    execute(url, batch).await;
    // Another one, which has not read the job before.
    let bell = bell(url, &users).await;
    let steps = async {
        until(|| async { users.0.lock().unwrap().len() >= 4 }).await;
        until(|| async { bell.store().open_inbox(10, &[]).await.unwrap().is_empty() }).await;
    };
    within(bell.run_until(steps)).await.unwrap();
    assert_eq!(users.sorted(), [200, 201, 202, 203], "each once");
    let refused = bell.jobs().refused_requests(10).await.unwrap();
    let told: Vec<_> = refused.iter().rev().map(|refused| refused.reason.as_str()).collect();
    assert_eq!(told.len(), 7, "{told:?}");
    assert!(told[0].contains("stored data cannot be read"), "{told:?}");
    assert!(told[1].contains("cronExpression"), "{told:?}");
    assert!(told[2].contains("target") && !told[2].contains("unknown"), "{told:?}");
    assert!(told[3].starts_with("cronExpression: is required"), "{told:?}");
    assert!(told[4].contains("jobKey: must be 1 to 200 bytes long, not 12800"), "{told:?}");
    assert!(told[5].contains("jobKey: must not contain control characters"), "{told:?}");
    assert!(told[6..].iter().all(|told| told.contains(last)), "{told:?}");
    // No instance serves it, and none may ever have: an instance that does may come.
    let later = bell.jobs().get("fax-1").await.unwrap();
    assert_eq!((later.status(), later.job.definition.target.as_str()), (JobStatus::Active, "fax"));
}

const BETWEEN: &str = r#"
select everbell.enqueue('remind', '{"user": 200}');
select everbell.enqueue('remind', '{"user": 666}', null, 'damaged');
select everbell.enqueue('remind', '{"user": 201}');
select everbell.schedule('broken', '61 8 * * *', 'remind', 'Europe/Paris', '{"user": 9}');
select everbell.enqueue('remind', '{"user": 202}');
select everbell.enqueue('fax', '{"user": 7}', null, 'fax-1');
select everbell.enqueue('', '{"user": 9}');
select everbell.schedule('no-cron', null, 'remind', payload => '{"user": 667}');
select everbell.enqueue('remind', '{"user": 668}', key => (select string_agg(md5(n::text), '') from generate_series(1, 400) n));
select everbell.enqueue('remind', '{"user": 669}', key => E'two\nlines');
select everbell.schedule('neither', null, 'remind', null, '{"user": 670}');
select everbell.enqueue('remind', '{"user": 203}')"#;

#[tokio::test]
async fn bad_requests_between_good_ones_on_postgres() {
    let database = TestDatabase::create().await;
    Box::pin(bad_ones_between_good_ones(database.url(), BETWEEN, "cronExpression: is required")).await;
}

#[tokio::test]
async fn bad_requests_between_good_ones_on_sqlite() {
    let folder = std::env::temp_dir().join(format!("everbell-bad-inbox-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let url = format!("sqlite:{}", folder.join("everbell.db").display());
    Box::pin(bad_ones_between_good_ones(&url, SQLITE_BETWEEN, "payload")).await;
    std::fs::remove_dir_all(folder).unwrap();
}

/// More requests whose keys an open transaction holds than an instance waits for in one look.
#[tokio::test]
async fn requests_whose_keys_are_locked_do_not_hold_up_the_others() {
    let database = TestDatabase::create().await;
    let users = Users::default();
    let bell = bell(database.url(), &users).await;
    let mut connection = PgConnection::connect(database.url()).await.unwrap();
    let mut tx = connection.begin().await.unwrap();
    let later = bell.now() + Duration::from_hours(1);
    for n in 0..8 {
        let held = Schedule::once(format!("held-{n}"), later).target("remind").payload(json!({ "user": 1 }));
        bell.jobs().create_in(&mut tx, &held).await.unwrap();
    }
    let ask = r#"
select everbell.enqueue('remind', '{"user": 300}', key => 'held-' || n) from generate_series(0, 7) n;
select everbell.enqueue('remind', jsonb_build_object('user', n)) from generate_series(400, 404) n"#;
    execute(database.url(), ask).await;
    let steps = async {
        until(|| async { users.0.lock().unwrap().len() >= 5 }).await;
        assert_eq!(users.sorted(), [400, 401, 402, 403, 404], "the others are still locked");
        tx.rollback().await.unwrap();
        until(|| async { users.0.lock().unwrap().len() == 13 }).await;
        until(|| async { bell.store().open_inbox(10, &[]).await.unwrap().is_empty() }).await;
    };
    within(bell.run_until(steps)).await.unwrap();
    assert_eq!(bell.jobs().refused_requests(10).await.unwrap(), []);
}

#[tokio::test]
async fn plain_sql_in_another_schema() {
    let database = TestDatabase::empty().await;
    let url = format!("{}{}schema=clock", database.url(), if database.url().contains('?') { '&' } else { '?' });
    let users = Users::default();
    let bell = bell(&url, &users).await;
    let steps = async {
        execute(database.url(), r#"select clock.enqueue('remind', '{"user": 7}')"#).await;
        until(|| async { *users.0.lock().unwrap() == [7] }).await;
    };
    within(bell.run_until(steps)).await.unwrap();
}

const SQLITE_WANTED: &str = r#"begin immediate;
insert into everbell_inbox (target, payload)
  with recursive n (n) as (select 100 union all select n + 1 from n where n < 119) select 'remind', '{"user":' || n || '}' from n;
insert into everbell_inbox (target, payload, run_at, key, traceparent)
  values ('remind', '{"user":8}', '2199-01-01T00:00:00Z', 'later', '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01');
insert into everbell_inbox (target, payload, key, cron, timezone) values ('remind', '{"user":9}', 'daily', '0 8 * * *', 'Europe/Paris');
insert into everbell_inbox (target, payload, key, traceparent) values ('remind', '{"user":120}', 'no-trace', 'no such thing');
commit"#;
const SQLITE_ROLLED_BACK: &str = r#"begin immediate;
insert into everbell_inbox (target, payload, key) values ('remind', '{"user":666}', 'never');
rollback"#;
const SQLITE_REFUSED: &str = r#"
insert into everbell_inbox (target, payload, key) values ('remind', '{"user":8}', 'later');
insert into everbell_inbox (target, payload, key, cron, timezone) values ('remind', '{"user":9}', 'broken', '0 8 * * *', 'Europe/Pari');
insert into everbell_inbox (target, payload) values ('remind', '{"name":"Ana"}')"#;

const SQLITE_BETWEEN: &str = r#"
insert into everbell_inbox (target, payload, key, cron, timezone) values
  ('remind', '{"user":200}', null, null, null),
  ('remind', '{"user":666}', 'damaged', null, null),
  ('remind', '{"user":201}', null, null, null),
  ('remind', '{"user":9}', 'broken', '61 8 * * *', 'Europe/Paris'),
  ('remind', '{"user":202}', null, null, null),
  ('fax', '{"user":7}', 'fax-1', null, null),
  ('', '{"user":9}', null, null, null),
  ('remind', '{"user":667}', 'no-cron', null, 'UTC'),
  ('remind', '{"user":668}', hex(randomblob(6400)), null, null),
  ('remind', '{"user":669}', 'two' || char(10) || 'lines', null, null),
  ('remind', cast(x'7b2275736572223aff7d' as text), null, null, null),
  ('remind', '{"user":203}', null, null, null)"#;

#[tokio::test]
async fn plain_sql_on_sqlite() {
    let folder = std::env::temp_dir().join(format!("everbell-inbox-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let url = format!("sqlite:{}", folder.join("everbell.db").display());
    Box::pin(two_engines_answer(&url, SQLITE_WANTED, SQLITE_ROLLED_BACK, SQLITE_REFUSED)).await;
    std::fs::remove_dir_all(folder).unwrap();
}
