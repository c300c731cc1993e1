//! [`decide`]: which problems open, continue and close, and who is notified.

use std::collections::BTreeMap;

use jiff::Timestamp;
use uuid::Uuid;

use super::find::Finding;
use super::rule::later;
use super::{Change, JobFacts, Kind, NotifiedRule, OrgFact, Problem, Rule, Subject};
use crate::ids::{JobKey, OrgId, alert_id};
use crate::json::storable_text;

/// The longest reason that a problem keeps.
const MAX_REASON_BYTES: usize = 2_000;

/// Changes of problems, and messages about them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Problems that are new or changed.
    pub problems: Vec<Problem>,
    /// Messages, in the order in which they happened.
    pub notices: Vec<Notice>,
}

impl Decision {
    /// Adds what was decided about others.
    #[must_use]
    pub fn and(mut self, other: Decision) -> Decision {
        self.problems.extend(other.problems);
        self.notices.extend(other.notices);
        self
    }
}

/// A message that has to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The id of its delivery.
    pub id: Uuid,
    /// The problem as it is now.
    pub problem: Problem,
    /// The rule that wants it.
    pub rule: String,
    /// The channel that gets it.
    pub channel: String,
    /// The change of the problem.
    pub change: Change,
    /// When it may be sent.
    pub available_at: Timestamp,
}

/// Decides about the jobs that there are facts of. Problems of other jobs stay as they are, except for those in `gone`,
/// which do not exist any more.
///
/// `problems` are all that are open, and those that closed lately: since the news in the facts began.
pub fn decide(rules: &[Rule], facts: &[JobFacts], gone: &[JobKey], problems: &[Problem], now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    let mut known: BTreeMap<(Kind, &JobKey, Option<&OrgId>), Vec<&Problem>> = BTreeMap::new();
    for problem in problems {
        if let Some(job) = problem.job() {
            known.entry((problem.kind, job, problem.subject.org())).or_default().push(problem);
        }
    }
    for job in facts {
        let org = job.org.as_ref().map(|org| &org.id);
        for kind in Kind::ALL.iter().filter(|kind| job.tell_about(**kind)) {
            let own = known.get(&(*kind, &job.job.definition.key, org)).map_or(&[][..], Vec::as_slice);
            judge(rules, job, *kind, own, now, &mut decision);
        }
    }
    let is_gone = |problem: &&Problem| problem.is_open() && problem.job().is_some_and(|job| gone.contains(job));
    for problem in problems.iter().filter(is_gone) {
        let mut problem = problem.clone();
        close(&mut problem, "the job was deleted".to_owned(), rules, now, &mut decision);
        decision.problems.push(problem);
    }
    decision
}

/// Decides about one kind of problem of one job. `own` are the problems of that kind that it has or had.
fn judge(rules: &[Rule], facts: &JobFacts, kind: Kind, own: &[&Problem], now: Timestamp, decision: &mut Decision) {
    let definition = &facts.job.definition;
    let org = facts.org.as_ref().map(|OrgFact { id, .. }| id);
    let covers = |rule: &&Rule| rule.covers(kind, &definition.key, &definition.labels, org);
    let covering: Vec<&Rule> = rules.iter().filter(covers).collect();
    let open = own.iter().copied().find(|problem| problem.is_open());
    let found: Vec<(&Rule, Finding)> =
        covering.iter().filter_map(|rule| Some((*rule, facts.find(kind, rule, open, now)?))).collect();
    match (open, found.first()) {
        (None, Some((_, finding))) => {
            let mut problem = opened(kind, facts.subject(), finding, now);
            notify_rules(&mut problem, found.iter().map(|(rule, _)| *rule), now, decision);
            decision.problems.push(problem);
        }
        (Some(before), Some((_, finding))) => {
            let mut problem = before.clone();
            refresh(&mut problem, finding);
            notify_rules(&mut problem, found.iter().map(|(rule, _)| *rule), now, decision);
            if problem != *before {
                decision.problems.push(problem);
            }
        }
        (Some(before), None) => {
            let mut problem = before.clone();
            // The end covers what came until then, so that it is no news at the next look.
            problem.mark_at = facts.newest_event(kind).map_or(problem.mark_at, |at| at.max(problem.mark_at));
            let because =
                if covering.is_empty() { "no rule covers it anymore".to_owned() } else { facts.recovery(&problem) };
            close(&mut problem, because, rules, now, decision);
            decision.problems.push(problem);
        }
        (None, None) => {
            let known = own.iter().map(|problem| problem.mark_at).max();
            let found: Vec<(&Rule, Finding)> =
                covering.iter().filter_map(|rule| Some((*rule, facts.blip(kind, rule, known)?))).collect();
            let Some((_, finding)) = found.first() else { return };
            let mut problem = opened(kind, facts.subject(), finding, now);
            notify_rules(&mut problem, found.iter().map(|(rule, _)| *rule), now, decision);
            let because = facts.recovery(&problem);
            close(&mut problem, because, rules, now, decision);
            decision.problems.push(problem);
        }
    }
}

pub(super) fn opened(kind: Kind, subject: Subject, finding: &Finding, now: Timestamp) -> Problem {
    Problem {
        id: alert_id(&[b"problem", kind.as_str().as_bytes(), subject.identity().as_bytes()], now, 0),
        kind,
        subject,
        opened_at: now,
        closed_at: None,
        closed_because: None,
        since: finding.since,
        mark_at: finding.mark_at,
        count: finding.count,
        reason: storable_text(&finding.reason, MAX_REASON_BYTES),
        run: finding.run,
        told: Vec::new(),
        acknowledged: None,
        muted: None,
    }
}

/// Takes over what is new. When it began stays.
fn refresh(problem: &mut Problem, finding: &Finding) {
    problem.mark_at = problem.mark_at.max(finding.mark_at);
    problem.count = finding.count;
    problem.reason = storable_text(&finding.reason, MAX_REASON_BYTES);
    problem.run = finding.run.or(problem.run);
}

/// Reports an open problem for the rules that have not reported it, and reminds for the others when it is time.
pub(super) fn notify_rules<'a>(
    problem: &mut Problem,
    rules: impl Iterator<Item = &'a Rule>,
    now: Timestamp,
    decision: &mut Decision,
) {
    if problem.is_muted(now) {
        return;
    }
    for rule in rules {
        let sends_at = rule.sends_at(now);
        match problem.told.iter().position(|told| told.rule == rule.name) {
            None => {
                problem.told.push(NotifiedRule { rule: rule.name.clone(), at: now });
                write(problem, rule, Change::Opened, now, sends_at, decision);
            }
            Some(known) => {
                let due = rule.remind.map(|remind| later(problem.told[known].at, remind));
                // A reminder waits for the end of quiet hours by itself: it is decided again then.
                let is_due = due.is_some_and(|due| due <= now) && sends_at == now;
                if is_due && problem.acknowledged.is_none() {
                    problem.told[known].at = now;
                    write(problem, rule, Change::Reminded, now, sends_at, decision);
                }
            }
        }
    }
}

/// Closes a problem, and reports that for the rules that reported it and ask for it.
pub(super) fn close(problem: &mut Problem, because: String, rules: &[Rule], now: Timestamp, decision: &mut Decision) {
    // A clock that was set back ends nothing before it began.
    problem.closed_at = Some(now.max(problem.opened_at));
    problem.closed_because = Some(because);
    let knows = |rule: &&Rule| rule.recovered && problem.told.iter().any(|told| told.rule == rule.name);
    let wanting: Vec<&Rule> = rules.iter().filter(knows).collect();
    for rule in wanting {
        write(problem, rule, Change::Recovered, now, rule.sends_at(now), decision);
    }
}

/// Adds a message for each channel of a rule. A channel that several rules name gets one.
fn write(problem: &Problem, rule: &Rule, change: Change, now: Timestamp, at: Timestamp, decision: &mut Decision) {
    for channel in &rule.to {
        let is_same =
            |notice: &Notice| notice.problem.id == problem.id && notice.channel == *channel && notice.change == change;
        if let Some(same) = decision.notices.iter_mut().find(|notice| is_same(notice)) {
            // The quiet hours of one rule are not those of another.
            same.available_at = same.available_at.min(at);
            continue;
        }
        let parts = [problem.id.as_bytes(), rule.name.as_bytes(), channel.as_bytes(), change.as_str().as_bytes()];
        decision.notices.push(Notice {
            // Sorts openings before ends of the same moment.
            id: alert_id(&parts, now, change as u8),
            problem: problem.clone(),
            rule: rule.name.clone(),
            channel: channel.clone(),
            change,
            available_at: at,
        });
    }
}
