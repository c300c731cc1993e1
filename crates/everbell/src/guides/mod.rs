//! Guides: one subject each, with code that runs.
//!
//! - [`crashes`]: what happens after a crash.
//! - [`shutdown`]: shutdown and deploys.

pub mod crashes {
    #![doc = include_str!("crashes.md")]
}

pub mod shutdown {
    #![doc = include_str!("shutdown.md")]
}
