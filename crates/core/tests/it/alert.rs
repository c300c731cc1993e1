//! Problems: what opens and closes them, and that nothing is told twice or lost.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::alert::{
    Change, Deadline, Decision, FailureFact, JobFacts, Kind, MissedFact, Mute, Note, Notice, Problem, ProblemChange,
    QuietHours, Rule, RuleScope, decide,
};
use everbell_core::{Job, JobState, JobStatus, Pause, RunId};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use crate::given;

pub(crate) fn at(text: &str) -> Timestamp {
    format!("2026-11-15T{text}Z").parse().unwrap()
}

pub(crate) fn rule(kinds: &[Kind]) -> Rule {
    Rule {
        name: "all".to_owned(),
        kinds: kinds.to_vec(),
        recovered: true,
        scope: RuleScope::All,
        orgs: Vec::new(),
        after: 1,
        remind: None,
        deadline: None,
        starts_within: None,
        takes_at_most: Vec::new(),
        quiet: None,
        to: vec!["ops".to_owned()],
    }
}

pub(crate) fn facts(failures: u32) -> JobFacts {
    let created = at("00:00:00");
    let state = everbell_core::with!(JobState { consecutive_failures: failures, ..JobState::new("test", created) });
    let job = Job::new(Arc::new(given::job("*/5 * * * *", "", created)), state);
    JobFacts { last_failure: (failures > 0).then(|| failure(at("01:00:00"))), ..JobFacts::new(job) }
}

pub(crate) fn failure(at: Timestamp) -> FailureFact {
    FailureFact { run: RunId::first_at(at), at, reason: "exit: code 1".to_owned(), is_news: true }
}

/// The problems after a decision.
pub(crate) fn applied(problems: &mut Vec<Problem>, decision: &Decision) {
    for problem in &decision.problems {
        problems.retain(|known| known.id != problem.id);
        problems.push(problem.clone());
    }
}

pub(crate) fn sent_changes(decision: &Decision) -> Vec<(&str, Change)> {
    decision.notices.iter().map(|notice| (notice.rule.as_str(), notice.change)).collect()
}

#[test]
fn a_failing_job_is_told_once_and_so_is_its_recovery() {
    let (rules, mut problems) = ([rule(&[Kind::Failed])], Vec::new());
    let first = decide(&rules, &[facts(1)], &[], &problems, at("01:00:05"));
    assert_eq!(sent_changes(&first), [("all", Change::Opened)]);
    applied(&mut problems, &first);
    assert_eq!(decide(&rules, &[facts(1)], &[], &problems, at("01:00:10")), Decision::default());
    // More failures change the problem, and tell nobody.
    let mut more = facts(2);
    more.last_failure = Some(failure(at("01:05:00")));
    let more = decide(&rules, &[more], &[], &problems, at("01:05:05"));
    assert_eq!((sent_changes(&more), more.problems[0].count), (vec![], 2));
    applied(&mut problems, &more);
    let mut well = facts(0);
    well.last_failure = Some(failure(at("01:05:00")));
    let over = decide(&rules, &[well.clone()], &[], &problems, at("01:10:05"));
    assert_eq!(sent_changes(&over), [("all", Change::Recovered)]);
    assert_eq!(over.problems[0].closed_because.as_deref(), Some("a run succeeded"));
    applied(&mut problems, &over);
    // The failure is still news to the facts, and known to the problems.
    assert_eq!(decide(&rules, &[well], &[], &problems, at("01:10:10")), Decision::default());
}

#[test]
fn a_failure_that_was_over_before_the_look_is_told_with_its_end() {
    let rules = [rule(&[Kind::Failed]), Rule { name: "patient".to_owned(), after: 3, ..rule(&[Kind::Failed]) }];
    let mut blip = facts(0);
    blip.last_failure = Some(failure(at("01:00:00")));
    let decision = decide(&rules, &[blip.clone()], &[], &[], at("01:00:05"));
    assert_eq!(sent_changes(&decision), [("all", Change::Opened), ("all", Change::Recovered)]);
    assert!(decision.notices[0].id < decision.notices[1].id, "the beginning sorts before the end");
    assert_eq!(decide(&rules, &[blip], &[], &decision.problems, at("01:00:10")), Decision::default());
}

#[test]
fn each_rule_waits_for_its_own_number_of_failures() {
    let patient = Rule { name: "patient".to_owned(), after: 3, to: vec!["pager".to_owned()], ..rule(&[Kind::Failed]) };
    let (rules, mut problems) = ([rule(&[Kind::Failed]), patient], Vec::new());
    for (failures, expected) in
        [(1, vec![("all", Change::Opened)]), (2, vec![]), (3, vec![("patient", Change::Opened)])]
    {
        let now = at("01:00:00") + SignedDuration::from_mins(i64::from(failures));
        let decision = decide(&rules, &[facts(failures)], &[], &problems, now);
        assert_eq!(sent_changes(&decision), expected, "{failures}");
        applied(&mut problems, &decision);
    }
    assert_eq!(problems.len(), 1);
    let over = decide(&rules, &[facts(0)], &[], &problems, at("02:00:00"));
    assert_eq!(sent_changes(&over), [("all", Change::Recovered), ("patient", Change::Recovered)]);
}

#[test]
fn a_reminder_follows_unless_somebody_takes_care_or_wants_silence() {
    let rules = [Rule { remind: Some(Duration::from_hours(1)), ..rule(&[Kind::Failed]) }];
    let opened = decide(&rules, &[facts(1)], &[], &[], at("01:00:00"));
    let open = opened.problems[0].clone();
    let look = |problem: &Problem, now: &str| {
        decide(&rules, &[facts(1)], &[], std::slice::from_ref(problem), at(now)).notices.len()
    };
    assert_eq!((look(&open, "01:59:59"), look(&open, "02:00:00")), (0, 1));
    let reminded = decide(&rules, &[facts(1)], &[], std::slice::from_ref(&open), at("02:00:00"));
    assert_eq!(reminded.notices[0].change, Change::Reminded);
    assert_eq!((look(&reminded.problems[0], "02:59:59"), look(&reminded.problems[0], "03:00:00")), (0, 1));
    let note = Note { by: "ana".to_owned(), at: at("01:30:00"), reason: None };
    let known = open.changed(&ProblemChange::Acknowledge(note.clone()), at("01:30:00")).unwrap();
    assert_eq!(look(&known, "02:00:00"), 0);
    let mute = Mute { note, until: Some(at("04:00:00")) };
    let muted = open.changed(&ProblemChange::Mute(mute.clone()), at("01:30:00")).unwrap();
    assert_eq!((look(&muted, "03:59:59"), look(&muted, "04:00:00")), (0, 1));
    assert!(open.changed(&ProblemChange::Mute(mute), at("04:00:00")).is_err(), "an end that is over");
    assert!(open.changed(&ProblemChange::Unmute, at("02:00:00")).is_err(), "is not muted");
    // Who was told of the beginning is told of the end.
    let over = decide(&rules, &[facts(0)], &[], &[muted], at("03:00:00"));
    assert_eq!(sent_changes(&over), [("all", Change::Recovered)]);
}

#[test]
fn quiet_hours_delay_the_beginning_and_the_end() {
    let quiet = QuietHours::new("22:00", "07:00", "UTC").unwrap();
    let rules = [Rule { quiet: Some(quiet), ..rule(&[Kind::Failed]) }];
    let opened = decide(&rules, &[facts(1)], &[], &[], at("01:00:00"));
    let over = decide(&rules, &[facts(0)], &[], &opened.problems, at("02:00:00"));
    for notice in [&opened.notices[0], &over.notices[0]] {
        assert_eq!(notice.available_at, at("07:00:00"));
    }
    assert!(opened.notices[0].id < over.notices[0].id);
}

#[test]
fn a_channel_that_two_rules_name_gets_one_message() {
    let rules = [rule(&[Kind::Failed]), Rule { name: "other".to_owned(), ..rule(&[Kind::Failed]) }];
    assert_eq!(decide(&rules, &[facts(1)], &[], &[], at("01:00:00")).notices.len(), 1);
}

#[test]
fn quiet_hours_of_one_rule_do_not_delay_the_message_of_another() {
    let quiet = QuietHours::new("22:00", "07:00", "UTC").unwrap();
    let rules = [
        Rule { quiet: Some(quiet), ..rule(&[Kind::Failed]) },
        Rule { name: "urgent".to_owned(), ..rule(&[Kind::Failed]) },
    ];
    let notices = decide(&rules, &[facts(1)], &[], &[], at("01:00:00")).notices;
    assert_eq!((notices.len(), notices[0].available_at), (1, at("01:00:00")));
}

#[test]
fn a_success_that_is_overdue_stays_so_when_the_next_day_expects_none() {
    let rules = [Rule { deadline: Some(Deadline::by("06:00", "UTC").unwrap()), ..rule(&[Kind::NoSuccess]) }];
    let created = at("00:00:00");
    let mut weekly = facts(0);
    // 15 November 2026 is a Sunday.
    weekly.job.definition = Arc::new(given::job("0 2 * * sun", "", created));
    let opened = decide(&rules, &[weekly.clone()], &[], &[], at("06:00:00"));
    assert_eq!(sent_changes(&opened), [("all", Change::Opened)]);
    let day = SignedDuration::from_hours(24);
    for days in 1..=6 {
        let later = decide(&rules, &[weekly.clone()], &[], &opened.problems, at("06:00:00") + day * days);
        assert_eq!(later, Decision::default(), "after {days} days");
    }
    let mut changed = weekly.clone();
    changed.job.state.updated_at = at("09:00:00");
    let over = decide(&rules, &[changed], &[], &opened.problems, at("10:00:00"));
    assert_eq!(over.problems[0].closed_because.as_deref(), Some("the job or the rule was changed"));
    weekly.last_success_at = Some(at("09:00:00"));
    let over = decide(&rules, &[weekly], &[], &opened.problems, at("10:00:00"));
    assert_eq!(over.problems[0].closed_because.as_deref(), Some("a run succeeded"));
}

#[test]
fn a_resumption_is_not_told_as_a_success() {
    let rules = [rule(&[Kind::Failed])];
    let opened = decide(&rules, &[facts(1)], &[], &[], at("01:00:00"));
    let mut resumed = facts(0);
    resumed.job.state.updated_at = at("01:30:00");
    let over = decide(&rules, &[resumed], &[], &opened.problems, at("02:00:00"));
    assert_eq!(over.problems[0].closed_because.as_deref(), Some("the job was resumed or changed"));
}

#[test]
fn slots_whose_miss_is_noted_late_are_told_unless_a_run_followed() {
    let rules = [rule(&[Kind::Missed])];
    let mut missed = facts(0);
    missed.missed = Some(MissedFact { first_at: at("02:00:00"), last_at: at("02:00:00"), slots: 1, is_news: false });
    let opened = decide(&rules, &[missed.clone()], &[], &[], at("05:00:00"));
    assert_eq!(sent_changes(&opened), [("all", Change::Opened)]);
    missed.last_run_at = Some(at("03:00:00"));
    assert_eq!(decide(&rules, &[missed], &[], &[], at("05:00:00")), Decision::default(), "it is over, and no news");
}

#[test]
fn only_jobs_in_scope_count_and_a_removed_rule_ends_its_problems_in_silence() {
    let scope = RuleScope::Label("team".to_owned(), Some("billing".to_owned()));
    let mut labeled = facts(1);
    let mut definition = (*labeled.job.definition).clone();
    definition.labels.insert("team".to_owned(), "billing".to_owned());
    labeled.job.definition = Arc::new(definition);
    let rules = [Rule { scope, ..rule(&[Kind::Failed]) }];
    assert_eq!(decide(&rules, &[facts(1)], &[], &[], at("01:00:00")), Decision::default());
    let opened = decide(&rules, &[labeled.clone()], &[], &[], at("01:00:00"));
    assert_eq!(opened.notices.len(), 1);
    let other = [Rule { name: "other".to_owned(), ..rule(&[Kind::JobError]) }];
    let closed = decide(&other, &[labeled], &[], &opened.problems, at("01:00:05"));
    assert_eq!((closed.notices.len(), closed.problems[0].is_open()), (0, false));
}

#[test]
fn a_deleted_job_has_no_problem() {
    let rules = [rule(&[Kind::Failed])];
    let opened = decide(&rules, &[facts(1)], &[], &[], at("01:00:00"));
    let gone = [opened.problems[0].job().unwrap().clone()];
    let closed = decide(&rules, &[], &gone, &opened.problems, at("01:00:05"));
    assert_eq!(sent_changes(&closed), [("all", Change::Recovered)]);
    // Of a job that nothing is known about nothing is decided.
    assert_eq!(decide(&rules, &[], &[], &opened.problems, at("01:00:05")), Decision::default());
}

#[test]
fn an_error_and_an_automatic_pause_are_problems_until_they_are_mended() {
    let rules = [rule(&[Kind::JobError, Kind::AutoPaused])];
    let mut errored = facts(0);
    errored.job.state.error = Some("unknown time zone".to_owned());
    let opened = decide(&rules, &[errored], &[], &[], at("01:00:00"));
    assert_eq!((opened.problems[0].kind, opened.problems[0].reason.as_str()), (Kind::JobError, "unknown time zone"));
    assert_eq!(
        sent_changes(&decide(&rules, &[facts(0)], &[], &opened.problems, at("02:00:00"))),
        [("all", Change::Recovered)]
    );
    let paused = |by: &str| {
        let mut paused = facts(0);
        let pause = Pause { reason: "3 failures".to_owned(), by: by.to_owned(), at: at("01:00:00"), until: None };
        (paused.job.state.status, paused.job.state.pause) = (JobStatus::Paused, Some(pause));
        paused
    };
    assert_eq!(decide(&rules, &[paused("token:ana")], &[], &[], at("01:00:05")), Decision::default());
    let opened = decide(&rules, &[paused("everbell")], &[], &[], at("01:00:05"));
    assert_eq!((opened.problems[0].kind, opened.notices.len()), (Kind::AutoPaused, 1));
}

#[test]
fn missed_slots_are_a_problem_until_the_next_run() {
    let rules = [rule(&[Kind::Missed])];
    let mut missed = facts(0);
    missed.missed = Some(MissedFact { first_at: at("01:00:00"), last_at: at("02:00:00"), slots: 13, is_news: true });
    missed.last_run_at = Some(at("00:55:00"));
    let opened = decide(&rules, &[missed.clone()], &[], &[], at("02:01:00"));
    assert_eq!((sent_changes(&opened), opened.problems[0].count), (vec![("all", Change::Opened)], 13));
    // Later looks do not see the gap as news any more.
    let mut later = facts(0);
    later.last_run_at = missed.last_run_at;
    assert_eq!(decide(&rules, &[later.clone()], &[], &opened.problems, at("02:04:00")), Decision::default());
    later.last_run_at = Some(at("02:05:00"));
    let over = decide(&rules, &[later], &[], &opened.problems, at("02:05:05"));
    assert_eq!(sent_changes(&over), [("all", Change::Recovered)]);
    missed.last_run_at = Some(at("02:05:00"));
    assert_eq!(decide(&rules, &[missed.clone()], &[], &over.problems, at("02:05:10")), Decision::default());
    assert_eq!(decide(&rules, &[missed], &[], &[], at("02:05:10")).notices.len(), 2, "over before the look");
}

#[test]
fn a_paused_errored_or_retired_job_is_not_late() {
    let rules = [Rule { deadline: Some(Deadline::Within(Duration::from_hours(1))), ..rule(&[Kind::NoSuccess]) }];
    let look = |facts: &JobFacts| decide(&rules, std::slice::from_ref(facts), &[], &[], at("03:00:00"));
    let late = facts(0);
    assert_eq!(sent_changes(&look(&late)), [("all", Change::Opened)]);
    for status in [JobStatus::Paused, JobStatus::Retired] {
        let mut other = late.clone();
        other.job.state.status = status;
        assert_eq!(look(&other), Decision::default(), "{status:?}");
    }
    let mut errored = late.clone();
    errored.job.state.error = Some("broken".to_owned());
    assert_eq!(look(&errored), Decision::default());
    let mut resumed = late;
    resumed.job.state.updated_at = at("02:30:00");
    assert_eq!(look(&resumed), Decision::default());
}

#[test]
fn a_rule_that_makes_no_sense_names_its_field() {
    let fields = |rule: Rule| rule.problems().into_iter().map(|invalid| invalid.field).collect::<Vec<_>>();
    assert_eq!(fields(rule(&[Kind::Failed])), [""; 0]);
    assert_eq!(fields(rule(&[])), ["when"]);
    assert_eq!(fields(rule(&[Kind::NoSuccess])), ["by"]);
    let within = Some(Deadline::Within(Duration::from_hours(1)));
    assert_eq!(fields(Rule { deadline: within, ..rule(&[Kind::Failed]) }), ["by"]);
    assert_eq!(fields(Rule { after: 2, ..rule(&[Kind::Missed]) }), ["after"]);
    assert_eq!(
        fields(Rule { to: vec![], remind: Some(Duration::from_secs(1)), ..rule(&[Kind::Failed]) }),
        ["to", "remind"]
    );
}

/// An event of a job between two looks.
#[derive(Clone, Copy, Debug)]
enum Step {
    Fail,
    Succeed,
    Miss,
    Pause,
    Resume,
    Mute,
    Wait,
    Look,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    use Step::{Fail, Look, Miss, Mute, Pause, Resume, Succeed, Wait};
    let choice = prop::sample::select(vec![Fail, Succeed, Miss, Pause, Resume, Mute, Wait, Look, Look, Look]);
    prop::collection::vec(choice, 1..60)
}

proptest! {
    #[test]
    fn whatever_happens_each_change_is_told_once_and_in_order(steps in steps(), after in 1..=3_u32, quiet in any::<bool>()) {
        let quiet = quiet.then(|| QuietHours::new("01:00", "05:00", "UTC").unwrap());
        let deadline = Some(Deadline::Within(Duration::from_mins(30)));
        let kinds = [Kind::Failed, Kind::NoSuccess, Kind::Missed];
        let rules = [Rule { after, quiet: quiet.clone(), deadline, ..rule(&kinds) }];
        let (mut now, mut facts, mut problems) = (at("00:00:01"), facts(0), Vec::<Problem>::new());
        let mut sent: Vec<Notice> = Vec::new();
        for step in steps {
            now += SignedDuration::from_secs(61);
            match step {
                Step::Fail => {
                    facts.job.state.consecutive_failures += 1;
                    (facts.last_failure, facts.last_run_at) = (Some(failure(now)), Some(now));
                }
                Step::Succeed => {
                    facts.job.state.consecutive_failures = 0;
                    (facts.last_success_at, facts.last_run_at) = (Some(now), Some(now));
                }
                Step::Miss => facts.missed = Some(MissedFact { first_at: now, last_at: now, slots: 1, is_news: true }),
                Step::Pause => {
                    facts.job.state.status = JobStatus::Paused;
                    facts.job.state.updated_at = now;
                }
                Step::Resume => {
                    facts.job.state.status = JobStatus::Active;
                    facts.job.state.updated_at = now;
                }
                Step::Mute => {
                    let note = Note { by: "ana".to_owned(), at: now, reason: None };
                    let until = Some(now + SignedDuration::from_mins(3));
                    for problem in problems.iter_mut().filter(|problem| problem.is_open()) {
                        *problem = problem.changed(&ProblemChange::Mute(Mute { note: note.clone(), until }), now).unwrap();
                    }
                }
                Step::Wait => now += SignedDuration::from_mins(20),
                Step::Look => {
                    let decision = decide(&rules, std::slice::from_ref(&facts), &[], &problems, now);
                    prop_assert_eq!(&decision, &decide(&rules, std::slice::from_ref(&facts), &[], &problems, now));
                    applied(&mut problems, &decision);
                    for notice in &decision.notices {
                        let end = rules[0].sends_at(now);
                        prop_assert_eq!(notice.available_at, end);
                        prop_assert!(end >= now && rules[0].sends_at(end) == end, "sent in quiet hours");
                    }
                    sent.extend(decision.notices);
                    let again = decide(&rules, std::slice::from_ref(&facts), &[], &problems, now);
                    prop_assert_eq!(again, Decision::default(), "the same facts twice");
                    let is_late = problems.iter().any(|problem| problem.kind == Kind::NoSuccess && problem.is_open());
                    prop_assert!(!is_late || facts.job.state.status == JobStatus::Active, "a paused job is late");
                    if after == 1 && let Some(failure) = &facts.last_failure {
                        let is_covered = |problem: &Problem| problem.kind == Kind::Failed && problem.mark_at >= failure.at;
                        prop_assert!(problems.iter().any(is_covered), "a failure that nobody was told of");
                    }
                }
            }
            for kind in kinds {
                let open = problems.iter().filter(|problem| problem.kind == kind && problem.is_open()).count();
                prop_assert!(open <= 1, "opened twice without a close");
            }
        }
        for problem in &problems {
            let changes: Vec<_> = sent.iter().filter(|notice| notice.problem.id == problem.id).collect();
            let expected = if problem.is_open() { vec![Change::Opened] } else { vec![Change::Opened, Change::Recovered] };
            prop_assert_eq!(changes.iter().map(|notice| notice.change).collect::<Vec<_>>(), expected);
            prop_assert!(changes.windows(2).all(|pair| pair[0].id < pair[1].id), "the end sorts before the beginning");
        }
    }
}
