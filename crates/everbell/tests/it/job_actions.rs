//! Everything that is done to jobs, with what the audit trail says about it, and what is refused.

use std::sync::Arc;

use everbell::core::SkipReason;
use everbell::core::cron::Expression;
use everbell::core::{Source, Spec, Zone};
use everbell::{Edit, Everbell, Invalid, JobId, JobStatus, RunNow, RunStatus, Schedule, StoreError, StoreResult};
use everbell_store::memory::{FaultPoint, MemoryStore};

use crate::given::{Manual, Stored, at, daily, last_entry, nothing, on_every_store, time, trail};

async fn bell(stored: &Stored, clock: &Arc<Manual>) -> Everbell {
    at(stored, clock).target("nothing", nothing).build().await.unwrap()
}

/// `field: reason` of a refusal, or the error.
fn refused<T: std::fmt::Debug>(answer: StoreResult<T>) -> String {
    answer.expect_err("this must be refused").to_string()
}

on_every_store!(
    a_job_is_created_paused_resumed_and_retired,
    a_new_version_takes_over,
    the_next_fire_is_moved_and_skipped,
    a_run_by_hand_obeys_the_overlap_policy,
    an_old_revision_is_refused,
);

async fn a_job_is_created_paused_resumed_and_retired(stored: Stored) {
    let clock = Manual::new("12:00");
    let bell = bell(&stored, &clock).await;
    let jobs = bell.jobs().by("ana");
    let job = jobs.create(daily("a").payload("x")).await.unwrap();
    assert_eq!((job.job.definition.source, job.job.definition.created_by.as_str()), (Source::Api, "ana"));
    let entry = last_entry(&*stored.store).await;
    assert!(entry.starts_with("ana job.create job:a -> {"), "{entry}");
    assert!(entry.contains(r#""schedule":"0 9 * * *""#) && entry.contains(r#""payload":"\"x\"""#), "{entry}");

    clock.set("12:10");
    let paused = jobs.pause("a", "the mail server is down").until(time("2026-11-17T08:00:00Z")).await.unwrap();
    assert_eq!(paused.job.job.state.status, JobStatus::Paused);
    assert_eq!(
        last_entry(&*stored.store).await,
        r#"ana job.pause job:a (the mail server is down) {"nextRunAt":"2026-11-16T09:00:00Z","pauseReason":null,"pausedUntil":null,"status":"active"} -> {"nextRunAt":null,"pauseReason":"the mail server is down","pausedUntil":"2026-11-17T08:00:00Z","status":"paused"}"#
    );
    clock.set("2026-11-16T10:00:00Z");
    let resumed = jobs.clone().because("it is back").resume("a").run_missed_once().await.unwrap();
    assert_eq!(resumed.runs.len(), 1);
    assert_eq!(resumed.runs[0].slot_at, Some(time("2026-11-16T09:00:00Z")));
    let entry = last_entry(&*stored.store).await;
    assert!(entry.starts_with("ana job.resume job:a (it is back) {"), "{entry}");
    assert!(
        entry.ends_with(
            r#""nextRunAt":"2026-11-17T09:00:00Z","pauseReason":null,"pausedUntil":null,"status":"active"}"#
        ),
        "{entry}"
    );

    let retired = jobs.retire("a@1").await.unwrap();
    assert_eq!(retired.job.job.state.status, JobStatus::Retired);
    let entry = last_entry(&*stored.store).await;
    assert!(entry.starts_with("ana job.retire job:a {") && entry.ends_with(r#""status":"retired"}"#), "{entry}");
    let lines = trail(&*stored.store).await.len();
    let refusals =
        [refused(jobs.pause("a", "why not").await), refused(jobs.retire("a").await), refused(jobs.run_now("a").await)];
    for refusal in refusals {
        assert_eq!(refusal, "status: job `a` is retired, which is final: create it again");
    }
    assert_eq!(trail(&*stored.store).await.len(), lines, "what is refused leaves no line");
    let next = jobs.create(daily("a")).await.unwrap().job.definition;
    assert_eq!((next.version, next.supersedes), (2, Some(job.job.definition.id)));
}

async fn a_new_version_takes_over(stored: Stored) {
    let clock = Manual::new("12:00");
    let bell = bell(&stored, &clock).await;
    let jobs = bell.jobs().by("ana");
    let first = jobs.create(daily("a")).await.unwrap();
    jobs.pause("a", "not now").await.unwrap();
    clock.set("12:10");
    let spec = Spec::recurring(Expression::parse("0 10 * * *").unwrap(), Zone::utc(), clock_now(&bell));
    let edit = Edit { spec: Some(spec), ..Edit::default() };
    let changed = jobs.new_version("a", edit.clone()).await.unwrap();
    let second = changed.successor.unwrap();
    assert_eq!((second.job.definition.version, second.job.state.status), (2, JobStatus::Paused));
    assert_eq!(second.job.definition.supersedes, Some(first.job.definition.id));
    let wanted =
        r#"ana job.new_version job:a {"schedule":"0 9 * * *","version":1} -> {"schedule":"0 10 * * *","version":2}"#;
    assert_eq!(last_entry(&*stored.store).await, wanted);
    let changed = jobs.new_version(second.job.definition.id, edit).activate().await.unwrap();
    let third = changed.successor.unwrap();
    assert_eq!(
        (third.job.state.status, third.timer.unwrap().next_run_at),
        (JobStatus::Active, Some(time("2026-11-16T10:00:00Z")))
    );

    let target = Some(everbell::Target::new("nothin").unwrap());
    let refusal = refused(jobs.new_version("a", Edit { target, ..Edit::default() }).await);
    assert_eq!(refusal, "target: unknown target `nothin`; known: `nothing`");
}

fn clock_now(bell: &Everbell) -> everbell::Timestamp {
    bell.now()
}

async fn the_next_fire_is_moved_and_skipped(stored: Stored) {
    let clock = Manual::new("12:00");
    let bell = bell(&stored, &clock).await;
    let jobs = bell.jobs().by("ana");
    jobs.create(daily("a")).await.unwrap();
    let moved = jobs.reschedule("a", time("18:00")).await.unwrap();
    assert_eq!(moved.job.timer.unwrap().next_run_at, Some(time("18:00")));
    let wanted =
        r#"ana job.reschedule job:a {"nextRunAt":"2026-11-16T09:00:00Z"} -> {"nextRunAt":"2026-11-15T18:00:00Z"}"#;
    assert_eq!(last_entry(&*stored.store).await, wanted);
    assert_eq!(refused(jobs.reschedule("a", time("11:00")).await), "nextRunAt: must not be in the past");

    jobs.create(daily("b")).await.unwrap();
    let skipped = jobs.skip_next("b", 2).await.unwrap();
    let reasons: Vec<_> = skipped.runs.iter().map(|run| (run.status, run.skip.clone().unwrap())).collect();
    assert_eq!(reasons, vec![(RunStatus::Skipped, SkipReason::Operator { actor: "ana".to_owned() }); 2]);
    let wanted =
        r#"ana job.skip_next job:b {"nextRunAt":"2026-11-16T09:00:00Z"} -> {"nextRunAt":"2026-11-18T09:00:00Z"}"#;
    assert_eq!(last_entry(&*stored.store).await, wanted);
    assert_eq!(refused(jobs.skip_next("b", 0).await), "count: must be from 1 to 100, not 0");
}

async fn a_run_by_hand_obeys_the_overlap_policy(stored: Stored) {
    let clock = Manual::new("12:00");
    let bell = bell(&stored, &clock).await;
    let jobs = bell.jobs().by("ana");
    let job = jobs.create(daily("a").payload("usual")).await.unwrap();
    let RunNow::Started(first) = jobs.run_now("a").payload("other").await.unwrap() else {
        panic!("nothing is in the way")
    };
    assert_eq!((first.payload.as_str(), first.trigger.to_string().as_str()), (r#""other""#, "manual:ana"));
    let wanted = format!(r#"ana job.run_now job:a -> {{"payloadOverridden":true,"runId":"{}"}}"#, first.id);
    assert_eq!(last_entry(&*stored.store).await, wanted);
    assert_eq!(bell.jobs().get("a").await.unwrap().timer, job.timer, "the next fire is left alone");

    let RunNow::Skipped { recorded, blocking } = jobs.run_now(job.job.definition.id).await.unwrap() else {
        panic!("the first is active")
    };
    assert_eq!((recorded.status, blocking), (RunStatus::Skipped, first.id));
    let RunNow::Queued(queued) = jobs.run_now("a").queue().await.unwrap() else { panic!("it waits") };
    assert!(queued.held && queued.payload.as_str() == r#""usual""#);
    let RunNow::Started(forced) = jobs.run_now("a").force().await.unwrap() else { panic!("it is forced") };
    let wanted =
        format!(r#"ana job.run_now job:a -> {{"overlap":"allow","payloadOverridden":false,"runId":"{}"}}"#, forced.id);
    assert_eq!(last_entry(&*stored.store).await, wanted);
    let refusal = refused(jobs.run_now("a").payload("\0").await);
    assert_eq!(refusal, "payload: the character \\u0000, which no database keeps, at byte 7");
}

async fn an_old_revision_is_refused(stored: Stored) {
    let clock = Manual::new("12:00");
    let bell = bell(&stored, &clock).await;
    let jobs = bell.jobs();
    let job = jobs.create(daily("a")).await.unwrap();
    jobs.pause("a", "first").if_revision(job.job.state.revision).await.unwrap();
    let wanted = "job `a` is at revision 2, not 1";
    assert_eq!(refused(jobs.pause("a", "second").if_revision(1).await), wanted);
    assert_eq!(refused(jobs.resume("a").if_revision(1).await), wanted);
    assert_eq!(refused(jobs.new_version("a", Edit::default()).if_revision(1).await), wanted);
    assert_eq!(refused(jobs.reschedule("a", time("13:00")).if_revision(1).await), wanted);
    assert_eq!(refused(jobs.skip_next("a", 1).if_revision(1).await), wanted);
    assert_eq!(refused(jobs.retire("a").if_revision(1).await), wanted);
    // The store itself says it here.
    let said = refused(jobs.run_now("a").if_revision(1).await);
    assert!(said.starts_with("job `a` ") && said.ends_with(" revision 2, not 1"), "{said}");
    jobs.run_now("a").if_revision(2).await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_a_job_is_refused_with_its_field() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    let bell = bell(&stored, &clock).await;
    let jobs = bell.jobs();
    let field = |answer: StoreResult<_>| match answer {
        Err(StoreError::Invalid(Invalid { field, .. })) => field,
        other => panic!("{other:?}"),
    };
    assert_eq!(field(jobs.create(Schedule::cron("a", "61 * * * *").target("nothing")).await), "cronExpression");
    assert_eq!(field(jobs.create(daily("a").tz("Mars")).await), "timezone");
    assert_eq!(field(jobs.create(Schedule::once("a", time("11:59")).target("nothing")).await), "runAt");
    assert_eq!(field(jobs.create(daily("a").end_at(time("12:01"))).await), "endAt", "it would never fire");
    assert_eq!(field(jobs.create(Schedule::cron("a", "@daily").target("other")).await), "target");
    assert_eq!(field(jobs.get("a@0").await), "jobKey");
    let refusal = refused(jobs.create(daily("a").tz("Mars").grace(std::time::Duration::MAX)).await);
    assert!(refusal.starts_with("timezone: unknown") && refusal.contains("; policies.grace: must be"), "{refusal}");
    jobs.create(daily("a")).await.unwrap();
    assert_eq!(refused(jobs.create(daily("a")).await), "conflict: job `a` exists, as version 1");
    assert_eq!(refused(jobs.pause("nobody", "why").await), "there is no job `nobody`");
    assert_eq!(refused(jobs.pause("a", "no").await), "reason: must be 3 to 500 characters, not 2");
    assert_eq!(refused(jobs.pause("a", "why").until(time("12:00")).await), "until: must be in the future");
    assert_eq!(refused(jobs.resume("a").await), "status: the job is not paused");
    let unknown = JobId::new(time("12:00"), [0; 10]);
    assert_eq!(refused(jobs.retire(unknown).await), format!("there is no job `{unknown}`"));
}

#[tokio::test]
async fn what_a_job_would_be_can_be_written_by_somebody_else() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    let bell = bell(&stored, &clock).await;
    let (new, audit) = bell.jobs().by("ana").prepare(&daily("a")).await.unwrap();
    assert!(matches!(bell.jobs().get("a").await, Err(StoreError::NotFound { .. })), "nothing is written");
    assert_eq!((audit.action.as_str(), audit.object.as_str(), audit.actor.as_str()), ("job.create", "job:a", "ana"));
    let row = stored.store.create_job(&new, &audit).await.unwrap();
    assert_eq!(row, bell.jobs().get("a").await.unwrap());
}

#[tokio::test]
async fn a_run_by_hand_whose_answer_was_lost_is_read_back() {
    let (memory, clock) = (Arc::new(MemoryStore::new()), Manual::new("12:00"));
    let builder = Everbell::builder().store(Arc::clone(&memory) as _).clock(Arc::clone(&clock) as _);
    let bell = builder.target("nothing", nothing).build().await.unwrap();
    bell.jobs().create(daily("a")).await.unwrap();
    memory.fail_next(FaultPoint::After);
    let RunNow::Started(run) = bell.jobs().run_now("a").await.unwrap() else { panic!("nothing is in the way") };
    assert_eq!(bell.runs().get(run.id).await.unwrap(), run);
    memory.fail_next(FaultPoint::Before);
    let refusal = refused(bell.jobs().run_now("a").await);
    assert_eq!(refusal, "the database is not available: a fault that a test asked for");
}
