//! Expressions that are refused, with their messages, and the bit sets of those that are accepted.

use everbell_core::cron::{Expression, FieldName, MAX_EXPRESSION_BYTES, ParseError};

const SHAPE: &str = "`minute hour day-of-month month day-of-week`, with an optional leading seconds field";
const STEP: &str = "a step is a whole number from 1 to 999";
const COUNT: &str = "a count from 1 to 5, as in `5#2` (second Friday)";
const DURATION: &str = "a duration such as `90s`, `5m` or `1h30m`, from 1s to 366d";
const MACROS: &str = "@yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, or `@every 90s`";

const TIME_ZONE: &str = "the time zone is a separate setting (`timezone`), not part of the expression";
const NO_YEARS: &str = "a year field is not supported; bound the schedule with `startAt` and `endAt`";
const TWO_ENDS: &str = "a range has two ends, as in `1-5`";
const THREE_LETTERS: &str = "names have three letters, such as `jan` or `mon`";
const JENKINS: &str = "`H` is Jenkins syntax; write a number, and use `jitter` to spread the load";
const LAST_DAY: &str = "use `L` for the last day of a month";
const QUESTION_MARK: &str = "`?` stands alone in a day field, where it means `*`";

fn refused(text: &str) -> ParseError {
    Expression::parse(text).expect_err(text)
}

/// Text, code, the characters at fault, the message.
type Refusal = (&'static str, &'static str, &'static str, &'static str);

fn assert_refused(table: &[Refusal], field: Option<FieldName>, allowed: &str) {
    for (text, code, part, message) in table {
        let error = refused(text);
        assert_eq!((error.code(), error.text(), error.to_string().as_str()), (*code, *part, *message), "`{text}`");
        assert_eq!((error.field, error.allowed()), (field, allowed), "`{text}`");
    }
}

#[test]
fn the_whole_expression_is_refused() {
    assert_refused(
        &[
            ("", "empty", "", "the expression is empty"),
            (" \t ", "empty", " \t ", "the expression is empty"),
            ("*", "field_count", "*", "five or six fields are needed, not 1"),
            ("0 9 * *", "field_count", "0 9 * *", "five or six fields are needed, not 4"),
            (" 1 2 3 4 5 6 7 ", "field_count", "1 2 3 4 5 6 7", "five or six fields are needed, not 7"),
        ],
        None,
        SHAPE,
    );
    assert_refused(
        &[
            ("@reboot", "unknown_macro", "@reboot", "`@reboot` is not a known macro"),
            ("@", "unknown_macro", "@", "`@` is not a known macro"),
            ("@fortnightly 5", "unknown_macro", "@fortnightly 5", "`@fortnightly 5` is not a known macro"),
        ],
        None,
        MACROS,
    );
    assert_refused(&[("@daily  5 6", "unexpected", "5 6", "`5 6` has no meaning here")], None, "nothing after a macro");
    assert_refused(
        &[
            ("@every", "bad_interval", "", "an interval from 1s to 366d is missing"),
            ("@every 0s", "bad_interval", "0s", "`0s` is not an interval from 1s to 366d"),
            ("@every 5", "bad_interval", "5", "`5` is not an interval from 1s to 366d"),
            ("@every  5 m", "bad_interval", "5 m", "`5 m` is not an interval from 1s to 366d"),
            ("@every 400d", "bad_interval", "400d", "`400d` is not an interval from 1s to 366d"),
            ("@every 1.5h", "bad_interval", "1.5h", "`1.5h` is not an interval from 1s to 366d"),
        ],
        None,
        DURATION,
    );
}

#[test]
fn a_time_field_is_refused() {
    assert_refused(
        &[
            ("60 9 * * *", "out_of_range", "60", "minute: 60 is outside 0-59"),
            ("1-60 9 * * *", "out_of_range", "60", "minute: 60 is outside 0-59"),
            (
                "99999999999999999999 * * * *",
                "out_of_range",
                "99999999999999999999",
                "minute: 99999999999999999999 is outside 0-59",
            ),
            ("mon 9 * * *", "unknown_name", "mon", "minute: `mon` is not a number"),
            ("1e1 * * * *", "unexpected", "1e1", "minute: `1e1` has no meaning here"),
            ("+5 * * * *", "unexpected", "+5", "minute: `+5` has no meaning here"),
            ("\u{b9} 9 * * *", "unexpected", "\u{b9}", "minute: `\u{b9}` has no meaning here"),
            ("0~30 * * * *", "unexpected", "0~30", "minute: `0~30` has no meaning here"),
            ("*5 * * * *", "unexpected", "*5", "minute: `*5` has no meaning here"),
            ("5-* * * * *", "unexpected", "*", "minute: `*` has no meaning here"),
            ("1--5 * * * *", "unexpected", "-5", "minute: `-5` has no meaning here"),
            ("1,,2 * * * *", "missing_value", "", "minute: a value is missing"),
            ("1, * * * *", "missing_value", "", "minute: a value is missing"),
            ("5- * * * *", "missing_value", "5-", "minute: `5-` lacks a value"),
            ("-1 * * * *", "missing_value", "-1", "minute: `-1` lacks a value"),
            ("*/ * * * *", "missing_value", "*/", "minute: `*/` lacks a value"),
            ("/5 * * * *", "missing_value", "/5", "minute: `/5` lacks a value"),
            ("L * * * *", "misplaced", "L", "minute: `L` is not allowed in this place"),
            ("5W * * * *", "misplaced", "5W", "minute: `5W` is not allowed in this place"),
            ("1#2 * * * *", "misplaced", "1#2", "minute: `1#2` is not allowed in this place"),
            ("? * * * *", "misplaced", "?", "minute: `?` is not allowed in this place"),
            ("H * * * *", "misplaced", "H", "minute: `H` is not allowed in this place"),
        ],
        Some(FieldName::Minute),
        FieldName::Minute.allowed(),
    );
    assert_refused(
        &[
            ("*/0 * * * *", "bad_step", "0", "minute: `0` is not a step"),
            ("*/1000 * * * *", "bad_step", "1000", "minute: `1000` is not a step"),
            ("*/x * * * *", "bad_step", "x", "minute: `x` is not a step"),
            ("1/2/3 * * * *", "bad_step", "2/3", "minute: `2/3` is not a step"),
        ],
        Some(FieldName::Minute),
        STEP,
    );
    assert_refused(
        &[("60 0 0 * * *", "out_of_range", "60", "second: 60 is outside 0-59")],
        Some(FieldName::Second),
        FieldName::Second.allowed(),
    );
    assert_refused(
        &[("0 24 * * *", "out_of_range", "24", "hour: 24 is outside 0-23")],
        Some(FieldName::Hour),
        FieldName::Hour.allowed(),
    );
}

#[test]
fn a_date_field_is_refused() {
    assert_refused(
        &[
            ("0 0 0 * *", "out_of_range", "0", "day-of-month: 0 is outside 1-31"),
            ("0 0 32W * *", "out_of_range", "32", "day-of-month: 32 is outside 1-31"),
            ("0 0 W * *", "misplaced", "W", "day-of-month: `W` is not allowed in this place"),
            ("0 0 15L * *", "misplaced", "15L", "day-of-month: `15L` is not allowed in this place"),
            ("0 0 L-3 * *", "misplaced", "L", "day-of-month: `L` is not allowed in this place"),
            ("0 0 1,? * *", "misplaced", "?", "day-of-month: `?` is not allowed in this place"),
            ("0 0 30 2 *", "never_fires", "30 2 *", "day-of-month: no date ever matches `30 2 *`"),
            ("0 0 0 31W 2,4 ?", "never_fires", "31W 2,4 ?", "day-of-month: no date ever matches `31W 2,4 ?`"),
        ],
        Some(FieldName::DayOfMonth),
        FieldName::DayOfMonth.allowed(),
    );
    assert_refused(
        &[
            ("0 0 1 13 *", "out_of_range", "13", "month: 13 is outside 1-12"),
            ("0 0 * jan-13 *", "out_of_range", "13", "month: 13 is outside 1-12"),
            ("0 9 * janu *", "unknown_name", "janu", "month: `janu` is not a month"),
            ("0 0 * L *", "misplaced", "L", "month: `L` is not allowed in this place"),
        ],
        Some(FieldName::Month),
        FieldName::Month.allowed(),
    );
    assert_refused(
        &[
            ("0 0 * * 8L", "out_of_range", "8", "day-of-week: 8 is outside 0-7"),
            ("0 9 * * monday", "unknown_name", "monday", "day-of-week: `monday` is not a weekday"),
            ("0 9 * * mon;ls", "unexpected", "mon;ls", "day-of-week: `mon;ls` has no meaning here"),
            ("0 0 * * 1#", "missing_value", "1#", "day-of-week: `1#` lacks a value"),
            ("0 0 * * #1", "missing_value", "#1", "day-of-week: `#1` lacks a value"),
            ("0 0 * * LW", "misplaced", "LW", "day-of-week: `LW` is not allowed in this place"),
        ],
        Some(FieldName::DayOfWeek),
        FieldName::DayOfWeek.allowed(),
    );
    assert_refused(
        &[("0 0 * * 1#6", "bad_count", "6", "day-of-week: `6` is not a count from 1 to 5")],
        Some(FieldName::DayOfWeek),
        COUNT,
    );
}

#[test]
fn hints_say_what_was_meant() {
    for (text, hint) in [
        ("", "every day at 09:00 is `0 9 * * *`"),
        ("*", "every minute is `* * * * *`"),
        ("0 0 0 1 1 * 2099", NO_YEARS),
        ("0 0 1 1 * 2099", NO_YEARS),
        ("0 9 * * 1-5 # weekdays", "a comment is not part of the expression"),
        ("TZ=UTC 0 0 * * *", TIME_ZONE),
        ("CRON_TZ=Europe/Paris 0 0 * * *", TIME_ZONE),
        ("TZ=UTC @daily", TIME_ZONE),
        ("0 0 * * * Europe/Paris", TIME_ZONE),
        ("@daily America/New_York", TIME_ZONE),
        ("0 24 * * *", "midnight is hour 0"),
        ("0 0 * * Monday", THREE_LETTERS),
        ("0 0 * sept *", THREE_LETTERS),
        ("5- * * * *", TWO_ENDS),
        ("-5 * * * *", TWO_ENDS),
        ("0~30 * * * *", "random ranges are not supported; use `jitter` to spread the load"),
        ("H * * * *", JENKINS),
        ("0 h * * *", JENKINS),
        ("0 0 * * L", "for the last Friday of a month write `5L`"),
        ("0 0 L-3 * *", "`L` stands alone: it is the last day of a month"),
        ("0 0 * * LW", "`LW` and `15W` belong to the day-of-month field"),
        ("? 0 * * *", QUESTION_MARK),
        ("0 0 1,? * *", QUESTION_MARK),
        ("@reboot", "everbell fires on a schedule, not on a restart; use a one-time job"),
        ("@every 5", "a number needs a unit: `s`, `m`, `h`, `d` or `w`"),
        ("@every 1h 30m", "write it without spaces, as in `1h30m`"),
        ("0 0 31 2 *", LAST_DAY),
    ] {
        assert_eq!(refused(text).hint(), Some(hint), "`{text}`");
    }
    for text in [
        "61 9 * * *",
        "L * * * *",
        "0 9 * *",
        "0 9 * * foo",
        "@fortnightly",
        "@every 400d",
        "1,,2 * * * *",
        "*/x * * * *",
    ] {
        assert_eq!(refused(text).hint(), None, "`{text}`");
    }
}

#[test]
fn carets_stand_below_the_place() {
    for (text, rendered) in [
        ("61 2 * * *", "   61 2 * * *\n   ^^ minute: 61 is outside 0-59"),
        ("0 9 * * mon-fry", "   0 9 * * mon-fry\n               ^^^ day-of-week: `fry` is not a weekday"),
        ("1,,2 * * * *", "   1,,2 * * * *\n     ^ minute: a value is missing"),
        ("@every", "   @every\n         ^ an interval from 1s to 366d is missing"),
        ("0 0 30 2 *", "   0 0 30 2 *\n       ^^^^^^ day-of-month: no date ever matches `30 2 *`"),
        // One caret a character, not a byte.
        ("é,é 9 * * 8", "   é,é 9 * * 8\n   ^ minute: `é` has no meaning here"),
        ("0 9 * é 8", "   0 9 * é 8\n         ^ month: `é` has no meaning here"),
        // A tab would be wider than its caret.
        ("0\t25 *\t* *", "   0 25 * * *\n     ^^ hour: 25 is outside 0-23"),
        // What would move the cursor, ring or turn the line around is shown as such.
        (
            "0 9 * * \u{1b}[31m",
            "   0 9 * * \u{fffd}[31m\n           ^^^^^ day-of-week: `\\u{1b}[31m` has no meaning here",
        ),
        ("0\u{7} 9 * * *", "   0\u{fffd} 9 * * *\n   ^^ minute: `0\\u{7}` has no meaning here"),
        ("0 9 * * *\n", "   0 9 * * *\u{fffd}\n           ^^ day-of-week: `*\\n` has no meaning here"),
        ("0 9 * * \u{202e}1", "   0 9 * * \u{fffd}1\n           ^^ day-of-week: `\\u{202e}1` has no meaning here"),
        ("", "   the expression is empty"),
    ] {
        assert_eq!(refused(text).render(), rendered, "{text:?}");
    }
}

#[test]
fn normalized_is_plain_numbers() {
    for (text, normalized) in [
        ("0 9 * * mon-fri", "0 9 * * 1-5"),
        ("  0   9\t* * *  ", "0 9 * * *"),
        ("@daily", "0 0 * * *"),
        ("@Yearly", "0 0 1 1 *"),
        ("@weekly", "0 0 * * 0"),
        ("@every 90s", "@every 1m30s"),
        ("@every 2W", "@every 14d"),
        ("*/1 * * * *", "* * * * *"),
        ("*/7 */1 * * *", "*/7 * * * *"),
        ("0 0 ? * ?", "0 0 * * *"),
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 * * sun", "0 0 * * 0"),
        ("0 0 * * 0-7", "0 0 * * 0-7"),
        ("0 0 * * 7-0", "0 0 * * 0"),
        ("0 0 * * sun-sun", "0 0 * * 0"),
        ("0 0 * * 7-3", "0 0 * * 0-3"),
        ("0 0 * * 7/2", "0 0 * * 0-6/2"),
        ("0 0 * * fri-mon", "0 0 * * 5-1"),
        ("5-5/2 22-2 * * *", "5 22-2 * * *"),
        ("5/15 * * * *", "5-59/15 * * * *"),
        ("5/1 23/2 * * *", "5-59 23 * * *"),
        ("007 09 01 jan *", "7 9 1 1 *"),
        ("000000000000005 9 * * *", "5 9 * * *"),
        ("0 0 * Dec,FEB-apr *", "0 0 * 12,2-4 *"),
        ("0 0 * * MONL,FRIL", "0 0 * * 1L,5L"),
        ("0 0 * * Tue#2,7#5", "0 0 * * 2#2,0#5"),
        ("0 0 1w,l,015W * 1", "0 0 1W,L,15W * 1"),
        ("0 0 lw * *", "0 0 LW * *"),
        ("0 0 wl * *", "0 0 LW * *"),
        ("*,5 1,* * * *", "*,5 1,* * * *"),
        ("00 */15 9-17 * * 1-5", "0 */15 9-17 * * 1-5"),
    ] {
        let expression = Expression::parse(text).unwrap();
        assert_eq!(expression.normalized(), normalized, "`{text}`");
        assert_eq!(Expression::parse(normalized).unwrap().normalized(), normalized, "`{text}`");
        assert_eq!(expression.as_str(), text.trim());
    }
}

#[test]
fn long_texts_are_cut_before_they_are_read() {
    for text in ["1".repeat(10_000), "é".repeat(5_000), "* ".repeat(129), " ".repeat(257)] {
        let error = refused(&text);
        assert_eq!(error.to_string(), "the expression is longer than 256 bytes");
        assert_eq!((error.code(), error.allowed()), ("too_long", SHAPE));
        assert!(error.expression.len() <= MAX_EXPRESSION_BYTES && error.render().len() < 4 * MAX_EXPRESSION_BYTES);
    }
    let commas = refused(&",".repeat(MAX_EXPRESSION_BYTES));
    assert_eq!(commas.code(), "field_count");
    let commas = refused(&(",".repeat(MAX_EXPRESSION_BYTES - 8) + " * * * *"));
    assert_eq!((commas.code(), commas.span.clone()), ("missing_value", 0..0));
    // A message quotes only the beginning of what it is about.
    let letters = refused(&("x".repeat(MAX_EXPRESSION_BYTES - 8) + " * * * *"));
    assert_eq!(letters.to_string(), format!("minute: `{}` is not a number", "x".repeat(40)));
}

/// The most that fits: every item is read once and expands to at most sixty bits.
#[test]
fn long_lists_are_read() {
    let list = format!("{}1 * * * *", "1-59/1,".repeat(35));
    assert_eq!(list.len(), MAX_EXPRESSION_BYTES - 2);
    assert_eq!(Expression::parse(&list).unwrap().normalized(), list.replace("/1", ""));
    assert_eq!(refused(&format!("{}1-61 * * * *", "1-59/1,".repeat(34))).to_string(), "minute: 61 is outside 0-59");
    // `0/2` is `0-59/2` in plain numbers; where that would be too long to be read again, the text stays as it is.
    let steps = format!("{}0/5 * * * *", "0/2,".repeat(60));
    let expression = Expression::parse(&steps).unwrap();
    assert_eq!(expression.normalized(), steps);
    assert_eq!(Expression::parse(expression.normalized()).unwrap().normalized(), steps);
}
