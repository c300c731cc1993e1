//! Paths of the API, with names percent-encoded.

use everbell_wire::percent;
use percent_encoding::AsciiSet;

/// The path of a job that is named by its id, its key, or its key and version as in `daily-briefing@2`.
pub(crate) fn job(name: &str) -> String {
    if name.parse::<everbell_core::JobId>().is_ok() {
        return format!("/jobs/{name}");
    }
    format!("/jobs/key:{}", segment(name))
}

/// A text as one segment of a path.
pub(crate) fn segment(text: &str) -> String {
    const ENCODED: &AsciiSet = &percent::reserved_except(b"@:");
    let encoded = percent::encode(text, ENCODED);
    // Two dots would be the parent folder.
    if encoded.bytes().all(|byte| byte == b'.') { encoded.replace('.', "%2E") } else { encoded }
}

#[test]
fn names_stay_in_their_segment() {
    assert_eq!(job("daily-briefing@2"), "/jobs/key:daily-briefing@2");
    assert_eq!(job("a/b ?é"), "/jobs/key:a%2Fb%20%3F%C3%A9");
    let id = "019a8d10-7c00-7000-8000-000000000001";
    assert_eq!((job(id), segment("..")), (format!("/jobs/{id}"), "%2E%2E".to_owned()));
}
