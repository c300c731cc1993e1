//! [`TraceContext`]: the place of a request in a distributed trace, as W3C "Trace Context" writes it down.

use std::fmt;

use crate::ids::Invalid;

/// The length of a `traceparent` of version 00.
const TRACEPARENT_BYTES: usize = 55;
/// The longest `tracestate` that is kept, in bytes.
const MAX_TRACESTATE_BYTES: usize = 512;

/// The trace that a run belongs to, and the span that asked for it: the headers `traceparent` and `tracestate` of W3C
/// "Trace Context".
///
/// ```
/// use everbell_core::TraceContext;
///
/// let context = TraceContext::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Some("vendor=1"))?;
/// assert_eq!(context.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
/// assert_eq!(context.parent_id(), "00f067aa0ba902b7");
/// assert!(context.sampled());
/// assert_eq!(context.tracestate(), Some("vendor=1"));
/// assert!(TraceContext::parse("00-00000000000000000000000000000000-00f067aa0ba902b7-01", None).is_err());
/// # Ok::<(), everbell_core::Invalid>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// The `traceparent`, and behind a space the `tracestate`, if there is one.
    text: Box<str>,
}

impl TraceContext {
    /// Reads the values of the two headers.
    ///
    /// The `traceparent` is `00-<32 digits>-<16 digits>-<2 digits>`, in lower-case hexadecimal digits, with a trace id
    /// and a parent id that are not all zeros. Of a version after 00 only the parts that 00 has are used. A `tracestate`
    /// that is longer than 512 bytes or not printable ASCII is dropped, as the standard allows: the trace is whole
    /// without it.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Result<TraceContext, Invalid> {
        let mut text = checked_traceparent(traceparent).ok_or_else(|| {
            let reason = "must be `00-<trace id>-<parent id>-<flags>` with 32, 16 and 2 lower-case hexadecimal digits, \
                          such as 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01; neither id may be zero";
            Invalid::new("traceparent", reason)
        })?;
        // Tabs may stand around its members, and mean as much as spaces.
        let state = tracestate.map(|state| state.trim_matches([' ', '\t']).replace('\t', " "));
        if let Some(state) = state.filter(|state| is_storable(state)) {
            text.push(' ');
            text.push_str(&state);
        }
        Ok(TraceContext { text: text.into_boxed_str() })
    }

    /// Reads the text of [`TraceContext::as_stored`].
    pub fn from_stored(text: &str) -> Result<TraceContext, Invalid> {
        match text.split_once(' ') {
            Some((traceparent, tracestate)) => TraceContext::parse(traceparent, Some(tracestate)),
            None => TraceContext::parse(text, None),
        }
    }

    /// Returns both values as one text: the `traceparent`, and behind a space the `tracestate`.
    pub fn as_stored(&self) -> &str {
        &self.text
    }

    /// Returns the value of the header `traceparent`.
    pub fn traceparent(&self) -> &str {
        &self.text[..TRACEPARENT_BYTES]
    }

    /// Returns the value of the header `tracestate`, in which vendors keep what only they understand.
    pub fn tracestate(&self) -> Option<&str> {
        self.text.get(TRACEPARENT_BYTES + 1..)
    }

    /// Returns the id of the trace: 32 hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        &self.text[3..35]
    }

    /// Returns the id of the span that asked for the run: 16 hexadecimal digits.
    pub fn parent_id(&self) -> &str {
        &self.text[36..52]
    }

    /// Whether the creator recorded its part of the trace.
    pub fn sampled(&self) -> bool {
        hex_value(self.text.as_bytes()[54]).is_some_and(|flags| flags & 1 == 1)
    }
}

/// Shows the `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.traceparent())
    }
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TraceContext").field(&self.as_stored()).finish()
    }
}

/// Returns a `traceparent` of version 00, if this is one of any version.
fn checked_traceparent(text: &str) -> Option<String> {
    let text = text.trim_matches([' ', '\t']);
    let bytes = text.as_bytes();
    let head = bytes.get(..TRACEPARENT_BYTES)?;
    let is_dash = |place: usize| head[place] == b'-';
    let digits = |from: usize, to: usize| head[from..to].iter().all(|byte| hex_value(*byte).is_some());
    let is_zero = |from: usize, to: usize| head[from..to].iter().all(|byte| *byte == b'0');
    let has_form = is_dash(2) && is_dash(35) && is_dash(52);
    if !has_form || !digits(0, 2) || !digits(3, 35) || !digits(36, 52) || !digits(53, 55) {
        return None;
    }
    if is_zero(3, 35) || is_zero(36, 52) {
        return None;
    }
    // All bytes are ASCII by now, so this is no place inside of a character.
    let ids = &text[2..53];
    match (&head[..2], bytes.get(TRACEPARENT_BYTES)) {
        (b"00", None) => Some(text.to_owned()),
        (b"00" | b"ff", _) => None,
        // Only one flag has the same meaning in all versions.
        (_, None | Some(b'-')) => {
            let sampled = hex_value(head[54])? & 1;
            Some(format!("00{ids}0{sampled}"))
        }
        _ => None,
    }
}

fn is_storable(state: &str) -> bool {
    !state.is_empty() && state.len() <= MAX_TRACESTATE_BYTES && state.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// The value of a lower-case hexadecimal digit.
fn hex_value(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}
