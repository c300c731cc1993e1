//! `everbell cron check EXPR...`.

use serde_json::json;

use super::{document, everbell, keys, stdout};

#[test]
fn valid_expressions_are_described() {
    assert_eq!(
        stdout(&["cron", "check", "0 9 * * mon-fri", "0\t9 * * mon-fri"]),
        "ok\t0 9 * * mon-fri\tAt 09:00 on weekdays\nok\t0 9 * * mon-fri\tAt 09:00 on weekdays\n"
    );
}

#[test]
fn one_invalid_expression_fails_the_check_and_hides_no_other() {
    let ran = everbell(&["cron", "check", "61 2 * * *", "0 9 * * mon-fri", "@reboot"]);
    assert_eq!(ran.code, Some(2));
    assert_eq!(ran.stdout, "ok\t0 9 * * mon-fri\tAt 09:00 on weekdays\n");
    assert_eq!(
        ran.stderr,
        "error: invalid cron expression\n   \
         61 2 * * *\n   \
         ^^ minute: 61 is outside 0-59\n  \
         allowed: 0-59, lists `0,30`, ranges `10-20`, steps `*/5`, or `*`\n\
         error: invalid cron expression\n   \
         @reboot\n   \
         ^^^^^^^ `@reboot` is not a known macro\n  \
         allowed: @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, or `@every 90s`\n  \
         hint: everbell fires on a schedule, not on a restart; use a one-time job\n"
    );
}

#[test]
fn the_document_has_every_verdict() {
    let ran = everbell(&["cron", "check", "--json", "0 9 * * mon-fri", "0 0 0 0 0 0 0"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(2), ""));
    let shown = document(&ran.stdout);
    assert_eq!(keys(&shown), ["items"]);
    assert_eq!(
        shown["items"][0],
        json!({
            "expression": "0 9 * * mon-fri",
            "valid": true,
            "normalized": "0 9 * * 1-5",
            "description": "At 09:00 on weekdays",
            "warnings": [],
        })
    );
    assert_eq!(
        shown["items"][1],
        json!({
            "expression": "0 0 0 0 0 0 0",
            "valid": false,
            "error": {
                "code": "field_count",
                "field": null,
                "start": 0,
                "end": 13,
                "detail": "five or six fields are needed, not 7",
                "allowed": "`minute hour day-of-month month day-of-week`, with an optional leading seconds field",
                "hint": "a year field is not supported; bound the schedule with `startAt` and `endAt`",
            },
        })
    );
    assert_eq!(everbell(&["cron", "check", "--json", "@daily"]).code, Some(0));
}

#[test]
fn warnings_fail_only_a_strict_check() {
    let both_days = ["cron", "check", "0 9 1,15 * mon", "@hourly"];
    let lenient = everbell(&both_days);
    assert_eq!(lenient.code, Some(0));
    assert_eq!(lenient.stdout.lines().count(), 2);
    assert!(lenient.stderr.starts_with("warning: 0 9 1,15 * mon: day-of-month and day-of-week are both set"));
    assert_eq!(lenient.stderr.lines().count(), 1);

    let strict = everbell(&[&both_days, ["--strict"].as_slice()].concat());
    assert_eq!((strict.code, strict.stdout, strict.stderr), (Some(1), lenient.stdout, lenient.stderr));
    let document = document(&everbell(&[&both_days, ["--json"].as_slice()].concat()).stdout);
    assert_eq!(document["items"][0]["warnings"][0]["code"], "either_day");
    assert_eq!(everbell(&["cron", "check", "--strict", "@hourly"]).code, Some(0));
    assert_eq!(everbell(&[&both_days, ["--strict", "@reboot"].as_slice()].concat()).code, Some(2));
}
