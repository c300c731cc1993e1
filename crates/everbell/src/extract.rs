//! Arguments that a handler can ask for: its payload, its run, and state given to the builder.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;

use everbell_core::FailureCode;
use serde::de::DeserializeOwned;

use crate::error::RunError;
use crate::run::Run;

/// An argument of a handler.
///
/// Implement it for values that several handlers take from a run in the same way.
pub trait FromRun: Sized {
    /// Extracts it from the run, or returns why the run fails.
    fn from_run(run: &Run, states: &States) -> Result<Self, RunError>;

    /// Returns what is missing, if that is known before any run: then the instance does not start.
    fn check(states: &States) -> Option<String> {
        let _ = states;
        None
    }
}

impl FromRun for Run {
    fn from_run(run: &Run, _: &States) -> Result<Run, RunError> {
        Ok(run.clone())
    }
}

/// The payload, read into a type. A payload that does not fit fails the run with `invalid_payload`, without a retry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Payload<T>(pub T);

impl<T: DeserializeOwned> FromRun for Payload<T> {
    fn from_run(run: &Run, _: &States) -> Result<Payload<T>, RunError> {
        let mut reader = serde_json::Deserializer::from_str(run.payload().as_str());
        serde_path_to_error::deserialize(&mut reader).map(Payload).map_err(|error| {
            let wanted = short_name(type_name::<T>());
            let place = match error.path().to_string() {
                root if root == "." => String::new(),
                path => format!(" at `{path}`"),
            };
            let message = format!("the payload is no `{wanted}`{place}: {}", error.inner());
            RunError::with_code(FailureCode::INVALID_PAYLOAD, &message).fatal()
        })
    }
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

/// The state that a program gives to its handlers, one value of each type.
#[derive(Default)]
pub struct States(HashMap<TypeId, (&'static str, Box<dyn Any + Send + Sync>)>);

impl States {
    /// Returns the value of this type.
    pub fn get<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.0.get(&TypeId::of::<T>())?.1.downcast_ref::<T>().cloned()
    }

    /// Adds a value. Returns whether there was none of its type.
    pub(crate) fn add<T: Clone + Send + Sync + 'static>(&mut self, value: T) -> bool {
        self.0.insert(TypeId::of::<T>(), (type_name::<T>(), Box::new(value))).is_none()
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.values().map(|(name, _)| short_name(name))).finish()
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
