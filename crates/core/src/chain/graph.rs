//! [`related`]: the jobs before and after a job, in an order in which they can be drawn.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::ChainLink;
use crate::after::After;
use crate::ids::JobKey;

/// A job of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainJob {
    /// Its key.
    pub job_key: JobKey,
    /// The jobs of the chain that it starts after, by key.
    pub parents: Vec<After>,
}

/// Returns a job with the jobs before it, those after it, and those that the latter also wait for: a job comes after all
/// that it starts after. The nearest ones, at most `limit`. Empty if the job is in no chain.
pub fn related(job: &JobKey, links: &[ChainLink], limit: usize) -> Vec<ChainJob> {
    let mut parents: BTreeMap<&JobKey, Vec<&After>> = BTreeMap::new();
    let mut children: BTreeMap<&JobKey, Vec<&JobKey>> = BTreeMap::new();
    for link in links {
        parents.entry(&link.job_key).or_default().push(&link.after);
        children.entry(&link.after.job_key).or_default().push(&link.job_key);
    }
    if !parents.contains_key(job) && !children.contains_key(job) {
        return Vec::new();
    }
    let parents_of = |key: &JobKey| parents.get(key).into_iter().flatten().map(|after| &after.job_key);
    let mut found = BTreeSet::from([job]);
    // Whether the walk came to a job from above.
    let mut open = VecDeque::from([(job, true), (job, false)]);
    while let Some((key, downwards)) = open.pop_front() {
        let next: Vec<&JobKey> = if downwards {
            children.get(key).into_iter().flatten().copied().collect()
        } else {
            parents_of(key).collect()
        };
        for next in next {
            if found.len() < limit && found.insert(next) {
                open.push_back((next, downwards));
                if downwards {
                    let beside = parents_of(next).filter(|beside| !found.contains(beside)).collect::<Vec<_>>();
                    let room = limit - found.len();
                    found.extend(beside.into_iter().take(room));
                }
            }
        }
    }
    let mut left = found.clone();
    let mut sorted = Vec::new();
    while !left.is_empty() {
        let is_free = |key: &&&JobKey| !parents_of(key).any(|parent| left.contains(parent));
        // Chains have no circles, so there always is one.
        let Some(next) = left.iter().find(is_free).or_else(|| left.first()).copied() else { break };
        left.remove(next);
        let own = parents.get(next).into_iter().flatten().filter(|after| found.contains(&after.job_key));
        let mut parents: Vec<After> = own.map(|after| (*after).clone()).collect();
        parents.sort_by(|a, b| a.job_key.cmp(&b.job_key));
        sorted.push(ChainJob { job_key: next.clone(), parents });
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::after::ChainOn;

    fn links(pairs: &[(&str, &str)]) -> Vec<ChainLink> {
        let key = |text: &str| JobKey::new(text).unwrap();
        let after = |job: &str| After { job_key: key(job), on: ChainOn::Success, manual: false };
        pairs.iter().map(|(job, parent)| ChainLink { job_key: key(job), after: after(parent) }).collect()
    }

    fn drawn(job: &str, links: &[ChainLink], limit: usize) -> Vec<String> {
        let of = |one: &ChainJob| {
            let parents: Vec<&str> = one.parents.iter().map(|after| after.job_key.as_str()).collect();
            format!("{}<{}", one.job_key, parents.join(","))
        };
        related(&JobKey::new(job).unwrap(), links, limit).iter().map(of).collect()
    }

    #[test]
    fn a_job_comes_after_all_that_it_starts_after() {
        // a forks to b and c, which meet in d; e also starts after c, and x has nothing to do with b.
        let all = links(&[("b", "a"), ("c", "a"), ("d", "b"), ("d", "c"), ("e", "c"), ("x", "y")]);
        assert_eq!(drawn("b", &all, 10), ["a<", "b<a", "c<a", "d<b,c"], "with c, which d waits for, and without e");
        assert_eq!(drawn("a", &all, 10), ["a<", "b<a", "c<a", "d<b,c", "e<c"]);
        assert_eq!(drawn("d", &all, 10), ["a<", "b<a", "c<a", "d<b,c"]);
        assert_eq!(drawn("z", &all, 10), Vec::<String>::new());
        assert_eq!(drawn("a", &all, 3), ["a<", "b<a", "c<a"], "the nearest ones");
    }
}
