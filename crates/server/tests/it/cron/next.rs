//! `everbell cron next EXPR`.

use super::{Ran, document, everbell, keys, refusal, stdout};

const NEW_YORK: [&str; 5] = ["cron", "next", "30 2 * * *", "--tz", "America/New_York"];

/// `everbell cron next "30 2 * * *" --tz America/New_York` over the change of March 2027.
fn over_the_gap(more: &[&str]) -> String {
    stdout(&[&NEW_YORK, ["--from", "2027-03-13T00:00:00Z", "--count", "3"].as_slice(), more].concat())
}

/// 01:30 in New York on the day when clocks go back in 2027.
fn over_the_fold(more: &[&str]) -> String {
    let args =
        ["cron", "next", "30 1 * * *", "--tz", "America/New_York", "--from", "2027-11-06T12:00:00Z", "--count", "3"];
    stdout(&[&args, more].concat())
}

#[test]
fn a_time_in_a_gap_is_shifted() {
    assert_eq!(
        over_the_gap(&[]),
        "Sat\t2027-03-13\t02:30:00\tEST\t2027-03-13T07:30:00Z\tin 7h 30m\n\
         Sun\t2027-03-14\t03:00:00\tEDT\t2027-03-14T07:00:00Z\tin 1d 7h\tshifted: 02:30 does not exist\n\
         Mon\t2027-03-15\t02:30:00\tEDT\t2027-03-15T06:30:00Z\tin 2d 6h\n"
    );
    assert_eq!(
        over_the_gap(&["--json"]),
        "{\"items\":[\
         {\"at\":\"2027-03-13T07:30:00Z\",\"local\":\"2027-03-13T02:30:00-05:00[America/New_York]\"},\
         {\"at\":\"2027-03-14T07:00:00Z\",\"local\":\"2027-03-14T03:00:00-04:00[America/New_York]\",\
         \"note\":\"shifted: 02:30 does not exist\"},\
         {\"at\":\"2027-03-15T06:30:00Z\",\"local\":\"2027-03-15T02:30:00-04:00[America/New_York]\"}]}\n"
    );
}

#[test]
fn a_time_in_a_gap_is_skipped_on_request() {
    assert_eq!(
        over_the_gap(&["--dst-gap", "skip"]),
        "Sat\t2027-03-13\t02:30:00\tEST\t2027-03-13T07:30:00Z\tin 7h 30m\n\
         Mon\t2027-03-15\t02:30:00\tEDT\t2027-03-15T06:30:00Z\tin 2d 6h\n\
         Tue\t2027-03-16\t02:30:00\tEDT\t2027-03-16T06:30:00Z\tin 3d 6h\n"
    );
    assert_eq!(
        over_the_gap(&["--dst-gap=skip", "--json"]),
        "{\"items\":[\
         {\"at\":\"2027-03-13T07:30:00Z\",\"local\":\"2027-03-13T02:30:00-05:00[America/New_York]\"},\
         {\"at\":\"2027-03-15T06:30:00Z\",\"local\":\"2027-03-15T02:30:00-04:00[America/New_York]\"},\
         {\"at\":\"2027-03-16T06:30:00Z\",\"local\":\"2027-03-16T02:30:00-04:00[America/New_York]\"}]}\n"
    );
}

#[test]
fn a_time_that_happens_twice_fires_as_asked() {
    let first = "Sun\t2027-11-07\t01:30:00\tEDT\t2027-11-07T05:30:00Z\tin 17h 30m\tfirst 01:30\n";
    let second = "Sun\t2027-11-07\t01:30:00\tEST\t2027-11-07T06:30:00Z\tin 18h 30m\tsecond 01:30\n";
    let monday = "Mon\t2027-11-08\t01:30:00\tEST\t2027-11-08T06:30:00Z\tin 1d 18h\n";
    let tuesday = "Tue\t2027-11-09\t01:30:00\tEST\t2027-11-09T06:30:00Z\tin 2d 18h\n";
    assert_eq!(over_the_fold(&[]), [first, monday, tuesday].concat());
    assert_eq!(over_the_fold(&["--dst-fold", "first"]), [first, monday, tuesday].concat());
    assert_eq!(over_the_fold(&["--dst-fold", "last"]), [second, monday, tuesday].concat());
    assert_eq!(over_the_fold(&["--dst-fold", "both"]), [first, second, monday].concat());
}

#[test]
fn five_fires_in_utc_are_shown_unless_asked_otherwise() {
    let shown = stdout(&["cron", "next", "*/15 * * * *", "--from", "2026-11-15T13:42:00Z"]);
    assert_eq!(shown.lines().count(), 5);
    assert!(shown.starts_with("Sun\t2026-11-15\t13:45:00\tUTC\t2026-11-15T13:45:00Z\tin 3m\n"), "{shown}");
    assert_eq!(stdout(&["cron", "next", "@hourly", "--count", "10000"]).lines().count(), 10_000);
}

#[test]
fn from_is_exclusive() {
    let shown = stdout(&["cron", "next", "@daily", "--from", "2027-03-13T00:00:00Z", "--count=1"]);
    assert_eq!(shown, "Sun\t2027-03-14\t00:00:00\tUTC\t2027-03-14T00:00:00Z\tin 1d\n");
}

#[test]
fn times_without_an_offset_are_read_in_the_zone() {
    for from in ["2027-03-13T00:00", "2027-03-13 00:00", "2027-03-13", "2027-03-13T00:00:00[America/New_York]"] {
        let shown = stdout(&[&NEW_YORK, ["--from", from, "--count", "1"].as_slice()].concat());
        assert_eq!(shown, "Sat\t2027-03-13\t02:30:00\tEST\t2027-03-13T07:30:00Z\tin 2h 30m\n", "{from}");
    }
    for from in ["now", "+15m", "-2h", "tomorrow 08:00", "today 08:00"] {
        assert_eq!(stdout(&[&NEW_YORK, ["--from", from].as_slice()].concat()).lines().count(), 5, "{from}");
    }
}

#[test]
fn bounds_are_inclusive_and_end_the_list() {
    let bounded = |more: &[&str]| {
        let args = ["cron", "next", "@daily", "--from", "2027-03-01T12:00:00Z", "--start-at", "2027-03-13"];
        everbell(&[&args, more].concat())
    };
    let ran = bounded(&["--end-at", "2027-03-14", "--json"]);
    assert_eq!(
        ran.stdout,
        "{\"items\":[{\"at\":\"2027-03-13T00:00:00Z\",\"local\":\"2027-03-13T00:00:00+00:00[UTC]\"},\
         {\"at\":\"2027-03-14T00:00:00Z\",\"local\":\"2027-03-14T00:00:00+00:00[UTC]\"}]}\n"
    );
    let ran = bounded(&["--end-at", "2027-03-13"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(2), "error: --end-at must be after --start-at\n"));
}

#[test]
fn a_schedule_that_is_over_says_so() {
    let args = ["cron", "next", "@daily", "--from", "2027-03-14T00:00:00Z", "--end-at", "2027-03-14"];
    let over = Ran { stdout: String::new(), stderr: "no further times\n".to_owned(), code: Some(0) };
    assert_eq!(everbell(&args), over);
    assert_eq!(stdout(&[&args, ["--json"].as_slice()].concat()), "{\"items\":[]}\n");
}

#[test]
fn a_fixed_rate_counts_from_its_start() {
    let fixed = |more: &[&str]| {
        let args = ["cron", "next", "@every 90s", "--from", "2027-03-13T00:00:30Z", "--count", "1"];
        stdout(&[&args, more].concat())
    };
    assert_eq!(fixed(&[]), "Sat\t2027-03-13\t00:02:00\tUTC\t2027-03-13T00:02:00Z\tin 1m 30s\n");
    assert_eq!(
        fixed(&["--start-at", "2027-03-13T00:00:10Z"]),
        "Sat\t2027-03-13\t00:01:40\tUTC\t2027-03-13T00:01:40Z\tin 1m 10s\n"
    );
}

#[test]
fn documents_have_these_keys() {
    let shown = document(&over_the_gap(&["--json"]));
    assert_eq!(keys(&shown), ["items"]);
    assert_eq!(keys(&shown["items"][0]), ["at", "local"]);
    assert_eq!(keys(&shown["items"][1]), ["at", "local", "note"]);
}

#[test]
fn bad_times_are_refused() {
    let from = |text| refusal(&[&NEW_YORK, ["--from", text].as_slice()].concat());
    assert_eq!(
        from("2027-03-14 02:30"),
        "error: --from: 2027-03-14 02:30 does not exist in America/New_York: clocks go forward and skip it\n  \
         hint: give an offset, such as `2027-03-14T03:30:00-04:00`\n"
    );
    assert_eq!(
        from("2027-11-07 01:30"),
        "error: --from: 2027-11-07 01:30 happens twice in America/New_York: clocks go back, so it is \
         2027-11-07T05:30:00Z or 2027-11-07T06:30:00Z\n  \
         hint: give an offset: `2027-11-07T01:30:00-04:00` or `2027-11-07T01:30:00-05:00`\n"
    );
    assert_eq!(
        from("1850-01-01T00:00:00Z"),
        "error: --from: `1850-01-01T00:00:00Z` is outside the years 1900 to 2199\n"
    );
    let soon = refusal(&["cron", "next", "@daily", "--end-at", "soon"]);
    assert!(soon.starts_with("error: --end-at: `soon` is not a time\n  hint: use RFC 3339"), "{soon}");
}

#[test]
fn the_edge_of_time_ends_the_list() {
    let ran = everbell(&["cron", "next", "@yearly", "--from", "2199-06-01T00:00:00Z"]);
    assert_eq!((ran.stderr.as_str(), ran.code), ("no further times\n", Some(0)));
}
