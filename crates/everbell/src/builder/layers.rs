//! [`Builder::layer`]: layers of tower around every handler.

use std::error::Error;

use tower_layer::Layer as TowerLayer;
use tower_service::Service;

use super::Builder;
use crate::layer::{HandlerService, RunResult, erase};
use crate::run::Run;

impl Builder {
    /// Puts a layer of tower around every handler of this program, with the feature `tower`. The layer that is added last is
    /// the outermost one.
    ///
    /// A layer sees a [`Run`] as the request, and works within the span and the timeout of the run. Layers
    /// of tower such as `TimeoutLayer` and `ConcurrencyLimitLayer` work as they are; the latter counts the runs of each
    /// target for itself, `GlobalConcurrencyLimitLayer` those of all targets. An error of a layer fails the attempt,
    /// which is retried as the job says. The layers of tower-http (`TraceLayer`, its `TimeoutLayer`, `RequestIdLayer` and all
    /// others) do not fit: they take HTTP requests. [`guides::observing`](crate::guides::observing) has a tracing layer for runs.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower::timeout::TimeoutLayer;
    ///
    /// everbell::Everbell::builder()
    ///     .target("greet", async || {})
    ///     .layer(TimeoutLayer::new(Duration::from_secs(30)));
    /// ```
    pub fn layer<L>(mut self, layer: L) -> Builder
    where
        L: TowerLayer<HandlerService> + Send + 'static,
        L::Service: Service<Run, Response = RunResult, Future: Send> + Clone + Send + Sync + 'static,
        <L::Service as Service<Run>>::Error: Into<Box<dyn Error + Send + Sync>> + Send,
    {
        self.layers.add(erase(layer));
        self
    }
}
