//! Calls that are done only if the job is still the one that was looked at.

use reqwest::Method;
use reqwest::header::{HeaderValue, IF_MATCH};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Answer, Client, Parameter};
use crate::CliError;

impl Client {
    /// A call about a job of this revision; of any, if there is none.
    pub(crate) fn call_if<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        query: &[Parameter<'_>],
        body: Option<&Value>,
        revision: Option<u64>,
    ) -> Result<Answer<T>, CliError> {
        let mut request = match body {
            Some(body) => self.with_body(method, path, body)?,
            None => self.request(method, path, query)?,
        };
        if let Some(value) = revision.and_then(|revision| HeaderValue::try_from(format!("\"{revision}\"")).ok()) {
            request.headers_mut().insert(IF_MATCH, value);
        }
        self.send(request)
    }
}
