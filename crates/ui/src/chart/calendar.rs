//! Days as a map: a column is a week, a row is a weekday. Each day shows the worst that happened, and how much.

use everbell_core::RunStatus;
use jiff::ToSpan;
use jiff::civil::{Date, Weekday};

use super::palette::{Counts, Other, Patterns, Shown, legend};
use super::svg::{Mark, Markup, Path, Picture, Size, real};
use super::table::{Cell, Table};
use super::words::{counted, grouped};

/// The input of a calendar.
pub(crate) struct Calendar<'a> {
    /// Unique in its page; letters, digits and dashes.
    pub(crate) id: &'a str,
    /// The key of the job.
    pub(crate) job: &'a str,
    pub(crate) today: Date,
    /// Columns; the usual number is [`WEEKS`].
    pub(crate) weeks: u32,
    /// How many of the columns are after the week of today.
    pub(crate) weeks_ahead: u32,
    /// Days with runs or plans, in any order. Others are empty.
    pub(crate) days: &'a [Day],
}

/// Half a year.
pub(crate) const WEEKS: u32 = 26;

/// A local day.
pub(crate) struct Day {
    pub(crate) date: Date,
    pub(crate) runs: Counts,
    /// Slots that are still to come.
    pub(crate) planned: u64,
    /// Where its runs are listed.
    pub(crate) href: Option<String>,
}

const PITCH: f64 = 17.0;
const CELL: f64 = 14.0;
/// Room for the weekdays, and for the months.
const LEFT: f64 = 34.0;
const TOP: f64 = 20.0;

/// The picture with its legend.
pub(crate) fn calendar(input: &Calendar<'_>) -> String {
    let days: Vec<&Day> = days_in_window(input).collect();
    let all: Counts = days.iter().map(|day| day.runs).sum();
    let planned = days.iter().fold(0_u64, |sum, day| sum.saturating_add(day.planned));
    let summary = format!("{} to {}: {}, {} planned.", first(input), last(input), all.in_words(), grouped(planned));
    let picture = Picture {
        id: input.id,
        class: "c-cal",
        title: &format!("Days of {}", input.job),
        summary: &summary,
        linked: days.iter().any(|day| day.href.is_some()),
        size: Size::Scaled(LEFT + PITCH * f64::from(input.weeks) + 1.0, TOP + PITCH * 7.0 + 1.0),
    };
    let patterns = Patterns(input.id);
    let busiest = days.iter().map(|day| day.runs.total()).max().unwrap_or(0);
    let mut markup = Markup::default();
    markup.element("div").class("c-fig").inside(|markup| {
        picture.draw(markup, |markup| {
            patterns.define(markup, &all);
            ground(markup, input);
            for day in &days {
                cell(markup, input, patterns, day, busiest);
            }
            today(markup, input);
        });
        let planned = Other {
            class: "c-plan",
            shape: "M1 1h10v10h-10zM5 6a1 1 0 1 0 2 0a1 1 0 1 0-2 0",
            word: "planned",
            count: planned,
        };
        legend(markup, patterns, &all, &[planned], Shown::Words);
    });
    markup.finish()
}

/// The first day: a Monday.
fn first(input: &Calendar<'_>) -> Date {
    let back = i64::from(input.weeks.max(1) - 1) - i64::from(input.weeks_ahead);
    let into_week = i64::from(input.today.weekday().to_monday_zero_offset());
    input.today.saturating_sub((back * 7 + into_week).days())
}

fn last(input: &Calendar<'_>) -> Date {
    first(input).saturating_add((i64::from(input.weeks.max(1)) * 7 - 1).days())
}

fn days_in_window<'a>(input: &'a Calendar<'_>) -> impl Iterator<Item = &'a Day> {
    let (first, last) = (first(input), last(input));
    let mut days: Vec<&Day> = input.days.iter().filter(|day| (first..=last).contains(&day.date)).collect();
    days.sort_by_key(|day| day.date);
    days.into_iter()
}

/// The corner of a day's cell.
fn corner(input: &Calendar<'_>, date: Date) -> (f64, f64) {
    let index = i64::from((date - first(input)).get_days());
    (LEFT + real(index.div_euclid(7)) * PITCH, TOP + real(index.rem_euclid(7)) * PITCH)
}

/// Names of months and weekdays, and an empty cell for each day.
fn ground(markup: &mut Markup, input: &Calendar<'_>) {
    for (row, day) in [(0, Weekday::Monday), (2, Weekday::Wednesday), (4, Weekday::Friday)] {
        let name = input.today.saturating_add(
            i64::from(day.to_monday_zero_offset() - input.today.weekday().to_monday_zero_offset()).days(),
        );
        let text = markup.element("text").class("c-t c-end").attr("x", LEFT - 6.0);
        text.attr("y", TOP + real(row) * PITCH + CELL - 3.0).text(&name.strftime("%a").to_string());
    }
    let mut named: Option<(i64, i8)> = None;
    for week in 0..i64::from(input.weeks) {
        let monday = first(input).saturating_add((week * 7).days());
        let new = named.is_none_or(|(at, month)| month != monday.month() && week - at >= 3);
        // A month that has only begun to leave is not named: the next name needs the room.
        let leaves = week == 0 && monday.saturating_add(14.days()).month() != monday.month();
        if new && !leaves {
            let text = markup.element("text").class("c-t").attr("x", LEFT + real(week) * PITCH);
            text.attr("y", TOP - 7.0).text(&monday.strftime("%b").to_string());
            named = Some((week, monday.month()));
        }
    }
    // One path for all cells.
    let mut path = Path::default();
    for day in 0..i64::from(input.weeks) * 7 {
        let (x, y) = corner(input, first(input).saturating_add(day.days()));
        square(&mut path, (x + 1.0, y + 1.0), CELL - 2.0);
    }
    markup.element("path").class("c-blank").attr("d", &path).empty();
}

fn square(path: &mut Path, (x, y): (f64, f64), side: f64) {
    path.step('M', &[x, y]);
    for (command, length) in [('h', side), ('v', side), ('h', -side)] {
        path.step(command, &[length]);
    }
    path.step('z', &[]);
}

fn cell(markup: &mut Markup, input: &Calendar<'_>, patterns: Patterns<'_>, day: &Day, busiest: u64) {
    let Some(title) = title(day) else { return };
    let (x, y) = corner(input, day.date);
    markup.mark(Mark { title: &title, href: day.href.as_deref(), tab: true }, |markup| {
        let Some(worst) = day.runs.worst() else {
            // A frame with a dot.
            let mut path = Path::default();
            square(&mut path, (x + 0.7, y + 0.7), CELL - 1.4);
            path.step('M', &[x + CELL / 2.0 - 1.0, y + CELL / 2.0]);
            for right in [2.0, -2.0] {
                path.step('a', &[1.0, 1.0, 0.0, 1.0, 0.0, right, 0.0]);
            }
            return markup.element("path").class("c-plan").attr("d", &path).empty();
        };
        let good = day.runs.get(RunStatus::Succeeded);
        if good > 0 {
            let element = patterns.fill(markup.element("rect"), RunStatus::Succeeded);
            let element = element.attr("opacity", depth(day, busiest)).attr("x", x).attr("y", y);
            element.attr("width", CELL).attr("height", CELL).attr("rx", 2.0).empty();
        }
        if worst != RunStatus::Succeeded {
            let height = CELL * others(good, day.runs.total());
            let element = patterns.fill(markup.element("rect"), worst);
            let element = element.attr("x", x).attr("y", y + CELL - height);
            element.attr("width", CELL).attr("height", height).attr("rx", 2.0).empty();
        }
    });
}

/// How much of a day's cell is for runs that did not succeed: their share, but never so little that it is overlooked.
fn others(good: u64, all: u64) -> f64 {
    let share = real(all.saturating_sub(good) as i64) / real(all.max(1) as i64);
    share.clamp(0.3, 1.0)
}

/// A day on which more succeeded is darker; never so light that it looks empty.
fn depth(day: &Day, busiest: u64) -> f64 {
    let share = real(day.runs.total() as i64) / real(busiest.max(1) as i64);
    ((share * 4.0).ceil() / 4.0).clamp(0.25, 1.0) * 0.6 + 0.4
}

fn today(markup: &mut Markup, input: &Calendar<'_>) {
    let (x, y) = corner(input, input.today);
    let rect = markup.element("rect").class("c-today").attr("x", x - 1.5).attr("y", y - 1.5);
    rect.attr("width", CELL + 3.0).attr("height", CELL + 3.0).attr("rx", 3.5).empty();
}

/// `Fri 2026-11-13 · 24 runs: 22 succeeded, 2 failed · 3 planned`.
fn title(day: &Day) -> Option<String> {
    let mut parts = vec![day.date.strftime("%a %Y-%m-%d").to_string()];
    if day.runs.total() > 0 {
        parts.push(day.runs.in_words());
    }
    if day.planned > 0 {
        parts.push(format!("{} planned", counted(day.planned, "run")));
    }
    (parts.len() > 1).then(|| parts.join(" · "))
}

/// Renders the calendar as a table of the days that have runs.
pub(crate) fn calendar_table(input: &Calendar<'_>) -> String {
    let rows = days_in_window(input).filter(|day| title(day).is_some()).map(|day| {
        let text = day.date.strftime("%a %Y-%m-%d").to_string();
        let first = match day.href.as_deref() {
            Some(href) => Cell::Link { text, href },
            None => Cell::Text(text),
        };
        vec![first, day.runs.in_words().into(), grouped(day.planned).into()]
    });
    Table { caption: &format!("Days of {}", input.job), columns: &["Day", "Runs", "Planned"] }.write(rows)
}

#[cfg(test)]
mod tests;
