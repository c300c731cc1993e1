//! The timeline as a table, and as a list for narrow screens.

use jiff::Timestamp;
use jiff::civil::Date;

use super::{Band, Event, Row, Timeline, What, band, length};
use crate::chart::palette::{class, dot, swatch};
use crate::chart::svg::Markup;
use crate::chart::table::{Cell, Table};
use crate::chart::words::{grouped, orgs_in_zones, period, stamp, took};

/// Lines of an agenda at the most: those that are nearest to now.
const MAX_LIST_LINES: usize = 200;

/// Every event, job by job.
pub(crate) fn timeline_table(input: &Timeline<'_>) -> String {
    let row = |row: &Row, event: &Event| {
        let length = length(event, input.now).map_or_else(|| "-".to_owned(), took);
        let when = stamp(event.at, input.zone);
        let orgs =
            if event.runs > 1 { format!(" for {}", orgs_in_zones(event.runs, event.zones)) } else { String::new() };
        let what = format!("{}{orgs}", event.what.word());
        vec![Cell::Text(row.key.clone()), when.into(), what.into(), length.into()]
    };
    let band = |row: &Row, band: &Band| {
        let when = period(band.from, band.until, input.zone);
        let what = format!("{} {} · {}", grouped(band.slots), band.what.word(), band.note);
        vec![Cell::Text(row.key.clone()), when.into(), what.into(), "-".to_owned().into()]
    };
    let parts = input.rows.iter().map(|job| {
        let events = input.events(job).into_iter().map(|event| row(job, event));
        let rows: Vec<_> = events.chain(band::of_row(input, job).map(|own| band(job, own))).collect();
        (Some(job.key.as_str()), rows)
    });
    let caption = format!("Timeline, {}", period(input.from, input.to, input.zone));
    Table { caption: &caption, columns: &["Job", "When", "What", "Duration"] }.write_parts(parts)
}

/// Events of one job and one kind in one hour, or a band.
struct Line<'a> {
    row: &'a Row,
    /// When the first of them is; a band that has begun is there now.
    at: Timestamp,
    what: What,
    /// The text beside the kind.
    detail: String,
    href: Option<String>,
}

/// Events that become a line.
struct Hour<'a> {
    first: &'a Event,
    last: &'a Event,
    count: u64,
}

/// Lists past and planned runs in order, with an anchor for the current time.
pub(crate) fn agenda(input: &Timeline<'_>) -> String {
    let mut lines: Vec<Line<'_>> = input.rows.iter().flat_map(|row| lines(input, row)).collect();
    let all = lines.len();
    lines.sort_by_key(|line| line.at.duration_since(input.now).abs());
    lines.truncate(MAX_LIST_LINES);
    lines.sort_by_key(|line| line.at);
    let mut markup = Markup::default();
    markup.element("div").class("c-agenda").inside(|markup| {
        if lines.is_empty() {
            markup.element("p").class("c-none").text("Nothing in this time.");
        }
        let day = |line: &Line<'_>| local(input, line.at).0;
        let mut is_past = true;
        for group in lines.chunk_by(|one, other| day(one) == day(other)) {
            markup.element("h3").text(&day(&group[0]).strftime("%a %-d %b %Y").to_string());
            markup.element("ol").inside(|markup| {
                for line in group {
                    if is_past && line.at > input.now {
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
    let mut hours: Vec<Hour<'a>> = Vec::new();
    for event in input.events(row) {
        let same = |line: &&mut Hour<'_>| line.first.what == event.what && hour(line.first) == hour(event);
        match hours.iter_mut().rev().take(4).find(same) {
            Some(line) => {
                line.count += event.runs;
                line.last = event;
            }
            None => hours.push(Hour { first: event, last: event, count: event.runs }),
        }
    }
    let bands = row.bands.iter().filter(|band| band.from <= input.to && band.until >= input.from).map(|band| Line {
        row,
        at: band.from,
        what: band.what,
        detail: format!(" · {} until {} · {}", grouped(band.slots), local(input, band.until).1, band.note),
        href: None,
    });
    hours.into_iter().map(|hour| line(input, row, &hour)).chain(bands).collect()
}

fn line<'a>(input: &Timeline<'_>, row: &'a Row, Hour { first, last, count }: &Hour<'_>) -> Line<'a> {
    let about = if first.what == What::Planned { "about " } else { "" };
    let is_single = std::ptr::eq(*first, *last);
    let detail = match (is_single, length(first, input.now)) {
        (true, _) if *count > 1 => format!(" for {}", orgs_in_zones(*count, first.zones)),
        (true, Some(length)) => format!(" · {about}{}", took(length)),
        (true, None) => String::new(),
        _ => format!(" · {count} until {}", local(input, last.at).1),
    };
    let listed = || Some((input.runs_of)(row, first.at, input.end(last)));
    let href = if is_single { first.href.clone() } else { listed() };
    Line { row, at: first.at, what: first.what, detail, href }
}

/// `08:00 daily-briefing · succeeded · 2.1 s`.
fn entry(markup: &mut Markup, input: &Timeline<'_>, line: &Line<'_>) {
    let Line { row, at, what, detail, href } = line;
    markup.element("li").inside(|markup| {
        markup.element("time").attr("datetime", &at.to_string()).text(&local(input, *at).1);
        swatch(markup, |markup| {
            let (class, shape) = looks(*what);
            markup.element("path").class(&class).attr("transform", "translate(6 6)").attr("d", shape).empty();
        });
        markup.element("a").attr("href", &row.href).inside(|markup| markup.element("bdi").text(&row.key));
        let text = format!("{}{detail}", what.word());
        markup.element("span").inside(|markup| match href {
            Some(href) => markup.element("a").attr("href", href).text(&text),
            None => markup.text(&text),
        });
    });
}

fn looks(what: What) -> (String, &'static str) {
    match what {
        What::Run(status) => (format!("c-dot {}", class(status)), dot(status)),
        What::Missed => ("c-missed".to_owned(), "M0-5l5 5-5 5-5-5z"),
        What::Paused => ("c-held".to_owned(), "M-3-4h2v8h-2zM1-4h2v8h-2z"),
        What::Planned => ("c-plan".to_owned(), "M-4-3h8v6h-8z"),
        What::Frozen => ("c-held".to_owned(), "M-4-1h8v2h-8zM-1-4h2v8h-2z"),
    }
}
