//! [`Call`]: a request that is ready to be sent, and the type of its document.

use std::any::type_name;
use std::marker::PhantomData;
use std::pin::Pin;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, IF_MATCH};
use reqwest::{Method, Request};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::client::Client;
use crate::query::parameters;
use crate::{Error, Refusal};

/// The largest response that is read.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// A request to the API whose response is a `T`. Await it for the document, or [`send`](Call::send) it for the response.
///
/// A request that changes something applies to any revision, unless [`if_match`](Call::if_match) names one.
#[derive(Debug)]
#[must_use = "a call does nothing until it is awaited"]
pub struct Call<T> {
    client: Client,
    request: Result<Request, Error>,
    document: PhantomData<fn() -> T>,
}

/// A successful response of the server.
#[derive(Clone, Debug)]
pub struct Response<T> {
    /// The document.
    pub document: T,
    /// The HTTP status.
    pub status: u16,
    /// The body as it came, including members that this release does not know.
    pub text: String,
}

/// A response whose body was not parsed.
#[derive(Clone, Debug)]
pub struct RawResponse {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub text: String,
}

/// A document together with all of its JSON, including members that this release does not know.
#[derive(Clone, Debug)]
pub struct WithJson<T> {
    /// The document.
    pub document: T,
    /// The JSON that it was read from.
    pub json: Value,
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for WithJson<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WithJson<T>, D::Error> {
        let json = Value::deserialize(deserializer)?;
        let document = T::deserialize(&json).map_err(D::Error::custom)?;
        Ok(WithJson { document, json })
    }
}

impl Client {
    /// Prepares a request for which this client has no method of its own.
    pub fn request<T>(&self, method: Method, path: &str) -> Call<T> {
        Call::new(self.clone(), method, path)
    }

    pub(crate) fn get<T>(&self, path: &str) -> Call<T> {
        self.request(Method::GET, path)
    }

    pub(crate) fn post<T>(&self, path: &str) -> Call<T> {
        self.request(Method::POST, path)
    }

    pub(crate) fn put<T>(&self, path: &str) -> Call<T> {
        self.request(Method::PUT, path)
    }

    pub(crate) fn patch<T>(&self, path: &str) -> Call<T> {
        self.request(Method::PATCH, path)
    }

    pub(crate) fn delete<T>(&self, path: &str) -> Call<T> {
        self.request(Method::DELETE, path)
    }
}

impl<T> Call<T> {
    pub(crate) fn new(client: Client, method: Method, path: &str) -> Call<T> {
        let request = client.url(path).map(|url| Request::new(method, url));
        let call = Call { client, request, document: PhantomData };
        call.edit(|client, request| {
            request.headers_mut().extend(client.authorization());
            request.headers_mut().extend(client.trace());
            if *request.method() != Method::GET {
                request.headers_mut().insert(IF_MATCH, HeaderValue::from_static("*"));
            }
            Ok(())
        })
    }

    /// Adds the members of a value to the query. Absent values are left out; those of a list are separated by commas.
    pub fn query(self, query: &impl Serialize) -> Call<T> {
        self.edit(|_, request| {
            let pairs = parameters(query)?;
            if !pairs.is_empty() {
                request.url_mut().query_pairs_mut().extend_pairs(pairs);
            }
            Ok(())
        })
    }

    /// Adds a parameter to the query.
    pub fn parameter(self, name: &str, value: &str) -> Call<T> {
        self.edit(|_, request| {
            request.url_mut().query_pairs_mut().append_pair(name, value);
            Ok(())
        })
    }

    pub(crate) fn reason(self, reason: Option<&str>) -> Call<T> {
        reason.into_iter().fold(self, |call, reason| call.parameter("reason", reason))
    }

    /// Sends this value as the body, in JSON.
    pub fn json(self, body: &impl Serialize) -> Call<T> {
        match serde_json::to_string(body) {
            Ok(text) => self.body("application/json", text),
            Err(error) => self.edit(|_, _| Err(Error::Invalid(error.to_string()))),
        }
    }

    /// Sends this text as the body.
    pub fn body(self, media_type: &'static str, text: String) -> Call<T> {
        self.edit(|_, request| {
            request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
            *request.body_mut() = Some(text.into());
            Ok(())
        })
    }

    /// Applies the change only if the object still has this revision; otherwise the server refuses it.
    pub fn if_match(self, revision: u64) -> Call<T> {
        self.header("if-match", &format!("\"{revision}\""))
    }

    /// Makes it safe to send a POST request again: the server carries out each key once.
    pub fn idempotency_key(self, key: &str) -> Call<T> {
        self.header("idempotency-key", key)
    }

    fn header(self, name: &'static str, value: &str) -> Call<T> {
        self.edit(|_, request| {
            let invalid = |_| Error::Invalid(format!("{name}: `{}` is not a header", value.escape_debug()));
            request.headers_mut().insert(name, HeaderValue::try_from(value).map_err(invalid)?);
            Ok(())
        })
    }

    /// Reads the response as another type, such as [`WithJson<T>`].
    pub fn read_as<U>(self) -> Call<U> {
        Call { client: self.client, request: self.request, document: PhantomData }
    }

    fn edit(mut self, change: impl FnOnce(&Client, &mut Request) -> Result<(), Error>) -> Call<T> {
        if let Ok(request) = &mut self.request
            && let Err(error) = change(&self.client, request)
        {
            self.request = Err(error);
        }
        self
    }

    /// Sends the request, and returns the response whatever its status is.
    pub async fn exchange(self) -> Result<RawResponse, Error> {
        let Call { client, request, .. } = self;
        let request = request?;
        let exchange = async {
            let response = client.http.execute(request).await?;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let text = String::from_utf8_lossy(&read_body(response).await?).into_owned();
            Ok(RawResponse { status, headers, text })
        };
        client.within_timeout(exchange).await
    }

    /// Sends the request, and returns the response without parsing its body.
    pub async fn send_raw(self) -> Result<RawResponse, Error> {
        let call = self.name();
        let response = self.exchange().await?;
        if (200..300).contains(&response.status) {
            return Ok(response);
        }
        Err(Refusal::new(call, response.status, &response.headers, &response.text).into())
    }

    pub(crate) fn into_request(self) -> Result<Request, Error> {
        self.request
    }

    /// The client, and the path of the request.
    pub(crate) fn origin(&self) -> (Client, String) {
        let path = self.request.as_ref().map_or_else(|_| String::new(), |request| request.url().path().to_owned());
        (self.client.clone(), path)
    }

    /// Such as `GET /api/v1/jobs`.
    fn name(&self) -> String {
        self.request
            .as_ref()
            .map_or_else(|_| String::new(), |request| format!("{} {}", request.method(), request.url().path()))
    }
}

impl<T: DeserializeOwned> Call<T> {
    /// Sends the request, and returns the document together with the response.
    pub async fn send(self) -> Result<Response<T>, Error> {
        let (client, call) = (self.client.clone(), self.name());
        let RawResponse { status, text, .. } = self.send_raw().await?;
        let document = parse(&client, &call, if text.is_empty() { "null" } else { &text })?;
        Ok(Response { document, status, text })
    }
}

impl<T: DeserializeOwned + 'static> IntoFuture for Call<T> {
    type Output = Result<T, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async { Ok(self.send().await?.document) })
    }
}

/// Reads a body, or reports which server sent what instead.
pub(crate) fn parse<T: DeserializeOwned>(client: &Client, call: &str, text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| unreadable(client.server(), call, document_name::<T>(), error))
}

fn unreadable(server: &str, call: &str, expected: String, source: serde_json::Error) -> Error {
    let (server, call) = (server.to_owned(), call.to_owned());
    if source.is_syntax() || source.is_eof() {
        return Error::NotJson { server, call };
    }
    Error::UnexpectedDocument { server, call, expected, source }
}

/// The name of a document for messages, without modules: `Page<Job>`.
fn document_name<T>() -> String {
    let whole = type_name::<T>();
    let is_end = |c: char| !(c.is_alphanumeric() || c == '_' || c == ':');
    let parts = whole.split_inclusive(is_end).map(|part| part.rsplit("::").next().unwrap_or(part));
    parts.collect()
}

async fn read_body(mut response: reqwest::Response) -> Result<Vec<u8>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_RESPONSE_BYTES {
            break;
        }
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use everbell_wire as wire;
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_are_named_without_modules() {
        let names = (document_name::<wire::Job>(), document_name::<wire::Page<wire::Job>>());
        assert_eq!(names, ("Job".to_owned(), "Page<Job>".to_owned()));
    }

    #[test]
    fn unreadable_responses_name_the_server_and_the_expected_document() {
        let message = |text: &str| {
            let error = serde_json::from_str::<wire::EndedSessions>(text).unwrap_err();
            unreadable("http://a:1", "GET /x", document_name::<wire::EndedSessions>(), error).to_string()
        };
        let expected = "http://a:1 answered GET /x with something other than `EndedSessions`: missing field `ended`";
        assert!(message("{}").starts_with(expected), "{}", message("{}"));
        assert_eq!(message("<html>"), "http://a:1 answered GET /x with something that is not JSON");
    }

    #[test]
    fn unknown_members_stay_in_the_json() {
        let both: WithJson<wire::EndedSessions> = serde_json::from_value(json!({ "ended": 1, "new": 2 })).unwrap();
        assert_eq!((both.document.ended, &both.json["new"]), (1, &json!(2)));
    }

    #[test]
    fn changes_apply_to_any_revision_unless_one_is_named() {
        let client = Client::builder("http://a").build().unwrap();
        let header = |call: Call<()>| call.into_request().unwrap().headers().get(IF_MATCH).cloned();
        assert_eq!(header(client.get("/jobs")), None);
        assert_eq!(header(client.post("/jobs")).unwrap(), "*");
        assert_eq!(header(client.post("/jobs").if_match(7)).unwrap(), "\"7\"");
        assert!(client.post::<()>("/jobs").idempotency_key("a\nb").into_request().is_err());
    }
}
