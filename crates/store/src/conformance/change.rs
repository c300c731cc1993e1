//! Changes that operators make to a job.

use std::sync::Mutex;

use everbell_core::change::{self, Edit, JobView};
use everbell_core::plan::{Backfill, Missed, RunNow};
use everbell_core::store::{GapFilter, JobFilter, JobRef, SlotOutcome};
use everbell_core::{GapReason, Invalid, JobKey, JobStatus, Overlap, Pause, RunStatus, SkipReason, Trigger};
use jiff::Timestamp;

use super::Fresh;
use super::given::{MAIL, assert_refused, at, audit, by_hand, job, job_id, json, target, with};
use super::world::{World, by_key, pause_of, success};

pub async fn pausing_disarms(fresh: Fresh) {
    let world = World::new(&fresh);
    let before = world.create(job("hourly", "0 * * * *")).await;
    let pause = Pause { until: Some(at("23:00")), ..pause_of(at("00:30")) };
    let changed = world.try_change("hourly", at("00:30"), |view| change::pause(view, pause.clone())).await.unwrap();
    let row = world.get("hourly").await;
    assert_eq!(changed.job, row);
    assert_eq!((changed.successor, changed.runs, changed.gaps), (None, vec![], vec![]));
    assert_eq!((row.job.state.status, row.job.state.pause), (JobStatus::Paused, Some(pause)));
    assert_eq!((row.job.state.revision, row.job.state.updated_at), (2, at("00:30")));
    let timer = row.timer.unwrap();
    assert_eq!((timer.next_run_at, timer.last_slot_at), (None, before.timer.unwrap().last_slot_at));
    let planned = world.plan(at("03:00")).await;
    assert_eq!((planned.timers, planned.next_due_at), (0, None));
    assert_eq!(world.runs().await, []);
}

pub async fn pauses_that_end_are_told_earliest_first(fresh: Fresh) {
    let world = World::new(&fresh);
    for (key, until) in
        [("late", Some("23:00")), ("endless", None), ("soon", Some("02:00")), ("resumed", Some("01:00"))]
    {
        world.create(job(key, "0 * * * *")).await;
        let pause = Pause { until: until.map(at), ..pause_of(at("00:30")) };
        world.try_change(key, at("00:30"), |view| change::pause(view, pause.clone())).await.unwrap();
    }
    world.create(job("active", "0 * * * *")).await;
    world.resume("resumed", Missed::Skip, at("00:40")).await;
    let (soon, late) = ((job_id("soon", 1), at("02:00")), (job_id("late", 1), at("23:00")));
    assert_eq!(world.store.pauses_ending(10).await.unwrap(), [soon, late]);
    assert_eq!(world.store.pauses_ending(1).await.unwrap(), [soon]);
    world.retire("soon", at("00:50")).await;
    assert_eq!(world.store.pauses_ending(10).await.unwrap(), [late]);
}

pub async fn resuming_arms_and_writes_the_gap_of_the_pause(fresh: Fresh) {
    let world = World::new(&fresh);
    let row = world.create(job("hourly", "0 * * * *")).await;
    world.pause("hourly", at("00:30")).await;
    let changed = world.resume("hourly", Missed::Skip, at("03:30")).await;
    let gap = &changed.gaps[0];
    assert_eq!((gap.first_slot_at, gap.last_slot_at, gap.slots), (at("01:00"), at("03:00"), 3));
    assert_eq!((gap.reason, changed.gaps.len()), (GapReason::Paused, 1));
    assert_eq!(changed.job.timer.unwrap().next_run_at, Some(at("04:00")));
    assert_eq!((changed.job.job.state.status, changed.job.job.state.pause), (JobStatus::Active, None));
    let filter = GapFilter { job_id: Some(row.job.definition.id), ..GapFilter::default() };
    assert_eq!(world.gaps(&filter).await, changed.gaps);
    assert_eq!(world.plan(at("04:00")).await.runs.len(), 1);
}

pub async fn resuming_may_run_what_was_missed_once(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.pause("hourly", at("00:30")).await;
    let changed = world.resume("hourly", Missed::RunOnce, at("03:30")).await;
    let [run] = &changed.runs[..] else { panic!("{changed:?}") };
    assert_eq!((run.slot_at, run.status, run.catch_up), (Some(at("03:00")), RunStatus::Pending, true));
    assert_eq!((run.created_at, run.scheduled_at), (at("03:30"), at("03:00")));
    assert_eq!((changed.gaps.len(), changed.gaps[0].slots), (1, 2));
    assert_eq!(world.runs().await, changed.runs);
    assert_eq!(changed.job.last_run.as_ref(), Some(run));
}

pub async fn retiring_is_final_and_keeps_history(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.run_due(&success(), at("01:00")).await;
    let changed = world.retire("hourly", at("01:30")).await;
    assert_eq!(changed.job.job.state.status, JobStatus::Retired);
    assert_eq!(changed.job.timer.clone().unwrap().next_run_at, None);
    let again = world.try_change("hourly", at("02:00"), |view| change::retire(view, "ana", at("02:00"))).await;
    assert_refused(again, "invalid");
    assert_eq!(world.get("hourly").await, changed.job);
    assert_eq!(world.runs().await.len(), 1);
    assert_eq!(world.plan(at("05:00")).await.timers, 0);
}

pub async fn retiring_fires_a_slot_that_is_just_due(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    let changed = world.retire("hourly", at("02:00:05")).await;
    let slots: Vec<_> = changed.runs.iter().map(|run| run.slot_at).collect();
    assert_eq!(slots, [Some(at("02:00"))]);
    assert_eq!((changed.gaps[0].first_slot_at, changed.gaps[0].reason), (at("01:00"), GapReason::Missed));
    assert_eq!(world.start(at("02:00:06")).await.len(), 1, "it still runs");
}

fn edit(description: &str) -> Edit {
    Edit { description: Some(description.to_owned()), target: Some(target(MAIL)), ..Edit::default() }
}

pub async fn a_new_version_takes_over_in_one_step(fresh: Fresh) {
    let world = World::new(&fresh);
    let old = world.create(job("hourly", "0 * * * *")).await;
    let (id, now) = (job_id("hourly", 2), at("00:30"));
    let change = |view: &JobView| change::new_version(view, edit("second"), id, false, "bo", now);
    let changed = world.try_change("hourly", now, change).await.unwrap();
    let successor = changed.successor.unwrap();
    assert_eq!(changed.job.job.state.status, JobStatus::Retired);
    assert_eq!(changed.job.timer.unwrap().next_run_at, None);
    let definition = &successor.job.definition;
    assert_eq!((definition.version, definition.supersedes), (2, Some(old.job.definition.id)));
    assert_eq!((definition.target.as_str(), definition.description.as_str()), (MAIL, "second"));
    assert_eq!(successor.timer.clone().unwrap().next_run_at, Some(at("01:00")));
    assert_eq!(world.get("hourly").await, successor, "the key names the living version");
    let first = world.store.get_job(&JobRef::Version(JobKey::new("hourly").unwrap(), 1)).await.unwrap();
    assert_eq!((first.job.state.status, first.job.definition), (JobStatus::Retired, old.job.definition));
    let planned = world.plan(at("01:00")).await;
    let jobs: Vec<_> = planned.runs.iter().map(|run| run.job.id).collect();
    assert_eq!(jobs, [id], "only the new version fires");
}

pub async fn a_new_version_of_a_paused_job_stays_paused(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.pause("hourly", at("00:10")).await;
    let (id, now) = (job_id("hourly", 2), at("02:30"));
    let change = |view: &JobView| change::new_version(view, edit("second"), id, false, "bo", now);
    let changed = world.try_change("hourly", now, change).await.unwrap();
    let successor = changed.successor.unwrap();
    assert_eq!(
        (successor.job.state.status, successor.job.state.pause),
        (JobStatus::Paused, Some(pause_of(at("00:10"))))
    );
    assert_eq!(successor.timer.unwrap().next_run_at, None);
    assert_eq!((changed.gaps[0].slots, changed.gaps[0].reason), (2, GapReason::Paused));
    assert_eq!(world.plan(at("05:00")).await.timers, 0);
}

pub async fn a_new_version_whose_id_is_taken_changes_nothing(fresh: Fresh) {
    let world = World::new(&fresh);
    let other = world.create(job("other", "0 * * * *")).await;
    let before = world.create(job("hourly", "0 * * * *")).await;
    let (id, now) = (other.job.definition.id, at("01:00:01"));
    let change = |view: &JobView| change::new_version(view, edit("second"), id, false, "bo", now);
    assert_refused(world.try_change("hourly", now, change).await, "conflict");
    assert_eq!(world.get("hourly").await, before);
    assert_eq!(world.runs().await, [], "the last slot of the old version was not written");
    assert_eq!(world.actions(Some("job:hourly")).await, ["job.create"]);
    assert_eq!(world.jobs_in_pages(&JobFilter::default(), 10).await.len(), 2);
}

pub async fn a_stale_revision_changes_nothing(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.pause("hourly", at("00:10")).await;
    let before = world.get("hourly").await;
    let asked = Mutex::new(0);
    let now = at("00:20");
    let resume = |view: &JobView| {
        *asked.lock().unwrap() += 1;
        change::resume(view, Missed::Skip, "bo", now)
    };
    let entry = audit("job.resume", "job:hourly", now);
    for stale in [1, 3, u64::from(u32::MAX)] {
        assert_refused(world.store.change_job(&by_key("hourly"), Some(stale), &resume, &entry).await, "stale");
    }
    assert_eq!(*asked.lock().unwrap(), 0, "nobody was asked");
    assert_eq!(world.get("hourly").await, before);
    assert_eq!(world.actions(None).await, ["job.change", "job.create"]);
    let changed = world.store.change_job(&by_key("hourly"), Some(2), &resume, &entry).await.unwrap();
    assert_eq!(changed.job.job.state.revision, 3);
    assert_eq!(world.actions(None).await, ["job.resume", "job.change", "job.create"]);
}

pub async fn a_refusal_changes_nothing(fresh: Fresh) {
    let world = World::new(&fresh);
    let before = world.create(job("hourly", "0 * * * *")).await;
    let refuse = |_: &JobView| Err(Invalid::new("reason", "not today"));
    let answer = world.try_change("hourly", at("00:20"), refuse).await;
    let error = answer.unwrap_err();
    assert_eq!(error.to_string(), "reason: not today");
    assert_refused::<()>(Err(error), "invalid");
    assert_eq!(world.get("hourly").await, before);
    assert_eq!(world.actions(None).await, ["job.create"]);
}

pub async fn a_change_that_came_to_nothing_lets_go_of_its_job(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("minutely", "* * * * *")).await;
    let refuse = |_: &JobView| Err(Invalid::new("reason", "not today"));
    for minute in 1..20 {
        let now = at(&format!("00:{minute:02}"));
        assert_refused(world.try_change("minutely", now, refuse).await, "invalid");
        let entry = audit("job.pause", "job:minutely", now);
        let stale = world.store.change_job(&by_key("minutely"), Some(99), &refuse, &entry).await;
        assert_refused(stale, "stale");
        assert_eq!(world.plan(now).await.timers, 1, "at {now} the timer is still held by a change that is over");
    }
}

pub async fn a_decision_sees_the_job_as_it_is(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("hourly", "0 * * * *"), |values| values.overlap = Overlap::Queue)).await;
    world.plan(at("01:00")).await;
    world.plan(at("02:00")).await;
    let claim = &world.start(at("02:00")).await[0];
    world.store.cancel_run(claim.run.id, "bo", at("02:01"), &audit("run.cancel", "run", at("02:01"))).await.unwrap();
    let row = world.get("hourly").await;
    let look = |view: &JobView| {
        assert_eq!(view.job, row.job);
        assert_eq!(Some(&view.timer), row.timer.as_ref());
        let active: Vec<_> = view.active.iter().map(|run| (run.id, run.held, run.cancel_requested)).collect();
        assert_eq!(active, [(claim.run.id, false, true), (row.last_run.as_ref().unwrap().id, true, false)]);
        Err(Invalid::new("status", "only looked"))
    };
    assert_refused(world.try_change("hourly", at("02:10"), look).await, "invalid");
}

pub async fn a_run_by_hand_is_pending_at_once(fresh: Fresh) {
    let world = World::new(&fresh);
    let before = world.create(job("hourly", "0 * * * *")).await;
    let now = at("00:20:00.5");
    let payload = Some(json(r#"{"override": true}"#));
    let request = RunNow {
        id: by_hand(now, "one"),
        actor: "token:ops",
        payload: payload.clone(),
        overlap: None,
        trace_context: None,
    };
    let changed = world.try_change("hourly", now, |view| change::run_now(view, &request, now)).await.unwrap();
    let [run] = &changed.runs[..] else { panic!("{changed:?}") };
    assert_eq!((run.id, run.status, run.slot_at, run.attempt), (request.id, RunStatus::Pending, None, 0));
    assert_eq!((run.scheduled_at, run.created_at), (now, now));
    assert_eq!(run.trigger, Trigger::Manual("token:ops".to_owned()));
    assert_eq!((run.job_id, run.job_version), (Some(before.job.definition.id), Some(1)));
    let after = world.get("hourly").await;
    assert_eq!((after.timer, after.job), (before.timer, before.job), "neither timer nor revision moves");
    let claims = world.start(now).await;
    let value: serde_json::Value = serde_json::from_str(claims[0].run.payload.as_str()).unwrap();
    assert_eq!(value, serde_json::json!({ "override": true }));
    assert_eq!(world.run(request.id).await, claims[0].run);
}

pub async fn a_run_by_hand_obeys_overlap(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.plan(at("01:00")).await;
    let blocking = world.start(at("01:00")).await[0].run.id;
    let changed = world.run_now("hourly", "late", at("01:10")).await;
    let run = &changed.runs[0];
    assert_eq!((run.status, &run.skip), (RunStatus::Skipped, &Some(SkipReason::Overlap { blocking })));
    assert_eq!((run.finished_at, run.held), (None, false));
    assert_eq!(world.run(run.id).await, *run);
    assert_eq!(world.start(at("01:10")).await, [], "a skipped run never starts");
}

pub async fn a_run_by_hand_may_replace(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("hourly", "0 * * * *"), |values| values.overlap = Overlap::Replace)).await;
    world.run_now("hourly", "pending", at("00:10")).await;
    let replaced = by_hand(at("00:10"), "pending");
    world.run_now("hourly", "first", at("00:20")).await;
    let run = world.run(replaced).await;
    assert_eq!((run.status, run.finished_at), (RunStatus::Canceled, Some(at("00:20"))));
    assert_eq!(run.failure.unwrap().message, "canceled by ana");
    let running = world.start(at("00:21")).await[0].run.id;
    let changed = world.run_now("hourly", "second", at("00:30")).await;
    assert!(changed.runs[0].held, "it waits for the one that was asked to stop");
    let asked = world.run(running).await;
    assert_eq!((asked.status, asked.cancel_by.is_some()), (RunStatus::Running, true));
}

pub async fn the_same_run_by_hand_is_inserted_once(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("hourly", "0 * * * *"), |values| values.overlap = Overlap::Allow)).await;
    let first = world.run_now("hourly", "same", at("00:10")).await;
    let second = world.run_now("hourly", "same", at("00:10")).await;
    assert_eq!((first.runs.len(), second.runs.len()), (1, 0));
    assert_eq!(world.runs().await, first.runs);
}

pub async fn a_backfill_runs_what_had_no_run_and_nothing_twice(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    world.plan(at("01:00")).await;
    let missed = world.plan(at("05:00")).await;
    assert_eq!(missed.runs.len(), 1, "one run for the latest, the others are folded into it");
    let slots: Vec<Timestamp> = ["01:00", "02:00", "03:00", "04:00", "05:00"].map(at).to_vec();
    let id = everbell_core::BackfillId::new(at("05:30"), [7; 10]);
    let request = Backfill { id, slots: &slots, parallel: None, trace_context: None };
    let fill = async || world.try_change("hourly", at("05:30"), |view| change::backfill(view, &request)).await.unwrap();
    let changed = fill().await;
    let made: Vec<_> = changed.runs.iter().map(|run| run.slot_at.unwrap()).collect();
    assert_eq!(made, slots[1..4]);
    assert!(changed.runs.iter().all(|run| run.held && run.catch_up && run.trigger == Trigger::Backfill(id)));
    assert_eq!(changed.job.timer, world.get("hourly").await.timer);
    assert_eq!(fill().await.runs, [], "again it has nothing to do");
    // One after the other, the oldest first.
    let mut order = Vec::new();
    for minute in ["05:31", "05:32", "05:33", "05:34", "05:35"] {
        let claims = world.start(at(minute)).await;
        order.extend(claims.iter().map(|claim| claim.run.slot_at.unwrap()));
        world.finish(&claims, &success(), at(minute)).await;
    }
    order.sort_unstable();
    order.dedup();
    assert_eq!(order, slots[..4], "the last one was skipped when it was planned: a run was active");
    let outcome = world.store.slot_outcome(changed.job.job.definition.id, None, slots[2]).await.unwrap();
    assert!(matches!(outcome, Some(SlotOutcome::Run(_))), "the run tells more than the gap: {outcome:?}");
}

pub async fn the_next_fire_can_be_moved(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("daily", "0 9 * * *")).await;
    let (to, now) = (at("11:30"), at("08:00"));
    let changed = world.try_change("daily", now, |view| change::reschedule(view, to, "bo", now)).await.unwrap();
    let timer = changed.job.timer.unwrap();
    assert_eq!((timer.next_run_at, timer.rescheduled_from), (Some(to), Some(at("09:00"))));
    assert_eq!(world.plan(at("09:00")).await.timers, 0);
    world.plan(to).await;
    let run = &world.runs().await[0];
    assert_eq!((run.slot_at, run.scheduled_at), (Some(at("09:00")), to));
    let timer = world.get("daily").await.timer.unwrap();
    assert_eq!((timer.next_run_at, timer.rescheduled_from), (Some(at("2026-11-16T09:00:00Z")), None));
}

pub async fn the_next_slots_can_be_skipped(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("hourly", "0 * * * *")).await;
    let now = at("00:10");
    let changed = world.try_change("hourly", now, |view| change::skip_next(view, 2, "bo", now)).await.unwrap();
    let slots: Vec<Option<Timestamp>> = changed.runs.iter().map(|run| run.slot_at).collect();
    assert_eq!(slots, [Some(at("01:00")), Some(at("02:00"))]);
    let reason = Some(SkipReason::Operator { actor: "bo".to_owned() });
    assert!(changed.runs.iter().all(|run| run.status == RunStatus::Skipped && run.skip == reason), "{changed:?}");
    assert_eq!(changed.job.timer.unwrap().next_run_at, Some(at("03:00")));
}

pub async fn skipping_the_only_slot_of_a_one_time_job_retires_it(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(job("once", "once 12:00")).await;
    let now = at("00:10");
    let changed = world.try_change("once", now, |view| change::skip_next(view, 1, "bo", now)).await.unwrap();
    assert_eq!(changed.job.job.state.status, JobStatus::Retired);
    assert_eq!(changed.job.timer.unwrap().next_run_at, None);
}

pub async fn replacing_the_only_run_of_a_one_time_job_retires_it(fresh: Fresh) {
    let world = World::new(&fresh);
    world.create(with(job("once", "once 12:00"), |values| values.overlap = Overlap::Replace)).await;
    let replaced = world.plan(at("12:00")).await.runs[0].id;
    let changed = world.run_now("once", "instead", at("12:01")).await;
    assert_eq!(world.run(replaced).await.status, RunStatus::Canceled);
    assert_eq!((changed.job.job.state.status, changed.runs.len()), (JobStatus::Retired, 1), "its slot had its outcome");
}
