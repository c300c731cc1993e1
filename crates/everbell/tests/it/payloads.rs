//! Payloads are checked against the handler of their target when they are written, wherever that happens.

use std::sync::Arc;

use everbell::testing::TestBell;
use everbell::{
    Backoff, Builder, Edit, Everbell, FromRun, Json, OrgId, Payload, Run, RunError, RunStatus, Schedule, State, States,
    StoreError, TypedTarget, WithoutPayload,
};

use crate::given::{Manual, Stored, at, nothing};

async fn count(Payload(number): Payload<u64>) -> Result<u64, RunError> {
    Ok(number + 1)
}

fn app() -> Builder {
    Everbell::builder().target("count", count).target("any", nothing)
}

fn job(key: &str) -> Schedule {
    Schedule::cron(key, "0 9 * * *").target("count").payload(1)
}

fn refused<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> String {
    match answer {
        Err(StoreError::Invalid(invalid)) => invalid.to_string(),
        other => panic!("this must be refused: {other:?}"),
    }
}

fn mismatch(job: &str) -> String {
    let serde = "invalid type: string \"text\", expected u64 at line 1 column 6";
    format!("payload: target `count` cannot read the payload{job}: it is no `u64`: {serde}")
}

#[tokio::test]
async fn build_refuses_a_declared_payload_that_does_not_fit() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    let builder = at(&stored, &clock).target("count", count);
    let builder = builder.schedule(job("a").payload("text")).schedule(Schedule::cron("b", "@daily").target("count"));
    let said = builder.build().await.unwrap_err().to_string();
    let absent = "invalid type: map, expected u64 at line 1 column 0; a job without a payload has `{}`";
    let wanted = format!(
        "2 problems:\n- schedule `a`: {}\n- schedule `b`: payload: target `count` cannot read the payload: it is no `u64`: {absent}",
        mismatch("")
    );
    assert_eq!(said, wanted);
}

#[tokio::test]
async fn every_action_refuses_a_payload_that_does_not_fit() {
    let mut test = TestBell::start(app().schedule(job("a")), "2027-01-01T00:00:00Z").await;
    let jobs = test.jobs();
    assert_eq!(refused(jobs.create(job("b").payload("text")).await), mismatch(" of job `b`"));
    assert_eq!(refused(jobs.prepare(&job("b").payload("text")).await), mismatch(" of job `b`"));
    assert_eq!(refused(jobs.run_now("a").payload("text").await), mismatch(" of job `a`"));
    let wrong = Json::parse("payload", "\"text\"").unwrap();
    let edit = Edit { payload: Some(wrong), ..Edit::default() };
    assert_eq!(refused(jobs.new_version("a", edit.clone()).await), mismatch(" of job `a`"));
    assert_eq!(refused(test.runs().try_target("count", "text").await), mismatch(""));
    // The payload fits its target until another one is named.
    jobs.create(Schedule::cron("c", "@daily").target("any").payload("text")).await.unwrap();
    let other = Edit { target: Some(everbell::Target::new("count").unwrap()), ..Edit::default() };
    assert_eq!(refused(jobs.new_version("c", other).await), mismatch(" of job `c`"));
    let run = jobs.run_now("c").await.unwrap().run().id;
    jobs.new_version(
        "c",
        Edit {
            target: Some(everbell::Target::new("count").unwrap()),
            payload: Some(Json::parse("", "2").unwrap()),
            ..Edit::default()
        },
    )
    .await
    .unwrap();
    test.drain().await;
    assert_eq!(refused(test.runs().rerun(run).await), mismatch(" of job `c`"));
    assert_eq!(jobs.get("a").await.unwrap().job.definition.version, 1, "nothing was written");
}

#[tokio::test]
async fn a_payload_for_orgs_is_checked_as_well() {
    let test = TestBell::start(app().schedule(job("a").per_org()), "2027-01-01T00:00:00Z").await;
    test.org("acme", "Europe/Paris").await;
    let acme = OrgId::new("acme").unwrap();
    assert_eq!(refused(test.jobs().run_now("a").payload("text").for_org(&acme).await), mismatch(" of job `a`"));
    assert_eq!(refused(test.jobs().run_now("a").payload("text").for_all_orgs().await), mismatch(" of job `a`"));
    test.jobs().run_now("a").payload(3).for_all_orgs().await.unwrap();
}

#[tokio::test]
async fn an_edit_of_something_else_leaves_an_old_payload_alone() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    let old = at(&stored, &clock).target("count", nothing).schedule(job("a").payload("text")).build().await.unwrap();
    drop(old);
    let bell = at(&stored, &clock).target("count", count).build().await.unwrap();
    let edit = Edit { description: Some("new".to_owned()), ..Edit::default() };
    bell.jobs().new_version("a", edit).await.unwrap();
}

#[tokio::test]
async fn a_payload_of_a_program_that_cannot_check_it_fails_the_run_at_once() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    let web = at(&stored, &clock).knows("count").build().await.unwrap();
    let wrong = Schedule::cron("a", "0 13 * * *").target("count").payload("text").retry(3, Backoff::default());
    web.jobs().create(wrong).await.unwrap();
    let mut test = TestBell::start_on(Arc::clone(&stored.store), app(), "2026-11-15T12:30:00Z").await;
    test.advance_to("2026-11-15T14:00:00Z").await;
    let ran = test.assert_ran("a").await.times(1).failed_with("invalid_payload");
    assert_eq!(ran.runs()[0].attempt, 1, "another attempt would fail the same way");
}

#[tokio::test]
async fn an_absent_payload_is_null_for_types_that_take_only_that() {
    #[derive(Debug, Default, serde::Deserialize)]
    struct Filter {
        team: Option<String>,
    }
    async fn unit(Payload(()): Payload<()>) {}
    async fn optional(Payload(number): Payload<Option<u64>>) -> Result<String, RunError> {
        Ok(format!("{number:?}"))
    }
    async fn defaults(Payload(filter): Payload<Filter>) -> Result<String, RunError> {
        Ok(format!("{:?}", filter.team))
    }
    let app = Everbell::builder().target("unit", unit).target("optional", optional).target("defaults", defaults);
    let daily = |key: &str, target: &str| Schedule::cron(key, "0 9 * * *").target(target);
    let app = app.schedule(daily("unit", "unit")).schedule(daily("optional", "optional"));
    let app = app.schedule(daily("defaults", "defaults")).schedule(daily("some", "optional").payload(Some(7)));
    let mut test = TestBell::start(app, "2027-01-01T00:00:00Z").await;
    test.advance_to("2027-01-01T12:00:00Z").await;
    for (key, result) in
        [("unit", None), ("optional", Some("\"None\"")), ("defaults", Some("\"None\"")), ("some", Some("\"Some(7)\""))]
    {
        let ran = test.assert_ran(key).await.times(1).with_status(RunStatus::Succeeded);
        assert_eq!(ran.runs()[0].result.as_ref().map(Json::as_str), result, "{key}");
    }
}

const COUNT: TypedTarget<u64> = TypedTarget::new("count");
const TICK: TypedTarget<()> = TypedTarget::new("tick");

/// An argument of one's own that does not read the payload.
struct Key(String);

impl FromRun for Key {
    fn from_run(run: &Run, _: &States) -> Result<Key, RunError> {
        Ok(Key(run.job_key().map(ToString::to_string).unwrap_or_default()))
    }
}

impl WithoutPayload for Key {}

#[tokio::test]
async fn a_typed_target_takes_handlers_of_its_payload_or_of_none() {
    async fn last(_: Key, State(add): State<u64>, _: Run, Payload(n): Payload<u64>) -> Result<u64, RunError> {
        Ok(n + add)
    }
    async fn without(Key(key): Key, _: Run, _: State<u64>) -> Result<String, RunError> {
        Ok(key)
    }
    let app = Everbell::builder().state(10_u64).target(COUNT, last).target(TICK, without);
    let app = app.schedule(Schedule::cron("a", "0 9 * * *").to(&COUNT, 7));
    let mut test = TestBell::start(app, "2027-01-01T00:00:00Z").await;
    test.jobs().create(Schedule::cron("b", "0 9 * * *").to(&TICK, ())).await.unwrap();
    test.advance_to("2027-01-01T12:00:00Z").await;
    let result = async |key: &str| {
        test.assert_ran(key).await.times(1).with_status(RunStatus::Succeeded).runs()[0].result.clone().unwrap()
    };
    assert_eq!((result("a").await.as_str(), result("b").await.as_str()), ("17", "\"b\""));
    assert_eq!(
        (COUNT.name(), COUNT.to_string(), format!("{TICK:?}").as_str()),
        ("count", "count".to_owned(), "TypedTarget(\"tick\")")
    );
}
