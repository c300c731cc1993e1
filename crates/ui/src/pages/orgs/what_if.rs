//! [`WhatIf`]: what a move of an org to another zone would do, before it is made.

use everbell::client::JobWhatIf;
use everbell::core::org::{Day, Verdict};
use everbell_core::{GapReason, Spec, UnknownZone, Zone};
use jiff::Timestamp;

use super::{OrgSubject, local, local_now, utc};
use crate::clock::Clock;
use crate::markup::{Markup, url_part};
use crate::request::UiRequest;
use everbell_http::problem::Problem;

/// The maximum number of runs that are listed per job.
const MAX_LISTED_FIRES: usize = 3;
/// The maximum number of jobs that are listed.
const MAX_LISTED_JOBS: usize = 20;

/// The preview of a move.
pub(super) enum WhatIf {
    /// It is there already, or nothing is typed.
    Stays,
    /// There is no such zone.
    Unknown(UnknownZone),
    Moves(Moves),
}

/// The effect of a move.
pub(super) struct Moves {
    pub(super) to: &'static str,
    /// The local time after the move.
    pub(super) now: Markup,
    pub(super) jobs: Vec<JobMoves>,
    /// How many more jobs there are.
    pub(super) more: usize,
}

/// The effect of a move on one job.
pub(super) struct JobMoves {
    pub(super) key: String,
    pub(super) part: String,
    /// Local, and in UTC.
    pub(super) before: Vec<(Markup, Markup)>,
    pub(super) after: Vec<(Markup, Markup)>,
    pub(super) days: Vec<DayLine>,
}

/// The outcome of a local day.
pub(super) struct DayLine {
    /// The name of a sign.
    pub(super) sign: &'static str,
    pub(super) date: String,
    pub(super) text: String,
}

impl WhatIf {
    pub(super) async fn load(request: &UiRequest, subject: &OrgSubject, timezone: &str) -> Result<WhatIf, Problem> {
        if timezone.is_empty() || timezone == subject.org.place.timezone {
            return Ok(WhatIf::Stays);
        }
        let zone = match Zone::get(timezone) {
            Ok(zone) if zone.name() == subject.org.place.timezone => return Ok(WhatIf::Stays),
            Ok(zone) => zone,
            Err(unknown) => return Ok(WhatIf::Unknown(unknown)),
        };
        let moved = request.orgs().what_if(&subject.org.id, zone.name(), MAX_LISTED_FIRES).await?;
        let clock = request.clock();
        Ok(WhatIf::Moves(Moves {
            to: zone.name(),
            now: local_now(&clock, &zone),
            more: moved.len().saturating_sub(MAX_LISTED_JOBS),
            jobs: moved.iter().take(MAX_LISTED_JOBS).map(|job| JobMoves::new(job, &clock)).collect(),
        }))
    }
}

impl JobMoves {
    fn new(moved: &JobWhatIf, clock: &Clock) -> JobMoves {
        let key = moved.job.job.definition.key.to_string();
        let fires = |times: &[Timestamp], spec: Option<&Spec>| {
            times.iter().map(|at| (local(clock, *at, spec.map(Spec::zone)), utc(clock, *at))).collect()
        };
        let there = moved.there.as_ref();
        JobMoves {
            part: url_part(&key),
            key,
            before: fires(&moved.what_if.before, moved.here.as_ref()),
            after: fires(&moved.what_if.after, there),
            days: moved.what_if.days.iter().map(|day| DayLine::new(day, there)).collect(),
        }
    }
}

impl DayLine {
    fn new(day: &Day, spec: Option<&Spec>) -> DayLine {
        let time =
            day.at.zip(spec).map(|(at, spec)| spec.zone().as_jiff().to_datetime(at).strftime("%H:%M").to_string());
        let (sign, text) = match day.verdict {
            Verdict::RanAlready => ("ok", "has already run, does not run again".to_owned()),
            Verdict::Once => {
                ("wait", time.map_or_else(|| "runs once".to_owned(), |time| format!("runs once, at {time}")))
            }
            Verdict::AtOnce => ("run", "runs immediately after the move: its local time has passed".to_owned()),
            Verdict::Twice => ("warn", "runs twice".to_owned()),
            Verdict::NotAtAll => ("skip", format!("does not run{}", day.gap.map(why).unwrap_or_default())),
        };
        DayLine { sign, date: day.date.strftime("%a %-d %b %Y").to_string(), text }
    }
}

/// Why a day gets no run.
fn why(gap: GapReason) -> &'static str {
    match gap {
        GapReason::Missed => ": its local time has passed, and the job does not catch up",
        GapReason::Coalesced => ": the move skips this day, and another run covers it",
        GapReason::Paused => ": the job is off",
        GapReason::DstGap => ": the local time does not exist on that day",
        GapReason::Expired => ": its local time is older than the catch-up window of the job",
        GapReason::Errored => ": the job cannot fire",
        GapReason::Excluded => ": a calendar of the job excludes the day",
        GapReason::Frozen => ": a freeze is in force",
        GapReason::Incomplete => ": it waits for other jobs",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::Date;

    use super::*;

    #[test]
    fn every_verdict_is_told_in_words() {
        let spec =
            Spec::recurring("0 8 * * *".parse().unwrap(), Zone::get("Asia/Tokyo").unwrap(), Timestamp::UNIX_EPOCH);
        let line = |verdict, at: Option<&str>, gap| {
            let at = at.map(|at| at.parse().unwrap());
            let line = DayLine::new(&Day { date: Date::constant(2026, 11, 15), verdict, at, gap }, Some(&spec));
            format!("{} {}: {}", line.sign, line.date, line.text)
        };
        assert_eq!(line(Verdict::RanAlready, None, None), "ok Sun 15 Nov 2026: has already run, does not run again");
        let once = line(Verdict::Once, Some("2026-11-14T23:00:00Z"), None);
        assert_eq!(once, "wait Sun 15 Nov 2026: runs once, at 08:00");
        assert!(line(Verdict::AtOnce, Some("2026-11-15T12:00:00Z"), None).contains("runs immediately"));
        assert_eq!(line(Verdict::Twice, None, None), "warn Sun 15 Nov 2026: runs twice");
        let jumped = line(Verdict::NotAtAll, None, Some(GapReason::Coalesced));
        assert!(jumped.starts_with("skip Sun 15 Nov 2026: does not run: the move skips this day"), "{jumped}");
        assert!(line(Verdict::NotAtAll, None, None).ends_with(": does not run"));
    }
}
