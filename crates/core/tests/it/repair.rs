//! Active jobs that would never fire again, and those that rightly do not.

use everbell_core::change::{self, JobView};
use everbell_core::plan::Missed;
use everbell_core::rearm::rearm;
use everbell_core::repair::{Repair, needed};
use everbell_core::{Definition, GapReason, Job, JobStatus, Pause, Scope, Spec, Timer, Unschedulable, Zone};
use jiff::Timestamp;

use crate::given;

fn at(text: &str) -> Timestamp {
    format!("2026-11-15T{text}:00Z").parse().unwrap()
}

/// A job that was made at 08:30, with a timer that has fired up to 11:00 and lost its next fire.
fn damaged(definition: Definition) -> JobView {
    let new = change::create(definition);
    let blank = Timer::new(new.definition.id, at("11:00"));
    JobView {
        job: Job::new(new.definition, new.state),
        timer: blank,
        org: None,
        active: Vec::new(),
        upstream_succeeded_at: None,
    }
}

fn hourly() -> JobView {
    damaged(given::job("0 * * * *", "", at("08:30")))
}

fn needs(view: &JobView) -> Option<Repair> {
    needed(&view.job, Some(&view.timer))
}

#[test]
fn a_timer_without_a_next_fire_is_armed_after_its_mark() {
    let view = hourly();
    assert_eq!(needs(&view), Some(Repair::Arm));
    let change = change::repair(&view, "everbell", at("13:30")).unwrap();
    assert_eq!(change.plan.timer.next_run_at, Some(at("12:00")), "due, so that catch-up decides about what went by");
    assert_eq!(change.plan.timer.last_slot_at, at("11:00"));
    assert_eq!((change.state.revision, change.state.updated_by.as_str()), (view.job.state.revision + 1, "everbell"));
    let repaired = JobView { timer: change.plan.timer, ..view };
    assert_eq!(needs(&repaired), None);
    assert!(change::repair(&repaired, "everbell", at("13:30")).is_err());
}

#[test]
fn who_rightly_has_no_next_fire_is_left_alone() {
    let base = given::job("0 * * * *", "", at("08:30"));
    let spec = base.spec.clone().unwrap();
    let ended = spec.with_bounds(None, Some(at("11:30"))).unwrap();
    assert_eq!(
        needs(&damaged(everbell_core::with!(Definition { spec: Ok(ended), ..base.clone() }))),
        None,
        "its schedule has ended"
    );
    let once = Spec::once(at("11:00"), Zone::get("UTC").unwrap()).unwrap();
    assert_eq!(
        needs(&damaged(everbell_core::with!(Definition { spec: Ok(once), ..base.clone() }))),
        None,
        "it had its slot"
    );
    let later = Spec::once(at("12:00"), Zone::get("UTC").unwrap()).unwrap();
    assert_eq!(
        needs(&damaged(everbell_core::with!(Definition { spec: Ok(later), ..base.clone() }))),
        Some(Repair::Arm)
    );
    assert_eq!(
        needs(&damaged(everbell_core::with!(Definition { scope: Scope::PerOrg, ..base }))),
        None,
        "org updates look after its timers"
    );

    let mut view = hourly();
    let pause = Pause { reason: "SMTP down".to_owned(), by: "ana".to_owned(), at: at("11:10"), until: None };
    view.job.state = view.job.state.paused(pause).unwrap();
    assert_eq!(needs(&view), None, "paused");
    view.job.state = view.job.state.retired("ana", at("11:20")).unwrap();
    assert_eq!((view.job.state.status, needs(&view)), (JobStatus::Retired, None));
}

#[test]
fn an_error_whose_cause_is_gone_ends_with_a_gap() {
    let mut view = hourly();
    view.job.state = view.job.state.errored("no zone `Mars/Base`", "everbell", at("11:10")).unwrap();
    let broken = Unschedulable {
        expression: None,
        timezone: "Mars/Base".to_owned(),
        reason: "no".to_owned(),
        ..Unschedulable::default()
    };
    let definition = everbell_core::with!(Definition { spec: Err(broken), ..(*view.job.definition).clone() });
    let still = JobView {
        job: everbell_core::with!(Job { definition: definition.into(), ..view.job.clone() }),
        ..view.clone()
    };
    assert_eq!(needs(&still), None, "nothing can be done before it can be read");

    assert_eq!(needs(&view), Some(Repair::EndError));
    let change = change::repair(&view, "everbell", at("13:30")).unwrap();
    assert_eq!(change, change::resume(&view, Missed::Skip, "everbell", at("13:30")).unwrap());
    let gap = &change.plan.gaps[0];
    assert_eq!((gap.reason, gap.first_slot_at, gap.last_slot_at), (GapReason::Errored, at("12:00"), at("13:00")));
    assert_eq!((change.state.error, change.plan.timer.next_run_at), (None, Some(at("14:00"))));
}

#[test]
fn a_timer_that_comes_back_from_a_false_future_forgets_where_its_fire_was_moved() {
    let mut view = hourly();
    view.timer.last_slot_at = at("17:00");
    view.timer.next_run_at = Some(at("18:20"));
    view.timer.rescheduled_from = Some(at("18:00"));
    let timer = rearm(&view.job.definition, &view.timer, view.job.definition.spec.as_ref().ok(), at("13:30"));
    assert_eq!((timer.last_slot_at, timer.next_run_at), (at("13:30"), Some(at("14:00"))));
    assert_eq!(timer.rescheduled_from, None, "or the slot of 18:00 would be fired at 14:00");
}
