//! The timeline: past, active and planned runs with one row per job, and how many runs start in each piece of time below.

mod band;
mod bundle;
mod hatch;
mod lane;
mod list;
mod row;

pub(crate) use list::{agenda, timeline_table};

use everbell_core::{RunStatus, Zone};
use jiff::Timestamp;
use jiff::tz::Offset;

use super::axis::times;
use super::palette::{Counts, Other, Patterns, Shown, legend};
use super::plot::{nothing, share};
use super::svg::{Markup, Path, Picture, Size, real};
use super::words::{counted, period};

/// The input of a timeline.
pub(crate) struct Timeline<'a> {
    /// Unique in its page; letters, digits and dashes.
    pub(crate) id: &'a str,
    pub(crate) zone: &'a Zone,
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
    pub(crate) now: Timestamp,
    pub(crate) rows: &'a [Row],
    /// In order, one beginning where the other ends; none for no lane.
    pub(crate) load: &'a [Load],
    /// Times in which nothing ran.
    pub(crate) outages: &'a [Hatch],
    /// Where the runs of a row between two instants are listed.
    pub(crate) runs_of: &'a dyn Fn(&Row, Timestamp, Timestamp) -> String,
}

/// A job.
#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) key: String,
    pub(crate) href: String,
    pub(crate) paused: bool,
    /// In any order.
    pub(crate) events: Vec<Event>,
    /// Times in which slots got no run, in any order.
    pub(crate) gaps: Vec<Hatch>,
    /// Slots to come that are not drawn one by one, in order.
    pub(crate) bands: Vec<Band>,
}

impl Row {
    /// Whether nothing of it touches this time.
    pub(crate) fn is_empty(&self, from: Timestamp, to: Timestamp) -> bool {
        let touches = |begin: Timestamp, end: Timestamp| begin <= to && end >= from;
        let is_going = |event: &Event| event.what == What::Run(RunStatus::Running) && event.at <= to;
        let mut events = self.events.iter();
        let has_event = events.any(|event| is_going(event) || touches(event.at, event.until.unwrap_or(event.at)));
        let has_gap = self.gaps.iter().any(|gap| touches(gap.from, gap.until));
        !has_event && !has_gap && !self.bands.iter().any(|band| touches(band.from, band.until))
    }
}

/// Slots to come that are drawn as one: too many to see each, or kept from firing by a freeze.
#[derive(Clone)]
pub(crate) struct Band {
    /// [`What::Planned`] or [`What::Frozen`].
    pub(crate) what: What,
    pub(crate) from: Timestamp,
    pub(crate) until: Timestamp,
    pub(crate) slots: u64,
    /// How often, such as `30/min`, or why not.
    pub(crate) note: String,
}

/// A time that is hatched, because something did not happen in it.
#[derive(Clone)]
pub(crate) struct Hatch {
    pub(crate) from: Timestamp,
    pub(crate) until: Timestamp,
    /// Shown when it is pointed at.
    pub(crate) title: String,
}

/// Something that has a place on the axis.
#[derive(Clone)]
pub(crate) struct Event {
    pub(crate) what: What,
    /// The start time, or the slot if it never started.
    pub(crate) at: Timestamp,
    /// The actual or expected end.
    pub(crate) until: Option<Timestamp>,
    pub(crate) href: Option<String>,
    /// How many runs it stands for: more than one if a job fires for several orgs at once.
    pub(crate) runs: u64,
    /// In how many time zones these orgs are; 0 if that is not known.
    pub(crate) zones: u64,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Run(RunStatus),
    /// A slot that passed without a run.
    Missed,
    /// A slot that passed while the job was paused.
    Paused,
    /// A slot that is to come.
    Planned,
    /// A slot that is to come, and that a freeze keeps from firing.
    Frozen,
}

impl What {
    const fn word(self) -> &'static str {
        match self {
            What::Run(status) => status.as_str(),
            What::Missed => "missed",
            What::Paused => "paused",
            What::Planned => "planned",
            What::Frozen => "frozen",
        }
    }
}

/// How many runs started, or will start, in a piece of time.
pub(crate) struct Load {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
    pub(crate) runs: u64,
    /// Whether it is an expectation.
    pub(crate) predicted: bool,
}

const WIDTH: f64 = 1_200.0;
/// Where the axis of time begins and ends.
const LEFT: f64 = 210.0;
const RIGHT: f64 = 1_188.0;
/// Room for the axis above the rows.
const HEAD: f64 = 30.0;
const ROW: f64 = 26.0;
/// A slot that was missed, a run that was skipped, and a slot of a paused job, in a square of 12.
const DIAMOND: &str = "M6 1l5 5-5 5-5-5z";
const TRIANGLE: &str = "M6 1l5 9h-10z";
const TWO_BARS: &str = "M3 2h2v8h-2zM7 2h2v8h-2z";
/// How wide the time that it is now is.
const PILL: f64 = 76.0;
/// Times at the most.
const TIMES: i64 = 12;

impl Timeline<'_> {
    fn x(&self, at: Timestamp) -> f64 {
        LEFT + share(self.from, self.to, at) * (RIGHT - LEFT)
    }

    /// Below the last row.
    fn floor(&self) -> f64 {
        HEAD + real(self.rows.len() as i64) * ROW
    }

    /// Returns the end of an event on the axis. An active run ends now.
    fn end(&self, event: &Event) -> Timestamp {
        let end = match event.what {
            What::Run(RunStatus::Running) => Some(self.now),
            _ => event.until,
        };
        end.map_or(event.at, |end| end.max(event.at))
    }

    /// The events of a row that touch the window, in order.
    fn events<'r>(&self, row: &'r Row) -> Vec<&'r Event> {
        let touches = |event: &&Event| event.at <= self.to && self.end(event) >= self.from;
        let mut events: Vec<&Event> = row.events.iter().filter(touches).collect();
        events.sort_by_key(|event| (event.at, self.end(event)));
        events
    }
}

/// How long an event took, takes or will take; nothing for what did not start.
fn length(event: &Event, now: Timestamp) -> Option<i64> {
    let end = match event.what {
        What::Run(RunStatus::Running) => now,
        What::Missed | What::Paused | What::Frozen | What::Run(RunStatus::Skipped | RunStatus::Pending) => return None,
        What::Planned | What::Run(_) => event.until?,
    };
    Some((end.as_millisecond() - event.at.as_millisecond()).max(0))
}

/// The picture with its legend.
pub(crate) fn timeline(input: &Timeline<'_>) -> String {
    if input.rows.is_empty() {
        return nothing("No jobs to show.");
    }
    let events: Vec<Vec<&Event>> = input.rows.iter().map(|row| input.events(row)).collect();
    let mut runs = Counts::default();
    for event in events.iter().flatten() {
        if let What::Run(status) = event.what {
            runs.add(status, event.runs);
        }
    }
    let count = |what: What| -> u64 {
        let own = events.iter().flatten().filter(|event| event.what == what).map(|event| event.runs);
        own.chain(band::bands_in_window(input, what).map(|band| band.slots)).sum()
    };
    let [missed, paused, planned, frozen] = [What::Missed, What::Paused, What::Planned, What::Frozen].map(count);
    let lane = if input.load.is_empty() { 0.0 } else { lane::HEIGHT };
    let picture = Picture {
        id: input.id,
        class: "c-timeline",
        title: &format!("Timeline of {}", counted(input.rows.len() as u64, "job")),
        summary: &format!(
            "{}: {}; {missed} missed, {}{}{planned} planned.{}",
            period(input.from, input.to, input.zone),
            runs.in_words(),
            if paused > 0 { format!("{paused} paused, ") } else { String::new() },
            if frozen > 0 { format!("{frozen} frozen, ") } else { String::new() },
            hatch::in_words(input)
        ),
        linked: true,
        size: Size::Scaled(WIDTH, input.floor() + lane + 8.0),
    };
    // What was skipped has no length, so it is no bar.
    let bars = Counts::new(runs.present().filter(|(status, _)| *status != RunStatus::Skipped));
    let patterns = Patterns(input.id);
    let mut markup = Markup::default();
    markup.element("div").class("c-fig c-wide").inside(|markup| {
        picture.draw(markup, |markup| {
            patterns.define(markup, &bars);
            hatch::define(markup, input);
            ground(markup, input, input.floor() + lane);
            hatch::draw(markup, input);
            band::draw(markup, input);
            row::draw(markup, input, &events, patterns);
            lane::draw(markup, input);
            now(markup, input, input.floor() + lane);
        });
        let skipped = runs.get(RunStatus::Skipped);
        let skipped = Other { class: "c-skipped", shape: TRIANGLE, word: "skipped", count: skipped };
        let missed = Other { class: "c-missed", shape: DIAMOND, word: "missed", count: missed };
        let planned = Other { class: "c-plan", shape: "M1 3h10v6h-10z", word: "planned", count: planned };
        let paused = Other { class: "c-held", shape: TWO_BARS, word: "paused", count: paused };
        legend(markup, patterns, &bars, &[skipped, missed, paused, planned], Shown::WordsAndCounts);
    });
    markup.finish()
}

/// Times above, lines through all rows, and a mark where the clocks change.
fn ground(markup: &mut Markup, input: &Timeline<'_>, floor: f64) {
    let now = pill(input);
    for tick in times(input.from, input.to, input.zone, TIMES) {
        let x = input.x(tick.at);
        let class = if tick.strong { "c-base" } else { "c-grid" };
        markup.element("path").class(class).attr("d", &Path::line((x, HEAD - 6.0), (x, floor))).empty();
        // The time that it is now has the better claim to the place.
        if now.is_none_or(|now| (x - now).abs() > PILL / 2.0 + 18.0) {
            let class = if tick.strong { "c-t c-mid c-day" } else { "c-t c-mid" };
            markup.element("text").class(class).attr("x", x).attr("y", 15.0).text(&tick.label);
        }
    }
    let mut rows = Path::default();
    for row in 0..=input.rows.len() {
        rows.step('M', &[0.0, HEAD + real(row as i64) * ROW]);
        rows.step('H', &[RIGHT]);
    }
    markup.element("path").class("c-grid").attr("d", &rows).empty();
    for change in input.zone.changes_between(input.from, input.to) {
        let x = input.x(change.at);
        markup.element("g").inside(|markup| {
            let title = format!("The clocks change from UTC{} to UTC{}", offset(change.before), offset(change.after));
            markup.element("title").text(&title);
            markup.element("path").class("c-shift").attr("d", &Path::line((x, HEAD), (x, floor))).empty();
        });
    }
}

/// `+02`, `-03:30`; nothing for what no zone has.
fn offset(seconds: i64) -> String {
    Offset::from_seconds(seconds as i32).map_or_else(|_| String::new(), |offset| offset.to_string())
}

/// The middle of the pill that says how late it is, if now is on the axis. It stays in the picture.
fn pill(input: &Timeline<'_>) -> Option<f64> {
    let is_shown = (input.from..=input.to).contains(&input.now);
    is_shown.then(|| input.x(input.now).min(WIDTH - PILL / 2.0))
}

fn now(markup: &mut Markup, input: &Timeline<'_>, floor: f64) {
    let Some(middle) = pill(input) else { return };
    let time = input.now.to_zoned(input.zone.as_jiff().clone()).strftime("now %H:%M").to_string();
    let x = input.x(input.now);
    markup.element("path").class("c-now").attr("d", &Path::line((x, 22.0), (x, floor))).empty();
    let rect = markup.element("rect").class("c-nowpill").attr("x", middle - PILL / 2.0).attr("y", 1.0);
    rect.attr("width", PILL).attr("height", 20.0).attr("rx", 10.0).empty();
    markup.element("text").class("c-t c-mid c-nowtext").attr("x", middle).attr("y", 15.0).text(&time);
}

#[cfg(test)]
mod tests;
