//! Fields as JSON Schema.

use serde_json::{Map, Value, json};

use super::{Field, Kind};

/// The schema of an object with these members, and no others.
pub(crate) fn object(fields: &[Field]) -> Value {
    let properties: Map<String, Value> = fields.iter().map(|field| (field.name.to_owned(), described(field))).collect();
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn described(field: &Field) -> Value {
    let mut schema = kind(&field.kind);
    if !field.required
        && let Some(word) = schema.get("type").and_then(Value::as_str).map(str::to_owned)
    {
        schema["type"] = json!([word, "null"]);
        if let Some(Value::Array(words)) = schema.get_mut("enum") {
            words.push(Value::Null);
        }
    }
    schema["description"] = json!(field.doc);
    schema
}

/// The schema of a value.
pub(crate) fn kind(kind: &Kind) -> Value {
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
        Kind::Texts => json!({ "type": "object", "additionalProperties": { "type": ["string", "null"] } }),
        Kind::Map(of) => json!({ "type": "object", "additionalProperties": self::kind(of) }),
        Kind::Secret => json!({ "type": ["string", "object"], "writeOnly": true }),
        Kind::Object(fields) => object(fields),
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
