//! The last runs of a job as a row of bars, the oldest left: looks by status, height by duration.

use everbell_core::{RunStatus, Zone};
use jiff::Timestamp;
use jiff::civil::Date;

use super::palette::{Counts, Patterns, Shown, legend};
use super::svg::{Mark, Markup, Percent, Picture, Size, real};
use super::words::{shortened, stamp, took};

/// The input of a strip.
pub(crate) struct Strip<'a> {
    /// Unique in its page; letters, digits and dashes.
    pub(crate) id: &'a str,
    /// The key of the job.
    pub(crate) job: &'a str,
    pub(crate) size: StripSize,
    pub(crate) zone: &'a Zone,
    /// From the oldest to the newest. More than there is room for are left out, the oldest first.
    pub(crate) runs: &'a [StripRun],
}

/// One run in a strip.
pub(crate) struct StripRun {
    pub(crate) at: Timestamp,
    pub(crate) status: RunStatus,
    /// How long it took, or takes already.
    pub(crate) took_ms: Option<i64>,
    pub(crate) version: u32,
    /// Such as the code of its failure.
    pub(crate) note: Option<String>,
    pub(crate) href: Option<String>,
}

/// Where a strip stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StripSize {
    /// In a list: 60 runs, for those who see and point.
    List,
    /// On the page of the job: 90 runs, days and versions.
    Page,
}

impl StripSize {
    /// How many runs there is room for.
    pub(crate) const fn slots(self) -> usize {
        match self {
            StripSize::List => 60,
            StripSize::Page => 90,
        }
    }

    /// The height of the picture, and where the highest bar begins and all bars end.
    const fn heights(self) -> (f64, f64, f64) {
        match self {
            StripSize::List => (28.0, 7.0, 27.0),
            StripSize::Page => (94.0, 24.0, 72.0),
        }
    }
}

/// The share of its slot that a bar is wide.
const BAR: f64 = 0.7;
/// Days or months that are named at the most.
const SEPARATORS: usize = 15;

/// The picture.
pub(crate) fn strip(input: &Strip<'_>) -> String {
    let slots = input.size.slots();
    let runs = &input.runs[input.runs.len().saturating_sub(slots)..];
    let counts = Counts::from_statuses(runs.iter().map(|run| run.status));
    let newest = runs.last().map_or_else(String::new, |run| format!("; the newest {}", run.status));
    let picture = Picture {
        id: input.id,
        class: if input.size == StripSize::List { "c-strip" } else { "c-strip c-page" },
        title: &format!("Last runs of {}", input.job),
        summary: &format!("{}{newest}.", counts.in_words()),
        linked: runs.iter().any(|run| run.href.is_some()),
        size: Size::Fluid(input.size.heights().0),
    };
    let bars = Bars { input, runs, first: slots - runs.len(), patterns: Patterns(input.id), median: median(runs) };
    let mut markup = Markup::default();
    picture.draw(&mut markup, |markup| {
        bars.patterns.define(markup, &counts);
        bars.missing(markup);
        match input.size {
            StripSize::List => markup.seen_only(|markup| bars.draw(markup)),
            StripSize::Page => {
                bars.separators(markup);
                bars.versions(markup);
                bars.draw(markup);
            }
        }
    });
    markup.finish()
}

/// The duration in the middle.
fn median(runs: &[StripRun]) -> i64 {
    let mut durations: Vec<i64> = runs.iter().filter_map(|run| run.took_ms).collect();
    durations.sort_unstable();
    durations.get(durations.len() / 2).copied().unwrap_or(1).max(1)
}

/// How high a bar is, as a share: half for the median, all for four times as long, never nothing.
fn height(took_ms: Option<i64>, median: i64) -> f64 {
    let took = took_ms.unwrap_or(median).max(1);
    (0.5 + 0.25 * (real(took) / real(median)).log2()).clamp(0.2, 1.0)
}

struct Bars<'a> {
    input: &'a Strip<'a>,
    runs: &'a [StripRun],
    /// The slot of the first run: slots before it are empty.
    first: usize,
    patterns: Patterns<'a>,
    median: i64,
}

impl Bars<'_> {
    /// A place across, as a share; bars stand in the middle of their slots.
    fn x(&self, index: usize, within: f64) -> Percent {
        Percent((real((self.first + index) as i64) + within) / real(self.input.size.slots() as i64))
    }

    /// Neighbours of the same looks are in one group.
    fn draw(&self, markup: &mut Markup) {
        let mut from = 0;
        for group in self.runs.chunk_by(|one, other| one.status == other.status) {
            self.patterns.fill(markup.element("g"), group[0].status).inside(|markup| {
                for (index, run) in group.iter().enumerate() {
                    self.bar(markup, from + index, run);
                }
            });
            from += group.len();
        }
    }

    fn bar(&self, markup: &mut Markup, index: usize, run: &StripRun) {
        let (_, top, floor) = self.input.size.heights();
        let share = if run.status == RunStatus::Skipped { 0.2 } else { height(run.took_ms, self.median) };
        let high = ((floor - top) * share).round();
        let title = self.title(run);
        let tab = self.input.size == StripSize::Page;
        markup.mark(Mark { title: &title, href: run.href.as_deref(), tab }, |markup| {
            let width = Percent(BAR / real(self.input.size.slots() as i64));
            let rect = markup.element("rect").attr("x", self.x(index, (1.0 - BAR) / 2.0)).attr("width", width);
            rect.attr("y", floor - high).attr("height", high).empty();
            if run.status == RunStatus::Failed {
                let cross = markup.element("svg").class("c-cap").attr("x", self.x(index, 0.5));
                cross.attr("y", floor - high - 4.0).inside(|markup| {
                    markup.element("path").attr("d", "M-2-2 2 2M-2 2 2-2").empty();
                });
            }
        });
    }

    /// `2026-11-13 08:00 · failed · 30.0 s · smtp_timeout`.
    fn title(&self, run: &StripRun) -> String {
        let mut title = format!("{} · {}", stamp(run.at, self.input.zone), run.status);
        for part in run.took_ms.map(took).iter().chain(run.note.as_ref()) {
            title.push_str(" · ");
            title.push_str(&shortened(part, 120));
        }
        title
    }

    /// Faint feet where there is no run yet, so that strips below each other end at the same place.
    fn missing(&self, markup: &mut Markup) {
        if self.first == 0 {
            return;
        }
        let (_, _, floor) = self.input.size.heights();
        let slot = 1.0 / real(self.first as i64);
        let id = format!("{}-void", self.input.id);
        let pattern = markup.element("pattern").attr("id", &id).attr("patternContentUnits", "objectBoundingBox");
        pattern.attr("width", &format!("{slot:.5}")).attr("height", 1.0).inside(|markup| {
            let foot = markup.element("rect").class("c-void").attr("x", &format!("{:.5}", slot * (1.0 - BAR) / 2.0));
            foot.attr("width", &format!("{:.5}", slot * BAR)).attr("height", 1.0).empty();
        });
        let width = Percent(real(self.first as i64) / real(self.input.size.slots() as i64));
        let rect = markup.element("rect").attr("y", floor - 2.0).attr("width", width).attr("height", 2.0);
        rect.attr("fill", &format!("url(#{id})")).empty();
    }

    /// A line where another day begins; another month, if there are too many days.
    fn separators(&self, markup: &mut Markup) {
        let (_, top, floor) = self.input.size.heights();
        let day = |run: &StripRun| run.at.to_zoned(self.input.zone.as_jiff().clone()).date();
        let changes = |differ: fn(Date, Date) -> bool| -> Vec<usize> {
            let pairs = self.runs.windows(2).enumerate();
            pairs.filter(|(_, pair)| differ(day(&pair[0]), day(&pair[1]))).map(|(index, _)| index + 1).collect()
        };
        let days = changes(|one, other| one != other);
        let (starts, format) = if days.len() <= SEPARATORS {
            (days, "%-d %b")
        } else {
            (changes(|one, other| (one.year(), one.month()) != (other.year(), other.month())), "%b %Y")
        };
        if starts.len() > SEPARATORS {
            return;
        }
        let mut named_until = 0;
        for start in starts {
            let line = markup.element("line").class("c-sep").attr("x1", self.x(start, 0.0));
            line.attr("x2", self.x(start, 0.0)).attr("y1", top - 6.0).attr("y2", floor + 6.0).empty();
            if self.first + start >= named_until {
                let text = markup.element("text").class("c-t c-mid").attr("x", self.x(start, 0.0));
                text.attr("y", floor + 18.0).text(&day(&self.runs[start]).strftime(format).to_string());
                named_until = self.first + start + 6;
            }
        }
    }

    /// A flag where a run has another version than the one before.
    fn versions(&self, markup: &mut Markup) {
        let pairs = self.runs.windows(2).enumerate();
        for (index, pair) in pairs.filter(|(_, pair)| pair[0].version != pair[1].version) {
            let (_, _, floor) = self.input.size.heights();
            let (x, name) = (self.x(index + 1, 0.0), format!("v{}", pair[1].version));
            let title = format!("version {} from {}", pair[1].version, stamp(pair[1].at, self.input.zone));
            markup.mark(Mark { title: &title, href: None, tab: false }, |markup| {
                let line = markup.element("line").class("c-ver").attr("x1", x).attr("x2", x);
                line.attr("y1", 4.0).attr("y2", floor).empty();
                let late = self.first + index + 6 > self.input.size.slots();
                let (class, shift) = if late { ("c-t c-ver c-end", -5.0) } else { ("c-t c-ver", 5.0) };
                let text = markup.element("text").class(class).attr("x", x).attr("dx", shift).attr("y", 12.0);
                text.text(&name);
            });
        }
    }
}

/// Renders the legend that all strips of a page share.
pub(crate) fn strip_legend(id: &str) -> String {
    let (mut markup, all) = (Markup::default(), Counts::from_statuses(RunStatus::ALL.iter().copied()));
    let hidden = markup.element("svg").class("c-defs").attr("aria-hidden", "true");
    hidden.inside(|markup| Patterns(id).define(markup, &all));
    legend(&mut markup, Patterns(id), &all, &[], Shown::Words);
    markup.finish()
}

#[cfg(test)]
mod tests;
