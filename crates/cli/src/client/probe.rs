//! A question to a server that needs no token: is it well?

use std::time::Duration;

use reqwest::Method;

use super::place::{Given, Place};
use super::{Client, Parameter, http, read};
use crate::CliError;

/// Asks the server that `EVERBELL_SERVER` names. What is wrong is told in one line.
pub(crate) fn probe(path: &str, patience: Duration) -> Result<(), String> {
    let variable = std::env::var("EVERBELL_SERVER").ok().filter(|text| !text.trim().is_empty());
    let given = Given { server_variable: variable, ..Given::default() };
    let first_line = |error: CliError| error.to_string().lines().next().unwrap_or_default().to_owned();
    let place = Place::find(&given).map_err(first_line)?;
    let url = place.url(path).map_err(first_line)?;
    let client = http(&place.server).map_err(first_line)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let exchange = async {
        let response = client.execute(reqwest::Request::new(Method::GET, url.clone())).await?;
        Ok::<_, reqwest::Error>((response.status().as_u16(), read(response).await?))
    };
    match runtime.block_on(async { tokio::time::timeout(patience, exchange).await }) {
        Err(_) => Err(format!("{url}: no answer within {} s", patience.as_secs())),
        Ok(Err(error)) => Err(format!("{url}: {}", deepest(&error))),
        Ok(Ok((200..=299, _))) => Ok(()),
        Ok(Ok((status, body))) => Err(format!("{url}: {status}{}", wrong(&String::from_utf8_lossy(&body)))),
    }
}

impl Client {
    /// What a probe says, also if that is no: status and text.
    pub(crate) fn said(&self, path: &str, query: &[Parameter<'_>]) -> Result<(u16, String), CliError> {
        let request = self.request(Method::GET, path, query)?;
        let exchange = async {
            let response = self.http.execute(request).await?;
            Ok::<_, reqwest::Error>((response.status().as_u16(), read(response).await?))
        };
        match self.block(async { Ok(tokio::time::timeout(self.timeout, exchange).await) })? {
            Err(_) => Err(self.too_late()),
            Ok(Err(error)) => Err(self.unreachable(&error)),
            Ok(Ok((status, body))) => Ok((status, String::from_utf8_lossy(&body).into_owned())),
        }
    }
}

/// What connecting failed of, below what it was for.
fn deepest(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// The checks that a server says are not in order.
fn wrong(text: &str) -> String {
    let checks: Vec<String> =
        text.lines().filter_map(|line| line.strip_prefix("[-] ")).map(|line| line.escape_debug().to_string()).collect();
    if checks.is_empty() { String::new() } else { format!(" not ready: {}", checks.join("; ")) }
}
