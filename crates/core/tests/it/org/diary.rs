//! [`Diary`]: the life of one org with one job, told by the decisions alone. What happens to the org is written down, time
//! passes, timers are planned when they are due, and the diary says what came of it.

use std::fmt;
use std::sync::Arc;

use everbell_core::change::{self, JobView};
use everbell_core::org::{
    self, JobLifecycle, Org, OrgFacts, OrgTask, OrgTimer, OrgUpdateStep, OrgView, OrgWrite, Override, OverrideWrite,
    TimerChange, Written,
};
use everbell_core::plan::{Missed, Plan, PlanContext};
use everbell_core::{Definition, GapReason, Job, JobKey, JobState, OrgId, Pause, Scope, Timer};
use jiff::Timestamp;
use jiff::civil::Date;
use uuid::Uuid;

use crate::given;

/// The outcome of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// The local date of the slot, in the zone of that time.
    pub(super) date: Date,
    pub(super) slot: Timestamp,
    /// When it was decided.
    pub(super) at: Timestamp,
    /// `None` is a run.
    pub(super) gap: Option<GapReason>,
    pub(super) catch_up: bool,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { date, slot, at, .. } = self;
        match (self.gap, self.catch_up) {
            (Some(reason), _) => write!(f, "{date} {reason} {slot}"),
            (None, false) => write!(f, "{date} runs at {at}"),
            (None, true) => write!(f, "{date} runs late at {at}, for {slot}"),
        }
    }
}

pub(super) struct Diary {
    pub(super) job: Job,
    pub(super) org: Org,
    pub(super) override_: Option<Override>,
    pub(super) timer: Option<OrgTimer>,
    pub(super) lines: Vec<Line>,
    pub(super) now: Timestamp,
    asleep_until: Timestamp,
}

impl Diary {
    /// An org in this zone, and a job that is made at the same time.
    pub(super) fn new(schedule: &str, policies: &str, zone: &str, now: Timestamp) -> Diary {
        Diary::of_older_job(schedule, policies, now, zone, now)
    }

    /// An org that is made now, and a job that was made before.
    pub(super) fn of_older_job(
        schedule: &str,
        policies: &str,
        job_made: Timestamp,
        zone: &str,
        now: Timestamp,
    ) -> Diary {
        let definition =
            everbell_core::with!(Definition { scope: Scope::PerOrg, ..given::job(schedule, policies, job_made) });
        let org = OrgWrite { timezone: Some(zone.to_owned()), ..OrgWrite::new(acme()) };
        let Ok(Written::New(org, true)) = org::written(None, &org, "test", now) else { panic!("{zone} is no zone") };
        let new = change::create(definition);
        assert_eq!(new.timer, None, "timers are made by an org update");
        let job = Job::new(new.definition, new.state);
        let mut diary = Diary {
            job,
            org: *org,
            override_: None,
            timer: None,
            lines: Vec::new(),
            now,
            asleep_until: Timestamp::MIN,
        };
        if job_made == now {
            diary.carry_out(OrgTask::Arm);
        } else {
            diary.reconcile();
        }
        diary
    }

    pub(super) fn facts(&self) -> OrgFacts {
        OrgFacts {
            lifecycle: JobLifecycle::from(&self.job.state),
            place: self.org.place.clone(),
            override_: self.override_.clone(),
        }
    }

    pub(super) fn view(&self) -> OrgView {
        OrgView {
            job: Arc::clone(&self.job.definition),
            org: acme(),
            facts: self.facts(),
            timer: self.timer.clone(),
            before: None,
            upstream_succeeded_at: None,
        }
    }

    /// Lets time pass, and plans what is due when it is.
    pub(super) fn until(&mut self, time: Timestamp) {
        loop {
            let next = self.timer.as_ref().and_then(|timer| timer.timer.next_run_at);
            let next = next.map(|next| next.max(self.now).max(self.asleep_until)).filter(|next| *next <= time);
            let Some(next) = next else { break };
            self.now = next;
            self.plan();
        }
        self.now = time;
    }

    /// The planner does not look before this time.
    pub(super) fn sleep(&mut self, until: Timestamp) {
        self.asleep_until = until;
    }

    fn plan(&mut self) {
        let old = self.timer.as_ref().unwrap();
        let plan = org::plan(&self.job.definition, &old.timer, &PlanContext::default(), &self.facts(), self.now);
        self.keep(plan);
    }

    fn keep(&mut self, plan: Plan) {
        assert_eq!(plan.error, None, "the job itself is fine");
        let spec = org::spec_for(&self.job.definition, &self.facts());
        for gap in &plan.gaps {
            let Ok(spec) = &spec else { panic!("a gap of what cannot be read: {gap:?}") };
            let before = gap.first_slot_at - jiff::SignedDuration::from_secs(1);
            let mut slots: Vec<Timestamp> =
                spec.slots_after(before).take_while(|slot| *slot <= gap.last_slot_at).collect();
            if gap.reason == GapReason::DstGap {
                slots = vec![gap.first_slot_at];
            }
            assert_eq!(slots.len() as u64, gap.slots, "{gap:?}");
            let lines: Vec<Line> = slots.into_iter().map(|slot| self.line(slot, Some(gap.reason), false)).collect();
            self.lines.extend(lines);
        }
        for run in &plan.runs {
            let line = self.line(run.slot_at.unwrap(), None, run.catch_up);
            assert_eq!(run.local_date, Some(line.date));
            self.lines.push(line);
        }
        let mark = self.timer.as_ref().map(|old| old.timer.last_slot_at);
        assert!(mark.is_none_or(|mark| plan.timer.last_slot_at >= mark), "the mark never goes back");
        self.timer = Some(OrgTimer { timer: plan.timer, error: plan.org_error, active: Vec::new() });
    }

    fn line(&self, slot: Timestamp, gap: Option<GapReason>, catch_up: bool) -> Line {
        let spec = org::spec_for(&self.job.definition, &self.facts()).unwrap();
        Line { date: org::local_date(&spec, slot), slot, at: self.now, gap, catch_up }
    }

    fn write(&mut self, write: &OrgWrite) {
        match org::written(Some(&self.org), write, "test", self.now).unwrap() {
            Written::Same => {}
            Written::New(org, timers_care) => {
                self.org = *org;
                if timers_care {
                    self.reconcile();
                }
            }
        }
    }

    pub(super) fn move_to(&mut self, zone: &str) {
        self.write(&OrgWrite { timezone: Some(zone.to_owned()), ..OrgWrite::new(acme()) });
    }

    pub(super) fn enable(&mut self, enabled: bool) {
        self.write(&OrgWrite { enabled: Some(enabled), ..OrgWrite::new(acme()) });
    }

    /// `None`: what all want.
    pub(super) fn set_override(&mut self, wanted: Option<(bool, Option<&str>)>) {
        let write = |(enabled, expression): (bool, Option<&str>)| OverrideWrite {
            job_key: JobKey::new("job").unwrap(),
            enabled,
            expression: expression.map(str::to_owned),
        };
        self.override_ = wanted.map(|wanted| org::override_of(&write(wanted), "test", self.now).unwrap());
        self.org.place.changed_at = self.now;
        self.reconcile();
    }

    /// The zone leaves the database of zones. Nobody notices before the timer is due.
    pub(super) fn break_zone(&mut self) {
        "Mars/Base".clone_into(&mut self.org.place.timezone);
    }

    pub(super) fn pause(&mut self) {
        let pause = Pause { reason: "for a test".to_owned(), by: "test".to_owned(), at: self.now, until: None };
        self.change(|view| change::pause(view, pause.clone()));
    }

    pub(super) fn resume(&mut self, missed: Missed) {
        let now = self.now;
        self.change(|view| change::resume(view, missed, "test", now));
    }

    fn change(&mut self, decide: impl Fn(&JobView) -> Result<change::JobChange, everbell_core::Invalid>) {
        let timer = everbell_core::with!(Timer { org: None, ..self.view_timer() });
        let view = JobView { job: self.job.clone(), timer, org: None, active: Vec::new(), upstream_succeeded_at: None };
        let change = decide(&view).unwrap();
        self.set_state(change.state);
        if let Some(task) = change.org_task {
            self.carry_out(task);
        }
    }

    fn view_timer(&self) -> Timer {
        Timer::new(self.job.definition.id, self.job.definition.created_at)
    }

    fn set_state(&mut self, state: JobState) {
        self.job.state = state;
    }

    pub(super) fn reconcile(&mut self) {
        self.become_(org::reconcile(&self.view(), None));
        let stored = self.timer.as_ref().map(|timer| &timer.timer);
        match org::reconcile(&self.view(), None).change {
            TimerChange::Keep => {}
            // A day that never comes is reported until the mark is past the move. The gap has the same id each time.
            TimerChange::Write(again) if again.runs.is_empty() && !again.gaps.is_empty() => {
                assert_eq!(Some(&again.timer), stored);
            }
            again => panic!("asked again, there is nothing to do: {again:?}"),
        }
    }

    pub(super) fn carry_out(&mut self, task: OrgTask) {
        let org_update = org::OrgUpdate {
            id: Uuid::nil(),
            job: self.job.definition.id,
            job_key: self.job.definition.key.clone(),
            task,
            actor: "test".to_owned(),
            at: self.now,
            reached: None,
            seen: 0,
        };
        self.become_(org::take_step(&self.view(), OrgUpdateStep { org_update: &org_update, now: self.now }));
    }

    fn become_(&mut self, decided: org::TimerChanges) {
        match decided.change {
            TimerChange::Keep => {}
            TimerChange::Write(plan) => self.keep(*plan),
            TimerChange::Remove(plan) => {
                self.keep(*plan);
                self.timer = None;
            }
        }
    }
}

pub(super) fn acme() -> OrgId {
    OrgId::new("acme").unwrap()
}
