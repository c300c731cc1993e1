//! [`decide_instances`]: which instances are lost, and which are back or replaced.
//!
//! An instance that ends in good order is not known any more; one whose heartbeats stop is lost. Its problem is over when it
//! sends heartbeats again, when another one that started later has all of its roles, or when it is forgotten.

use jiff::Timestamp;

use super::decide::{close, notify_rules, opened};
use super::find::simple;
use super::{Decision, Kind, Problem, Rule, Subject};
use crate::ids::InstanceId;

/// An instance that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceFact {
    /// Its id.
    pub id: InstanceId,
    /// Its host.
    pub host: String,
    /// Its roles.
    pub roles: Vec<String>,
    /// When it started.
    pub started_at: Timestamp,
    /// Its last heartbeat.
    pub heartbeat_at: Timestamp,
}

/// The instances of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterFacts {
    /// All that are known.
    pub instances: Vec<InstanceFact>,
    /// An instance with a heartbeat at this time or later is alive.
    pub alive_since: Timestamp,
    /// An instance whose heartbeats stopped being recent before this time is no news: it was looked at before.
    pub news_since: Timestamp,
}

/// Decides about lost instances. `problems` are all that are open, and those that closed lately.
pub fn decide_instances(rules: &[Rule], facts: &ClusterFacts, problems: &[Problem], now: Timestamp) -> Decision {
    let mut decision = Decision::default();
    let covering: Vec<&Rule> = rules.iter().filter(|rule| rule.asks_about_instances()).collect();
    let open: Vec<&Problem> =
        problems.iter().filter(|problem| problem.kind == Kind::InstanceLost && problem.is_open()).collect();
    let replaced = facts.replaced();
    for before in &open {
        let Some((id, _)) = before.subject.instance() else { continue };
        let known = facts.instances.iter().find(|instance| instance.id == id);
        let because = match known {
            _ if covering.is_empty() => Some("no rule covers it anymore"),
            Some(instance) if facts.is_alive(instance) => Some("it sends heartbeats again"),
            _ if replaced.contains(&id) => Some("another instance took its place"),
            None => Some("it has not been seen for a long time and was forgotten"),
            Some(_) => None,
        };
        let mut problem = (*before).clone();
        match because {
            Some(because) => close(&mut problem, because.to_owned(), rules, now, &mut decision),
            None => notify_rules(&mut problem, covering.iter().copied(), now, &mut decision),
        }
        if problem != **before {
            decision.problems.push(problem);
        }
    }
    for instance in facts.lost().filter(|_| !covering.is_empty()) {
        let is_same = |problem: &&Problem| problem.subject.instance().is_some_and(|(id, _)| id == instance.id);
        let own: Vec<&Problem> = problems.iter().filter(is_same).collect();
        let is_known = own.iter().any(|problem| problem.is_open() || problem.mark_at >= instance.heartbeat_at);
        if is_known || facts.lost_at(instance, now) < facts.news_since {
            continue;
        }
        let reason = format!("its last heartbeat was at {}", instance.heartbeat_at);
        let subject = Subject::Instance(instance.id, instance.host.clone());
        let mut problem = opened(Kind::InstanceLost, subject, &simple(instance.heartbeat_at, reason), now);
        notify_rules(&mut problem, covering.iter().copied(), now, &mut decision);
        if replaced.contains(&instance.id) {
            close(&mut problem, "another instance took its place".to_owned(), rules, now, &mut decision);
        }
        decision.problems.push(problem);
    }
    decision
}

impl ClusterFacts {
    fn is_alive(&self, instance: &InstanceFact) -> bool {
        instance.heartbeat_at >= self.alive_since
    }

    /// Lost instances, the one that was lost first comes first.
    fn lost(&self) -> impl Iterator<Item = &InstanceFact> {
        let mut lost: Vec<_> = self.instances.iter().filter(|instance| !self.is_alive(instance)).collect();
        lost.sort_unstable_by_key(|instance| (instance.heartbeat_at, instance.id));
        lost.into_iter()
    }

    /// When it was lost: as long after its last heartbeat as the living may be silent.
    fn lost_at(&self, instance: &InstanceFact, now: Timestamp) -> Timestamp {
        let silence = now.duration_since(self.alive_since);
        instance.heartbeat_at.checked_add(silence).unwrap_or(Timestamp::MAX)
    }

    /// Lost instances whose place was taken. Each instance takes the place of one.
    fn replaced(&self) -> Vec<InstanceId> {
        let mut alive: Vec<_> = self.instances.iter().filter(|instance| self.is_alive(instance)).collect();
        alive.sort_unstable_by_key(|instance| (instance.started_at, instance.id));
        let mut replaced = Vec::new();
        for lost in self.lost() {
            let takes_over = |instance: &&InstanceFact| {
                instance.started_at > lost.heartbeat_at && lost.roles.iter().all(|role| instance.roles.contains(role))
            };
            if let Some(place) = alive.iter().position(takes_over) {
                alive.remove(place);
                replaced.push(lost.id);
            }
        }
        replaced
    }
}
