//! Slots that move to another day, against a naive model: every slot is asked day by day where it goes.

use std::collections::{BTreeMap, BTreeSet};

use everbell_core::calendar::{CalendarRules, Roll};
use everbell_core::cron::{DstFold, DstGap};
use everbell_core::plan::{self, Missed, Plan, PlanContext};
use everbell_core::{Definition, FrozenSpan, Gap, GapReason, Spec, Timer};
use jiff::civil::DateTime;
use jiff::tz::AmbiguousOffset;
use jiff::{SignedDuration, Timestamp};

use crate::calendar::{STARTS, calendar, is_allowed, random_calendar};
use crate::given;
use crate::random::Random;

const SCHEDULES: [&str; 8] = [
    "0 9 * * *",
    "0 9,17 * * *",
    "0 18 L * * in Europe/Berlin",
    "30 2 * * * in America/New_York",
    "0 0,23 * * * in America/Goose_Bay",
    "15 0 * * sat,sun in Africa/Cairo",
    "0 12 * * * in Pacific/Apia",
    "0 */3 * * 6 in Europe/Berlin",
];
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// When each slot fires, by a walk from day to day.
struct Model<'a> {
    plain: &'a Spec,
    rules: &'a CalendarRules,
}

impl Model<'_> {
    fn instant(&self, local: DateTime) -> Option<Timestamp> {
        let (zone, dst) = (self.plain.zone(), self.plain.dst());
        let ambiguous = zone.as_jiff().to_ambiguous_timestamp(local);
        match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } => ambiguous.unambiguous().ok(),
            AmbiguousOffset::Fold { .. } if dst.fold == DstFold::Last => ambiguous.later().ok(),
            AmbiguousOffset::Fold { .. } => ambiguous.earlier().ok(),
            AmbiguousOffset::Gap { .. } if dst.gap == DstGap::Skip => None,
            AmbiguousOffset::Gap { .. } => {
                let near = ambiguous.later().unwrap();
                let changes = zone.changes_between(near - 2 * DAY, near + 2 * DAY);
                changes.iter().find(|change| change.after > change.before).map(|change| change.at)
            }
        }
    }

    fn fires_at(&self, slot: Timestamp) -> Option<Timestamp> {
        let is_allowed = |t: Timestamp| is_allowed(self.rules, self.plain.zone(), t);
        if is_allowed(slot) {
            return Some(slot);
        }
        let step = match self.rules.roll {
            Roll::Skip => return None,
            Roll::Next => 1,
            Roll::Previous => -1,
        };
        let local = slot.to_zoned(self.plain.zone().as_jiff().clone()).datetime();
        (1..=31)
            .filter_map(|away| self.instant(local + SignedDuration::from_hours(24 * step * away)))
            .find(|at| is_allowed(*at))
    }
}

fn random_rules(random: &mut Random, start: Timestamp) -> CalendarRules {
    let date = start.to_zoned(jiff::tz::TimeZone::UTC).date();
    let mut exclude: Vec<_> = (0..random.between(1, 2)).map(|_| random_calendar(random, date)).collect();
    if random.percent(20) {
        let last = date + 50 * DAY;
        exclude.push(calendar("long", None, &[format!("{}..{last} closed", date + 8 * DAY)], &[]));
    }
    let only = (0..random.below(2)).map(|_| random_calendar(random, date)).collect();
    CalendarRules { exclude, only, roll: random.pick(&[Roll::Next, Roll::Previous]) }
}

fn random_schedule(random: &mut Random) -> (String, String) {
    let dst = format!("dstGap={} dstFold={}", random.pick(&["shift", "skip"]), random.pick(&["first", "last", "both"]));
    (random.pick(&SCHEDULES).to_owned(), dst)
}

#[test]
fn slots_fire_where_a_walk_from_day_to_day_finds_them() {
    let mut moved = 0;
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let start: Timestamp = random.pick(&STARTS).parse().unwrap();
        let until = start + 60 * DAY;
        let rules = random_rules(&mut random, start);
        let (schedule, dst) = random_schedule(&mut random);
        let plain = given::job(&schedule, &dst, start).spec.unwrap();
        let spec = plain.clone().with_calendars(&rules);
        let context = format!("seed {seed}: {schedule} {dst} with {rules:?} {}", rules.roll);
        let model = Model { plain: &plain, rules: &rules };

        let mut fires: BTreeMap<Timestamp, Vec<Timestamp>> = BTreeMap::new();
        let mut slots = Vec::new();
        for slot in plain.slots_after(start - 40 * DAY).take_while(|slot| *slot <= until + 40 * DAY) {
            let fire = model.fires_at(slot);
            assert_eq!(spec.fires_at(slot), fire, "{context} at {slot}");
            moved += usize::from(fire.is_some_and(|at| at != slot));
            if let Some(at) = fire {
                fires.entry(at).or_default().push(slot);
            }
            slots.push((slot, fire));
        }
        let those = |is_wanted: &dyn Fn(Timestamp, Option<Timestamp>) -> bool| {
            let found = slots.iter().filter(|(slot, fire)| is_wanted(*slot, *fire));
            found.map(|(slot, _)| *slot).collect::<Vec<Timestamp>>()
        };
        let within = |from: Timestamp, until: Timestamp| fires.range(from..=until).filter(move |(at, _)| **at > from);
        let wanted: Vec<Timestamp> = within(start, until).map(|(at, _)| *at).collect();
        let found: Vec<Timestamp> = spec.slots_after(start).take_while(|at| *at <= until).collect();
        assert_eq!(found, wanted, "{context}");
        for (at, slots) in within(start, until) {
            assert_eq!(spec.slots_at(*at), *slots, "{context} at {at}");
            let own = slots.iter().filter(|slot| *slot != at).count();
            assert_eq!((spec.moved_to(*at).len(), spec.matches(*at)), (own, true), "{context} at {at}");
        }
        let stuck = those(&|slot, fire| slot > start && slot <= until && fire.is_none());
        let excluded: u64 = spec.excluded_between(start, until).iter().map(|row| row.slots).sum();
        assert_eq!(excluded as usize, stuck.len(), "{context}");
        for _ in 0..15 {
            let t = start + SignedDuration::from_secs(random.between(0, 60 * 86_400));
            let later = t + SignedDuration::from_secs(random.between(0, 30 * 86_400));
            let before = within(start, t).next_back().map(|(at, _)| *at);
            assert_eq!(spec.prev_at_or_before(t).filter(|at| *at > start), before, "{context} at {t}");
            let after = within(t, until).next().map(|(at, _)| *at);
            assert_eq!(spec.next_after(t).filter(|at| *at <= until), after, "{context} at {t}");
            let count: usize = within(t, later).map(|(_, slots)| slots.len()).sum();
            assert_eq!(spec.count_between(t, later), count as u64, "{context} from {t} to {later}");
            let own = those(&|slot, fire| slot > t && slot <= later && fire.is_some());
            assert_eq!(spec.own_times_after(t).take_while(|slot| *slot <= later).collect::<Vec<_>>(), own, "{context}");
            assert_eq!(spec.count_own_times(t, later), own.len() as u64, "{context} from {t} to {later}");
            let last = spec.last_own_time(later).filter(|slot| *slot > t);
            assert_eq!(last, own.last().copied(), "{context} from {t} to {later}");
            let beyond = those(&|slot, fire| slot <= t && fire.is_some_and(|at| at > t));
            assert_eq!(spec.moved_beyond(t), beyond, "{context} at {t}");
            let past = those(&|slot, fire| slot > t && fire.is_some_and(|at| at <= t));
            assert_eq!(spec.moved_before(t, later.max(t + 40 * DAY), t), past, "{context} at {t}");
        }
    }
    assert!(moved > 500, "only {moved} slots moved");
}

/// A job that fires on working days, with slots of weekends moved.
fn rolled(schedule: &str, policies: &str, roll: Roll, created_at: &str) -> Definition {
    let weekend = calendar("weekend", None, &["2027-01-01 New Year".to_owned()], &["sat", "sun"]);
    let rules = CalendarRules { exclude: vec![weekend], roll, ..CalendarRules::default() };
    let mut job = given::job(schedule, policies, at(created_at));
    job.spec = job.spec.map(|spec| spec.with_calendars(&rules));
    job
}

/// `2027-01-04T09:00` in UTC.
fn at(text: &str) -> Timestamp {
    format!("{text}:00Z").parse().unwrap()
}

fn armed(job: &Definition) -> Timer {
    plan::arm(job, &Timer::new(job.id, job.created_at), &PlanContext::default())
}

fn runs(plan: &Plan) -> Vec<(String, String)> {
    let text = |t: Timestamp| t.strftime("%a %H:%M").to_string();
    plan.runs.iter().map(|run| (text(run.slot_at.unwrap()), text(run.scheduled_at))).collect()
}

fn gaps(plan: &Plan) -> Vec<(GapReason, u64, String)> {
    plan.gaps.iter().map(|gap| (gap.reason, gap.slots, gap.first_slot_at.strftime("%a %H:%M").to_string())).collect()
}

fn pairs(runs: &[(String, String)]) -> Vec<(&str, &str)> {
    runs.iter().map(|(slot, at)| (slot.as_str(), at.as_str())).collect()
}

#[test]
fn slots_of_a_weekend_run_on_monday_one_after_the_other() {
    let job = rolled("0 9 * * *", "", Roll::Next, "2027-01-08T10:00");
    let timer = armed(&job);
    assert_eq!(timer.next_run_at, Some(at("2027-01-11T09:00")));
    let planned = plan::plan(&job, &timer, &PlanContext::default(), at("2027-01-11T09:00"));
    let monday = "Mon 09:00";
    assert_eq!(pairs(&runs(&planned)), [("Sat 09:00", monday), ("Sun 09:00", monday), (monday, monday)]);
    assert_eq!(
        planned.runs.iter().map(|run| (run.held, run.skip.is_some())).collect::<Vec<_>>(),
        [(false, false), (true, false), (true, false)]
    );
    assert!(planned.gaps.is_empty(), "{:?}", planned.gaps);
    assert_eq!(planned.timer.next_run_at, Some(at("2027-01-12T09:00")));
}

#[test]
fn a_slot_of_a_holiday_runs_the_day_before() {
    let job = rolled("0 18 1 * *", "", Roll::Previous, "2026-12-02T00:00");
    let timer = armed(&job);
    assert_eq!(timer.next_run_at, Some(at("2026-12-31T18:00")), "New Year 2027 is a holiday");
    let planned = plan::plan(&job, &timer, &PlanContext::default(), at("2026-12-31T18:00"));
    assert_eq!(pairs(&runs(&planned)), [("Fri 18:00", "Thu 18:00")]);
    assert_eq!(planned.timer.next_run_at, Some(at("2027-02-01T18:00")));
    let later = plan::plan(&job, &planned.timer, &PlanContext::default(), at("2027-02-01T18:00"));
    assert_eq!((later.runs.len(), later.gaps.len()), (1, 0), "the day of the slot passes without a trace");
}

#[test]
fn an_outage_over_the_day_moved_to_is_caught_up_as_the_job_says() {
    let late = at("2027-01-11T12:00");
    let planned = |policies: &str| {
        let job = rolled("0 9 * * *", policies, Roll::Next, "2027-01-08T10:00");
        plan::plan(&job, &armed(&job), &PlanContext::default(), late)
    };
    let once = planned("catchUp=once");
    assert_eq!(pairs(&runs(&once)), [("Mon 09:00", "Mon 09:00")]);
    assert_eq!((once.runs[0].folded, once.runs[0].catch_up), (2, true));
    assert_eq!(gaps(&once), [(GapReason::Coalesced, 2, "Mon 09:00".to_owned())]);
    let none = planned("catchUp=none");
    assert_eq!((none.runs.len(), gaps(&none)), (0, vec![(GapReason::Missed, 3, "Mon 09:00".to_owned())]));
    let all = planned("catchUp=all");
    assert_eq!((all.runs.len(), all.gaps.len()), (3, 0));
}

#[test]
fn a_freeze_at_the_time_moved_to_keeps_the_slots_from_firing() {
    let job = rolled("0 9 * * *", "", Roll::Next, "2027-01-08T10:00");
    let frozen = [FrozenSpan { from: at("2027-01-11T00:00"), until: at("2027-01-12T00:00") }];
    let seen = PlanContext { frozen: &frozen, ..PlanContext::default() };
    let planned = plan::plan(&job, &armed(&job), &seen, at("2027-01-11T09:00"));
    assert_eq!((planned.runs.len(), gaps(&planned)), (0, vec![(GapReason::Frozen, 3, "Mon 09:00".to_owned())]));
    assert_eq!(planned.timer.next_run_at, Some(at("2027-01-12T09:00")));
    // A freeze of the day itself does not matter: the slots fire elsewhere.
    let frozen = [FrozenSpan { from: at("2027-01-09T00:00"), until: at("2027-01-11T00:00") }];
    let seen = PlanContext { frozen: &frozen, ..PlanContext::default() };
    let planned = plan::plan(&job, &armed(&job), &seen, at("2027-01-11T09:00"));
    assert_eq!((planned.runs.len(), planned.gaps.len()), (3, 0));
}

#[test]
fn a_job_that_is_created_too_late_for_the_day_before_has_an_excluded_slot() {
    let job = rolled("0 18 * * fri,sat", "", Roll::Previous, "2027-01-08T19:00");
    let timer = armed(&job);
    assert_eq!(timer.next_run_at, Some(at("2027-01-15T18:00")));
    let planned = plan::plan(&job, &timer, &PlanContext::default(), at("2027-01-15T18:00"));
    assert_eq!(pairs(&runs(&planned)), [("Fri 18:00", "Fri 18:00"), ("Sat 18:00", "Fri 18:00")]);
    assert_eq!(gaps(&planned), [(GapReason::Excluded, 1, "Sat 18:00".to_owned())]);
}

#[test]
fn operators_move_and_skip_all_slots_of_a_time() {
    let job = rolled("0 9 * * *", "", Roll::Next, "2027-01-08T10:00");
    let (timer, seen, sunday) = (armed(&job), PlanContext::default(), at("2027-01-10T08:00"));
    let skipped = plan::skip_next(&job, &timer, &seen, 1, "ana", sunday).unwrap();
    assert_eq!(skipped.runs.iter().filter(|run| run.skip.is_some()).count(), 3);
    assert_eq!(skipped.timer.next_run_at, Some(at("2027-01-12T09:00")));
    let moved = plan::reschedule(&job, &timer, &seen, at("2027-01-10T20:00"), sunday).unwrap();
    let planned = plan::plan(&job, &moved, &seen, at("2027-01-10T20:00"));
    let evening = "Sun 20:00";
    assert_eq!(pairs(&runs(&planned)), [("Sat 09:00", evening), ("Sun 09:00", evening), ("Mon 09:00", evening)]);
    assert_eq!(planned.timer.next_run_at, Some(at("2027-01-12T09:00")));
    let resumed = plan::resume(&job, &timer, &seen, Missed::RunOnce, GapReason::Paused, at("2027-01-11T10:00"));
    let resumed = resumed.unwrap();
    assert_eq!(pairs(&runs(&resumed)), [("Mon 09:00", "Mon 09:00")]);
    assert_eq!(gaps(&resumed), [(GapReason::Paused, 2, "Mon 09:00".to_owned())]);
}

/// The next version of a job, whose calendar excludes nothing or the weekend.
fn next_version(job: &Definition, roll: Option<Roll>, now: &str) -> Definition {
    let mut next = match roll {
        Some(roll) => rolled("0 18 * * *", "", roll, now),
        None => given::job("0 18 * * *", "", at(now)),
    };
    next.supersedes = Some(job.id);
    next
}

fn succeed(job: &Definition, timer: &Timer, next: &Definition) -> (Plan, Timer) {
    let seen = PlanContext::default();
    plan::succeed(job, timer, &seen, GapReason::Missed, (next, next.spec.as_ref().unwrap()), next.created_at)
}

#[test]
fn a_slot_that_fired_on_the_day_before_does_not_fire_again_after_an_edit() {
    let job = rolled("0 18 * * *", "", Roll::Previous, "2027-01-07T20:00");
    let planned = plan::plan(&job, &armed(&job), &PlanContext::default(), at("2027-01-08T18:00"));
    assert_eq!(planned.runs.len(), 3, "Friday, and the weekend");
    let next = next_version(&job, None, "2027-01-08T20:00");
    let (closed, timer) = succeed(&job, &planned.timer, &next);
    assert!(closed.runs.is_empty() && closed.gaps.is_empty(), "{closed:?}");
    assert_eq!(timer.next_run_at, Some(at("2027-01-11T18:00")), "Saturday and Sunday had their runs");
}

#[test]
fn slots_that_an_edit_strands_become_excluded() {
    // On Sunday the calendar goes: Saturday would have fired on Monday, and is past now.
    let job = rolled("0 18 * * *", "", Roll::Next, "2027-01-08T20:00");
    let next = next_version(&job, None, "2027-01-10T10:00");
    let (closed, timer) = succeed(&job, &armed(&job), &next);
    assert_eq!(gaps(&closed), [(GapReason::Excluded, 1, "Sat 18:00".to_owned())]);
    assert_eq!(timer.next_run_at, Some(at("2027-01-10T18:00")));
    // On Friday night slots begin to move to the day before: that time is past.
    let job = given::job("0 18 * * *", "", at("2027-01-07T20:00"));
    let friday = plan::plan(&job, &armed(&job), &PlanContext::default(), at("2027-01-08T18:00"));
    let next = next_version(&job, Some(Roll::Previous), "2027-01-08T20:00");
    let (closed, timer) = succeed(&job, &friday.timer, &next);
    let excluded = |day: &str| (GapReason::Excluded, 1, format!("{day} 18:00"));
    assert_eq!(gaps(&closed), [excluded("Sat"), excluded("Sun")]);
    assert_eq!(timer.next_run_at, Some(at("2027-01-11T18:00")));
    let monday = plan::plan(&next, &timer, &PlanContext::default(), at("2027-01-11T18:00"));
    assert_eq!((monday.runs.len(), monday.gaps.len()), (1, 0), "accounted for once");
}

/// Adds what became of slots, and expects no slot twice.
fn keep(plan: &Plan, ran: &mut BTreeSet<Timestamp>, gaps: &mut Vec<Gap>, now: Timestamp) {
    for run in &plan.runs {
        assert!(ran.insert(run.slot_at.unwrap()), "two runs for {:?}", run.slot_at);
        assert!(run.scheduled_at <= now, "not early: {run:?}");
    }
    gaps.extend(plan.gaps.iter().cloned());
}

#[test]
fn every_slot_ends_in_one_run_or_gap() {
    for seed in 0..80 {
        let mut random = Random::new(seed);
        let start: Timestamp = random.pick(&STARTS).parse().unwrap();
        let rules = random_rules(&mut random, start);
        let (schedule, dst) = random_schedule(&mut random);
        let policies = format!(
            "{dst} catchUp={} overlap={} jitter={}",
            random.pick(&["once", "none", "all"]),
            random.pick(&["skip", "queue", "allow", "replace"]),
            random.pick(&["0", "600"])
        );
        let mut job = given::job(&schedule, &policies, start);
        let plain = job.spec.clone().unwrap();
        job.spec = job.spec.map(|spec| spec.with_calendars(&rules));
        let context = format!("seed {seed}: {schedule} {policies} {rules:?} {}", rules.roll);
        let frozen: Vec<FrozenSpan> = (0..random.below(2))
            .map(|_| {
                let from = start + SignedDuration::from_hours(random.between(0, 900));
                FrozenSpan { from, until: from + SignedDuration::from_hours(random.between(1, 90)) }
            })
            .collect();
        let seen = PlanContext { frozen: &frozen, ..PlanContext::default() };
        let (mut timer, mut now) = (armed(&job), start);
        let (mut ran, mut gaps) = (BTreeSet::new(), Vec::new());
        for _ in 0..80 {
            // Mostly on time, sometimes after an outage.
            let Some(next) = timer.next_run_at.filter(|next| *next < start + 150 * DAY) else { break };
            let due = next.max(now);
            let late = if random.percent(20) { random.between(61, 86_400 * 8) } else { random.between(0, 30) };
            now = due + SignedDuration::from_secs(late);
            let planned = plan::plan(&job, &timer, &seen, now);
            keep(&planned, &mut ran, &mut gaps, now);
            timer = planned.timer;
        }
        let spec = job.spec.as_ref().unwrap();
        let (mark, model) = (timer.last_slot_at, Model { plain: &plain, rules: &rules });
        let mut wanted = 0;
        let mut slots = BTreeSet::new();
        for slot in plain.slots_after(start - 40 * DAY).take_while(|slot| *slot <= mark + 40 * DAY) {
            let is_due = match model.fires_at(slot) {
                Some(at) if at > start => at <= mark,
                Some(_) | None => slot > start && slot <= mark,
            };
            wanted += u64::from(is_due);
            if is_due {
                slots.insert(slot);
            }
        }
        assert!(ran.is_subset(&slots), "{context}: {:?}", ran.difference(&slots));
        let counted: u64 = gaps.iter().filter(|gap| gap.reason != GapReason::DstGap).map(|gap| gap.slots).sum();
        assert_eq!(ran.len() as u64 + counted, wanted, "{context}: {gaps:?} until {mark} of {spec:?}");
        let mut ids = BTreeSet::new();
        assert!(gaps.iter().all(|gap| ids.insert(gap.id(job.id, None))), "{context}: two gaps of one id in {gaps:?}");
    }
}

#[test]
fn dense_schedules_do_not_move() {
    let rules = rolled("0 9 * * *", "", Roll::Next, "2027-01-08T10:00").spec.unwrap().calendars().cloned().unwrap();
    for (schedule, can_roll) in
        [("0 * * * *", true), ("0,30 * * * *", false), ("@every 12h", false), ("0 9 L * *", true)]
    {
        let spec = given::job(schedule, "", at("2027-01-08T10:00")).spec.unwrap().with_calendars(&rules);
        assert_eq!((spec.can_roll(), spec.roll() == Roll::Next), (can_roll, can_roll), "{schedule}");
    }
}

#[test]
fn a_moved_slot_says_where_it_comes_from() {
    let job = rolled("0 18 1 * *", "", Roll::Previous, "2026-12-02T00:00");
    let spec = job.spec.unwrap();
    let moved = spec.moved_to(at("2026-12-31T18:00"));
    assert_eq!((moved.len(), moved[0].slot), (1, at("2027-01-01T18:00")));
    assert_eq!(moved[0].day(), "2027-01-01 (New Year)");
    assert!(spec.moved_to(at("2027-02-01T18:00")).is_empty());
}
