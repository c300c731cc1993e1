//! [`Equivalent`]: what a page does, as a shell would do it.

use std::fmt::Write;

use serde::Serialize;

use everbell_http::problem::{Kind, Problem};
use everbell_wire::printable;
use everbell_wire::shell;

/// A request as a curl command and as an everbell command.
pub(crate) struct Equivalent {
    pub(crate) curl: String,
    pub(crate) cli: String,
}

impl Equivalent {
    /// A request without a body. `path` is below the mount of the API, such as `/jobs/key:daily/pause`; `cli` are the
    /// words behind `everbell`.
    pub(crate) fn new(base: &str, method: &str, path: &str, cli: &[&str]) -> Equivalent {
        Equivalent { curl: curl(base, method, path, None), cli: command_line(cli) }
    }

    /// A request with a body.
    pub(crate) fn with_body(
        base: &str,
        method: &str,
        path: &str,
        body: &impl Serialize,
        cli: &[&str],
    ) -> Result<Equivalent, Problem> {
        let body = serde_json::to_string(body).map_err(|error| {
            tracing::error!(%error, method, path, "the body of a request cannot be written");
            Problem::new(Kind::Internal, "The page cannot be rendered.")
        })?;
        Ok(Equivalent { curl: curl(base, method, path, Some(&body)), cli: command_line(cli) })
    }
}

/// The words behind `everbell`: noun, verb, names, flags. Names that begin like a flag stand at the end behind `--`.
pub(crate) fn command_line(words: &[&str]) -> String {
    let names = 2..if words.starts_with(&["orgs", "override"]) { 4 } else { 3 };
    let is_name = |(at, _): &(usize, &&str)| names.contains(at);
    let all = words.iter().enumerate();
    let looks_like_flag = all.clone().filter(is_name).any(|(_, word)| word.starts_with('-'));
    let (names, others): (Vec<_>, Vec<_>) = all.partition(|word| looks_like_flag && is_name(word));
    let mark = looks_like_flag.then_some(&"--");
    let words = others.into_iter().map(|(_, word)| word).chain(mark).chain(names.into_iter().map(|(_, word)| word));
    format!("everbell {}", words.map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
}

/// A request with curl. The body is JSON already.
pub(crate) fn curl(base: &str, method: &str, path: &str, body: Option<&str>) -> String {
    let mut line = format!("curl -X {method} {}", quoted(&format!("{base}{path}")));
    line.push_str(" -H \"Authorization: Bearer $EVERBELL_TOKEN\"");
    if let Some(body) = body {
        line.push_str(" -H 'Content-Type: application/json' -d ");
        line.push_str(&quoted(&seen(body)));
    }
    line
}

/// Whether a character moves the cursor or changes the writing direction, so that copied text would differ from what
/// is visible.
fn is_unseen(sign: char) -> bool {
    !matches!(sign, '\n' | '\t') && printable(sign.encode_utf8(&mut [0; 4])) != sign.to_string()
}

/// JSON in which every sign is seen. Texts have a way to say the others, which stand nowhere else; but for the end of a
/// line between two members.
fn seen(json: &str) -> String {
    let mut all = String::with_capacity(json.len());
    for sign in json.chars() {
        if is_unseen(sign) && sign != '\r' {
            for unit in sign.encode_utf16(&mut [0; 2]) {
                // Writing into a text cannot fail.
                let _ = write!(all, "\\u{unit:04x}");
            }
        } else {
            all.push(sign);
        }
    }
    all
}

/// A word as a shell takes it. What cannot be seen is said by its bytes, which every shell can print.
pub(crate) fn quoted(word: &str) -> String {
    if !word.chars().any(|sign| is_unseen(sign) || sign.is_control()) {
        return shell(word);
    }
    let mut all = String::new();
    let mut rest = word;
    while let Some(sign) = rest.chars().next() {
        let unseen = is_unseen(sign);
        let (part, behind) = rest.split_at(rest.find(|sign| is_unseen(sign) != unseen).unwrap_or(rest.len()));
        rest = behind;
        if unseen {
            all.push_str("\"$(printf '");
            for byte in part.bytes() {
                let _ = write!(all, "\\{byte:03o}");
            }
            all.push_str("')\"");
        } else {
            all.extend(["'", part.replace('\'', "'\\''").as_str(), "'"]);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        let body = json!({"reason": "it's down"});
        let cli = ["jobs", "pause", "a", "--reason", "it's down"];
        let equivalent = Equivalent::with_body("http://h/api/v1", "PATCH", "/jobs/key:a/pause", &body, &cli).unwrap();
        assert!(equivalent.curl.ends_with("-d '{\"reason\":\"it'\\''s down\"}'"), "{}", equivalent.curl);
        assert_eq!(equivalent.cli, "everbell jobs pause a --reason 'it'\\''s down'");
        assert_eq!(
            command_line(&["jobs", "pause", "--server=http://evil.example", "--reason", "x"]),
            "everbell jobs pause --reason x -- --server=http://evil.example"
        );
        assert_eq!(command_line(&["orgs", "override", "-a", "b", "--off"]), "everbell orgs override --off -- -a b");
        assert_eq!(command_line(&["orgs", "stop", "b"]), "everbell orgs stop b");
    }

    /// Returns the words as a POSIX shell parses them, one per line.
    fn said_by_a_shell(words: &str) -> String {
        let line = format!("printf '%s|' {words}");
        let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn what_cannot_be_seen_is_said_so_that_it_arrives() {
        let odd = "it's \u{202e}turned\u{202c}\r back\u{7f}\n";
        for word in [odd, "\u{202e}", "a\nb\n", "plain", "\u{2066}\u{2069}", "a b"] {
            let line = quoted(word);
            assert!(!line.contains(['\u{202e}', '\u{2066}', '\r', '\u{7f}']), "{line:?}");
            assert_eq!(said_by_a_shell(&line), format!("{word}|"), "{line}");
        }
        let body = json!({ "reason": odd });
        let curl = curl("http://h", "POST", "/jobs", Some(&body.to_string()));
        let (_, sent) = curl.split_once(" -d ").unwrap();
        assert!(sent.contains("\\u202eturned\\u202c"), "{sent}");
        let body_seen: Value = serde_json::from_str(said_by_a_shell(sent).trim_end_matches('|')).unwrap();
        assert_eq!(body_seen, body);
    }
}
