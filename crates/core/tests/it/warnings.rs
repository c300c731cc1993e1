//! Warnings about schedules.

#![allow(clippy::unwrap_used, reason = "a helper of tests may panic too")]

use everbell_core::cron::{Dst, DstFold, DstGap, Expression, Warning, WarningCode};
use everbell_core::{Spec, Zone};
use jiff::Timestamp;

const SHIFT: Dst = Dst { gap: DstGap::Shift, fold: DstFold::First };
const SKIP: Dst = Dst { gap: DstGap::Skip, fold: DstFold::First };
const LAST: Dst = Dst { gap: DstGap::Shift, fold: DstFold::Last };
const BOTH: Dst = Dst { gap: DstGap::Shift, fold: DstFold::Both };

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn spec(expression: &str, zone: &str) -> Spec {
    Spec::recurring(Expression::parse(expression).unwrap(), Zone::get(zone).unwrap(), Timestamp::UNIX_EPOCH)
}

/// Warnings for the year after 15 November 2026.
fn year(expression: &str, zone: &str, dst: Dst) -> Vec<Warning> {
    spec(expression, zone).with_dst(dst).warnings(time("2026-11-15T00:00:00Z"))
}

fn details(warnings: &[Warning]) -> Vec<&str> {
    warnings.iter().map(|warning| warning.detail.as_str()).collect()
}

/// The text of a warning without its code, for expressions that have one or none.
fn of_expression(expression: &str) -> Vec<(&'static str, String)> {
    let warnings = Expression::parse(expression).unwrap().warnings();
    assert!(warnings.iter().all(|warning| warning.at.is_none() && warning.local_date.is_none()));
    warnings.into_iter().map(|warning| (warning.code.as_str(), warning.detail)).collect()
}

#[test]
fn both_day_fields() {
    let meant = "(if both must match, set one and let the job check the other)";
    let rule = "day-of-month and day-of-week are both set: it runs when either matches";
    assert_eq!(of_expression("0 9 1,15 * mon"), [("either_day", format!("{rule} {meant}"))]);
    assert_eq!(of_expression("0 9 1 * 0-6"), [("either_day", format!("{rule}, which is every day {meant}"))]);
    for one in ["0 9 * * mon", "0 9 1 * *", "0 9 */2 * mon", "0 9 1 * */2", "0 9 ? * mon"] {
        assert_eq!(of_expression(one), [], "{one}");
    }
}

#[test]
fn uneven_steps() {
    let minutes = "every 7 minutes restarts every hour: from minute 56 to the next hour it is only 4 minutes";
    let hours = "every 5 hours restarts every day: from hour 20 to midnight it is only 4 hours";
    let seconds = "every 8 seconds restarts every minute: from second 56 to the next minute it is only 4 seconds";
    for (expression, detail) in [
        ("*/7 * * * *", minutes),
        ("*/7 9-17 * * *", minutes),
        ("*/7 23,0 * * *", minutes),
        ("0/7 * * * 1", minutes),
        ("0 */5 * * *", hours),
        ("0 */5 * * 1-5", hours),
        ("0 */5 1,L * *", hours),
        ("*/8 * * * * *", seconds),
        ("*/8 59,0 * * * *", seconds),
    ] {
        assert_eq!(of_expression(expression), [("uneven_step", detail.to_owned())], "{expression}");
    }
    let ten = "every 25 minutes restarts every hour: from minute 50 to the next hour it is only 10 minutes";
    assert_eq!(of_expression("*/25 * * * *")[0].1, ten);
    // Steps that divide, that have too few members or other ends, and where the short interval never comes.
    for even in ["*/5 * * * *", "0 */6 * * *", "*/40 * * * *", "3/7 * * * *", "0-49/7 * * * *", "*/7 9 * * *"] {
        assert_eq!(of_expression(even), [], "{even}");
    }
    for apart in ["*/7 */2 * * *", "0 */5 * * 1", "0 */5 1 * *", "*/7 0 9 * * *", "*/7 23,0 1 * *"] {
        assert_eq!(of_expression(apart), [], "{apart}");
    }
    assert_eq!(of_expression("*/7 */5 * * *").len(), 1, "hours 20 and 0 are no neighbours");
}

#[test]
fn missing_days() {
    let last = "(`L` is the last day of every month)";
    for (expression, detail) in [
        (
            "0 0 31 * *",
            format!("February, April, June, September and November have no day 31: they are skipped {last}"),
        ),
        ("0 0 31 4,5 *", format!("April has no day 31: it is skipped {last}")),
        ("0 0 31W 4-6 *", format!("April and June have no day 31: they are skipped {last}")),
        ("0 0 30 * *", format!("February has no day 30: it is skipped {last}")),
        ("0 0 30,31 * *", format!("February has no day 30 or 31: it is skipped {last}")),
        ("0 0 29 * *", "February has a day 29 only in leap years: in other years it is skipped".to_owned()),
        ("0 0 29 2 *", "29 February exists only in leap years".to_owned()),
        ("0 0 * * 5#5", "not every month has a fifth Friday: months without one are skipped".to_owned()),
        ("0 0 * * 1#5,5#5", "not every month has a fifth Monday or Friday: months without one are skipped".to_owned()),
    ] {
        assert_eq!(of_expression(expression), [("missing_day", detail)], "{expression}");
    }
    for present in ["0 0 28 * *", "0 0 1,31 * *", "0 0 31 1,3 *", "0 0 29 3 *", "0 0 L * *", "0 0 31,LW * *"] {
        assert_eq!(of_expression(present), [], "{present}");
    }
    for present in ["0 0 * * 5#4", "0 0 * * 5#5,5#1", "0 0 * * 1,5#5", "@every 31d"] {
        assert_eq!(of_expression(present), [], "{present}");
    }
}

/// Lines of expression, zone, policy, what happens to its local time, the instant at which it fires (or `-`).
fn check_changes(code: WarningCode, table: &str) {
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [expression, zone, policy, detail, at] = cells[..] else { panic!("{line}") };
        let dst = match policy {
            "skip" => SKIP,
            "last" => LAST,
            "both" => BOTH,
            _ => SHIFT,
        };
        let warnings = year(expression, zone, dst);
        let (said, then) = detail.split_once(';').unwrap();
        assert_eq!(details(&warnings), [format!("{said} in {zone};{then}")], "{line}");
        assert_eq!(warnings[0].code, code, "{line}");
        assert!(said.ends_with(&warnings[0].local_date.unwrap().to_string()), "{line}");
        assert_eq!(warnings[0].at, (at != "-").then(|| time(at)), "{line}");
        // What is announced is what happens.
        assert!(warnings[0].at.is_none_or(|at| spec(expression, zone).with_dst(dst).matches(at)), "{line}");
    }
}

#[test]
fn gaps() {
    check_changes(
        WarningCode::DstGap,
        "
        30 2 * * * | America/New_York | shift | 02:30 does not exist on 2027-03-14; \
            fires at 03:00 EDT instead | 2027-03-14T07:00:00Z
        30 2 * * * | America/New_York | skip | 02:30 does not exist on 2027-03-14; it is skipped | -
        0,30 2 * * * | America/New_York | shift | 02:00 and 02:30 do not exist on 2027-03-14; \
            fire once at 03:00 EDT instead | 2027-03-14T07:00:00Z
        0,15,30,45 2 * * * | America/New_York | shift | 02:00, 02:15, ... (4 times) do not exist on 2027-03-14; \
            fire once at 03:00 EDT instead | 2027-03-14T07:00:00Z
        0,15,30,45 2 * * * | America/New_York | skip | 02:00, 02:15, ... (4 times) do not exist on 2027-03-14; \
            they are skipped | -
        15 30 2 * * * | America/New_York | shift | 02:30:15 does not exist on 2027-03-14; \
            fires at 03:00:00 EDT instead | 2027-03-14T07:00:00Z
        0-59 0-59 2 * * * | America/New_York | shift | \
            02:00:00, 02:00:01, ... (3600 times) do not exist on 2027-03-14; \
            fire once at 03:00:00 EDT instead | 2027-03-14T07:00:00Z
        # One slot for what is missing and for what comes anyway.
        0 2,3 * * * | America/New_York | shift | 02:00 does not exist on 2027-03-14; \
            falls together with 03:00 EDT, which fires once | 2027-03-14T07:00:00Z
        0,30 2,3 * * * | America/New_York | shift | 02:00 and 02:30 do not exist on 2027-03-14; \
            fall together with 03:00 EDT, which fires once | 2027-03-14T07:00:00Z
        30 1 * 3 sun | Europe/London | shift | 01:30 does not exist on 2027-03-28; \
            fires at 02:00 BST instead | 2027-03-28T01:00:00Z
        # Half an hour only.
        15 2 * * * | Australia/Lord_Howe | shift | 02:15 does not exist on 2027-10-03; \
            fires at 02:30 UTC+11 instead | 2027-10-02T15:30:00Z
        # The day begins at 01:00.
        0 0 * * * | Africa/Cairo | shift | 00:00 does not exist on 2027-04-30; \
            fires at 01:00 EEST instead | 2027-04-29T22:00:00Z
        0 0 * * * | Africa/Cairo | skip | 00:00 does not exist on 2027-04-30; it is skipped | -
        ",
    );
}

#[test]
fn folds() {
    check_changes(
        WarningCode::DstFold,
        "
        30 1 * * * | America/New_York | first | 01:30 happens twice on 2027-11-07; \
            fires the first time, at 01:30 EDT | 2027-11-07T05:30:00Z
        30 1 * * * | America/New_York | last | 01:30 happens twice on 2027-11-07; \
            fires the second time, at 01:30 EST | 2027-11-07T06:30:00Z
        30 1 * * * | America/New_York | both | 01:30 happens twice on 2027-11-07; \
            fires both times, at 01:30 EDT and at 01:30 EST | 2027-11-07T05:30:00Z
        0,15,30,45 1 * * * | America/New_York | first | 01:00, 01:15, ... (4 times) happen twice on 2027-11-07; \
            each fires the first time, in EDT | 2027-11-07T05:00:00Z
        0,15,30,45 1 * * * | America/New_York | last | 01:00, 01:15, ... (4 times) happen twice on 2027-11-07; \
            each fires the second time, in EST | 2027-11-07T06:00:00Z
        0,15,30,45 1 * * * | America/New_York | both | 01:00, 01:15, ... (4 times) happen twice on 2027-11-07; \
            each fires both times, in EDT and in EST | 2027-11-07T05:00:00Z
        45 1 * * * | Australia/Lord_Howe | first | 01:45 happens twice on 2027-04-04; \
            fires the first time, at 01:45 UTC+11 | 2027-04-03T14:45:00Z
        45 1 * * * | Australia/Lord_Howe | last | 01:45 happens twice on 2027-04-04; \
            fires the second time, at 01:45 UTC+1030 | 2027-04-03T15:15:00Z
        # The last hour of the day before.
        30 23 * * * | Africa/Cairo | last | 23:30 happens twice on 2027-10-28; \
            fires the second time, at 23:30 EET | 2027-10-28T21:30:00Z
        ",
    );
}

#[test]
fn a_year_has_both_in_order() {
    assert_eq!(
        details(&year("30 1 * * *", "Europe/London", SHIFT)),
        [
            "01:30 does not exist on 2027-03-28 in Europe/London; fires at 02:00 BST instead",
            "01:30 happens twice on 2027-10-31 in Europe/London; fires the first time, at 01:30 BST",
        ]
    );
    // What the expression itself is warned about comes first.
    let codes: Vec<&str> = year("30 1 31 * sun", "Europe/London", SHIFT).iter().map(|w| w.code.as_str()).collect();
    assert_eq!(codes, ["either_day", "dst_gap", "dst_fold"]);
    // A fast of a month suspends summer time: four changes, bounded anyway.
    assert!(year("30 2 * * *", "Africa/Casablanca", SHIFT).len() <= 10);
}

#[test]
fn nothing_to_say() {
    for (expression, zone) in [
        ("30 2 * * *", "UTC"),
        ("30 2 * * *", "Asia/Tokyo"),
        // Elapsed time: nothing is lost or doubled.
        ("*/5 * * * *", "America/New_York"),
        ("30 * * * *", "America/New_York"),
        ("* 2 * * *", "America/New_York"),
        // Not in the changes.
        ("0 9 * * *", "America/New_York"),
        ("0 3 * * *", "America/New_York"),
        ("30 2 * * mon", "America/New_York"),
        ("30 2 * 6 *", "America/New_York"),
        ("30 2 * * *", "Australia/Lord_Howe"),
        ("0 1 * * *", "Africa/Cairo"),
        ("@every 30m", "America/New_York"),
    ] {
        assert_eq!(year(expression, zone, SHIFT), [], "{expression} {zone}");
    }
    let once = Spec::once(time("2027-03-14T07:00:00Z"), Zone::get("America/New_York").unwrap()).unwrap();
    assert_eq!(once.warnings(time("2026-11-15T00:00:00Z")), []);
}

#[test]
fn only_what_lies_ahead_and_inside_the_bounds() {
    let nightly = || spec("30 1,2 * * *", "America/New_York");
    let dates = |spec: Spec, from: &str| -> Vec<String> {
        spec.warnings(time(from)).iter().filter_map(|warning| warning.local_date).map(|date| date.to_string()).collect()
    };
    let codes = |spec: Spec, from: &str| -> Vec<&'static str> {
        spec.warnings(time(from)).iter().map(|warning| warning.code.as_str()).collect()
    };
    let bounded =
        |start: Option<&str>, end: Option<&str>| nightly().with_bounds(start.map(time), end.map(time)).unwrap();
    assert_eq!(codes(nightly(), "2026-11-15T00:00:00Z"), ["dst_gap", "dst_fold"]);
    assert_eq!(dates(nightly(), "2027-03-14T06:59:59Z"), ["2027-03-14", "2027-11-07", "2028-03-12"]);
    assert_eq!(dates(nightly(), "2027-03-14T07:00:00Z"), ["2027-11-07", "2028-03-12"]);
    // Between the first and the second 01:30 only the later one is ahead.
    let between = "2027-11-07T05:45:00Z";
    assert_eq!(dates(nightly(), between), ["2028-03-12", "2028-11-05"]);
    assert_eq!(dates(nightly().with_dst(BOTH), between), ["2028-03-12", "2028-11-05"]);
    assert_eq!(dates(nightly().with_dst(LAST), between), ["2027-11-07", "2028-03-12", "2028-11-05"]);

    let from = "2026-11-15T00:00:00Z";
    assert_eq!(codes(bounded(Some("2027-04-01T00:00:00Z"), None), from), ["dst_fold"]);
    assert_eq!(codes(bounded(None, Some("2027-04-01T00:00:00Z")), from), ["dst_gap"]);
    assert_eq!(codes(bounded(None, Some("2027-03-14T06:59:59Z")), from), [""; 0]);
    assert_eq!(codes(bounded(None, Some("2027-03-14T07:00:00Z")), from), ["dst_gap"]);
    // The end lies between the first 01:30, which fires, and the change.
    assert_eq!(codes(bounded(Some("2027-04-01T00:00:00Z"), Some("2027-11-07T05:30:00Z")), from), ["dst_fold"]);
    assert_eq!(codes(bounded(Some("2027-04-01T00:00:00Z"), Some("2027-11-07T05:29:59Z")), from), [""; 0]);
    // The year is bounded, and so is time.
    assert_eq!(codes(bounded(Some("2029-01-01T00:00:00Z"), None), from), [""; 0]);
    assert_eq!(spec("30 2 * * *", "America/New_York").warnings(Timestamp::MAX), []);
    assert_eq!(spec("30 2 * * *", "America/New_York").warnings(Timestamp::MIN), []);
}
