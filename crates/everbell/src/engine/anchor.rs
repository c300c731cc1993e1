//! The anchor: asks the database what time it is.

use std::sync::Arc;
use std::time::Duration;

use everbell_core::store::StoreResult;
use tokio::sync::Notify;

use super::{Shared, Step, Wait};

const EVERY: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Anchor {
    shared: Arc<Shared>,
}

impl Anchor {
    pub(super) fn new(shared: &Arc<Shared>) -> Anchor {
        Anchor { shared: Arc::clone(shared) }
    }
}

impl Step for Anchor {
    const NAME: &'static str = "anchor";

    async fn step(&mut self) -> StoreResult<Wait> {
        self.shared.clock.anchor(&*self.shared.store).await?;
        Ok(Wait::For(EVERY))
    }

    fn signal(_: &Shared) -> Option<&Notify> {
        None
    }
}
