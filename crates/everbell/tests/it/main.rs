//! One binary for all integration tests of the library.
#![allow(clippy::unwrap_used, reason = "what cannot be unwrapped fails the test")]

mod chaos;
mod clocks;
mod test_bell;
