//! `--watch`: draws again when something happened, not by a timer.

use std::rc::Rc;
use std::time::Duration;

use serde_json::json;

use super::client::Parameter;
use super::online::Format;
use super::{CliError, Exit, Session};

/// What happens together is drawn together.
const BURST: Duration = Duration::from_millis(150);
/// Times that are left grow shorter, so a quiet screen is drawn again now and then.
const QUIET: Duration = Duration::from_secs(10);
/// To the upper left, and nothing below.
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";

/// Draws, and draws again whenever something happened; for programs every event is a line. Ends when somebody ends it.
pub(crate) fn follow(
    session: &mut Session<'_>,
    query: Vec<Parameter<'_>>,
    mut draw: impl FnMut(&mut Session<'_>) -> Result<(), CliError>,
) -> Result<Exit, CliError> {
    let lines = session.format == Some(Format::Jsonl);
    if !lines && !session.out.is_for_people() {
        return Err(CliError::Invalid {
            message: "--watch redraws a table, and no terminal reads this".to_owned(),
            hint: Some("print events as they happen: --watch -o jsonl".to_owned()),
        });
    }
    // Listening first: nothing is missed between the table and the first event.
    let client = Rc::clone(&session.client);
    let mut events = client.events(query)?;
    if lines {
        loop {
            if let Some(event) = events.next(None)? {
                session.out.json(&json!({ "event": event.kind, "data": event.data }))?;
                session.out.flush()?;
            }
        }
    }
    loop {
        session.now = crate::clock::now();
        if session.out.is_terminal() {
            session.out.raw(CLEAR)?;
        }
        draw(session)?;
        session.out.flush()?;
        if events.next(Some(QUIET))?.is_some() {
            while events.next(Some(BURST))?.is_some() {}
        }
    }
}
