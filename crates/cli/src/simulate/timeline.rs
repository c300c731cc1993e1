//! A simulation as a picture: a band for each job, outages hatched, readable on light and dark pages.

use std::fmt::Write as _;

use everbell_core::simulate::{JobSimulation, SlotRecord, SlotStatus};
use jiff::{SignedDuration, Timestamp};

use super::Simulated;
use crate::times::local;

const WIDTH: f64 = 1200.0;
const LABELS: f64 = 200.0;
const PLOT: f64 = WIDTH - LABELS - 24.0;
const TOP: f64 = 56.0;
const BAND: f64 = 28.0;
/// The shortest thing that can be seen.
const MIN_WIDTH: f64 = 2.0;
/// The most characters of a job key.
const MAX_LABEL: usize = 26;
/// The lines of the time axis are at least this far apart.
const MIN_TICK: f64 = 90.0;

const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#1f2328}\
.muted{fill:#59636e}.page{fill:#fff}.line{stroke:#d1d9e0}.band{fill:#f6f8fa}\
.ran{fill:#1a7f37}.failed{fill:#cf222e}.skipped{fill:#bf8700}.gap{fill:#8250df}.waiting{fill:#6e7781}\
.hatch{stroke:#cf222e;stroke-width:2;opacity:.45}.outage{fill:#cf222e;fill-opacity:.06}\
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.muted{fill:#9198a1}.page{fill:#0d1117}.line{stroke:#3d444d}\
.band{fill:#151b23}.ran{fill:#3fb950}.failed{fill:#f85149}.skipped{fill:#d29922}.gap{fill:#ab7df8}.waiting{fill:#9198a1}\
.hatch{stroke:#f85149}.outage{fill:#f85149}}";

/// The kinds of marks: the class in the style, and the word in the legend. The last one covers those before it.
const KINDS: [(&str, &str); 5] = [
    ("ran", "ran"),
    ("waiting", "waiting or undecided"),
    ("gap", "no run: coalesced, missed, …"),
    ("skipped", "skipped"),
    ("failed", "failed or canceled"),
];

/// Draws the simulation as an SVG document.
pub(super) fn draw(done: &Simulated) -> String {
    let scale = Scale { from: done.window.scenario.from, to: done.window.scenario.to };
    let rows = float(done.subjects.len());
    let (bottom, height) = (TOP + rows * BAND, TOP + rows * BAND + 56.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" role=\"img\" aria-labelledby=\"title\"><title id=\"title\">{}</title>\
         <style>{STYLE}</style><defs><pattern id=\"hatch\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><line class=\"hatch\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"8\"/></pattern></defs>\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\"/>",
        escaped(&super::report::sentence(done))
    );
    axis(&mut svg, done, &scale, bottom);
    for (number, (subject, result)) in done.subjects.iter().zip(&done.simulation.jobs).enumerate() {
        band(&mut svg, subject.key(), result, TOP + float(number) * BAND, &scale);
    }
    for outage in done.window.scenario.merged_outages() {
        let (x, width) = scale.span(outage.from, outage.to);
        for class in ["class=\"outage\"", "fill=\"url(#hatch)\""] {
            let height = rows * BAND;
            let _ = write!(svg, "<rect {class} x=\"{x:.1}\" y=\"{TOP}\" width=\"{width:.1}\" height=\"{height:.1}\"/>");
        }
    }
    legend(&mut svg, bottom + 34.0);
    svg.push_str("</svg>\n");
    svg
}

/// The window on the width of the plot.
struct Scale {
    from: Timestamp,
    to: Timestamp,
}

impl Scale {
    fn x(&self, at: Timestamp) -> f64 {
        let whole = self.to.duration_since(self.from).as_secs_f64();
        let part = at.duration_since(self.from).as_secs_f64() / whole;
        LABELS + PLOT * part.clamp(0.0, 1.0)
    }

    fn span(&self, from: Timestamp, to: Timestamp) -> (f64, f64) {
        let (start, end) = (self.x(from), self.x(to));
        (start, (end - start).max(MIN_WIDTH))
    }
}

/// A small count.
fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

fn axis(svg: &mut String, done: &Simulated, scale: &Scale, bottom: f64) {
    const STEPS: [i64; 14] =
        [60, 300, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000, 31_536_000];
    let whole = scale.to.duration_since(scale.from).as_secs().max(1);
    let seconds = |seconds: i64| SignedDuration::from_secs(seconds).as_secs_f64();
    let apart = |step: &&i64| seconds(**step) / seconds(whole) * PLOT >= MIN_TICK;
    let step = STEPS.iter().find(apart).copied().unwrap_or(whole);
    let offset = i64::from(done.zone.as_jiff().to_offset(scale.from).seconds());
    let first = (scale.from.as_second() + offset).div_euclid(step) * step - offset;
    let shape = if step < 86_400 { "%m-%d %H:%M" } else { "%Y-%m-%d" };
    let mut second = first;
    while second < scale.to.as_second() {
        if let Some(at) = Timestamp::from_second(second).ok().filter(|at| *at >= scale.from) {
            let (x, label) = (scale.x(at), local(at, &done.zone).strftime(shape).to_string());
            let _ = write!(
                svg,
                "<line class=\"line\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{bottom:.1}\"/>\
                 <text class=\"muted\" x=\"{:.1}\" y=\"{:.1}\">{label}</text>",
                TOP - 6.0,
                x + 3.0,
                TOP - 10.0,
            );
        }
        second += step;
    }
    let zone = escaped(done.zone.name());
    let _ = write!(svg, "<text class=\"muted\" x=\"12\" y=\"{:.1}\">{zone}</text>", TOP - 10.0);
}

fn band(svg: &mut String, key: &str, result: &JobSimulation, y: f64, scale: &Scale) {
    let label: String = key.chars().take(MAX_LABEL).collect();
    let cut = if label.len() < key.len() { "…" } else { "" };
    let _ = write!(
        svg,
        "<rect class=\"band\" x=\"{LABELS}\" y=\"{:.1}\" width=\"{PLOT}\" height=\"{:.1}\"/>\
         <text x=\"12\" y=\"{:.1}\"><title>{}</title>{}{cut}</text>",
        y + 3.0,
        BAND - 6.0,
        y + 18.0,
        escaped(key),
        escaped(&label)
    );
    for (class, _) in KINDS {
        let of_kind = result.records.iter().filter(|record| kind(record) == class);
        let mut spans: Vec<(f64, f64)> = of_kind.flat_map(|record| spans(record, scale)).collect();
        for (start, end) in merged(&mut spans) {
            let _ = write!(
                svg,
                "<rect class=\"{class}\" x=\"{start:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                y + 6.0,
                end - start,
                BAND - 12.0
            );
        }
    }
}

fn kind(record: &SlotRecord) -> &'static str {
    match record.status {
        SlotStatus::Succeeded | SlotStatus::Running => "ran",
        SlotStatus::Failed(_) | SlotStatus::Canceled => "failed",
        SlotStatus::Skipped(_) => "skipped",
        SlotStatus::Gap(_) => "gap",
        SlotStatus::Waiting | SlotStatus::Undecided => "waiting",
    }
}

/// The parts of the plot that a slot takes: its attempts, or the slots without a run.
fn spans(record: &SlotRecord, scale: &Scale) -> Vec<(f64, f64)> {
    let attempts = record.run.as_ref().map(|run| run.attempts.as_slice()).unwrap_or_default();
    if attempts.is_empty() {
        let (start, width) = scale.span(record.first_slot_at, record.last_slot_at);
        return vec![(start, start + width)];
    }
    let drawn = |(from, to): &(Timestamp, Option<Timestamp>)| {
        let (start, width) = scale.span(*from, to.unwrap_or(scale.to));
        (start, start + width)
    };
    attempts.iter().map(drawn).collect()
}

/// Spans that touch are drawn as one, so a job that fires each second is a band.
fn merged(spans: &mut [(f64, f64)]) -> Vec<(f64, f64)> {
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut all: Vec<(f64, f64)> = Vec::new();
    for (start, end) in spans.iter().copied() {
        match all.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => all.push((start, end)),
        }
    }
    all
}

fn legend(svg: &mut String, y: f64) {
    let mut x = LABELS;
    let entries = KINDS.iter().map(|(class, words)| (format!("class=\"{class}\""), *words));
    for (fill, words) in entries.chain([("fill=\"url(#hatch)\"".to_owned(), "outage")]) {
        let _ = write!(
            svg,
            "<rect {fill} x=\"{x:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\"/><text x=\"{:.1}\" y=\"{y:.1}\">{words}</text>",
            y - 10.0,
            x + 18.0
        );
        x += 44.0 + 7.0 * float(words.chars().count());
    }
}

/// Text as SVG, without characters that no document may have.
fn escaped(text: &str) -> String {
    everbell_wire::markup::escaped(&text.replace(char::is_control, ""))
}

#[test]
fn spans_that_touch_are_one_and_texts_are_escaped() {
    assert_eq!(merged(&mut [(5.0, 6.0), (1.0, 2.0), (1.5, 3.0)]), [(1.0, 3.0), (5.0, 6.0)]);
    assert_eq!(escaped("<a & \"b\">\u{7}"), "&lt;a &amp; &quot;b&quot;&gt;");
}
