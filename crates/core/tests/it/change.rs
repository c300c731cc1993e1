//! Changes that operators make to a job: pause, resume, retire, new version, reschedule, skip, run now.

use everbell_core::change::{self, Edit, JobChange, JobView};
use everbell_core::cron::Expression;
use everbell_core::plan::{self, Backfill, MAX_BACKFILLED, Missed, PlanContext, RunNow};
use everbell_core::{
    ActiveRun, BackfillId, GapReason, Invalid, Job, JobId, JobStatus, Overlap, Pause, RunId, SkipReason, Spec, Target,
    Zone,
};
use jiff::{SignedDuration, Timestamp};

use crate::given;

fn at(text: &str) -> Timestamp {
    format!("2026-11-15T{text}Z").parse().unwrap()
}

/// An hourly job that was made at 08:30 and has fired up to 11:00.
fn hourly() -> JobView {
    let new = change::create(given::job("0 * * * *", "", at("08:30:00")));
    let mut timer = new.timer.unwrap();
    timer.last_slot_at = at("11:00:00");
    timer.next_run_at = Some(at("12:00:00"));
    JobView {
        job: Job::new(new.definition, new.state),
        timer,
        org: None,
        active: Vec::new(),
        upstream_succeeded_at: None,
    }
}

fn paused(reason: &str) -> Pause {
    Pause { reason: reason.to_owned(), by: "ana".to_owned(), at: at("11:10:00"), until: None }
}

/// The job as it is after the change was written.
fn after(view: &JobView, change: &JobChange) -> JobView {
    let job = everbell_core::with!(Job { state: change.state.clone(), ..view.job.clone() });
    JobView { job, timer: change.plan.timer.clone(), ..view.clone() }
}

#[test]
fn a_new_job_is_armed_and_does_not_fire() {
    let new = change::create(given::job("0 * * * *", "", at("09:00:00")));
    assert_eq!(new.next_run_at(), Some(at("10:00:00")), "the slot of the very moment of creation is not fired");
    assert_eq!(new.timer.as_ref().unwrap().last_slot_at, at("09:00:00"));
    assert_eq!((new.state.status, new.state.revision), (JobStatus::Active, 1));
}

#[test]
fn a_pause_needs_a_reason_and_disarms() {
    let view = hourly();
    for (reason, refused) in
        [("", "but is blank"), ("    ", "but is blank"), ("  x  ", "characters, not 1"), ("a\0bc", "NUL")]
    {
        let error = change::pause(&view, paused(reason)).unwrap_err();
        assert!(error.field == "reason" && error.reason.contains(refused), "{reason:?}: {error}");
    }
    let first = after(&view, &change::pause(&view, paused("SMTP down")).unwrap());
    let other = Pause { by: "bob".to_owned(), at: at("11:20:00"), ..paused("SMTP is still down") };
    let again = change::pause(&first, other).unwrap().state;
    let pause = again.pause.unwrap();
    assert_eq!((pause.by.as_str(), pause.at, pause.reason.as_str()), ("ana", at("11:10:00"), "SMTP is still down"));
    assert_eq!(again.updated_by, "bob");

    let until = Pause { until: Some(at("11:00:00")), ..paused("SMTP down") };
    assert_eq!(change::pause(&view, until).unwrap_err().to_string(), "until: must be in the future");

    let change = change::pause(&view, paused("SMTP down")).unwrap();
    assert_eq!((change.state.status, change.state.revision), (JobStatus::Paused, 2));
    assert_eq!(change.state.pause.as_ref().map(|pause| pause.by.as_str()), Some("ana"));
    assert_eq!((change.plan.timer.next_run_at, change.plan.timer.last_slot_at), (None, at("11:00:00")));
}

#[test]
fn a_resume_goes_on_from_now_and_explains_the_pause() {
    let view = hourly();
    let paused = after(&view, &change::pause(&view, paused("SMTP down")).unwrap());
    let resumed = change::resume(&paused, Missed::Skip, "ana", at("14:30:00")).unwrap();
    assert_eq!(resumed.state.status, JobStatus::Active);
    assert_eq!((resumed.state.pause.as_ref(), resumed.state.revision), (None, 3));
    assert_eq!(resumed.plan.timer.next_run_at, Some(at("15:00:00")));
    let gap = &resumed.plan.gaps[0];
    assert_eq!((gap.first_slot_at, gap.last_slot_at, gap.slots), (at("12:00:00"), at("14:00:00"), 3));
    assert_eq!(gap.reason, GapReason::Paused);
    assert!(resumed.plan.runs.is_empty());

    let once = change::resume(&paused, Missed::RunOnce, "ana", at("14:30:00")).unwrap();
    assert_eq!(once.plan.runs.iter().map(|run| run.slot_at).collect::<Vec<_>>(), [Some(at("14:00:00"))]);
    assert_eq!(once.plan.gaps[0].slots, 2);

    let error = change::resume(&view, Missed::Skip, "ana", at("14:30:00")).unwrap_err();
    assert_eq!(error.to_string(), "status: the job is not paused");
}

#[test]
fn an_errored_job_resumes_with_an_errored_gap() {
    let mut view = hourly();
    view.job.state = view.job.state.errored("unknown time zone", "engine", at("11:30:00")).unwrap();
    let resumed = change::resume(&view, Missed::Skip, "ana", at("12:30:00")).unwrap();
    assert_eq!(resumed.plan.gaps[0].reason, GapReason::Errored);
    assert_eq!(resumed.state.error, None);
}

#[test]
fn retired_is_final() {
    let view = hourly();
    let retired = after(&view, &change::retire(&view, "ana", at("11:30:00")).unwrap());
    assert_eq!((retired.job.state.status, retired.timer.next_run_at), (JobStatus::Retired, None));
    let now = at("11:40:00");
    let request =
        RunNow { id: RunId::by_hand(now, [1; 10]), actor: "ana", payload: None, overlap: None, trace_context: None };
    let refusals: Vec<Invalid> = [
        change::pause(&retired, paused("SMTP down")),
        change::resume(&retired, Missed::Skip, "ana", now),
        change::retire(&retired, "ana", now),
        change::new_version(&retired, Edit::default(), JobId::new(now, [2; 10]), false, "ana", now),
        change::reschedule(&retired, at("13:00:00"), "ana", now),
        change::skip_next(&retired, 1, "ana", now),
        change::run_now(&retired, &request, now),
    ]
    .into_iter()
    .map(Result::unwrap_err)
    .collect();
    assert!(refusals.iter().all(Invalid::is_retired), "{refusals:?}");
}

#[test]
fn a_new_version_continues_the_revisions_of_the_key() {
    let view = hourly();
    let now = at("11:30:00");
    let change = change::new_version(&view, Edit::default(), JobId::new(now, [2; 10]), false, "ana", now).unwrap();
    let (old, new) = (&change.state, &change.successor.as_ref().unwrap().state);
    assert!(old.revision > view.job.state.revision && new.revision > old.revision, "{} {}", old.revision, new.revision);
    let again = change::create(given::job("0 * * * *", "", now)).following(new);
    assert_eq!(again.state.revision, new.revision + 1);
}

#[test]
fn a_new_version_takes_only_what_changes_and_begins_now() {
    let view = hourly();
    let now = at("11:30:00");
    let spec = Spec::recurring("45 * * * *".parse::<Expression>().unwrap(), Zone::utc(), now);
    let edit = Edit { spec: Some(spec), ..Edit::default() };
    let change = change::new_version(&view, edit, JobId::new(now, [2; 10]), false, "ana", now).unwrap();
    assert_eq!(change.state.status, JobStatus::Retired);
    assert_eq!(change.plan.timer.next_run_at, None);
    let new = change.successor.unwrap();
    assert_eq!((new.definition.version, new.definition.supersedes), (2, Some(view.job.definition.id)));
    assert_eq!(new.definition.target, view.job.definition.target);
    assert_eq!(new.next_run_at(), Some(at("11:45:00")), "not 11:45 of an hour ago");
    assert_eq!(new.timer.as_ref().unwrap().last_slot_at, now);
}

#[test]
fn an_edit_loses_no_slot_that_is_just_due() {
    let view = hourly();
    let now = at("12:00:00.400");
    let edit = Edit { target: Some(Target::new("mail").unwrap()), ..Edit::default() };
    let change = change::new_version(&view, edit, JobId::new(now, [2; 10]), false, "ana", now).unwrap();
    assert_eq!(change.plan.runs.iter().map(|run| run.slot_at).collect::<Vec<_>>(), [Some(at("12:00:00"))]);
    assert_eq!(change.successor.unwrap().next_run_at(), Some(at("13:00:00")));
}

#[test]
fn a_pause_survives_an_edit() {
    let view = hourly();
    let paused = after(&view, &change::pause(&view, paused("SMTP down")).unwrap());
    let version = |activate| {
        let id = JobId::new(at("11:30:00"), [2; 10]);
        change::new_version(&paused, Edit::default(), id, activate, "bo", at("12:30:00")).unwrap()
    };
    let kept = version(false);
    assert_eq!(kept.plan.gaps[0].reason, GapReason::Paused);
    let new = kept.successor.unwrap();
    assert_eq!((new.state.status, new.next_run_at()), (JobStatus::Paused, None));
    assert_eq!(new.state.pause.unwrap().reason, "SMTP down");
    assert_eq!(version(true).successor.unwrap().state.status, JobStatus::Active);
}

#[test]
fn a_reschedule_moves_only_the_next_fire() {
    let view = hourly();
    let error = change::reschedule(&view, at("11:00:00"), "ana", at("11:30:00")).unwrap_err();
    assert_eq!(error.to_string(), "nextRunAt: must not be in the past");
    let moved = after(&view, &change::reschedule(&view, at("12:20:00"), "ana", at("11:30:00")).unwrap());
    assert_eq!((moved.timer.next_run_at, moved.timer.rescheduled_from), (Some(at("12:20:00")), Some(at("12:00:00"))));
    let again = after(&moved, &change::reschedule(&moved, at("12:40:00"), "ana", at("11:31:00")).unwrap());
    assert_eq!(again.timer.rescheduled_from, Some(at("12:00:00")), "moved twice, it is still the same slot");
    let plan = everbell_core::plan::plan(&again.job.definition, &again.timer, &PlanContext::default(), at("12:40:00"));
    assert_eq!(plan.timer.next_run_at, Some(at("13:00:00")), "what follows follows the schedule");
}

#[test]
fn runs_beyond_the_bound_on_pending_ones_are_refused() {
    let mut view = hourly();
    let active = |n: u8| ActiveRun {
        id: RunId::by_hand(at("11:00:00"), [n; 10]),
        held: true,
        cancel_requested: false,
        backfill: false,
    };
    view.active = (0..7).map(active).collect();
    assert_eq!(change::expect_pending_room(&view, 3, 10), Ok(()));
    assert_eq!(change::expect_pending_room(&view, 0, 7), Ok(()));
    let refusal = change::expect_pending_room(&view, 4, 10).unwrap_err();
    assert!(refusal.is_too_many_pending() && !refusal.is_retired(), "{refusal}");
    assert!(
        refusal
            .reason
            .starts_with("the job has 7 runs that are pending or running and would get 4 more runs; at most 10")
    );
    assert!(change::expect_pending_room(&view, usize::MAX, 10).is_err());
}

#[test]
fn a_run_by_hand_obeys_overlap_and_leaves_the_timer() {
    let mut view = hourly();
    let now = at("11:30:00");
    let request = |overlap| RunNow {
        id: RunId::by_hand(now, [1; 10]),
        actor: "ana",
        payload: None,
        overlap,
        trace_context: None,
    };
    let free = change::run_now(&view, &request(None), now).unwrap();
    assert_eq!((free.plan.timer, free.plan.runs[0].skip.clone()), (view.timer.clone(), None));
    assert_eq!(free.plan.runs[0].trigger.to_string(), "manual:ana");

    let blocking = RunId::by_hand(at("11:00:00"), [9; 10]);
    view.active = vec![ActiveRun { id: blocking, held: false, cancel_requested: false, backfill: false }];
    let skipped = change::run_now(&view, &request(None), now).unwrap();
    assert_eq!(skipped.plan.runs[0].skip, Some(SkipReason::Overlap { blocking }));
    let forced = change::run_now(&view, &request(Some(Overlap::Allow)), now).unwrap();
    assert_eq!((forced.plan.runs[0].skip.as_ref(), forced.plan.runs[0].held), (None, false));
    let queued = change::run_now(&view, &request(Some(Overlap::Queue)), now).unwrap();
    assert!(queued.plan.runs[0].held);
}

#[test]
fn a_backfill_gets_a_run_for_each_slot_up_to_the_limit() {
    let JobView { timer, .. } = hourly();
    let each_minute = given::job("* * * * *", "", at("08:30:00"));
    let end = timer.last_slot_at;
    let minutes = |count: usize| -> Vec<Timestamp> {
        (0..count).rev().map(|ago| end - SignedDuration::from_mins(ago as i64)).collect()
    };
    let planned = |slots: &[Timestamp]| {
        let id = BackfillId::new(end, [3; 10]);
        let request = Backfill { id, slots, parallel: None, trace_context: None };
        plan::backfill(&each_minute, &timer, &PlanContext::default(), &request)
    };
    for count in [1, MAX_BACKFILLED] {
        let slots = minutes(count);
        let found = planned(&slots).unwrap();
        assert_eq!(found.timer, timer, "what is still to come stays as it is");
        assert_eq!(found.runs.iter().map(|run| run.slot_at.unwrap()).collect::<Vec<_>>(), slots);
    }
    let refused = planned(&minutes(MAX_BACKFILLED + 1)).unwrap_err();
    assert_eq!(
        refused,
        Invalid::new("to", format!("at most {MAX_BACKFILLED} slots at once, not {}", MAX_BACKFILLED + 1))
    );
}

#[test]
fn the_content_hash_tells_what_a_job_does_and_nothing_else() {
    let base = given::job("0 9 * * *", "", at("08:30:00"));
    let hash = base.content_hash();
    let mut later = given::job("0 09 * * *", "", at("10:00:00"));
    later.version = 4;
    later.created_by = "somebody".to_owned();
    assert_eq!(later.content_hash(), hash, "who, when, which version and spelling do not count");
    let mut changed = vec![
        given::job("0 10 * * *", "", at("08:30:00")),
        given::job("0 9 * * * in Europe/Paris", "", at("08:30:00")),
        given::job("0 9 * * *", "grace=5", at("08:30:00")),
        given::job("0 9 * * *", "dstGap=skip", at("08:30:00")),
        given::job("0 9 * * *", "endAt=2030-01-01T00:00:00Z", at("08:30:00")),
    ];
    for edit in [
        (|job| job.target = Target::new("mail").unwrap()) as fn(&mut everbell_core::Definition),
        |job| job.payload = everbell_core::Json::parse("payload", "[1]").unwrap(),
        |job| job.description = "text".to_owned(),
        |job| drop(job.labels.insert("team".to_owned(), "ops".to_owned())),
    ] {
        let mut job = base.clone();
        edit(&mut job);
        changed.push(job);
    }
    let mut hashes: Vec<_> = changed.iter().map(everbell_core::Definition::content_hash).collect();
    hashes.push(hash);
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), changed.len() + 1, "each change counts");
}
