//! `everbell orgs import`: JSON lines or CSV.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::cli::api::input;
use crate::cli::client::Asked;
use crate::cli::document::{flag, number};
use crate::cli::output::{Mark, Output, counted};
use crate::cli::{CliError, Exit, OnlineArgs, Session};

pub(super) const EXAMPLES: &str = "\
Examples:
  echo '{\"id\":\"acme\",\"timezone\":\"Europe/Paris\"}' | everbell orgs import -
  printf 'id,timezone,name\\nbolt,Asia/Tokyo,Bolt\\ncove,UTC,\"Cove, Inc\"\\n' | everbell orgs import -
  echo '{\"id\":\"acme\",\"enabled\":false}' | everbell orgs import - --dry-run --json";

/// The columns that a file may have.
const COLUMNS: [&str; 4] = ["id", "timezone", "name", "enabled"];

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// JSON lines or CSV; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only tell what would be done.
    #[arg(long)]
    dry_run: bool,
    /// Why, for the audit trail.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    online: OnlineArgs,
}

pub(super) fn run(args: &ImportArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let text = input(&args.file)?;
    let lines = if text.trim_start().starts_with('{') { text } else { lines(&text)? };
    let mut session = Session::new(&args.online, now, output)?;
    let mut query: Vec<_> = args.reason.iter().map(|reason| ("reason", reason.clone())).collect();
    if args.dry_run {
        query.push(("dryRun", "true".to_owned()));
    }
    let answer = session.client.post_lines("/orgs", &query, lines).asked(|| "import orgs".to_owned())?;
    let Some(done) = session.for_people(&answer, "created")? else { return Ok(Exit::Success) };
    let count = |name: &str| number(&done, name).unwrap_or_default() as usize;
    let (mark, word) = if flag(&done, "dryRun") { (Mark::Arrow, "Would make") } else { (Mark::Good, "Made") };
    session.done(
        mark,
        &format!(
            "{word} {}, changed {}, {} as they were",
            counted(count("created"), "org"),
            count("changed"),
            count("same")
        ),
    )?;
    session.advise("see them: everbell orgs list")?;
    Ok(Exit::Success)
}

/// CSV as JSON lines, each on the line that it has in the file.
pub(crate) fn lines(csv: &str) -> Result<String, CliError> {
    let mut rows = (1..).zip(csv.lines()).skip_while(|(_, line)| line.trim().is_empty());
    let Some((first, header)) = rows.next() else { return Ok(String::new()) };
    let header = fields(header).map_err(|why| CliError::invalid(format!("line {first}: {why}")))?;
    let names: Vec<&str> = header.iter().map(|name| name.trim()).collect();
    if let Some(unknown) = names.iter().find(|name| !COLUMNS.contains(name)) {
        return Err(CliError::Invalid {
            message: format!("line {first}: there is no column `{}`", unknown.escape_debug()),
            hint: Some(format!("the first line names the columns: {}", COLUMNS.join(","))),
        });
    }
    let mut all = "\n".repeat(first);
    for (number, line) in rows {
        if !line.trim().is_empty() {
            let org = fields(line).and_then(|values| org(&names, values));
            all += &org.map_err(|why| CliError::invalid(format!("line {number}: {why}")))?.to_string();
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
    fn what_is_no_csv_is_told_by_its_line() {
        for (csv, told) in [
            ("id,zone\n", "line 1: there is no column `zone`"),
            ("id,timezone\na\n", "line 2: there are 1 values for 2 columns"),
            ("id,enabled\n\na,perhaps\n", "line 3: enabled: `perhaps` is neither true nor false"),
            ("id,timezone\n\"a,UTC\n", "line 2: a quote is not closed"),
        ] {
            let found = lines(csv).unwrap_err().to_string();
            assert!(found.starts_with(told), "{found}");
        }
    }
}
