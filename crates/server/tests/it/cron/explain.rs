//! `everbell cron explain EXPR`.

use serde_json::json;

use super::{document, keys, stdout};

#[test]
fn the_next_fires_stand_below_the_words() {
    let shown =
        stdout(&["cron", "explain", "0 9 * * mon-fri", "--tz", "Europe/Paris", "--from", "2026-11-15T13:42:00Z"]);
    assert_eq!(
        shown,
        "At 09:00 on weekdays\n  \
         Original   0 9 * * mon-fri\n  \
         Normalized 0 9 * * 1-5\n  \
         Next  Mon 2026-11-16 09:00 CET  2026-11-16T08:00:00Z  in 18h 18m\n        \
         Tue 2026-11-17 09:00 CET  2026-11-17T08:00:00Z  in 1d 18h\n        \
         Wed 2026-11-18 09:00 CET  2026-11-18T08:00:00Z  in 2d 18h\n        \
         Thu 2026-11-19 09:00 CET  2026-11-19T08:00:00Z  in 3d 18h\n        \
         Fri 2026-11-20 09:00 CET  2026-11-20T08:00:00Z  in 4d 18h\n"
    );
}

#[test]
fn a_fixed_rate_says_where_it_counts_from() {
    let shown = stdout(&["cron", "explain", "@every 90s", "--from", "2027-03-13T00:00:00Z"]);
    assert!(
        shown.contains(
            "  Normalized @every 1m30s\n  \
             note: a fixed rate counts from its start; here that is --from, 2027-03-13T00:00:00Z \
             (`cron next` takes another one as --start-at)\n  \
             Next  Sat 2027-03-13 00:01:30 UTC  2027-03-13T00:01:30Z  in 1m 30s\n        \
             Sat 2027-03-13 00:03:00 UTC  2027-03-13T00:03:00Z  in 3m\n"
        ),
        "{shown}"
    );
}

#[test]
fn the_document_is_that_of_the_preview() {
    let shown = document(&stdout(&[
        "cron",
        "explain",
        "30 2 * * *",
        "--tz",
        "america/new_york",
        "--from",
        "2027-03-13T00:00:00Z",
        "--json",
    ]));
    let mut found = keys(&shown);
    found.sort_unstable();
    assert_eq!(found, ["description", "expression", "next", "normalized", "timezone", "valid", "warnings"]);
    assert_eq!(
        (&shown["valid"], &shown["expression"], &shown["normalized"], &shown["timezone"]),
        (&json!(true), &json!("30 2 * * *"), &json!("30 2 * * *"), &json!("America/New_York"))
    );
    assert_eq!(shown["next"].as_array().unwrap().len(), 5);
    assert_eq!(
        shown["next"][1],
        json!({
            "at": "2027-03-14T07:00:00Z",
            "local": "2027-03-14T03:00:00-04:00[America/New_York]",
            "note": "shifted: 02:30 does not exist",
        })
    );
}

#[test]
fn what_may_surprise_is_noted() {
    let either = stdout(&["cron", "explain", "0 9 1,15 * mon", "--from", "2026-11-15T13:42:00Z"]);
    let words = "At 09:00 on day 1 and 15 of the month, OR on Monday\n";
    assert!(either.starts_with(words), "{either}");
    assert!(either.contains("\n  note: day-of-month and day-of-week are both set: "), "{either}");

    let args = ["cron", "explain", "30 2 * * *", "--tz", "America/New_York", "--from", "2027-01-01", "--json"];
    let shown = document(&stdout(&args));
    let warning = &shown["warnings"][0];
    let mut found = keys(warning);
    found.sort_unstable();
    assert_eq!(found, ["at", "code", "detail", "localDate"]);
    assert_eq!(
        (&warning["code"], &warning["localDate"], &warning["at"]),
        (&json!("dst_gap"), &json!("2027-03-14"), &json!("2027-03-14T07:00:00Z"))
    );
}

#[test]
fn the_rule_for_daylight_saving_changes_the_notes() {
    let args = ["cron", "explain", "30 2 * * *", "--tz", "America/New_York", "--from", "2027-01-01", "--json"];
    let shown = document(&stdout(&[&args, ["--dst-gap", "skip"].as_slice()].concat()));
    assert_eq!((&shown["warnings"][0]["code"], &shown["warnings"][0]["at"]), (&json!("dst_gap"), &json!(null)));
}
