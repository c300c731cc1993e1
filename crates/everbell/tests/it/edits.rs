//! Edits that name only what changes.

use std::time::Duration;

use everbell::core::cron::{Dst, DstFold, DstGap};
use everbell::core::store::{AuditEntry, Origin};
use everbell::core::{Definition, JobId, Unschedulable, change};
use everbell::testing::TestBell;
use everbell::{Everbell, JobKey, JobStatus, Overlap, Payload, Schedule, StoreError, TypedTarget};

use crate::given::{nothing, trail};

async fn count(_: Payload<u64>) {}

const COUNT: TypedTarget<u64> = TypedTarget::new("count");

async fn given(schedule: Schedule) -> TestBell {
    let app = Everbell::builder().target(COUNT, count).target("nothing", nothing);
    TestBell::start(app.schedule(schedule), "2027-01-01T00:00:00Z").await
}

fn job() -> Schedule {
    Schedule::cron("a", "0 9 * * *")
        .to(&COUNT, 7)
        .tz("Europe/Paris")
        .description("old")
        .label("team", "x")
        .overlap(Overlap::Queue)
        .timeout(Duration::from_secs(90))
        .depends_on("b", Duration::from_mins(1))
        .end_at("2030-01-01T00:00:00Z".parse().unwrap())
}

#[tokio::test]
async fn an_edit_keeps_everything_that_it_does_not_name() {
    let test = given(job()).await;
    let before = test.jobs().get("a").await.unwrap().job.definition;
    let changed = test.jobs().by("ana").edit("a").cron("30 9 * * *").await.unwrap();
    assert_eq!((changed.key().as_str(), changed.version(), changed.status()), ("a", 2, JobStatus::Active));
    assert_eq!(changed.next_run_at().unwrap().to_string(), "2027-01-01T08:30:00Z");
    let after = changed.current().job.definition.clone();
    assert_eq!((&after.payload, &after.policies, &after.labels), (&before.payload, &before.policies, &before.labels));
    assert_eq!((&after.target, &after.description, after.scope), (&before.target, &before.description, before.scope));
    let (old, new) = (before.spec.as_ref().unwrap(), after.spec.as_ref().unwrap());
    assert_eq!((new.zone().name(), new.end_at(), new.dst()), (old.zone().name(), old.end_at(), old.dst()));
    assert_eq!(after.created_by, "ana");
}

#[tokio::test]
async fn an_edit_changes_everything_that_it_names() {
    let test = given(job()).await;
    let jobs = test.jobs();
    let edit = jobs.edit("a").tz("Asia/Tokyo").payload(8).description("new").label("tier", "gold");
    let after = edit.with(|schedule| schedule.timeout(Duration::from_secs(5))).await.unwrap();
    let definition = &after.current().job.definition;
    assert_eq!(after.next_run_at().unwrap().to_string(), "2027-01-02T00:00:00Z");
    assert_eq!((definition.payload.as_str(), definition.description.as_str()), ("8", "new"));
    assert_eq!((definition.labels.len(), definition.policies.timeout), (2, Duration::from_secs(5)));
    assert_eq!(definition.policies.overlap, Overlap::Queue);
    let after = jobs.edit("a").every(Duration::from_mins(5)).target("nothing").payload("any").await.unwrap();
    assert_eq!(after.next_run_at().unwrap().to_string(), "2027-01-01T00:05:00Z");
    let at = "2027-06-01T00:00:00Z".parse().unwrap();
    let after = jobs.edit("a").once(at).to(&COUNT, 9).await.unwrap();
    assert_eq!((after.next_run_at(), after.current().target().as_str()), (Some(at), "count"));
}

#[tokio::test]
async fn a_fixed_rate_keeps_its_start() {
    let mut test = given(Schedule::every("a", Duration::from_hours(1)).target("nothing")).await;
    test.advance_to("2027-01-01T00:20:00Z").await;
    let changed = test.jobs().edit("a").description("new").await.unwrap();
    assert_eq!(changed.next_run_at().unwrap().to_string(), "2027-01-01T01:00:00Z");
}

#[tokio::test]
async fn a_paused_job_stays_paused_unless_it_is_activated() {
    let test = given(job()).await;
    test.jobs().pause("a", "why not").await.unwrap();
    let paused = test.jobs().edit("a").payload(1).await.unwrap();
    assert_eq!(paused.status(), JobStatus::Paused);
    assert_eq!(test.jobs().edit("a").payload(2).activate().await.unwrap().status(), JobStatus::Active);
}

#[tokio::test]
async fn an_impossible_edit_is_refused_with_every_problem() {
    let test = given(job()).await;
    let refused = async |edit: everbell::client::Change<everbell::client::Revising>| match edit.await {
        Err(StoreError::Invalid(invalid)) => invalid.to_string(),
        other => panic!("this must be refused: {other:?}"),
    };
    let edit = || test.jobs().edit("a");
    let said = refused(edit().cron("0 25 * * *").tz("Europe/Pari")).await;
    assert!(
        said.starts_with("cronExpression: hour: 25 is outside 0-23") && said.contains("; timezone: unknown"),
        "{said}"
    );
    let said = refused(edit().target("cuont")).await;
    assert_eq!(said, "target: unknown target `cuont`; known: `count`, `nothing`");
    let said = refused(edit().payload("text")).await;
    assert!(said.starts_with("payload: target `count` cannot read the payload of job `a`: it is no `u64`"), "{said}");
    let stale = edit().payload(1).if_revision(99).await.unwrap_err();
    assert!(matches!(stale, StoreError::Stale { .. }), "{stale}");
    assert_eq!(test.jobs().get("a").await.unwrap().version(), 1);
}

/// Adds the job `broken`, whose schedule cannot be read.
async fn add_broken(test: &TestBell, broken: Unschedulable) {
    let model = (*test.jobs().get("a").await.unwrap().job.definition).clone();
    let id = JobId::new(test.now(), [7; 10]);
    let definition =
        everbell_core::with!(Definition { id, key: JobKey::new("broken").unwrap(), spec: Err(broken), ..model });
    let entry = AuditEntry {
        id: id.as_uuid(),
        at: test.now(),
        actor: "ana".to_owned(),
        action: "job.create".to_owned(),
        object: "job:broken".to_owned(),
        reason: None,
        before: None,
        after: None,
        request: None,
        origin: Origin::default(),
    };
    test.bell().store().create_job(&change::create(definition), &entry).await.unwrap();
}

#[tokio::test]
async fn an_edit_that_repairs_a_schedule_keeps_its_bounds_and_its_rules_for_clock_changes() {
    let test = given(job()).await;
    let dst = Dst { gap: DstGap::Skip, fold: DstFold::Both };
    let bounds = ["2027-02-01T00:00:00Z", "2030-01-01T00:00:00Z"].map(|at| at.parse().ok());
    let broken = Unschedulable {
        expression: Some("30 2 * * *".to_owned()),
        timezone: "Mars/Base".to_owned(),
        dst,
        start_at: bounds[0],
        end_at: bounds[1],
        reason: "unknown time zone".to_owned(),
        ..Unschedulable::default()
    };
    add_broken(&test, broken).await;
    let refused = test.jobs().edit("broken").description("new").await.unwrap_err().to_string();
    assert!(refused.contains("timezone") && refused.contains("Mars/Base"), "{refused}");
    let after = test.jobs().edit("broken").tz("Europe/Paris").await.unwrap();
    let spec = after.current().job.definition.spec.clone().unwrap();
    assert_eq!((spec.zone().name(), spec.dst()), ("Europe/Paris", dst));
    assert_eq!([spec.start_at(), spec.end_at()], bounds);
    assert_eq!(after.next_run_at().unwrap().to_string(), "2027-02-01T01:30:00Z");
    let told = trail(&**test.bell().store()).await;
    let told = told.iter().find(|line| line.contains("job.new_version job:broken")).unwrap();
    assert!(told.contains(r#""timezone":"Mars/Base""#) && told.contains(r#""timezone":"Europe/Paris""#), "{told}");
    for kept in ["dstGap", "dstFold", "startAt", "endAt", "schedule"] {
        assert!(!told.contains(kept), "{kept} has not changed: {told}");
    }
}

#[tokio::test]
async fn an_edit_that_repairs_a_fixed_rate_leaves_it_where_it_counts_from() {
    let test = given(job()).await;
    let broken = Unschedulable {
        expression: Some("@every 7h".to_owned()),
        timezone: "Mars/Base".to_owned(),
        anchor: "2026-12-31T20:00:00Z".parse().ok(),
        reason: "unknown time zone".to_owned(),
        ..Unschedulable::default()
    };
    add_broken(&test, broken).await;
    let repaired = test.jobs().edit("broken").tz("Europe/Paris").await.unwrap();
    assert_eq!(repaired.next_run_at().unwrap().to_string(), "2027-01-01T03:00:00Z");
    let changed = test.jobs().edit("broken").cron("@every 5h").await.unwrap();
    assert_eq!(changed.next_run_at().unwrap().to_string(), "2027-01-01T05:00:00Z", "another rate counts from now");
}
