//! The scenes of the gallery.

use everbell_core::{RunStatus, Zone};
use jiff::civil::date;
use jiff::{SignedDuration, Timestamp, ToSpan};

use super::Scene;
use crate::chart::*;

const NASTY: &str = "<script>alert('x')</script> \u{202e}\"שלום\" 🛎 and more than fits";

/// A deterministic source of pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// A span around this one, now and then much longer.
    fn around(&mut self, millis: i64) -> i64 {
        let long = if self.below(18) == 0 { 4 } else { 1 };
        millis * (60 + self.below(90) as i64) / 100 * long
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn hours(count: i64) -> SignedDuration {
    SignedDuration::from_hours(count)
}

fn paris() -> Zone {
    Zone::get("Europe/Paris").unwrap()
}

const NOW: &str = "2026-11-15T12:41:00Z";

pub(super) fn all() -> Vec<Scene> {
    let scene = |title, wide, html| Scene { title, wide, html };
    vec![
        scene("Runs per hour", false, hourly(ordinary, "b-day")),
        scene("Start delay per hour", false, lags("l-day", 1)),
        scene("Runs per hour, every status", false, hourly(|dice, _| every(dice), "b-all")),
        scene("Start delay in trouble, with gaps", false, lags("l-bad", 400)),
        scene("History in lists", false, strips()),
        scene("Running now", false, gauges()),
        scene("Last 90 runs, hourly", true, page_strip("s-page", 1, 90)),
        scene("Last 90 runs, daily, only some yet", true, page_strip("s-daily", 24, 61)),
        scene("Durations", true, durations("d-week", 168, 2_000, 1)),
        scene("Durations of many runs, far apart", false, durations("d-many", 3_000, 2_000, 40)),
        scene("Durations, one run", false, durations("d-one", 1, 800, 1)),
        scene("Days", false, days()),
        scene("Nothing yet", false, hourly(|_, _| Counts::default(), "b-none")),
        scene("Timeline", true, day_timeline()),
        scene("Timeline over a change of the clocks", true, autumn()),
        scene("Tables", true, tables()),
        scene("Chain", false, forked_chain()),
    ]
}

fn ordinary(dice: &mut Dice, hour: i64) -> Counts {
    let busy = if (6..18).contains(&hour) { 160 } else { 60 };
    let failed = if hour == 9 { 31 } else { dice.below(9) / 7 };
    Counts::new([
        (RunStatus::Succeeded, busy + dice.below(50)),
        (RunStatus::Failed, failed),
        (RunStatus::Skipped, dice.below(12)),
        (RunStatus::Running, if hour == 23 { 12 } else { 0 }),
    ])
}

fn every(dice: &mut Dice) -> Counts {
    Counts::new(RunStatus::ALL.iter().map(|status| (*status, dice.below(5))))
}

fn buckets(mut runs: impl FnMut(&mut Dice, i64) -> Counts) -> Vec<Bucket> {
    let (mut dice, start) = (Dice(7), at("2026-11-14T13:00:00Z"));
    let bucket = |hour: i64| Bucket {
        from: start + hours(hour),
        to: start + hours(hour + 1),
        runs: runs(&mut dice, hour),
        href: Some(format!("/runs?from={}&to={}", start + hours(hour), start + hours(hour + 1))),
    };
    (0..24).map(bucket).collect()
}

fn hourly(runs: impl FnMut(&mut Dice, i64) -> Counts, id: &str) -> String {
    bars(&Bars { id, title: "Runs per hour", zone: &paris(), buckets: &buckets(runs) })
}

fn pieces(scale: i64) -> Vec<LagPiece> {
    let (mut dice, start) = (Dice(5), at("2026-11-14T13:00:00Z"));
    let mut lags = |hour: i64| {
        let p50_ms = (8 + dice.below(9) as i64) * if (8..13).contains(&hour) { scale } else { 1 };
        Lags { runs: 60, p50_ms, p95_ms: p50_ms * 2 + 9, max_ms: p50_ms * (3 + dice.below(3) as i64) + 20 }
    };
    let gap = |hour: i64| scale > 1 && [3, 5, 6, 18].contains(&hour);
    let piece = |hour: i64| LagPiece {
        from: start + hours(hour),
        to: start + hours(hour + 1),
        lag: (!gap(hour)).then(|| lags(hour)),
    };
    (0..24).map(piece).collect()
}

fn lags(id: &str, scale: i64) -> String {
    lag(&Lag { id, title: "Start delay per hour", zone: &paris(), pieces: &pieces(scale), threshold_ms: Some(1_000) })
}

fn strip_runs(count: usize, every_hours: i64, status: impl Fn(usize, &mut Dice) -> RunStatus) -> Vec<StripRun> {
    let mut dice = Dice(count as u64 * 31 + 5);
    let run = |index: usize| {
        let status = status(index, &mut dice);
        StripRun {
            at: at("2026-11-15T12:00:00Z") - hours((count - 1 - index) as i64 * every_hours),
            status,
            took_ms: (!matches!(status, RunStatus::Skipped | RunStatus::Pending)).then(|| dice.around(2_000)),
            version: if index * 3 > count * 2 { 4 } else { 3 },
            note: (status == RunStatus::Failed).then(|| NASTY.to_owned()),
            href: Some(format!("/runs/{index:036}")),
        }
    };
    (0..count).map(run).collect()
}

fn some(_: usize, dice: &mut Dice) -> RunStatus {
    match dice.below(30) {
        0 | 1 => RunStatus::Failed,
        2 => RunStatus::Skipped,
        3 => RunStatus::Canceled,
        _ => RunStatus::Succeeded,
    }
}

fn strips() -> String {
    let rows = [
        ("daily-briefing", strip_runs(30, 24, |_, _| RunStatus::Succeeded)),
        (
            "email-digest-hourly",
            strip_runs(30, 1, |index, _| if index > 24 { RunStatus::Failed } else { RunStatus::Succeeded }),
        ),
        (
            "report-5m",
            strip_runs(30, 1, |index, dice| if index == 29 { RunStatus::Running } else { some(index, dice) }),
        ),
        ("new-job", strip_runs(4, 1, |index, _| if index == 3 { RunStatus::Pending } else { RunStatus::Succeeded })),
        ("every-status", strip_runs(24, 1, |index, _| RunStatus::ALL[index % 6])),
        ("never-ran", Vec::new()),
    ];
    let row = |(index, (job, runs)): (usize, &(&str, Vec<StripRun>))| {
        let (id, zone) = (format!("s-{index}"), paris());
        let drawn = strip(&Strip { id: &id, job, size: StripSize::List, zone: &zone, runs });
        format!("<tr><td>{job}</td><td>{drawn}</td></tr>")
    };
    let rows: String = rows.iter().enumerate().map(row).collect();
    format!("{}<table class=\"rows\"><tbody>{rows}</tbody></table>", strip_legend("s-key"))
}

fn page_strip(id: &str, every_hours: i64, count: usize) -> String {
    let runs = strip_runs(count, every_hours, some);
    strip(&Strip { id, job: NASTY, size: StripSize::Page, zone: &paris(), runs: &runs })
}

fn gauges() -> String {
    let gauge = |(index, (elapsed_ms, expected_ms)): (usize, (i64, Option<i64>))| {
        let drawn = gauge(&Gauge { id: &format!("g-{index}"), job: "report-5m", elapsed_ms, expected_ms });
        format!("<div>{drawn}</div>")
    };
    let given =
        [(1_000, Some(60_000)), (40_000, Some(60_000)), (59_000, Some(60_000)), (200_000, Some(60_000)), (5, None)];
    let gauges: String = given.into_iter().enumerate().map(gauge).collect();
    format!("<div class=\"gauges\">{gauges}</div>")
}

fn durations(id: &str, count: i64, typical: i64, spread: i64) -> String {
    let (mut dice, from, to) = (Dice(11), at("2026-11-08T12:00:00Z"), at("2026-11-15T12:00:00Z"));
    let minutes = 7 * 24 * 60;
    let run = |index: i64| {
        let status = some(0, &mut dice);
        let slow = 1 + dice.below(spread as u64 + 1).pow(2) as i64 / spread.max(1);
        DotRun {
            at: from + SignedDuration::from_mins(minutes * (index + 1) / (count + 1)),
            took_ms: dice.around(typical) * slow,
            status,
            href: Some(format!("/runs/{index}")),
        }
    };
    let runs: Vec<DotRun> = (0..count).map(run).collect();
    let mut lengths: Vec<i64> = runs.iter().map(|run| run.took_ms).collect();
    lengths.sort_unstable();
    let (p50_ms, p95_ms) = (lengths.get(lengths.len() / 2).copied(), lengths.get(lengths.len() * 95 / 100).copied());
    let interval_ms = Some(60_000);
    dots(&Dots { id, title: "Durations", zone: &paris(), from, to, runs: &runs, p50_ms, p95_ms, interval_ms })
}

fn calendar_days() -> Vec<Day> {
    let mut dice = Dice(23);
    let today = date(2026, 11, 15);
    let day = |ago: i64| {
        let date = today - ago.days();
        let weekend = date.weekday().to_monday_zero_offset() > 4;
        let runs = match (ago < 0 || weekend, dice.below(24)) {
            (true, _) => Counts::default(),
            (_, 0) => Counts::new([(RunStatus::Succeeded, 20), (RunStatus::Failed, 2)]),
            (_, 1) => Counts::new([(RunStatus::Skipped, 3)]),
            (_, 2) => Counts::from_statuses([RunStatus::Canceled]),
            _ => Counts::new([(RunStatus::Succeeded, 1 + dice.below(24))]),
        };
        let planned = if ago < 0 && !weekend { 24 } else { 0 };
        Day { date, runs, planned, href: Some(format!("/runs?day={date}")) }
    };
    (-14..150).map(day).collect()
}

fn calendar_input(days: &[Day]) -> Calendar<'_> {
    Calendar { id: "c-days", job: "daily-briefing", today: date(2026, 11, 15), weeks: WEEKS, weeks_ahead: 2, days }
}

fn days() -> String {
    calendar(&calendar_input(&calendar_days()))
}

/// Runs at regular times before now, and plans after it.
fn row(key: &str, every_mins: i64, takes_secs: i64, status: impl Fn(i64) -> What) -> Row {
    let (mut dice, now, start) = (Dice(every_mins as u64), at(NOW), at("2026-11-15T00:00:00Z"));
    let event = |index: i64| {
        let at = start + SignedDuration::from_mins(index * every_mins);
        let until = Some(at + SignedDuration::from_millis(dice.around(takes_secs * 1_000)));
        let href = Some(format!("/runs/{key}-{index}").replace(NASTY, "x"));
        let what = if at > now { What::Planned } else { status(index) };
        Event { what, at, until, href, runs: 1, zones: 0 }
    };
    let events = (0..24 * 60 / every_mins).map(event).collect();
    Row { key: key.to_owned(), href: "/jobs/x".to_owned(), paused: false, events, gaps: Vec::new(), bands: Vec::new() }
}

fn timeline_rows() -> Vec<Row> {
    let ok = |_: i64| What::Run(RunStatus::Succeeded);
    let mut digest = row("email-digest-hourly", 60, 30, |index| match index {
        7 => What::Missed,
        8 => What::Paused,
        4 | 5 | 9 => What::Run(RunStatus::Failed),
        _ => What::Run(RunStatus::Succeeded),
    });
    let mut etl = row("warehouse-load", 240, 5_400, ok);
    if let Some(last) = etl.events.iter_mut().rfind(|event| event.what != What::Planned) {
        (last.what, last.until) = (What::Run(RunStatus::Running), None);
    }
    digest.paused = true;
    vec![
        row("report-5m", 5, 40, |index| What::Run(if index == 77 { RunStatus::Failed } else { RunStatus::Succeeded })),
        row("heartbeat", 1, 2, |index| {
            What::Run(if index % 90 == 0 { RunStatus::Skipped } else { RunStatus::Succeeded })
        }),
        etl,
        digest,
        row("knockout-search", 180, 900, |index| What::Run(RunStatus::ALL[(index % 6) as usize])),
        row("daily-briefing", 480, 20, ok),
        row(NASTY, 360, 3_000, |_| What::Run(RunStatus::Canceled)),
        Row {
            key: "single-run-sample".to_owned(),
            href: "/jobs/y".to_owned(),
            paused: false,
            events: Vec::new(),
            gaps: vec![hatch("02:10", "03:40", "single-run-sample · 90 slots without a run: coalesced")],
            bands: vec![
                band(What::Planned, "12:10", "18:00", 10_500, "30/min"),
                band(What::Frozen, "18:00", "21:30", 6_300, "release weekend"),
                band(What::Planned, "21:30", "21:31", 30, "30/min"),
            ],
        },
    ]
}

fn hatch(from: &str, until: &str, title: &str) -> Hatch {
    let at = |time: &str| at(&format!("2026-11-15T{time}:00Z"));
    Hatch { from: at(from), until: at(until), title: title.to_owned() }
}

fn band(what: What, from: &str, until: &str, slots: u64, note: &str) -> Band {
    let at = |time: &str| at(&format!("2026-11-15T{time}:00Z"));
    Band { what, from: at(from), until: at(until), slots, note: note.to_owned() }
}

fn with_day<T>(rows: &[Row], look: impl Fn(&Timeline<'_>) -> T) -> T {
    let (zone, mut dice) = (paris(), Dice(3));
    let (from, to, now) = (at("2026-11-15T00:41:00Z"), at("2026-11-16T00:41:00Z"), at(NOW));
    let runs_of = |_: &Row, from: Timestamp, to: Timestamp| format!("/runs?from={from}&to={to}");
    let piece = |index: i64| {
        let start = from + SignedDuration::from_mins(index * 15);
        let end = start + SignedDuration::from_mins(15);
        Load { from: start, to: end, runs: 2 + dice.below(9) * u64::from(index % 12 < 7), predicted: start > now }
    };
    let load: Vec<Load> = (0..96).map(piece).collect();
    let outages = [hatch("05:00", "05:40", "Nothing ran: 40 slots of 3 jobs passed.")];
    let (load, runs_of) = (&load, &runs_of);
    look(&Timeline { id: "t-day", zone: &zone, from, to, now, rows, load, outages: &outages, runs_of })
}

fn day_timeline() -> String {
    let mut rows = timeline_rows();
    rows.extend((0..9).map(|index| row(&format!("also-{index}"), 60, 20, |_| What::Run(RunStatus::Succeeded))));
    with_day(&rows, |input| format!("{}{}", timeline(input), agenda(input)))
}

fn autumn() -> String {
    let (zone, from, to) = (paris(), at("2026-10-24T20:00:00Z"), at("2026-10-25T08:00:00Z"));
    let event = |index: i64| {
        let at = from + SignedDuration::from_mins(20 + index * 60);
        let until = Some(at + SignedDuration::from_mins(25));
        Event { what: What::Run(RunStatus::Succeeded), at, until, href: None, runs: 1, zones: 0 }
    };
    let rows = [Row {
        key: "hourly".to_owned(),
        href: "/jobs/hourly".to_owned(),
        paused: false,
        events: (0..12).map(event).collect(),
        gaps: Vec::new(),
        bands: Vec::new(),
    }];
    let runs_of = |_: &Row, _: Timestamp, _: Timestamp| String::new();
    let (rows, runs_of) = (&rows, &runs_of);
    timeline(&Timeline { id: "t-dst", zone: &zone, from, to, now: to, rows, load: &[], outages: &[], runs_of })
}

fn tables() -> String {
    let (zone, buckets, pieces, days) = (paris(), buckets(ordinary), pieces(1), calendar_days());
    let bars = bars_table(&Bars { id: "x", title: "Runs per hour", zone: &zone, buckets: &buckets[..4] });
    let (title, pieces) = ("Start delay per hour", &pieces[..4]);
    let lags = lag_table(&Lag { id: "x", title, zone: &zone, pieces, threshold_ms: None });
    let days = calendar_table(&calendar_input(&days[..20]));
    let rows = [row("daily-briefing", 480, 20, |_| What::Run(RunStatus::Succeeded))];
    format!("{bars}{lags}{days}{}", with_day(&rows, timeline_table))
}

/// A chain that forks and meets again, with each condition.
fn forked_chain() -> String {
    let one = |key: &str, arrows: &[(usize, Condition)]| ChainBox {
        key: key.to_owned(),
        href: format!("/jobs/{}", crate::markup::url_part(key)),
        arrows: arrows.iter().map(|(from, condition)| ChainArrow { from: *from, condition: *condition }).collect(),
    };
    let boxes = [
        one("extract", &[]),
        one(NASTY, &[(0, Condition::Success)]),
        one("prices", &[(0, Condition::Failure)]),
        one("load", &[(1, Condition::Success), (2, Condition::Any)]),
        one("report", &[(3, Condition::Success), (0, Condition::Any)]),
    ];
    chain(&ChainPicture { id: "chain", job: "load", boxes: &boxes })
}
