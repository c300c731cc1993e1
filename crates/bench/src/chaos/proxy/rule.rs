//! Rules: an action, and when to take it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;

use super::lock;
use crate::chaos::clock::true_time;
use crate::chaos::statement::Statement;

/// A point in the exchange of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// Before the server gets the request.
    Request,
    /// After the server has done it, before the client gets the answer.
    Answer,
    /// As [`Point::Answer`], for answers with rows only: something was really locked, started or changed.
    AnswerWithRows,
}

/// The action of a rule.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// Holds the message back for this long.
    Delay(Duration),
    /// Silences the network, with the message on it.
    Silence,
    /// Signals the process behind the proxy, then goes on.
    Signal(Signal),
    /// Ends the process behind the proxy at once and cuts its network, so that this is carried no further.
    Kill,
}

/// Acts on a statement, a number of times.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    statement: Statement,
    point: Point,
    action: Action,
    /// Counted down by matches that are passed over first.
    skip: Arc<AtomicU32>,
    times: u32,
    armed: Armed,
}

/// The record of a rule's actions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Armed(Arc<Mutex<Vec<f64>>>);

impl Armed {
    /// When it acted, by the true clock.
    pub(crate) fn acted(&self) -> Vec<f64> {
        lock(&self.0).clone()
    }
}

impl Rule {
    /// Acts once.
    pub(crate) fn new(statement: Statement, point: Point, action: Action) -> Rule {
        Rule { statement, point, action, skip: Arc::default(), times: 1, armed: Armed::default() }
    }

    /// Acts this many times.
    pub(crate) fn times(self, times: u32) -> Rule {
        Rule { times, ..self }
    }

    /// Acts only after this many matches.
    pub(crate) fn after(self, matches: u32) -> Rule {
        Rule { skip: Arc::new(AtomicU32::new(matches)), ..self }
    }

    pub(super) fn armed(&self) -> Armed {
        self.armed.clone()
    }

    /// The action for a request or an answer of these statements, which counts as done with that.
    pub(super) fn take(&self, texts: &[Arc<str>], point: Point, has_rows: bool) -> Option<Action> {
        let here = match self.point {
            Point::Request => point == Point::Request,
            Point::Answer => point == Point::Answer,
            Point::AnswerWithRows => point == Point::Answer && has_rows,
        };
        if !here || !texts.iter().any(|text| self.statement.is(text)) {
            return None;
        }
        if self.skip.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            return None;
        }
        let mut acted = lock(&self.armed.0);
        if acted.len() >= self.times as usize {
            return None;
        }
        acted.push(true_time());
        Some(self.action)
    }
}
