//! Pages and commands read documents as types: a look-up by the name of a member compiles also after the member is renamed.

/// Where a value of `serde_json` is read by the names of its members, as in `value["name"]`, and why that is right.
const FOREIGN: [(&str, &str); 1] =
    [("crates/wire/src/import/cronjob.rs", "reads YAML of Kubernetes, which has no type here")];

/// The folders whose files are held to this.
const TYPED: [&str; 2] = ["crates/cli/src/", "crates/ui/src/"];

/// Reads of a value that was looked up.
const READS: [&str; 5] = [".and_then(Value::as_", "?.as_", "?.get(", ".is_some_and(|", ".cloned()"];

/// Complains about values that are looked up by name. Members that are written are free.
pub(super) fn check(path: &str, source: &str) -> Vec<String> {
    let is_typed = TYPED.iter().any(|folder| path.starts_with(folder)) && !path.contains("tests");
    if !is_typed || FOREIGN.iter().any(|(file, _)| *file == path) {
        return Vec::new();
    }
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = (1..).zip(code.lines()).filter(|(_, line)| !line.trim_start().starts_with("//") && looks_up(line));
    let complaint = |(number, line): (usize, &str)| {
        format!("{path}:{number}: `{}` looks a member up by its name: read a type of `everbell-wire`", line.trim())
    };
    lines.map(complaint).collect()
}

fn looks_up(line: &str) -> bool {
    is_indexed(line) || line.contains(".pointer(\"/") || is_got(line)
}

/// Whether a line has `value["name"]`, unless it is assigned to.
fn is_indexed(line: &str) -> bool {
    line.match_indices("[\"").any(|(at, _)| {
        let is_value = line[..at].ends_with(|before: char| before.is_alphanumeric() || "_)]?".contains(before));
        let rest = line[at + 2..].split_once("\"]").map_or("", |(_, rest)| rest.trim_start());
        is_value && !(rest.starts_with("= ") || rest.is_empty())
    })
}

/// Whether a line has `value.get("name")` and reads what it got. Headers have no type.
fn is_got(line: &str) -> bool {
    line.match_indices(".get(\"").filter(|(at, _)| !line[..*at].ends_with("headers")).any(|(at, got)| {
        let rest = line[at + got.len()..].split_once("\")").map_or("", |(_, rest)| rest);
        READS.iter().any(|read| rest.starts_with(read))
    })
}

#[test]
fn lookups_by_name_are_found() {
    for bad in [
        "let id = run[\"id\"].as_str();",
        "document: json[\"items\"][number].clone(),",
        "if members[\"scheduleType\"] == json!(\"once\") {",
        "let name = job.get(\"jobKey\").and_then(Value::as_str);",
        "Some(after.get(\"slots\")?.as_u64()?)",
        "let scope = members.get(\"scope\").is_some_and(|scope| scope == \"per_org\");",
        "value.pointer(\"/run/id\")",
    ] {
        let source = format!("fn a() {{\n    {bad}\n}}\n");
        assert_eq!(check("crates/ui/src/pages/a.rs", &source).len(), 1, "{bad}");
        assert_eq!(check("crates/http/src/a.rs", &source).len(), 0, "{bad}");
        assert_eq!(check(FOREIGN[0].0, &source).len(), 0, "{bad}");
    }
}

#[test]
fn written_members_headers_and_tests_pass() {
    for good in [
        "document[\"jobKey\"] = json!(job.job_key);",
        "const FIELDS: [&str; 1] = [\"reason\"];",
        "let refusal = refusal(problem, &[\"reason\"]);",
        "if request.query.get(\"from\").is_some() {",
        "let is_ours = request.headers.get(\"origin\").is_some_and(|origin| origin == own);",
        "// as in value[\"name\"].clone()",
        "#[cfg(test)] mod tests { fn a() { value[\"id\"].clone() } }",
    ] {
        assert_eq!(check("crates/cli/src/a.rs", &format!("{good}\n")), [""; 0], "{good}");
    }
}
