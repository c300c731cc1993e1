//! Succession of versions: an edit neither undoes what operators did nor gives a slot a second outcome.

use std::collections::BTreeMap;
use std::sync::Arc;

use everbell_core::change::{self, Edit, JobChange, JobView};
use everbell_core::plan::{self, Plan, PlanContext};
use everbell_core::{Definition, Gap, GapReason, Job, JobId, NewRun, Spec, Timer, Unschedulable};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::given;

fn at(text: &str) -> Timestamp {
    format!("2026-11-15T{text}Z").parse().unwrap()
}

/// A job of any number of versions, whose runs end at once.
struct JobLifecycle {
    view: JobView,
    now: Timestamp,
    /// Of all versions.
    runs: Vec<NewRun>,
    /// Slots without a run: expanded, each with its reason.
    gaps: Vec<(Timestamp, GapReason)>,
}

impl JobLifecycle {
    fn new(schedule: &str, policies: &str, now: &str) -> JobLifecycle {
        let new = change::create(given::job(schedule, policies, at(now)));
        let view = JobView {
            job: Job::new(new.definition, new.state),
            timer: new.timer.unwrap(),
            org: None,
            active: Vec::new(),
            upstream_succeeded_at: None,
        };
        JobLifecycle { view, now: at(now), runs: Vec::new(), gaps: Vec::new() }
    }

    fn spec(&self) -> Spec {
        self.view.job.definition.spec.clone().unwrap()
    }

    fn write(&mut self, plan: Plan) {
        let spec = self.spec();
        for gap in plan.gaps {
            let slots = spec.slots_after(gap.first_slot_at - SignedDuration::from_micros(1));
            self.gaps.extend(slots.take_while(|slot| *slot <= gap.last_slot_at).map(|slot| (slot, gap.reason)));
        }
        self.runs.extend(plan.runs);
        self.view.timer = plan.timer;
    }

    /// Time goes by, and whatever comes due is planned.
    fn until(&mut self, now: Timestamp) {
        while let Some(next) = self.view.timer.next_run_at.filter(|next| *next <= now) {
            self.now = self.now.max(next);
            let plan = plan::plan(&self.view.job.definition, &self.view.timer, &PlanContext::default(), self.now);
            self.write(plan);
        }
        self.now = now;
    }

    fn change(&mut self, change: JobChange) {
        self.write(change.plan);
        self.view.job.state = change.state;
        if let Some(new) = change.successor {
            self.view.job = Job::new(Arc::clone(&new.definition), new.state);
            self.view.timer = new.timer.unwrap();
        }
    }

    fn skip(&mut self, count: u32) {
        if let Ok(change) = change::skip_next(&self.view, count, "ana", self.now) {
            self.change(change);
        }
    }

    fn move_to(&mut self, to: Timestamp) {
        if let Ok(change) = change::reschedule(&self.view, to, "ana", self.now) {
            self.change(change);
        }
    }

    /// The next version, with this schedule or the same.
    fn edit(&mut self, schedule: Option<&str>) {
        let spec = schedule.map(|schedule| given::job(schedule, "", self.now).spec.unwrap());
        let version = u8::try_from(self.view.job.definition.version).unwrap();
        let edit = Edit { spec, description: Some(format!("version {}", version + 1)), ..Edit::default() };
        let id = JobId::new(self.now, [version; 10]);
        self.change(change::new_version(&self.view, edit, id, false, "ana", self.now).unwrap());
    }

    /// The slots that have a run, as the clock tells them; `-` before those that were skipped.
    fn fired(&self) -> Vec<String> {
        let told = |run: &NewRun| {
            let sign = if run.skip.is_some() { "-" } else { "" };
            format!("{sign}{}", run.slot_at.unwrap().strftime("%H:%M"))
        };
        self.runs.iter().map(told).collect()
    }

    fn timer(&self) -> &Timer {
        &self.view.timer
    }
}

#[test]
fn slots_that_were_skipped_stay_skipped() {
    let mut life = JobLifecycle::new("0 * * * *", "", "08:30:00");
    life.skip(2);
    life.edit(None);
    assert_eq!(life.timer().next_run_at, Some(at("11:00:00")));
    life.until(at("11:30:00"));
    assert_eq!(life.fired(), ["-09:00", "-10:00", "11:00"]);
}

#[test]
fn a_slot_that_ran_early_does_not_run_again() {
    let mut life = JobLifecycle::new("0 * * * *", "", "08:30:00");
    life.move_to(at("08:40:00"));
    life.until(at("08:45:00"));
    life.edit(None);
    life.until(at("10:30:00"));
    assert_eq!(life.fired(), ["09:00", "10:00"]);
    assert_eq!(life.runs[0].scheduled_at, at("08:40:00"));
}

#[test]
fn a_fire_that_was_moved_stays_moved() {
    let mut life = JobLifecycle::new("0 * * * *", "", "08:30:00");
    life.move_to(at("08:40:00"));
    life.edit(None);
    assert_eq!((life.timer().next_run_at, life.timer().rescheduled_from), (Some(at("08:40:00")), Some(at("09:00:00"))));
    life.edit(Some("*/30 * * * *"));
    assert_eq!(life.timer().next_run_at, Some(at("08:40:00")), "09:00 is its next slot as well");
    life.edit(Some("45 * * * *"));
    assert_eq!((life.timer().next_run_at, life.timer().rescheduled_from), (Some(at("08:45:00")), None));
}

#[test]
fn a_fire_that_was_moved_past_its_slot_is_left_to_the_next_version() {
    let mut life = JobLifecycle::new("0 * * * *", "", "08:30:00");
    life.move_to(at("10:20:00"));
    life.until(at("09:10:00"));
    life.edit(None);
    assert_eq!((life.timer().next_run_at, life.gaps.len()), (Some(at("10:20:00")), 0));
    life.until(at("10:30:00"));
    assert_eq!((life.fired(), life.runs[0].folded), (vec!["09:00".to_owned()], 1));
    assert_eq!(life.gaps, [(at("10:00:00"), GapReason::Coalesced)]);

    let mut life = JobLifecycle::new("0 * * * *", "", "08:30:00");
    life.move_to(at("10:20:00"));
    life.until(at("09:10:00"));
    life.edit(Some("15 * * * *"));
    assert_eq!(life.gaps, [(at("09:00:00"), GapReason::Missed)], "nobody is left who knows this slot");
    assert_eq!(life.timer().next_run_at, Some(at("09:15:00")));
}

#[test]
fn a_slot_that_jitter_delays_is_left_to_the_next_version() {
    let mut life = JobLifecycle::new("0 * * * *", "jitter=3000", "08:30:00");
    life.until(at("09:00:01"));
    assert!(life.runs.is_empty(), "it waits");
    life.edit(None);
    assert_eq!(life.gaps, []);
    life.until(at("09:59:59"));
    assert_eq!(life.fired(), ["09:00"]);
}

#[test]
fn what_was_skipped_holds_for_another_schedule_as_far_as_it_has_the_same_slots() {
    let mut life = JobLifecycle::new("0 * * * *", "", "08:30:00");
    life.skip(5);
    life.edit(Some("0 */2 * * *"));
    assert_eq!(life.timer().next_run_at, Some(at("14:00:00")), "up to 13:00 all of its slots were skipped");
    life.edit(Some("*/30 * * * *"));
    assert_eq!(life.timer().next_run_at, Some(at("09:00:00")), "08:30 is no slot that was skipped: it begins anew");
}

#[test]
fn what_a_version_missed_in_its_error_is_a_gap_of_the_one_that_repairs_it() {
    let repaired = given::job("0 * * * *", "", at("09:30:00"));
    let spec = repaired.spec.clone().unwrap();
    let why = Unschedulable { reason: "no such zone".to_owned(), ..Unschedulable::default() };
    let broken = everbell_core::with!(Definition { spec: Err(why), ..repaired.clone() });
    let (job_id, last_slot_at) = (broken.id, at("10:00:00"));
    let timer = Timer::new(job_id, last_slot_at);
    let succeed = |reason| {
        let seen = PlanContext::default();
        plan::succeed(&broken, &timer, &seen, reason, (&repaired, &spec), at("13:30:00"))
    };
    let (last, next) = succeed(GapReason::Errored);
    let reason = GapReason::Errored;
    let missed = Gap::new(at("11:00:00"), at("13:00:00"), 3, reason);
    assert_eq!((last.gaps, last.timer.last_slot_at, last.timer.next_run_at), (vec![missed], at("13:00:00"), None));
    assert_eq!(next.next_run_at, Some(at("14:00:00")));
    assert_eq!(succeed(GapReason::Paused).0.gaps, [], "of a pause, nobody knows which slots there were");
}

#[test]
fn a_version_that_retires_takes_along_what_waits() {
    let mut life = JobLifecycle::new("0 * * * *", "jitter=3000", "08:30:00");
    life.until(at("09:00:01"));
    life.change(change::retire(&life.view, "ana", life.now).unwrap());
    assert_eq!((life.fired().len(), &life.gaps[..]), (0, &[(at("09:00:00"), GapReason::Missed)][..]));
}

#[derive(Clone, Debug)]
enum Act {
    Wait(i64),
    Skip(u32),
    Move(i64),
    Edit,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (1..9_000_i64).prop_map(Act::Wait),
        2 => (1..4_u32).prop_map(Act::Skip),
        2 => (0..9_000_i64).prop_map(Act::Move),
        3 => Just(Act::Edit),
    ]
}

fn live(policies: &str, acts: &[Act]) -> JobLifecycle {
    let mut life = JobLifecycle::new("*/20 * * * *", policies, "00:05:00");
    for act in acts {
        let after = |seconds: i64| life.now + SignedDuration::from_secs(seconds);
        match act {
            Act::Wait(seconds) => life.until(after(*seconds)),
            Act::Skip(count) => life.skip(*count),
            Act::Move(seconds) => life.move_to(after(*seconds)),
            Act::Edit => life.edit(None),
        }
    }
    life
}

/// How many outcomes each slot has.
fn outcomes(life: &JobLifecycle) -> BTreeMap<Timestamp, u32> {
    let slots = life.runs.iter().filter_map(|run| run.slot_at).chain(life.gaps.iter().map(|(slot, _)| *slot));
    slots.fold(BTreeMap::new(), |mut all, slot| {
        *all.entry(slot).or_default() += 1;
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn edits_that_leave_the_schedule_alone_change_no_outcome(
        policies in prop::sample::select(vec!["", "jitter=600", "catchUp=all jitter=1100", "catchUp=none grace=5"]),
        acts in prop::collection::vec(act(), 1..20),
    ) {
        let mut life = live(policies, &acts);
        let end = life.now + SignedDuration::from_hours(100);
        life.until(end);
        let wanted: BTreeMap<_, _> = life.spec().slots_after(at("00:05:00")).map(|slot| (slot, 1_u32))
            .take_while(|(slot, _)| *slot <= life.timer().last_slot_at).collect();
        prop_assert_eq!(outcomes(&life), wanted);
        prop_assert!(life.timer().last_slot_at > end - SignedDuration::from_hours(1));
    }
}
