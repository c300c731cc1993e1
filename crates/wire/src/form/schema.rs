//! Fields as JSON Schema.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Field, Kind};

/// The schema of an object with these members, and no others.
pub fn object(fields: &[Field]) -> Value {
    let properties: Map<String, Value> = fields.iter().map(|field| (field.name.to_owned(), described(field))).collect();
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// Adds the schema of a named object, and of every named object in it.
pub fn add_component(name: &str, fields: &[Field], components: &mut BTreeMap<String, Value>) {
    components.insert(name.to_owned(), object(fields));
    for field in fields {
        if let Kind::Component(name, fields) | Kind::ComponentOrList { name, fields, .. } = field.kind {
            add_component(name, fields, components);
        }
    }
}

/// A reference to a named schema.
pub fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn described(field: &Field) -> Value {
    let mut schema = kind(&field.kind);
    if !field.required {
        if schema.get("enum").is_some() || schema.get("$ref").is_some() {
            schema = json!({ "oneOf": [{ "type": "null" }, schema] });
        } else if let Some(word) = schema.get("type").and_then(Value::as_str).map(str::to_owned) {
            schema["type"] = json!([word, "null"]);
        }
    }
    schema["description"] = json!(field.doc);
    schema
}

/// The schema of a value.
pub fn kind(kind: &Kind) -> Value {
    match kind {
        // A NUL is refused in every text.
        Kind::Text { min, max } => {
            json!({ "type": "string", "minLength": min, "maxLength": max, "pattern": "^[^\\u0000]*$" })
        }
        Kind::Word(words) => json!({ "type": "string", "enum": words }),
        Kind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Time => json!({ "type": "string", "format": "date-time" }),
        Kind::Span => json!({ "type": "string", "examples": ["15m", "PT15M"] }),
        Kind::Json => json!({}),
        Kind::Ignored(shown) => self::kind(shown),
        Kind::Texts => json!({ "type": "object", "additionalProperties": { "type": ["string", "null"] } }),
        Kind::Map(of) => json!({ "type": "object", "additionalProperties": self::kind(of) }),
        Kind::Secret => json!({ "type": ["string", "object"], "writeOnly": true }),
        Kind::Object(fields) => object(fields),
        Kind::Component(name, _) => reference(name),
        Kind::ComponentOrList { name, max, .. } => json!({
            "anyOf": [
                reference(name),
                { "type": "array", "items": reference(name), "minItems": 1, "maxItems": max },
                { "type": "null" },
            ],
        }),
        Kind::List { of, max } => json!({ "type": "array", "items": self::kind(of), "maxItems": max }),
        Kind::ListOr { word, of, max } => json!({
            "anyOf": [
                { "type": "array", "items": self::kind(of), "minItems": 1, "maxItems": max },
                { "type": "string", "enum": [word] },
                { "type": "null" },
            ],
        }),
    }
}
