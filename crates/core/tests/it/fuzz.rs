//! The fuzz target's check on a bounded number of inputs, so that it runs with every test.

use proptest::prelude::*;

use crate::fuzz_check::check;
use crate::random::Random;

/// Pieces that expressions are made of, and some that they are not.
const PIECES: [&str; 40] = [
    " ",
    "\t",
    ",",
    "-",
    "/",
    "*",
    "?",
    "#",
    "L",
    "W",
    "LW",
    "@",
    "@every ",
    "@daily",
    "0",
    "1",
    "7",
    "59",
    "60",
    "31",
    "-1",
    "00",
    "*/",
    "1-",
    "mon",
    "FRI-mon",
    "jan",
    "sunL",
    "5#5",
    "1W",
    "H",
    "~",
    "\u{0}",
    "\u{b9}",
    "é",
    "\u{2028}",
    "\n",
    "999999999999",
    "1h30m",
    ",,",
];

macro_rules! mutated_vectors {
    ($($name:ident: $seed:literal),+ $(,)?) => {$(
        #[test]
        fn $name() {
            check_mutated_vectors($seed);
        }
    )+};
}

// Several tests, so that they run side by side.
mutated_vectors! {
    mutated_vectors_1: 0xf022_0001,
    mutated_vectors_2: 0xf022_0002,
    mutated_vectors_3: 0xf022_0003,
    mutated_vectors_4: 0xf022_0004,
}

fn check_mutated_vectors(seed: u64) {
    const INPUTS: u32 = 12_500;
    let seeds = seeds();
    let mut random = Random::new(seed);
    let mut valid = 0;
    for _ in 0..INPUTS {
        let mut bytes = random.pick(&seeds).as_bytes().to_vec();
        for _ in 0..=random.below(2) {
            mutate(&mut bytes, &mut random, &seeds);
        }
        valid += u32::from(check(&bytes));
    }
    let some = INPUTS / 10..INPUTS * 9 / 10;
    assert!(some.contains(&valid), "{valid} of {INPUTS} inputs are expressions: both kinds are needed");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in "\\PC{0,80}") {
        check(text.as_bytes());
    }

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        check(&bytes);
    }

    #[test]
    fn text_of_the_right_letters(text in "[-0-9*/,?#LWlw@a-z]{1,6}( [-0-9*/,?#LW]{1,4}){4,5}") {
        check(text.as_bytes());
    }
}

fn seeds() -> Vec<&'static str> {
    let next = include_str!("../data/cron_next.jsonl").lines();
    let next = next.filter_map(|line| line.split("\"expr\": \"").nth(1)?.split('"').next());
    let invalid = include_str!("../data/cron_invalid.json").split('"').skip(1).step_by(2);
    let seeds: Vec<&str> = next.chain(invalid).chain(["@every 90s", "@every 1d12h", "@yearly"]).collect();
    assert!(seeds.len() > 250, "the files are whole");
    seeds
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random, seeds: &[&'static str]) {
    let at = random.below(bytes.len() as u32 + 1) as usize;
    match random.below(12) {
        0 => bytes.insert(at, random.next() as u8),
        1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        2 if at < bytes.len() => drop(bytes.remove(at)),
        3 if at < bytes.len() => bytes[at] = random.pick(b"0123456789*/,-?#LW "),
        4 => bytes.truncate(at),
        // The head of one and the tail of another.
        5 => {
            let other = random.pick(seeds).as_bytes();
            bytes.truncate(at);
            bytes.extend_from_slice(&other[at.min(other.len())..]);
        }
        6 => {
            let piece = bytes[at..].to_vec();
            bytes.extend_from_slice(&piece);
        }
        7 => drop(bytes.splice(at..at, random.pick(&PIECES).bytes())),
        // A field of one in the place of a field of another: this is what mostly stays valid.
        _ => {
            let other: Vec<&[u8]> = random.pick(seeds).as_bytes().split(|b| *b == b' ').collect();
            let mut words: Vec<&[u8]> = bytes.split(|b| *b == b' ').collect();
            let index = random.below(words.len() as u32) as usize;
            words[index] = other[index.min(other.len() - 1)];
            *bytes = words.join(&b' ');
        }
    }
}
