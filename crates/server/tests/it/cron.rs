//! `everbell cron` and what holds for every command, through the real binary.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

mod batch;
mod check;
mod explain;
mod next;
pub(crate) mod usage;

use crate::binary::{Ran, command, document, everbell, everbell_with, keys, ran, refusal, stdout};

/// The expressions that no cron should take.
fn invalid_expressions() -> Vec<String> {
    let all: Vec<String> = serde_json::from_str(include_str!("../../../core/tests/data/cron_invalid.json")).unwrap();
    assert!(all.len() >= 28, "the file is whole");
    all
}
