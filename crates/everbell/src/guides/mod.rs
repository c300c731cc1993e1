//! Guides: one subject each, with code that runs.
//!
//! - [`choosing`]: choosing everbell or not.
//! - [`crashes`]: what happens after a crash.
//! - [`errors`]: errors and retries.
//! - [`instances`]: many programs and instances on one database, and rolling deploys.
//! - [`observing`]: tracing and metrics.
//! - [`queue`]: a queue as well as a clock.
//! - [`shutdown`]: shutdown and deploys.
//! - [`testing`]: testing time.
//! - [`transactions`]: jobs and runs in your own transactions.

pub mod choosing {
    #![doc = include_str!("choosing.md")]
}

pub mod crashes {
    #![doc = include_str!("crashes.md")]
}

pub mod errors {
    #![doc = include_str!("errors.md")]
}

pub mod instances {
    #![doc = include_str!("instances.md")]
}

pub mod observing {
    #![doc = include_str!("observing.md")]
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

pub mod transactions {
    #![doc = include_str!("transactions.md")]
}
