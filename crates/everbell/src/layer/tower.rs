//! Layers of tower around handlers.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use everbell_core::Json;
use everbell_core::settle::Outcome;
use tower_layer::Layer as TowerLayer;
use tower_service::Service;

use super::Layer;
use crate::clock::BoxFuture;
use crate::error::RunError;
use crate::run::Run;
use crate::targets::Action;

/// A handler as a service of tower: it takes a [`Run`] and returns the result of the run.
///
/// One meets it when writing a layer for [`Builder::layer`](crate::Builder::layer); the layers of tower know what to do with it.
#[derive(Clone)]
pub struct HandlerService {
    action: Action,
}

impl fmt::Debug for HandlerService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerService").finish_non_exhaustive()
    }
}

/// The result of a run that succeeded: what its handler returned, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunResult(Option<Json>);

impl RunResult {
    /// Returns the JSON; `None` if the handler returned nothing.
    pub fn json(&self) -> Option<&Json> {
        self.0.as_ref()
    }
}

/// The failure of a handler, for layers: passing it on as it is, boxed or not, does not change how the run ends.
///
/// A layer that fails a run by itself returns any error of its own: the run is then retried as the job says. A
/// [`RunError`] can be turned into a `HandlerError` to say more.
#[derive(Debug)]
pub struct HandlerError(Outcome);

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Outcome::Failed { failure, .. } => f.write_str(&failure.message),
            _ => f.write_str("the run did not succeed"),
        }
    }
}

impl Error for HandlerError {}

impl From<RunError> for HandlerError {
    fn from(error: RunError) -> HandlerError {
        HandlerError(error.into_outcome())
    }
}

impl Service<Run> for HandlerService {
    type Response = RunResult;
    type Error = HandlerError;
    type Future = BoxFuture<'static, Result<RunResult, HandlerError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), HandlerError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, run: Run) -> Self::Future {
        let handler = (self.action)(run);
        Box::pin(async move {
            match handler.await {
                Outcome::Succeeded { result } => Ok(RunResult(result)),
                outcome => Err(HandlerError(outcome)),
            }
        })
    }
}

/// Erases the types of a layer.
pub(crate) fn erase<L>(layer: L) -> Layer
where
    L: TowerLayer<HandlerService> + Send + 'static,
    L::Service: Service<Run, Response = RunResult, Future: Send> + Clone + Send + Sync + 'static,
    <L::Service as Service<Run>>::Error: Into<Box<dyn Error + Send + Sync>> + Send,
{
    Box::new(move |action| {
        let service = layer.layer(HandlerService { action });
        Arc::new(move |run| {
            let mut service = service.clone();
            Box::pin(async move {
                let result = match poll_fn(|context| service.poll_ready(context)).await {
                    Ok(()) => service.call(run).await,
                    Err(error) => Err(error),
                };
                match result {
                    Ok(RunResult(result)) => Outcome::Succeeded { result },
                    Err(error) => outcome(error.into()),
                }
            })
        })
    })
}

/// A failure of the handler stays as it was, unless a layer wraps it into an error of its own.
fn outcome(error: Box<dyn Error + Send + Sync>) -> Outcome {
    match error.downcast::<HandlerError>() {
        Ok(own) => own.0,
        Err(other) => RunError::new(other).into_outcome(),
    }
}
