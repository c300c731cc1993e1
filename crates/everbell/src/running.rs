//! [`Running`]: an instance in the background.

use std::fmt;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::bell::Everbell;
use crate::engine::EngineFailed;

/// An instance that runs in the background, until [`Running::shutdown`].
///
/// Dropping it asks for the same shutdown without waiting for it: the instance takes no more work, lets handlers finish
/// for a while, and records everything, as long as the Tokio runtime lives. A program that ends at once should call
/// [`Running::shutdown`] instead: a runtime that is dropped meanwhile ends the handlers, whose runs are then lost.
#[must_use = "dropping it shuts the instance down"]
pub struct Running {
    /// Dropping it asks the instance to stop.
    stop: Option<oneshot::Sender<()>>,
    /// `None` after its end was seen.
    task: Option<JoinHandle<Result<(), EngineFailed>>>,
}

impl Everbell {
    /// Fires schedules and runs handlers in the background, as [`Everbell::run_until`] does, until the returned handle is
    /// shut down or dropped. Each call starts a separate instance. Must be called within a Tokio runtime.
    ///
    /// ```
    /// # use everbell::Everbell;
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bell = Everbell::builder().database("sqlite::memory:").build().await?;
    /// let running = bell.start();
    /// // The rest of the program, until it is time to stop.
    /// running.shutdown().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn start(&self) -> Running {
        let (stop, stopped) = oneshot::channel();
        let bell = self.clone();
        let task = tokio::spawn(async move {
            let shutdown = async {
                // An error means that the handle was dropped, which asks for the same.
                let _asked: Result<(), _> = stopped.await;
            };
            bell.run_until(shutdown).await
        });
        Running { stop: Some(stop), task: Some(task) }
    }
}

impl Running {
    /// Takes no more work, lets handlers finish for a while, stops the others, and returns when everything is recorded.
    pub async fn shutdown(mut self) -> Result<(), EngineFailed> {
        drop(self.stop.take());
        self.ended().await
    }

    /// Resolves when the instance ends by itself, which is a defect: the process should be restarted.
    ///
    /// For programs that watch it beside other things: `tokio::select! { ended = running.ended() => …, … }`.
    pub async fn ended(&mut self) -> Result<(), EngineFailed> {
        let Some(task) = &mut self.task else { return Ok(()) };
        let ended = task.await;
        self.task = None;
        match ended.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(answer) => answer,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            Err(Err(_)) => Err(EngineFailed::new("the runtime ended")),
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("has_ended", &self.task.is_none()).finish_non_exhaustive()
    }
}
