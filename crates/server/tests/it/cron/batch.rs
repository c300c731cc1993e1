//! `everbell cron next --batch`.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{everbell_with, refusal};

/// The answers, one per line.
#[track_caller]
fn answers(input: &str) -> Vec<String> {
    let ran = everbell_with(&["cron", "next", "--batch"], input);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    ran.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn every_line_is_answered_in_order() {
    let input = r#"
{"expr":"30 2 * * *","tz":"America/New_York","start":"2027-03-13T12:00:00Z","count":2}
{"expr":"61 2 * * *","start":"2027-03-13T00:00:00Z"}

{"expr":"@daily","start":"2027-03-13T00:00:00+02:00"}
"#;
    assert_eq!(
        answers(input),
        [
            "{\"items\":[{\"at\":\"2027-03-14T07:00:00Z\",\"local\":\"2027-03-14T03:00:00-04:00[America/New_York]\"},\
             {\"at\":\"2027-03-15T06:30:00Z\",\"local\":\"2027-03-15T02:30:00-04:00[America/New_York]\"}]}",
            "{\"error\":\"minute: 61 is outside 0-59\"}",
            "{\"items\":[{\"at\":\"2027-03-13T00:00:00Z\",\"local\":\"2027-03-13T00:00:00+00:00[UTC]\"}]}",
        ]
    );
}

#[test]
fn rules_for_daylight_saving_are_obeyed() {
    let input = r#"{"expr":"30 2 * * *","tz":"America/New_York","start":"2027-03-13T12:00:00Z","dstGap":"skip"}
{"expr":"30 1 * * *","tz":"America/New_York","start":"2027-11-06T12:00:00Z","dstFold":"last"}
{"expr":"30 1 * * *","tz":"America/New_York","start":"2027-11-06T12:00:00Z","dstFold":"both","count":2}"#;
    let found: Vec<Vec<Value>> = answers(input).iter().map(|line| instants(line)).collect();
    assert_eq!(
        found,
        [
            vec![json!("2027-03-15T06:30:00Z")],
            vec![json!("2027-11-07T06:30:00Z")],
            vec![json!("2027-11-07T05:30:00Z"), json!("2027-11-07T06:30:00Z")],
        ]
    );
}

fn instants(line: &str) -> Vec<Value> {
    let answer: Value = serde_json::from_str(line).unwrap();
    answer["items"].as_array().unwrap_or_else(|| panic!("{line}")).iter().map(|item| item["at"].clone()).collect()
}

#[test]
fn bad_lines_are_answered_with_what_is_wrong() {
    let good = r#""expr":"@daily","start":"2027-03-13T00:00:00Z""#;
    for (line, error) in [
        ("{", "EOF while parsing an object at column 1"),
        ("[]", r#"must be a JSON object such as {"expr":"@daily","start":"2027-03-13T00:00:00Z"}"#),
        (r#"{"expr":"@daily"}"#, "missing field `start` at column 17"),
        (r#"{"start":"2027-03-13T00:00:00Z"}"#, "missing field `expr` at column 32"),
        (r#"{"expr":"","start":"2027-03-13T00:00:00Z"}"#, "the expression is empty"),
        (
            r#"{"expr":"@daily","start":"now"}"#,
            "start: `now` is not a time with an offset, such as `2027-03-13T00:00:00Z`",
        ),
        (
            r#"{"expr":"@daily","start":"2027-03-13T00:00:00"}"#,
            "start: `2027-03-13T00:00:00` is not a time with an offset, such as `2027-03-13T00:00:00Z`",
        ),
        (
            r#"{"expr":"@daily","start":"2200-01-01T00:00:00Z"}"#,
            "start: `2200-01-01T00:00:00Z` is outside the years 1900 to 2199",
        ),
        (&format!(r#"{{{good},"count":0}}"#), "count: 0 is outside 1-10000"),
        (&format!(r#"{{{good},"count":10001}}"#), "count: 10001 is outside 1-10000"),
        (&format!(r#"{{{good},"dstGap":"jump"}}"#), "dstGap: `jump` is not one of shift, skip"),
        (&format!(r#"{{{good},"dstFold":"2"}}"#), "dstFold: `2` is not one of first, last, both"),
        (
            &format!(r#"{{{good},"zone":"UTC"}}"#),
            "unknown field `zone`, expected one of `expr`, `tz`, `start`, `count`, `dstGap`, `dstFold` at column 54",
        ),
        (
            &format!(r#"{{{good},"tz":"Europe/Pariss"}}"#),
            "unknown time zone `Europe/Pariss`; did you mean `Europe/Paris`?",
        ),
    ] {
        assert_eq!(answers(line), [json!({ "error": error }).to_string()], "{line}");
    }
}

#[test]
fn long_lines_are_refused_and_the_next_is_answered() {
    let line = |length: usize| {
        let question = r#"{"expr":"@daily","start":"2027-03-13T00:00:00Z"}"#;
        format!("{question}{}", " ".repeat(length - question.len()))
    };
    let input = [line(65_536), line(65_537), line(1_000_000), line(65_536)].join("\n");
    let found = answers(&input);
    let refused = r#"{"error":"the line is longer than 65536 bytes"}"#;
    assert_eq!((found.len(), found[1].as_str(), found[2].as_str()), (4, refused, refused));
    assert!(found[0].starts_with("{\"items\":[{") && found[3] == found[0], "{found:?}");
}

#[derive(Deserialize)]
struct Vector {
    id: String,
    expr: String,
    tz: String,
    start: String,
    expect: Vec<String>,
}

#[test]
fn the_vectors_of_other_implementations_are_answered_as_expected() {
    let lines = include_str!("../../../../core/tests/data/cron_next.jsonl").lines();
    let vectors: Vec<Vector> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(vectors.len(), 261, "the file is whole");
    let question = |Vector { expr, tz, start, expect, .. }: &Vector| {
        json!({ "expr": expr, "tz": tz, "start": start, "count": expect.len().max(1) }).to_string()
    };
    let questions: Vec<String> = vectors.iter().map(question).collect();
    let answers = answers(&questions.join("\n"));
    assert_eq!(answers.len(), vectors.len());
    for (Vector { id, expect, .. }, answer) in vectors.iter().zip(&answers) {
        if expect.is_empty() {
            assert!(answer.starts_with("{\"error\":\""), "{id}: {answer}");
            continue;
        }
        let in_utc = |at: &String| json!(at.parse::<Timestamp>().unwrap().to_string());
        let expect: Vec<Value> = expect.iter().map(in_utc).collect();
        assert_eq!(instants(answer), expect, "{id}");
    }
}

#[test]
fn nothing_to_ask_is_nothing_to_answer() {
    assert!(answers("").is_empty());
    assert!(answers("\n\r\n  \n").is_empty());
}

#[test]
fn a_batch_takes_no_other_question() {
    for args in [
        ["cron", "next", "--batch", "@daily"].as_slice(),
        &["cron", "next", "--batch", "--tz", "UTC"],
        &["cron", "next", "--batch", "--count", "3"],
    ] {
        assert!(refusal(args).contains("cannot be used with"), "{args:?}");
    }
    let neither = refusal(&["cron", "next"]);
    assert!(neither.contains("required arguments were not provided") && neither.contains("EXPR"), "{neither}");
}
