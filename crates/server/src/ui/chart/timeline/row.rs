//! The rows: the name of a job, and its marks.

use super::bundle::{Bundle, Layer, bundled};
use super::{DIAMOND, Event, HEAD, LEFT, RIGHT, ROW, Row, TRIANGLE, Timeline, What, length};
use crate::ui::chart::palette::Patterns;
use crate::ui::chart::svg::{Element, Mark, Markup, Rounded, real};
use crate::ui::chart::words::{period, shortened, stamp, took};

/// The height of a bar.
const BAR: f64 = 12.0;
/// Letters of a name that there is room for.
const NAME: usize = 28;
const PAUSED_NAME: usize = 20;

/// All rows.
pub(super) fn draw(markup: &mut Markup, input: &Timeline<'_>, events: &[Vec<&Event>], patterns: Patterns<'_>) {
    for (index, (row, bundles)) in input.rows.iter().zip(bundled(input, events)).enumerate() {
        let middle = HEAD + (real(index as i64) + 0.5) * ROW;
        name(markup, row, middle);
        let line = Line { input, patterns, row, bundles, middle };
        markup.element("g").class(if row.paused { "c-paused" } else { "c-row" }).inside(|markup| line.draw(markup));
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
        for (index, bundle) in self.bundles.iter().enumerate() {
            self.mark(markup, bundle);
            if bundle.events.len() > 1 {
                let next = self.bundles.get(index + 1).filter(|next| next.layer == bundle.layer);
                self.chip(markup, bundle, next.map_or(RIGHT, |next| next.left));
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
            (Layer::Bars, Some(worst)) => self.bar(self.patterns.fill(markup.element("rect"), worst), bundle),
            (Layer::Bars | Layer::Planned, _) => self.bar(markup.element("rect").class("c-plan"), bundle),
            (Layer::Passed, _) => {
                let missed = bundle.count(What::Missed) > 0;
                let (class, shape) = if missed { ("c-missed", DIAMOND) } else { ("c-skipped", TRIANGLE) };
                let place = format!("translate({} {})", Rounded(bundle.left), Rounded(self.middle - 6.0));
                markup.element("path").class(class).attr("transform", &place).attr("d", shape).empty();
            }
        });
    }

    fn bar(&self, element: Element<'_>, bundle: &Bundle<'_>) {
        let rect = element.attr("x", bundle.left).attr("y", self.middle - BAR / 2.0);
        rect.attr("width", bundle.right - bundle.left).attr("height", BAR).attr("rx", 2.0).empty();
    }

    /// How many there are: in the mark if they fit, beside it if there is room. Where neither is, or another mark covers
    /// it, only the title tells.
    fn chip(&self, markup: &mut Markup, bundle: &Bundle<'_>, room: f64) {
        let count = bundle.events.len().to_string();
        let width = 5.8 * real(count.len() as i64) + 5.0;
        let left = if bundle.right - bundle.left >= width && bundle.layer != Layer::Passed {
            f64::midpoint(bundle.left, bundle.right) - width / 2.0
        } else if bundle.right + width + 2.0 <= room {
            bundle.right + 1.0
        } else {
            return;
        };
        let covers = |other: &Bundle<'_>| other.layer > bundle.layer && other.left < left + width && other.right > left;
        if self.bundles.iter().any(covers) {
            return;
        }
        let pill = markup.element("rect").class("c-chip").attr("x", left).attr("y", self.middle - 5.0);
        pill.attr("width", width).attr("height", 10.0).attr("rx", 5.0).empty();
        let text = markup.element("text").class("c-count").attr("x", left + width / 2.0);
        text.attr("y", self.middle + 3.2).text(&count);
    }
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
        return format!("{} · {} · {}{took}", row.key, stamp(only.at, input.zone), only.what.word());
    }
    let mut parts = Vec::new();
    if bundle.runs().total() > 0 {
        parts.push(bundle.runs().in_words());
    }
    for what in [What::Missed, What::Planned] {
        match bundle.count(what) {
            0 => {}
            count => parts.push(format!("{count} {}", what.word())),
        }
    }
    let (from, to) = extent(input, bundle);
    format!("{} · {} · {}", row.key, period(from, to, input.zone), parts.join(", "))
}
