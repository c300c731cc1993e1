//! The time of day, on a clock of 24 hours.

use super::super::search::Fields;
use super::words::{Progression, interval, list, members, numbers, ordinal, plural};

/// Said of a step that does not divide its range: the rate breaks where the next hour (or minute) begins.
pub(super) const RESTARTING_EACH: &str = ", restarting every ";

const DAY: u32 = 86_400;
const ALL_HOURS: u32 = 0xff_ffff;
/// The most times of day that are listed one by one.
const MAX_TIMES: u64 = 8;
/// The most windows "from … to …" that are listed.
const MAX_WINDOWS: usize = 3;

/// The times on a matching day, in words.
pub(super) enum TimeText {
    /// A few times: `09:00 and 12:00`.
    At(String),
    /// Again and again: `Every 5 minutes`. `all_day`: in every hour.
    Rate { text: String, all_day: bool },
}

pub(super) fn text(fields: &Fields, budget: usize) -> TimeText {
    let all_day = fields.hours == ALL_HOURS;
    if let Some(rate) = Progression::from_values(times(fields))
        && rate.count >= 3
        && rate.first == 0
        && rate.last + rate.step == DAY
    {
        return TimeText::Rate { text: format!("Every {}", every(rate.step)), all_day: true };
    }
    if !all_day && let Some(text) = windows(fields) {
        return TimeText::Rate { text, all_day };
    }
    if fields.times_per_day() <= MAX_TIMES {
        let times: Vec<String> = times(fields).map(|time| clock(fields, time)).collect();
        return TimeText::At(list(&times, "and"));
    }
    let text = if fields.seconds == 1 { minutes(fields, budget) } else { seconds(fields, budget) };
    TimeText::Rate { text, all_day }
}

/// Every time of a day, in seconds, ascending.
fn times(fields: &Fields) -> impl Iterator<Item = u32> {
    let (seconds, minutes) = (members(fields.seconds), members(fields.minutes));
    members(u64::from(fields.hours)).into_iter().flat_map(move |hour| {
        let seconds = seconds.clone();
        minutes
            .clone()
            .into_iter()
            .flat_map(move |minute| seconds.clone().into_iter().map(move |second| hour * 3_600 + minute * 60 + second))
    })
}

/// `09:00`, with seconds if the schedule has any.
fn clock(fields: &Fields, time: u32) -> String {
    let (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60);
    if fields.seconds == 1 { format!("{hour:02}:{minute:02}") } else { format!("{hour:02}:{minute:02}:{second:02}") }
}

fn every(seconds: u32) -> String {
    interval(u64::from(seconds))
}

/// One rate in a few windows: `Every hour from 08:00 to 12:00 and from 14:00 to 18:00`.
fn windows(fields: &Fields) -> Option<String> {
    let mut times = times(fields);
    let first = times.next()?;
    let second = times.next()?;
    let step = second - first;
    let mut windows = vec![(first, second, 2)];
    for time in times {
        let room = windows.len() < MAX_WINDOWS;
        let (_, last, count) = windows.last_mut()?;
        if time - *last == step {
            (*last, *count) = (time, *count + 1);
        } else if time - *last > step && room {
            windows.push((time, time, 1));
        } else {
            return None;
        }
    }
    let natural = [1, 60, 3_600].contains(&step);
    let enough = if windows.len() == 1 && !natural { 4 } else { 3 };
    if windows.iter().any(|(_, _, count)| *count < enough) {
        return None;
    }
    let said: Vec<String> = windows
        .iter()
        .map(|(first, last, _)| format!("from {} to {}", clock(fields, *first), clock(fields, *last)))
        .collect();
    Some(format!("Every {} {}", every(step), list(&said, "and")))
}

/// Schedules that fire at full minutes.
fn minutes(fields: &Fields, budget: usize) -> String {
    let minutes = members(fields.minutes);
    let hours = members(u64::from(fields.hours));
    let within = Unit { noun: "hour", size: 24 }.text(&hours, budget);
    match Pattern::from_values(&minutes) {
        Pattern::Cycle(step) => format!("Every {} in {within}", every(step * 60)),
        Pattern::Uneven(step) => {
            let rate = every(step * 60);
            let (first, last) = (minutes[0], minutes[minutes.len() - 1]);
            match Progression::from_values(hours.iter().copied()) {
                Some(Progression { count: 24, .. }) => format!("Every {rate}{RESTARTING_EACH}hour"),
                Some(hours) if hours.step == 1 => {
                    let from = clock(fields, hours.first * 3_600 + first * 60);
                    let to = clock(fields, hours.last * 3_600 + last * 60);
                    format!("Every {rate} from {from} to {to}{RESTARTING_EACH}hour")
                }
                _ => format!("Every {rate} in {within}{RESTARTING_EACH}hour"),
            }
        }
        Pattern::Run(run) => {
            format!("Every {} from {} to {} minutes past {within}", every(run.step * 60), run.first, run.last)
        }
        Pattern::List => format!("At {} past {within}", counted(&minutes, "minute", budget)),
    }
}

/// Schedules that fire at other seconds than 0.
fn seconds(fields: &Fields, budget: usize) -> String {
    let seconds = members(fields.seconds);
    let minutes = members(fields.minutes);
    let hours = members(u64::from(fields.hours));
    let always = minutes.len() == 60 && hours.len() == 24;
    let mut within = Unit { noun: "minute", size: 60 }.text(&minutes, budget);
    if !always {
        within = format!("{within} of {}", Unit { noun: "hour", size: 24 }.text(&hours, budget));
    }
    match Pattern::from_values(&seconds) {
        Pattern::Cycle(step) => format!("Every {} in {within}", every(step)),
        Pattern::Uneven(step) if always => format!("Every {}{RESTARTING_EACH}minute", every(step)),
        Pattern::Uneven(step) => format!("Every {} in {within}{RESTARTING_EACH}minute", every(step)),
        Pattern::Run(run) => {
            format!("Every {} from {} to {} seconds past {within}", every(run.step), run.first, run.last)
        }
        Pattern::List => format!("At {} past {within}", counted(&seconds, "second", budget)),
    }
}

/// How the seconds of a minute or the minutes of an hour are spread.
enum Pattern {
    /// From 0, at a step that divides 60.
    Cycle(u32),
    /// From 0 to the end, at a step that does not.
    Uneven(u32),
    /// A step between two ends.
    Run(Progression),
    List,
}

impl Pattern {
    fn from_values(values: &[u32]) -> Pattern {
        match Progression::from_values(values.iter().copied()) {
            Some(all) if all.first == 0 && all.last + all.step == 60 => Pattern::Cycle(all.step),
            Some(all) if all.fills_from_zero(60) && all.count >= 3 => Pattern::Uneven(all.step),
            Some(all) if all.is_run() => Pattern::Run(all),
            _ => Pattern::List,
        }
    }
}

/// `5 and 20 minutes`, `1 minute`, `23 chosen minutes from 1 to 58`.
fn counted(values: &[u32], noun: &str, budget: usize) -> String {
    match numbers(values, budget) {
        Some(list) => format!("{list} {}", plural(noun, values != [1])),
        None => chosen(values, noun),
    }
}

fn chosen(values: &[u32], noun: &str) -> String {
    let (first, last) = (values.first().unwrap_or(&0), values.last().unwrap_or(&0));
    format!("{} chosen {} from {first} to {last}", values.len(), plural(noun, true))
}

/// Minutes or hours in which something happens.
struct Unit {
    noun: &'static str,
    size: usize,
}

impl Unit {
    /// `every hour`, `every hour from 9 to 17`, `every 2nd hour from 0 to 22`, `hour 9`, `hours 9, 12 and 18`.
    fn text(&self, values: &[u32], budget: usize) -> String {
        let noun = self.noun;
        if values.len() == self.size {
            return format!("every {noun}");
        }
        match Progression::from_values(values.iter().copied()) {
            Some(run) if run.is_run() && run.step == 1 => format!("every {noun} from {} to {}", run.first, run.last),
            Some(run) if run.is_run() => {
                format!("every {} {noun} from {} to {}", ordinal(run.step), run.first, run.last)
            }
            _ => match numbers(values, budget) {
                Some(list) => format!("{} {list}", plural(noun, values.len() > 1)),
                None => chosen(values, noun),
            },
        }
    }
}
