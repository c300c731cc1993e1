//! The rules of a sync, one by one.

use std::sync::Arc;

use everbell::core::Source;
use everbell::core::store::StoreError;
use everbell::{Builder, Everbell, JobStatus, Removed, Schedule};

use crate::given::{Manual, Stored, at, daily, last_entry, nothing, on_every_store, time, trail};

fn program(stored: &Stored, clock: &Arc<Manual>, schedules: impl IntoIterator<Item = Schedule>) -> Builder {
    at(stored, clock).target("nothing", nothing).schedules(schedules)
}

async fn build(stored: &Stored, clock: &Arc<Manual>, schedules: impl IntoIterator<Item = Schedule>) -> Everbell {
    program(stored, clock, schedules).build().await.unwrap()
}

on_every_store!(
    a_new_key_is_created_once,
    a_change_is_a_new_version_and_a_pause_survives,
    a_deploy_takes_back_nothing_that_operators_did,
    what_is_not_declared_any_more_is_kept_paused_or_retired,
);

async fn a_new_key_is_created_once(stored: Stored) {
    let clock = Manual::new("12:00");
    let schedules = || {
        [
            daily("a").payload([1, 2]).label("team", "x"),
            Schedule::every("b", std::time::Duration::from_secs(90)).target("nothing"),
        ]
    };
    let plan = program(&stored, &clock, schedules()).plan().await.unwrap();
    let wanted = "\
+ create       a v1, next 2026-11-16T09:00:00Z
+ create       b v1, next 2026-11-15T12:01:30Z
2 of 2 jobs change";
    assert_eq!(plan.to_string(), wanted);
    assert_eq!(trail(&*stored.store).await, Vec::<String>::new(), "a plan writes nothing");

    let bell = build(&stored, &clock, schedules()).await;
    assert_eq!(bell.synced().to_string(), wanted);
    let job = bell.jobs().get("a").await.unwrap();
    assert_eq!((job.job.definition.source, job.job.definition.version), (Source::Code, 1));
    assert_eq!(job.job.definition.created_by, "sync:code");
    assert!(last_entry(&*stored.store).await.starts_with(r#"sync:code job.create job:b -> {"description":"#));

    // A restart an hour later, after an operator moved the next fire: nothing is touched.
    clock.set("12:30");
    bell.jobs().by("ana").reschedule("a", time("15:00")).await.unwrap();
    let before = (bell.jobs().get("a").await.unwrap(), bell.jobs().get("b").await.unwrap());
    clock.set("13:00");
    let bell = build(&stored, &clock, schedules()).await;
    let wanted = "\
= unchanged    a v1, next 2026-11-15T15:00:00Z
= unchanged    b v1, next 2026-11-15T12:01:30Z
0 of 2 jobs change";
    assert_eq!(bell.synced().to_string(), wanted);
    assert_eq!((bell.jobs().get("a").await.unwrap(), bell.jobs().get("b").await.unwrap()), before);
}

async fn a_deploy_takes_back_nothing_that_operators_did(stored: Stored) {
    let clock = Manual::new("12:00");
    let rate = || Schedule::every("rate", std::time::Duration::from_hours(6)).target("nothing");
    let bell = build(&stored, &clock, [daily("skipped"), daily("moved"), rate()]).await;
    bell.jobs().by("ana").skip_next("skipped", 2).await.unwrap();
    bell.jobs().by("ana").reschedule("moved", time("15:00")).await.unwrap();

    clock.set("13:00");
    let again = || [daily("skipped"), daily("moved"), rate()].map(|schedule| schedule.description("new"));
    let wanted = "\
~ new version  moved v1 -> v2 (description), next 2026-11-15T15:00:00Z -> 2026-11-15T15:00:00Z
~ new version  rate v1 -> v2 (description), next 2026-11-15T18:00:00Z -> 2026-11-15T18:00:00Z
~ new version  skipped v1 -> v2 (description), next 2026-11-18T09:00:00Z -> 2026-11-18T09:00:00Z
3 of 3 jobs change";
    assert_eq!(program(&stored, &clock, again()).plan().await.unwrap().to_string(), wanted);
    let bell = build(&stored, &clock, again()).await;
    assert_eq!(bell.synced().to_string(), wanted);
    for (key, next) in
        [("skipped", "2026-11-18T09:00:00Z"), ("moved", "2026-11-15T15:00:00Z"), ("rate", "2026-11-15T18:00:00Z")]
    {
        let timer = bell.jobs().get(key).await.unwrap().timer.unwrap();
        assert_eq!(timer.next_run_at, Some(next.parse().unwrap()), "{key}");
    }
}

async fn a_change_is_a_new_version_and_a_pause_survives(stored: Stored) {
    let clock = Manual::new("12:00");
    let bell = build(&stored, &clock, [daily("a"), daily("b")]).await;
    bell.jobs().by("ana").pause("b", "the mail server is down").await.unwrap();
    let first = bell.jobs().get("a").await.unwrap().job.definition.id;

    clock.set("13:00");
    let changed = [
        Schedule::cron("a", "0 10 * * *").target("nothing").tz("Europe/Paris").payload(1),
        daily("b").description("again").label("team", "x").timeout(std::time::Duration::from_secs(5)),
    ];
    let bell = build(&stored, &clock, changed).await;
    let wanted = "\
~ new version  a v1 -> v2 (schedule, payload), next 2026-11-16T09:00:00Z -> 2026-11-16T09:00:00Z
~ new version  b v1 -> v2 (policies, description, labels), paused
2 of 2 jobs change";
    assert_eq!(bell.synced().to_string(), wanted);
    let a = bell.jobs().get("a").await.unwrap().job;
    assert_eq!((a.definition.version, a.definition.supersedes), (2, Some(first)));
    assert_eq!(bell.jobs().get("a@1").await.unwrap().job.state.status, JobStatus::Retired);
    let b = bell.jobs().get("b").await.unwrap();
    let pause = b.job.state.pause.unwrap();
    assert_eq!((pause.by.as_str(), pause.reason.as_str()), ("ana", "the mail server is down"));
    assert_eq!((b.job.state.status, b.timer.unwrap().next_run_at), (JobStatus::Paused, None));
    let wanted = r#"sync:code job.new_version job:a {"payload":"{}","schedule":"0 9 * * *","timezone":"UTC","version":1} -> {"payload":"1","schedule":"0 10 * * *","timezone":"Europe/Paris","version":2}"#;
    let trail = trail(&*stored.store).await;
    assert!(trail.contains(&wanted.to_owned()), "{trail:#?}");
    let wanted = r#"sync:code job.new_version job:b {"description":"","labels":{},"policies":{},"version":1} -> {"description":"again","labels":{"team":"x"},"policies":{"timeout":"5000"},"version":2}"#;
    assert_eq!(trail.last().unwrap(), wanted, "the pause goes on, so nothing is said about it");
}

async fn what_is_not_declared_any_more_is_kept_paused_or_retired(stored: Stored) {
    let clock = Manual::new("12:00");
    let bell = build(&stored, &clock, [daily("a"), daily("b")]).await;
    bell.jobs().create(daily("by-hand")).await.unwrap();

    let removed =
        |removed, schedules: &[&str]| program(&stored, &clock, schedules.iter().map(|key| daily(key))).removed(removed);
    // Each set of schedules is a release, and an earlier one wins again when the instances of the other are gone.
    let times = std::cell::Cell::new(0);
    let steps = async |builder: Builder| {
        times.set(times.get() + 2);
        clock.set(&format!("12:{:02}", times.get()));
        builder.build().await.unwrap().synced().to_string()
    };
    let unchanged = "= unchanged    a v1, next 2026-11-16T09:00:00Z\n";
    let synced = steps(removed(Removed::Keep, &["a"])).await;
    assert_eq!(synced, format!("{unchanged}! keep         b v1, no longer declared\n0 of 2 jobs change"));
    let synced = steps(removed(Removed::Pause, &["a"])).await;
    assert_eq!(synced, format!("{unchanged}- pause        b v1, no longer declared\n1 of 2 jobs change"));
    let wanted = r#"sync:code job.pause job:b (no longer declared) {"nextRunAt":"2026-11-16T09:00:00Z","pauseReason":null,"status":"active"} -> {"nextRunAt":null,"pauseReason":"no longer declared","status":"paused"}"#;
    assert_eq!(last_entry(&*stored.store).await, wanted);
    let synced = steps(removed(Removed::Pause, &["a"])).await;
    assert_eq!(synced, format!("{unchanged}! keep         b v1, no longer declared\n0 of 2 jobs change"));

    // Declared again, it goes on.
    let synced = steps(removed(Removed::Pause, &["a", "b"])).await;
    assert_eq!(synced, format!("{unchanged}~ resume       b v1, declared again\n1 of 2 jobs change"));
    assert_eq!(bell.jobs().get("b").await.unwrap().job.state.status, JobStatus::Active);

    let synced = steps(removed(Removed::Retire, &["a"])).await;
    assert_eq!(synced, format!("{unchanged}- retire       b v1, no longer declared\n1 of 2 jobs change"));
    let synced = steps(removed(Removed::Retire, &["a"])).await;
    assert_eq!(synced, format!("{unchanged}0 of 1 jobs change"));
    let synced = steps(removed(Removed::Retire, &["a", "b"])).await;
    assert_eq!(synced, format!("{unchanged}+ create       b v2, next 2026-11-16T09:00:00Z\n1 of 2 jobs change"));
    let b = bell.jobs().get("b").await.unwrap().job.definition;
    assert_eq!(b.supersedes, Some(bell.jobs().get("b@1").await.unwrap().job.definition.id));
    assert_eq!(bell.jobs().get("by-hand").await.unwrap().job.state.status, JobStatus::Active, "nobody declared it");
}

#[tokio::test]
async fn what_an_operator_retired_stays_so_until_it_is_declared_otherwise() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    let bell = build(&stored, &clock, [daily("a")]).await;
    bell.jobs().by("ana").retire("a").await.unwrap();
    let bell = build(&stored, &clock, [daily("a")]).await;
    assert_eq!(bell.synced().to_string(), "= retired      a v1, by ana\n0 of 1 jobs change");
    let bell = build(&stored, &clock, [daily("a").payload("new")]).await;
    assert_eq!(bell.synced().to_string(), "+ create       a v2, next 2026-11-16T09:00:00Z\n1 of 1 jobs change");
    assert_eq!(bell.jobs().get("a").await.unwrap().job.state.status, JobStatus::Active);
}

#[tokio::test]
async fn a_job_of_somebody_else_is_a_conflict_unless_it_may_be_adopted() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    let bell = build(&stored, &clock, []).await;
    bell.jobs().by("ana").create(daily("a")).await.unwrap();
    bell.jobs().by("ana").pause("a", "not yet").await.unwrap();
    let plan = program(&stored, &clock, [daily("a"), daily("b")]).plan().await.unwrap();
    assert_eq!(plan.conflicts().count(), 1);
    let wanted = "! conflict     a v1, owned by api; allow to adopt it\n+ create       b v1, next 2026-11-16T09:00:00Z";
    assert!(plan.to_string().starts_with(wanted), "{plan}");
    let error = program(&stored, &clock, [daily("a"), daily("b")]).build().await.unwrap_err().to_string();
    let wanted =
        "schedule `a` already exists: version 1 is owned by api; take it over with `.adopt(true)`, or use another key";
    assert_eq!(error, wanted);
    assert!(matches!(bell.jobs().get("b").await, Err(StoreError::NotFound { .. })), "all or nothing");

    let bell = program(&stored, &clock, [daily("a")]).adopt(true).build().await.unwrap();
    let wanted = "~ new version  a v1 -> v2 (source), paused\n1 of 1 jobs change";
    assert_eq!(bell.synced().to_string(), wanted);
    let job = bell.jobs().get("a").await.unwrap().job;
    assert_eq!((job.definition.source, job.state.status), (Source::Code, JobStatus::Paused));
    let bell = build(&stored, &clock, [daily("a")]).await;
    assert_eq!(bell.synced().changes(), 0);
}
