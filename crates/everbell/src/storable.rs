//! Conversion of a program's values to JSON that every store accepts.
//!
//! Besides what [`Json`] refuses, it refuses numbers that are not finite: `serde_json` would silently write `null` for
//! them.

use std::fmt;

use everbell_core::Json;
use serde::Serialize;
use serde::ser::{self, Serializer};

/// A value as JSON; or why it cannot be that.
pub(crate) fn json(field: &'static str, value: &(impl Serialize + ?Sized)) -> Result<Json, String> {
    Json::parse(field, &text(value)?).map_err(|invalid| invalid.reason)
}

/// A value as the text of JSON, not checked any further.
pub(crate) fn text(value: &(impl Serialize + ?Sized)) -> Result<String, String> {
    value.serialize(Finite).map_err(|error| error.0)?;
    serde_json::to_string(value).map_err(|error| error.to_string())
}

/// Looks at every number of a value and writes nothing.
struct Finite;

#[derive(Debug)]
struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl ser::Error for Refused {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Refused(message.to_string())
    }
}

fn finite(number: f64) -> Result<(), Refused> {
    if number.is_finite() { Ok(()) } else { Err(Refused(format!("the number {number}, which JSON has no word for"))) }
}

macro_rules! fine {
    ($($method:ident: $type:ty),+ $(,)?) => {
        $(fn $method(self, _: $type) -> Result<(), Refused> {
            Ok(())
        })+
    };
}

macro_rules! inside {
    ($($method:ident($($ignored:ty),*)),+ $(,)?) => {
        $(fn $method(self, $(_: $ignored),*) -> Result<Finite, Refused> {
            Ok(Finite)
        })+
    };
}

type Name = &'static str;

impl Serializer for Finite {
    type Ok = ();
    type Error = Refused;
    type SerializeSeq = Finite;
    type SerializeTuple = Finite;
    type SerializeTupleStruct = Finite;
    type SerializeTupleVariant = Finite;
    type SerializeMap = Finite;
    type SerializeStruct = Finite;
    type SerializeStructVariant = Finite;

    fine!(
        serialize_bool: bool, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128,
        serialize_unit_struct: Name,
    );

    inside!(
        serialize_seq(Option<usize>),
        serialize_tuple(usize),
        serialize_tuple_struct(Name, usize),
        serialize_tuple_variant(Name, u32, Name, usize),
        serialize_map(Option<usize>),
        serialize_struct(Name, usize),
        serialize_struct_variant(Name, u32, Name, usize),
    );

    fn serialize_f32(self, number: f32) -> Result<(), Refused> {
        finite(number.into())
    }

    fn serialize_f64(self, number: f64) -> Result<(), Refused> {
        finite(number)
    }

    fn serialize_none(self) -> Result<(), Refused> {
        Ok(())
    }

    fn serialize_unit(self) -> Result<(), Refused> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: Name, _: u32, _: Name) -> Result<(), Refused> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Refused> {
        value.serialize(Finite)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: Name, value: &T) -> Result<(), Refused> {
        value.serialize(Finite)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: Name,
        _: u32,
        _: Name,
        value: &T,
    ) -> Result<(), Refused> {
        value.serialize(Finite)
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, _: &T) -> Result<(), Refused> {
        Ok(())
    }
}

macro_rules! parts {
    ($($part:ident::$method:ident($($name:ty)?)),+ $(,)?) => {
        $(impl ser::$part for Finite {
            type Ok = ();
            type Error = Refused;

            fn $method<T: Serialize + ?Sized>(&mut self, $(_: $name,)? value: &T) -> Result<(), Refused> {
                value.serialize(Finite)
            }

            fn end(self) -> Result<(), Refused> {
                Ok(())
            }
        })+
    };
}

parts!(
    SerializeSeq::serialize_element(),
    SerializeTuple::serialize_element(),
    SerializeTupleStruct::serialize_field(),
    SerializeTupleVariant::serialize_field(),
    SerializeStruct::serialize_field(Name),
    SerializeStructVariant::serialize_field(Name),
);

impl ser::SerializeMap for Finite {
    type Ok = ();
    type Error = Refused;

    /// A key is a text in any case, and a number that is none is refused when it is written.
    fn serialize_key<T: Serialize + ?Sized>(&mut self, _: &T) -> Result<(), Refused> {
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        value.serialize(Finite)
    }

    fn end(self) -> Result<(), Refused> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Serialize)]
    enum Shape {
        Unit,
        Newtype(Option<f64>),
        Tuple(u8, f32),
        Struct { side: f64 },
    }

    #[test]
    fn what_is_finite_is_written() {
        let shapes = [
            Shape::Unit,
            Shape::Newtype(None),
            Shape::Newtype(Some(1.5)),
            Shape::Tuple(1, 2.0),
            Shape::Struct { side: 0.0 },
        ];
        let text = text(&BTreeMap::from([("shapes", (shapes, 'x', "y", ()))])).unwrap();
        let wanted = r#"{"shapes":[["Unit",{"Newtype":null},{"Newtype":1.5},{"Tuple":[1,2.0]},{"Struct":{"side":0.0}}],"x","y",null]}"#;
        assert_eq!(text, wanted);
    }

    #[test]
    fn what_is_not_finite_is_refused_wherever_it_is() {
        let said = "the number NaN, which JSON has no word for";
        assert_eq!(text(&f64::NAN).unwrap_err(), said);
        assert_eq!(text(&[Some(f32::NAN)]).unwrap_err(), said);
        assert_eq!(text(&BTreeMap::from([("a", (1, f64::NAN))])).unwrap_err(), said);
        for shape in [Shape::Newtype(Some(f64::NAN)), Shape::Tuple(1, f32::NAN), Shape::Struct { side: f64::NAN }] {
            assert_eq!(text(&shape).unwrap_err(), said);
        }
        assert_eq!(text(&f64::INFINITY).unwrap_err(), "the number inf, which JSON has no word for");
        assert!(json("payload", "\0").unwrap_err().contains("which no database keeps"));
    }
}
