//! Syncs that meet others, and schedules that fire once.

use std::sync::Arc;

use everbell::clock::Clock;
use everbell::{Everbell, Schedule};
use everbell_core::store::PlanDue;

use crate::given::{Manual, Stored, at, daily, nothing, on_every_store, time};

on_every_store!(instances_that_start_together_agree);

async fn instances_that_start_together_agree(stored: Stored) {
    let clock = Manual::new("12:00");
    for round in 0..3 {
        let mut starting = tokio::task::JoinSet::new();
        for _ in 0..4 {
            let schedules = (0..8).map(|n| daily(&format!("job-{n}")).payload(round));
            let builder =
                Everbell::builder().store(Arc::clone(&stored.store)).clock(Arc::clone(&clock) as Arc<dyn Clock>);
            starting.spawn(builder.target("nothing", nothing).schedules(schedules).build());
        }
        let mut changes = 0;
        for bell in starting.join_all().await {
            changes += bell.unwrap().synced().changes();
        }
        assert_eq!(changes, 8, "each job is changed by one of them, in round {round}");
        let bell = at(&stored, &clock).build().await.unwrap();
        for n in 0..8 {
            let versions = bell.jobs().versions(&format!("job-{n}")).await.unwrap();
            assert_eq!(versions.len(), round + 1);
        }
    }
}

#[tokio::test]
async fn a_schedule_that_fires_once_is_made_once() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    let once = |at| Schedule::once("a", time(at)).target("nothing");
    let sync = async |schedule| {
        let builder = at(&stored, &clock).target("nothing", nothing).schedule(schedule);
        builder.build().await.unwrap().synced().steps[0].to_string()
    };
    assert_eq!(sync(once("11:00")).await, "= past         a, once at 2026-11-15T11:00:00Z");
    assert_eq!(sync(once("13:00")).await, "+ create       a v1, next 2026-11-15T13:00:00Z");
    assert_eq!(sync(once("13:00")).await, "= unchanged    a v1, next 2026-11-15T13:00:00Z");

    // It fires, its run ends, and so does the job.
    clock.set("14:00");
    let plan = |due: &everbell::core::store::Due, now| {
        let seen = everbell::core::plan::PlanContext { active: &due.active, ..Default::default() };
        everbell::core::plan::plan(&due.job, &due.timer, &seen, now)
    };
    let target = everbell::Target::new("nothing").unwrap();
    let planned = stored.store.plan_due(&PlanDue::new(clock.now(), 10, &[target]), &plan).await.unwrap();
    let bell = at(&stored, &clock).build().await.unwrap();
    bell.runs().cancel(planned.runs[0].id).await.unwrap();
    let done = sync(once("13:00")).await;
    assert_eq!(done, "= retired      a v1, by everbell");
    assert_eq!(sync(once("15:00")).await, "+ create       a v2, next 2026-11-15T15:00:00Z");
    assert_eq!(sync(once("13:30")).await, "~ new version  a v2 -> v3 (schedule), next 2026-11-15T15:00:00Z -> never");
}

#[tokio::test]
async fn two_owners_leave_each_other_alone() {
    let (stored, clock) = (Stored::memory(), Manual::new("12:00"));
    let program = |key: &str, source| {
        let builder = at(&stored, &clock).target("nothing", nothing).schedule(daily(key));
        builder.source(source).removed(everbell::Removed::Retire).build()
    };
    program("a", everbell::Source::Code).await.unwrap();
    let bell = program("b", everbell::Source::Config).await.unwrap();
    assert_eq!(bell.synced().to_string(), "+ create       b v1, next 2026-11-16T09:00:00Z\n1 of 1 jobs change");
    let job = bell.jobs().get("b").await.unwrap().job;
    assert_eq!((job.definition.source, job.definition.created_by.as_str()), (everbell::Source::Config, "sync:config"));
    assert_eq!(program("a", everbell::Source::Code).await.unwrap().synced().changes(), 0);
}
