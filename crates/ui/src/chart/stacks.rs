//! The last slots of a job that fires for each org as a row of columns, the oldest left: each has the runs of all orgs, stacked
//! by status.

use everbell_core::Zone;
use jiff::Timestamp;

use super::palette::{Counts, Patterns, STACK, Shown, legend};
use super::svg::{Mark, Markup, Percent, Picture, Size, real};
use super::words::{counted, stamp};

/// The input of a row of columns.
pub(crate) struct Stacks<'a> {
    /// Unique in its page; letters, digits and dashes.
    pub(crate) id: &'a str,
    /// The key of the job.
    pub(crate) job: &'a str,
    pub(crate) zone: &'a Zone,
    /// From the oldest to the newest. More than [`MAX_STACKS`] are left out, the oldest first.
    pub(crate) slots: &'a [Stack],
}

/// The runs of a slot.
pub(crate) struct Stack {
    pub(crate) at: Timestamp,
    pub(crate) runs: Counts,
    pub(crate) href: String,
}

/// The most columns.
pub(crate) const MAX_STACKS: usize = 60;
/// The height of the picture, and where the highest column begins and all of them end.
const HEIGHT: f64 = 118.0;
const TOP: f64 = 10.0;
const FLOOR: f64 = 96.0;
/// The share of its place that a column is wide.
const BAR: f64 = 0.7;
/// The least height of a status, so that one failure of a thousand is seen.
const LEAST: f64 = 2.5;
/// How many places a name of a day takes.
const NAME_PLACES: usize = 6;

/// The picture with its legend.
pub(crate) fn stacks(input: &Stacks<'_>) -> String {
    let slots = &input.slots[input.slots.len().saturating_sub(MAX_STACKS)..];
    let all: Counts = slots.iter().map(|slot| slot.runs).sum();
    let most = slots.iter().map(|slot| slot.runs.total()).max().unwrap_or(0).max(1);
    let picture = Picture {
        id: input.id,
        class: "c-strip c-page",
        title: &format!("Last slots of {}", input.job),
        summary: &format!("{}; {}.", counted(slots.len() as u64, "slot"), all.in_words()),
        linked: true,
        size: Size::Fluid(HEIGHT),
    };
    let patterns = Patterns(input.id);
    let columns = Columns { input, slots, first: MAX_STACKS - slots.len(), most, patterns };
    let mut markup = Markup::default();
    markup.element("div").class("c-fig").inside(|markup| {
        picture.draw(markup, |markup| {
            patterns.define(markup, &all);
            columns.ground(markup);
            columns.days(markup);
            for (index, slot) in slots.iter().enumerate() {
                columns.column(markup, index, slot);
            }
        });
        legend(markup, patterns, &all, &[], Shown::WordsAndCounts);
    });
    markup.finish()
}

struct Columns<'a> {
    input: &'a Stacks<'a>,
    slots: &'a [Stack],
    /// The place of the first slot: those before it are empty.
    first: usize,
    most: u64,
    patterns: Patterns<'a>,
}

impl Columns<'_> {
    /// A place across, as a share.
    fn x(&self, index: usize, within: f64) -> Percent {
        Percent((real((self.first + index) as i64) + within) / real(MAX_STACKS as i64))
    }

    /// The base line, and the height of the highest column in words.
    fn ground(&self, markup: &mut Markup) {
        for (y, class) in [(TOP, "c-grid"), (FLOOR, "c-base")] {
            let line = markup.element("line").class(class).attr("x1", Percent(0.0)).attr("x2", Percent(1.0));
            line.attr("y1", y).attr("y2", y).empty();
        }
        if self.first >= NAME_PLACES {
            let text = markup.element("text").class("c-t").attr("x", Percent(0.0)).attr("y", TOP + 12.0);
            text.text(&counted(self.most, "run"));
        }
    }

    /// The day where it changes.
    fn days(&self, markup: &mut Markup) {
        let day = |slot: &Stack| slot.at.to_zoned(self.input.zone.as_jiff().clone()).date();
        let mut named_until = 0;
        for (index, pair) in self.slots.windows(2).enumerate() {
            let place = self.first + index + 1;
            if day(&pair[0]) == day(&pair[1]) || place < named_until || place + NAME_PLACES / 2 > MAX_STACKS {
                continue;
            }
            let x = self.x(index + 1, 0.0);
            let line = markup.element("line").class("c-sep").attr("x1", x).attr("x2", x);
            line.attr("y1", TOP - 4.0).attr("y2", FLOOR + 6.0).empty();
            let text = markup.element("text").class("c-t c-mid").attr("x", x).attr("y", FLOOR + 18.0);
            text.text(&day(&pair[1]).strftime("%-d %b").to_string());
            named_until = place + NAME_PLACES;
        }
    }

    fn column(&self, markup: &mut Markup, index: usize, slot: &Stack) {
        let runs = slot.runs.total();
        let title = format!("{} · {}", stamp(slot.at, self.input.zone), slot.runs.in_words());
        markup.mark(Mark { title: &title, href: Some(&slot.href), tab: true }, |markup| {
            let hit = markup.element("rect").class("c-hit").attr("x", self.x(index, 0.0));
            hit.attr("width", Percent(1.0 / real(MAX_STACKS as i64)))
                .attr("y", TOP)
                .attr("height", FLOOR - TOP)
                .empty();
            let present: Vec<_> = STACK.into_iter().filter(|status| slot.runs.get(*status) > 0).collect();
            // What each status gets at least is taken from the whole, so the order of heights stays.
            let whole = (FLOOR - TOP) * real(runs as i64) / real(self.most as i64);
            let room = (whole - LEAST * real(present.len() as i64)).max(0.0);
            let mut floor = FLOOR;
            for status in present {
                let height = LEAST + room * real(slot.runs.get(status) as i64) / real(runs as i64);
                let rect =
                    self.patterns.fill(markup.element("rect"), status).attr("x", self.x(index, (1.0 - BAR) / 2.0));
                let rect = rect.attr("width", Percent(BAR / real(MAX_STACKS as i64)));
                rect.attr("y", floor - height).attr("height", height).empty();
                floor -= height;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use everbell_core::RunStatus;

    use super::*;

    fn drawn(counts: &[[(RunStatus, u64); 2]]) -> String {
        let start: Timestamp = "2026-11-13T07:00:00Z".parse().unwrap();
        let slot = |(hour, counts): (usize, &[(RunStatus, u64); 2])| Stack {
            at: start + jiff::SignedDuration::from_hours(hour as i64),
            runs: Counts::new(*counts),
            href: format!("/runs?from={hour}"),
        };
        let slots: Vec<Stack> = counts.iter().enumerate().map(slot).collect();
        stacks(&Stacks { id: "s1", job: "brief<ing>", zone: &Zone::utc(), slots: &slots })
    }

    #[test]
    fn a_slot_is_one_column_with_its_runs_by_status() {
        let (good, bad) = (RunStatus::Succeeded, RunStatus::Failed);
        let drawn = drawn(&[[(good, 997), (bad, 3)], [(good, 500), (bad, 0)]]);
        assert!(drawn.contains("<title id=\"s1-t\">Last slots of brief&lt;ing&gt;</title>"), "{drawn}");
        assert!(drawn.contains("<title>2026-11-13 07:00 · 1,000 runs: 997 succeeded, 3 failed</title>"), "{drawn}");
        assert!(drawn.contains("href=\"/runs?from=0\""), "{drawn}");
        assert!(drawn.contains("2 slots; 1,500 runs: 1,497 succeeded, 3 failed."), "{drawn}");
        // Half of the runs is half of the height.
        assert!(drawn.contains("height=\"43\""), "{drawn}");
        assert!(!drawn.contains("NaN") && !drawn.contains("style"), "{drawn}");
    }

    #[test]
    fn only_the_newest_slots_are_shown() {
        let counts = vec![[(RunStatus::Succeeded, 5), (RunStatus::Failed, 0)]; 80];
        let shown = drawn(&counts);
        assert_eq!(shown.matches("<a ").count(), MAX_STACKS);
        assert!(shown.contains("from=79\"") && !shown.contains("from=19\""));
        assert!(drawn(&[]).contains("0 slots; no runs."));
    }
}
