//! The history of a job: recent runs as a strip, durations and lags over time, and a calendar of half a year.

use std::time::Duration;

use everbell::{JobKey, Runs};
use everbell_core::store::{Bucket, RecentRuns, RunCounters, RunHistogram, RunSummary};
use everbell_core::{RunStatus, Spec, Zone};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp, ToSpan};

use crate::chart::{
    Calendar, Counts, Day, DotRun, Dots, Strip, StripRun, StripSize, WEEKS, calendar, calendar_table, counted, dots,
    strip, strip_legend,
};
use crate::clock::Clock;
use crate::markup::{Markup, url_part};
use crate::pages::action::Subject;
use crate::pages::overview::attention::Usual;
use crate::request::UiRequest;
use everbell_http::problem::Problem;

/// How long the page waits for the counters of its job.
const RATES_TIMEOUT: Duration = Duration::from_secs(2);
/// How many runs are looked at.
const MAX_RUNS: u32 = 1_000;
/// Weeks of the calendar that are still to come.
const WEEKS_AHEAD: u32 = 2;
/// The approximate maximum number of runs that a calendar counts one by one, which keeps the page of a busy job fast. Its
/// earlier days come from the counters.
const MAX_COUNTED_RUNS: u64 = 20_000;

/// Pictures of the past.
pub(super) struct HistoryCharts {
    pub(super) strip: Markup,
    pub(super) legend: Markup,
    pub(super) durations: Markup,
    pub(super) lags: Markup,
    pub(super) calendar: Markup,
    pub(super) calendar_table: Markup,
    /// `98% of 412 runs succeeded`.
    pub(super) rates: Vec<String>,
    pub(super) none: bool,
    /// The first day whose runs are counted one by one, if earlier days come from the counters.
    pub(super) counted_from: Option<Date>,
    /// Said if there are more runs than the charts show.
    pub(super) limit: Option<String>,
}

/// The data of the charts.
pub(super) struct HistoryData {
    summaries: Vec<RunSummary>,
    counted_from: Option<Date>,
    days: Vec<Date>,
    buckets: Vec<Bucket>,
    /// Ended runs of 7 and 30 days, and since when all of them are counted if that is later.
    counted: Vec<(u32, RunCounters, Option<Timestamp>)>,
}

impl HistoryData {
    /// `None` if the role may not read runs.
    pub(super) async fn load(request: &UiRequest, subject: &Subject) -> Result<Option<HistoryData>, Problem> {
        if !request.may_read_runs() {
            return Ok(None);
        }
        let (runs, key) = (request.runs(), subject.row.job.definition.key.clone());
        let zone = request.clock().zone(Some(&subject.zone));
        // How busy the job is decides how far back its days are counted, so one question follows the other.
        let summaries = runs.recent_runs(&RecentRuns::new(vec![key.clone()], MAX_RUNS)?).await?;
        let days = days(&zone, request.now);
        let one_by_one = (7 * (weeks(&summaries, request.now) + WEEKS_AHEAD) + 1) as usize;
        let earlier = days.len().saturating_sub(one_by_one);
        let mut buckets = ended_by_day(&runs, &days[..=earlier], &key).await?;
        let bounds = days[earlier..].iter().map(|(_, at)| *at).collect();
        buckets.extend(runs.count_runs_by_time(&RunHistogram::new(bounds)?.of_job(key.clone())).await?);
        let counted_from = (earlier > 0).then(|| days[earlier].0);
        let days = days.into_iter().map(|(date, _)| date).collect();
        let counted = if subject.row.job.definition.is_one_time() {
            // Counters have one-time jobs by target; one has few runs.
            [7, 30].map(|days| (days, ended_in(&buckets, request.now, days.into()), None)).into()
        } else {
            rates_of(request, &key).await
        };
        Ok(Some(HistoryData { summaries, counted_from, days, buckets, counted }))
    }

    pub(super) fn draw(&self, subject: &Subject, clock: &Clock) -> HistoryCharts {
        let zone = clock.zone(Some(&subject.zone));
        let href_of = |run: &RunSummary| Some(format!("/runs/{}", run.id));
        let last: Vec<StripRun> =
            self.summaries.iter().take(StripSize::Page.slots()).rev().map(|run| strip_run(run, clock.now)).collect();
        let timed = |value: &dyn Fn(&RunSummary) -> Option<std::time::Duration>| -> Vec<DotRun> {
            let dot = |run: &RunSummary| {
                let took_ms = i64::try_from(value(run)?.as_millis()).ok()?;
                Some(DotRun { at: run.scheduled_at, took_ms, status: run.status, href: href_of(run) })
            };
            self.summaries.iter().rev().filter_map(dot).collect()
        };
        let (durations, lags) = (timed(&RunSummary::duration), timed(&RunSummary::fire_lag));
        let usual = Usual::from_runs(&self.summaries);
        let millis = |time: std::time::Duration| time.as_millis() as i64;
        let from = self.summaries.last().map_or(clock.now, |run| run.scheduled_at);
        let chart = |id, title, runs: &[DotRun], of: Option<Usual>, interval_ms| {
            let input = Dots {
                id,
                title,
                zone: &zone,
                from,
                to: clock.now.max(from),
                runs,
                p50_ms: of.map(|usual| millis(usual.half)),
                p95_ms: of.map(|usual| millis(usual.most)),
                interval_ms,
            };
            Markup::from_html(dots(&input))
        };
        let spec = subject.spec();
        let shown = self.calendar_days(subject, spec, clock.now);
        let input = Calendar {
            id: "calendar",
            job: &subject.key,
            today: clock.now.to_zoned(zone.as_jiff().clone()).date(),
            weeks: WEEKS + WEEKS_AHEAD,
            weeks_ahead: WEEKS_AHEAD,
            days: &shown,
        };
        let strip_input = Strip { id: "strip", job: &subject.key, size: StripSize::Page, zone: &zone, runs: &last };
        HistoryCharts {
            strip: Markup::from_html(strip(&strip_input)),
            legend: Markup::from_html(strip_legend("strip-legend")),
            durations: chart(
                "durations",
                "Durations",
                &durations,
                usual,
                spec.and_then(|spec| interval(spec, clock.now)),
            ),
            lags: chart("lags", "Start delay", &lags, None, None),
            calendar: Markup::from_html(calendar(&input)),
            calendar_table: Markup::from_html(calendar_table(&input)),
            rates: self.rates(),
            none: self.summaries.is_empty(),
            limit: (self.summaries.len() >= MAX_RUNS as usize)
                .then(|| "Durations and start delays are of the newest 1,000 runs.".to_owned()),
            counted_from: self.counted_from,
        }
    }

    /// Every day of the calendar that has something to show.
    fn calendar_days(&self, subject: &Subject, spec: Option<&Spec>, now: Timestamp) -> Vec<Day> {
        let living = subject.row.job.state.status == everbell::JobStatus::Active;
        let day = |(date, bucket): (&Date, &Bucket)| {
            let planned = spec.filter(|_| living && bucket.to > now).map_or(0, |spec| {
                let from = bucket.from.max(now);
                let before = from.checked_sub(1.second()).unwrap_or(from);
                spec.count_between(before, bucket.to.checked_sub(1.second()).unwrap_or(bucket.to))
            });
            let time = |at: Timestamp| url_part(&at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
            Day {
                date: *date,
                runs: Counts::new(RunStatus::ALL.iter().map(|status| (*status, bucket.count(*status)))),
                planned,
                href: (bucket.total() > 0).then(|| {
                    format!("/runs?jobKey={}&from={}&to={}", subject.part, time(bucket.from), time(bucket.to))
                }),
            }
        };
        self.days.iter().zip(&self.buckets).map(day).filter(|day| day.planned > 0 || day.href.is_some()).collect()
    }

    /// How many of the runs succeeded, over a week and a month.
    fn rates(&self) -> Vec<String> {
        let rate = |(days, counters, since): &(u32, RunCounters, Option<Timestamp>)| {
            let (good, all) = (counters.succeeded, counters.succeeded + counters.failed);
            // A rate just below 100% is never shown as 100%.
            let runs = counted(all, "run");
            let when = match since {
                None => format!("in {days} days"),
                Some(since) => format!("since {}", since.strftime("%Y-%m-%d %H:%M UTC")),
            };
            (all > 0).then(|| format!("{}% of {runs} succeeded {when}", good * 100 / all))
        };
        let mut rates: Vec<String> = self.counted.iter().filter_map(rate).collect();
        rates.dedup();
        rates
    }
}

/// The counters of a job for a week and a month. The page does without them if they cannot be read in time.
async fn rates_of(request: &UiRequest, key: &JobKey) -> Vec<(u32, RunCounters, Option<Timestamp>)> {
    let read = async {
        let mut rates = Vec::new();
        for days in [7_u32, 30] {
            let since =
                request.now.checked_sub(SignedDuration::from_hours(24 * i64::from(days))).unwrap_or(request.now);
            let counted = request.runs().counters(since, Some(key)).await?;
            let incomplete = (!counted.complete).then_some(counted.counted_since);
            rates.push((days, counted.job(key), incomplete));
        }
        Ok::<_, everbell::StoreError>(rates)
    };
    match tokio::time::timeout(RATES_TIMEOUT, read).await {
        Ok(Ok(rates)) => rates,
        Ok(Err(error)) => {
            tracing::warn!(%error, job = %key, "cannot read the counters of a job");
            Vec::new()
        }
        Err(_) => Vec::new(),
    }
}

/// The runs of the last days, by the time of their slots.
fn ended_in(buckets: &[Bucket], now: Timestamp, days: i64) -> RunCounters {
    let since = now.as_second() - days * 86_400;
    let mut counted = RunCounters::default();
    for bucket in buckets.iter().filter(|bucket| bucket.from.as_second() >= since) {
        for status in RunStatus::ALL {
            counted.add(*status, bucket.count(*status));
        }
    }
    counted
}

/// A run as a strip shows it.
pub(crate) fn strip_run(run: &RunSummary, now: Timestamp) -> StripRun {
    let end = if run.status == RunStatus::Running { Some(now) } else { run.finished_at };
    let took = run.started_at.zip(end).map(|(from, to)| to.duration_since(from).as_millis() as i64);
    StripRun {
        at: run.scheduled_at,
        status: run.status,
        took_ms: took.map(|took| took.max(0)),
        version: run.job_version,
        note: run
            .failure_code
            .as_ref()
            .map(|code| code.as_str().to_owned())
            .or_else(|| run.skip.as_ref().map(ToString::to_string)),
        href: Some(format!("/runs/{}", run.id)),
    }
}

/// The time between two slots.
fn interval(spec: &Spec, now: Timestamp) -> Option<i64> {
    let mut slots = spec.slots_after(now);
    let (first, second) = (slots.next()?, slots.next()?);
    Some(second.duration_since(first).as_millis() as i64)
}

/// For how many weeks runs are counted one by one: half a year, less if the job has run very often lately. The newest first.
fn weeks(runs: &[RunSummary], now: Timestamp) -> u32 {
    let (Some(oldest), true) = (runs.last(), runs.len() >= MAX_RUNS as usize) else { return WEEKS };
    let span = now.duration_since(oldest.scheduled_at).as_secs().max(1) as u64;
    let counted = span * MAX_COUNTED_RUNS / u64::from(MAX_RUNS);
    u32::try_from(counted / (7 * 86_400)).unwrap_or(WEEKS).clamp(1, WEEKS)
}

/// The days of the calendar, from a Monday, with the beginning of each in the zone. The last one is where it ends.
fn days(zone: &Zone, now: Timestamp) -> Vec<(Date, Timestamp)> {
    let today = now.to_zoned(zone.as_jiff().clone()).date();
    let monday = today.saturating_sub(i64::from(today.weekday().to_monday_zero_offset()).days());
    let first = monday.saturating_sub(i64::from(WEEKS - 1).weeks());
    let count = i64::from(WEEKS + WEEKS_AHEAD) * 7;
    let dates = (0..=count).map(|day| first.saturating_add(day.days()));
    let begins = |date: Date| date.to_zoned(zone.as_jiff().clone()).map(|there| there.timestamp()).ok();
    let mut known: Vec<(Date, Timestamp)> = dates.filter_map(|date| begins(date).map(|at| (date, at))).collect();
    // A day that a zone left out begins with the next.
    known.dedup_by_key(|(_, at)| *at);
    known
}

/// The runs that ended on each of these days but the last, from the counters.
async fn ended_by_day(runs: &Runs, days: &[(Date, Timestamp)], key: &JobKey) -> Result<Vec<Bucket>, Problem> {
    let ([(_, first), ..], [.., (_, end)]) = (days, days) else { return Ok(Vec::new()) };
    let hours = if first < end { runs.hourly_counters(*first, *end, key).await? } else { Vec::new() };
    Ok(hours_by_day(days, &hours))
}

/// Adds hours up to the days in which they begin.
fn hours_by_day(days: &[(Date, Timestamp)], hours: &[Bucket]) -> Vec<Bucket> {
    let mut buckets: Vec<Bucket> = days.windows(2).map(|pair| Bucket::new(pair[0].1, pair[1].1)).collect();
    for hour in hours {
        let behind = buckets.partition_point(|day| day.from <= hour.from);
        let Some(day) = behind.checked_sub(1).and_then(|place| buckets.get_mut(place)) else { continue };
        for status in RunStatus::ALL {
            day.add(*status, hour.count(*status));
        }
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runs_of_a_busy_job_are_counted_one_by_one_for_some_weeks_only() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        // The number of runs, and the seconds between them.
        let weeks_of = |count: i64, seconds: i64| {
            let runs: Vec<RunSummary> = (0..count).map(|n| summary(now.as_second() - n * seconds)).collect();
            weeks(&runs, now)
        };
        assert_eq!(
            [weeks_of(0, 60), weeks_of(999, 1), weeks_of(1_000, 86_400), weeks_of(1_000, 900)],
            [26, 26, 26, 26]
        );
        assert_eq!([weeks_of(1_000, 300), weeks_of(1_000, 60), weeks_of(1_000, 1)], [9, 1, 1]);
    }

    fn summary(second: i64) -> RunSummary {
        let at = Timestamp::from_second(second).unwrap();
        let job = (everbell_core::JobId::new(at, [0; 10]), JobKey::new("a").unwrap(), 1);
        let (id, trigger) = (everbell_core::RunId::by_hand(at, [0; 10]), everbell_core::TriggerType::Scheduled);
        RunSummary::new(id, job, RunStatus::Succeeded, trigger, (at, at))
    }

    #[test]
    fn days_begin_at_local_midnight_also_when_clocks_change() {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        for zone in ["UTC", "Australia/Lord_Howe", "America/New_York", "Africa/Cairo", "Pacific/Apia"] {
            let zone = Zone::get(zone).unwrap();
            let days = days(&zone, now);
            assert_eq!(days.len(), 197, "{}", zone.name());
            assert!(days.is_sorted_by_key(|(_, at)| *at));
            assert_eq!(days[0].0.weekday(), jiff::civil::Weekday::Monday);
        }
        // Samoa had no 30 December 2011.
        let days = days(&Zone::get("Pacific/Apia").unwrap(), "2012-01-02T00:00:00Z".parse().unwrap());
        assert_eq!(days.len(), 196);
    }

    #[test]
    fn hours_belong_to_the_local_day_in_which_they_begin() {
        let zone = Zone::get("Europe/Berlin").unwrap();
        let days = days(&zone, "2026-11-15T12:00:00Z".parse().unwrap());
        let place = |date: &str| days.iter().position(|(day, _)| day.to_string() == date).unwrap();
        let hour = |start: &str, status, runs| {
            let mut hour = Bucket::of_hour(start.parse().unwrap());
            hour.add(status, runs);
            hour
        };
        let hours = [
            hour("2026-10-24T21:00:00Z", RunStatus::Succeeded, 60),
            hour("2026-10-24T22:00:00Z", RunStatus::Succeeded, 1),
            hour("2026-10-25T22:00:00Z", RunStatus::Failed, 2),
            hour("2026-10-25T23:00:00Z", RunStatus::Skipped, 4),
        ];
        let buckets = hours_by_day(&days, &hours);
        assert_eq!(buckets.len(), days.len() - 1);
        let on = |date: &str| buckets[place(date)].clone();
        assert_eq!((on("2026-10-24").succeeded, on("2026-10-24").total()), (60, 60));
        let long = on("2026-10-25");
        assert_eq!((long.succeeded, long.failed, long.total()), (1, 2, 3), "the day of 25 hours");
        assert_eq!((on("2026-10-26").skipped, on("2026-10-26").total()), (4, 4));
        assert_eq!(hours_by_day(&days[..1], &hours), []);
    }
}
