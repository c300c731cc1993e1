use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::*;
use crate::after::ChainOn;
use crate::frozen_span::FrozenSpan;
use crate::ids::JobKey;
use crate::policy::{Dependency, Overlap, Policies, PolicyValues};
use crate::run::ActiveRun;
use crate::{JobId, Json, Scope, Source, Spec, Target, Zone};

fn key(text: &str) -> JobKey {
    JobKey::new(text).unwrap()
}

fn at(minute: i8) -> Timestamp {
    format!("2026-11-18T12:{minute:02}:00Z").parse().unwrap()
}

fn after(on: ChainOn) -> After {
    After { job_key: key("extract"), on, manual: false }
}

fn job(after: After, values: PolicyValues) -> Definition {
    Definition {
        id: JobId::new(at(0), [7; 10]),
        key: key("load"),
        version: 1,
        target: Target::new("log").unwrap(),
        payload: Json::empty(),
        spec: Ok(Spec::following(after, Zone::utc())),
        policies: Policies::new(values).unwrap(),
        scope: Scope::Global,
        description: String::new(),
        labels: BTreeMap::new(),
        source: Source::Api,
        supersedes: None,
        created_by: "ana".to_owned(),
        created_at: at(0),
        trace_context: None,
    }
}

fn timer(job: &Definition) -> Timer {
    Timer {
        job_id: job.id,
        org: None,
        next_run_at: None,
        last_slot_at: at(0),
        rescheduled_from: None,
        last_local_date: None,
    }
}

fn ended(number: u8, status: RunStatus, minute: i8) -> EndedRun {
    let trigger = Trigger::Schedule("@hourly".to_owned());
    EndedRun { id: RunId::by_hand(at(0), [number; 10]), status, trigger, finished_at: at(minute) }
}

fn follow_all(job: &Definition, seen: &PlanContext<'_>, ended: &[EndedRun]) -> Plan {
    follow(job, &timer(job), seen, false, ended)
}

fn values(overlap: Overlap) -> PolicyValues {
    PolicyValues { overlap, ..PolicyValues::default() }
}

#[test]
fn each_outcome_starts_what_asks_for_it() {
    use RunStatus::{Canceled, Failed, Succeeded};
    let all = [ended(1, Succeeded, 1), ended(2, Failed, 2), ended(3, Canceled, 3)];
    for (on, expected) in [(ChainOn::Success, vec![0]), (ChainOn::Failure, vec![1]), (ChainOn::Any, vec![0, 1, 2])] {
        let job = job(after(on), values(Overlap::Allow));
        let runs = follow_all(&job, &PlanContext::default(), &all).runs;
        let causes: Vec<Trigger> = runs.iter().map(|run| run.trigger.clone()).collect();
        let expected: Vec<Trigger> = expected.into_iter().map(|place: usize| Trigger::After(all[place].id)).collect();
        assert_eq!(causes, expected, "{on}");
        assert!(runs.iter().all(|run| run.slot_at.is_none() && run.skip.is_none() && !run.held));
    }
}

#[test]
fn runs_by_hand_and_backfills_count_only_if_the_job_says_so() {
    let backfill = crate::ids::BackfillId::new(at(0), [1; 10]);
    let triggers = [
        (Trigger::Schedule("@hourly".to_owned()), true),
        (Trigger::After(RunId::by_hand(at(0), [9; 10])), true),
        (Trigger::Manual("ana".to_owned()), false),
        (Trigger::Backfill(backfill), false),
    ];
    for (trigger, counts) in triggers {
        let one = EndedRun { trigger: trigger.clone(), ..ended(1, RunStatus::Succeeded, 1) };
        let usual = follow_all(
            &job(after(ChainOn::Success), values(Overlap::Allow)),
            &PlanContext::default(),
            std::slice::from_ref(&one),
        );
        assert_eq!(usual.runs.len(), usize::from(counts), "{trigger}");
        let also = After { manual: true, ..after(ChainOn::Success) };
        assert_eq!(
            follow_all(&job(also, values(Overlap::Allow)), &PlanContext::default(), &[one]).runs.len(),
            1,
            "{trigger}"
        );
    }
}

#[test]
fn the_same_end_gives_the_same_run() {
    let job = job(after(ChainOn::Success), values(Overlap::Allow));
    let one = ended(1, RunStatus::Succeeded, 5);
    let first = follow_all(&job, &PlanContext::default(), std::slice::from_ref(&one));
    let next_version = Definition { id: JobId::new(at(1), [8; 10]), version: 2, ..job.clone() };
    let again = follow_all(&next_version, &PlanContext::default(), std::slice::from_ref(&one));
    assert_eq!(first.runs[0].id, again.runs[0].id, "also by the next version");
    assert_eq!(first.runs[0].id.time(), at(5), "it begins with the time of the end");
    assert_ne!(first.runs[0].id, RunId::after(&key("other"), None, one.id, at(5)));
    // Stored in databases: must never change.
    assert_eq!(first.runs[0].id, RunId::after(&key("load"), None, one.id, at(5)));
    assert_eq!(first.timer, timer(&job), "the timer stays");
}

#[test]
fn overlap_decides_about_ends_that_come_together() {
    let ends =
        [ended(2, RunStatus::Succeeded, 2), ended(1, RunStatus::Succeeded, 1), ended(3, RunStatus::Succeeded, 3)];
    let plan = |overlap| follow_all(&job(after(ChainOn::Success), values(overlap)), &PlanContext::default(), &ends);
    let shape =
        |plan: &Plan| plan.runs.iter().map(|run| (run.scheduled_at, run.skip.is_some(), run.held)).collect::<Vec<_>>();
    assert_eq!(shape(&plan(Overlap::Skip)), [(at(1), false, false), (at(2), true, false), (at(3), true, false)]);
    assert_eq!(shape(&plan(Overlap::Queue)), [(at(1), false, false), (at(2), false, true), (at(3), true, false)]);
    assert_eq!(shape(&plan(Overlap::Replace)), [(at(1), true, false), (at(2), true, false), (at(3), false, false)]);
    assert_eq!(shape(&plan(Overlap::Allow)), [(at(1), false, false), (at(2), false, false), (at(3), false, false)]);
    let blocking = RunId::by_hand(at(0), [5; 10]);
    let active = [ActiveRun { id: blocking, held: false, cancel_requested: false, backfill: false }];
    let seen = PlanContext { active: &active, ..PlanContext::default() };
    let replacing = follow_all(&job(after(ChainOn::Success), values(Overlap::Replace)), &seen, &ends[..1]);
    assert_eq!((replacing.cancel, replacing.runs[0].held), (vec![blocking], true));
}

#[test]
fn a_pause_and_a_freeze_leave_one_gap_each() {
    let job = job(after(ChainOn::Success), PolicyValues::default());
    let ends = [ended(1, RunStatus::Succeeded, 1), ended(2, RunStatus::Failed, 2), ended(3, RunStatus::Succeeded, 3)];
    let paused = follow(&job, &timer(&job), &PlanContext::default(), true, &ends);
    assert!(paused.runs.is_empty());
    let gap = |reason, first, last, slots| Gap { first_slot_at: first, last_slot_at: last, slots, reason, actor: None };
    assert_eq!(paused.gaps, [gap(GapReason::Paused, at(1), at(3), 2)]);
    let frozen = [FrozenSpan { from: at(2), until: at(4) }];
    let plan = follow_all(&job, &PlanContext { frozen: &frozen, ..PlanContext::default() }, &ends);
    assert_eq!(plan.gaps, [gap(GapReason::Frozen, at(3), at(3), 1)]);
    assert_eq!(plan.runs.len(), 1);
}

#[test]
fn the_gate_of_another_job_stays() {
    let depends_on = Some(Dependency { job_key: key("gate"), within: Duration::from_mins(10) });
    let job = job(after(ChainOn::Success), PolicyValues { depends_on, ..PolicyValues::default() });
    let end = [ended(1, RunStatus::Succeeded, 20)];
    let with =
        |upstream| follow_all(&job, &PlanContext { upstream_succeeded_at: upstream, ..PlanContext::default() }, &end);
    assert!(with(Some(at(15))).runs[0].skip.is_none());
    assert_eq!(with(Some(at(5))).runs[0].skip.as_ref().map(SkipReason::as_str), Some("dependency"));
    assert_eq!(with(None).runs[0].skip.as_ref().map(SkipReason::as_str), Some("dependency"));
}

#[test]
fn the_stored_text_is_read_back() {
    for on in ChainOn::ALL {
        for manual in [false, true] {
            let one = After { job_key: key("two words"), on: *on, manual };
            assert_eq!(After::parse(&one.to_string()), Some(Ok(one)));
        }
    }
    assert_eq!(after(ChainOn::Success).to_string(), "@after success extract");
    assert_eq!(After::parse("@daily"), None);
    assert!(After::parse("@after sometimes extract").is_some_and(|read| read.is_err()));
    assert!(After::parse("@after success").is_some_and(|read| read.is_err()));
}

#[test]
fn chains_that_cannot_work_are_refused() {
    let link = |job: &str, parent: &str| ChainLink {
        job_key: key(job),
        after: After { job_key: key(parent), on: ChainOn::Success, manual: false },
    };
    let starts = |job: &str, parent: &str, exists: bool, links: &[ChainLink]| {
        let current = |_: &JobKey| exists.then_some(Scope::Global);
        check_chain(&key(job), &[link(job, parent).after], current, links).map_err(|error| error.to_string())
    };
    let links = [link("b", "a"), link("c", "b")];
    assert_eq!(starts("d", "c", true, &links), Ok(()));
    assert_eq!(starts("c", "a", true, &links), Ok(()), "an edit moves it to another job");
    let own = starts("a", "a", true, &links).unwrap_err();
    assert!(own.contains("cannot start after itself"), "{own}");
    let unknown = starts("a", "nobody", false, &links).unwrap_err();
    assert!(unknown.starts_with("after.job: there is no current job `nobody`"), "{unknown}");
    let circle = starts("a", "c", true, &links).unwrap_err();
    assert_eq!(circle, "after.job: would create a cycle: `a` starts after `c` starts after `b` starts after `a`");
    let many: Vec<ChainLink> = (1..30).map(|n| link(&format!("j{n}"), &format!("j{}", n - 1))).collect();
    let long = starts("j0", "j29", true, &many).unwrap_err();
    assert!(long.ends_with(" and 23 more"), "{long}");
}

#[test]
fn circles_through_one_of_several_jobs_are_refused() {
    let parent = |job: &str| After { job_key: key(job), on: ChainOn::Success, manual: false };
    let link = |job: &str, before: &str| ChainLink { job_key: key(job), after: parent(before) };
    // a forks to b and c, which meet in d.
    let links = [link("b", "a"), link("c", "a"), link("d", "b"), link("d", "c")];
    let after_all = |job: &str, parents: &[&str], scope| {
        let parents: Vec<After> = parents.iter().map(|key| parent(key)).collect();
        check_chain(&key(job), &parents, |_: &JobKey| scope, &links).map_err(|error| error.to_string())
    };
    let global = Some(Scope::Global);
    assert_eq!(after_all("d", &["b", "c"], global), Ok(()), "arms may meet");
    assert_eq!(after_all("e", &["a", "d"], global), Ok(()));
    let circle = after_all("a", &["x", "d"], global).unwrap_err();
    assert!(circle.starts_with("after: would create a cycle: `a` starts after `d` starts after "), "{circle}");
    assert!(circle.ends_with(" starts after `a`"), "{circle}");
    let orgs = after_all("e", &["a", "d"], Some(Scope::PerOrg)).unwrap_err();
    assert!(orgs.contains("`a` fires for each org"), "{orgs}");
    let unknown = after_all("e", &["a", "d"], None).unwrap_err();
    assert!(unknown.starts_with("after: there is no current job `a`"), "{unknown}");
}
