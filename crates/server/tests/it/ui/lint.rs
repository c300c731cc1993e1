//! Whether everybody can use a page: those who do not see it, see it badly, use no mouse, or hold a phone.

use serde_json::json;

use super::browser::Browser;

const LINT: &str = concat!(include_str!("words.js"), include_str!("contrast.js"), include_str!("lint.js"));

/// axe-core 4.14.0, as its package has it.
const AXE: &str = include_str!("vendor/axe.min.js");

/// Runs every rule of axe.
const RUN_AXE: &str = "
return axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
    violations.flatMap(({ id, help, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(' ')}: ${help}`)));";

impl Browser {
    /// Fails if axe-core finds a violation on the page, in light or in dark colors.
    #[track_caller]
    pub(crate) fn passes_axe(&self) {
        self.execute(AXE, &json!([]));
        let mut violations = Vec::new();
        for look in ["light", "dark"] {
            if look == "dark" {
                self.dark();
            }
            let found = self.execute(RUN_AXE, &json!([]));
            violations.extend(found.as_array().unwrap().iter().map(|found| format!("\n  {look}: {found}")));
        }
        self.light();
        if !violations.is_empty() {
            self.fail(&format!("axe finds violations:{}", violations.concat()));
        }
    }

    /// Returns the faults of the page as `rule: CSS path: fault`. Hidden elements are not checked.
    #[track_caller]
    pub(crate) fn lint(&self) -> Vec<String> {
        let faults = self.execute(LINT, &json!([]));
        faults.as_array().unwrap().iter().map(|fault| fault.as_str().unwrap().to_owned()).collect()
    }
}
