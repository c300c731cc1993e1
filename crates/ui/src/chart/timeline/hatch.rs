//! Hatched times: gaps in the rows of their jobs, and outages through all rows.

use super::{HEAD, Hatch, LEFT, RIGHT, ROW, Timeline, What, band};
use crate::chart::svg::{Mark, Markup, real};

/// The least width, so that a short time can be seen.
const MIN_WIDTH: f64 = 2.0;
/// The height of a gap in its row.
const GAP: f64 = 20.0;

/// The gaps and outages that touch the window.
fn hatches_in_window<'a>(input: &'a Timeline<'_>, all: &'a [Hatch]) -> impl Iterator<Item = &'a Hatch> {
    all.iter().filter(|hatch| hatch.from <= input.to && hatch.until >= input.from)
}

/// Writes the pattern, if it is needed.
pub(super) fn define(markup: &mut Markup, input: &Timeline<'_>) {
    let mut gaps = input.rows.iter().flat_map(|row| hatches_in_window(input, &row.gaps));
    let is_unused = gaps.next().is_none() && hatches_in_window(input, input.outages).next().is_none();
    if is_unused && band::bands_in_window(input, What::Frozen).next().is_none() {
        return;
    }
    markup.element("defs").inside(|markup| {
        let pattern = markup.element("pattern").attr("id", &name(input)).attr("patternUnits", "userSpaceOnUse");
        let pattern = pattern.attr("width", 6.0).attr("height", 6.0).attr("patternTransform", "rotate(45)");
        pattern.inside(|markup| {
            markup.element("rect").class("c-idle").attr("width", 2.0).attr("height", 6.0).empty();
        });
    });
}

/// The `fill` of a hatched shape.
pub(super) fn fill(input: &Timeline<'_>) -> String {
    format!("url(#{})", name(input))
}

fn name(input: &Timeline<'_>) -> String {
    format!("{}-idle", input.id)
}

/// Draws outages behind all rows, and gaps behind the marks of their row.
pub(super) fn draw(markup: &mut Markup, input: &Timeline<'_>) {
    for outage in hatches_in_window(input, input.outages) {
        rect(markup, input, outage, (HEAD, input.floor() - HEAD), "c-outage");
    }
    for (index, row) in input.rows.iter().enumerate() {
        let top = HEAD + real(index as i64) * ROW + (ROW - GAP) / 2.0;
        for gap in hatches_in_window(input, &row.gaps) {
            rect(markup, input, gap, (top, GAP), "c-gap");
        }
    }
}

fn rect(markup: &mut Markup, input: &Timeline<'_>, hatch: &Hatch, (top, height): (f64, f64), class: &str) {
    let left = input.x(hatch.from).clamp(LEFT, RIGHT - MIN_WIDTH);
    let width = (input.x(hatch.until).min(RIGHT) - left).max(MIN_WIDTH);
    markup.mark(Mark { title: &hatch.title, href: None, tab: false }, |markup| {
        let rect = markup.element("rect").class(class).attr("fill", &fill(input));
        rect.attr("x", left).attr("y", top).attr("width", width).attr("height", height).empty();
    });
}

/// The outages, for those who do not see the picture.
pub(super) fn in_words(input: &Timeline<'_>) -> String {
    hatches_in_window(input, input.outages).flat_map(|outage| [" ", outage.title.as_str()]).collect()
}
