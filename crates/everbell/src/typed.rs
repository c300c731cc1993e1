//! [`TypedTarget`]: the name of a target together with the type of its payload, so that the compiler checks both.

use std::fmt;
use std::marker::PhantomData;

use crate::bell::Everbell;
use crate::client::{Jobs, Orgs, Runs};
use crate::extract::{Payload, State};
use crate::run::Run;

/// The name of a target, and the type of the payload that its handler takes.
///
/// Declare it once, as a constant, where both the code that schedules and the code that handles can see it: another
/// crate may do either. [`Schedule::to`](crate::Schedule::to) then takes only such a payload, and
/// [`Builder::target`](crate::Builder::target) only a handler that takes it, or no payload at all.
///
/// ```
/// use everbell::{Everbell, Payload, Run, Schedule, TypedTarget};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Reminder {
///     user: u64,
/// }
///
/// const REMIND: TypedTarget<Reminder> = TypedTarget::new("remind");
///
/// async fn remind(Payload(reminder): Payload<Reminder>, run: Run) {
///     run.log(format!("hello {}", reminder.user));
/// }
///
/// Everbell::builder()
///     .target(REMIND, remind)
///     .schedule(Schedule::cron("weekly", "0 9 * * mon").to(&REMIND, Reminder { user: 7 }));
/// ```
///
/// A handler of another payload does not compile:
///
/// ```compile_fail,E0277
/// # use everbell::{Everbell, Payload, TypedTarget};
/// const COUNT: TypedTarget<u64> = TypedTarget::new("count");
///
/// async fn greet(Payload(name): Payload<String>) {}
///
/// Everbell::builder().target(COUNT, greet);
/// ```
pub struct TypedTarget<P> {
    name: &'static str,
    payload: PhantomData<fn(P)>,
}

impl<P> TypedTarget<P> {
    /// Declares a target. [`Builder::build`](crate::Builder::build) checks the name.
    pub const fn new(name: &'static str) -> TypedTarget<P> {
        TypedTarget { name, payload: PhantomData }
    }

    /// Returns the name.
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

impl<P> Clone for TypedTarget<P> {
    fn clone(&self) -> TypedTarget<P> {
        *self
    }
}

impl<P> Copy for TypedTarget<P> {}

impl<P> fmt::Debug for TypedTarget<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypedTarget").field(&self.name).finish()
    }
}

impl<P> fmt::Display for TypedTarget<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The name of a target, as [`Builder::target`](crate::Builder::target) takes it: a text, or a [`TypedTarget`].
///
/// `Arguments` are the types of the handler's arguments; the compiler finds `Marker`.
pub trait TargetLabel<Arguments, Marker> {
    /// Returns the name.
    fn into_label(self) -> String;
}

/// Marks a name without a type, which takes any handler.
#[derive(Debug)]
pub struct Untyped(());

/// Marks a name with a type, and how the handler takes that.
#[derive(Debug)]
pub struct Typed<M>(PhantomData<M>);

impl<A, S: Into<String>> TargetLabel<A, Untyped> for S {
    fn into_label(self) -> String {
        self.into()
    }
}

impl<P, A: TakesPayload<P, M>, M> TargetLabel<A, Typed<M>> for TypedTarget<P> {
    fn into_label(self) -> String {
        self.name.to_owned()
    }
}

impl<P, A: TakesPayload<P, M>, M> TargetLabel<A, Typed<M>> for &TypedTarget<P> {
    fn into_label(self) -> String {
        self.name.to_owned()
    }
}

/// The arguments of a handler that takes a `Payload<P>`, or no payload. The compiler finds `Position`.
#[diagnostic::on_unimplemented(
    message = "this handler does not take `Payload<{P}>`, the payload of its target",
    label = "the target is a `TypedTarget<{P}>`",
    note = "the handler must take `Payload<{P}>`, or no payload at all",
    note = "implement `everbell::WithoutPayload` for own arguments that do not read the payload"
)]
pub trait TakesPayload<P, Position> {}

/// An argument of a handler that does not read the payload.
///
/// Implement it for an own [`FromRun`](crate::FromRun) if it is an argument of a handler that takes no payload and
/// serves a [`TypedTarget`].
#[diagnostic::on_unimplemented(
    message = "a handler of a `TypedTarget` takes the payload of that target or none, not `{Self}`",
    label = "the target and the handler have different payloads",
    note = "own arguments that do not read the payload implement `everbell::WithoutPayload`"
)]
pub trait WithoutPayload {}

impl WithoutPayload for Run {}
impl<T> WithoutPayload for State<T> {}
impl WithoutPayload for Everbell {}
impl WithoutPayload for Jobs {}
impl WithoutPayload for Runs {}
impl WithoutPayload for Orgs {}

/// Marks arguments without a payload.
#[derive(Debug)]
pub struct NoPayload(());

/// Marks arguments whose payload is at this position.
#[derive(Debug)]
pub struct At<const POSITION: usize>(());

macro_rules! without_payload {
    ($(($($argument:ident)*))+) => {
        $(impl<P, $($argument: WithoutPayload,)*> TakesPayload<P, NoPayload> for ($($argument,)*) {})+
    };
}

without_payload! { () (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) }

macro_rules! with_payload {
    ($($position:literal: $before:tt [$($after:tt)+];)+) => {
        $($(with_payload!(@one $position $before $after);)+)+
    };
    (@one $position:literal ($($before:ident)*) ($($after:ident)*)) => {
        impl<P, $($before,)* $($after,)*> TakesPayload<P, At<$position>> for ($($before,)* Payload<P>, $($after,)*) {}
    };
}

with_payload! {
    0: () [() (B) (B C) (B C D) (B C D E) (B C D E F)];
    1: (A) [() (C) (C D) (C D E) (C D E F)];
    2: (A B) [() (D) (D E) (D E F)];
    3: (A B C) [() (E) (E F)];
    4: (A B C D) [() (F)];
    5: (A B C D E) [()];
}
