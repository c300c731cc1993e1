//! The runs whose ends started a run: its handler is given them.

use std::time::Duration;

use everbell_core::store::{Claim, StoreError};
use everbell_core::{Failure, FailureCode, Run, RunId};

use super::Shared;

/// How often the run before is asked for, and the wait between.
const MAX_ATTEMPTS: u32 = 5;
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Reads the runs before. One that was deleted meanwhile is left out. The error is a failure of the attempt, because a
/// handler must not take an unknown result for none.
pub(super) async fn read(shared: &Shared, claim: &Claim) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    for before in claim.run.trigger.upstream() {
        runs.extend(read_one(shared, *before).await?);
    }
    Ok(runs)
}

async fn read_one(shared: &Shared, before: RunId) -> Result<Option<Run>, Failure> {
    let mut attempt = 1;
    loop {
        match shared.store.get_run(before).await {
            Ok(run) => return Ok(Some(run)),
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(StoreError::Unavailable { .. }) if attempt < MAX_ATTEMPTS => attempt += 1,
            Err(error) => {
                let message = format!("cannot read run {before}, which started this one: {error}");
                return Err(Failure::new(FailureCode::HANDLER_ERROR, &message));
            }
        }
        shared.clock.sleep(RETRY_DELAY).await;
    }
}
