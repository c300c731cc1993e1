//! [`Answer`]: a document of the API, as a type and as it came.

use std::any::type_name;

use reqwest::Method;
use reqwest::header::HeaderMap;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::Client;
use crate::CliError;

/// The body of a response that is of no interest, or that is empty.
pub(crate) use serde::de::IgnoredAny as Nothing;

/// A response that is not a refusal, as it came.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

/// A document of the API.
pub(crate) struct Answer<T> {
    pub(crate) document: T,
    /// The HTTP status.
    pub(crate) status: u16,
    /// The JSON as it came, for programs that read the output.
    pub(crate) text: String,
}

/// A document with all of its JSON, including members that this release does not know.
pub(crate) struct WithJson<T> {
    pub(crate) document: T,
    pub(crate) json: Value,
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for WithJson<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WithJson<T>, D::Error> {
        let json = Value::deserialize(deserializer)?;
        let document = T::deserialize(&json).map_err(D::Error::custom)?;
        Ok(WithJson { document, json })
    }
}

impl Client {
    /// Reads a response as the document that the API describes. An empty body is read as `null`.
    pub(super) fn read<T: DeserializeOwned>(
        &self,
        method: &Method,
        path: &str,
        response: Response,
    ) -> Result<Answer<T>, CliError> {
        let Response { status, text, .. } = response;
        let document = self.read_text(method, path, if text.is_empty() { "null" } else { &text })?;
        Ok(Answer { document, status, text })
    }

    /// Reads the body of a response, or says which server sent what instead.
    pub(super) fn read_text<T: DeserializeOwned>(
        &self,
        method: &Method,
        path: &str,
        text: &str,
    ) -> Result<T, CliError> {
        serde_json::from_str(text).map_err(|error| unreadable(self.server(), method, path, &name::<T>(), &error))
    }
}

fn unreadable(server: &str, method: &Method, path: &str, expected: &str, error: &serde_json::Error) -> CliError {
    if error.is_syntax() || error.is_eof() {
        return CliError::Failed {
            message: format!("{server} answered {method} {path} with something that is not JSON"),
            hint: Some(
                "check that this is the address of an everbell server, not of a proxy in front of it".to_owned(),
            ),
        };
    }
    CliError::Failed {
        message: format!("{server} answered {method} {path} with something else than `{expected}`: {error}"),
        hint: Some(format!(
            "use the same release of everbell on both sides; see the answer itself: everbell api {method} {path}"
        )),
    }
}

/// The name of a document for messages, without modules: `Page<Job>`.
fn name<T>() -> String {
    let whole = type_name::<T>();
    let is_end = |c: char| !(c.is_alphanumeric() || c == '_' || c == ':');
    let parts = whole.split_inclusive(is_end).map(|part| part.rsplit("::").next().unwrap_or(part));
    parts.collect()
}

#[cfg(test)]
mod tests {
    use everbell_wire as wire;
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_are_named_without_modules() {
        assert_eq!((name::<wire::Job>(), name::<wire::Page<wire::Job>>()), ("Job".to_owned(), "Page<Job>".to_owned()));
    }

    #[test]
    fn unreadable_answers_name_the_server_and_what_was_expected() {
        let told = |text: &str| {
            let error = serde_json::from_str::<wire::EndedSessions>(text).unwrap_err();
            unreadable("http://a:1", &Method::GET, "/x", &name::<wire::EndedSessions>(), &error).to_string()
        };
        let other = told("{}");
        let expected = "http://a:1 answered GET /x with something else than `EndedSessions`: missing field `ended`";
        assert!(other.starts_with(expected) && other.contains("everbell api GET /x"), "{other}");
        assert!(told("<html>").starts_with("http://a:1 answered GET /x with something that is not JSON\n  hint: "));
    }

    #[test]
    fn members_that_are_unknown_stay_in_the_json() {
        let both: WithJson<wire::EndedSessions> = serde_json::from_value(json!({ "ended": 1, "new": 2 })).unwrap();
        assert_eq!((both.document.ended, &both.json["new"]), (1, &json!(2)));
    }
}
