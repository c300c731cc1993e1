//! Whether everybody can use a page: those who do not see it, see it badly, use no mouse, or hold a phone.

use serde_json::json;

use super::browser::Browser;

const LINT: &str = concat!(include_str!("words.js"), include_str!("contrast.js"), include_str!("lint.js"));

impl Browser {
    /// Returns the faults of the page as `rule: CSS path: fault`. Hidden elements are not checked.
    #[track_caller]
    pub(crate) fn lint(&self) -> Vec<String> {
        let faults = self.execute(LINT, &json!([]));
        faults.as_array().unwrap().iter().map(|fault| fault.as_str().unwrap().to_owned()).collect()
    }
}
