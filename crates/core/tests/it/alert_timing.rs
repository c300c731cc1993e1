//! Problems of time and of instances: skipped slots, late starts, long runs, lost instances, and many problems at once.

use std::collections::BTreeMap;
use std::time::Duration;

use everbell_core::alert::{
    Change, ClusterFacts, Decision, InstanceFact, JobFacts, Kind, LateStartFact, Message, Notice, Problem, Rule,
    RunningFact, SkippedFact, TimeLimit, WaitingFact, decide, decide_instances, summarize,
};
use everbell_core::{InstanceId, JobKey, JobStatus, RunId, SkipReason};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::alert::{applied, at, facts, rule, sent_changes};

fn look(rules: &[Rule], facts: &JobFacts, problems: &[Problem], now: &str) -> Decision {
    decide(rules, std::slice::from_ref(facts), &[], problems, at(now))
}

fn skipped(slot: &str) -> SkippedFact {
    let blocking = RunId::first_at(at("00:00:00"));
    let reason = SkipReason::Overlap { blocking };
    SkippedFact { run: RunId::first_at(at(slot)), at: at(slot), reason, slots: 1, is_news: true }
}

#[test]
fn skipped_slots_are_a_problem_until_two_later_ones_ran() {
    let rules = [rule(&[Kind::Skipped])];
    let mut problems = Vec::new();
    let mut busy = JobFacts { skipped: Some(skipped("01:00:00")), ..facts(0) };
    let opened = look(&rules, &busy, &problems, "01:00:02");
    assert_eq!(sent_changes(&opened), [("all", Change::Opened)]);
    assert!(opened.problems[0].reason.contains("was still active"), "{}", opened.problems[0].reason);
    applied(&mut problems, &opened);
    // Every other slot runs: nothing is over, and nothing is told again.
    busy.runs_since_skip = 1;
    assert_eq!(look(&rules, &busy, &problems, "01:01:02"), Decision::default());
    (busy.skipped, busy.runs_since_skip) = (Some(skipped("01:02:00")), 0);
    let again = look(&rules, &busy, &problems, "01:02:02");
    assert_eq!((sent_changes(&again), again.problems[0].count), (vec![], 2));
    applied(&mut problems, &again);
    (busy.skipped, busy.runs_since_skip) = (None, 2);
    let over = look(&rules, &busy, &problems, "01:04:02");
    assert_eq!(sent_changes(&over), [("all", Change::Recovered)]);
    applied(&mut problems, &over);
    // The skip may still be seen for some minutes.
    busy.skipped = Some(skipped("01:02:00"));
    assert_eq!(look(&rules, &busy, &problems, "01:04:07"), Decision::default());
    let blip = look(&rules, &busy, &[], "01:04:07");
    assert_eq!(sent_changes(&blip), [("all", Change::Opened), ("all", Change::Recovered)]);
}

fn waiting(due: &str) -> JobFacts {
    JobFacts { waiting: Some(WaitingFact { run: None, due_at: at(due) }), ..facts(0) }
}

fn patient(minutes: u64) -> Rule {
    Rule { starts_within: Some(Duration::from_mins(minutes)), ..rule(&[Kind::LateStart]) }
}

#[test]
fn a_slot_that_does_not_start_in_time_is_a_problem_until_it_does() {
    let rules = [patient(10)];
    let late = waiting("01:00:00");
    assert_eq!(look(&rules, &late, &[], "01:09:59"), Decision::default());
    let opened = look(&rules, &late, &[], "01:10:00");
    assert_eq!((sent_changes(&opened), opened.problems[0].since), (vec![("all", Change::Opened)], at("01:10:00")));
    assert_eq!(look(&rules, &late, &opened.problems, "01:20:00"), Decision::default());
    let over = look(&rules, &facts(0), &opened.problems, "01:20:00");
    assert_eq!(sent_changes(&over), [("all", Change::Recovered)]);
    // A start that nobody saw waiting is told once, with its end.
    let late =
        LateStartFact { run: RunId::first_at(at("01:00:00")), due_at: at("01:00:00"), started_at: at("01:20:00") };
    let seen = JobFacts { started_late: Some(late), ..facts(0) };
    assert_eq!(look(&rules, &seen, &over.problems, "01:21:00"), Decision::default());
    assert_eq!(look(&rules, &seen, &[], "01:21:00").notices.len(), 2);
    assert_eq!(look(&[patient(30)], &seen, &[], "01:21:00"), Decision::default());
}

#[test]
fn a_paused_job_is_not_late_and_the_time_of_a_pause_does_not_count() {
    let rules = [patient(10)];
    let mut paused = waiting("01:00:00");
    paused.job.state.status = JobStatus::Paused;
    assert_eq!(look(&rules, &paused, &[], "02:00:00"), Decision::default());
    let opened = look(&rules, &waiting("01:00:00"), &[], "01:10:00");
    let over = look(&rules, &paused, &opened.problems, "01:11:00");
    assert_eq!(over.problems[0].closed_because.as_deref(), Some("the job is paused"));
    let mut resumed = waiting("01:00:00");
    resumed.job.state.updated_at = at("02:00:00");
    assert_eq!(look(&rules, &resumed, &[], "02:09:59"), Decision::default());
    assert_eq!(look(&rules, &resumed, &[], "02:10:00").notices.len(), 1);
}

#[test]
fn a_run_takes_too_long_by_a_limit_or_compared_with_others_also_while_it_runs() {
    let run = RunId::first_at(at("01:00:00"));
    let running = |usual: Option<u64>| JobFacts {
        running: Some(RunningFact { run, started_at: at("01:00:00") }),
        usual: usual.map(Duration::from_secs),
        ..facts(0)
    };
    let rule = |limits: &[TimeLimit]| [Rule { takes_at_most: limits.to_vec(), ..rule(&[Kind::TooLong]) }];
    let fixed = rule(&[TimeLimit::Fixed(Duration::from_mins(30))]);
    assert_eq!(look(&fixed, &running(Some(1)), &[], "01:29:59"), Decision::default());
    let opened = look(&fixed, &running(None), &[], "01:30:00");
    assert_eq!((sent_changes(&opened), opened.problems[0].run), (vec![("all", Change::Opened)], Some(run)));
    let over = look(&fixed, &facts(0), &opened.problems, "01:31:00");
    assert_eq!(over.problems[0].closed_because.as_deref(), Some("the run ended"));
    let compared = rule(&[TimeLimit::TimesUsual(3)]);
    assert_eq!(look(&compared, &running(None), &[], "05:00:00"), Decision::default(), "without history");
    assert_eq!(look(&compared, &running(Some(60)), &[], "01:02:59"), Decision::default());
    assert_eq!(look(&compared, &running(Some(60)), &[], "01:03:00").notices.len(), 1);
    // Ten seconds are never unusual.
    assert_eq!(look(&compared, &running(Some(1)), &[], "01:00:09"), Decision::default());
    let both = rule(&[TimeLimit::Fixed(Duration::from_mins(30)), TimeLimit::TimesUsual(3)]);
    assert_eq!(look(&both, &running(Some(60)), &[], "01:03:00").notices.len(), 1, "whichever is less");
    assert_eq!(look(&both, &running(None), &[], "01:30:00").notices.len(), 1);
}

#[test]
fn rules_about_time_need_their_limits() {
    let fields = |rule: Rule| rule.problems().into_iter().map(|invalid| invalid.field).collect::<Vec<_>>();
    assert_eq!(fields(patient(10)), [""; 0]);
    assert_eq!(fields(rule(&[Kind::LateStart])), ["starts_within"]);
    assert_eq!(
        fields(Rule { starts_within: Some(Duration::from_millis(5)), ..rule(&[Kind::LateStart]) }),
        ["starts_within"]
    );
    assert_eq!(
        fields(Rule { starts_within: Some(Duration::from_mins(5)), ..rule(&[Kind::Failed]) }),
        ["starts_within"]
    );
    assert_eq!(fields(rule(&[Kind::TooLong])), ["takes_at_most"]);
    let brief = vec![TimeLimit::Fixed(Duration::from_millis(1))];
    assert_eq!(fields(Rule { takes_at_most: brief, ..rule(&[Kind::TooLong]) }), ["takes_at_most"]);
    let times = vec![TimeLimit::TimesUsual(2)];
    assert_eq!(fields(Rule { takes_at_most: times, ..rule(&[Kind::Skipped, Kind::InstanceLost]) }), ["takes_at_most"]);
}

fn instance(number: u8, started: &str, heartbeat: &str) -> InstanceFact {
    InstanceFact {
        id: InstanceId::new(at("00:00:00"), [number; 10]),
        host: format!("host-{number}"),
        roles: vec!["scheduler".to_owned()],
        started_at: at(started),
        heartbeat_at: at(heartbeat),
    }
}

/// A look a minute after the oldest heartbeat of the living.
fn cluster(instances: &[InstanceFact], now: &str) -> ClusterFacts {
    let alive_since = at(now) - SignedDuration::from_secs(60);
    ClusterFacts { instances: instances.to_vec(), alive_since, news_since: at("00:30:00") }
}

#[test]
fn a_lost_instance_is_told_once_and_so_is_its_end() {
    let rules = [rule(&[Kind::InstanceLost])];
    let mut problems = Vec::new();
    let decided = |instances: &[InstanceFact], problems: &[Problem], now: &str| {
        decide_instances(&rules, &cluster(instances, now), problems, at(now))
    };
    let well = instance(1, "00:00:00", "01:01:00");
    let silent = instance(2, "00:00:00", "01:00:00");
    assert_eq!(decided(&[well.clone(), silent.clone()], &[], "01:01:00"), Decision::default());
    let lost = decided(&[well.clone(), silent.clone()], &[], "01:01:01");
    assert_eq!(sent_changes(&lost), [("all", Change::Opened)]);
    assert_eq!(lost.problems[0].subject.instance().unwrap().1, "host-2");
    applied(&mut problems, &lost);
    assert_eq!(decided(&[well.clone(), silent.clone()], &problems, "01:01:30"), Decision::default());
    // It was only cut off for a while.
    let back = decided(&[well.clone(), instance(2, "00:00:00", "01:02:00")], &problems, "01:02:00");
    assert_eq!(back.problems[0].closed_because.as_deref(), Some("it sends heartbeats again"));
    // Another one started in its place. Later looks know that.
    let heir = instance(3, "01:01:20", "01:02:00");
    let replaced = decided(&[well.clone(), silent.clone(), heir.clone()], &problems, "01:02:00");
    assert_eq!(replaced.problems[0].closed_because.as_deref(), Some("another instance took its place"));
    applied(&mut problems, &replaced);
    assert_eq!(decided(&[well.clone(), silent, heir], &problems, "01:02:00"), Decision::default());
    // It was forgotten.
    let forgotten = decided(&[well], &lost.problems, "01:02:00");
    assert_eq!(sent_changes(&forgotten), [("all", Change::Recovered)]);
}

#[test]
fn an_instance_takes_the_place_of_one_with_its_roles() {
    let rules = [rule(&[Kind::InstanceLost])];
    let lost = [instance(1, "00:00:00", "01:00:00"), instance(2, "00:00:00", "01:00:01")];
    let open = |more: &[InstanceFact]| {
        let all = [&lost[..], more].concat();
        let decision = decide_instances(&rules, &cluster(&all, "01:05:00"), &[], at("01:05:00"));
        decision.problems.iter().filter(|problem| problem.is_open()).count()
    };
    let heir = |number| instance(number, "01:01:00", "01:05:00");
    assert_eq!((open(&[]), open(&[heir(3)]), open(&[heir(3), heir(4)])), (2, 1, 0));
    let other = InstanceFact { roles: vec!["api".to_owned()], ..heir(5) };
    assert_eq!(open(&[other]), 2);
    assert_eq!(open(&[instance(6, "00:10:00", "01:05:00")]), 2, "it was there before");
}

#[test]
fn an_instance_that_was_lost_before_anybody_looked_is_no_news() {
    let rules = [rule(&[Kind::InstanceLost])];
    let old = [instance(1, "00:00:00", "00:28:59")];
    let facts = cluster(&old, "01:00:00");
    assert_eq!(decide_instances(&rules, &facts, &[], at("01:00:00")), Decision::default());
    let silent = [rule(&[Kind::Failed])];
    let lost = cluster(&[instance(1, "00:00:00", "00:59:00")], "01:05:00");
    assert_eq!(decide_instances(&silent, &lost, &[], at("01:05:00")), Decision::default());
}

fn many(count: usize) -> Vec<Notice> {
    let rules = [Rule { to: vec!["ops".to_owned(), "pager".to_owned()], ..rule(&[Kind::Failed]) }];
    let jobs: Vec<JobFacts> = (0..count)
        .map(|number| {
            let mut job = facts(1);
            let mut definition = (*job.job.definition).clone();
            definition.key = JobKey::new(&format!("job-{number}")).unwrap();
            job.job.definition = definition.into();
            job
        })
        .collect();
    decide(&rules, &jobs, &[], &[], at("01:00:05")).notices
}

fn limits(limit: usize) -> BTreeMap<String, usize> {
    BTreeMap::from([("ops".to_owned(), limit)])
}

#[test]
fn many_problems_at_once_are_one_message_for_a_channel_with_a_limit() {
    let now = at("01:00:05");
    assert_eq!(summarize(many(10), &limits(10), now).len(), 20);
    let messages = summarize(many(11), &limits(10), now);
    let summaries: Vec<_> = messages
        .iter()
        .filter_map(|message| if let Message::Many(summary) = message { Some(summary) } else { None })
        .collect();
    assert_eq!((messages.len(), summaries.len()), (12, 1));
    assert_eq!((summaries[0].channel.as_str(), summaries[0].notices.len()), ("ops", 11));
    assert_eq!(messages, summarize(many(11), &limits(10), now), "another instance says the same");
}

proptest! {
    #[test]
    fn a_summary_loses_no_message_and_doubles_none(count in 0_usize..40, limit in 0_usize..20, quiet in any::<bool>()) {
        let (mut notices, now) = (many(count), at("01:00:05"));
        for notice in notices.iter_mut().step_by(3).filter(|_| quiet) {
            notice.available_at = at("07:00:00");
        }
        let mut kept: Vec<Notice> = Vec::new();
        for message in summarize(notices.clone(), &limits(limit), now) {
            match message {
                Message::One(notice) => kept.push(*notice),
                Message::Many(summary) => {
                    prop_assert!(summary.notices.len() > limit.max(1) && summary.channel == "ops");
                    let is_alike = |notice: &Notice| {
                        let own = (notice.channel.as_str(), notice.change, notice.available_at);
                        own == (summary.channel.as_str(), summary.change, summary.available_at)
                    };
                    prop_assert!(summary.notices.iter().all(is_alike));
                    kept.extend(summary.notices);
                }
            }
        }
        let sorted = |mut all: Vec<Notice>| { all.sort_by_key(|notice| notice.id); all };
        prop_assert_eq!(sorted(kept), sorted(notices));
    }

    #[test]
    fn whatever_happens_to_slots_and_runs_each_change_is_told_once(steps in prop::collection::vec(0_u8..9, 1..80)) {
        let kinds = [Kind::Skipped, Kind::LateStart, Kind::TooLong];
        let rules = [Rule {
            starts_within: Some(Duration::from_mins(5)),
            takes_at_most: vec![TimeLimit::Fixed(Duration::from_mins(10))],
            ..rule(&kinds)
        }];
        let (mut now, mut facts, mut problems) = (at("00:00:01"), facts(0), Vec::<Problem>::new());
        let mut sent: Vec<Notice> = Vec::new();
        let run = |now: Timestamp| RunId::first_at(now);
        for step in steps {
            now += SignedDuration::from_secs(61);
            match step {
                0 => {
                    let reason = SkipReason::Overlap { blocking: run(now) };
                    facts.skipped = Some(SkippedFact { run: run(now), at: now, reason, slots: 1, is_news: true });
                    facts.runs_since_skip = 0;
                }
                1 => facts.runs_since_skip += 1,
                2 => facts.waiting = Some(WaitingFact { run: None, due_at: now }),
                3 => facts.waiting = None,
                4 => facts.running = Some(RunningFact { run: run(now), started_at: now }),
                5 => facts.running = None,
                6 => now += SignedDuration::from_mins(6),
                7 => {
                    let paused = facts.job.state.status == JobStatus::Paused;
                    facts.job.state.status = if paused { JobStatus::Active } else { JobStatus::Paused };
                    facts.job.state.updated_at = now;
                }
                _ => {
                    let decision = decide(&rules, std::slice::from_ref(&facts), &[], &problems, now);
                    applied(&mut problems, &decision);
                    sent.extend(decision.notices);
                    let again = decide(&rules, std::slice::from_ref(&facts), &[], &problems, now);
                    prop_assert_eq!(again, Decision::default(), "the same facts twice");
                    let is_late = problems.iter().any(|problem| problem.kind == Kind::LateStart && problem.is_open());
                    prop_assert!(!is_late || facts.job.state.status == JobStatus::Active, "a paused job is late");
                }
            }
        }
        for kind in kinds {
            let open = problems.iter().filter(|problem| problem.kind == kind && problem.is_open()).count();
            prop_assert!(open <= 1, "opened twice without a close");
        }
        for problem in &problems {
            let changes: Vec<_> = sent.iter().filter(|notice| notice.problem.id == problem.id).map(|notice| notice.change).collect();
            let expected = if problem.is_open() { vec![Change::Opened] } else { vec![Change::Opened, Change::Recovered] };
            prop_assert_eq!(changes, expected);
        }
    }
}
