//! How long runs took, over time: a dot each, its shape by status.

use std::collections::BTreeMap;

use everbell_core::{RunStatus, Zone};
use jiff::Timestamp;

use super::axis::Scale;
use super::palette::{Counts, class, dot, swatch};
use super::plot::{HEIGHT, Level, Plot, nothing, y};
use super::svg::{Mark, Markup, Percent};
use super::words::{counted, grouped, period, round_span, stamp, took};

/// The input of a dot chart.
pub(crate) struct Dots<'a> {
    /// Unique in its page; letters, digits and dashes.
    pub(crate) id: &'a str,
    /// Such as `Durations`.
    pub(crate) title: &'a str,
    pub(crate) zone: &'a Zone,
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
    pub(crate) runs: &'a [DotRun],
    pub(crate) p50_ms: Option<i64>,
    pub(crate) p95_ms: Option<i64>,
    /// The time between two slots: a run that takes longer is still there when the next is due.
    pub(crate) interval_ms: Option<i64>,
}

/// One run that took some time.
pub(crate) struct DotRun {
    pub(crate) at: Timestamp,
    pub(crate) took_ms: i64,
    pub(crate) status: RunStatus,
    pub(crate) href: Option<String>,
}

/// Dots in a picture at the most.
const MAX_DOTS: usize = 1_000;
/// The width that dots are bundled for, in pixels.
const WIDTH: f64 = 1_000.0;
/// A run that took this many times the median is named.
const OUTLIER_FACTOR: i64 = 8;

/// The picture with its legend.
pub(crate) fn dots(input: &Dots<'_>) -> String {
    let runs: Vec<&DotRun> = input.runs.iter().filter(|run| (input.from..=input.to).contains(&run.at)).collect();
    if runs.is_empty() {
        return nothing("No runs in this time.");
    }
    let scale = Scale::from_spans(runs.iter().map(|run| run.took_ms).chain(input.p50_ms).chain(input.p95_ms));
    let heights: Vec<(f64, String)> =
        scale.ticks().into_iter().map(|tick| (scale.position(tick), round_span(tick))).collect();
    let all = Counts::from_statuses(runs.iter().map(|run| run.status));
    let plot = Plot {
        id: input.id,
        title: input.title,
        summary: &summary(input, &all),
        linked: runs.iter().any(|run| run.href.is_some()),
        from: input.from,
        to: input.to,
        zone: input.zone,
    };
    let mut markup = Markup::default();
    markup.element("div").class("c-fig").inside(|markup| {
        legend(markup, &all);
        plot.draw(markup, &heights, |markup| {
            markup.element("defs").inside(|markup| {
                for (status, _) in all.present() {
                    markup.element("path").attr("id", &shape(input.id, status)).attr("d", dot(status)).empty();
                }
            });
            let levels = levels(input, scale);
            for level in &levels {
                level.line(markup);
            }
            let bundles = bundled(&runs, &plot, scale);
            markup.seen_only(|markup| {
                for group in bundles.chunk_by(|one, other| one.newest.status == other.newest.status) {
                    let looks = format!("c-dot {}", class(group[0].newest.status));
                    markup.element("g").class(&looks).inside(|markup| {
                        for bundle in group {
                            bundle.draw(markup, &plot, scale);
                        }
                    });
                }
            });
            for level in &levels {
                level.name(markup);
            }
            outlier(markup, &runs, &plot, scale, &levels);
        });
    });
    markup.finish()
}

fn summary(input: &Dots<'_>, all: &Counts) -> String {
    let levels = [("half took at most", input.p50_ms), ("95% at most", input.p95_ms)];
    let levels = levels.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", took(value?))));
    let runs = format!("{}: {}", period(input.from, input.to, input.zone), all.in_words());
    [runs].into_iter().chain(levels).collect::<Vec<_>>().join(", ") + "."
}

fn legend(markup: &mut Markup, all: &Counts) {
    markup.element("ul").class("c-legend").inside(|markup| {
        for (status, count) in all.present() {
            markup.element("li").inside(|markup| {
                swatch(markup, |markup| {
                    let shape = markup.element("path").class(&format!("c-dot {}", class(status)));
                    shape.attr("transform", "translate(6 6)").attr("d", dot(status)).empty();
                });
                markup.text(status.as_str());
                markup.element("b").text(&grouped(count));
            });
        }
    });
}

/// The median, the 95th percentile and the interval, as far as they are on the scale.
fn levels(input: &Dots<'_>, scale: Scale) -> Vec<Level> {
    let on_scale =
        |value: Option<i64>| value.filter(|value| scale.holds(*value)).map(|value| (value, scale.position(value)));
    let (p50, p95) = (on_scale(input.p50_ms), on_scale(input.p95_ms));
    // Close to each other, one is named above its line and one below.
    let below = p50.zip(p95).is_some_and(|((_, low), (_, high))| (high - low) * HEIGHT < 16.0);
    let level = |class, word: &str, (value, share): (i64, f64)| Level {
        class,
        share,
        name: format!("{word} {}", took(value)),
        left: false,
        below: false,
    };
    let interval = on_scale(input.interval_ms).map(|value| Level { left: true, ..level("c-limit", "interval", value) });
    // Two lines at one place would be one, with two names on top of each other.
    let p95 = p95.filter(|(value, _)| p50.is_none_or(|(half, _)| half != *value));
    let p95 = p95.map(|value| level("c-l c-p95", "95%", value));
    let p50 = p50.map(|value| Level { below, ..level("c-l c-p50", "median", value) });
    interval.into_iter().chain(p95).chain(p50).collect()
}

/// Names the longest run, if it took far longer than half of them and no level is named at that place.
fn outlier(markup: &mut Markup, runs: &[&DotRun], plot: &Plot<'_>, scale: Scale, levels: &[Level]) {
    let mut spans: Vec<i64> = runs.iter().map(|run| run.took_ms.max(1)).collect();
    spans.sort_unstable();
    let median = spans.get(spans.len() / 2).copied().unwrap_or(1);
    let Some(longest) = runs.iter().max_by_key(|run| run.took_ms) else { return };
    if runs.len() < 3 || longest.took_ms / median < OUTLIER_FACTOR {
        return;
    }
    let (share, height) = (plot.share(longest.at), scale.position(longest.took_ms));
    let is_near = |level: &Level| (level.share - height).abs() * HEIGHT < 16.0;
    if levels.iter().any(|level| is_near(level) && if level.left { share < 0.25 } else { share > 0.75 }) {
        return;
    }
    let (class, shift) = if share > 0.5 { ("c-t c-name c-end", -8.0) } else { ("c-t c-name", 8.0) };
    let text = markup.element("text").class(class).attr("x", Percent(share)).attr("dx", shift);
    text.attr("y", y(height) + 4.0).text(&took(longest.took_ms));
}

/// The id of the shape of a status.
fn shape(id: &str, status: RunStatus) -> String {
    format!("{id}{}", &class(status)[1..])
}

/// Runs of one status that are at the same place.
struct Bundle<'a> {
    newest: &'a DotRun,
    count: u64,
}

impl Bundle<'_> {
    fn draw(&self, markup: &mut Markup, plot: &Plot<'_>, scale: Scale) {
        let DotRun { at, took_ms, status, href } = self.newest;
        let mut title = format!("{} · {status} · {}", stamp(*at, plot.zone), took(*took_ms));
        if self.count > 1 {
            title = format!("{}, the newest: {title}", counted(self.count, "run"));
        }
        markup.mark(Mark { title: &title, href: href.as_deref(), tab: false }, |markup| {
            let dot = markup.element("use").attr("href", &format!("#{}", shape(plot.id, *status)));
            dot.attr("x", Percent(plot.share(*at))).attr("y", y(scale.position(*took_ms))).empty();
        });
    }
}

/// Few enough to be drawn: what is at the same place becomes one dot, and places grow until that is enough. Status by
/// status, so that what failed is drawn above what succeeded.
fn bundled<'a>(runs: &[&'a DotRun], plot: &Plot<'_>, scale: Scale) -> Vec<Bundle<'a>> {
    let mut side = 2.0;
    loop {
        let mut bundles: BTreeMap<(usize, i64, i64), Bundle<'a>> = BTreeMap::new();
        for run in runs {
            let (x, y) = (plot.share(run.at) * WIDTH, scale.position(run.took_ms) * HEIGHT);
            let place = (run.status as usize, (x / side) as i64, (y / side) as i64);
            let bundle = bundles.entry(place).or_insert(Bundle { newest: run, count: 0 });
            bundle.count += 1;
            if run.at > bundle.newest.at {
                bundle.newest = run;
            }
        }
        if bundles.len() <= MAX_DOTS {
            return bundles.into_values().collect();
        }
        side *= 1.5;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(second: i64, took_ms: i64, status: RunStatus) -> DotRun {
        let at = "2026-11-15T00:00:00Z".parse::<Timestamp>().unwrap() + jiff::SignedDuration::from_secs(second);
        DotRun { at, took_ms, status, href: Some(format!("/runs/{second}")) }
    }

    fn drawn(runs: &[DotRun]) -> String {
        let (from, to) = ("2026-11-15T00:00:00Z".parse().unwrap(), "2026-11-16T00:00:00Z".parse().unwrap());
        let (zone, interval_ms) = (Zone::utc(), Some(300_000));
        let (p50_ms, p95_ms) = (Some(2_000), Some(2_400));
        let drawn =
            dots(&Dots { id: "d", title: "Durations", zone: &zone, from, to, runs, p50_ms, p95_ms, interval_ms });
        assert!(!drawn.contains("NaN") && !drawn.contains("inf") && !drawn.contains("style"), "{drawn}");
        drawn
    }

    #[test]
    fn a_dot_has_the_shape_of_its_status_and_leads_to_its_run() {
        let drawn = drawn(&[run(43_200, 2_100, RunStatus::Failed), run(3_600, 1_900, RunStatus::Succeeded)]);
        let title = "2026-11-15 12:00 · failed · 2.1\u{a0}s";
        assert!(drawn.contains(&format!("<a href=\"/runs/43200\" tabindex=\"-1\"><title>{title}</title>")), "{drawn}");
        assert!(drawn.contains("<use href=\"#d-bad\" x=\"50%\""), "{drawn}");
        assert!(drawn.contains("<g class=\"c-dot c-bad\">"), "{drawn}");
        assert!(drawn.contains("id=\"d-bad\"") && drawn.contains("id=\"d-ok\""), "{drawn}");
        assert!(drawn.contains("half took at most 2.0\u{a0}s, 95% at most 2.4\u{a0}s."), "{drawn}");
    }

    #[test]
    fn levels_are_shown_where_they_are_on_the_scale() {
        let short = drawn(&[run(0, 2_000, RunStatus::Succeeded)]);
        assert!(short.contains("median 2.0") && short.contains("95% 2.4") && !short.contains("interval"), "{short}");
        let long = drawn(&[run(0, 2_000, RunStatus::Succeeded), run(9, 400_000, RunStatus::Succeeded)]);
        assert!(long.contains("interval 5"), "{long}");
    }

    #[test]
    fn the_longest_run_is_named_unless_a_level_is_named_there() {
        let with = |second, took_ms| {
            let usual =
                [(20_000, 2_000), (30_000, 2_100)].map(|(second, took)| run(second, took, RunStatus::Succeeded));
            let runs: Vec<DotRun> = usual.into_iter().chain([run(second, took_ms, RunStatus::Succeeded)]).collect();
            drawn(&runs)
        };
        for (second, took_ms, is_named) in
            [(40_000, 241_000, true), (3_600, 241_000, false), (80_000, 241_000, true), (3_600, 100_000, true)]
        {
            let drawn = with(second, took_ms);
            assert_eq!(drawn.contains(&format!(">{}</text>", took(took_ms))), is_named, "{second} {took_ms}: {drawn}");
        }
    }

    #[test]
    fn levels_at_one_place_have_one_name() {
        let (from, to) = ("2026-11-15T00:00:00Z".parse().unwrap(), "2026-11-16T00:00:00Z".parse().unwrap());
        let (zone, took, runs) = (Zone::utc(), Some(2_000), [run(0, 2_000, RunStatus::Succeeded)]);
        let input = Dots {
            id: "d",
            title: "",
            zone: &zone,
            from,
            to,
            runs: &runs,
            p50_ms: took,
            p95_ms: took,
            interval_ms: None,
        };
        let drawn = dots(&input);
        assert!(drawn.contains("median 2.0") && !drawn.contains("95% 2.0"), "{drawn}");
    }

    #[test]
    fn the_run_that_took_far_longer_is_named_and_the_others_are_not_pressed_down() {
        let mut given: Vec<_> = (0..20).map(|second| run(second * 60, 3_000, RunStatus::Succeeded)).collect();
        assert!(!drawn(&given).contains("2\u{a0}m"));
        given.push(run(2_000, 120_000, RunStatus::Failed));
        let drawn = drawn(&given);
        assert!(drawn.contains(&format!(">{}</text>", took(120_000))), "{drawn}");
        let scale = Scale::from_spans(given.iter().map(|run| run.took_ms));
        assert!(scale.position(3_000) > 0.15, "{scale:?}");
    }

    #[test]
    fn what_is_at_one_place_is_one_dot() {
        let given: Vec<_> = (0..50).map(|second| run(second, 2_000, RunStatus::Succeeded)).collect();
        let drawn = drawn(&given);
        assert_eq!(drawn.matches("<use ").count(), 1);
        assert!(drawn.contains("50 runs, the newest: 2026-11-15 00:00:49"), "{drawn}");
    }

    #[test]
    fn there_are_never_too_many() {
        let spread = |index: i64| run(index * 4, 20 + index * 7_919 % 90_000, RunStatus::ALL[(index % 6) as usize]);
        let given: Vec<_> = (0..20_000).map(spread).collect();
        let dots = drawn(&given).matches("<use ").count();
        assert!((300..=MAX_DOTS).contains(&dots), "{dots}");
    }

    #[test]
    fn nothing_and_odd_durations_are_fine() {
        assert_eq!(drawn(&[]), "<p class=\"c-none\">No runs in this time.</p>");
        assert_eq!(drawn(&[run(-60, 1, RunStatus::Failed)]), "<p class=\"c-none\">No runs in this time.</p>");
        drawn(&[run(0, 0, RunStatus::Canceled), run(1, -5, RunStatus::Skipped), run(2, i64::MAX, RunStatus::Failed)]);
    }
}
