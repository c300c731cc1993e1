//! [`check_chain`]: which jobs may start after which.

use std::collections::{BTreeMap, BTreeSet};

use crate::after::After;
use crate::ids::{Invalid, JobKey};
use crate::job::Scope;

/// A current job that starts after another one. A job that starts after several has a link for each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainLink {
    /// Its key.
    pub job_key: JobKey,
    /// The rule by which it starts.
    pub after: After,
}

/// The most jobs of a circle that a refusal names.
const MAX_NAMED_JOBS: usize = 8;

/// Refuses a job that would start after a job that does not exist, after itself, or in a circle.
///
/// `parents`: the jobs that it would start after. `current` returns the scope of the current job of a key, if there is one. `links`: all current jobs that start after
/// others; an earlier version of this job among them does not count.
pub fn check_chain(
    job: &JobKey,
    parents: &[After],
    current: impl Fn(&JobKey) -> Option<Scope>,
    links: &[ChainLink],
) -> Result<(), Invalid> {
    let is_fan_in = parents.len() > 1;
    let field = if is_fan_in { "after" } else { "after.job" };
    let mut before: BTreeMap<&JobKey, Vec<&JobKey>> = BTreeMap::new();
    for link in links.iter().filter(|link| link.job_key != *job) {
        before.entry(&link.job_key).or_default().push(&link.after.job_key);
    }
    for parent in parents.iter().map(|after| &after.job_key) {
        if parent == job {
            return Err(After::to_itself(job));
        }
        match current(parent) {
            None => {
                let reason = format!("there is no current job `{parent}`: create it first, or name one that exists");
                return Err(Invalid::new(field, reason));
            }
            Some(Scope::PerOrg) if is_fan_in => {
                let reason = format!(
                    "`{parent}` fires for each org, so it has no single run to wait for: name a job with the scope \
                     `global`, or start after `{parent}` alone"
                );
                return Err(Invalid::new(field, reason));
            }
            Some(_) => {}
        }
        if let Some(circle) = path_to(job, parent, &before) {
            return Err(Invalid::new(field, format!("would create a cycle: {}", describe_circle(job, &circle))));
        }
    }
    Ok(())
}

/// The jobs from `from` to `job` along the arrows, both included.
fn path_to<'a>(
    job: &JobKey,
    from: &'a JobKey,
    next: &BTreeMap<&'a JobKey, Vec<&'a JobKey>>,
) -> Option<Vec<&'a JobKey>> {
    let mut came_from: BTreeMap<&JobKey, &'a JobKey> = BTreeMap::new();
    let mut seen = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        for parent in next.get(at).into_iter().flatten().copied() {
            if !seen.insert(parent) {
                continue;
            }
            came_from.insert(parent, at);
            if parent == job {
                let mut path = vec![parent];
                while let Some(before) = path.last().and_then(|last| came_from.get(*last)) {
                    path.push(before);
                }
                path.reverse();
                return Some(path);
            }
            open.push(parent);
        }
    }
    None
}

/// Names the jobs of a circle, the first ones if there are many.
fn describe_circle(job: &JobKey, path: &[&JobKey]) -> String {
    let all = std::iter::once(job).chain(path.iter().copied());
    let named: Vec<String> = all.take(MAX_NAMED_JOBS).map(|key| format!("`{key}`")).collect();
    let rest = path.len() + 1 - named.len();
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    format!("{}{more}", named.join(" starts after "))
}
