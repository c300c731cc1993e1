//! [`Secret`]: text that is never shown.

use std::fmt;

/// A password, a signing key or a token. Neither its debug form nor anything else shows it; who needs it asks for it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text, for the one place that must know it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_form_hides_the_text() {
        let secret = Secret::new("hunter2");
        assert_eq!((format!("{secret:?}").as_str(), secret.reveal()), ("(hidden)", "hunter2"));
    }
}
