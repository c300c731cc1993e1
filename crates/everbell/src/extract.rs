//! Arguments that a handler can ask for: its payload, its run, and state given to the builder.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use everbell_core::{FailureCode, Json};
use serde::de::DeserializeOwned;

use crate::bell::{Everbell, WeakBell};
use crate::client::{Jobs, Orgs, Runs};
use crate::error::RunError;
use crate::run::Run;

/// An argument of a handler.
///
/// Implement it for values that several handlers take from a run in the same way. A type that reads the payload should
/// implement [`FromRun::check_payload`] as well, so that a payload that it cannot read is refused when it is written.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an argument of a handler",
    label = "handlers cannot take this type",
    note = "a handler takes `Payload<T>` (with `T: serde::Deserialize`), `State<T>` (with `T: Clone + Send + Sync`), `Run`, \
            `Everbell`, `Jobs`, `Runs`, `Orgs`, or types that implement `everbell::FromRun`",
    note = "to take a `{Self}` from the payload of the job, write `Payload<{Self}>`"
)]
pub trait FromRun: Sized {
    /// Extracts it from the run, or returns why the run fails.
    fn from_run(run: &Run, states: &States) -> Result<Self, RunError>;

    /// Returns what is missing, if that is known before any run: then the instance does not start.
    fn check(states: &States) -> Option<String> {
        let _ = states;
        None
    }

    /// Returns why it cannot be read from this payload, as `no Briefing: the field org is missing`. Arguments that do not
    /// read the payload accept every one.
    fn check_payload(payload: &Json) -> Result<(), String> {
        let _ = payload;
        Ok(())
    }
}

impl FromRun for Run {
    fn from_run(run: &Run, _: &States) -> Result<Run, RunError> {
        Ok(run.clone())
    }
}

/// The payload, read into a type.
///
/// A payload that does not fit is refused when it is written: by [`Builder::build`](crate::Builder::build) for declared
/// jobs, and by every action of [`Jobs`](crate::Jobs) and [`Runs`](crate::Runs) in a program that serves the target.
/// A program that does not serve it cannot check that: then the run fails with `invalid_payload`, without a retry.
///
/// A job without a payload has `{}`. Types that cannot be read from that, but from `null`, get `null`: `Payload<()>`
/// and `Payload<Option<T>>` work for jobs without a payload. If `T` itself can be read from `{}`, such a job has `Some`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Payload<T>(pub T);

impl<T: DeserializeOwned> FromRun for Payload<T> {
    fn from_run(run: &Run, _: &States) -> Result<Payload<T>, RunError> {
        read(run.payload()).map(Payload).map_err(|mismatch| {
            let message = format!("the payload is {mismatch}");
            RunError::with_code(FailureCode::INVALID_PAYLOAD, &message).fatal()
        })
    }

    fn check_payload(payload: &Json) -> Result<(), String> {
        read::<T>(payload).map(drop)
    }
}

/// Reads a payload, or returns why that is impossible.
fn read<T: DeserializeOwned>(payload: &Json) -> Result<T, String> {
    let read = |text: &str| serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(text));
    let error = match read(payload.as_str()) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let is_absent = *payload == Json::empty();
    if is_absent && let Ok(value) = read("null") {
        return Ok(value);
    }
    let wanted = short_name(type_name::<T>());
    let place = match error.path().to_string() {
        root if root == "." => String::new(),
        path => format!(" at `{path}`"),
    };
    let hint = if is_absent { "; a job without a payload has `{}`" } else { "" };
    Err(format!("no `{wanted}`{place}: {}{hint}", error.inner()))
}

/// State given to [`Builder::state`](crate::Builder::state): a pool, a client, a configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State<T>(pub T);

impl<T: Clone + Send + Sync + 'static> FromRun for State<T> {
    fn from_run(_: &Run, states: &States) -> Result<State<T>, RunError> {
        let state = states.get().map(State);
        state.ok_or_else(|| RunError::with_code(FailureCode::HANDLER_ERROR, &missing::<T>()).fatal())
    }

    fn check(states: &States) -> Option<String> {
        states.get::<T>().is_none().then(missing::<T>)
    }
}

fn missing<T>() -> String {
    let name = short_name(type_name::<T>());
    format!("there is no state of the type `{name}`; give one with `.state(..)`")
}

macro_rules! part_of_the_bell {
    ($($type:ident: $take:expr;)+) => {
        /// For handlers that create, change or run jobs: the [`Everbell`] that runs the handler, or a part of it.
        $(impl FromRun for $type {
            fn from_run(_: &Run, states: &States) -> Result<$type, RunError> {
                let gone = || RunError::with_code(FailureCode::SHUTDOWN, "its instance is shutting down");
                states.bell.get().and_then(WeakBell::upgrade).map($take).ok_or_else(gone)
            }
        })+
    };
}

part_of_the_bell! {
    Everbell: |bell| bell;
    Jobs: |bell| bell.jobs();
    Runs: |bell| bell.runs();
    Orgs: |bell| bell.orgs();
}

/// The state that a program gives to its handlers, one value of each type.
#[derive(Default)]
pub struct States {
    values: HashMap<TypeId, (&'static str, Box<dyn Any + Send + Sync>)>,
    /// Weak, because the bell holds its handlers, and they hold this.
    bell: OnceLock<WeakBell>,
}

impl States {
    /// Returns the value of this type.
    pub fn get<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.values.get(&TypeId::of::<T>())?.1.downcast_ref::<T>().cloned()
    }

    /// Adds a value. Returns whether there was none of its type.
    pub(crate) fn add<T: Clone + Send + Sync + 'static>(&mut self, value: T) -> bool {
        self.values.insert(TypeId::of::<T>(), (type_name::<T>(), Box::new(value))).is_none()
    }

    /// Sets the bell that handlers take as an argument.
    pub(crate) fn set_bell(&self, bell: WeakBell) {
        self.bell.get_or_init(|| bell);
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.values().map(|(name, _)| short_name(name))).finish()
    }
}

/// Returns a type's name without its modules: `Vec<String>` for `alloc::vec::Vec<alloc::string::String>`.
pub(crate) fn short_name(full: &str) -> String {
    let full = full.replace("{{closure}}::", "");
    let mut short = String::new();
    let mut rest = full.as_str();
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len());
        let (path, after) = rest.split_at(end);
        short.push_str(path.rsplit("::").next().unwrap_or(path));
        let mark = after.chars().next().map_or(0, char::len_utf8);
        short.push_str(&after[..mark]);
        rest = &after[mark..];
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_named_without_their_modules() {
        assert_eq!(short_name(type_name::<Vec<Option<String>>>()), "Vec<Option<String>>");
        assert_eq!(short_name(type_name::<(States, [u8; 2])>()), "(States, [u8; 2])");
        assert_eq!(short_name(type_name::<&'static str>()), "&str");
    }

    #[test]
    fn a_state_is_found_by_its_type() {
        let mut states = States::default();
        assert!(states.add("first") && states.add(7_u32) && !states.add("second"));
        assert_eq!((states.get::<&str>(), states.get::<u32>(), states.get::<u64>()), (Some("second"), Some(7), None));
        assert_eq!(State::<u32>::check(&states), None);
        let said = "there is no state of the type `u64`; give one with `.state(..)`";
        assert_eq!(State::<u64>::check(&states).as_deref(), Some(said));
    }
}
