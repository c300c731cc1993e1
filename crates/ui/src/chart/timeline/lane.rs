//! The lane below the rows: how many runs start in each piece of time, so that herds and quiet hours can be seen.

use super::{LEFT, Load, RIGHT, Timeline};
use crate::chart::svg::{Mark, Markup, Path, real};
use crate::chart::words::{counted, grouped, period, round_span};

/// With the space above it.
pub(super) const HEIGHT: f64 = 120.0;
const BARS: f64 = 98.0;

pub(super) fn draw(markup: &mut Markup, input: &Timeline<'_>) {
    let most = input.load.iter().map(|load| load.runs).max().unwrap_or(0);
    if input.load.is_empty() {
        return;
    }
    let floor = input.floor() + HEIGHT;
    let text = |markup: &mut Markup, class: &str, x: f64, y: f64, text: &str| {
        markup.element("text").class(class).attr("x", x).attr("y", y).text(text);
    };
    // The first and the last piece may be cut off.
    let piece = |load: &Load| load.to.as_millisecond() - load.from.as_millisecond();
    let unit = match input.load.iter().map(piece).max().unwrap_or(0) {
        60_000 => "minute".to_owned(),
        3_600_000 => "hour".to_owned(),
        millis => round_span(millis),
    };
    text(markup, "c-key", 2.0, floor - BARS / 2.0 - 2.0, "Load");
    text(markup, "c-t", 2.0, floor - BARS / 2.0 + 14.0, &format!("runs that start per {unit}"));
    text(markup, "c-t c-end", LEFT - 10.0, floor - BARS + 8.0, &grouped(most));
    text(markup, "c-t c-end", LEFT - 10.0, floor - 1.0, "0");
    markup.element("path").class("c-grid").attr("d", &Path::line((LEFT, floor - BARS), (RIGHT, floor - BARS))).empty();
    markup.element("path").class("c-base").attr("d", &Path::line((LEFT, floor), (RIGHT, floor))).empty();
    // Neighbours that are alike are one bar.
    let alike = |one: &Load, other: &Load| (one.runs, one.predicted) == (other.runs, other.predicted);
    for group in input.load.chunk_by(alike).filter(|group| group[0].runs > 0) {
        let (first, last) = (&group[0], &group[group.len() - 1]);
        let word = if first.predicted { "planned" } else { "started" };
        let each = if group.len() > 1 { format!(" in each {unit}") } else { String::new() };
        let when = period(first.from, last.to, input.zone);
        let title = format!("{when} · {} {word}{each}", counted(first.runs, "run"));
        let (left, right) = (input.x(first.from), input.x(last.to));
        let height = (BARS * real(first.runs as i64) / real(most as i64)).max(2.0);
        markup.mark(Mark { title: &title, href: None, tab: false }, |markup| {
            let bar = markup.element("rect").class(if first.predicted { "c-foreseen" } else { "c-load" });
            bar.attr("x", left).attr("y", floor - height).attr("width", right - left).attr("height", height).empty();
        });
    }
}
