//! Builders that are refused, with all their problems at once.

use std::time::Duration;

use everbell::{BuildError, Builder, EngineOptions, Everbell, Payload, Run, Schedule, State, TargetOptions};

use crate::given::{Manual, Stored, at, daily, nothing};

async fn refused(builder: Builder) -> String {
    builder.build().await.expect_err("this must be refused").to_string()
}

#[tokio::test]
async fn every_problem_is_told_at_once() {
    #[derive(Clone)]
    struct Db;
    async fn with_state(_: State<Db>, _: Run, _: State<Vec<String>>, _: Payload<u8>) {}
    let mut options = EngineOptions::default();
    options.concurrency = 0;
    let builder = Everbell::builder()
        .options(options)
        .state(1_u8)
        .state(2_u8)
        .target("mail", with_state)
        .target("mail", nothing)
        .target(" ", nothing)
        .target_with("slow", nothing, TargetOptions::default().concurrency(0).timeout(Duration::ZERO))
        .schedule(Schedule::cron("a", "0 25 * * *").target("mial").tz("Europe/Pari"))
        .schedule(Schedule::every("b", Duration::from_millis(1_500)).timeout(Duration::ZERO).max_concurrent_runs(0))
        .schedule(Schedule::cron("b", "@daily").target("slow").payload("\0").depends_on("c@2", Duration::ZERO))
        .schedules([Schedule::cron("x@1", "").target("mail").description("\0").label("", "")]);
    let wanted = "\
24 problems:
- there are two states of the type `u8`
- a database is missing; say `.database(\"sqlite:everbell.db\")`
- engine.concurrency: must be from 1 to 100000
- target `mail`: there is no state of the type `Db`; give one with `.state(..)`
- target `mail`: there is no state of the type `Vec<String>`; give one with `.state(..)`
- target `mail` is defined twice
- target ` `: must not begin or end with white space
- target `slow`: concurrency must be at least 1
- target `slow`: timeout must be more than 0
- schedule `a`: cronExpression: hour: 25 is outside 0-23; allowed: 0-23, lists `9,17`, ranges `9-17`, steps `*/2`, or `*`
- schedule `a`: timezone: unknown time zone `Europe/Pari`; did you mean `Europe/Paris`, `Europe/Madrid`, `PRC`?
- schedule `a` names unknown target `mial`; known: `mail`, ` `, `slow`
- schedule `b`: target: the label of a target is needed
- schedule `b`: cronExpression: must be whole seconds from 1s to 366d, not 1.5s
- schedule `b`: policies.maxConcurrentRuns: must be from 1 to 1000, not 0
- schedule `b`: policies.timeout: must be from 1 s to 2592000 s, not 0ns
- schedule `b` is defined twice
- schedule `b`: payload: the character \\u0000, which no database keeps, at byte 7
- schedule `b`: policies.dependsOn.jobKey: must not end in `@` and digits: that names a version of a job
- schedule `b`: policies.dependsOn.within: must be from 1 s to 31622400 s, not 0ns
- schedule `x@1`: jobKey: must not end in `@` and digits: that names a version of a job
- schedule `x@1`: cronExpression: the expression is empty; allowed: `minute hour day-of-month month day-of-week`, with an optional leading seconds field; every day at 09:00 is `0 9 * * *`
- schedule `x@1`: description: must be at most 10000 bytes without NUL
- schedule `x@1`: labels: must be at most 64, each a name and a value of at most 200 bytes without NUL";
    assert_eq!(refused(builder).await, wanted);
}

#[tokio::test]
async fn one_problem_is_one_line() {
    assert_eq!(refused(Everbell::builder()).await, "a database is missing; say `.database(\"sqlite:everbell.db\")`");
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    let builder = at(&stored, &clock).target("nothing", nothing);
    let text = refused(builder.schedule(Schedule::cron("x", "@daily").target("typo"))).await;
    assert_eq!(text, "schedule `x` names unknown target `typo`; known: `nothing`");
    let text = refused(at(&stored, &clock).schedule(daily("x"))).await;
    assert_eq!(text, "schedule `x` names unknown target `nothing`; known: none");
    let text = refused(at(&stored, &clock).source(everbell::Source::Api)).await;
    assert_eq!(text, "schedules that are declared cannot be owned by `api`");
    let bounds = daily("x").start_at(clock_time("13:00")).end_at(clock_time("12:00"));
    let text = refused(at(&stored, &clock).target("nothing", nothing).schedule(bounds)).await;
    assert_eq!(text, "schedule `x`: endAt: must be after startAt");
}

fn clock_time(text: &str) -> everbell::Timestamp {
    crate::given::time(text)
}

#[tokio::test]
async fn a_database_that_cannot_be_opened_says_so_in_its_own_words() {
    let text = refused(Everbell::builder().database("mysql://u:secret@h/d")).await;
    assert_eq!(text, "database: must be `sqlite:PATH`, `sqlite::memory:` or `postgres://user:password@host/database`");
    let error = Everbell::builder().database("sqlite:/dev/null/x.db").build().await.unwrap_err();
    assert!(matches!(&error, BuildError::Store(store) if store.to_string() == error.to_string()), "{error}");
}

#[tokio::test]
async fn a_clock_is_anchored_on_the_database() {
    let bell = Everbell::builder().database("sqlite::memory:").build().await.unwrap();
    let asked = bell.store().now().await.unwrap();
    assert!(bell.now().duration_since(asked).abs() < jiff::SignedDuration::from_secs(30));
    assert_eq!(bell.synced().steps.len(), 0);
}

#[tokio::test]
async fn a_main_that_returns_the_error_shows_a_text_for_people() {
    let error = Everbell::builder().database("mysql://x").build().await.unwrap_err();
    let said = "database: must be `sqlite:PATH`, `sqlite::memory:` or `postgres://user:password@host/database`";
    assert_eq!((format!("{error:?}"), error.to_string()), (said.to_owned(), said.to_owned()));
}
