//! How late runs start: the median, the 95th percentile and the worst of each hour. Hours without runs are gaps.

use everbell_core::Zone;
use jiff::Timestamp;

use super::axis::Scale;
use super::plot::{HEIGHT, Level, Plot, line_legend, nothing, y};
use super::svg::{Mark, Markup, Path, Percent};
use super::table::{Cell, Table};
use super::words::{counted, grouped, period, round_span, took};

/// The input of a lag chart.
pub(crate) struct Lag<'a> {
    /// Unique in its page; letters, digits and dashes.
    pub(crate) id: &'a str,
    /// Such as `Fire lag per hour`.
    pub(crate) title: &'a str,
    pub(crate) zone: &'a Zone,
    /// In order, one beginning where the other ends.
    pub(crate) pieces: &'a [LagPiece],
    /// The lag at which a line is drawn if any run reaches it.
    pub(crate) threshold_ms: Option<i64>,
}

/// A piece of time, and how late its runs were; `None` if there were none.
pub(crate) struct LagPiece {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
    pub(crate) lag: Option<Lags>,
}

/// A clock that was set back makes a run early; that is shown as no lag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lags {
    pub(crate) runs: u64,
    pub(crate) p50_ms: i64,
    pub(crate) p95_ms: i64,
    pub(crate) max_ms: i64,
}

/// The coordinates across the plot, which are stretched.
const WIDTH: f64 = 1_000.0;

const LINES: [(&str, &str); 3] = [("c-l c-p50", "median"), ("c-l c-p95", "95%"), ("c-l c-max", "worst")];

/// The picture with its legend.
pub(crate) fn lag(input: &Lag<'_>) -> String {
    let lags = || input.pieces.iter().filter_map(|piece| piece.lag);
    let (Some(first), Some(last), Some(worst)) =
        (input.pieces.first(), input.pieces.last(), lags().map(|lag| lag.max_ms).max())
    else {
        return nothing("No runs in this time.");
    };
    let scale = Scale::from_spans(lags().flat_map(|lag| [lag.p50_ms, lag.p95_ms, lag.max_ms]));
    let heights: Vec<(f64, String)> =
        scale.ticks().into_iter().map(|tick| (scale.position(tick), round_span(tick))).collect();
    let whole = period(first.from, last.to, input.zone);
    let plot = Plot {
        id: input.id,
        title: input.title,
        summary: &format!(
            "{whole}: {}, at worst {} late.",
            counted(lags().map(|lag| lag.runs).sum(), "run"),
            took(worst)
        ),
        linked: false,
        from: first.from,
        to: last.to,
        zone: input.zone,
    };
    let mut markup = Markup::default();
    markup.element("div").class("c-fig").inside(|markup| {
        line_legend(markup, &LINES);
        plot.draw(markup, &heights, |markup| {
            lines(markup, input, &plot, scale);
            for threshold in input.threshold_ms.into_iter().filter(|threshold| scale.holds(*threshold)) {
                let (share, name) = (scale.position(threshold), round_span(threshold));
                let level = Level { class: "c-limit", share, name, left: false, below: false };
                level.line(markup);
                level.name(markup);
            }
            for piece in input.pieces {
                answer(markup, &plot, piece);
            }
        });
    });
    markup.finish()
}

/// The lines, in a picture that is stretched; their strokes are not.
fn lines(markup: &mut Markup, input: &Lag<'_>, plot: &Plot<'_>, scale: Scale) {
    let element = markup.element("svg").attr("y", y(1.0)).attr("width", "100%").attr("height", HEIGHT);
    let view = format!("0 0 {WIDTH} {HEIGHT}");
    element.attr("viewBox", &view).attr("preserveAspectRatio", "none").inside(|markup| {
        let value: [fn(Lags) -> i64; 3] = [|lag| lag.p50_ms, |lag| lag.p95_ms, |lag| lag.max_ms];
        let points = |value: fn(Lags) -> i64| -> Vec<Vec<(f64, f64)>> {
            let stretches = input.pieces.split(|piece| piece.lag.is_none()).filter(|pieces| !pieces.is_empty());
            stretches.map(|pieces| points(pieces, plot, scale, value)).collect()
        };
        let [p50, p95, max] = value.map(points);
        let mut area = Path::default();
        for (low, high) in p50.iter().zip(&p95) {
            follow(&mut area, 'M', high);
            follow(&mut area, 'L', &low.iter().rev().copied().collect::<Vec<_>>());
            area.step('z', &[]);
        }
        markup.element("path").class("c-band").attr("d", &area).empty();
        for ((class, _), stretches) in LINES.into_iter().zip([&p50, &p95, &max]).rev() {
            let mut line = Path::default();
            for points in stretches {
                follow(&mut line, 'M', points);
            }
            markup.element("path").class(class).attr("d", &line).empty();
        }
    });
}

/// Points in the middle of their pieces; one that stands alone is a short line.
fn points(pieces: &[LagPiece], plot: &Plot<'_>, scale: Scale, value: fn(Lags) -> i64) -> Vec<(f64, f64)> {
    let at = |piece: &LagPiece, within: f64| {
        let (left, right) = (plot.share(piece.from), plot.share(piece.to));
        (left + (right - left) * within) * WIDTH
    };
    let height = |lag: Lags| HEIGHT * (1.0 - scale.position(value(lag)));
    let point = |piece: &LagPiece, within: f64| Some((at(piece, within), height(piece.lag?)));
    match pieces {
        [alone] => [0.2, 0.8].into_iter().filter_map(|within| point(alone, within)).collect(),
        _ => pieces.iter().filter_map(|piece| point(piece, 0.5)).collect(),
    }
}

/// Goes to the first point with this command, and in straight lines to the others.
fn follow(path: &mut Path, start: char, points: &[(f64, f64)]) {
    for (index, (x, y)) in points.iter().enumerate() {
        path.step(if index == 0 { start } else { 'L' }, &[*x, *y]);
    }
}

/// Adds the tooltip of a piece.
fn answer(markup: &mut Markup, plot: &Plot<'_>, piece: &LagPiece) {
    let Some(lag) = piece.lag else { return };
    let (left, right) = (plot.share(piece.from), plot.share(piece.to));
    let [p50, p95, max] = [lag.p50_ms, lag.p95_ms, lag.max_ms].map(took);
    let (when, runs) = (period(piece.from, piece.to, plot.zone), counted(lag.runs, "run"));
    let title = format!("{when} · {runs} · median {p50}, 95% {p95}, worst {max}");
    markup.mark(Mark { title: &title, href: None, tab: false }, |markup| {
        let hit = markup.element("rect").class("c-hit").attr("x", Percent(left)).attr("width", Percent(right - left));
        hit.attr("y", y(1.0)).attr("height", HEIGHT).empty();
    });
}

/// Renders the chart as a table, with a dash for pieces without runs.
pub(crate) fn lag_table(input: &Lag<'_>) -> String {
    let rows = input.pieces.iter().map(|piece| {
        let numbers = piece.lag.map_or_else(
            || ["0", "-", "-", "-"].map(str::to_owned),
            |lag| [grouped(lag.runs), took(lag.p50_ms), took(lag.p95_ms), took(lag.max_ms)],
        );
        [period(piece.from, piece.to, input.zone)].into_iter().chain(numbers).map(Cell::from).collect()
    });
    Table { caption: input.title, columns: &["Time", "Runs", "Median", "95%", "Worst"] }.write(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(lags: &[Option<(i64, i64, i64)>]) -> Vec<LagPiece> {
        let start: Timestamp = "2026-11-15T00:00:00Z".parse().unwrap();
        let at = |hour: usize| start + jiff::SignedDuration::from_hours(hour as i64);
        let of = |(p50_ms, p95_ms, max_ms): (i64, i64, i64)| Lags { runs: 9, p50_ms, p95_ms, max_ms };
        let piece = |(hour, lag): (usize, &Option<_>)| LagPiece { from: at(hour), to: at(hour + 1), lag: lag.map(of) };
        lags.iter().enumerate().map(piece).collect()
    }

    fn input<'a>(zone: &'a Zone, pieces: &'a [LagPiece]) -> Lag<'a> {
        Lag { id: "l", title: "Start delay per hour", zone, pieces, threshold_ms: Some(1_000) }
    }

    #[test]
    fn gaps_break_the_lines() {
        let zone = Zone::utc();
        let given = pieces(&[Some((10, 20, 40)), Some((10, 20, 40)), None, Some((10, 20, 40))]);
        let drawn = lag(&input(&zone, &given));
        // Two stretches; the second is a single hour, drawn as a short line within it.
        assert!(drawn.contains("class=\"c-l c-max\" d=\"M125 0L375 0M800 0L950 0\""), "{drawn}");
        assert_eq!(drawn.matches("class=\"c-hit\"").count(), 3);
        let title = "2026-11-15 00:00–01:00 · 9 runs · median 10\u{a0}ms, 95% 20\u{a0}ms, worst 40\u{a0}ms";
        assert!(drawn.contains(&format!("<title>{title}</title>")), "{drawn}");
        assert!(drawn.contains("27 runs, at worst 40\u{a0}ms late."), "{drawn}");
    }

    #[test]
    fn the_threshold_is_shown_where_it_is_reached() {
        let zone = Zone::utc();
        assert!(!lag(&input(&zone, &pieces(&[Some((10, 20, 40))]))).contains("c-limit"));
        assert!(lag(&input(&zone, &pieces(&[Some((10, 200, 4_000))]))).contains("c-limit"));
    }

    #[test]
    fn no_lag_and_lag_below_zero_are_drawn() {
        let zone = Zone::utc();
        assert_eq!(lag(&input(&zone, &pieces(&[None, None]))), "<p class=\"c-none\">No runs in this time.</p>");
        for values in [(0, 0, 0), (-500, -3, 0), (i64::MIN, 0, i64::MAX), (7, 7, 7)] {
            let drawn = lag(&input(&zone, &pieces(&[Some(values), Some(values)])));
            assert!(!drawn.contains("NaN") && !drawn.contains("inf") && !drawn.contains("style"), "{drawn}");
        }
    }

    #[test]
    fn the_table_has_the_same_numbers() {
        let zone = Zone::utc();
        let table = lag_table(&input(&zone, &pieces(&[Some((10, 20, 1_500)), None])));
        let row = "<td>9</td><td>10\u{a0}ms</td><td>20\u{a0}ms</td><td>1.5\u{a0}s</td>";
        assert!(table.contains(row), "{table}");
        assert!(table.contains("<td>0</td><td>-</td><td>-</td><td>-</td>"), "{table}");
    }
}
