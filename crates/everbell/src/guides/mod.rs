//! Guides: one subject each, with code that runs.
//!
//! - [`crashes`]: what happens after a crash.
//! - [`errors`]: errors and retries.
//! - [`queue`]: a queue as well as a clock.
//! - [`shutdown`]: shutdown and deploys.
//! - [`testing`]: testing time.

pub mod crashes {
    #![doc = include_str!("crashes.md")]
}

pub mod errors {
    #![doc = include_str!("errors.md")]
}

pub mod queue {
    #![doc = include_str!("queue.md")]
}

pub mod shutdown {
    #![doc = include_str!("shutdown.md")]
}

pub mod testing {
    #![doc = include_str!("testing.md")]
}
