//! Jobs as a queue: enqueue, keep, replace, many; and purge.

use std::sync::Arc;
use std::time::Duration;

use everbell::client::EnqueueOutcome;
use everbell::core::store::RequestKey;
use everbell::testing::TestBell;
use everbell::{
    Backoff, Event, Everbell, JobFilter, JobStatus, OnLost, Payload, RunError, RunStatus, Schedule, TypedTarget,
};
use everbell_store::testing::TestDatabase;
use serde::{Deserialize, Serialize};
use sqlx::PgPool;

use crate::given::{self, Manual, Real, Stored, at, daily, heard, nothing, on_every_store, page, time, trail, within};

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Reminder {
    user: u64,
}

const REMIND: TypedTarget<Reminder> = TypedTarget::new("remind");

async fn remind(Payload(reminder): Payload<Reminder>) -> Result<u64, RunError> {
    Ok(reminder.user)
}

async fn bell_on(stored: &Stored) -> (Everbell, Arc<Manual>) {
    let clock = Manual::new("12:00");
    let builder = at(stored, &clock).target(REMIND, remind).target("nothing", nothing);
    (builder.build().await.unwrap(), clock)
}

on_every_store!(
    a_key_is_kept_replaced_or_refused,
    a_finished_job_gives_way,
    many_are_enqueued_together,
    a_purge_is_told_without_the_payload,
);

async fn a_key_is_kept_replaced_or_refused(stored: Stored) {
    let (bell, _) = bell_on(&stored).await;
    let jobs = bell.jobs().by("ana");
    let first = jobs.enqueue(REMIND, &Reminder { user: 7 }).at(time("13:00")).key("reminder").await.unwrap();
    assert_eq!((first.outcome, first.job.next_run_at()), (EnqueueOutcome::Created, Some(time("13:00"))));
    let error = jobs.enqueue(REMIND, &Reminder { user: 8 }).key("reminder").await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert!(error.to_string().contains("`keep`") && error.to_string().contains("`replace`"), "{error}");
    let kept = jobs.enqueue(REMIND, &Reminder { user: 8 }).key("reminder").keep().await.unwrap();
    assert_eq!((kept.outcome, kept.is_new()), (EnqueueOutcome::Kept, false));
    assert_eq!(kept.job.job, first.job.job);

    let other = jobs.enqueue("remind", &Reminder { user: 9 }).key("reminder").replace();
    let other = other.at(time("14:00")).retry(3, Backoff::default()).on_lost(OnLost::Retry).label("team", "sales");
    let replaced = other.timeout(Duration::from_secs(5)).await.unwrap();
    assert_eq!((replaced.outcome, replaced.job.next_run_at()), (EnqueueOutcome::Replaced, Some(time("14:00"))));
    let definition = &replaced.job.job.definition;
    assert_eq!((definition.version, definition.payload.as_str()), (2, r#"{"user":9}"#));
    assert_eq!((definition.policies.max_attempts, definition.labels["team"].as_str()), (3, "sales"));
    let told = trail(&*stored.store).await;
    assert!(
        told[0].starts_with("ana job.enqueue job:reminder -> ") && told[1].starts_with("ana job.replace "),
        "{told:?}"
    );

    bell.jobs().create(daily("recurring")).await.unwrap();
    for enqueue in [jobs.enqueue("nothing", &()).keep(), jobs.enqueue("nothing", &()).replace()] {
        let error = enqueue.key("recurring").await.unwrap_err();
        assert!(error.is_conflict() && error.to_string().contains("is recurring"), "{error}");
    }
}

async fn a_finished_job_gives_way(stored: Stored) {
    let (bell, _) = bell_on(&stored).await;
    let jobs = bell.jobs();
    for version in 1..=3 {
        let enqueued = jobs.enqueue(REMIND, &Reminder { user: 7 }).key("again").at(time("13:00")).await.unwrap();
        assert_eq!((enqueued.outcome, enqueued.job.version()), (EnqueueOutcome::Created, version));
        jobs.retire("again").await.unwrap();
    }
    let kept = jobs.enqueue(REMIND, &Reminder { user: 7 }).key("again").keep().await.unwrap();
    assert_eq!(kept.outcome, EnqueueOutcome::Created);
}

async fn many_are_enqueued_together(stored: Stored) {
    let (bell, _) = bell_on(&stored).await;
    let keys = bell.jobs().enqueue_many(REMIND, (0..1_234).map(|user| Reminder { user })).await.unwrap();
    assert!(keys.len() == 1_234 && keys.is_sorted(), "{:?}", &keys[..3]);
    let last = bell.jobs().get(&keys[1_233]).await.unwrap();
    assert_eq!(last.job.definition.payload.as_str(), r#"{"user":1233}"#);
    let told = trail(&*stored.store).await;
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("job.enqueue_many target:remind") && told[0].contains(r#""jobs":1234"#), "{told:?}");
    assert_eq!(bell.jobs().enqueue_many("nothing", Vec::<u8>::new()).await.unwrap(), []);
    let error = bell.jobs().enqueue_many("nothing", 0..10_001).await.unwrap_err().to_string();
    assert!(error.contains("payloads: must be at most 10000 at a time, not 10001"), "{error}");
    let error = bell.jobs().enqueue_many("remind", [r#"{"user":"ana"}"#]).await.unwrap_err().to_string();
    assert!(error.contains("target `remind` cannot read the payload: ") && error.ends_with("(payload 1)"), "{error}");
    let two =
        [r#"{"user":7}"#, r#"{"user":"ana"}"#].map(|text| serde_json::from_str::<serde_json::Value>(text).unwrap());
    let error = bell.jobs().enqueue_many("remind", two).await.unwrap_err().to_string();
    assert!(error.ends_with("(payload 2)"), "{error}");
    let error = bell.jobs().enqueue_many("nowhere", [1]).await.unwrap_err().to_string();
    assert!(error.contains("nowhere"), "{error}");
    assert_eq!(bell.jobs().count(&JobFilter::default(), 10_000).await.unwrap(), 1_234, "nothing of those");
}

async fn a_purge_is_told_without_the_payload(stored: Stored) {
    let (bell, _) = bell_on(&stored).await;
    let jobs = bell.jobs().by("ana");
    jobs.enqueue(REMIND, &Reminder { user: 7 }).key("private").at(time("13:00")).await.unwrap();
    jobs.enqueue(REMIND, &Reminder { user: 8 }).key("private").replace().at(time("14:00")).await.unwrap();
    let error = jobs.purge("private@1").await.unwrap_err().to_string();
    assert!(error.contains("deletes all versions of a job: name it `private`"), "{error}");
    let purged = jobs.clone().because("erasure").purge("private").await.unwrap();
    assert_eq!((purged.versions, purged.runs, purged.finished), (2, 0, true));
    let told = trail(&*stored.store).await;
    assert!(told.iter().all(|line| !line.contains("user")), "{told:?}");
    assert_eq!(told[..2], ["ana job.enqueue job:private", "ana job.replace job:private"]);
    assert!(told[2].starts_with("ana job.purge job:private (erasure) {") && told[2].contains("remind"), "{told:?}");
    assert!(jobs.purge("private").await.is_err());
}

#[tokio::test]
async fn a_purge_that_is_repeated_with_its_key_says_that_it_was_done() {
    let database = TestDatabase::create().await;
    let bell = Everbell::builder().database(database.url()).target("nothing", nothing).build().await.unwrap();
    bell.jobs().enqueue("nothing", &()).key("private").await.unwrap();
    let request = RequestKey { key: "erasure-7".to_owned(), fingerprint: [7; 32] };
    let jobs = bell.jobs().once(Some(&request));
    let purged = jobs.purge("private").await.unwrap();
    assert_eq!(jobs.purge("private").await.unwrap(), purged, "the same request gets the same answer");

    // As a release wrote it that did not record what it deleted.
    let pool = PgPool::connect(database.url()).await.unwrap();
    let sql = "update everbell.requests set deed = (deed::jsonb - 'purged')::text";
    assert_eq!(sqlx::raw_sql(sql).execute(&pool).await.unwrap().rows_affected(), 1);
    let error = jobs.purge("private").await.unwrap_err();
    assert!(error.is_conflict(), "{error:?}");
    assert!(error.to_string().contains("this request has deleted job `private` before"), "{error}");

    bell.jobs().enqueue("nothing", &()).key("other").at(bell.now() + Duration::from_hours(9)).await.unwrap();
    let request = RequestKey { key: "retire-8".to_owned(), fingerprint: [8; 32] };
    let jobs = bell.jobs().once(Some(&request));
    jobs.retire("other").await.unwrap();
    let error = jobs.purge("other").await.unwrap_err().to_string();
    assert!(error.contains("this key was used for another request"), "{error}");
}

#[tokio::test]
async fn payloads_and_settings_are_checked() {
    let (bell, _) = bell_on(&Stored::memory()).await;
    let jobs = bell.jobs();
    let problem = |error: everbell::StoreError| error.to_string();
    let error = problem(jobs.enqueue("remind", &"text").await.unwrap_err());
    assert!(error.contains("payload: target `remind` cannot read the payload: it is no"), "{error}");
    let error = problem(jobs.enqueue("remind", &"text").key("a").await.unwrap_err());
    assert!(error.contains("cannot read the payload of job `a`: it is no"), "{error}");
    let error = problem(jobs.enqueue("", &()).await.unwrap_err());
    assert!(error.contains("target: must be 1 to 200 bytes"), "{error}");
    let error = problem(jobs.enqueue("nothing", &()).key("a@1").await.unwrap_err());
    assert!(error.contains("jobKey: must not end in `@`"), "{error}");
    let error = problem(jobs.enqueue("nothing", &()).key("a\u{200b}").await.unwrap_err());
    assert!(error.contains("invisible characters"), "{error}");
    let error = problem(jobs.enqueue("nothing", &()).timeout(Duration::ZERO).on_lost(OnLost::Retry).await.unwrap_err());
    assert!(error.contains("policies.timeout") && error.contains("policies.onLost"), "{error}");
    let enqueued = jobs.enqueue("nothing", &()).at(time("03:00")).await.unwrap();
    assert!(enqueued.job.next_run_at() >= Some(time("12:00")), "what is over is due now");
}

#[tokio::test]
async fn a_queue_works_under_a_test_bell() {
    let builder = Everbell::builder().target(REMIND, remind);
    let mut test = TestBell::start(builder, "2027-01-01T12:00:00Z").await;
    let now = test.bell().jobs().enqueue(REMIND, &Reminder { user: 7 }).await.unwrap();
    let later: everbell::Timestamp = "2027-01-02T08:00:00Z".parse().unwrap();
    test.bell().jobs().enqueue(REMIND, &Reminder { user: 8 }).at(later).key("later").await.unwrap();
    assert_eq!(test.drain().await.succeeded, 1);
    test.assert_ran(now.key().as_str()).await.times(1).with_payload(&Reminder { user: 7 });
    test.advance_by(Duration::from_hours(24)).await;
    test.assert_ran("later").await.times(1).at(["2027-01-02T08:00:00Z"]).with_status(RunStatus::Succeeded);
}

async fn an_enqueued_job_starts_at_once(stored: Stored) {
    let builder = Everbell::builder().store(Arc::clone(&stored.store)).clock(Arc::new(Real::default()));
    let bell = builder.target(REMIND, remind).build().await.unwrap();
    let mut events = bell.events();
    let steps = async {
        // The engine polls this once before its own first look, which a store in memory would wait for.
        tokio::task::yield_now().await;
        // The instance is at rest when it has heard of the first one.
        for user in [1, 2] {
            let begun = bell.clock().monotonic();
            let job = bell.jobs().enqueue(REMIND, &Reminder { user }).await.unwrap();
            heard(&mut events, |event| matches!(event, Event::Finished { .. })).await;
            let took = bell.clock().monotonic().saturating_sub(begun);
            assert!(user == 1 || took < Duration::from_secs(3), "{took:?}: polls take 5 s");
            let row = within(async {
                loop {
                    let row = bell.jobs().get(job.key()).await.unwrap();
                    if row.job.state.status == JobStatus::Retired {
                        return row;
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            })
            .await;
            assert_eq!(row.last_run.unwrap().result.unwrap().as_str(), user.to_string());
        }
    };
    within(bell.run_until(steps)).await.unwrap();
}
on_every_store!(an_enqueued_job_starts_at_once);

#[tokio::test]
async fn a_run_at_work_is_in_the_way_of_a_purge() {
    let stored = Stored::memory();
    let (bell, _) = bell_on(&stored).await;
    let hold = Schedule::once("busy", time("13:00")).target("nothing");
    bell.jobs().create(hold).await.unwrap();
    bell.jobs().run_now("busy").await.unwrap();
    // Claimed, and not recorded.
    let request = everbell::core::store::StartRuns {
        instance: everbell::core::InstanceId::new(time("12:00"), [1; 10]),
        targets: &[everbell::core::store::TargetRoom {
            target: everbell::Target::new("nothing").unwrap(),
            room: 1,
            backfills: true,
        }],
        limit: 1,
        now: time("12:30"),
        lease_until: time("12:31"),
    };
    assert_eq!(stored.store.start_runs(&request).await.unwrap().len(), 1);
    let error = bell.jobs().purge("busy").await.unwrap_err();
    assert!(error.is_conflict() && error.to_string().contains("running; wait until they have ended"), "{error}");
    let runs = bell.runs().list(&everbell::RunFilter::default(), &page()).await.unwrap();
    assert_eq!(runs.items.len(), 1, "nothing is deleted");
    drop(given::trail(&*stored.store).await);
}
