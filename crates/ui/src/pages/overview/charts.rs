//! The last day in numbers: tiles, runs per hour, fire lag.

use everbell_core::RunStatus;
use everbell_core::store::Bucket;
use jiff::{SignedDuration, Timestamp};

use super::read::History;
use crate::chart::{
    Bars, Bucket as Bar, Colour, Counts, Lag, LagPiece, Lags, Spark, bars, bars_table, lag, lag_table, spark,
};
use crate::clock::Clock;
use crate::frame::NavCounts;
use crate::markup::{Markup, url_part};

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const HOURS: i64 = 24;
/// A lag of a second is worth a line.
const LAG_THRESHOLD_MS: i64 = 1_000;

/// Where the last 24 hours begin, and where the last one ends, which is not over.
pub(super) fn hours(now: Timestamp) -> Vec<Timestamp> {
    let begun = now.as_second() - now.as_second().rem_euclid(3_600);
    (1 - HOURS..=1).filter_map(|hour| Timestamp::from_second(begun + hour * 3_600).ok()).collect()
}

/// A number that leads to what it counts.
pub(super) struct Tile {
    pub(super) label: &'static str,
    pub(super) count: u64,
    pub(super) href: String,
    pub(super) class: &'static str,
    pub(super) spark: Markup,
}

pub(super) fn tiles(history: Option<&History>, nav_counts: Option<&NavCounts>, now: Timestamp) -> Vec<Tile> {
    let since = now.checked_sub(HOUR * HOURS as i32).unwrap_or(now);
    let from = url_part(&since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    let now_tile =
        |label, count, href: &str, class| Tile { label, count, href: href.to_owned(), class, spark: Markup::default() };
    let (due, counted) = nav_counts.map_or((0, 0), |nav_counts| (nav_counts.due, nav_counts.running));
    // The number must match the list below.
    let running = history.and_then(History::all_running).unwrap_or(counted);
    let mut tiles = vec![
        now_tile("Due now", due, "/jobs?sort=nextRunAt", if due > 0 { "wait" } else { "" }),
        now_tile("Running", running, "/runs?status=running", "run"),
    ];
    let Some(History { buckets, .. }) = history else { return tiles };
    let of_day = |label, status, colour, class| of_day(buckets, &from, label, status, colour, class);
    tiles.extend([
        of_day("Succeeded, 24 h", RunStatus::Succeeded, Colour::Good, "ok"),
        of_day("Failed, 24 h", RunStatus::Failed, Colour::Bad, "bad"),
        of_day("Skipped, 24 h", RunStatus::Skipped, Colour::Skipped, "skip"),
        of_day("Canceled, 24 h", RunStatus::Canceled, Colour::Plain, ""),
    ]);
    tiles
}

fn of_day(
    buckets: &[Bucket],
    from: &str,
    label: &'static str,
    status: RunStatus,
    colour: Colour,
    class: &'static str,
) -> Tile {
    let counts: Vec<u64> = buckets.iter().map(|bucket| bucket.count(status)).collect();
    let title = format!("{label}, by the hour");
    let picture = spark(&Spark { id: &format!("spark-{status}"), title: &title, noun: "run", colour, counts: &counts });
    Tile {
        label,
        count: counts.iter().sum(),
        href: format!("/runs?status={status}&from={from}"),
        class,
        spark: Markup::from_html(picture),
    }
}

/// Two charts and their tables.
pub(super) struct Day {
    pub(super) runs: Markup,
    pub(super) runs_table: Markup,
    pub(super) lags: Markup,
    pub(super) lags_table: Markup,
}

pub(super) fn day(buckets: &[Bucket], clock: &Clock) -> Day {
    let zone = clock.zone(None);
    let shown: Vec<Bar> = buckets
        .iter()
        .map(|bucket| Bar {
            from: bucket.from,
            to: bucket.to,
            runs: Counts::new(RunStatus::ALL.iter().map(|status| (*status, bucket.count(*status)))),
            href: (bucket.total() > 0).then(|| {
                let time = |at: Timestamp| url_part(&at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
                format!("/runs?from={}&to={}", time(bucket.from), time(bucket.to))
            }),
        })
        .collect();
    let pieces: Vec<LagPiece> = buckets
        .iter()
        .map(|bucket| {
            let millis = |time: std::time::Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
            let quantile = |share| bucket.lag_quantile(share).map(millis);
            let known = quantile(0.5).zip(quantile(0.95)).zip(bucket.lags.longest().map(millis));
            LagPiece {
                from: bucket.from,
                to: bucket.to,
                lag: known.map(|((p50_ms, p95_ms), max_ms)| Lags { runs: bucket.lags.runs(), p50_ms, p95_ms, max_ms }),
            }
        })
        .collect();
    let bars_input = Bars { id: "runs-per-hour", title: "Runs per hour", zone: &zone, buckets: &shown };
    let lag_input = Lag {
        id: "lag-per-hour",
        title: "Fire lag per hour",
        zone: &zone,
        pieces: &pieces,
        threshold_ms: Some(LAG_THRESHOLD_MS),
    };
    Day {
        runs: Markup::from_html(bars(&bars_input)),
        runs_table: Markup::from_html(bars_table(&bars_input)),
        lags: Markup::from_html(lag(&lag_input)),
        lags_table: Markup::from_html(lag_table(&lag_input)),
    }
}
