//! Jobs that are as the last call says.

use everbell::{JobStatus, Removed, Schedule, StoreError};

use crate::given::{Manual, Stored, at, daily, nothing, on_every_store, time, trail};

on_every_store!(
    a_job_is_created_left_alone_and_replaced,
    a_fixed_rate_keeps_counting_until_it_changes,
    a_declared_job_is_refused,
    callers_who_race_agree_on_one_job,
);

async fn a_job_is_created_left_alone_and_replaced(stored: Stored) {
    let clock = Manual::new("12:00");
    let bell = at(&stored, &clock).target("nothing", nothing).build().await.unwrap();
    let jobs = bell.jobs().by("ana");
    let created = jobs.create_or_replace(daily("a").payload("x")).await.unwrap();
    assert_eq!((created.version(), created.next_run_at()), (1, Some(time("2026-11-16T09:00:00Z"))));
    jobs.pause("a", "the mail server is down").await.unwrap();

    clock.set("12:10");
    let unchanged = jobs.create_or_replace(&daily("a").payload("x")).await.unwrap();
    assert_eq!((unchanged.version(), unchanged.status()), (1, JobStatus::Paused));
    assert_eq!(trail(&*stored.store).await.len(), 2, "nothing was written");

    let replaced = jobs.create_or_replace(daily("a").payload("y").description("another")).await.unwrap();
    let definition = &replaced.job.definition;
    assert_eq!((definition.version, definition.payload.as_str(), &*definition.description), (2, r#""y""#, "another"));
    assert_eq!(replaced.status(), JobStatus::Paused, "an operator paused it");

    jobs.retire("a").await.unwrap();
    let again = jobs.create_or_replace(daily("a")).await.unwrap();
    assert_eq!((again.version(), again.status()), (3, JobStatus::Active));
    let error = jobs.create_or_replace(daily("a").target("nowhere")).await.unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
}

async fn a_fixed_rate_keeps_counting_until_it_changes(stored: Stored) {
    let clock = Manual::new("12:00");
    let bell = at(&stored, &clock).target("nothing", nothing).build().await.unwrap();
    let every = |minutes: u64| Schedule::every("rate", std::time::Duration::from_secs(minutes * 60)).target("nothing");
    bell.jobs().create_or_replace(every(60)).await.unwrap();
    clock.set("12:10");
    let unchanged = bell.jobs().create_or_replace(every(60)).await.unwrap();
    assert_eq!((unchanged.version(), unchanged.next_run_at()), (1, Some(time("13:00"))));
    let labeled = bell.jobs().create_or_replace(every(60).label("team", "sales")).await.unwrap();
    assert_eq!((labeled.version(), labeled.next_run_at()), (2, Some(time("13:00"))));
    let faster = bell.jobs().create_or_replace(every(30)).await.unwrap();
    assert_eq!((faster.version(), faster.next_run_at()), (3, Some(time("12:40"))));
}

async fn a_declared_job_is_refused(stored: Stored) {
    let clock = Manual::new("12:00");
    let builder = at(&stored, &clock).removed(Removed::Retire).target("nothing", nothing).schedule(daily("a"));
    let bell = builder.build().await.unwrap();
    let error = bell.jobs().create_or_replace(daily("a").payload("x")).await.unwrap_err();
    assert!(matches!(error, StoreError::Conflict { .. }), "{error}");
    assert!(error.to_string().contains("job `a` is declared by a program"), "{error}");
    assert_eq!(bell.jobs().get("a").await.unwrap().version(), 1);
}

async fn callers_who_race_agree_on_one_job(stored: Stored) {
    let clock = Manual::new("12:00");
    let bell = at(&stored, &clock).target("nothing", nothing).build().await.unwrap();
    let calls: Vec<_> = (0..4)
        .map(|_| {
            let jobs = bell.jobs();
            tokio::spawn(async move { jobs.create_or_replace(daily("a").payload("x")).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().version(), 1);
    }
    assert_eq!(bell.jobs().versions("a").await.unwrap().len(), 1);
}
