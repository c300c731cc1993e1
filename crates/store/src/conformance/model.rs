//! Random operations, on the store and on the model in memory: after each, both must have given the same answer.
//!
//! A sequence is made by a seed. What it does next depends on what the model answered, so it mostly asks sensible things,
//! and now and then foolish ones. On failure the seed and everything that was done is printed.

mod apply;
mod generate;
mod look;
mod operation;

use std::sync::Arc;

use everbell_core::store::Store;
use jiff::{SignedDuration, Timestamp};

use super::Fresh;
use super::dice::{Dice, rounds};
use super::given::at;
use crate::memory::MemoryStore;

use generate::{Flavor, Generator};
use operation::Operation;

/// Operations of one sequence.
const STEPS: usize = 60;

/// Sequences of one case, as usual.
const SEQUENCES: u64 = 12;

pub async fn random_sequences_of_planning_and_running(fresh: Fresh) {
    compare(&fresh, Flavor::Running, 1_000).await;
}

pub async fn more_random_sequences_of_planning_and_running(fresh: Fresh) {
    compare(&fresh, Flavor::Running, 1_500).await;
}

pub async fn random_sequences_of_what_operators_do(fresh: Fresh) {
    compare(&fresh, Flavor::Operating, 2_000).await;
}

pub async fn more_random_sequences_of_what_operators_do(fresh: Fresh) {
    compare(&fresh, Flavor::Operating, 2_500).await;
}

pub async fn random_sequences_of_failures_and_lost_leases(fresh: Fresh) {
    compare(&fresh, Flavor::Failing, 3_000).await;
}

pub async fn more_random_sequences_of_failures_and_lost_leases(fresh: Fresh) {
    compare(&fresh, Flavor::Failing, 3_500).await;
}

pub async fn random_sequences_of_everything(fresh: Fresh) {
    compare(&fresh, Flavor::Everything, 4_000).await;
}

pub async fn more_random_sequences_of_everything(fresh: Fresh) {
    compare(&fresh, Flavor::Everything, 4_500).await;
}

/// Many sequences, one after the other on the same store: each uses its own keys, and cleans up at its end.
async fn compare(fresh: &Fresh, flavor: Flavor, seed: u64) {
    let pair = Pair { store: fresh.store(), model: Arc::new(MemoryStore::new()) };
    let mut now = at("00:00");
    for number in 0..rounds(SEQUENCES) {
        now = pair.sequence(flavor, seed + number, now).await;
    }
}

struct Pair {
    store: Arc<dyn Store>,
    model: Arc<MemoryStore>,
}

impl Pair {
    /// One sequence, beginning at this time. Gives a time behind everything that it did.
    async fn sequence(&self, flavor: Flavor, seed: u64, from: Timestamp) -> Timestamp {
        let mut generator = Generator::new(flavor, seed, from);
        let mut done = Vec::new();
        for _ in 0..STEPS {
            let operation = generator.next();
            let answer = self.both(&operation, seed, &mut done).await;
            generator.learn(&operation, answer);
        }
        for operation in generator.look_around() {
            self.both(&operation, seed, &mut done).await;
        }
        for round in 0.. {
            let operations = generator.clear();
            if operations.is_empty() {
                break;
            }
            assert!(round < 100, "seed {seed}: pruning does not end");
            for operation in operations {
                let answer = self.both(&operation, seed, &mut done).await;
                generator.learn(&operation, answer);
            }
        }
        let mut dice = Dice::new(seed);
        generator.now().checked_add(SignedDuration::from_secs(dice.below(90_000) as i64)).unwrap()
    }

    async fn both(&self, operation: &Operation, seed: u64, done: &mut Vec<String>) -> apply::Observation {
        done.push(format!("{operation:?}"));
        let expected = operation.apply(&*self.model).await;
        let answer = operation.apply(&*self.store).await;
        assert!(
            answer.text == expected.text,
            "seed {seed}, {} operations:\n  {}\n{}",
            done.len(),
            done.join("\n  "),
            difference(&expected.text, &answer.text),
        );
        expected
    }
}

/// Returns the first difference of two answers, with its context: whole answers are too long to compare by eye.
fn difference(expected: &str, answer: &str) -> String {
    let (expected, answer): (Vec<char>, Vec<char>) = (expected.chars().collect(), answer.chars().collect());
    let same = expected.iter().zip(&answer).take_while(|(a, b)| a == b).count();
    let around = |text: &[char]| -> String { text.iter().skip(same.saturating_sub(300)).take(600).collect() };
    format!(
        "from character {same} on the model answered\n  …{}\nand the store\n  …{}",
        around(&expected),
        around(&answer)
    )
}
