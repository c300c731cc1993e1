//! `--watch`: redraws when something changes.

use std::rc::Rc;
use std::time::Duration;

use everbell_client::EventQuery;
use serde_json::json;

use super::error::RefusalContext;
use super::online::Format;
use super::{CliError, Exit, Session};

/// Events within this time are drawn together.
const BURST_WINDOW: Duration = Duration::from_millis(150);
/// Without events, the screen is drawn this often, because remaining times grow shorter.
const REDRAW_INTERVAL: Duration = Duration::from_secs(10);
/// Moves to the upper left corner and clears the screen.
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";

/// Draws after every event, or prints each event as a line for programs, until the user interrupts.
pub(crate) fn follow(
    session: &mut Session<'_>,
    query: &EventQuery,
    mut draw: impl FnMut(&mut Session<'_>) -> Result<(), CliError>,
) -> Result<Exit, CliError> {
    let lines = session.format == Some(Format::Jsonl);
    if !lines && !session.out.is_for_people() {
        return Err(CliError::Invalid {
            message: "--watch redraws a table, which needs a terminal".to_owned(),
            hint: Some("print events as they happen: --watch -o jsonl".to_owned()),
        });
    }
    // Subscribe first, so that no event is missed after the first table.
    let client = Rc::clone(&session.client);
    let mut events = client.run(client.events(query)).with_action(|| "follow events".to_owned())?;
    if lines {
        loop {
            let event = client.run(events.next())?;
            session.out.json(&json!({ "event": event.kind, "data": event.data }))?;
            session.out.flush()?;
        }
    }
    loop {
        session.now = crate::clock::now();
        if session.out.is_terminal() {
            session.out.raw(CLEAR)?;
        }
        draw(session)?;
        session.out.flush()?;
        if client.run(events.next_within(REDRAW_INTERVAL))?.is_some() {
            while client.run(events.next_within(BURST_WINDOW))?.is_some() {}
        }
    }
}
