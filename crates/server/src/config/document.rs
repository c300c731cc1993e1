//! [`Document`]: TOML as a value, with the line of every part of it.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use everbell_wire::FaultCode;
use everbell_wire::form::{Fault, escape};

/// A file as it was written.
#[derive(Debug)]
pub(super) struct Document {
    /// Dates and times are texts here.
    pub(super) value: Value,
    /// From a JSON pointer to the line of the key, or of the item of a list.
    lines: BTreeMap<String, usize>,
    /// Syntax errors, each with its line.
    pub(super) broken: Vec<(usize, String)>,
    /// Values that TOML can express and JSON cannot.
    pub(super) faults: Vec<Fault>,
}

impl Document {
    /// Reads as much as can be read.
    pub(super) fn parse(text: &str) -> Document {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at);
        let mut reader = Reader { ends: ends.collect(), lines: BTreeMap::new(), faults: Vec::new() };
        let (table, errors) = DeTable::parse_recoverable(text);
        let value = reader.table(table.get_ref(), "");
        let told = |error: &toml::de::Error| {
            let line = error.span().map_or(1, |span| reader.line(span.start));
            (line, error.message().to_owned())
        };
        let mut broken: Vec<_> = errors.iter().map(told).collect();
        // One mistake can trip the parser more than once; the first complaint about a line is the best.
        broken.sort_by_key(|(line, _)| *line);
        broken.dedup_by_key(|(line, _)| *line);
        Document { value, lines: reader.lines, broken, faults: reader.faults }
    }

    /// The line of what the pointer names, or else of what that stands in.
    pub(super) fn line(&self, pointer: &str) -> Option<usize> {
        let mut pointer = pointer;
        loop {
            if let Some(line) = self.lines.get(pointer) {
                return Some(*line);
            }
            pointer = pointer.rsplit_once('/')?.0;
        }
    }

    /// The pointer as people read it: `server.listen`, `job "daily": policies.timeout`.
    pub(super) fn key(&self, pointer: &str) -> String {
        let mut parts = pointer.split('/').skip(1).map(unescape);
        let Some(first) = parts.next() else { return String::new() };
        let mut key = excerpt(&first);
        let mut value = self.value.get(&first);
        for (depth, part) in parts.enumerate() {
            let within = value;
            value = match (value, part.parse::<usize>()) {
                (Some(Value::Array(items)), Ok(n)) => items.get(n),
                (Some(within), _) => within.get(&part),
                (None, _) => None,
            };
            match (within, name_of(&first, value).filter(|_| depth == 0)) {
                (Some(Value::Array(_)), Some(name)) => key = format!("{key} \"{}\"", excerpt(name)),
                (Some(Value::Array(_)), None) => key = format!("{key}[{}]", excerpt(&part)),
                // Behind the name of a block.
                _ if key.ends_with('"') => key = format!("{key}: {}", excerpt(&part)),
                _ => key = format!("{key}.{}", excerpt(&part)),
            }
        }
        key
    }
}

/// Returns the name of a block of this kind.
fn name_of<'v>(kind: &str, block: Option<&'v Value>) -> Option<&'v str> {
    let name = match kind {
        "job" => "job_key",
        "template" | "notify" | "rule" | "calendar" => "name",
        "target" => "label",
        _ => return None,
    };
    block?.get(name)?.as_str().filter(|name| !name.is_empty())
}

fn excerpt(name: &str) -> String {
    name.chars().take(100).flat_map(char::escape_debug).collect()
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// Turns TOML into JSON and notes where everything is.
struct Reader {
    /// The byte offsets of line ends.
    ends: Vec<usize>,
    lines: BTreeMap<String, usize>,
    faults: Vec<Fault>,
}

impl Reader {
    fn line(&self, at: usize) -> usize {
        self.ends.partition_point(|end| *end < at) + 1
    }

    fn table(&mut self, table: &DeTable<'_>, pointer: &str) -> Value {
        let mut members = Map::new();
        for (name, value) in table {
            let pointer = format!("{pointer}/{}", escape(name.get_ref()));
            let line = self.line(name.span().start);
            self.lines.entry(pointer.clone()).or_insert(line);
            members.insert(name.get_ref().to_string(), self.value(value, &pointer));
        }
        Value::Object(members)
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>, pointer: &str) -> Value {
        match value.get_ref() {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Boolean(flag) => Value::Bool(*flag),
            DeValue::Datetime(time) => Value::String(time.to_string()),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => Value::from(number),
                Err(_) => self.refused(pointer, "must fit into 64 bits"),
            },
            DeValue::Float(number) => match number.as_str().parse().ok().and_then(Number::from_f64) {
                Some(number) => Value::Number(number),
                None => self.refused(pointer, "must be a finite number"),
            },
            DeValue::Table(table) => self.table(table, pointer),
            DeValue::Array(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (n, item) in items.iter().enumerate() {
                    let pointer = format!("{pointer}/{n}");
                    let line = self.line(item.span().start);
                    self.lines.insert(pointer.clone(), line);
                    list.push(self.value(item, &pointer));
                }
                Value::Array(list)
            }
        }
    }

    fn refused(&mut self, pointer: &str, detail: &str) -> Value {
        self.faults.push(Fault::new(pointer, FaultCode::Invalid, detail));
        // Absent, so that it causes no further problems.
        Value::Null
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn everything_has_its_line() {
        let text = "\
top = 1
[server]
listen = \"a\"
roles = [
  \"x\",
  { y = 2 },
]
[[job]]
job_key = \"one\"
policies.retry.max = 1
[[job]]
[job.policies]
at = 2027-03-13 09:00:00
on = 2027-03-13
hex = 0xff
many = 1_000
";
        let document = Document::parse(text);
        assert_eq!((document.broken.as_slice(), document.faults.as_slice()), ([].as_slice(), [].as_slice()));
        let expected = json!({
            "top": 1, "server": {"listen": "a", "roles": ["x", {"y": 2}]},
            "job": [
                {"job_key": "one", "policies": {"retry": {"max": 1}}},
                {"policies": {"at": "2027-03-13T09:00:00", "on": "2027-03-13", "hex": 255, "many": 1000}},
            ],
        });
        assert_eq!(document.value, expected);
        for (pointer, line, key) in [
            ("/top", 1, "top"),
            ("/server", 2, "server"),
            ("/server/listen", 3, "server.listen"),
            ("/server/missing", 2, "server.missing"),
            ("/server/roles/0", 5, "server.roles[0]"),
            ("/server/roles/1/y", 6, "server.roles[1].y"),
            ("/job/0", 8, "job \"one\""),
            ("/job/0/policies/retry/max", 10, "job \"one\": policies.retry.max"),
            ("/job/0/payload/a~1b~0", 8, "job \"one\": payload.a/b~"),
            ("/job/1", 11, "job[1]"),
            ("/job/1/policies", 12, "job[1].policies"),
            ("/job/1/policies/many", 16, "job[1].policies.many"),
        ] {
            assert_eq!((document.line(pointer), document.key(pointer).as_str()), (Some(line), key), "{pointer}");
        }
        assert_eq!((document.line("/nothing"), document.key("")), (None, String::new()));
    }

    #[test]
    fn what_json_cannot_hold_is_told() {
        let document = Document::parse("a = nan\nb = [1.5, -inf]\nc = 1e400\nd = 9223372036854775808\n");
        let told: Vec<_> =
            document.faults.iter().map(|fault| (fault.pointer.as_str(), fault.detail.as_str())).collect();
        let finite = "must be a finite number";
        let expected = [("/a", finite), ("/b/1", finite), ("/c", finite), ("/d", "must fit into 64 bits")];
        assert_eq!(told, expected);
    }

    #[test]
    fn everything_that_is_no_toml_is_told_with_its_line() {
        let document = Document::parse("a = 1\nb = yes\nc = \"open\nd = 4\nd = 5\n= 3\nh 5\n[e\nf = 1\n");
        let lines: Vec<usize> = document.broken.iter().map(|(line, _)| *line).collect();
        assert_eq!((lines, &document.value["a"]), (vec![2, 3, 5, 6, 7, 8], &json!(1)), "{:?}", document.broken);
        assert!(document.broken.iter().all(|(_, message)| !message.contains('\n')), "{:?}", document.broken);
    }

    #[test]
    fn an_empty_file_is_a_file() {
        assert_eq!(Document::parse("").value, json!({}));
        assert_eq!(Document::parse("\u{feff}a = 1").value, json!({"a": 1}));
    }
}
