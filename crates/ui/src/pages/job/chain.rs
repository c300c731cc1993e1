//! The jobs before and after a job: those whose runs start it, and those that its runs start.

use everbell_core::after::After;
use everbell_core::chain::ChainLink;
use everbell_http::problem::Problem;

use crate::UiRequest;
use crate::markup::url_part;
use crate::pages::action::Subject;

/// The most jobs before a job that are shown.
const MAX_BEFORE: usize = 20;

/// The neighbors of a job in its chain.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// The first one of the chain first, the one before the job last.
    pub(super) before: Vec<Step>,
    /// Whether the job starts after the last of them.
    pub(super) rule: Option<String>,
    pub(super) after: Vec<Step>,
}

/// A job of a chain.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) key: String,
    /// As a part of an address.
    pub(super) part: String,
    /// When it starts, if it is not the first one.
    pub(super) rule: Option<String>,
}

impl Step {
    fn new(key: &str, rule: Option<&After>) -> Step {
        Step { key: key.to_owned(), part: url_part(key), rule: rule.map(After::describe) }
    }
}

impl Chain {
    pub(super) async fn load(request: &UiRequest, subject: &Subject) -> Result<Chain, Problem> {
        Ok(Chain::new(subject.definition(), &request.jobs().chain_links().await?))
    }

    fn new(job: &everbell_core::Definition, links: &[ChainLink]) -> Chain {
        let own = job.spec.as_ref().ok().and_then(|spec| spec.after());
        let mut before = Vec::new();
        let mut next = own.map(|after| &after.job_key);
        while let Some(key) = next.filter(|_| before.len() < MAX_BEFORE) {
            let link = links.iter().find(|link| link.job_key == *key);
            before.push(Step::new(key.as_str(), link.map(|link| &link.after)));
            next = link.map(|link| &link.after.job_key);
        }
        before.reverse();
        let follows = links.iter().filter(|link| link.after.job_key == job.key);
        let after = follows.map(|link| Step::new(link.job_key.as_str(), Some(&link.after))).collect();
        Chain { before, rule: own.map(After::describe), after }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }
}
