//! Arguments as a line for the shell.

/// Joins arguments to a line in which the shell finds exactly them. References to variables, as `find` cuts them out,
/// stay references.
pub(super) fn join(words: &[String], reference: fn(&str) -> Option<(usize, String)>) -> String {
    words.iter().map(|word| quote(word, reference)).collect::<Vec<_>>().join(" ")
}

fn quote(word: &str, reference: fn(&str) -> Option<(usize, String)>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@+,=%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let (mut quoted, mut rest) = (String::from("\""), word);
    while let Some(c) = rest.chars().next() {
        if let Some((length, name)) = reference(rest) {
            quoted.extend(["${", &name, "}"]);
            rest = &rest[length..];
            continue;
        }
        if "\"\\$`".contains(c) {
            quoted.push('\\');
        }
        quoted.push(c);
        rest = &rest[c.len_utf8()..];
    }
    quoted.push('"');
    quoted
}

/// A name between a beginning and an end, at the start of a text: its length in all, and the name.
pub(super) fn between(text: &str, begin: &str, end: char) -> Option<(usize, String)> {
    let (name, _) = text.strip_prefix(begin)?.split_once(end)?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then(|| (begin.len() + name.len() + end.len_utf8(), name.to_owned()))
}

/// Splits a line of a unit file at white space outside of quotes.
pub(super) fn split(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut begun) = (Vec::new(), String::new(), false);
    let (mut quote, mut chars) = (None, line.chars());
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => (quote, begun) = (Some(c), true),
            (_, '\\') => {
                begun = true;
                match chars.next() {
                    Some('n') => word.push('\n'),
                    Some('t') => word.push('\t'),
                    Some(other) if !other.is_ascii_alphanumeric() => word.push(other),
                    _ => return Err(format!("`{line}` has an escape that is not known here")),
                }
            }
            (None, _) if c.is_whitespace() => {
                if std::mem::take(&mut begun) {
                    words.push(std::mem::take(&mut word));
                }
            }
            _ => {
                begun = true;
                word.push(c);
            }
        }
    }
    if quote.is_some() {
        return Err(format!("`{line}` has a quote that does not end"));
    }
    if begun {
        words.push(word);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_finds_the_same_arguments() {
        let words = split(r#"/bin/a --b "c d" 'e"f' g\"h '' ${HOME}/x $y"#).unwrap();
        assert_eq!(words, ["/bin/a", "--b", "c d", "e\"f", "g\"h", "", "${HOME}/x", "$y"]);
        let line = join(&words, |text| between(text, "${", '}'));
        assert_eq!(line, r#"/bin/a --b "c d" "e\"f" "g\"h" "" "${HOME}/x" "\$y""#);
        assert!(split("\"a").is_err() && split(r"a\x41").is_err());
    }
}
