//! The last day in numbers: runs per hour, fire lag.

use everbell_core::RunStatus;
use everbell_core::store::Bucket;
use jiff::Timestamp;

use crate::chart::{Bars, Bucket as Bar, Counts, Lag, LagPiece, Lags, bars, bars_table, lag, lag_table};
use crate::clock::Clock;
use crate::markup::{Markup, url_part};

const HOURS: i64 = 24;
/// A lag of a second is worth a line.
const LAG_THRESHOLD_MS: i64 = 1_000;

/// Where the last 24 hours begin, and where the last one ends, which is not over.
pub(super) fn hours(now: Timestamp) -> Vec<Timestamp> {
    let begun = now.as_second() - now.as_second().rem_euclid(3_600);
    (1 - HOURS..=1).filter_map(|hour| Timestamp::from_second(begun + hour * 3_600).ok()).collect()
}

/// Where the day of the overview begins: every number and every list of it counts from here.
pub(super) fn since(now: Timestamp) -> Timestamp {
    hours(now).first().copied().unwrap_or(now)
}

/// How many runs ended well, ended badly, and were there at all.
pub(super) fn totals(buckets: &[Bucket]) -> (u64, u64, u64) {
    let of = |status| buckets.iter().map(|bucket| bucket.count(status)).sum::<u64>();
    (of(RunStatus::Succeeded), of(RunStatus::Failed), buckets.iter().map(Bucket::total).sum())
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
        title: "Start delay per hour",
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

#[test]
fn the_day_begins_with_its_first_hour() {
    for (now, first) in [("10:59:59.9", "2027-01-01T11:00:00Z"), ("11:00:00", "2027-01-01T12:00:00Z")] {
        let now: Timestamp = format!("2027-01-02T{now}Z").parse().unwrap();
        assert_eq!((since(now).to_string(), hours(now).len()), (first.to_owned(), 25));
    }
}
