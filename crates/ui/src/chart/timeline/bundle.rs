//! Events that would be drawn over each other become one mark with a count.

use super::{Event, Timeline, What};
use crate::chart::palette::Counts;
use everbell_core::RunStatus;

/// The minimum width of a bar.
const MIN_BAR_WIDTH: f64 = 3.0;
/// How wide the mark of what did not run is.
const PASSED: f64 = 12.0;
/// Events that begin farther apart stay apart, however long they are: a row of short runs must not become one bar.
const CELL: f64 = 24.0;
/// Marks in a picture at the most, as long as a coarser bundling helps.
const MAX_MARKS: usize = 1_500;
/// How close neighbours may be, from fine to coarse.
const GAPS: [f64; 4] = [1.0, 6.0, 12.0, CELL];

/// Marks of one kind lie in one layer, and only these are bundled. Later ones are drawn above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Layer {
    /// Future fires: outlined.
    Planned,
    /// Runs, drawn as bars.
    Bars,
    /// Slots without a run, drawn as diamonds or triangles.
    Passed,
}

impl Layer {
    pub(super) const ALL: [Layer; 3] = [Layer::Planned, Layer::Bars, Layer::Passed];

    const fn new(what: What) -> Layer {
        match what {
            What::Planned | What::Frozen => Layer::Planned,
            What::Missed | What::Paused | What::Run(RunStatus::Skipped) => Layer::Passed,
            What::Run(_) => Layer::Bars,
        }
    }
}

/// One mark.
pub(super) struct Bundle<'a> {
    pub(super) layer: Layer,
    pub(super) left: f64,
    pub(super) right: f64,
    /// Never empty; in order.
    pub(super) events: Vec<&'a Event>,
}

impl Bundle<'_> {
    /// The runs in it by status.
    pub(super) fn runs(&self) -> Counts {
        let mut counts = Counts::default();
        for event in &self.events {
            if let What::Run(status) = event.what {
                counts.add(status, event.runs);
            }
        }
        counts
    }

    pub(super) fn count(&self, what: What) -> u64 {
        self.events.iter().filter(|event| event.what == what).map(|event| event.runs).sum()
    }

    /// Everything in it.
    pub(super) fn total(&self) -> u64 {
        self.events.iter().map(|event| event.runs).sum()
    }
}

/// An event with its place.
struct Placed<'a> {
    layer: Layer,
    left: f64,
    right: f64,
    event: &'a Event,
}

/// The marks of each row: as fine as possible, but not too many.
pub(super) fn bundled<'a>(input: &Timeline<'_>, events: &[Vec<&'a Event>]) -> Vec<Vec<Bundle<'a>>> {
    let placed: Vec<Vec<Placed<'a>>> =
        events.iter().map(|events| events.iter().map(|event| place(input, event)).collect()).collect();
    let with = |gap: f64| -> Vec<Vec<Bundle<'a>>> { placed.iter().map(|placed| in_row(placed, gap)).collect() };
    let mut rows = with(GAPS[0]);
    for gap in &GAPS[1..] {
        if rows.iter().map(Vec::len).sum::<usize>() <= MAX_MARKS {
            break;
        }
        rows = with(*gap);
    }
    rows
}

fn in_row<'a>(placed: &[Placed<'a>], gap: f64) -> Vec<Bundle<'a>> {
    let mut bundles: Vec<Bundle<'a>> = Vec::new();
    for layer in Layer::ALL {
        let start = bundles.len();
        for Placed { left, right, event, .. } in placed.iter().filter(|placed| placed.layer == layer) {
            let last = bundles[start..].last_mut();
            match last.filter(|last| *left < last.right + gap && left - last.left < CELL) {
                Some(last) => {
                    last.right = last.right.max(*right);
                    last.events.push(event);
                }
                None => bundles.push(Bundle { layer, left: *left, right: *right, events: vec![event] }),
            }
        }
    }
    bundles
}

fn place<'a>(input: &Timeline<'_>, event: &'a Event) -> Placed<'a> {
    let (layer, at) = (Layer::new(event.what), input.x(event.at));
    let (left, right) = match layer {
        Layer::Passed => (at - PASSED / 2.0, at + PASSED / 2.0),
        Layer::Bars | Layer::Planned => (at, input.x(input.end(event)).max(at + MIN_BAR_WIDTH)),
    };
    Placed { layer, left, right, event }
}
