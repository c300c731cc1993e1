//! The ground of charts over time: heights at the left, times below, quiet lines between.
//!
//! The axis of heights is a picture of its own with a fixed width. The plot has what is left, and places across it are in
//! percent, so that nothing but the plot gets narrower on a small screen.

use everbell_core::Zone;
use jiff::Timestamp;

use super::axis::times;
use super::palette::swatch;
use super::svg::{Markup, Percent, Picture, Size, real};

/// The height of the plot, of what stands above it, and of what stands below.
pub(super) const HEIGHT: f64 = 140.0;
const HEAD: f64 = 10.0;
const FOOT: f64 = 22.0;
/// Room for `100 ms` beside the plot.
const SIDE: f64 = 52.0;
/// Times below a plot; on a telephone there is no room for more.
const TIMES: i64 = 6;

/// A chart over a time.
pub(super) struct Plot<'a> {
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    pub(super) summary: &'a str,
    pub(super) linked: bool,
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    pub(super) zone: &'a Zone,
}

impl Plot<'_> {
    /// Draws the axes and what is between them. Heights are shares of the plot.
    pub(super) fn draw(&self, markup: &mut Markup, heights: &[(f64, String)], body: impl FnOnce(&mut Markup)) {
        let whole = HEAD + HEIGHT + FOOT;
        markup.element("div").class("c-plot").inside(|markup| {
            let axis = markup.element("svg").class("c-side").attr("width", SIDE).attr("height", whole);
            axis.attr("aria-hidden", "true").inside(|markup| {
                for (share, label) in heights {
                    let text = markup.element("text").class("c-t c-end").attr("x", SIDE - 8.0);
                    text.attr("y", y(*share) + 4.0).text(label);
                }
            });
            let size = Size::Fluid(whole);
            let (title, summary, linked) = (self.title, self.summary, self.linked);
            Picture { id: self.id, class: "c-main", title, summary, linked, size }.draw(markup, |markup| {
                self.lines(markup, heights);
                body(markup);
            });
        });
    }

    fn lines(&self, markup: &mut Markup, heights: &[(f64, String)]) {
        for (index, (share, _)) in heights.iter().enumerate() {
            let line = markup.element("line").class(if index == 0 { "c-base" } else { "c-grid" });
            line.attr("x2", "100%").attr("y1", y(*share)).attr("y2", y(*share)).empty();
        }
        for tick in times(self.from, self.to, self.zone, TIMES) {
            let share = self.share(tick.at);
            let foot = HEAD + HEIGHT;
            let line = markup.element("line").class("c-base").attr("x1", Percent(share)).attr("x2", Percent(share));
            line.attr("y1", foot).attr("y2", foot + 4.0).empty();
            let text = markup.element("text").class(anchored(share, tick.strong)).attr("x", Percent(share));
            text.attr("y", foot + 17.0).text(&tick.label);
        }
    }

    /// Where an instant stands, from 0 at the left to 1 at the right.
    pub(super) fn share(&self, at: Timestamp) -> f64 {
        share(self.from, self.to, at)
    }
}

/// Where an instant stands between two others.
pub(super) fn share(from: Timestamp, to: Timestamp, at: Timestamp) -> f64 {
    let (whole, part) = (to.as_millisecond() - from.as_millisecond(), at.as_millisecond() - from.as_millisecond());
    if whole <= 0 { 0.5 } else { (real(part) / real(whole)).clamp(0.0, 1.0) }
}

/// The height of a share of the plot.
pub(super) fn y(share: f64) -> f64 {
    HEAD + HEIGHT * (1.0 - share)
}

/// Labels at the edges stay inside.
fn anchored(share: f64, strong: bool) -> &'static str {
    match (share, strong) {
        (..0.03, false) => "c-t",
        (..0.03, true) => "c-t c-day",
        (0.97.., false) => "c-t c-end",
        (0.97.., true) => "c-t c-end c-day",
        (_, false) => "c-t c-mid",
        (_, true) => "c-t c-mid c-day",
    }
}

/// Renders a placeholder of the same height as the chart.
pub(super) fn nothing(text: &str) -> String {
    let mut markup = Markup::default();
    markup.element("p").class("c-none").text(text);
    markup.finish()
}

/// Renders the legend of lines, each with a class and a label.
pub(super) fn line_legend(markup: &mut Markup, lines: &[(&str, &str)]) {
    markup.element("ul").class("c-legend").inside(|markup| {
        for (class, word) in lines {
            markup.element("li").inside(|markup| {
                swatch(markup, |markup| markup.element("path").class(class).attr("d", "M0 6h12").empty());
                markup.text(word);
            });
        }
    });
}

/// A level across the plot.
pub(super) struct Level {
    pub(super) class: &'static str,
    pub(super) share: f64,
    pub(super) name: String,
    /// At the left end; the others are named at the right.
    pub(super) left: bool,
    /// Named below its line, because there is no room above.
    pub(super) below: bool,
}

impl Level {
    pub(super) fn line(&self, markup: &mut Markup) {
        let line = markup.element("line").class(self.class).attr("x2", "100%").attr("y1", y(self.share));
        line.attr("y2", y(self.share)).empty();
    }

    /// Written after everything else, so that it can be read.
    pub(super) fn name(&self, markup: &mut Markup) {
        let (class, x) = if self.left { ("c-t c-name", "4") } else { ("c-t c-end c-name", "100%") };
        let below = self.below || self.share > 0.93;
        let text = markup.element("text").class(class).attr("x", x);
        text.attr("y", y(self.share) + if below { 12.0 } else { -4.0 }).text(&self.name);
    }
}
