//! [`Form`]: a value that was checked against its fields.

use std::borrow::Cow;
use std::time::Duration;

use everbell_core::Invalid;
use serde_json::{Map, Value};

use super::did_you_mean::did_you_mean;
use super::span::parse_span;
use super::{Field, Kind, Naming};
use crate::problem::FaultCode;

/// A refused request lists this many faults and counts the others.
pub const MAX_LISTED_FAULTS: usize = 20;
/// An object with more members is refused as a whole: no object here has nearly as many fields.
const MAX_MEMBERS: usize = 200;

/// A fault of a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// A JSON pointer without its `#`: `/policies/timeout`; empty for the whole value.
    pub pointer: String,
    /// A stable word.
    pub code: FaultCode,
    /// The fault, and what is allowed.
    pub detail: String,
}

impl Fault {
    /// A fault of the member at a JSON pointer.
    pub fn new(pointer: impl Into<String>, code: FaultCode, detail: impl Into<String>) -> Fault {
        Fault { pointer: pointer.into(), code, detail: detail.into() }
    }
}

/// An object and its fields. Members that are absent, `null` or wrong read as `None`.
#[derive(Debug)]
pub struct Form<'v> {
    members: Cow<'v, Map<String, Value>>,
    naming: Naming,
    faults: Vec<Fault>,
}

impl<'v> Form<'v> {
    /// Checks a value against its fields, and notes every fault.
    pub fn read(value: &'v Value, fields: &[Field], naming: Naming) -> Form<'v> {
        let mut faults = Vec::new();
        let members = match value {
            Value::Object(members) => {
                check_members(members, fields, "", naming, &mut faults);
                Cow::Borrowed(members)
            }
            other => {
                let detail = format!("must be {}, not {}", naming.object(), naming.kind_of(other));
                faults.push(Fault::new("", FaultCode::WrongType, detail));
                Cow::Owned(Map::new())
            }
        };
        Form { members, naming, faults }
    }

    /// Returns the faults so far.
    pub fn faults(self) -> Vec<Fault> {
        self.faults
    }

    /// Returns the faults for a caller that adds or changes some.
    pub fn faults_mut(&mut self) -> &mut Vec<Fault> {
        &mut self.faults
    }

    /// Notes a fault that the fields alone could not find, unless the same member has one.
    pub fn note(&mut self, fault: Fault) {
        if !self.faults.iter().any(|known| known.pointer == fault.pointer) {
            self.faults.push(fault);
        }
    }

    /// Notes a fault of the member at this path of names.
    pub fn fault(&mut self, path: &str, code: FaultCode, detail: impl Into<String>) {
        let spelled: Vec<_> = path.split('.').map(|name| self.naming.spell(name)).collect();
        self.note(Fault::new(format!("/{}", spelled.join("/")), code, detail));
    }

    /// Notes a fault that core found. Core separates names by dots.
    pub fn refuse(&mut self, invalid: &Invalid) {
        self.fault(invalid.field, FaultCode::Invalid, invalid.reason.clone());
    }

    /// The name in the spelling of the document.
    pub fn spell<'n>(&self, name: &'n str) -> Cow<'n, str> {
        self.naming.spell(name)
    }

    /// The member at this path of names, unless it is `null`.
    fn get(&self, path: &str) -> Option<&Value> {
        let mut names = path.split('.');
        let first = self.members.get(&*self.naming.spell(names.next()?))?;
        let found = names.try_fold(first, |value, name| value.get(&*self.naming.spell(name)))?;
        Some(found).filter(|value| !value.is_null())
    }

    /// Whether the member is present and not `null`.
    pub fn has(&self, path: &str) -> bool {
        self.get(path).is_some()
    }

    /// Returns the member as it was written.
    pub fn value(&self, path: &str) -> Option<&Value> {
        self.get(path)
    }

    /// Returns the member if it is a text.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.get(path)?.as_str()
    }

    /// Returns the choice that a word names.
    pub fn word<T>(&self, path: &str, choice: impl Fn(&str) -> Option<T>) -> Option<T> {
        choice(self.text(path)?)
    }

    pub(crate) fn integer(&self, path: &str) -> Option<i64> {
        self.get(path)?.as_i64()
    }

    /// A number whose field has no bounds beyond these.
    pub fn count(&self, path: &str) -> Option<u32> {
        self.integer(path).and_then(|number| u32::try_from(number).ok())
    }

    /// Returns whether the member is `true`.
    pub fn flag(&self, path: &str) -> bool {
        self.get(path).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Returns the member if it is `true` or `false`.
    pub fn answer(&self, path: &str) -> Option<bool> {
        self.get(path)?.as_bool()
    }

    /// Returns the member as a duration.
    pub fn span(&self, path: &str) -> Option<Duration> {
        parse_span(self.text(path)?).ok()
    }

    /// The texts of a list.
    pub fn list(&self, path: &str) -> Vec<&str> {
        self.get(path).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The texts of an object.
    pub fn texts(&self, path: &str) -> impl Iterator<Item = (&str, &str)> {
        let members = self.get(path).and_then(Value::as_object).into_iter().flatten();
        members.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
    }
}

fn check_members(members: &Map<String, Value>, fields: &[Field], at: &str, naming: Naming, faults: &mut Vec<Fault>) {
    if let Some(fault) = too_many(members, at) {
        return faults.push(fault);
    }
    for (name, value) in members {
        let pointer = format!("{at}/{}", escape(name));
        match fields.iter().find(|field| naming.spell(field.name) == *name) {
            // Faults that are only counted need no suggestion.
            None if faults.len() >= MAX_LISTED_FAULTS => {
                faults.push(Fault::new(pointer, FaultCode::UnknownField, "is not known here"));
            }
            None => faults.push(unknown(pointer, name, fields, naming)),
            Some(field) if value.is_null() && !field.required => {}
            Some(field) => check_value(value, &field.kind, &pointer, naming, faults),
        }
    }
    for field in fields.iter().filter(|field| field.required) {
        let name = naming.spell(field.name);
        if !members.contains_key(&*name) {
            faults.push(Fault::new(format!("{at}/{name}"), FaultCode::Required, format!("is required: {}", field.doc)));
        }
    }
}

/// Refuses an object whose members are too many to be checked one by one.
fn too_many(members: &Map<String, Value>, at: &str) -> Option<Fault> {
    let detail = || format!("has {} members; at most {MAX_MEMBERS} are allowed here", members.len());
    (members.len() > MAX_MEMBERS).then(|| Fault::new(at, FaultCode::OutOfRange, detail()))
}

fn bad_text(text: &str, (min, max): (usize, usize), pointer: &str) -> Option<Fault> {
    if text.contains('\0') {
        return Some(Fault::new(pointer, FaultCode::Invalid, "must not contain NUL"));
    }
    let length = text.chars().count();
    if (min..=max).contains(&length) {
        return None;
    }
    let bounds = if min == max { min.to_string() } else { format!("{min} to {max}") };
    let is_blank = length > 0 && text.trim().is_empty();
    let found = if is_blank { "but is blank".to_owned() } else { format!("not {length}") };
    Some(Fault::new(pointer, FaultCode::OutOfRange, format!("must be {bounds} characters, {found}")))
}

fn check_value(value: &Value, kind: &Kind, pointer: &str, naming: Naming, faults: &mut Vec<Fault>) {
    let mut fault = |code, detail: String| faults.push(Fault::new(pointer, code, detail));
    let wrong = |wanted: &str| format!("must be {wanted}, not {}", naming.kind_of(value));
    match (kind, value) {
        (Kind::Json | Kind::Ignored(_), _) | (Kind::Flag, Value::Bool(_)) => {}
        (Kind::Text { min, max }, Value::String(text)) => faults.extend(bad_text(text, (*min, *max), pointer)),
        (Kind::Word(words), Value::String(text)) => {
            if !words.contains(&text.as_str()) {
                fault(FaultCode::Invalid, format!("must be one of {}", words.join(", ")));
            }
        }
        (Kind::Integer { min, max }, Value::Number(number)) => match number.as_i64() {
            Some(number) if (*min..=*max).contains(&number) => {}
            Some(number) => fault(FaultCode::OutOfRange, format!("must be from {min} to {max}, not {number}")),
            None => fault(FaultCode::OutOfRange, format!("must be a whole number from {min} to {max}")),
        },
        // Its meaning may depend on a zone, so it is parsed later.
        (Kind::Time, Value::String(text)) if text.chars().count() <= 100 && !text.contains('\0') => {}
        (Kind::Time, Value::String(_)) => fault(FaultCode::Invalid, "is not a time".to_owned()),
        (Kind::Span, Value::String(text)) => {
            if let Err(reason) = parse_span(text) {
                fault(FaultCode::Invalid, reason);
            }
        }
        (Kind::Texts | Kind::Map(_), Value::Object(members)) => {
            if let Some(fault) = too_many(members, pointer) {
                return faults.push(fault);
            }
            for (name, value) in members {
                let pointer = format!("{pointer}/{}", escape(name));
                match kind {
                    Kind::Map(of) => check_value(value, of, &pointer, naming, faults),
                    _ if value.is_string() || value.is_null() => {}
                    _ => {
                        let detail = format!("must be a text, not {}", naming.kind_of(value));
                        faults.push(Fault::new(pointer, FaultCode::WrongType, detail));
                    }
                }
            }
        }
        (Kind::Secret, value) => faults.extend(bad_secret(value, pointer)),
        (Kind::Component(_, fields), _) => check_value(value, &Kind::Object(fields), pointer, naming, faults),
        (Kind::ComponentOrList { fields, max, .. }, _) => {
            check_one_or_list(value, (fields, *max), pointer, naming, faults);
        }
        (Kind::Object(fields), Value::Object(members)) => check_members(members, fields, pointer, naming, faults),
        (Kind::List { of, max }, Value::Array(items)) => check_items(items, (of, *max), pointer, naming, faults),
        (Kind::ListOr { word, .. }, Value::String(text)) if text == word => {}
        (Kind::ListOr { of, max, .. }, Value::Array(items)) if !items.is_empty() => {
            check_items(items, (of, *max), pointer, naming, faults);
        }
        (Kind::ListOr { word, .. }, _) => {
            fault(FaultCode::Invalid, format!("must be \"{word}\", or a list that is not empty"));
        }
        (Kind::Text { .. } | Kind::Word(_), _) => fault(FaultCode::WrongType, wrong("a text")),
        (Kind::Integer { .. }, _) => fault(FaultCode::WrongType, wrong("a whole number")),
        (Kind::Flag, _) => fault(FaultCode::WrongType, wrong("true or false")),
        (Kind::Time, _) => fault(FaultCode::WrongType, wrong("a time as text, such as \"2027-03-13T09:00:00Z\"")),
        (Kind::Span, _) => fault(FaultCode::WrongType, wrong("a duration as text, such as \"15m\" or \"PT15M\"")),
        (Kind::Texts | Kind::Map(_) | Kind::Object(_), _) => fault(FaultCode::WrongType, wrong(naming.object())),
        (Kind::List { .. }, _) => fault(FaultCode::WrongType, wrong("a list")),
    }
}

/// Checks an object, or a list of such objects.
fn check_one_or_list(
    value: &Value,
    (fields, max): (&'static [Field], usize),
    pointer: &str,
    naming: Naming,
    faults: &mut Vec<Fault>,
) {
    match value {
        Value::Array(items) => check_items(items, (&Kind::Object(fields), max), pointer, naming, faults),
        one => check_value(one, &Kind::Object(fields), pointer, naming, faults),
    }
}

/// Checks the length of a list, and each item.
fn check_items(items: &[Value], (of, max): (&Kind, usize), pointer: &str, naming: Naming, faults: &mut Vec<Fault>) {
    if items.len() > max {
        let detail = format!("must be at most {max}, not {}", items.len());
        faults.push(Fault::new(pointer, FaultCode::OutOfRange, detail));
    }
    for (n, item) in items.iter().take(max).enumerate() {
        check_value(item, of, &format!("{pointer}/{n}"), naming, faults);
    }
}

/// The fault of a value that is not a secret. It never contains the text itself.
fn bad_secret(value: &Value, pointer: &str) -> Option<Fault> {
    const FORMS: &str = "must be a text, `{ env = \"NAME\" }` or `{ file = \"PATH\" }`";
    let fault = |code, detail: &str| Some(Fault::new(pointer, code, detail));
    match value {
        Value::String(text) if text.contains('\0') => fault(FaultCode::Invalid, "must not contain NUL"),
        Value::String(_) => None,
        Value::Object(members) => {
            let source = members.iter().next().filter(|_| members.len() == 1);
            let is_source = |(name, value): (&String, &Value)| {
                matches!(name.as_str(), "env" | "file") && value.as_str().is_some_and(|name| !name.is_empty())
            };
            if source.is_some_and(is_source) { None } else { fault(FaultCode::Invalid, FORMS) }
        }
        _ => fault(FaultCode::WrongType, FORMS),
    }
}

fn unknown(pointer: String, name: &str, fields: &[Field], naming: Naming) -> Fault {
    let names: Vec<_> = fields.iter().map(|field| naming.spell(field.name)).collect();
    let detail = match did_you_mean(name, names.iter().map(AsRef::as_ref)) {
        Some(near) => format!("is not known here; did you mean `{near}`?"),
        None if names.is_empty() => "is not known here; no member is allowed".to_owned(),
        None => format!("is not known here; known: {}", names.join(", ")),
    };
    Fault::new(pointer, FaultCode::UnknownField, detail)
}

/// A name as a part of a JSON pointer, cut to a printable length.
pub fn escape(name: &str) -> String {
    name.chars().take(100).collect::<String>().replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests;
