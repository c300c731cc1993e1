//! Percent encoding: texts as parts of addresses and headers.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All bytes except the unreserved ones of RFC 3986, which are letters, digits and `-._~`.
pub const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns [`RESERVED`] without the bytes that may stay as they are at some place of an address.
pub const fn reserved_except(kept: &[u8]) -> AsciiSet {
    let mut set = RESERVED.remove(b'~');
    let mut at = 0;
    while at < kept.len() {
        set = set.remove(kept[at]);
        at += 1;
    }
    set
}

/// Encodes the bytes of `set`, and all bytes that are not ASCII.
pub fn encode(text: &str, set: &'static AsciiSet) -> String {
    utf8_percent_encode(text, set).to_string()
}
