//! Cron expressions: what they say, and when they fire.
//!
//! ```text
//! text ──parse──► Expression ──► Fields (bit sets)          or  Every (a fixed rate)
//!                                  │ search: next, previous, count — in local time, knows no zone
//!                                  ▼
//!                                slots: local time -> instants, DST rules — knows no calendar
//! ```
//!
//! The rules are Debian's (Vixie's): see [`Expression`] for the grammar and [`Dst`] for daylight saving.
//! Every search is bounded, every result is later than what it was asked for, and matches the fields again.

mod describe;
pub(crate) mod dst_notes;
mod error;
mod every;
mod field;
mod month;
mod parse;
mod search;
mod slots;
mod warn;

pub use error::{FieldName, ParseError, ParseErrorKind};
pub(crate) use parse::Kind;
pub use parse::{Expression, MAX_EXPRESSION_BYTES};
pub(crate) use slots::Slots;
pub use slots::{Dst, DstFold, DstGap};
pub use warn::{Warning, WarningCode};
