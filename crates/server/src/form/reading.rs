//! [`Form`]: a value held against its fields.

use std::borrow::Cow;
use std::time::Duration;

use everbell_core::Invalid;
use serde_json::{Map, Value};

use super::meant::meant;
use super::span::parse_span;
use super::{Field, Kind, Naming};

/// Something that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// A JSON pointer without its `#`: `/policies/timeout`; empty for the whole.
    pub(crate) pointer: String,
    /// A stable word.
    pub(crate) code: &'static str,
    /// What is wrong and what is allowed.
    pub(crate) detail: String,
}

impl Fault {
    pub(crate) fn new(pointer: impl Into<String>, code: &'static str, detail: impl Into<String>) -> Fault {
        Fault { pointer: pointer.into(), code, detail: detail.into() }
    }
}

/// An object and the fields it may have. What is absent, `null` or wrong reads as nothing.
#[derive(Debug)]
pub(crate) struct Form<'v> {
    members: Cow<'v, Map<String, Value>>,
    naming: Naming,
    faults: Vec<Fault>,
}

impl<'v> Form<'v> {
    /// Holds a value against its fields and notes everything that does not fit.
    pub(crate) fn read(value: &'v Value, fields: &[Field], naming: Naming) -> Form<'v> {
        let mut faults = Vec::new();
        let members = match value {
            Value::Object(members) => {
                check_members(members, fields, "", naming, &mut faults);
                Cow::Borrowed(members)
            }
            other => {
                let detail = format!("must be {}, not {}", naming.object(), naming.kind_of(other));
                faults.push(Fault::new("", "wrong_type", detail));
                Cow::Owned(Map::new())
            }
        };
        Form { members, naming, faults }
    }

    /// What was wrong so far.
    pub(crate) fn faults(self) -> Vec<Fault> {
        self.faults
    }

    pub(crate) fn faults_mut(&mut self) -> &mut Vec<Fault> {
        &mut self.faults
    }

    /// Notes something that the fields alone could not tell. The first fault of a place counts.
    pub(crate) fn note(&mut self, fault: Fault) {
        if !self.faults.iter().any(|known| known.pointer == fault.pointer) {
            self.faults.push(fault);
        }
    }

    /// Notes a fault of the member at this path of names.
    pub(crate) fn fault(&mut self, path: &str, code: &'static str, detail: impl Into<String>) {
        let spelled: Vec<_> = path.split('.').map(|name| self.naming.spell(name)).collect();
        self.note(Fault::new(format!("/{}", spelled.join("/")), code, detail));
    }

    /// Notes what core refused. Its fields are spelled with dots.
    pub(crate) fn refuse(&mut self, invalid: &Invalid) {
        self.fault(invalid.field, "invalid", invalid.reason.clone());
    }

    /// The name as it stands in the document.
    pub(crate) fn spell<'n>(&self, name: &'n str) -> Cow<'n, str> {
        self.naming.spell(name)
    }

    /// The member at this path of names, unless it is `null`.
    fn get(&self, path: &str) -> Option<&Value> {
        let mut names = path.split('.');
        let first = self.members.get(&*self.naming.spell(names.next()?))?;
        let found = names.try_fold(first, |value, name| value.get(&*self.naming.spell(name)))?;
        Some(found).filter(|value| !value.is_null())
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.get(path).is_some()
    }

    pub(crate) fn value(&self, path: &str) -> Option<&Value> {
        self.get(path)
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.get(path)?.as_str()
    }

    /// A word that names a choice.
    pub(crate) fn word<T>(&self, path: &str, choice: impl Fn(&str) -> Option<T>) -> Option<T> {
        choice(self.text(path)?)
    }

    pub(crate) fn integer(&self, path: &str) -> Option<i64> {
        self.get(path)?.as_i64()
    }

    /// A number whose field has no bounds beyond these.
    pub(crate) fn count(&self, path: &str) -> Option<u32> {
        self.integer(path).and_then(|number| u32::try_from(number).ok())
    }

    pub(crate) fn flag(&self, path: &str) -> bool {
        self.get(path).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Yes, no, or nothing said.
    pub(crate) fn answer(&self, path: &str) -> Option<bool> {
        self.get(path)?.as_bool()
    }

    pub(crate) fn span(&self, path: &str) -> Option<Duration> {
        parse_span(self.text(path)?).ok()
    }

    /// The texts of a list.
    pub(crate) fn list(&self, path: &str) -> Vec<&str> {
        self.get(path).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The texts of an object.
    pub(crate) fn texts(&self, path: &str) -> impl Iterator<Item = (&str, &str)> {
        let members = self.get(path).and_then(Value::as_object).into_iter().flatten();
        members.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
    }
}

fn check_members(members: &Map<String, Value>, fields: &[Field], at: &str, naming: Naming, faults: &mut Vec<Fault>) {
    for (name, value) in members {
        let pointer = format!("{at}/{}", escape(name));
        match fields.iter().find(|field| naming.spell(field.name) == *name) {
            None => faults.push(unknown(pointer, name, fields, naming)),
            Some(field) if value.is_null() && !field.required => {}
            Some(field) => check_value(value, &field.kind, &pointer, naming, faults),
        }
    }
    for field in fields.iter().filter(|field| field.required) {
        let name = naming.spell(field.name);
        if !members.contains_key(&*name) {
            faults.push(Fault::new(format!("{at}/{name}"), "required", format!("is required: {}", field.doc)));
        }
    }
}

fn check_value(value: &Value, kind: &Kind, pointer: &str, naming: Naming, faults: &mut Vec<Fault>) {
    let mut fault = |code, detail: String| faults.push(Fault::new(pointer, code, detail));
    let wrong = |wanted: &str| format!("must be {wanted}, not {}", naming.kind_of(value));
    match (kind, value) {
        (Kind::Json, _) | (Kind::Flag, Value::Bool(_)) => {}
        (Kind::Text { min, max }, Value::String(text)) => {
            let length = text.chars().count();
            if text.contains('\0') {
                fault("invalid", "must not contain NUL".to_owned());
            } else if !(*min..=*max).contains(&length) {
                let bounds = if min == max { min.to_string() } else { format!("{min} to {max}") };
                let is_blank = length > 0 && text.trim().is_empty();
                let found = if is_blank { "is blank".to_owned() } else { format!("has {length}") };
                fault("out_of_range", format!("must be {bounds} characters, this {found}"));
            }
        }
        (Kind::Word(words), Value::String(text)) => {
            if !words.contains(&text.as_str()) {
                fault("invalid", format!("must be one of {}", words.join(", ")));
            }
        }
        (Kind::Integer { min, max }, Value::Number(number)) => match number.as_i64() {
            Some(number) if (*min..=*max).contains(&number) => {}
            Some(number) => fault("out_of_range", format!("must be from {min} to {max}, not {number}")),
            None => fault("out_of_range", format!("must be a whole number from {min} to {max}")),
        },
        // Its meaning may depend on a zone, so it is read where that is known.
        (Kind::Time, Value::String(text)) if text.chars().count() <= 100 && !text.contains('\0') => {}
        (Kind::Time, Value::String(_)) => fault("invalid", "is not a time".to_owned()),
        (Kind::Span, Value::String(text)) => {
            if let Err(reason) = parse_span(text) {
                fault("invalid", reason);
            }
        }
        (Kind::Texts, Value::Object(members)) => {
            for (name, value) in members {
                if !value.is_string() && !value.is_null() {
                    let pointer = format!("{pointer}/{}", escape(name));
                    faults.push(Fault::new(
                        pointer,
                        "wrong_type",
                        format!("must be a text, not {}", naming.kind_of(value)),
                    ));
                }
            }
        }
        (Kind::Map(of), Value::Object(members)) => {
            for (name, value) in members {
                check_value(value, of, &format!("{pointer}/{}", escape(name)), naming, faults);
            }
        }
        (Kind::Secret, value) => faults.extend(bad_secret(value, pointer)),
        (Kind::Object(fields), Value::Object(members)) => check_members(members, fields, pointer, naming, faults),
        (Kind::List { of, max }, Value::Array(items)) => check_items(items, (of, *max), pointer, naming, faults),
        (Kind::ListOr { word, .. }, Value::String(text)) if text == word => {}
        (Kind::ListOr { of, max, .. }, Value::Array(items)) if !items.is_empty() => {
            check_items(items, (of, *max), pointer, naming, faults);
        }
        (Kind::ListOr { word, .. }, _) => fault("invalid", format!("must be \"{word}\", or a list that is not empty")),
        (Kind::Text { .. } | Kind::Word(_), _) => fault("wrong_type", wrong("a text")),
        (Kind::Integer { .. }, _) => fault("wrong_type", wrong("a whole number")),
        (Kind::Flag, _) => fault("wrong_type", wrong("true or false")),
        (Kind::Time, _) => fault("wrong_type", wrong("a time as text, such as \"2027-03-13T09:00:00Z\"")),
        (Kind::Span, _) => fault("wrong_type", wrong("a duration as text, such as \"15m\" or \"PT15M\"")),
        (Kind::Texts | Kind::Map(_) | Kind::Object(_), _) => fault("wrong_type", wrong(naming.object())),
        (Kind::List { .. }, _) => fault("wrong_type", wrong("a list")),
    }
}

/// At most so many of a kind.
fn check_items(items: &[Value], (of, max): (&Kind, usize), pointer: &str, naming: Naming, faults: &mut Vec<Fault>) {
    if items.len() > max {
        let detail = format!("must be at most {max}, these are {}", items.len());
        faults.push(Fault::new(pointer, "out_of_range", detail));
    }
    for (n, item) in items.iter().take(max).enumerate() {
        check_value(item, of, &format!("{pointer}/{n}"), naming, faults);
    }
}

/// Why this is no secret. The text itself is never repeated.
fn bad_secret(value: &Value, pointer: &str) -> Option<Fault> {
    const FORMS: &str = "must be a text, `{ env = \"NAME\" }` or `{ file = \"PATH\" }`";
    let fault = |code, detail: &str| Some(Fault::new(pointer, code, detail));
    match value {
        Value::String(text) if text.contains('\0') => fault("invalid", "must not contain NUL"),
        Value::String(_) => None,
        Value::Object(members) => {
            let place = members.iter().next().filter(|_| members.len() == 1);
            let is_place = |(name, value): (&String, &Value)| {
                matches!(name.as_str(), "env" | "file") && value.as_str().is_some_and(|place| !place.is_empty())
            };
            if place.is_some_and(is_place) { None } else { fault("invalid", FORMS) }
        }
        _ => fault("wrong_type", FORMS),
    }
}

fn unknown(pointer: String, name: &str, fields: &[Field], naming: Naming) -> Fault {
    let names: Vec<_> = fields.iter().map(|field| naming.spell(field.name)).collect();
    let detail = match meant(name, names.iter().map(AsRef::as_ref)) {
        Some(near) => format!("is not known here; did you mean `{near}`?"),
        None if names.is_empty() => "is not known here; nothing is taken".to_owned(),
        None => format!("is not known here; known: {}", names.join(", ")),
    };
    Fault::new(pointer, "unknown_field", detail)
}

/// A name as a part of a JSON pointer, cut to a printable length.
pub(crate) fn escape(name: &str) -> String {
    name.chars().take(100).collect::<String>().replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{TEXT, optional, required};
    use super::*;

    const INNER: &[Field] = &[
        optional("maxAttempts", Kind::Integer { min: 1, max: 100 }, "how often"),
        optional("initial", Kind::Span, "the first wait"),
    ];
    const FIELDS: &[Field] = &[
        required("jobKey", TEXT, "its name"),
        optional("status", Kind::Word(&["active", "paused"]), "where it stands"),
        optional("force", Kind::Flag, "whatever else is active"),
        optional("labels", Kind::Texts, "for filters"),
        optional("retry", Kind::Object(INNER), "how often"),
        optional("ids", Kind::List { of: &TEXT, max: 2 }, "which"),
        optional("runAt", Kind::Time, "when"),
        optional("payload", Kind::Json, "what"),
        optional("headers", Kind::Map(&Kind::Secret), "with which"),
    ];

    fn told(value: &Value, naming: Naming) -> Vec<String> {
        let faults = Form::read(value, FIELDS, naming).faults();
        faults.into_iter().map(|fault| format!("{} {}: {}", fault.pointer, fault.code, fault.detail)).collect()
    }

    #[test]
    fn everything_that_fits_is_read() {
        let value = json!({
            "jobKey": "daily", "status": "paused", "force": true, "labels": {"team": "ops"}, "ids": ["a", "b"],
            "retry": {"maxAttempts": 3, "initial": "90s"}, "runAt": null, "payload": [1],
        });
        let form = Form::read(&value, FIELDS, Naming::Camel);
        assert_eq!(
            (form.text("jobKey"), form.text("status"), form.flag("force")),
            (Some("daily"), Some("paused"), true)
        );
        assert_eq!(
            (form.count("retry.maxAttempts"), form.span("retry.initial")),
            (Some(3), Some(Duration::from_secs(90)))
        );
        assert_eq!((form.list("ids"), form.has("runAt"), form.has("payload")), (vec!["a", "b"], false, true));
        assert_eq!(form.texts("labels").collect::<Vec<_>>(), [("team", "ops")]);
        assert_eq!(form.faults(), []);
    }

    #[test]
    fn everything_that_does_not_fit_is_told_at_once() {
        let value = json!({
            "status": "lost", "force": "yes", "labels": {"a/b": 1}, "ids": ["a", 2, "c"], "stauts": 1,
            "retry": {"maxAttempts": 1.5, "initial": "soon", "max": 1}, "runAt": 12,
        });
        let expected = [
            "/force wrong_type: must be true or false, not a text",
            "/ids out_of_range: must be at most 2, these are 3",
            "/ids/1 wrong_type: must be a text, not a number",
            "/labels/a~1b wrong_type: must be a text, not a number",
            "/retry/initial invalid: `soon` is not a duration; write it as `90s`, `15m`, `1h 30m`, `7d` or `PT15M`",
            "/retry/max unknown_field: is not known here; did you mean `maxAttempts`?",
            "/retry/maxAttempts out_of_range: must be a whole number from 1 to 100",
            "/runAt wrong_type: must be a time as text, such as \"2027-03-13T09:00:00Z\", not a number",
            "/status invalid: must be one of active, paused",
            "/stauts unknown_field: is not known here; did you mean `status`?",
            "/jobKey required: is required: its name",
        ];
        assert_eq!(told(&value, Naming::Camel), expected);
        let far = told(&json!({"jobKey": "a", "retry": {"foo": 1}}), Naming::Camel);
        assert_eq!(far, ["/retry/foo unknown_field: is not known here; known: maxAttempts, initial"]);
        assert_eq!(told(&json!([1]), Naming::Camel), [" wrong_type: must be an object, not a list"]);
        assert_eq!(told(&json!({"jobKey": "a\u{0}b"}), Naming::Camel), ["/jobKey invalid: must not contain NUL"]);
        assert_eq!(told(&json!({"jobKey": null}), Naming::Camel), ["/jobKey wrong_type: must be a text, not null"]);
    }

    #[test]
    fn a_configuration_file_spells_the_same_with_underscores() {
        let value = json!({"job_key": "daily", "retry": {"max_attempts": 2}});
        let form = Form::read(&value, FIELDS, Naming::Snake);
        assert_eq!((form.text("jobKey"), form.integer("retry.maxAttempts")), (Some("daily"), Some(2)));
        assert_eq!(told(&json!({"jobKey": "daily"}), Naming::Snake).len(), 2);
    }

    #[test]
    fn a_secret_is_a_text_or_where_it_is_and_is_not_repeated() {
        let headers = json!({
            "a": "hunter2", "b": {"env": "B"}, "c": {"file": "/c"}, "d": 7, "e": {"env": "E", "file": "/e"},
            "f": {"env": ""}, "g": {}, "h": {"var": "H"}, "i": "hunter2\u{0}",
        });
        let told = told(&json!({"job_key": "daily", "headers": headers}), Naming::Snake);
        let forms = "must be a text, `{ env = \"NAME\" }` or `{ file = \"PATH\" }`";
        let expected = ["d wrong_type", "e invalid", "f invalid", "g invalid", "h invalid"];
        let mut expected: Vec<_> = expected.iter().map(|at| format!("/headers/{at}: {forms}")).collect();
        expected.push("/headers/i invalid: must not contain NUL".to_owned());
        assert_eq!(told, expected);
    }

    #[test]
    fn a_configuration_file_has_tables() {
        let value = json!({"job_key": "daily", "retry": 1, "payload": {}, "status": {}, "headers": []});
        let expected = [
            "/headers wrong_type: must be a table, not a list",
            "/retry wrong_type: must be a table, not a number",
            "/status wrong_type: must be a text, not a table",
        ];
        assert_eq!(told(&value, Naming::Snake), expected);
    }

    #[test]
    fn what_core_refuses_is_told_where_it_is() {
        let value = json!({"job_key": "daily"});
        let mut form = Form::read(&value, FIELDS, Naming::Snake);
        form.refuse(&Invalid::new("retry.maxAttempts", "must be odd"));
        form.refuse(&Invalid::new("retry.maxAttempts", "must be even"));
        assert_eq!(form.faults(), [Fault::new("/retry/max_attempts", "invalid", "must be odd")]);
    }
}
