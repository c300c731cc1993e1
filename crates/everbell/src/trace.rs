//! [`Tracing`]: the way between traces of the program and runs of everbell.

use std::fmt;
use std::sync::Arc;

use everbell_core::TraceContext;
use tracing::Span;

/// Connects everbell to the tracing library of the program, such as OpenTelemetry: see
/// [`Builder::tracing`](crate::Builder::tracing) and the guide [`observing`](crate::guides::observing), which has a
/// whole implementation.
///
/// Both methods are called on the paths of requests and runs, so they must be quick and must not block or panic.
pub trait Tracing: Send + Sync + 'static {
    /// Returns the trace of the code that is calling everbell at this moment, if there is one. It is asked whenever a
    /// run or a one-time job is created without an explicit trace context.
    fn current(&self) -> Option<TraceContext>;

    /// Makes the span of a run a child of the span that asked for it. It is called once for each attempt of a run that
    /// has a trace context, before its handler begins.
    fn set_parent(&self, span: &Span, parent: &TraceContext);
}

/// The hook of a program, if it has one.
#[derive(Clone, Default)]
pub(crate) struct TracingHook(Option<Arc<dyn Tracing>>);

impl TracingHook {
    pub(crate) fn new(tracing: impl Tracing) -> TracingHook {
        TracingHook(Some(Arc::new(tracing)))
    }

    pub(crate) fn current(&self) -> Option<TraceContext> {
        self.0.as_ref()?.current()
    }

    pub(crate) fn set_parent(&self, span: &Span, parent: &TraceContext) {
        if let Some(tracing) = &self.0 {
            tracing.set_parent(span, parent);
        }
    }
}

impl fmt::Debug for TracingHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TracingHook").field(&self.0.is_some()).finish()
    }
}

/// The trace that new runs and one-time jobs continue.
#[derive(Clone, Debug, Default)]
pub(crate) enum CreatorTrace {
    /// The one that the hook of the program finds.
    #[default]
    Current,
    /// This one, or none.
    Given(Option<TraceContext>),
}
