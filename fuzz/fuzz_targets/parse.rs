//! Any bytes as a cron expression.
#![no_main]

#[path = "../../crates/core/tests/it/fuzz_check.rs"]
mod fuzz_check;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fuzz_check::check(bytes);
});
