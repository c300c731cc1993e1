//! `cron`: the next time, parsing and counting.

use std::fmt::Write;
use std::hint::black_box;

use jiff::Timestamp;

use crate::measure::{self, Timing, Workload};
use crate::rivals::{self, Case, Rival, STEPS};
use crate::table::{Table, thousands};

/// Expressions as everbell reads them and as the crate `cron` does.
const EXPRESSIONS: [(&str, &str); 4] = [
    ("*/5 * * * *", "0 */5 * * * *"),
    ("0 9 * * 1-5", "0 0 9 * * 2-6"),
    ("0 0 29 2 *", "0 0 0 29 2 *"),
    ("0 0 13 * 5", "0 0 0 13 * 6"),
];
const ZONES: [&str; 2] = ["UTC", "America/New_York"];
const STARTS: usize = 1_000;

pub(crate) fn run() {
    let starts = starts();
    let mut next = Columns::new();
    let mut walk = Columns::new();
    let mut parse = Columns::new();
    let mut notes = Vec::new();
    for (expression, cron_dialect) in EXPRESSIONS {
        for zone in ZONES {
            let rivals = rivals::all(Case { expression, cron_dialect, zone }, &starts);
            notes.extend(differences(expression, zone, &rivals));
            let (mut nexts, mut walks, mut parses) = (Vec::new(), Vec::new(), Vec::new());
            for rival in rivals {
                nexts.push(rival.next);
                walks.push(rival.walk);
                parses.push(rival.parse);
            }
            next.row(expression, zone, &measure::time(&nexts));
            walk.row(expression, zone, &measure::time(&walks));
            // A zone is no part of the text, except for cronexpr.
            if zone == "UTC" {
                parse.row(expression, zone, &measure::time(&parses));
            }
        }
    }
    next.table.print(&format!("ns for the next time after each of {STARTS} instants in 2000-2039"));
    walk.table.print(&format!("ns for each of the next {STEPS} times"));
    println!(
        "\n`ratio`: the fastest of the others to everbell. `±`: half the distance between the quarters of nine rounds."
    );
    println!(
        "Each crate is given and gives its own type for time; `cron` is given seconds and counts weekdays from 1."
    );
    for note in notes {
        println!("* {note}");
    }
    parse.table.print("ns to parse");
    many_seconds();
}

/// Spread over forty years, at no special second.
fn starts() -> Vec<i64> {
    const FROM: u64 = 946_684_800;
    const SECONDS: u64 = 40 * 31_556_952;
    let step = |n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % SECONDS;
    (1..=STARTS as u64).map(|n| (FROM + step(n)) as i64).collect()
}

/// A table with a column for each crate.
struct Columns {
    table: Table,
}

impl Columns {
    fn new() -> Columns {
        Columns { table: Table::new(2, &["expression", "zone", "everbell", "cron", "croner", "cronexpr", "ratio"]) }
    }

    fn row(&mut self, expression: &str, zone: &str, timings: &[Timing]) {
        let [everbell, others @ ..] = timings else { return };
        let fastest = others.iter().map(|timing| timing.median).fold(f64::INFINITY, f64::min);
        let mut cells = vec![format!("`{expression}`"), zone.to_owned()];
        cells.extend(timings.iter().copied().map(cell));
        cells.push(format!("{:.1}", fastest / everbell.median));
        self.table.row(cells);
    }
}

fn cell(timing: Timing) -> String {
    format!("{} ±{:.0}%", thousands(timing.median.round() as u64), timing.spread * 100.0)
}

/// Lists the answers that differ: a crate that computes something else cannot be compared by time.
fn differences(expression: &str, zone: &str, rivals: &[Rival]) -> Vec<String> {
    let [everbell, others @ ..] = rivals else { return Vec::new() };
    let mut notes = Vec::new();
    for other in others {
        let pairs = || everbell.answers.iter().zip(&other.answers);
        let differ = pairs().filter(|(ours, theirs)| ours != theirs).count();
        if differ > 0 {
            let errors = pairs().filter(|(_, theirs)| theirs.is_none()).count();
            let mut note = format!("`{expression}` in {zone}: {} answers {differ} of {STARTS} differently", other.name);
            if errors > 0 {
                let _ = write!(note, ", {errors} of them with an error");
            } else if other.name == "cron" && expression == "0 0 13 * 5" {
                note.push_str(": it joins the two day fields with \"and\"");
            }
            notes.push(note);
        }
    }
    notes
}

/// Measures the two questions of catching up after a long time: how many slots were missed, and which was the last?
fn many_seconds() {
    let instant = |second| Timestamp::from_second(second).expect("a second of our century");
    let (from, until) = (instant(1_500_000_000), instant(1_500_000_000 + 10 * 31_556_952));
    let mut table = Table::new(1, &["ten years of `* * * * * *`", "count_between", "prev_at_or_before", "slots"]);
    for zone in ZONES {
        let spec = rivals::everbell_spec("* * * * * *", zone);
        let workloads = [
            Workload { items: 1, pass: Box::new(|| spec.count_between(black_box(from), until) as i64) },
            Workload {
                items: 1,
                pass: Box::new(|| spec.prev_at_or_before(black_box(until)).map_or(0, Timestamp::as_second)),
            },
        ];
        let timings = measure::time(&workloads);
        let slots = spec.count_between(from, until);
        table.row(vec![zone.to_owned(), cell(timings[0]), cell(timings[1]), thousands(slots)]);
    }
    table.print("ns to account for missed slots");
}
