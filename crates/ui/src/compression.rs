//! Compression of pages and files.
//!
//! A page holds a secret, the CSRF token of its forms, and may repeat words of its address. An attacker who can make a browser
//! ask for addresses of their choice, and who can see how long the compressed answers are, could guess the secret bit by bit
//! (BREACH). So the token is masked differently on each page, and a page is compressed only if this site asked for it: a script of
//! ours, whose header no other site can send, or a browser that says so. Files are the same for everybody and have no secrets. Event streams are never compressed.

use std::io::Write as _;

use axum::http::{HeaderMap, header};
use flate2::Compression;
use flate2::write::GzEncoder;

/// An eighth smaller than the fastest level, for a millisecond.
const LEVEL: Compression = Compression::new(5);

/// Less is sent as it is: it fits into one packet.
const MIN_BYTES: usize = 1_200;

/// Whether the client reads gzip and the request comes from this site.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    accepts_gzip(headers) && is_own(headers)
}

/// Whether the client reads gzip.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let is_refused = parts.any(|part| {
            let weight = part.strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
            weight.is_some_and(|weight| weight <= 0.0)
        });
        is_gzip && !is_refused
    })
}

/// Whether this site, or the person at the browser, asked.
fn is_own(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    match site {
        Some(site) => matches!(site, "same-origin" | "none"),
        // Browsers say so only to hosts that they trust. No other site can send this header.
        None => headers.contains_key("x-everbell"),
    }
}

/// Returns the compressed text, if that is worth it.
pub(crate) fn gzip(text: &str) -> Option<Vec<u8>> {
    if text.len() < MIN_BYTES {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(text.len() / 6), LEVEL);
    encoder.write_all(text.as_bytes()).ok()?;
    encoder.finish().ok().filter(|bytes| bytes.len() < text.len())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_what_this_site_asks_for_is_compressed() {
        let gzip = ("accept-encoding", "br, gzip;q=0.8");
        let wanted = |pairs: &[(&'static str, &'static str)]| is_wanted(&headers(pairs));
        assert!(wanted(&[gzip, ("sec-fetch-site", "same-origin")]) && wanted(&[gzip, ("sec-fetch-site", "none")]));
        assert!(wanted(&[gzip, ("x-everbell", "live")]));
        assert!(!wanted(&[gzip]), "an old browser may be led here by another site");
        for site in ["cross-site", "same-site"] {
            assert!(!wanted(&[gzip, ("sec-fetch-site", site), ("x-everbell", "live")]), "{site}");
        }
        assert!(!wanted(&[("accept-encoding", "br"), ("sec-fetch-site", "none")]));
        assert!(!wanted(&[("accept-encoding", "gzip;q=0, br"), ("sec-fetch-site", "none")]));
    }

    #[test]
    fn a_text_comes_back_as_it_was() {
        let text = "every 5 minutes, ".repeat(1_000);
        let bytes = gzip(&text).unwrap();
        assert!(bytes.len() * 10 < text.len());
        let mut read = String::new();
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut read).unwrap();
        assert_eq!(read, text);
        assert_eq!(gzip("short"), None);
    }
}
