//! What a request body, a query or a configuration block must look like: one declaration that reads it, tells everything
//! that is wrong with it at once, and documents it.
//!
//! A [`Field`] table is data. [`Form::read`] holds a value against it, [`schema::object`] turns it into JSON Schema for the
//! OpenAPI document. What only a decision of core can tell (whether an expression is one) is asked afterwards, with
//! whatever was readable, so that its problems come together with those of the form.

pub(crate) mod definition;
pub(crate) mod job;
mod json;
mod meant;
mod naming;
mod query;
mod reading;
pub(crate) mod schema;
mod span;

pub(crate) use json::find_duplicate;
pub(crate) use meant::{meant, some_of};
pub(crate) use naming::Naming;
pub(crate) use query::{QueryError, decoded, pairs, query, typed};
pub(crate) use reading::{Fault, Form, MAX_LISTED_FAULTS, escape};
pub(crate) use span::{iso, parse_span};

/// One member of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    /// As the API spells it.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) required: bool,
    /// A sentence for the documentation.
    pub(crate) doc: &'static str,
}

/// What a member may hold. `null` is the same as absent for every one that is not required.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// So many characters, none of them NUL.
    Text {
        min: usize,
        max: usize,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number.
    Integer {
        min: i64,
        max: i64,
    },
    Flag,
    /// RFC 3339, or a time of the wall clock.
    Time,
    /// ISO 8601 or such as `15m`.
    Span,
    /// Anything.
    Json,
    /// An object whose members are texts; one that is `null` is the same as absent.
    Texts,
    /// An object whose members are all of one kind, under any name.
    Map(&'static Kind),
    /// A text that is never shown, or where it is: `{ env = "NAME" }` or `{ file = "PATH" }`.
    Secret,
    /// An object with members of its own.
    Object(&'static [Field]),
    /// So many of a kind. In a query also as a list with commas.
    List {
        of: &'static Kind,
        max: usize,
    },
    /// So many of a kind, or this word for all of them.
    ListOr {
        word: &'static str,
        of: &'static Kind,
        max: usize,
    },
}

/// Any text of a usual length.
pub(crate) const TEXT: Kind = Kind::Text { min: 1, max: 200 };

/// A member that must be there.
pub(crate) const fn required(name: &'static str, kind: Kind, doc: &'static str) -> Field {
    Field { name, kind, required: true, doc }
}

/// A member that may be absent or `null`.
pub(crate) const fn optional(name: &'static str, kind: Kind, doc: &'static str) -> Field {
    Field { name, kind, required: false, doc }
}

/// These members and one more, for what takes the same as something else: `with::<{ LIST.len() + 1 }>(LIST, FORMAT)`.
pub(crate) const fn with<const N: usize>(fields: &[Field], more: Field) -> [Field; N] {
    let mut all = [more; N];
    let mut at = 0;
    while at < fields.len() {
        all[at] = fields[at];
        at += 1;
    }
    all
}
