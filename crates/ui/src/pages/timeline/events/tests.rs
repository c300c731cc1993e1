use everbell_core::Zone;

use super::*;

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(minute * 60).unwrap()
}

fn run(from: i64) -> Event {
    Event {
        what: What::Run(RunStatus::Succeeded),
        at: at(from),
        until: Some(at(from + 5)),
        href: None,
        runs: 1,
        zones: 0,
    }
}

fn window(from: i64, to: i64, now: i64) -> Window {
    Window { from: at(from), to: at(to), now: at(now), zone: Zone::utc() }
}

#[test]
fn the_pieces_of_the_load_are_minutes_where_there_is_room() {
    let shifted = Window { from: at(0) + SignedDuration::from_secs(30), ..window(0, 60, 30) };
    let hour = bounds(&shifted);
    assert_eq!((hour[0], hour[1], hour[60]), (shifted.from, at(1), at(60)));
    assert_eq!(bounds(&window(0, 360, 0)).len(), 361, "six hours by minute");
    assert_eq!(bounds(&window(0, 1_440, 0)).len(), 289, "a day by five minutes");
    assert_eq!(bounds(&window(0, 10_080, 0)).len(), 337, "a week by half an hour");
}

#[test]
fn the_load_has_what_started_before_now_and_what_is_planned_after() {
    let events = vec![run(0), run(1), run(1), Event { what: What::Missed, ..run(1) }, run(30)];
    let row =
        Row { key: "a".to_owned(), href: String::new(), paused: false, events, gaps: Vec::new(), bands: Vec::new() };
    let bounds: Vec<Timestamp> = (0..4).map(at).collect();
    let started = started(&[row], &bounds);
    assert_eq!(started, [1, 2, 0]);
    let now = at(1) + SignedDuration::from_secs(20);
    let load = load(&bounds, &started, &[0, 7, 9], now);
    let shown: Vec<(Timestamp, u64, bool)> = load.iter().map(|load| (load.from, load.runs, load.predicted)).collect();
    assert_eq!(shown, [(at(0), 1, false), (at(1), 2, false), (now, 7, true), (at(2), 9, true)]);
}

#[test]
fn rates_are_rounded() {
    let shown = |slots, minutes| rate(slots, at(0), at(minutes));
    assert_eq!([shown(1_785, 60), shown(720, 24), shown(60, 60), shown(14, 60)], ["30/min", "30/min", "60/h", "14/h"]);
}
