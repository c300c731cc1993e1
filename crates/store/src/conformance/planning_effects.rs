//! `plan_due`: overlap, dependencies, orgs, gaps and one-time jobs, as plans of core write them.

use std::time::Duration;

use everbell_core::plan::{Plan, REPLACER};
use everbell_core::store::{Due, GapFilter, PlanDue};
use everbell_core::{
    CatchUp, Dependency, Gap, GapReason, JobKey, JobStatus, OrgId, Overlap, RunId, RunStatus, SkipReason,
};

use super::Fresh;
use super::given::{LOG, MAIL, at, by_hand, core_plan, job, org, per_org, target, to, with};
use super::world::{World, failure, success, targets};

pub async fn a_slot_that_overlaps_is_a_skipped_run(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    let blocking = world.plan(at("01:00")).await.runs[0].id;
    let planned = world.plan(at("02:00")).await;
    assert_eq!(planned.runs[0].skipped, Some("overlap"));
    let run = world.run(planned.runs[0].id).await;
    assert_eq!((run.status, run.skip), (RunStatus::Skipped, Some(SkipReason::Overlap { blocking })));
    assert_eq!((run.finished_at, run.failure, run.attempt), (None, None, 0));
}

pub async fn a_slot_that_queues_is_held(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("hourly", "0 * * * *"), |values| values.overlap = Overlap::Queue)).await;
    world.plan(at("01:00")).await;
    let held = world.plan(at("02:00")).await.runs[0].id;
    let run = world.run(held).await;
    assert_eq!((run.status, run.held, run.skip), (RunStatus::Pending, true, None));
    let third = world.plan(at("03:00")).await.runs[0].clone();
    assert_eq!(third.skipped, Some("overlap"), "at most one waits");
    assert_eq!(world.run(third.id).await.skip, Some(SkipReason::Overlap { blocking: held }));
}

pub async fn a_replaced_pending_run_is_canceled_at_once(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("hourly", "0 * * * *"), |values| values.overlap = Overlap::Replace)).await;
    let first = world.plan(at("01:00")).await.runs[0].id;
    world.plan(at("02:00")).await;
    let run = world.run(first).await;
    assert_eq!((run.status, run.finished_at), (RunStatus::Canceled, Some(at("02:00"))));
    let failure = run.failure.unwrap();
    assert_eq!(
        (failure.code.as_str(), failure.message.as_str()),
        ("canceled", "canceled by everbell (overlap: replace)")
    );
    assert_eq!((run.started_at, run.attempt, run.held), (None, 0, false));
}

pub async fn a_replaced_running_run_is_asked_to_stop(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("hourly", "0 * * * *"), |values| values.overlap = Overlap::Replace)).await;
    world.plan(at("01:00")).await;
    let claims = world.start(at("01:00")).await;
    let second = world.plan(at("02:00")).await.runs[0].id;
    let run = world.run(claims[0].run.id).await;
    assert_eq!((run.status, run.cancel_by.as_deref(), run.finished_at), (RunStatus::Running, Some(REPLACER), None));
    assert!(world.run(second).await.held, "it takes the place when that has ended");
}

pub async fn canceling_what_has_ended_or_never_was_does_nothing(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    let ended = world.run_due(&success(), at("01:00")).await[0].run.id;
    let before = world.run(ended).await;
    let cancel = |due: &Due, now| {
        let unknown = by_hand(at("00:00"), "unknown");
        Plan { cancel: vec![ended, unknown], ..core_plan(due, now) }
    };
    let planned = world.store.plan_due(&PlanDue::new(at("02:00"), 10, &targets()), &cancel).await.unwrap();
    assert_eq!(planned.runs.len(), 1);
    assert_eq!(world.run(ended).await, before);
}

pub async fn folded_slots_are_a_gap(fresh: Fresh) {
    let world = World::new(&fresh);
    let row = world.create(job("hourly", "0 * * * *")).await;
    let planned = world.plan(at("05:30")).await;
    let expected = Gap::new(at("01:00"), at("04:00"), 4, GapReason::Coalesced);
    assert_eq!(planned.gaps, [(row.job.definition.id, expected.clone())]);
    assert_eq!(world.gaps(&GapFilter::default()).await, [expected]);
    let run = world.run(planned.runs[0].id).await;
    assert_eq!((run.slot_at, run.folded, run.catch_up), (Some(at("05:00")), 4, true));
}

pub async fn gaps_of_several_reasons_are_written_as_given(fresh: Fresh) {
    let world = World::new(&fresh);
    let definition = with(job("hourly", "0 * * * *"), |values| {
        values.catch_up = CatchUp::All;
        values.catch_up_limit = 1;
        values.catch_up_window = Some(Duration::from_hours(3));
    });
    world.create(definition).await;
    let planned = world.plan(at("08:30")).await;
    let told: Vec<_> =
        planned.gaps.iter().map(|(_, gap)| (gap.reason, gap.first_slot_at, gap.last_slot_at, gap.slots)).collect();
    assert_eq!(
        told,
        [(GapReason::Expired, at("01:00"), at("05:00"), 5), (GapReason::Missed, at("06:00"), at("07:00"), 2)]
    );
    let mut stored = world.gaps(&GapFilter::default()).await;
    stored.reverse();
    assert_eq!(stored, planned.gaps.into_iter().map(|(_, gap)| gap).collect::<Vec<_>>());
}

pub async fn the_same_gap_twice_is_one_gap(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    let gap = everbell_core::with!(Gap {
        actor: Some("ana".to_owned()),
        ..Gap::new(at("01:00"), at("01:00"), 1, GapReason::Missed)
    });
    let repeat = |due: &Due, _| Plan { gaps: vec![gap.clone()], ..Plan::nothing(&due.timer) };
    world.store.plan_due(&PlanDue::new(at("01:00"), 10, &targets()), &repeat).await.unwrap();
    world.store.plan_due(&PlanDue::new(at("01:00"), 10, &targets()), &repeat).await.unwrap();
    assert_eq!(world.gaps(&GapFilter::default()).await, [gap]);
}

pub async fn a_plan_sees_what_is_active_oldest_first(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("hourly", "0 * * * *"), |values| values.overlap = Overlap::Allow)).await;
    world.create(with(job("other", "0 * * * *"), |values| values.overlap = Overlap::Allow)).await;
    world.run_due(&success(), at("01:00")).await;
    world.plan(at("02:00")).await;
    world.run_now("hourly", "by hand", at("02:30")).await;
    world.start(at("02:30")).await;
    world.plan(at("03:00")).await;
    let id = super::given::job_id("hourly", 1);
    let expected = [
        RunId::for_slot(id, None, at("02:00")),
        by_hand(at("02:30"), "by hand"),
        RunId::for_slot(id, None, at("03:00")),
    ];
    let look = |due: &Due, now| {
        if due.job.id == id {
            let active: Vec<_> = due.active.iter().map(|run| run.id).collect();
            assert_eq!(active, expected);
        }
        core_plan(due, now)
    };
    assert_eq!(world.store.plan_due(&PlanDue::new(at("04:00"), 10, &targets()), &look).await.unwrap().timers, 2);
}

pub async fn a_dependency_is_met_by_a_recent_success_of_any_version(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("upstream", "50 * * * *")).await;
    let on = |name| Dependency { job_key: JobKey::new(name).unwrap(), within: Duration::from_mins(30) };
    world.create(with(job("depends", "0 * * * *"), |values| values.depends_on = Some(on("upstream")))).await;
    world.run_due(&failure(), at("00:50")).await;
    let unmet = world.plan(at("01:00")).await.runs[0].clone();
    assert_eq!(unmet.skipped, Some("dependency"), "a failure is no success");
    let reason = SkipReason::Dependency { job_key: on("upstream").job_key, within: on("upstream").within };
    assert_eq!(world.run(unmet.id).await.skip, Some(reason));

    world.run_due(&success(), at("01:50")).await;
    let (id, now) = (super::given::job_id("upstream", 2), at("01:55"));
    let edit = everbell_core::change::Edit::default;
    world
        .try_change("upstream", now, |view| everbell_core::change::new_version(view, edit(), id, true, "ana", now))
        .await
        .unwrap();
    assert_eq!(world.plan(at("02:00")).await.runs[0].skipped, None, "the success of the version before counts");
    world.run_due(&failure(), at("02:50")).await;
    let last = world.plan(at("03:00")).await.runs[0].clone();
    assert_eq!(last.skipped, Some("dependency"), "too long ago");
}

pub async fn a_dependency_counts_from_the_end_of_the_run_not_from_its_slot(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("upstream", "0 * * * *"), |values| values.overlap = Overlap::Allow)).await;
    let on = Dependency { job_key: JobKey::new("upstream").unwrap(), within: Duration::from_mins(30) };
    world.create(with(job("depends", "30 5 * * *"), |values| values.depends_on = Some(on))).await;
    world.plan(at("01:00")).await;
    let slow = world.start(at("01:00")).await;
    world.run_due(&success(), at("02:00")).await;
    world.finish(&slow, &success(), at("05:20")).await;
    let planned = world.plan(at("05:30")).await;
    let depends = planned.runs.iter().find(|run| run.job.key.as_str() == "depends").unwrap();
    assert_eq!(depends.skipped, None, "the run of the older slot succeeded ten minutes ago");
}

pub async fn a_one_time_job_fires_once_and_waits_for_its_end(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("once", "once 12:00")).await;
    let planned = world.plan(at("12:00")).await;
    assert_eq!((planned.runs.len(), planned.next_due_at), (1, None));
    let row = world.get("once").await;
    assert_eq!((row.job.state.status, row.timer.unwrap().next_run_at), (JobStatus::Active, None));
}

pub async fn a_one_time_job_that_is_not_caught_up_retires(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("once", "once 12:00"), |values| values.catch_up = CatchUp::None)).await;
    let planned = world.plan(at("13:00")).await;
    assert_eq!((planned.runs.len(), planned.gaps.len()), (0, 1));
    assert_eq!(world.get("once").await.job.state.status, JobStatus::Retired);
}

pub async fn the_next_fire_is_not_looked_for_behind_very_many_others(fresh: Fresh) {
    let world = World::new(&fresh);
    let orgs: Vec<_> = (0..1_200).map(|n| org(&format!("org-{n}"), "UTC")).collect();
    world.put(&orgs, at("00:00")).await;
    world.create(to(per_org(job("crowd", "0 1 * * *")), MAIL)).await;
    world.reconcile_orgs(at("00:00")).await;
    world.create(job("behind", "0 2 * * *")).await;
    let next = async |now| {
        world.store.plan_due(&PlanDue::new(at(now), 10, &[target(LOG)]), &core_plan).await.unwrap().next_due_at
    };
    let told = next("00:30").await;
    assert!(told.is_some_and(|next| (at("01:00")..=at("02:00")).contains(&next)), "{told:?} is too late or too early");
    assert_eq!(next("01:00").await, Some(at("02:00")), "what is due is not in the way");
    let mail = world.store.plan_due(&PlanDue::new(at("00:30"), 10, &[target(MAIL)]), &core_plan).await.unwrap();
    assert_eq!(mail.next_due_at, Some(at("01:00")));
}

pub async fn an_org_has_its_own_timer_slots_and_runs(fresh: Fresh) {
    let world = World::new(&fresh);
    let row = world.create_for("acme", job("brief", "0 9 * * * in Asia/Tokyo")).await;
    assert_eq!(row.timer, None, "there is one for each org");
    let slot = at("2026-11-16T00:00:00Z");
    let planned = world.plan(slot).await;
    let acme = OrgId::new("acme").unwrap();
    let run = world.run(planned.runs[0].id).await;
    assert_eq!(run.id, RunId::for_slot(row.job.definition.id, Some(&acme), slot));
    assert_eq!((run.org.as_ref(), run.local_date), (Some(&acme), Some(jiff::civil::date(2026, 11, 16))));
    let outcome = world.store.slot_outcome(row.job.definition.id, Some(&acme), slot).await.unwrap();
    assert!(outcome.is_some());
    assert_eq!(world.store.slot_outcome(row.job.definition.id, None, slot).await.unwrap(), None);
    let claims = world.start(slot).await;
    assert_eq!(claims[0].run.org, Some(acme.clone()));
    world.finish(&claims, &success(), slot).await;
    let next = world.plan(at("2026-11-17T00:00:00Z")).await;
    assert_eq!(next.runs[0].skipped, None);
    assert_eq!(world.run(next.runs[0].id).await.local_date, Some(jiff::civil::date(2026, 11, 17)));
}
