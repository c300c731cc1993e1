//! [`TargetLabel`]: the name of a target as a builder takes it, and which handlers fit a [`TypedTarget`].

use std::marker::PhantomData;

use crate::bell::Everbell;
use crate::client::{Jobs, Orgs, Runs};
use crate::extract::{Payload, State};
use crate::run::Run;
use crate::typed::TypedTarget;

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
        self.name().to_owned()
    }
}

impl<P, A: TakesPayload<P, M>, M> TargetLabel<A, Typed<M>> for &TypedTarget<P> {
    fn into_label(self) -> String {
        self.name().to_owned()
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
