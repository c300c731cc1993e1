//! [`Connection`]: the client of a command, with errors that have a hint and an exit code.

pub(crate) mod contexts;
mod endpoint;

use std::ops::Deref;
use std::time::Duration;

use everbell_client::{Call, Client, Error, List, Pages, Response};
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;

use super::{CliError, OnlineArgs};
use endpoint::{EndpointInputs, ServerEndpoint};

pub use endpoint::TOKEN_FILE;
pub(crate) use endpoint::{admin_token_file, client_without_token};

/// A server, as the flags, the environment or the data folder name it. A command sends one request after the other, so
/// calls block until they are done.
pub(crate) struct Connection {
    client: Client,
    endpoint: ServerEndpoint,
    runtime: Runtime,
}

impl Deref for Connection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Connection {
    /// Finds the server and the token. Sends nothing.
    pub(crate) fn new(args: &OnlineArgs) -> Result<Connection, CliError> {
        let inputs = EndpointInputs::from_process(args)?;
        let (client, endpoint) = ServerEndpoint::find(&inputs, args.request_timeout)?;
        let client = match endpoint::trace_context() {
            Some(context) => client.with_trace_context(context),
            None => client,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Connection { client, endpoint, runtime })
    }

    /// The context that names the server, if one does.
    pub(crate) fn context(&self) -> Option<&str> {
        self.endpoint.context.as_deref()
    }

    /// Whether the token leaves this machine without encryption.
    pub(crate) fn sends_token_in_clear(&self) -> bool {
        let server = self.client.server_url();
        self.endpoint.token_source.is_some() && server.scheme() == "http" && !endpoint::is_loopback(server)
    }

    /// Sends a request and reads its response.
    pub(crate) fn send<T: DeserializeOwned>(&self, call: Call<T>) -> Result<Response<T>, CliError> {
        self.run(call.send())
    }

    /// Reads the first items of a list, from as many pages as needed.
    pub(crate) fn take<T: DeserializeOwned>(&self, pages: Pages<T>, max_items: usize) -> Result<List<T>, CliError> {
        self.run(pages.take(max_items))
    }

    /// Waits, unless the user interrupts.
    pub(crate) fn sleep(&self, time: Duration) -> Result<(), CliError> {
        self.run(async {
            tokio::time::sleep(time).await;
            Ok(())
        })
    }

    /// Waits for a call, unless the user interrupts.
    pub(crate) fn run<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, CliError> {
        self.runtime.block_on(async {
            tokio::select! {
                done = call => done.map_err(|error| self.endpoint.explain(error)),
                _ = tokio::signal::ctrl_c() => Err(CliError::Interrupted),
            }
        })
    }
}
