//! Actions for one org, or for all of them: runs by hand, backfills, and how they affect each other.

use everbell_core::change;
use everbell_core::org::OrgTask;
use everbell_core::plan::{Missed, Plan, RunNow, disarm};
use everbell_core::store::{Due, PlanDue, StoreError};
use everbell_core::{BackfillId, CatchUp, RunStatus, TraceContext, TriggerType};

use super::Fresh;
use super::given::{assert_refused, at, audit, by_hand, job, org, org_id, page, per_org, with};
use super::org_timers::{dates, next, set_enabled, three};
use super::world::{World, by_key, targets};

pub async fn a_run_by_hand_is_for_one_org(fresh: Fresh) {
    let (world, id) = three(&fresh).await;
    let request =
        RunNow { id: by_hand(at("01:00"), "utc"), actor: "ana", payload: None, overlap: None, trace_context: None };
    let decide = |view: &change::JobView| change::run_now(view, &request, at("01:00"));
    let entry = |name: &str| audit("job.run_now", name, at("01:00"));
    assert_refused(world.store.change_job(&by_key("brief"), None, &decide, &entry("whole")).await, "invalid");
    let utc = org_id("utc");
    let change = |org, revision| {
        let (world, decide, entry) = (&world, &decide, entry("one"));
        async move { world.store.change_org_job(&by_key("brief"), &org_id(org), revision, decide, &entry).await }
    };
    assert_refused(change("nobody", None).await, "not found");
    assert_refused(change("utc", Some(9)).await, "stale");
    assert_eq!(world.runs().await, []);
    let changed = change("utc", Some(1)).await.unwrap();
    assert_eq!((changed.runs.len(), changed.runs[0].org.as_ref()), (1, Some(&utc)));
    assert_eq!(next(&world, id, "utc").await, Some(at("09:00")), "the timer stays");
    // Overlap is per org: the stuck run of one org does not block the others.
    world.start(at("01:00")).await;
    let planned = world.plan(at("17:00")).await;
    let skipped: Vec<_> = planned.runs.iter().map(|run| run.skipped).collect();
    assert_eq!(skipped.iter().filter(|skipped| skipped.is_some()).count(), 1, "{planned:?}");
    assert_eq!(skipped.len(), 2);
}

pub async fn a_run_by_hand_for_all_orgs_is_made_once_for_each(fresh: Fresh) {
    let (world, _) = three(&fresh).await;
    set_enabled(&world, "la", false, "00:30").await;
    let work = OrgTask::RunNow { payload: None, overlap: None, trace_context: None };
    world.try_change("brief", at("01:00"), |view| change::for_all_orgs(view, work.clone())).await.unwrap();
    world.reconcile_orgs(at("01:00")).await;
    let runs = world.runs().await;
    let mut orgs: Vec<_> = runs.iter().map(|run| run.org.as_ref().unwrap().to_string()).collect();
    orgs.sort();
    assert_eq!(orgs, ["tokyo", "utc"], "not for who is off");
    assert!(runs.iter().all(|run| run.trigger.kind() == TriggerType::Manual && run.status == RunStatus::Pending));
    assert_eq!(world.store.list_org_updates().await.unwrap(), []);
}

pub async fn a_backfill_for_all_orgs_has_the_slots_of_each(fresh: Fresh) {
    let (world, _) = three(&fresh).await;
    let later = at("2026-11-18T18:00:00Z");
    world.pause("brief", at("01:00")).await;
    world.plan(later).await;
    world.resume("brief", Missed::Skip, later).await;
    world.reconcile_orgs(later).await;
    let trace = TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", None).ok();
    let work = OrgTask::Backfill {
        id: BackfillId::new(later, [7; 10]),
        from: at("00:00"),
        to: at("2026-11-17T12:00:00Z"),
        trace_context: trace.clone(),
    };
    world.try_change("brief", later, |view| change::for_all_orgs(view, work.clone())).await.unwrap();
    world.reconcile_orgs(later).await;
    assert_eq!(dates(&world, "utc").await, ["2026-11-15", "2026-11-16", "2026-11-17"]);
    assert_eq!(dates(&world, "la").await, ["2026-11-15", "2026-11-16"]);
    assert_eq!(dates(&world, "tokyo").await, ["2026-11-15", "2026-11-16", "2026-11-17"]);
    let runs = world.runs().await;
    assert!(runs.iter().all(|run| run.trace_context == trace), "they continue the trace of the request: {runs:?}");
}

pub async fn the_backlog_of_an_org_starves_nobody(fresh: Fresh) {
    let world = World::new(&fresh);
    world.put(&[org("busy", "UTC"), org("other", "UTC")], at("00:00")).await;
    let often = with(per_org(job("brief", "* * * * *")), |values| {
        values.catch_up = CatchUp::All;
        values.catch_up_limit = 500;
    });
    world.create(often).await;
    world.reconcile_orgs(at("00:00")).await;
    set_enabled(&world, "other", false, "00:00:30").await;
    world.plan(at("05:00")).await;
    assert!(world.runs().await.len() >= 300);
    set_enabled(&world, "other", true, "05:00").await;
    world.plan(at("05:01")).await;
    let started = world.start_some(at("05:01"), 3).await;
    let orgs: Vec<_> = started.iter().map(|claim| claim.run.org.as_ref().unwrap().as_str()).collect();
    assert_eq!(orgs, ["busy", "other"], "a backlog waits for itself");
}

pub async fn an_org_update_that_makes_runs_is_stopped_and_no_other(fresh: Fresh) {
    let (world, id) = three(&fresh).await;
    let work = OrgTask::RunNow { payload: None, overlap: None, trace_context: None };
    world.try_change("brief", at("01:00"), |view| change::for_all_orgs(view, work.clone())).await.unwrap();
    world.store.reconcile_orgs(at("01:00"), 1).await.unwrap();
    let org_update = world.store.list_org_updates().await.unwrap().remove(0);
    let entry = audit("job.stop_sweep", "job:brief", at("01:01"));
    let stopped = world.store.stop_org_update(org_update.id, &entry).await.unwrap();
    assert_eq!((&stopped, stopped.seen), (&org_update, 1), "it tells how far it was");
    world.reconcile_orgs(at("01:01")).await;
    let runs = world.runs().await;
    assert_eq!(runs.iter().map(|run| run.org.as_ref().unwrap().as_str()).collect::<Vec<_>>(), ["la"], "it stays");
    assert_eq!(world.actions(Some("job:brief")).await[0], "job.stop_sweep");
    let gone = world.store.stop_org_update(org_update.id, &entry).await;
    assert!(matches!(gone, Err(StoreError::NotFound { .. })), "{gone:?}");

    // Timers have to follow their job.
    world.try_change("brief", at("02:00"), |view| change::for_all_orgs(view, OrgTask::Arm)).await.unwrap();
    let arming = world.store.list_org_updates().await.unwrap().remove(0);
    let entry = audit("job.stop_sweep", "job:brief", at("02:01"));
    assert_refused(world.store.stop_org_update(arming.id, &entry).await, "invalid");
    assert_eq!(world.store.list_org_updates().await.unwrap(), [arming]);
    assert_eq!(next(&world, id, "utc").await, Some(at("09:00")));
}

pub async fn orgs_that_a_job_cannot_fire_for_are_one_entry(fresh: Fresh) {
    let (world, _) = three(&fresh).await;
    let broken =
        |due: &Due, _| Plan { org_error: Some("no such zone".to_owned()), ..Plan::nothing(&disarm(&due.timer)) };
    let day = at("2026-11-16T01:00:00Z");
    let planned = world.store.plan_due(&PlanDue::new(day, 100, &targets()), &broken).await.unwrap();
    assert_eq!(planned.org_errors.len(), 3);
    let trail = || async { world.store.list_audit(Some("job:brief"), &page(10)).await.unwrap().items };
    let entry = trail().await.remove(0);
    assert_eq!((entry.actor.as_str(), entry.action.as_str(), entry.at), ("everbell", "org.errored", day));
    assert_eq!(entry.reason.as_deref(), Some("no such zone"));
    assert_eq!(entry.after.unwrap().as_str(), r#"{"first":["utc","la","tokyo"],"orgs":3}"#);
    // Each of the orgs finds it, too.
    let own = world.store.list_audit(Some("org:la"), &page(1)).await.unwrap().items.remove(0);
    assert_eq!((own.action.as_str(), own.reason.as_deref()), ("org.errored", Some("no such zone")));
    assert_eq!(own.after.unwrap().as_str(), r#"{"jobKey":"brief"}"#);
    // A run by hand leaves the timers as they are, and wakes no reconciler.
    let work = OrgTask::RunNow { payload: None, overlap: None, trace_context: None };
    world.try_change("brief", day, |view| change::for_all_orgs(view, work.clone())).await.unwrap();
    let progress = world.store.reconcile_orgs(day, 100).await.unwrap();
    assert_eq!((progress.planned.runs.len(), progress.planned.org_errors.len()), (3, 0));
    let actions = trail().await.into_iter().filter(|entry| entry.action == "org.errored").count();
    assert_eq!((actions, world.store.count_orgs().await.unwrap().errored), (1, 3));
}
