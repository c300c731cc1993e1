//! A process that takes no work, such as a server that only answers requests, and is still listed as an instance.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::warn;

use super::Engine;
use super::drive::drive;

impl Engine {
    /// Writes heartbeats and follows the clock of the database until `shutdown` resolves, and does nothing else.
    pub(crate) async fn announce_until(self, shutdown: impl Future<Output = ()>) {
        let Engine { heartbeat, anchor, shared, guard, .. } = self;
        guard.disarm();
        let (stop, stopped) = watch::channel(false);
        let mut loops = JoinSet::new();
        loops.spawn(drive(heartbeat, Arc::clone(&shared), stopped.clone()));
        loops.spawn(drive(anchor, Arc::clone(&shared), stopped));
        shutdown.await;
        stop.send_replace(true);
        while loops.join_next().await.is_some() {}
        if let Err(error) = shared.store.leave(shared.instance, shared.now(), shared.now()).await {
            warn!(%error, "could not remove this instance from the list of instances; it will be removed later");
        }
    }
}
