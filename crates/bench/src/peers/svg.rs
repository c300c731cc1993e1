//! A plain bar plot of the results, legible on light and on dark paper.

use std::fmt::Write as _;

use super::catalog::PEERS;
use super::options::Entry;
use super::results::{Results, Summary, summary};
use super::tables::{Measure, short};

const WIDTH: f64 = 860.0;
/// Where bars begin; names are to the left.
const LEFT: f64 = 190.0;
/// The length of the longest bar; its figure is to the right.
const MAX_BAR_WIDTH: f64 = 500.0;
const ROW: f64 = 20.0;
const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#24292f}.title{font-weight:600}.small{font-size:11px}\
    .default{fill:#8b949e}.best{fill:#2f81f7}.own{fill:#d4731c}.spread{stroke:#24292f;stroke-width:1.5}\
    @media(prefers-color-scheme:dark){text{fill:#e6edf3}.spread{stroke:#e6edf3}}";

struct Bar {
    label: String,
    class: &'static str,
    summary: Summary,
}

/// Draws one group of bars for each measure, sorted with the best peer first.
pub(super) fn draw(results: &Results, measures: &[Measure], entries: &[Entry]) -> String {
    let mut body = String::new();
    let mut y = 10.0;
    for measure in measures {
        let bars = bars(results, measure, entries);
        if !bars.is_empty() {
            y = group(&mut body, measure, &bars, y);
        }
    }
    let height = y + 26.0;
    let legend = format!(
        "<text class=\"small\" x=\"10\" y=\"{:.0}\">Orange: everbell. Blue: best setting. Gray: default setting. Lines: \
         least to most of the rounds.</text>",
        y + 10.0
    );
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {WIDTH:.0} \
         {height:.0}\" role=\"img\" aria-label=\"everbell and its peers\"><style>{STYLE}</style>\n{body}{legend}\n</svg>\n"
    )
}

fn bars(results: &Results, measure: &Measure, entries: &[Entry]) -> Vec<Bar> {
    let bar = |entry: &Entry| {
        let name = PEERS[entry.peer].name;
        let summary = summary(results.samples(name, entry.setting(), &measure.name), measure.figures[0].0)?;
        let class = match (name, entry.best) {
            ("everbell", _) => "own",
            (_, true) => "best",
            (_, false) => "default",
        };
        Some(Bar { label: format!("{name}, {}", entry.setting()), class, summary })
    };
    let mut bars: Vec<Bar> = entries.iter().filter_map(bar).collect();
    bars.sort_by(|a, b| a.summary.median.total_cmp(&b.summary.median));
    if measure.is_rate {
        bars.reverse();
    }
    bars
}

/// Draws a measure at this height, and returns the height of the next one.
fn group(body: &mut String, measure: &Measure, bars: &[Bar], top: f64) -> f64 {
    let unit = measure.figures[0].1;
    let scale = if measure.is_rate { "" } else { ", logarithmic" };
    let title = escape(&format!("{} ({unit}{scale})", measure.title));
    let most = bars.iter().map(|bar| bar.summary.most).fold(0.0, f64::max);
    // Writing to a string cannot fail.
    let _ = writeln!(body, "<text class=\"title\" x=\"10\" y=\"{:.0}\">{title}</text>", top + 14.0);
    let mut y = top + 22.0;
    for Bar { label, class, summary } in bars {
        let length = |value: f64| length(value, most, measure.is_rate);
        let (end, middle) = (LEFT + length(summary.median), y + ROW / 2.0);
        let (from, to) = (LEFT + length(summary.least), LEFT + length(summary.most));
        let figure = short(summary.median);
        let _ = writeln!(
            body,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{}</text>\
             <rect class=\"{class}\" x=\"{LEFT:.0}\" y=\"{:.0}\" width=\"{:.1}\" height=\"{:.0}\"/>\
             <line class=\"spread\" x1=\"{from:.1}\" y1=\"{middle:.0}\" x2=\"{to:.1}\" y2=\"{middle:.0}\"/>\
             <text x=\"{:.1}\" y=\"{:.0}\">{figure}</text>",
            LEFT - 8.0,
            middle + 4.0,
            escape(label),
            y + 3.0,
            length(summary.median),
            ROW - 6.0,
            end.max(to) + 8.0,
            middle + 4.0,
        );
        y += ROW;
    }
    y + 16.0
}

/// Returns the length of a bar: rates in proportion, times and queries by their order of magnitude from 0.1 on.
fn length(value: f64, most: f64, is_rate: bool) -> f64 {
    let magnitude = |value: f64| (value.max(0.1) / 0.1).log10();
    let (value, most) = if is_rate { (value, most) } else { (magnitude(value), magnitude(most)) };
    if most <= 0.0 { 1.0 } else { (MAX_BAR_WIDTH * value / most).clamp(1.0, MAX_BAR_WIDTH) }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::results::Sample;
    use crate::peers::work::named;

    fn sample(peer: &str, rate: f64) -> Sample {
        Sample {
            peer: peer.to_owned(),
            setting: "best".to_owned(),
            measure: Measure::drain(10).name,
            round: 1,
            version: "1".to_owned(),
            at: "2026-11-18T12:00:00Z".to_owned(),
            load: 0.0,
            steal: 0.0,
            outcome: Ok(named(&[("jobs_per_second", rate)])),
        }
    }

    #[test]
    fn the_fastest_peer_has_the_first_and_longest_bar() {
        let samples = vec![sample(PEERS[0].name, 100.0), sample(PEERS[1].name, 400.0)];
        let results = Results { samples, ..Results::default() };
        let entries = [Entry { peer: 0, best: true }, Entry { peer: 1, best: true }];
        let drawn = draw(&results, &[Measure::drain(10), Measure::idle()], &entries);
        let at = |text: &str| drawn.find(text).unwrap_or_else(|| panic!("no `{text}` in {drawn}"));
        assert!(at(PEERS[1].name) < at("everbell, best"));
        assert!(at("width=\"500.0\"") < at("width=\"125.0\""));
        assert!(!drawn.contains("Idle"), "a measure without figures is left out");
    }

    #[test]
    fn times_are_drawn_by_their_magnitude() {
        let lengths = [0.05, 1.0, 10.0, 1_000.0].map(|value| length(value, 1_000.0, false));
        assert_eq!(lengths.map(|length| length.round() as i64), [1, 125, 250, 500]);
        assert_eq!(length(0.0, 0.0, true).to_bits(), 1f64.to_bits());
    }
}
