//! Choices that are words in JSON.

/// Defines an enum whose variants are words in JSON, described as such in OpenAPI. A word that this build does not know is
/// kept as `Other`, so that a client can read what a newer server writes.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $(#[doc = $doc:literal] $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = $doc] $variant,)+
            /// A word that this build does not know.
            Other(String),
        }

        impl $name {
            /// The words that this build knows.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word in JSON.
            pub fn as_str(&self) -> &str {
                match self {
                    $($name::$variant => $word,)+
                    $name::Other(word) => word,
                }
            }

            /// The choice of this word; `Other` if it is unknown.
            pub fn from_word(word: &str) -> $name {
                match word {
                    $($word => $name::$variant,)+
                    other => $name::Other(other.to_owned()),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                let word = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                Ok($name::from_word(&word))
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .enum_values(Some($name::WORDS.iter().copied()))
                    .description(Some(concat!($("- `", $word, "`:", $doc, "\n"),+)))
                    .into()
            }
        }

        impl utoipa::ToSchema for $name {}
    };
    ($(#[$about:meta])* $name:ident from $core:ty { $($rest:tt)+ }) => {
        words!($(#[$about])* $name { $($rest)+ });

        impl From<$core> for $name {
            fn from(choice: $core) -> $name {
                $name::from_word(choice.as_str())
            }
        }
    };
}
pub(crate) use words;

#[cfg(test)]
mod tests {
    #![allow(unreachable_pub, reason = "the macro makes public types")]

    words!(
        /// A light.
        Light {
            /// Cars may go.
            Green = "green",
            /// Cars must stop.
            Red = "red",
        }
    );

    #[test]
    fn words_read_back_and_unknown_ones_survive() {
        for (word, light) in [("green", Light::Green), ("red", Light::Red), ("blue", Light::Other("blue".to_owned()))] {
            let json = format!("\"{word}\"");
            assert_eq!(serde_json::from_str::<Light>(&json).unwrap(), light);
            assert_eq!(serde_json::to_string(&light).unwrap(), json);
        }
    }

    #[test]
    fn schema_lists_the_known_words_with_their_meaning() {
        let schema = serde_json::to_value(<Light as utoipa::PartialSchema>::schema()).unwrap();
        assert_eq!(schema["enum"], serde_json::json!(["green", "red"]));
        assert_eq!(Light::WORDS, ["green", "red"]);
        assert_eq!(schema["description"], "- `green`: Cars may go.\n- `red`: Cars must stop.\n");
    }
}
