//! [`with!`](crate::with!): what a literal of a `non_exhaustive` struct is in another crate.

/// Builds a value from a base and other fields, as `Job { revision, ..base }` does for structs that are not `non_exhaustive`.
///
/// The base is evaluated first, then the fields in their order.
///
/// ```
/// use everbell_core::{Gap, GapReason, with};
///
/// let at = jiff::Timestamp::UNIX_EPOCH;
/// let gap = with!(Gap { actor: Some("ana".to_owned()), ..Gap::new(at, at, 1, GapReason::Paused) });
/// assert_eq!(gap.actor.as_deref(), Some("ana"));
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! with {
    ($type:path { $($field:ident $(: $value:expr)?),+ , ..$base:expr }) => {{
        let mut new: $type = $base;
        $(new.$field = $crate::with!(@value $field $($value)?);)+
        new
    }};
    (@value $field:ident) => { $field };
    (@value $field:ident $value:expr) => { $value };
}
