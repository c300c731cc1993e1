//! Rules that look at orgs one by one.

use everbell_core::OrgId;
use everbell_core::alert::{Decision, JobFacts, Kind, OrgFact, Rule, Subject, decide};

use crate::alert::{applied, at, facts, rule};

fn of_org(org: &str, failures: u32) -> JobFacts {
    JobFacts { org: Some(OrgFact { id: OrgId::new(org).unwrap(), fires: true }), ..facts(failures) }
}

#[test]
fn a_rule_about_orgs_looks_at_each_of_them() {
    let each =
        Rule { name: "each".to_owned(), orgs: vec!["ac*".to_owned(), "bolt".to_owned()], ..rule(&[Kind::Failed]) };
    let rules = [rule(&[Kind::Failed]), each];
    let mut problems = Vec::new();
    let seen = [facts(1), of_org("acme", 1), of_org("bolt", 1), of_org("cove", 1)];
    let first = decide(&rules, &seen, &[], &problems, at("01:00:05"));
    let told: Vec<String> = first.notices.iter().map(|one| format!("{} {}", one.rule, one.problem.subject)).collect();
    assert_eq!(told, ["all job", "each job for acme", "each job for bolt"]);
    applied(&mut problems, &first);
    assert_eq!(decide(&rules, &seen, &[], &problems, at("01:00:10")), Decision::default());
    // The success of one org, and of the job as a whole, says nothing about the other one.
    let over = decide(&rules, &[facts(0), of_org("acme", 0), of_org("bolt", 1)], &[], &problems, at("01:05:00"));
    let subjects: Vec<String> = over.problems.iter().map(|problem| problem.subject.to_string()).collect();
    assert_eq!(subjects, ["job", "job for acme"]);
    assert!(over.problems.iter().all(|problem| problem.closed_because.as_deref() == Some("a run succeeded")));
    applied(&mut problems, &over);
    // An org for which nothing fires any more has no problem.
    let mut resting = of_org("bolt", 1);
    resting.org = Some(OrgFact { id: OrgId::new("bolt").unwrap(), fires: false });
    let over = decide(&rules, &[resting], &[], &problems, at("01:10:00"));
    assert_eq!(over.problems[0].closed_because.as_deref(), Some("the org is disabled or deleted"));
    assert_eq!(over.problems[0].subject.org(), Some(&OrgId::new("bolt").unwrap()));
    // A rule that is gone, or a job.
    let open = decide(&rules, &[of_org("acme", 1)], &[], &[], at("01:00:05")).problems;
    let gone = decide(&rules[..1], &[of_org("acme", 1)], &[], &open, at("01:05:00"));
    assert_eq!(gone.problems[0].closed_because.as_deref(), Some("no rule covers it anymore"));
    let Subject::JobOfOrg(key, _) = open[0].subject.clone() else { panic!("{open:?}") };
    let gone = decide(&rules, &[], &[key], &open, at("01:05:00"));
    assert_eq!(gone.problems[0].closed_because.as_deref(), Some("the job was deleted"));
}

#[test]
fn a_rule_about_orgs_asks_about_failures_only() {
    let rule = |kinds: &[Kind]| Rule { orgs: vec!["*".to_owned()], ..rule(kinds) };
    assert_eq!(rule(&[Kind::Failed]).problems(), []);
    for kinds in [&[Kind::Failed, Kind::Missed][..], &[Kind::JobError]] {
        let problems = rule(kinds).problems();
        assert_eq!(problems.iter().map(|problem| problem.field).collect::<Vec<_>>(), ["orgs"]);
    }
}
