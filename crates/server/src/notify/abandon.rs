//! Gives up messages for channels that no instance has any more.

use std::time::Duration;

use everbell::Everbell;
use everbell_core::store::StoreResult;
use jiff::SignedDuration;
use tracing::warn;

use super::is_elected;

/// How often they are looked for.
const INTERVAL: Duration = Duration::from_mins(1);
/// How long they wait for an instance that has their channel, such as one that restarts.
const PATIENCE_MINUTES: i64 = 10;
/// The reason that is shown with them.
const ERROR: &str = "its channel was removed: no instance has it anymore";

/// Looks for them until it is dropped. `channels` are those of this instance.
pub(super) async fn run(bell: &Everbell, channels: &[String]) -> std::convert::Infallible {
    loop {
        if let Err(error) = abandon(bell, channels).await {
            warn!(%error, "could not look for notifications of removed channels; retrying");
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// The instance that evaluates has the newest channels. If there is none, any may do it.
async fn abandon(bell: &Everbell, channels: &[String]) -> StoreResult<()> {
    let store = bell.store();
    if is_elected(bell, &store.list_instances().await?) == Some(false) {
        return Ok(());
    }
    let now = bell.now();
    let stale_since = now.checked_sub(SignedDuration::from_mins(PATIENCE_MINUTES)).unwrap_or(now);
    let given_up = store.abandon_deliveries(channels, stale_since, ERROR, now).await?;
    if given_up > 0 {
        warn!(given_up, "gave up on notifications for channels that no instance has anymore");
    }
    Ok(())
}
