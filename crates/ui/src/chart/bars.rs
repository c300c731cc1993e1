//! Runs per hour, or per any other piece of time, stacked by status.

use everbell_core::Zone;
use jiff::Timestamp;

use super::axis::counts;
use super::palette::{Counts, Patterns, STACK, Shown, legend};
use super::plot::{Plot, nothing, y};
use super::svg::{Mark, Markup, Percent, real};
use super::table::{Cell, Table};
use super::words::{grouped, period};

/// The input of a bar chart.
pub(crate) struct Bars<'a> {
    /// Unique in its page; letters, digits and dashes.
    pub(crate) id: &'a str,
    /// Such as `Runs per hour`.
    pub(crate) title: &'a str,
    pub(crate) zone: &'a Zone,
    /// In order, one beginning where the other ends.
    pub(crate) buckets: &'a [Bucket],
}

/// The runs of a piece of time.
pub(crate) struct Bucket {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
    pub(crate) runs: Counts,
    /// Where these runs are listed.
    pub(crate) href: Option<String>,
}

/// The share of its piece that a bar is wide.
const BAR: f64 = 0.72;
/// The minimum height of a segment, so that a single run is visible.
const LEAST: f64 = 2.0;

/// The picture with its legend.
pub(crate) fn bars(input: &Bars<'_>) -> String {
    let all: Counts = input.buckets.iter().map(|bucket| bucket.runs).sum();
    let (Some(first), Some(last), 1..) = (input.buckets.first(), input.buckets.last(), all.total()) else {
        return nothing("No runs in this time.");
    };
    let ticks = counts(input.buckets.iter().map(|bucket| bucket.runs.total()).max().unwrap_or(0));
    let top = ticks.last().copied().unwrap_or(1);
    let heights: Vec<(f64, String)> = ticks.iter().map(|tick| (share(*tick, top), grouped(*tick))).collect();
    let plot = Plot {
        id: input.id,
        title: input.title,
        summary: &format!("{}: {}.", period(first.from, last.to, input.zone), all.in_words()),
        linked: input.buckets.iter().any(|bucket| bucket.href.is_some()),
        from: first.from,
        to: last.to,
        zone: input.zone,
    };
    let patterns = Patterns(input.id);
    let mut markup = Markup::default();
    markup.element("div").class("c-fig").inside(|markup| {
        legend(markup, patterns, &all, &[], Shown::WordsAndCounts);
        plot.draw(markup, &heights, |markup| {
            patterns.define(markup, &all);
            for bucket in input.buckets.iter().filter(|bucket| bucket.runs.total() > 0) {
                column(markup, &plot, patterns, bucket, top);
            }
        });
    });
    markup.finish()
}

fn share(count: u64, top: u64) -> f64 {
    real(count as i64) / real(top.max(1) as i64)
}

/// One stack. The whole height answers the pointer.
fn column(markup: &mut Markup, plot: &Plot<'_>, patterns: Patterns<'_>, bucket: &Bucket, top: u64) {
    let (left, right) = (plot.share(bucket.from), plot.share(bucket.to));
    let (x, width) = (Percent(left + (right - left) * (1.0 - BAR) / 2.0), Percent((right - left) * BAR));
    let title = format!("{} · {}", period(bucket.from, bucket.to, plot.zone), bucket.runs.in_words());
    markup.mark(Mark { title: &title, href: bucket.href.as_deref(), tab: true }, |markup| {
        let hit = markup.element("rect").class("c-hit").attr("x", Percent(left)).attr("width", Percent(right - left));
        hit.attr("y", y(1.0)).attr("height", y(0.0) - y(1.0)).empty();
        let mut floor = y(0.0);
        for status in STACK.into_iter().filter(|status| bucket.runs.get(*status) > 0) {
            let height = (y(0.0) - y(share(bucket.runs.get(status), top))).max(LEAST);
            let rect = patterns.fill(markup.element("rect"), status).attr("x", x).attr("width", width);
            rect.attr("y", floor - height).attr("height", height).empty();
            floor -= height;
        }
    });
}

/// Renders the chart as a table.
pub(crate) fn bars_table(input: &Bars<'_>) -> String {
    let all: Counts = input.buckets.iter().map(|bucket| bucket.runs).sum();
    let statuses: Vec<_> = all.present().map(|(status, _)| status).collect();
    let columns: Vec<&str> =
        ["Time", "Runs"].into_iter().chain(statuses.iter().map(|status| status.as_str())).collect();
    let rows = input.buckets.iter().map(|bucket| {
        let text = period(bucket.from, bucket.to, input.zone);
        let first = match bucket.href.as_deref() {
            Some(href) => Cell::Link { text, href },
            None => Cell::Text(text),
        };
        let counts = statuses.iter().map(|status| bucket.runs.get(*status));
        let numbers = [bucket.runs.total()].into_iter().chain(counts).map(|count| Cell::Text(grouped(count)));
        [first].into_iter().chain(numbers).collect()
    });
    Table { caption: input.title, columns: &columns }.write(rows)
}

#[cfg(test)]
mod tests {
    use everbell_core::RunStatus;

    use super::*;

    fn buckets(runs: &[Counts]) -> Vec<Bucket> {
        let start: Timestamp = "2026-11-14T23:00:00Z".parse().unwrap();
        let at = |hour: usize| start + jiff::SignedDuration::from_hours(hour as i64);
        let bucket = |(hour, runs): (usize, &Counts)| Bucket {
            from: at(hour),
            to: at(hour + 1),
            runs: *runs,
            href: Some(format!("/runs?from={hour}&to=\"")),
        };
        runs.iter().enumerate().map(bucket).collect()
    }

    fn input<'a>(zone: &'a Zone, buckets: &'a [Bucket]) -> Bars<'a> {
        Bars { id: "b", title: "Runs per hour", zone, buckets }
    }

    #[test]
    fn stacks_say_what_they_are_made_of() {
        let zone = Zone::get("Europe/Paris").unwrap();
        let given = buckets(&[
            Counts::new([(RunStatus::Succeeded, 40), (RunStatus::Failed, 2)]),
            Counts::default(),
            Counts::new([(RunStatus::Succeeded, 7)]),
        ]);
        let drawn = bars(&input(&zone, &given));
        assert!(drawn.contains("<title>2026-11-15 00:00–01:00 · 42 runs: 40 succeeded, 2 failed</title>"), "{drawn}");
        assert!(
            drawn.contains("<a href=\"/runs?from=0&amp;to=&quot;\" aria-label=\"2026-11-15 00:00–01:00"),
            "{drawn}"
        );
        assert_eq!(drawn.matches("class=\"c-hit\"").count(), 2);
        for label in [">0</text>", ">20</text>", ">60</text>", "succeeded<b>47</b>", "failed<b>2</b>"] {
            assert!(drawn.contains(label), "{label}: {drawn}");
        }
        // Failed runs are at the bottom.
        let failed = drawn.find("class=\"c-bad\" fill=\"url(#b-bad)\" x=\"4.67%\"").unwrap();
        assert!(drawn[failed..].contains("class=\"c-ok\" x=\"4.67%\""), "{drawn}");
    }

    #[test]
    fn nothing_is_told_in_words() {
        let zone = Zone::utc();
        for given in [buckets(&[]), buckets(&[Counts::default(); 24])] {
            assert_eq!(bars(&input(&zone, &given)), "<p class=\"c-none\">No runs in this time.</p>");
        }
    }

    #[test]
    fn every_number_is_a_number() {
        let zone = Zone::utc();
        for count in [1, 2, 1_000_000, u64::MAX / 8] {
            let each = RunStatus::ALL.iter().map(|status| (*status, count));
            let drawn = bars(&input(&zone, &buckets(&[Counts::new(each)])));
            assert!(!drawn.contains("NaN") && !drawn.contains("inf") && !drawn.contains("style"), "{drawn}");
        }
    }

    #[test]
    fn the_table_has_the_same_numbers() {
        let zone = Zone::utc();
        let given = buckets(&[Counts::new([(RunStatus::Succeeded, 40), (RunStatus::Failed, 2)]), Counts::default()]);
        let table = bars_table(&input(&zone, &given));
        let head = "<th scope=\"col\">Time</th><th scope=\"col\">Runs</th><th scope=\"col\">succeeded</th>";
        assert!(table.contains(head), "{table}");
        assert!(table.contains("<td>42</td><td>40</td><td>2</td>"), "{table}");
        assert!(table.contains("<td>0</td><td>0</td><td>0</td>"), "{table}");
    }
}
