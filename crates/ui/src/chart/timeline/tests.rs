use jiff::SignedDuration;

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn event(what: What, from: &str, seconds: Option<i64>) -> Event {
    let until = seconds.map(|seconds| at(from) + SignedDuration::from_secs(seconds));
    Event { what, at: at(from), until, href: Some(format!("/runs/{from}")), runs: 1, zones: 0 }
}

fn row(key: &str, events: Vec<Event>) -> Row {
    Row {
        key: key.to_owned(),
        href: format!("/jobs/{key}"),
        paused: false,
        events,
        gaps: Vec::new(),
        bands: Vec::new(),
    }
}

/// A whole day in UTC, around noon.
fn with<T>(rows: &[Row], load: &[Load], look: impl FnOnce(&Timeline<'_>) -> T) -> T {
    let zone = Zone::utc();
    let runs_of = |row: &Row, from: Timestamp, to: Timestamp| format!("/runs?job={}&from={from}&to={to}", row.key);
    let (from, to, now) = (at("2026-11-15T00:00:00Z"), at("2026-11-16T00:00:00Z"), at("2026-11-15T12:00:00Z"));
    look(&Timeline { id: "t", zone: &zone, from, to, now, rows, load, outages: &[], runs_of: &runs_of })
}

fn drawn(rows: &[Row]) -> String {
    let drawn = with(rows, &[], timeline);
    assert!(!drawn.contains("NaN") && !drawn.contains("inf\"") && !drawn.contains("style"), "{drawn}");
    drawn
}

/// One run a minute, two seconds each.
fn minutely(what: impl Fn(i64) -> What, minutes: i64) -> Vec<Event> {
    let start = at("2026-11-15T00:00:00Z");
    let event = |minute: i64| {
        let at = start + SignedDuration::from_mins(minute);
        Event { what: what(minute), at, until: Some(at + SignedDuration::from_secs(2)), href: None, runs: 1, zones: 0 }
    };
    (0..minutes).map(event).collect()
}

#[test]
fn bars_reach_from_their_start_to_their_end() {
    let long = event(What::Run(RunStatus::Succeeded), "2026-11-15T06:00:00Z", Some(3 * 3_600));
    let drawn = drawn(&[row("a", vec![long])]);
    // A day is 978 wide; six hours are a quarter.
    assert!(
        drawn.contains("<rect class=\"c-ok\" x=\"454.5\" y=\"7\" width=\"122.3\" height=\"12\" rx=\"2\"/>"),
        "{drawn}"
    );
    assert!(drawn.contains("<title>a · 2026-11-15 06:00 · succeeded · 3\u{a0}h</title>"), "{drawn}");
    assert!(drawn.contains("<a href=\"/runs/2026-11-15T06:00:00Z\" aria-label=\"a · 2026-11-15 06:00"), "{drawn}");
}

#[test]
fn what_runs_grows_until_now_and_what_is_short_is_seen() {
    let running = event(What::Run(RunStatus::Running), "2026-11-15T06:00:00Z", None);
    let short = event(What::Run(RunStatus::Failed), "2026-11-15T18:00:00Z", Some(0));
    let drawn = drawn(&[row("a", vec![running, short])]);
    assert!(drawn.contains("fill=\"url(#t-run)\" x=\"454.5\" y=\"7\" width=\"244.5\""), "{drawn}");
    assert!(drawn.contains("fill=\"url(#t-bad)\" x=\"943.5\" y=\"7\" width=\"3\""), "{drawn}");
    assert!(drawn.contains("running · 6\u{a0}h") && drawn.contains(">now 12:00</text>"), "{drawn}");
}

#[test]
fn what_did_not_run_has_a_shape_of_its_own_and_the_future_is_outlined() {
    let drawn = drawn(&[row(
        "a",
        vec![
            event(What::Missed, "2026-11-15T03:00:00Z", None),
            event(What::Run(RunStatus::Skipped), "2026-11-15T06:00:00Z", None),
            event(What::Planned, "2026-11-15T18:00:00Z", Some(3_600)),
        ],
    )]);
    assert!(
        drawn.contains("<path class=\"c-missed\" transform=\"translate(326.3 7)\" d=\"M6 1l5 5-5 5-5-5z\"/>"),
        "{drawn}"
    );
    assert!(
        drawn.contains("<path class=\"c-skipped\" transform=\"translate(448.5 7)\" d=\"M6 1l5 9h-10z\"/>"),
        "{drawn}"
    );
    assert!(drawn.contains("<rect class=\"c-plan\" x=\"943.5\" y=\"7\" width=\"40.8\""), "{drawn}");
    assert!(drawn.contains("planned · about 1\u{a0}h</title>"), "{drawn}");
}

#[test]
fn what_lies_on_top_of_each_other_is_bundled() {
    let what = |minute| What::Run(if minute == 100 { RunStatus::Failed } else { RunStatus::Succeeded });
    let drawn = drawn(&[row("a", minutely(what, 720))]);
    // Half of the day in cells of 24: a failure colours one of them only.
    let bars = drawn.matches("<rect class=\"c-ok\"").count() - 1;
    assert!((13..=21).contains(&bars), "{bars}");
    assert_eq!(drawn.matches("fill=\"url(#t-bad)\" x").count(), 2, "one in the row, one in the legend");
    assert!(drawn.contains("runs: 35 succeeded, 1 failed</title>"), "{drawn}");
    assert!(drawn.contains("/runs?job=a&amp;from=2026-11-15T00:00:00Z&amp;to=2026-11-15T00:35:02Z"), "{drawn}");
    assert!(drawn.contains("class=\"c-count\""), "{drawn}");
}

#[test]
fn a_hundred_busy_rows_stay_drawable() {
    // Every tenth minute: fine enough to be apart in one row, too much in a hundred.
    let events = || minutely(|_| What::Planned, 1_440).into_iter().step_by(10).collect();
    let rows: Vec<Row> = (0..100).map(|index| row(&format!("job-{index}"), events())).collect();
    assert_eq!(drawn(&rows[..1]).matches("<rect class=\"c-plan\"").count(), 144);
    let marks = drawn(&rows).matches("<rect class=\"c-plan\"").count();
    assert!((1_000..=4_500).contains(&marks), "{marks}");
}

#[test]
fn names_are_text_and_paused_rows_say_so() {
    let mut nasty = row("<script>alert('x')</script> \u{202e}שלום 🛎", Vec::new());
    nasty.paused = true;
    let drawn = drawn(&[nasty]);
    assert!(!drawn.contains("<script>") && drawn.contains("&lt;script&gt;alert(&#39;x"), "{drawn}");
    assert!(drawn.contains(">paused</text>") && drawn.contains("class=\"c-paused\""), "{drawn}");
}

#[test]
fn the_axis_follows_the_clocks_of_the_zone() {
    let zone = Zone::get("Europe/Paris").unwrap();
    let (from, to) = (at("2026-10-24T22:00:00Z"), at("2026-10-25T10:00:00Z"));
    let runs_of = |_: &Row, _: Timestamp, _: Timestamp| String::new();
    let rows = [row("a", Vec::new())];
    let input =
        Timeline { id: "t", zone: &zone, from, to, now: to, rows: &rows, load: &[], outages: &[], runs_of: &runs_of };
    let drawn = timeline(&input);
    assert!(drawn.contains(">02:00 +02</text>") && drawn.contains(">02:00 +01</text>"), "{drawn}");
    assert!(drawn.contains("The clocks change from UTC+02 to UTC+01"), "{drawn}");
}

#[test]
fn the_lane_shows_how_many_runs_start() {
    let piece = |hour: i64, runs, predicted| {
        let start = at("2026-11-15T00:00:00Z") + SignedDuration::from_hours(hour);
        Load { from: start, to: start + SignedDuration::from_hours(1), runs, predicted }
    };
    let load = [piece(0, 2, false), piece(1, 2, false), piece(2, 0, false), piece(3, 8, true)];
    let drawn = with(&[row("a", Vec::new())], &load, timeline);
    assert!(drawn.contains("<title>2026-11-15 00:00–02:00 · 2 runs started in each hour</title>"), "{drawn}");
    assert!(drawn.contains("8 runs planned</title><rect class=\"c-foreseen\""), "{drawn}");
    assert_eq!(drawn.matches("class=\"c-load\"").count(), 1);
    let idle = with(&[row("a", Vec::new())], &[piece(0, 0, false)], timeline);
    assert!(!idle.contains("c-load") && !idle.contains("NaN"), "{idle}");
}

#[test]
fn events_outside_of_the_window_are_left_out() {
    let before = event(What::Run(RunStatus::Succeeded), "2026-11-14T22:00:00Z", Some(60));
    let into = event(What::Run(RunStatus::Canceled), "2026-11-14T23:00:00Z", Some(7_200));
    let after = event(What::Planned, "2026-11-16T00:00:01Z", None);
    let drawn = drawn(&[row("a", vec![before, into, after])]);
    assert!(drawn.contains("1 canceled; 0 missed, 0 planned."), "{drawn}");
    assert!(drawn.contains("<rect class=\"c-off\" x=\"210\" y=\"7\" width=\"40.8\""), "{drawn}");
    assert_eq!(self::drawn(&[]), "<p class=\"c-none\">No jobs to show.</p>");
}

#[test]
fn the_table_has_every_event() {
    let events = vec![
        event(What::Planned, "2026-11-15T18:00:00Z", Some(120)),
        event(What::Missed, "2026-11-15T03:00:00Z", None),
    ];
    let table = with(&[row("a<b", events)], &[], timeline_table);
    let missed = "<th scope=\"row\">a&lt;b</th><td>2026-11-15 03:00</td><td>missed</td><td>-</td>";
    let planned = "<td>2026-11-15 18:00</td><td>planned</td><td>2\u{a0}m</td>";
    assert!(table.find(missed).unwrap() < table.find(planned).unwrap(), "{table}");
}

#[test]
fn the_agenda_is_in_order_with_a_line_for_now() {
    let daily = row("daily", vec![event(What::Planned, "2026-11-15T18:00:00Z", Some(2))]);
    let busy = row("busy", minutely(|_| What::Run(RunStatus::Succeeded), 90));
    let agenda = with(&[daily, busy], &[], agenda);
    let place = |text: &str| agenda.find(text).unwrap_or_else(|| panic!("{text}: {agenda}"));
    assert_eq!(agenda.matches("<li id=\"t-now\" class=\"c-nowline\">").count(), 1);
    assert!(place("<h3>Sun 15 Nov 2026</h3>") < place("succeeded · 60 until 00:59"));
    assert!(place("succeeded · 30 until 01:29") < place("now 12:00"));
    assert!(place("now 12:00") < place("planned · about 2.0\u{a0}s"));
    assert!(agenda.contains("<time datetime=\"2026-11-15T18:00:00Z\">18:00</time>"), "{agenda}");
    let none = with(&[], &[], super::agenda);
    assert!(none.contains("Nothing in this time."), "{none}");
}

#[test]
fn a_long_agenda_keeps_what_is_near() {
    let rows: Vec<Row> =
        (0..20).map(|index| row(&format!("job-{index}"), minutely(|_| What::Planned, 1_440))).collect();
    let agenda = with(&rows, &[], agenda);
    assert_eq!(agenda.matches("<time ").count(), 200);
    assert!(agenda.contains("280 more are farther away from now."), "{agenda}");
}

#[test]
fn a_slot_of_a_pause_is_not_missed() {
    let held = |from| event(What::Paused, from, None);
    let drawn = drawn(&[row("a", vec![held("2026-11-15T03:00:00Z"), held("2026-11-15T03:01:00Z")])]);
    assert!(drawn.contains("<path class=\"c-held\" transform") && !drawn.contains("class=\"c-missed\" t"), "{drawn}");
    assert!(drawn.contains("0 missed, 2 paused, 0 planned.") && drawn.contains(" · 2 paused</title>"), "{drawn}");
}

#[test]
fn no_number_lies_over_another() {
    // Runs up to now, whose number has no room but beside them; and fires from now on, which have theirs there.
    let start = at("2026-11-15T11:56:00Z");
    let events = (0..60).map(|minute| {
        let at = start + SignedDuration::from_mins(minute);
        let what = if minute < 4 { What::Run(RunStatus::Succeeded) } else { What::Planned };
        Event { what, at, until: Some(at + SignedDuration::from_secs(2)), href: None, runs: 1, zones: 0 }
    });
    let drawn = drawn(&[row("a", events.collect())]);
    let number = |text: &str, name: &str| -> f64 {
        let rest = text.split_once(&format!(" {name}=\"")).unwrap().1;
        rest.split('"').next().unwrap().parse().unwrap()
    };
    let chips = drawn.split("<rect class=\"c-chip\"").skip(1);
    let mut chips: Vec<(f64, f64)> = chips.map(|chip| (number(chip, "x"), number(chip, "width"))).collect();
    assert!(!chips.is_empty(), "{drawn}");
    chips.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(chips.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0 + 0.2), "{chips:?}");
}

#[test]
fn gaps_and_outages_are_hatched_and_say_why() {
    let hatch = |from: &str, until: &str, title: &str| {
        let title = title.to_owned();
        Hatch { from: at(from), until: at(until), title }
    };
    let mut gapped = row("a", Vec::new());
    gapped.gaps = vec![
        hatch("2026-11-15T06:00:00Z", "2026-11-15T12:00:00Z", "a · 9 slots without a run: missed"),
        hatch("2026-11-15T18:00:00Z", "2026-11-15T18:00:00Z", "a · 1 slot without a run: frozen"),
        hatch("2026-11-14T18:00:00Z", "2026-11-14T19:00:00Z", "yesterday"),
    ];
    let outages = [hatch("2026-11-14T23:00:00Z", "2026-11-15T06:00:00Z", "Nothing ran: 3 slots of 1 jobs passed.")];
    let rows = [gapped];
    let drawn = with(&rows, &[], |input| timeline(&Timeline { outages: &outages, rows: &rows, ..copy(input) }));
    let rect = |title: &str, class: &str, place: &str| {
        let rect = format!("<title>{title}</title><rect class=\"{class}\" fill=\"url(#t-idle)\" {place}");
        assert!(drawn.contains(&rect), "{rect}: {drawn}");
    };
    rect("a · 9 slots without a run: missed", "c-gap", "x=\"454.5\" y=\"33\" width=\"244.5\" height=\"20\"/>");
    rect("a · 1 slot without a run: frozen", "c-gap", "x=\"943.5\" y=\"33\" width=\"2\" height=\"20\"/>");
    let whole = "x=\"210\" y=\"30\" width=\"244.5\" height=\"26\"/>";
    rect("Nothing ran: 3 slots of 1 jobs passed.", "c-outage", whole);
    assert!(!drawn.contains("yesterday") && drawn.matches("<pattern id=\"t-idle\"").count() == 1, "{drawn}");
    assert!(drawn.contains("planned. Nothing ran: 3 slots of 1 jobs passed."), "also in words: {drawn}");
    let plain = with(&[row("a", Vec::new())], &[], timeline);
    assert!(!plain.contains("t-idle"), "{plain}");
}

fn copy<'a>(input: &Timeline<'a>) -> Timeline<'a> {
    Timeline { ..*input }
}
