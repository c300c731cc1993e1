//! A month: how many runs each day has, which failed, and which days are frozen, excluded or have a minute that is too busy.

use askama::Template;
use everbell::JobRow;
use everbell_core::freeze::Freeze;
use everbell_core::store::{JobFilter, JobSort};
use everbell_core::{JobStatus, Zone};
use jiff::Timestamp;
use jiff::civil::{Date, Weekday};
use jiff::{ToSpan, Zoned};

use super::ahead::{Ahead, Known, own_spec};
use super::forecast::{Forecast, Herd, Input};
use super::{HerdLine, counted_jobs, org_schedules, runs_between, url_time};
use crate::chart::counted;
use crate::frozen::just_before;
use crate::{Frame, Section, UiRequest, UiResponse};
use everbell_http::problem::Problem;
use everbell_wire::form::{Field, TEXT, optional};

pub(crate) const QUERY: &[Field] = &[optional("month", TEXT, "The month, such as 2026-11; this month if absent.")];

/// The years whose months are shown.
const YEARS: std::ops::RangeInclusive<i16> = 1970..=2199;

#[derive(Template)]
#[template(path = "timeline_month.html")]
struct MonthPage {
    frame: Frame,
    /// `November 2026`.
    name: String,
    zone: String,
    earlier: String,
    later: String,
    /// Where the current month is, if it is another.
    now_link: bool,
    weeks: Vec<Vec<Option<Day>>>,
    /// Whether some jobs are not counted.
    is_cut: bool,
}

/// A day.
struct Day {
    number: i8,
    /// `Wed`, for narrow screens, which have no columns.
    weekday: String,
    /// The date in words.
    name: String,
    href: String,
    is_today: bool,
    /// Runs that started, how many of them failed, and where they are listed.
    ran: Option<(String, u64, String)>,
    planned: Option<String>,
    herd: Option<HerdLine>,
    /// The reasons of the freezes that touch it, and how many slots they stop.
    frozen: Vec<String>,
    frozen_slots: u64,
    /// How many slots calendars exclude.
    excluded: u64,
}

/// Shows a month.
pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    let zone = request.clock().zone(None);
    let form = request.query(QUERY);
    let today = request.now.to_zoned(zone.as_jiff().clone()).date();
    let first = match form.text("month") {
        None => today.first_of_month(),
        Some(text) => month(text).ok_or_else(|| {
            Problem::at("parameter", "month", "must be a month of the years 1970 to 2199, such as `2026-11`")
        })?,
    };
    let dates: Vec<Date> = (0..first.days_in_month()).filter_map(|day| first.checked_add(day.days()).ok()).collect();
    let bounds = midnights(first, &zone)?;
    let to = bounds[bounds.len() - 1];
    let current = JobFilter { status: vec![JobStatus::Active, JobStatus::Paused], ..JobFilter::default() };
    let (jobs, more) = counted_jobs(&request, &JobFilter { sort: JobSort::NextRunAt, ..current }).await?;
    let freezes = request.app.bell.freezes().list().await?;
    let orgs = org_schedules(&request, &jobs, to).await?;
    let known = Known { freezes: &freezes, orgs: &orgs, now: request.now };
    let forecast = Forecast::new(&Input { jobs: &jobs, known }, &bounds);
    let ran = runs_between(&request, &bounds).await?;
    let days = dates.iter().zip(bounds.windows(2)).enumerate().map(|(index, (date, bounds))| {
        let day = Day::new(*date, (bounds[0], bounds[1]), today, &request);
        let stopped = stopped(&jobs, &known, (bounds[0].max(request.now), bounds[1]));
        let touches =
            |freeze: &&Freeze| freeze.span().is_some_and(|span| span.from < bounds[1] && span.until > bounds[0]);
        let planned = forecast.starts[index];
        Day {
            ran: ran.get(index).filter(|(runs, _)| *runs > 0).map(|(runs, failed)| {
                let list = format!("/runs?from={}&to={}", url_time(bounds[0]), url_time(bounds[1]));
                (counted(*runs, "run"), *failed, list)
            }),
            planned: (planned > 0).then(|| format!("{} planned", counted(planned, "run"))),
            herd: forecast.peaks[index].as_ref().map(|herd: &Herd| HerdLine::new(herd, &request)),
            frozen: freezes.iter().filter(touches).map(|freeze| freeze.reason.clone()).collect(),
            frozen_slots: stopped.0,
            excluded: stopped.1,
            ..day
        }
    });
    let days = days.collect();
    let link = |by: i32| first.checked_add(by.months()).map(|first| first.strftime("%Y-%m").to_string());
    let page = MonthPage {
        frame: request.frame(Section::Timeline, "Month").await,
        name: first.strftime("%B %Y").to_string(),
        zone: zone.name().to_owned(),
        earlier: link(-1).unwrap_or_default(),
        later: link(1).unwrap_or_default(),
        now_link: first != today.first_of_month(),
        weeks: weeks(days, first.weekday()),
        is_cut: more || forecast.is_cut,
    };
    UiResponse::page(&page)
}

/// The first day of a month such as `2026-11`.
fn month(text: &str) -> Option<Date> {
    let first: Date = format!("{text}-01").parse().ok()?;
    Some(first).filter(|first| text.len() == 7 && YEARS.contains(&first.year()))
}

/// The beginnings of the days of a month, and the end of the last one.
fn midnights(first: Date, zone: &Zone) -> Result<Vec<Timestamp>, Problem> {
    let midnight = |day: i8| {
        let date = first.checked_add(day.days())?;
        date.to_zoned(zone.as_jiff().clone())
            .and_then(|zoned: Zoned| zoned.start_of_day())
            .map(|zoned| zoned.timestamp())
    };
    let bounds: Result<Vec<Timestamp>, jiff::Error> = (0..=first.days_in_month()).map(midnight).collect();
    bounds.map_err(|_| Problem::at("parameter", "month", "is too far away"))
}

/// How many slots of a day freezes and calendars stop.
fn stopped(jobs: &[JobRow], known: &Known<'_>, (from, to): (Timestamp, Timestamp)) -> (u64, u64) {
    if from >= to {
        return (0, 0);
    }
    let is_touched = known.freezes.iter().filter_map(Freeze::span).any(|span| span.from < to && span.until > from);
    let frozen = |job: &JobRow| -> u64 {
        let ahead = Ahead::new(job, known).filter(|_| is_touched);
        ahead.map_or(0, |ahead| ahead.frozen_slots(from, to).iter().map(|(_, slots)| slots).sum())
    };
    let excluded = |job: &JobRow| -> u64 {
        let Some(spec) = own_spec(job) else {
            return known.orgs.get(job.id()).map_or(0, |schedule| schedule.excluded(from, to));
        };
        let rows = spec.calendars().map(|_| spec.excluded_between(just_before(from), just_before(to)));
        rows.into_iter().flatten().map(|row| row.slots).sum()
    };
    (jobs.iter().map(frozen).sum(), jobs.iter().map(excluded).sum())
}

/// The days in weeks from Monday on, with empty places before the first and after the last.
fn weeks(days: Vec<Day>, first: Weekday) -> Vec<Vec<Option<Day>>> {
    let before = usize::try_from(first.to_monday_zero_offset()).unwrap_or(0);
    let after = (7 - (before + days.len()) % 7) % 7;
    let none = |count: usize| std::iter::repeat_with(|| None).take(count);
    let mut places = none(before).chain(days.into_iter().map(Some)).chain(none(after));
    let mut weeks = Vec::new();
    loop {
        let week: Vec<Option<Day>> = places.by_ref().take(7).collect();
        if week.is_empty() {
            return weeks;
        }
        weeks.push(week);
    }
}

impl Day {
    fn new(date: Date, (from, to): (Timestamp, Timestamp), today: Date, request: &UiRequest) -> Day {
        let middle = Timestamp::from_second(i64::midpoint(from.as_second(), to.as_second())).unwrap_or(from);
        Day {
            number: date.day(),
            weekday: date.strftime("%a").to_string(),
            name: date.strftime("%A, %-d %B %Y").to_string(),
            href: format!("/timeline?range=24h&around={}", url_time(middle)),
            is_today: date == today && request.now >= from,
            ran: None,
            planned: None,
            herd: None,
            frozen: Vec::new(),
            frozen_slots: 0,
            excluded: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_months_are_read() {
        assert_eq!(month("2026-11").map(|first| first.to_string()).as_deref(), Some("2026-11-01"));
        for text in ["2026-13", "2026", "2026-11-05", "1969-12", "2200-01", "202-111", ""] {
            assert_eq!(month(text), None, "{text}");
        }
    }

    #[test]
    fn days_begin_at_local_midnight_also_where_clocks_change() {
        let paris = Zone::get("Europe/Paris").unwrap();
        let bounds = midnights("2026-10-01".parse().unwrap(), &paris).unwrap();
        assert_eq!(bounds.len(), 32);
        assert_eq!(bounds[0].to_string(), "2026-09-30T22:00:00Z");
        let lengths: Vec<i64> =
            bounds.windows(2).map(|day| (day[1].as_second() - day[0].as_second()) / 3_600).collect();
        assert_eq!((lengths[24], lengths.iter().filter(|hours| **hours == 24).count()), (25, 30));
    }
}
