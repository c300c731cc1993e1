use std::sync::Mutex;

use super::*;

fn name(event: &Event) -> String {
    format!("{event:?}").split([' ', '(']).next().unwrap_or_default().to_owned()
}

fn round() -> Event {
    let instance = InstanceId::new(Timestamp::UNIX_EPOCH, [0; 10]);
    let (round, at) = (Round::Plan, Timestamp::UNIX_EPOCH);
    Event::Round { instance, round, at, begun: Duration::ZERO, claimed: Some(3), took: Duration::ZERO }
}

#[test]
fn observers_are_shown_everything_and_listeners_no_rounds() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let observer = |who: &'static str| -> Observer {
        let seen = Arc::clone(&seen);
        Box::new(move |event| seen.lock().unwrap().push(format!("{who} {}", name(event))))
    };
    let events = Events::new(vec![observer("one"), observer("two")]);
    let mut heard = events.listen();
    events.publish(Event::Draining(true));
    events.publish(round());
    events.clone().publish(Event::Draining(false));
    let expected = ["Draining", "Round", "Draining"].map(|name| [format!("one {name}"), format!("two {name}")]);
    assert_eq!(*seen.lock().unwrap(), expected.concat());
    let heard: Vec<String> = std::iter::from_fn(|| heard.try_recv().ok()).map(|event| name(&event)).collect();
    assert_eq!(heard, ["Draining", "Draining"]);
}

#[test]
fn an_observer_that_panics_takes_nobody_with_it() {
    let seen = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&seen);
    let count: Observer = Box::new(move |_| *counted.lock().unwrap() += 1);
    let events = Events::new(vec![Box::new(|_| panic!("boom")), count]);
    events.publish(Event::Draining(true));
    events.publish(Event::Draining(false));
    assert_eq!(*seen.lock().unwrap(), 2);
}

#[tokio::test]
async fn a_stream_goes_on_behind_what_it_missed_and_ends_with_its_source() {
    let events = Events::new(Vec::new());
    let mut stream = EventStream::new(events.listen());
    assert!(stream.try_recv().is_none());
    for _ in 0..MAX_LISTENER_BACKLOG + 3 {
        events.publish(Event::Draining(true));
    }
    events.publish(Event::Draining(false));
    let first = stream.recv().await.unwrap();
    assert!(matches!(*first, Event::Draining(true)));
    assert_eq!(stream.missed(), 4);
    let mut last = first;
    while let Some(event) = stream.try_recv() {
        last = event;
    }
    assert!(matches!(*last, Event::Draining(false)));
    // A call that is given up loses nothing.
    let waiting = tokio::time::timeout(Duration::from_millis(1), stream.recv()).await;
    assert!(waiting.is_err());
    events.publish(Event::Draining(true));
    assert!(stream.try_recv().is_some());
    drop(events);
    assert!(stream.recv().await.is_none() && stream.recv().await.is_none() && stream.try_recv().is_none());
}
