//! Guides: one subject each, with code that runs.
//!
//! - [`crashes`]: what happens after a crash.
//! - [`errors`]: errors and retries.
//! - [`shutdown`]: shutdown and deploys.
//! - [`testing`]: testing time.
//! - [`transactions`]: jobs and runs in your own transactions.

pub mod crashes {
    #![doc = include_str!("crashes.md")]
}

pub mod errors {
    #![doc = include_str!("errors.md")]
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
