//! The run whose end started a run: its handler is given it.

use std::time::Duration;

use everbell_core::store::{Claim, StoreError};
use everbell_core::{Failure, FailureCode, Run, Trigger};

use super::Shared;

/// How often the run before is asked for, and the wait between.
const MAX_ATTEMPTS: u32 = 5;
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Reads the run before. `None` if there was none, or if it was deleted meanwhile. The error is a failure of the attempt,
/// because a handler must not take an unknown result for none.
pub(super) async fn read(shared: &Shared, claim: &Claim) -> Result<Option<Run>, Failure> {
    let Trigger::After(before) = claim.run.trigger else { return Ok(None) };
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
