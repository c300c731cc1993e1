//! Some cases of the conformance suite, for stores that differ from a tested one only in how statements reach the database.

use everbell_store::conformance::{Case, cases};

/// Whole histories and races, which take long and have little to say about single statements.
const LONG: [&str; 4] = ["model", "org_model", "faults", "concurrency"];

/// One case of each family, another one for each number.
pub(super) fn sample(number: usize) -> Vec<Case> {
    let mut families: Vec<Vec<Case>> = Vec::new();
    for case in cases().into_iter().filter(|case| !LONG.contains(&case.family)) {
        match families.last_mut() {
            Some(family) if family[0].family == case.family => family.push(case),
            _ => families.push(vec![case]),
        }
    }
    families.into_iter().map(|mut family| family.swap_remove(number % family.len())).collect()
}

/// All cases of this family.
pub(super) fn family(name: &str) -> Vec<Case> {
    let family: Vec<Case> = cases().into_iter().filter(|case| case.family == name).collect();
    assert!(!family.is_empty(), "there is no family {name}");
    family
}

#[test]
fn a_sample_has_a_case_of_each_family_and_the_next_one_has_others() {
    let (first, second) = (sample(0), sample(1));
    assert!(first.len() > 30, "{}", first.len());
    for (one, other) in first.iter().zip(&second) {
        assert_eq!(one.family, other.family);
        assert_ne!(one.name, other.name);
    }
}
