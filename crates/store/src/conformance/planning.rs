//! `plan_due`: which timers, and what is written about them.

use std::sync::Mutex;

use everbell_core::plan::Plan;
use everbell_core::store::{Due, JobFilter, PlanDue};
use everbell_core::{JobStatus, RunId, RunStatus, Trigger};

use super::Fresh;
use super::given::{LOG, MAIL, at, core_plan, job, json, target, to};
use super::world::{World, targets};

pub async fn a_due_slot_becomes_a_pending_run_and_the_timer_advances(fresh: Fresh) {
    let world = World::new(&fresh);
    let mut definition = job("hourly", "0 * * * *");
    definition.payload = json(r#"{"n":1}"#);
    let row = world.create(definition).await;
    let planned = world.plan(at("01:00:10")).await;
    let id = RunId::for_slot(row.job.definition.id, None, at("01:00"));
    let [run] = &planned.runs[..] else { panic!("{planned:?}") };
    assert_eq!((run.id, run.slot_at, run.skipped), (id, Some(at("01:00")), None));
    assert_eq!(run.job, row.job.definition);
    assert_eq!((planned.timers, planned.next_due_at), (1, Some(at("02:00"))));
    assert_eq!((planned.gaps, planned.errored), (vec![], vec![]));
    let run = world.run(id).await;
    assert_eq!((run.status, run.attempt, run.held, run.catch_up), (RunStatus::Pending, 0, false, false));
    assert_eq!((run.slot_at, run.scheduled_at, run.created_at), (Some(at("01:00")), at("01:00"), at("01:00:10")));
    assert_eq!(run.trigger, Trigger::Schedule("0 * * * *".to_owned()));
    assert_eq!((run.job_key.unwrap().as_str(), run.job_version, run.target.as_str()), ("hourly", Some(1), LOG));
    assert_eq!((run.claimed, run.started_at, run.finished_at, run.lease_until), (None, None, None, None));
    let timer = world.get("hourly").await.timer.unwrap();
    assert_eq!((timer.next_run_at, timer.last_slot_at), (Some(at("02:00")), at("01:00")));
}

pub async fn nothing_is_due_before_its_time(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("one", "0 1 * * *")).await;
    world.create(job("two", "0 2 * * *")).await;
    let planned = world.plan(at("00:59:59.999999")).await;
    assert_eq!((planned.timers, planned.runs.len()), (0, 0));
    assert_eq!(planned.next_due_at, Some(at("01:00")), "the earliest");
    assert_eq!(world.plan(at("01:00")).await.timers, 1);
    let again = world.plan(at("01:00")).await;
    assert_eq!((again.timers, again.next_due_at), (0, Some(at("02:00"))));
}

pub async fn an_empty_store_has_nothing_due(fresh: Fresh) {
    let planned = World::new(&fresh).plan(at("12:00")).await;
    assert_eq!(planned, everbell_core::store::Planned::default());
}

pub async fn the_oldest_are_planned_first_and_no_more_than_the_limit(fresh: Fresh) {
    let world = World::new(&fresh);
    for minute in [30, 10, 50, 20, 40] {
        world.create(job(&format!("at-{minute}"), &format!("{minute} 1 * * *"))).await;
    }
    let order = Mutex::new(Vec::new());
    let plan = |due: &Due, now| {
        order.lock().unwrap().push(due.job.key.to_string());
        core_plan(due, now)
    };
    let mut rounds = Vec::new();
    for _ in 0..4 {
        let planned = world.store.plan_due(&PlanDue::new(at("02:00"), 2, &targets()), &plan).await.unwrap();
        assert_eq!(planned.next_due_at, Some(at("2026-11-16T01:10:00Z")), "what is due and left over is not next");
        rounds.push(planned.timers);
    }
    assert_eq!(rounds, [2, 2, 1, 0]);
    assert_eq!(*order.lock().unwrap(), ["at-10", "at-20", "at-30", "at-40", "at-50"]);
}

pub async fn only_the_targets_asked_for_are_planned(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("logs", "0 * * * *")).await;
    world.create(to(job("mails", "30 * * * *"), MAIL)).await;
    let none = world.store.plan_due(&PlanDue::new(at("05:00"), 10, &[]), &core_plan).await.unwrap();
    assert_eq!((none.timers, none.next_due_at), (0, None));
    let mail = world.store.plan_due(&PlanDue::new(at("05:00"), 10, &[target(MAIL)]), &core_plan).await.unwrap();
    let keys: Vec<_> = mail.runs.iter().map(|run| run.job.key.as_str()).collect();
    assert_eq!((keys, mail.timers), (vec!["mails"], 1));
    assert_eq!(mail.next_due_at, Some(at("05:30")));
    let log = world.store.plan_due(&PlanDue::new(at("05:00"), 10, &[target(LOG)]), &core_plan).await.unwrap();
    assert_eq!((log.timers, log.next_due_at), (1, Some(at("06:00"))), "mail's is not asked about");
}

pub async fn a_slot_gets_one_run_however_often_it_is_proposed(fresh: Fresh) {
    let world = World::new(&fresh);
    let row = world.create(job("hourly", "0 * * * *")).await;
    world.plan(at("01:00")).await;
    let first = world.runs().await;
    // A plan that forgot what it did: the old slot again, under the same and under another id, beside a new one.
    let forgetful = |due: &Due, now| {
        let plan = core_plan(due, now);
        let new = plan.runs[0].clone();
        let id = RunId::for_slot(due.job.id, None, at("01:00"));
        let old = everbell_core::NewRun { id, slot_at: Some(at("01:00")), ..new.clone() };
        let other_id = everbell_core::NewRun { id: super::given::by_hand(now, "twin"), ..old.clone() };
        Plan { runs: vec![old, other_id, new], ..plan }
    };
    let planned = world.store.plan_due(&PlanDue::new(at("02:00"), 10, &targets()), &forgetful).await.unwrap();
    let slots: Vec<_> = planned.runs.iter().map(|run| run.slot_at).collect();
    assert_eq!(slots, [Some(at("02:00"))], "what was there is not reported");
    let runs = world.runs().await;
    assert_eq!((runs.len(), &runs[1]), (2, &first[0]), "and not touched");
    assert_eq!(world.get("hourly").await.timer.unwrap().next_run_at, Some(at("03:00")));
    assert_eq!(runs[0].job_id, Some(row.job.definition.id));
}

pub async fn the_mark_never_goes_back(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.plan(at("01:00")).await;
    let backwards = |due: &Due, _| {
        let mut plan = Plan::nothing(&due.timer);
        plan.timer.last_slot_at = at("00:10");
        plan.timer.next_run_at = Some(at("03:00"));
        plan
    };
    world.store.plan_due(&PlanDue::new(at("02:00"), 10, &targets()), &backwards).await.unwrap();
    let timer = world.get("hourly").await.timer.unwrap();
    assert_eq!((timer.next_run_at, timer.last_slot_at), (Some(at("03:00")), at("01:00")));
}

pub async fn a_plan_may_leave_its_timer_as_it_is(fresh: Fresh) {
    let world = World::new(&fresh);
    let before = world.create(job("hourly", "0 * * * *")).await;
    let nothing = |due: &Due, _| Plan::nothing(&due.timer);
    let planned = world.store.plan_due(&PlanDue::new(at("01:00"), 10, &targets()), &nothing).await.unwrap();
    assert_eq!((planned.timers, planned.runs.len()), (1, 0));
    assert_eq!(world.get("hourly").await, before);
    assert_eq!(world.plan(at("01:00")).await.runs.len(), 1, "it is still due");
}

pub async fn a_plan_can_retire_its_job(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    let retire = |due: &Due, _| {
        let timer = everbell_core::plan::disarm(&due.timer);
        Plan { retire: true, ..Plan::nothing(&timer) }
    };
    world.store.plan_due(&PlanDue::new(at("01:00"), 10, &targets()), &retire).await.unwrap();
    let row = world.get("hourly").await;
    assert_eq!((row.job.state.status, row.job.state.updated_by.as_str()), (JobStatus::Retired, "everbell"));
    assert_eq!((row.job.state.revision, row.job.state.updated_at), (2, at("01:00")));
    assert_eq!(row.timer.unwrap().next_run_at, None);
}

pub async fn a_schedule_that_cannot_be_read_stops_its_job_alone(fresh: Fresh) {
    let world = World::new(&fresh);
    for key in ["broken", "whole"] {
        world.create(job(key, "0 * * * *")).await;
    }
    let one_bad = |due: &Due, now| match due.job.key.as_str() {
        "broken" => {
            let timer = everbell_core::plan::disarm(&due.timer);
            Plan { error: Some("the zone is gone".to_owned()), ..Plan::nothing(&timer) }
        }
        _ => core_plan(due, now),
    };
    let planned = world.store.plan_due(&PlanDue::new(at("01:00"), 10, &targets()), &one_bad).await.unwrap();
    let row = world.get("broken").await;
    assert_eq!(planned.errored, [(row.job.definition.id, "the zone is gone".to_owned())]);
    assert_eq!((planned.timers, planned.runs.len(), planned.runs[0].job.key.as_str()), (2, 1, "whole"));
    assert_eq!((row.job.state.status, row.job.state.error.as_deref()), (JobStatus::Active, Some("the zone is gone")));
    assert_eq!((row.job.state.updated_by.as_str(), row.job.state.revision), ("everbell", 2));
    assert_eq!(row.timer.unwrap().next_run_at, None);
    assert_eq!(world.plan(at("02:00")).await.timers, 1);
}

pub async fn a_stored_schedule_in_an_unknown_zone_errors(fresh: Fresh) {
    let world = World::new(&fresh);
    let broken = everbell_core::Unschedulable {
        expression: Some("0 * * * *".to_owned()),
        timezone: "Mars/Olympus_Mons".to_owned(),
        reason: "unknown zone".to_owned(),
        ..everbell_core::Unschedulable::default()
    };
    let definition =
        everbell_core::with!(everbell_core::Definition { spec: Err(broken), ..job("broken", "0 * * * *") });
    let mut new = everbell_core::change::create(definition);
    new.timer.as_mut().unwrap().next_run_at = Some(at("01:00"));
    world.insert(&new).await;
    world.create(job("whole", "0 * * * *")).await;
    let planned = world.plan(at("01:00")).await;
    assert_eq!((planned.errored.len(), planned.runs.len()), (1, 1));
    let errored = JobFilter { errored: Some(true), ..JobFilter::default() };
    assert_eq!(world.keys(&errored).await, ["broken"]);
}

pub async fn a_thousand_runs_fit_into_one_plan(fresh: Fresh) {
    let world = World::new(&fresh);
    let definition = super::given::with(job("eager", "* * * * *"), |values| {
        values.catch_up = everbell_core::CatchUp::All;
        values.catch_up_limit = 1_000;
    });
    world.create(definition).await;
    let planned = world.plan(at("20:00")).await;
    assert_eq!(planned.runs.len(), 1_000);
    assert!(planned.runs.is_sorted_by_key(|run| run.slot_at), "in the order of their slots");
    assert_eq!(planned.gaps.len(), 1);
    let runs = world.runs_in_pages(&everbell_core::store::RunFilter::default(), 333).await;
    assert_eq!(runs.len(), 1_000);
    assert!(runs.iter().rev().is_sorted_by_key(|run| run.slot_at), "newest first");
}
