//! Members that appear more than once in one object of a JSON text.
//!
//! Parsers disagree about which of them counts, so a gateway and this server could read different requests.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::reading::escape;

/// Returns the JSON pointer of the first member that appears twice in its object. The text must be valid JSON already.
pub fn find_duplicate(text: &str) -> Option<String> {
    let mut found = None;
    let mut reader = serde_json::Deserializer::from_str(text);
    // The only error of valid JSON is the one that ends the search.
    let _ended = Search { pointer: String::new(), found: &mut found }.deserialize(&mut reader);
    found
}

struct Search<'a> {
    pointer: String,
    found: &'a mut Option<String>,
}

impl<'de> DeserializeSeed<'de> for Search<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Search<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        while items
            .next_element_seed(Search { pointer: format!("{}/{index}", self.pointer), found: &mut *self.found })?
            .is_some()
        {
            index += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = members.next_key::<String>()? {
            let pointer = format!("{}/{}", self.pointer, escape(&name));
            if !names.insert(name) {
                *self.found = Some(pointer);
                return Err(A::Error::custom("a member appears twice"));
            }
            members.next_value_seed(Search { pointer, found: &mut *self.found })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_appears_twice_is_found_at_any_depth() {
        for (text, pointer) in [
            (r#"{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}"#, None),
            (r#"{"a":1,"a":1}"#, Some("/a")),
            (r#"{"a":1,"\u0061":null}"#, Some("/a")),
            (r#"[0,{"x/y":{"b":[],"c":-1.5,"b":true}}]"#, Some("/1/x~1y/b")),
            (r#"{"":1,"":2}"#, Some("/")),
            (r#""a""#, None),
            ("18446744073709551616", None),
        ] {
            assert_eq!(find_duplicate(text).as_deref(), pointer, "{text}");
        }
    }
}
