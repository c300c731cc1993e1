//! The timeline as a table, and as a list for narrow screens.

use jiff::Timestamp;
use jiff::civil::Date;

use super::{Event, Row, Timeline, What, length};
use crate::chart::palette::{class, dot, swatch};
use crate::chart::svg::Markup;
use crate::chart::table::{Cell, Table};
use crate::chart::words::{period, stamp, took};

/// Lines of an agenda at the most: those that are nearest to now.
const MAX_LIST_LINES: usize = 200;

/// Every event, job by job.
pub(crate) fn timeline_table(input: &Timeline<'_>) -> String {
    let row = |row: &Row, event: &Event| {
        let length = length(event, input.now).map_or_else(|| "-".to_owned(), took);
        let when = stamp(event.at, input.zone);
        vec![Cell::Text(row.key.clone()), when.into(), event.what.word().to_owned().into(), length.into()]
    };
    let rows = input.rows.iter().flat_map(|job| input.events(job).into_iter().map(move |event| row(job, event)));
    let caption = format!("Timeline, {}", period(input.from, input.to, input.zone));
    Table { caption: &caption, columns: &["Job", "When", "What", "Duration"] }.write(rows)
}

/// Events of one job and one kind in one hour.
struct Line<'a> {
    row: &'a Row,
    first: &'a Event,
    last: &'a Event,
    count: usize,
}

/// Lists past and planned runs in order, with an anchor for the current time.
pub(crate) fn agenda(input: &Timeline<'_>) -> String {
    let mut lines: Vec<Line<'_>> = input.rows.iter().flat_map(|row| lines(input, row)).collect();
    let all = lines.len();
    lines.sort_by_key(|line| line.first.at.duration_since(input.now).abs());
    lines.truncate(MAX_LIST_LINES);
    lines.sort_by_key(|line| line.first.at);
    let mut markup = Markup::default();
    markup.element("div").class("c-agenda").inside(|markup| {
        if lines.is_empty() {
            markup.element("p").class("c-none").text("Nothing in this time.");
        }
        let day = |line: &Line<'_>| local(input, line.first.at).0;
        let mut is_past = true;
        for group in lines.chunk_by(|one, other| day(one) == day(other)) {
            markup.element("h3").text(&day(&group[0]).strftime("%a %-d %b %Y").to_string());
            markup.element("ol").inside(|markup| {
                for line in group {
                    if is_past && line.first.at > input.now {
                        let line = markup.element("li").attr("id", &format!("{}-now", input.id)).class("c-nowline");
                        line.text(&format!("now {}", local(input, input.now).1));
                        is_past = false;
                    }
                    entry(markup, input, line);
                }
            });
        }
        if all > lines.len() {
            let text = format!("{} more are farther away from now.", all - lines.len());
            markup.element("p").class("c-more").text(&text);
        }
    });
    markup.finish()
}

fn local(input: &Timeline<'_>, at: Timestamp) -> (Date, String) {
    let there = at.to_zoned(input.zone.as_jiff().clone());
    (there.date(), there.strftime("%H:%M").to_string())
}

fn lines<'a>(input: &Timeline<'_>, row: &'a Row) -> Vec<Line<'a>> {
    let hour = |event: &Event| event.at.as_second().div_euclid(3_600);
    let mut lines: Vec<Line<'a>> = Vec::new();
    for event in input.events(row) {
        let same = |line: &&mut Line<'_>| line.first.what == event.what && hour(line.first) == hour(event);
        match lines.iter_mut().rev().take(4).find(same) {
            Some(line) => {
                line.count += 1;
                line.last = event;
            }
            None => lines.push(Line { row, first: event, last: event, count: 1 }),
        }
    }
    lines
}

/// `08:00 daily-briefing · succeeded · 2.1 s`.
fn entry(markup: &mut Markup, input: &Timeline<'_>, line: &Line<'_>) {
    let Line { row, first, last, count } = line;
    markup.element("li").inside(|markup| {
        markup.element("time").attr("datetime", &first.at.to_string()).text(&local(input, first.at).1);
        swatch(markup, |markup| {
            let (class, shape) = looks(first.what);
            markup.element("path").class(&class).attr("transform", "translate(6 6)").attr("d", shape).empty();
        });
        markup.element("a").attr("href", &row.href).inside(|markup| markup.element("bdi").text(&row.key));
        let about = if first.what == What::Planned { "about " } else { "" };
        let detail = match (count, length(first, input.now)) {
            (1, Some(length)) => format!(" · {about}{}", took(length)),
            (1, None) => String::new(),
            _ => format!(" · {count} until {}", local(input, last.at).1),
        };
        let text = format!("{}{detail}", first.what.word());
        markup.element("span").inside(|markup| match (count, first.href.as_deref()) {
            (1, Some(href)) => markup.element("a").attr("href", href).text(&text),
            (1, None) => markup.text(&text),
            _ => markup.element("a").attr("href", &(input.runs_of)(row, first.at, input.end(last))).text(&text),
        });
    });
}

fn looks(what: What) -> (String, &'static str) {
    match what {
        What::Run(status) => (format!("c-dot {}", class(status)), dot(status)),
        What::Missed => ("c-missed".to_owned(), "M0-5l5 5-5 5-5-5z"),
        What::Paused => ("c-held".to_owned(), "M-3-4h2v8h-2zM1-4h2v8h-2z"),
        What::Planned => ("c-plan".to_owned(), "M-4-3h8v6h-8z"),
    }
}
