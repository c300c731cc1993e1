//! What a request body, a query or a configuration block must look like: one declaration that reads it, tells everything
//! that is wrong with it at once, and documents it.
//!
//! A [`Field`] table is data. [`Form::read`] holds a value against it, [`schema::object`] turns it into JSON Schema for the
//! OpenAPI document. What only a decision of core can tell (whether an expression is one) is asked afterwards, with
//! whatever was readable, so that its problems come together with those of the form.

pub mod definition;
mod did_you_mean;
pub mod job;
mod json;
mod naming;
mod query;
mod reading;
pub mod schema;
mod span;

pub use did_you_mean::{did_you_mean, format_suggestions};
pub use json::find_duplicate;
pub use naming::Naming;
pub use query::{QueryError, decoded, pairs, query, typed};
pub use reading::{Fault, Form, MAX_LISTED_FAULTS, escape};
pub use span::{iso, parse_span};

/// One member of an object.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// As the API spells it.
    pub name: &'static str,
    /// The values that the member may have.
    pub kind: Kind,
    /// Whether it must be present.
    pub required: bool,
    /// A sentence for the documentation.
    pub doc: &'static str,
}

/// What a member may hold. `null` is the same as absent for every one that is not required.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// So many characters, none of them NUL.
    Text {
        /// The least number of characters.
        min: usize,
        /// The greatest number of characters.
        max: usize,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number.
    Integer {
        /// The least value.
        min: i64,
        /// The greatest value.
        max: i64,
    },
    /// `true` or `false`.
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
    /// The same with a name, under which the OpenAPI document describes it once.
    Component(&'static str, &'static [Field]),
    /// So many of a kind. In a query also as a list with commas.
    List {
        /// The kind of each item.
        of: &'static Kind,
        /// The greatest number of items.
        max: usize,
    },
    /// So many of a kind, or this word for all of them.
    ListOr {
        /// The word that may stand instead of a list.
        word: &'static str,
        /// The kind of each item.
        of: &'static Kind,
        /// The greatest number of items.
        max: usize,
    },
}

/// Any text of a usual length.
pub const TEXT: Kind = Kind::Text { min: 1, max: 200 };

/// A member that must be there.
pub const fn required(name: &'static str, kind: Kind, doc: &'static str) -> Field {
    Field { name, kind, required: true, doc }
}

/// A member that may be absent or `null`.
pub const fn optional(name: &'static str, kind: Kind, doc: &'static str) -> Field {
    Field { name, kind, required: false, doc }
}

/// These members and one more, for what takes the same as something else: `with::<{ LIST.len() + 1 }>(LIST, FORMAT)`.
pub const fn with<const N: usize>(fields: &[Field], more: Field) -> [Field; N] {
    let mut all = [more; N];
    let mut at = 0;
    while at < fields.len() {
        all[at] = fields[at];
        at += 1;
    }
    all
}
