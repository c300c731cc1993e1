//! Requests that may be sent again: what was done before is read back, not done again.
//!
//! The audit entry of each action carries the key of its request, and the store writes down in the same transaction that it
//! was carried out. So a program that dies between the deed and its answer leaves enough behind to answer again.

use everbell_core::RunId;
use everbell_core::store::{Changed, Deed, JobRef, Remembered, RequestKey, StoreError, StoreResult};

use super::{Context, Jobs, Orgs, Runs};

impl Jobs {
    /// Carries out this request once: if it was carried out before, its result is read back. Each request needs its own
    /// key.
    #[must_use]
    pub fn once(self, request: Option<&RequestKey>) -> Jobs {
        Jobs { context: self.context.once(request) }
    }

    /// Whether the request was carried out before, but its answer is not known.
    pub async fn was_done(&self) -> StoreResult<bool> {
        Ok(self.context.done_before().await?.is_some())
    }
}

impl Runs {
    /// Carries out this request once: if it was carried out before, its result is read back. Each request needs its own
    /// key.
    #[must_use]
    pub fn once(self, request: Option<&RequestKey>) -> Runs {
        Runs { context: self.context.once(request) }
    }

    /// Returns the run that the request inserted before, if it was carried out.
    pub async fn inserted_before(&self) -> StoreResult<Option<RunId>> {
        self.context.run_before().await
    }
}

impl Orgs {
    /// Carries out this request once: if it was carried out before, its result is read back. Each request needs its own
    /// key.
    #[must_use]
    pub fn once(self, request: Option<&RequestKey>) -> Orgs {
        Orgs { context: self.context.once(request) }
    }
}

impl Context {
    fn once(self, request: Option<&RequestKey>) -> Context {
        Context { request: request.cloned(), ..self }
    }

    /// Returns the context for one part of a request that needs several transactions.
    pub(super) fn part(&self, name: &str) -> Context {
        Context { request: self.request.as_ref().map(|request| request.part(name)), ..self.clone() }
    }

    /// Returns the context for steps that are harmless when repeated.
    pub(super) fn repeatable(&self) -> Context {
        Context { request: None, ..self.clone() }
    }

    /// Returns the effects of this request, if it was carried out before.
    pub(super) async fn done_before(&self) -> StoreResult<Option<Deed>> {
        let Some(request) = &self.request else { return Ok(None) };
        let what = match self.parts.store.find_request(request, self.now()).await? {
            Remembered::New => return Ok(None),
            Remembered::Done(deed) => return Ok(Some(deed)),
            Remembered::Different => "this key was used for another request",
            Remembered::Answered(..) => "this request was already answered",
            Remembered::InDoubt => "it is unknown whether this request was carried out",
        };
        Err(StoreError::Conflict { what: what.to_owned() })
    }

    /// Returns the result of a change that this request made before.
    pub(super) async fn changed_before(&self) -> StoreResult<Option<Changed>> {
        let Some(deed) = self.done_before().await? else { return Ok(None) };
        let store = &self.parts.store;
        let id = deed.job.ok_or_else(|| StoreError::not_found("job", deed.entry))?;
        let successor = match deed.successor {
            Some(id) => Some(store.get_job(&JobRef::Id(id)).await?),
            None => None,
        };
        let mut runs = Vec::with_capacity(deed.runs.len());
        for run in deed.runs {
            runs.push(store.get_run(run).await?);
        }
        let job = store.get_job(&JobRef::Id(id)).await?;
        Ok(Some(Changed::new(job).with(successor, runs, deed.gaps, deed.pending)))
    }

    /// Returns the run that was inserted or canceled before.
    pub(super) async fn run_before(&self) -> StoreResult<Option<RunId>> {
        Ok(self.done_before().await?.and_then(|deed| deed.runs.first().copied()))
    }
}
