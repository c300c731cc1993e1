//! The answer or output of a target, as the result of a run.

use everbell::Json;
use serde_json::value::RawValue;

/// The longest result.
pub(super) const MAX_BYTES: usize = 16 * 1024;

/// A text as the result of a run, if it is JSON, not too long, and every store can keep it.
pub(super) fn json(text: &str) -> Option<Box<RawValue>> {
    let fits = Some(text).filter(|text| text.len() <= MAX_BYTES);
    let json = fits.and_then(|text| Json::parse("result", text).ok())?;
    RawValue::from_string(json.to_string()).ok()
}
