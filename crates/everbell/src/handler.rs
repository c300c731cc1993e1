//! [`Handler`]: plain async functions as targets.
//!
//! A function with up to six arguments, each a [`FromRun`], that returns `()` or a `Result`. It is erased into an
//! [`Action`], so everything behind knows one kind of function only.

use std::future::Future;
use std::sync::Arc;

use everbell_core::settle::Outcome;
use everbell_core::{FailureCode, Json};
use serde::Serialize;

use crate::error::{IntoRunError, RunError, storable};
use crate::extract::{FromRun, States};
use crate::run::Run;
use crate::targets::Action;

/// An async function that can be a target. `Arguments` are the types of its arguments.
///
/// ```
/// use everbell::{Payload, Run, RunError};
///
/// async fn heartbeat() {}
///
/// async fn remind(Payload(name): Payload<String>, run: Run) -> Result<usize, RunError> {
///     run.log(format!("hello {name}"));
///     Ok(name.len())
/// }
///
/// everbell::Everbell::builder().target("heartbeat", heartbeat).target("remind", remind);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a handler",
    label = "this is not a handler",
    note = "a handler is an `async fn` with up to six arguments: `Payload<T>`, `State<T>`, `Run`, `Everbell`, `Jobs`, or other types \
            that implement `everbell::FromRun`",
    note = "it returns `()` or `Result<T, E>`, with `T: serde::Serialize` and any error type `E`",
    note = "its future must be `Send`: it holds no `Rc`, `RefCell` borrow or `std::sync::MutexGuard` across an `.await`"
)]
pub trait Handler<Arguments>: HandlerFn<Arguments> + Send + Sync + 'static {
    /// Erases the types of its arguments.
    fn into_action(self, states: Arc<States>) -> Action;

    /// Returns what its arguments lack.
    fn check(states: &States) -> Vec<String>;

    /// Returns why its arguments cannot be read from this payload.
    fn check_payload(payload: &Json) -> Result<(), String>;
}

/// A function that returns a future, whatever its arguments and its output are.
///
/// [`Builder::target`](crate::Builder::target) asks for it first: the compiler learns the types of the arguments from it,
/// and then reports the argument or the return type that stands in the way of a [`Handler`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an async function with up to six arguments",
    label = "a handler is an `async fn`, or a closure that returns a future",
    note = "arguments of a closure need types: `|run: Run| async move {{ .. }}`"
)]
pub trait HandlerFn<Arguments> {}

/// A handler's return type: `()`, or a `Result` whose value is shown as the run's result.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    label = "a handler returns `()` or a `Result`",
    note = "return `()`, or `Result<T, E>` with `T: serde::Serialize` and any error type `E`: to show a `{Self}` as the result of the \
            run, return `Result<{Self}, everbell::RunError>`"
)]
pub trait IntoOutcome {
    /// Returns the outcome of the run.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Outcome {
        Outcome::Succeeded { result: None }
    }
}

impl<T: Serialize, E: IntoRunError> IntoOutcome for Result<T, E> {
    fn into_outcome(self) -> Outcome {
        match self.map(|value| storable("result", &value)) {
            Ok(Ok(result)) => Outcome::Succeeded { result },
            // What the handler did is done: another attempt would do it twice.
            Ok(Err(reason)) => {
                let message = format!("its result cannot be stored: {reason}");
                RunError::with_code(FailureCode::HANDLER_ERROR, &message).fatal().into_outcome()
            }
            Err(error) => error.into_run_error().into_outcome(),
        }
    }
}

macro_rules! handler {
    ($($argument:ident),*) => {
        impl<F, Fut, $($argument,)*> Handler<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output: IntoOutcome> + Send + 'static,
            $($argument: FromRun,)*
        {
            #[allow(non_snake_case, unused_variables, reason = "the macro names arguments after their types; there may be none")]
            fn into_action(self, states: Arc<States>) -> Action {
                let call = move |run: &Run| -> Result<Fut, RunError> {
                    $(let $argument = $argument::from_run(run, &states)?;)*
                    Ok(self($($argument),*))
                };
                Arc::new(move |run| match call(&run) {
                    Ok(handler) => Box::pin(async move { handler.await.into_outcome() }),
                    Err(error) => Box::pin(std::future::ready(error.into_outcome())),
                })
            }

            #[allow(unused_variables, reason = "there may be no argument")]
            fn check(states: &States) -> Vec<String> {
                let checks: [Option<String>; _] = [$($argument::check(states)),*];
                checks.into_iter().flatten().collect()
            }

            #[allow(unused_variables, reason = "there may be no argument")]
            fn check_payload(payload: &Json) -> Result<(), String> {
                $($argument::check_payload(payload)?;)*
                Ok(())
            }
        }

        impl<F, Fut, $($argument,)*> HandlerFn<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> Fut,
            Fut: Future,
        {
        }
    };
}

handler!();
handler!(A);
handler!(A, B);
handler!(A, B, C);
handler!(A, B, C, D);
handler!(A, B, C, D, E);
handler!(A, B, C, D, E, G);
