//! Forms: the members of request bodies, queries and configuration blocks, declared once to read, check and document them.
//!
//! A table of [`Field`]s is data. [`Form::read`] checks a value against it, and [`schema::object`] turns it into JSON Schema
//! for the OpenAPI document. Checks that only core can make, such as those of cron expressions, follow with the readable
//! members, so that all faults are reported together.

mod did_you_mean;
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
    /// Its name in the API.
    pub name: &'static str,
    /// The values that the member may have.
    pub kind: Kind,
    /// Whether it must be present.
    pub required: bool,
    /// A sentence for the documentation.
    pub doc: &'static str,
}

/// The values of a member. `null` counts as absent, unless the member is required.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Text without NUL.
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
    /// A time: RFC 3339 or local.
    Time,
    /// A duration: ISO 8601 or such as `15m`.
    Span,
    /// Any JSON value.
    Json,
    /// A value that a response has and a request may repeat: it is described, and not looked at.
    Ignored(&'static Kind),
    /// An object whose members are texts; a member that is `null` counts as absent.
    Texts,
    /// An object whose members are all of one kind, under any name.
    Map(&'static Kind),
    /// A secret, or where to find it: `{ env = "NAME" }` or `{ file = "PATH" }`.
    Secret,
    /// An object with members of its own.
    Object(&'static [Field]),
    /// An object that the OpenAPI document describes once, under this name.
    Component(&'static str, &'static [Field]),
    /// An object that the OpenAPI document describes once, under this name, or a list of such objects.
    ComponentOrList {
        /// The name.
        name: &'static str,
        /// The members.
        fields: &'static [Field],
        /// The greatest number of items.
        max: usize,
    },
    /// A list. In a query, its items may be separated by commas.
    List {
        /// The kind of each item.
        of: &'static Kind,
        /// The greatest number of items.
        max: usize,
    },
    /// A list, or a word that means all items.
    ListOr {
        /// The word that may replace the list.
        word: &'static str,
        /// The kind of each item.
        of: &'static Kind,
        /// The greatest number of items.
        max: usize,
    },
}

/// A text of usual length.
pub const TEXT: Kind = Kind::Text { min: 1, max: 200 };

/// A required member.
pub const fn required(name: &'static str, kind: Kind, doc: &'static str) -> Field {
    Field { name, kind, required: true, doc }
}

/// An optional member.
pub const fn optional(name: &'static str, kind: Kind, doc: &'static str) -> Field {
    Field { name, kind, required: false, doc }
}

/// Joins two tables of members: `joined::<{ LIST.len() + 1 }>(LIST, &[FORMAT])`.
///
/// # Panics
///
/// At compile time, if `N` is not the number of all members or there is none.
pub const fn joined<const N: usize>(first: &[Field], second: &[Field]) -> [Field; N] {
    assert!(first.len() + second.len() == N, "N is the number of all members");
    let mut all = [if first.is_empty() { second[0] } else { first[0] }; N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    all
}
