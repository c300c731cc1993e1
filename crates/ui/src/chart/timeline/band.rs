//! Bands: slots to come of a job that fires too often to draw each, and those that a freeze keeps from firing.

use super::{Band, HEAD, ROW, Row, Timeline, What, hatch};
use crate::chart::svg::{Mark, Markup, real};
use crate::chart::words::{grouped, period};

/// The height of a band.
const HEIGHT: f64 = 12.0;
/// The height of a band of frozen slots, which is hatched like a gap.
const FROZEN: f64 = 20.0;
/// The width of a letter of a label.
const LETTER: f64 = 5.2;
/// The least width, so that a short band can be seen and pointed at.
const MIN_WIDTH: f64 = 3.0;

/// The bands of this kind that touch the window.
pub(super) fn bands_in_window<'a>(input: &'a Timeline<'_>, what: What) -> impl Iterator<Item = &'a Band> {
    input.rows.iter().flat_map(move |row| of_row(input, row)).filter(move |band| band.what == what)
}

/// The bands of a row that touch the window.
pub(super) fn of_row<'a>(input: &'a Timeline<'_>, row: &'a Row) -> impl Iterator<Item = &'a Band> {
    row.bands.iter().filter(|band| band.from <= input.to && band.until >= input.from)
}

/// Draws the bands of all rows; each leads to its job.
pub(super) fn draw(markup: &mut Markup, input: &Timeline<'_>) {
    for (index, row) in input.rows.iter().enumerate() {
        let middle = HEAD + (real(index as i64) + 0.5) * ROW;
        for band in of_row(input, row) {
            let title = format!("{} · {}", row.key, in_words(input, band));
            markup.mark(Mark { title: &title, href: Some(&row.href), tab: true }, |markup| {
                let (left, right) = (input.x(band.from.max(input.from)), input.x(band.until.min(input.to)));
                let (width, height) = ((right - left).max(MIN_WIDTH), if is_frozen(band) { FROZEN } else { HEIGHT });
                let rect = markup.element("rect");
                let rect = if is_frozen(band) {
                    rect.class("c-gap").attr("fill", &hatch::fill(input))
                } else {
                    rect.class("c-plan c-band")
                };
                let rect = rect.attr("x", left).attr("y", middle - height / 2.0);
                rect.attr("width", width).attr("height", height).attr("rx", 2.0).empty();
                let label = if is_frozen(band) { What::Frozen.word() } else { band.note.as_str() };
                let room = real(label.chars().count() as i64) * LETTER + 8.0;
                if room <= width {
                    let pill = markup.element("rect").class("c-chip").attr("x", left + (width - room) / 2.0);
                    let pill = pill.attr("y", middle - 6.0).attr("width", room).attr("height", 12.0);
                    pill.attr("rx", 6.0).empty();
                    let text = markup.element("text").class("c-count").attr("x", left + width / 2.0);
                    text.attr("y", middle + 3.2).text(label);
                }
            });
        }
    }
}

fn is_frozen(band: &Band) -> bool {
    band.what == What::Frozen
}

/// `2026-11-15 12:00–00:00 · 21,600 planned · 30/min`.
pub(super) fn in_words(input: &Timeline<'_>, band: &Band) -> String {
    let when = period(band.from, band.until, input.zone);
    format!("{when} · {} {} · {}", grouped(band.slots), band.what.word(), band.note)
}
