//! Test vectors from public suites of other cron implementations: `tests/data/`.

use everbell_core::cron::Expression;
use everbell_core::{Spec, Zone};
use jiff::Timestamp;
use serde::Deserialize;

#[derive(Deserialize)]
struct Vector {
    id: String,
    expr: String,
    tz: String,
    start: Timestamp,
    expect: Vec<Timestamp>,
}

#[test]
fn next_times_are_those_of_the_vectors() {
    let lines = include_str!("../data/cron_next.jsonl").lines();
    let vectors: Vec<Vector> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(vectors.len() > 250, "the file is whole");
    for Vector { id, expr, tz, start, expect } in &vectors {
        let parsed = Expression::parse(expr);
        if expect.is_empty() {
            assert_eq!(parsed.unwrap_err().code(), "never_fires", "{id} `{expr}`");
            continue;
        }
        let spec = Spec::recurring(parsed.unwrap(), Zone::get(tz).unwrap(), *start);
        let found: Vec<Timestamp> = spec.slots_after(*start).take(expect.len()).collect();
        assert_eq!(&found, expect, "{id} `{expr}` in {tz} after {start}");
    }
}

#[test]
fn invalid_expressions_are_refused_with_their_place() {
    let invalid: Vec<String> = serde_json::from_str(include_str!("../data/cron_invalid.json")).unwrap();
    assert!(invalid.len() >= 28, "the file is whole");
    for text in &invalid {
        let error = Expression::parse(text).expect_err(text);
        assert_eq!(&error.expression, text);
        assert!(text.get(error.span.clone()).is_some(), "`{text}`: the span {:?} is not inside", error.span);
        assert!(!error.to_string().is_empty() && !error.allowed().is_empty());
    }
}
