//! [`TypedTarget`]: the name of a target together with the type of its payload, so that the compiler checks both.

use std::fmt;
use std::marker::PhantomData;

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
