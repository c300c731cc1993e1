//! The rows: the name of a job, and its marks.

use super::bundle::{Bundle, Layer, bundled};
use super::{DIAMOND, Event, HEAD, LEFT, RIGHT, ROW, Row, TRIANGLE, TWO_BARS, Timeline, What, length};
use crate::chart::palette::Patterns;
use crate::chart::svg::{Element, Mark, Markup, Rounded, real};
use crate::chart::words::{orgs_in_zones, period, shortened, stamp, took};

/// The height of a bar.
const BAR: f64 = 12.0;
/// The least height of a status in a bar of several.
const MIN_SHARE: f64 = 2.0;
/// Letters of a name that there is room for.
const NAME: usize = 28;
const PAUSED_NAME: usize = 20;

/// All rows.
pub(super) fn draw(markup: &mut Markup, input: &Timeline<'_>, events: &[Vec<&Event>], patterns: Patterns<'_>) {
    for (index, (row, bundles)) in input.rows.iter().zip(bundled(input, events)).enumerate() {
        let place = format!("translate(0 {})", Rounded(HEAD + real(index as i64) * ROW));
        // The place is outside of what an update compares: a row that only moves is not sent again.
        markup.element("g").attr("transform", &place).inside(|markup| {
            let line = Line { input, patterns, row, bundles, middle: ROW / 2.0 };
            markup.element("g").attr("data-row", &row.key).inside(|markup| {
                name(markup, row, line.middle);
                markup
                    .element("g")
                    .class(if row.paused { "c-paused" } else { "c-row" })
                    .inside(|markup| line.draw(markup));
            });
        });
    }
}

fn name(markup: &mut Markup, row: &Row, middle: f64) {
    let title = if row.paused { format!("{}, paused", row.key) } else { row.key.clone() };
    markup.mark(Mark { title: &title, href: Some(&row.href), tab: true }, |markup| {
        let text = markup.element("text").class("c-key").attr("x", 2.0).attr("y", middle + 4.0);
        text.text(&shortened(&row.key, if row.paused { PAUSED_NAME } else { NAME }));
    });
    if row.paused {
        let text = markup.element("text").class("c-t c-end").attr("x", LEFT - 10.0).attr("y", middle + 4.0);
        text.text("paused");
    }
}

/// The marks of one row.
struct Line<'a> {
    input: &'a Timeline<'a>,
    patterns: Patterns<'a>,
    row: &'a Row,
    bundles: Vec<Bundle<'a>>,
    middle: f64,
}

impl Line<'_> {
    fn draw(&self, markup: &mut Markup) {
        let mut chips: Vec<(f64, f64)> = Vec::new();
        for (index, bundle) in self.bundles.iter().enumerate() {
            self.mark(markup, bundle);
            if bundle.total() > 1 {
                let next = self.bundles.get(index + 1).filter(|next| next.layer == bundle.layer);
                let place = self.chip_place(bundle, next.map_or(RIGHT, |next| next.left));
                // Two numbers over each other are none.
                let is_free = |(left, right): &(f64, f64)| chips.iter().all(|(from, to)| right <= from || left >= to);
                if let Some((left, right)) = place.filter(is_free) {
                    chip(markup, bundle.total(), (left, right), self.middle);
                    chips.push((left, right));
                }
            }
        }
    }

    /// One event leads to its run, several to their list.
    fn mark(&self, markup: &mut Markup, bundle: &Bundle<'_>) {
        let title = title(self.input, self.row, bundle);
        let listed;
        let href = if let [only] = bundle.events.as_slice() {
            only.href.as_deref()
        } else {
            let (from, to) = extent(self.input, bundle);
            listed = (self.input.runs_of)(self.row, from, to);
            Some(listed.as_str())
        };
        markup.mark(Mark { title: &title, href, tab: true }, |markup| match (bundle.layer, bundle.runs().worst()) {
            (Layer::Bars, Some(_)) => self.shares(markup, bundle),
            (Layer::Bars | Layer::Planned, _) => {
                self.bar(markup.element("rect").class("c-plan"), bundle, (0.0, BAR));
            }
            (Layer::Passed, _) => {
                let (class, shape) = match (bundle.count(What::Missed), bundle.runs().total()) {
                    (1.., _) => ("c-missed", DIAMOND),
                    (0, 1..) => ("c-skipped", TRIANGLE),
                    (0, 0) => ("c-held", TWO_BARS),
                };
                let place = format!("translate({} {})", Rounded(bundle.left), Rounded(self.middle - 6.0));
                markup.element("path").class(class).attr("transform", &place).attr("d", shape).empty();
            }
        });
    }

    /// Each status has the share of the height that it has of the runs, but at least so much that it is seen: one failure
    /// of thirty neither hides nor looks like thirty.
    fn shares(&self, markup: &mut Markup, bundle: &Bundle<'_>) {
        let counts = bundle.runs();
        let present: Vec<_> = counts.present().collect();
        let room = BAR - MIN_SHARE * real(present.len() as i64);
        let mut top = 0.0;
        for (status, count) in present {
            let height = MIN_SHARE + room * real(count as i64) / real(counts.total() as i64);
            self.bar(self.patterns.fill(markup.element("rect"), status), bundle, (top, height));
            top += height;
        }
    }

    /// A part of the height of a bar.
    fn bar(&self, element: Element<'_>, bundle: &Bundle<'_>, (top, height): (f64, f64)) {
        let rect = element.attr("x", bundle.left).attr("y", self.middle - BAR / 2.0 + top);
        rect.attr("width", bundle.right - bundle.left).attr("height", height).attr("rx", 2.0).empty();
    }

    /// Returns the position of the count: inside the mark if it fits, or else beside it if there is room. Otherwise
    /// only the tooltip shows it.
    fn chip_place(&self, bundle: &Bundle<'_>, room: f64) -> Option<(f64, f64)> {
        let width = 5.8 * real(bundle.total().to_string().len() as i64) + 5.0;
        let left = if bundle.right - bundle.left >= width && bundle.layer != Layer::Passed {
            f64::midpoint(bundle.left, bundle.right) - width / 2.0
        } else if bundle.right + width + 2.0 <= room {
            bundle.right + 1.0
        } else {
            return None;
        };
        let covers = |other: &Bundle<'_>| other.layer > bundle.layer && other.left < left + width && other.right > left;
        (!self.bundles.iter().any(covers)).then_some((left, left + width))
    }
}

fn chip(markup: &mut Markup, count: u64, (left, right): (f64, f64), middle: f64) {
    let pill = markup.element("rect").class("c-chip").attr("x", left).attr("y", middle - 5.0);
    pill.attr("width", right - left).attr("height", 10.0).attr("rx", 5.0).empty();
    let text = markup.element("text").class("c-count").attr("x", f64::midpoint(left, right));
    text.attr("y", middle + 3.2).text(&count.to_string());
}

/// From the first start to the last end.
fn extent(input: &Timeline<'_>, bundle: &Bundle<'_>) -> (jiff::Timestamp, jiff::Timestamp) {
    let from = bundle.events.iter().map(|event| event.at).min().unwrap_or(input.from);
    (from, bundle.events.iter().map(|event| input.end(event)).max().unwrap_or(from))
}

/// `daily-briefing · 2026-11-15 08:00 · succeeded · 2.1 s`, or what a bundle is made of.
fn title(input: &Timeline<'_>, row: &Row, bundle: &Bundle<'_>) -> String {
    if let [only] = bundle.events.as_slice() {
        let about = if only.what == What::Planned { "about " } else { "" };
        let took = length(only, input.now).map_or_else(String::new, |length| format!(" · {about}{}", took(length)));
        let orgs = if only.runs > 1 { format!(" for {}", orgs_in_zones(only.runs, only.zones)) } else { String::new() };
        return format!("{} · {} · {}{orgs}{took}", row.key, stamp(only.at, input.zone), only.what.word());
    }
    let mut parts = Vec::new();
    if bundle.runs().total() > 0 {
        parts.push(bundle.runs().in_words());
    }
    for what in [What::Missed, What::Paused, What::Frozen, What::Planned] {
        match bundle.count(what) {
            0 => {}
            count => parts.push(format!("{count} {}", what.word())),
        }
    }
    let (from, to) = extent(input, bundle);
    format!("{} · {} · {}", row.key, period(from, to, input.zone), parts.join(", "))
}
