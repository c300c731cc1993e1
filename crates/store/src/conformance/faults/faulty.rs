//! [`Faulty`]: any store, with failures at chosen calls.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use everbell_core::store::{Call, Interceptor, Store, StoreResult, Wakeup};

use crate::memory::FaultPoint;

/// The call that fails, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The number of the call that fails, from 0.
    pub at: u32,
    /// Before or after it was done.
    pub point: FaultPoint,
}

type Script = dyn Fn(u32) -> Option<FaultPoint> + Send + Sync;

/// Resolves when an answer that was kept back may be heard.
pub type KeptBack = Wakeup<'static>;

type Delays = dyn Fn(u32) -> Option<KeptBack> + Send + Sync;

/// A store whose calls fail as a script says: before they reach the store within, or after, so that only the answer is
/// lost. Calls are counted over all verbs but [`ClusterStore::woken`](everbell_core::store::ClusterStore::woken).
pub struct Faulty {
    inner: Arc<dyn Store>,
    calls: AtomicU32,
    script: Box<Script>,
    delays: Box<Delays>,
    /// The verbs whose answers may be kept back.
    delayed: &'static [&'static str],
}

impl Faulty {
    /// Fails where the script says so; it is asked with the number of the call, from 0.
    pub fn new(inner: Arc<dyn Store>, script: impl Fn(u32) -> Option<FaultPoint> + Send + Sync + 'static) -> Faulty {
        let delays = Box::new(|_| None);
        Faulty { inner, calls: AtomicU32::new(0), script: Box::new(script), delays, delayed: &["start_runs"] }
    }

    /// Delays answers to [`RunStore::start_runs`](everbell_core::store::RunStore::start_runs) on demand: the runs are
    /// leased, and the caller learns of it later.
    #[must_use]
    pub fn keeping_back(self, delays: impl Fn(u32) -> Option<KeptBack> + Send + Sync + 'static) -> Faulty {
        Faulty { delays: Box::new(delays), ..self }
    }

    /// Keeps back answers to `plan_due` as well.
    #[must_use]
    pub fn and_plans(self) -> Faulty {
        Faulty { delayed: &["start_runs", "plan_due"], ..self }
    }

    /// Fails once.
    pub fn once(inner: Arc<dyn Store>, fault: Fault) -> Faulty {
        Faulty::new(inner, move |call| (call == fault.at).then_some(fault.point))
    }

    /// How many calls there were.
    pub fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Carries out the verb, with the fault that the script asks for.
    async fn fail<T>(&self, verb: impl Future<Output = StoreResult<T>> + Send) -> StoreResult<T> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let fault = (self.script)(call);
        if let Some(error) = fault.and_then(FaultPoint::at_once) {
            return Err(error);
        }
        let answer = verb.await?;
        match fault {
            Some(point) => Err(point.error()),
            None => Ok(answer),
        }
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty").field("inner", &self.inner).field("calls", &self.calls).finish_non_exhaustive()
    }
}

impl Interceptor for Faulty {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    async fn around<T: Send>(
        &self,
        call: Call<'_, T>,
        verb: impl Future<Output = StoreResult<T>> + Send,
    ) -> StoreResult<T> {
        let answer = self.fail(verb).await;
        if self.delayed.contains(&call.verb)
            && let Some(until_then) = (self.delays)(self.calls())
        {
            until_then.await;
        }
        answer
    }
}
