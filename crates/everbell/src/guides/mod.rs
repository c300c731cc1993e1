//! Guides: one subject each, with code that runs.
//!
//! - [`errors`]: errors and retries.
//! - [`testing`]: testing time.

pub mod errors {
    #![doc = include_str!("errors.md")]
}

pub mod testing {
    #![doc = include_str!("testing.md")]
}
