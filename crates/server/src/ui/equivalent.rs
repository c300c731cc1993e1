//! [`Equivalent`]: what a page does, as a shell would do it.

use serde_json::Value;

use crate::cli::words::shell;

/// The same as two lines for a shell.
pub(crate) struct Equivalent {
    pub(crate) curl: String,
    pub(crate) cli: String,
}

impl Equivalent {
    /// `path` is below the mount of the API, such as `/jobs/key:daily/pause`; `cli` are the words behind `everbell`.
    pub(crate) fn new(base: &str, method: &str, path: &str, body: Option<&Value>, cli: &[&str]) -> Equivalent {
        let curl = curl(base, method, path, body.map(Value::to_string).as_deref());
        let words: Vec<String> = cli.iter().map(|word| shell(word)).collect();
        Equivalent { curl, cli: format!("everbell {}", words.join(" ")) }
    }
}

/// A request with curl. The body is JSON already.
pub(crate) fn curl(base: &str, method: &str, path: &str, body: Option<&str>) -> String {
    let mut line = format!("curl -X {method} {}", shell(&format!("{base}{path}")));
    line.push_str(" -H \"Authorization: Bearer $EVERBELL_TOKEN\"");
    if let Some(body) = body {
        line.push_str(" -H 'Content-Type: application/json' -d ");
        line.push_str(&shell(body));
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        let body = json!({"reason": "it's down"});
        let same = Equivalent::new(
            "http://h/api/v1",
            "PATCH",
            "/jobs/key:a/pause",
            Some(&body),
            &["jobs", "pause", "a", "--reason", "it's down"],
        );
        assert!(same.curl.ends_with("-d '{\"reason\":\"it'\\''s down\"}'"), "{}", same.curl);
        assert_eq!(same.cli, "everbell jobs pause a --reason 'it'\\''s down'");
    }
}
