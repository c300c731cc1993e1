//! [`Interceptor`]: code that sees every call to a store, written once for all verbs.

use std::future::Future;

use super::{AuditEntry, Store, StoreResult};

/// A store around another store, with code before and after each verb: a stopwatch, a test's faults.
///
/// An implementation gets every family of verbs, so a new verb needs no line in any interceptor.
pub trait Interceptor: Send + Sync + std::fmt::Debug {
    /// The store that carries out the calls.
    fn inner(&self) -> &dyn Store;

    /// Runs instead of the verb: awaits `verb`, or does not, and returns its answer or another one.
    fn around<T: Send>(
        &self,
        call: Call<'_, T>,
        verb: impl Future<Output = StoreResult<T>> + Send,
    ) -> impl Future<Output = StoreResult<T>> + Send;
}

/// A call of a verb that answers with a `T`.
#[derive(Debug)]
pub struct Call<'a, T> {
    /// The name of the verb.
    pub verb: &'static str,
    audit: Option<&'a AuditEntry>,
    is_written: fn(&T) -> bool,
}

impl<'a, T> Call<'a, T> {
    pub(super) fn new(verb: &'static str, audit: Option<&'a AuditEntry>) -> Call<'a, T> {
        Call { verb, audit, is_written: |_| true }
    }

    pub(super) fn written_if(self, is_written: fn(&T) -> bool) -> Call<'a, T> {
        Call { is_written, ..self }
    }

    /// The audit entry that the call has written when it returned this answer.
    pub fn written_entry(&self, answer: &T) -> Option<&'a AuditEntry> {
        self.audit.filter(|_| (self.is_written)(answer))
    }
}

/// Defines a family of verbs: the trait, and how an [`Interceptor`] carries out each of them.
///
/// - A verb that takes an `audit` writes it if it succeeds. One that does so only for some answers says for which:
///   `-> StoreResult<T> where (|answer| …);`.
/// - Methods in `passed_through` are no calls to the database, and no interceptor sees them.
macro_rules! verbs {
    (
        $(#[$about:meta])*
        pub trait $family:ident {
            $(
                $(#[$doc:meta])*
                async fn $verb:ident(&self $(, $arg:ident: $type:ty)* $(,)?) -> StoreResult<$answer:ty>
                $(where ($is_written:expr))?;
            )*
            $(passed_through {
                $( $(#[$plain_doc:meta])* fn $plain:ident(&self) -> $plain_answer:ty; )*
            })?
        }
    ) => {
        $(#[$about])*
        #[async_trait]
        pub trait $family: Send + Sync {
            $($(
                $(#[$plain_doc])*
                fn $plain(&self) -> $plain_answer;
            )*)?
            $(
                $(#[$doc])*
                async fn $verb(&self $(, $arg: $type)*) -> StoreResult<$answer>;
            )*
        }

        #[async_trait]
        impl<I: Interceptor> $family for I {
            $($(
                fn $plain(&self) -> $plain_answer {
                    self.inner().$plain()
                }
            )*)?
            $(
                async fn $verb(&self $(, $arg: $type)*) -> StoreResult<$answer> {
                    let audit = None$(.or(audit_entry!($arg $arg)))*;
                    let call = Call::<$answer>::new(stringify!($verb), audit)$(.written_if($is_written))?;
                    self.around(call, self.inner().$verb($($arg),*)).await
                }
            )*
        }
    };
}

/// The argument, if it is the audit entry of the call. It is given twice, as a name and as a value.
macro_rules! audit_entry {
    (audit $value:ident) => {
        Some($value)
    };
    ($name:ident $value:ident) => {
        None
    };
}

pub(super) use {audit_entry, verbs};
