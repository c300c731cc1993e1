//! Orgs as CSV.

use serde_json::{Map, Value, json};

use crate::time_input::Refusal;

/// The columns that a file may have.
pub const COLUMNS: [&str; 4] = ["id", "timezone", "name", "enabled"];

/// Converts CSV to JSON lines with the same line numbers.
pub fn lines(csv: &str) -> Result<String, Refusal> {
    let mut rows = (1..).zip(csv.lines()).skip_while(|(_, line)| line.trim().is_empty());
    let Some((first, header)) = rows.next() else { return Ok(String::new()) };
    let header = fields(header).map_err(|why| Refusal { reason: format!("line {first}: {why}"), hint: None })?;
    let names: Vec<&str> = header.iter().map(|name| name.trim()).collect();
    if let Some(unknown) = names.iter().find(|name| !COLUMNS.contains(name)) {
        return Err(Refusal {
            reason: format!("line {first}: there is no column `{}`", unknown.escape_debug()),
            hint: Some(format!("the first line names the columns: {}", COLUMNS.join(","))),
        });
    }
    let mut all = "\n".repeat(first);
    for (number, line) in rows {
        if !line.trim().is_empty() {
            let org = fields(line).and_then(|values| org(&names, values));
            all += &org.map_err(|why| Refusal { reason: format!("line {number}: {why}"), hint: None })?.to_string();
        }
        all.push('\n');
    }
    Ok(all)
}

fn org(names: &[&str], values: Vec<String>) -> Result<Value, String> {
    if values.len() != names.len() {
        return Err(format!("there are {} values for {} columns", values.len(), names.len()));
    }
    let mut org = Map::new();
    for (name, value) in names.iter().zip(values).filter(|(_, value)| !value.is_empty()) {
        let value = match (*name, value.as_str()) {
            ("enabled", "true" | "1" | "yes") => json!(true),
            ("enabled", "false" | "0" | "no") => json!(false),
            ("enabled", other) => return Err(format!("enabled: `{}` is neither true nor false", other.escape_debug())),
            _ => json!(value),
        };
        org.insert((*name).to_owned(), value);
    }
    Ok(Value::Object(org))
}

/// The values of a line, with or without quotes around them (RFC 4180, but a value ends with its line).
fn fields(line: &str) -> Result<Vec<String>, String> {
    let (mut fields, mut field) = (Vec::new(), String::new());
    let mut rest = line.chars().peekable();
    let mut quoted = false;
    while let Some(letter) = rest.next() {
        match letter {
            '"' if quoted && rest.peek() == Some(&'"') => {
                rest.next();
                field.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if field.is_empty() => quoted = true,
            ',' if !quoted => fields.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    if quoted {
        return Err("a quote is not closed".to_owned());
    }
    fields.push(field);
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_becomes_json_on_the_same_lines() {
        let csv = "id,timezone,name,enabled\r\na,UTC,\"A, \"\"Inc\"\"\",yes\r\n\r\nb,Asia/Tokyo,,false\r\n";
        let expected = "\n{\"enabled\":true,\"id\":\"a\",\"name\":\"A, \\\"Inc\\\"\",\"timezone\":\"UTC\"}\n\n\
                        {\"enabled\":false,\"id\":\"b\",\"timezone\":\"Asia/Tokyo\"}\n";
        assert_eq!(lines(csv).unwrap(), expected);
        assert_eq!(lines("\n\n").unwrap(), "");
    }

    #[test]
    fn invalid_csv_is_reported_with_its_line() {
        for (csv, message) in [
            ("id,zone\n", "line 1: there is no column `zone`"),
            ("id,timezone\na\n", "line 2: there are 1 values for 2 columns"),
            ("id,enabled\n\na,perhaps\n", "line 3: enabled: `perhaps` is neither true nor false"),
            ("id,timezone\n\"a,UTC\n", "line 2: a quote is not closed"),
        ] {
            let found = lines(csv).unwrap_err().reason;
            assert!(found.starts_with(message), "{found}");
        }
    }
}
