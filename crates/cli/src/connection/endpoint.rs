//! [`ServerEndpoint`]: where the server is and which token to send, from flags, the environment and files.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use everbell_client::{Client, Error, TraceContext, Url};

use super::Refusal;
use crate::{CliError, OnlineArgs};
use everbell_wire::secret::Secret;

/// The file in the data folder of a server that holds its first admin token.
pub const TOKEN_FILE: &str = "admin-token";

const DEFAULT_SERVER: &str = "http://127.0.0.1:7070";
/// A longer file cannot be a token.
const MAX_TOKEN_FILE_BYTES: u64 = 4_096;

/// The flags and variables that name a server and a token.
#[derive(Default)]
pub(super) struct EndpointInputs {
    pub(super) server_flag: Option<String>,
    pub(super) server_variable: Option<String>,
    pub(super) token_variable: Option<String>,
    pub(super) file_flag: Option<PathBuf>,
    pub(super) file_variable: Option<PathBuf>,
    pub(super) data_dir: PathBuf,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.trim().is_empty())
}

/// The trace that this command is a part of, such as that of a pipeline. A variable that cannot be read means that there is
/// none, as for the headers of the same names.
pub(super) fn trace_context() -> Option<TraceContext> {
    TraceContext::parse(&variable("TRACEPARENT")?, variable("TRACESTATE").as_deref()).ok()
}

impl EndpointInputs {
    pub(super) fn from_process(args: &OnlineArgs) -> EndpointInputs {
        EndpointInputs {
            server_flag: args.server.clone(),
            server_variable: variable("EVERBELL_SERVER"),
            token_variable: variable("EVERBELL_TOKEN"),
            file_flag: args.token_file.clone(),
            file_variable: variable("EVERBELL_TOKEN_FILE").map(PathBuf::from),
            data_dir: data_dir(),
        }
    }
}

fn data_dir() -> PathBuf {
    variable("EVERBELL_DATA_DIR").map_or_else(|| PathBuf::from("everbell-data"), PathBuf::from)
}

/// The file in which the first start of a server in this folder writes its admin token.
pub(crate) fn admin_token_file() -> PathBuf {
    data_dir().join(TOKEN_FILE)
}

/// A client of the server that `EVERBELL_SERVER` names, for requests that need no token.
pub(crate) fn client_without_token(timeout: Duration) -> Result<Client, CliError> {
    let inputs = EndpointInputs { server_variable: variable("EVERBELL_SERVER"), ..EndpointInputs::default() };
    Ok(ServerEndpoint::find(&inputs, timeout)?.0)
}

/// Which inputs named the server and the token, for hints.
#[derive(Debug, Default)]
pub(super) struct ServerEndpoint {
    /// `--server` or `EVERBELL_SERVER`; `None` for the default server.
    pub(super) server_source: Option<&'static str>,
    /// Such as `EVERBELL_TOKEN` or `` `ops.token` ``; `None` if there is no token.
    pub(super) token_source: Option<String>,
}

struct Token {
    secret: Secret,
    source: String,
}

impl ServerEndpoint {
    /// Finds the server and the token, and builds the client for them.
    pub(super) fn find(inputs: &EndpointInputs, timeout: Duration) -> Result<(Client, ServerEndpoint), CliError> {
        let (server, server_source) = match (&inputs.server_flag, &inputs.server_variable) {
            (Some(text), _) => (text.as_str(), Some("--server")),
            (None, Some(text)) => (text.as_str(), Some("EVERBELL_SERVER")),
            (None, None) => (DEFAULT_SERVER, None),
        };
        let mut endpoint = ServerEndpoint { server_source, token_source: None };
        let client = Client::builder(server).timeout(timeout).build().map_err(|error| match error {
            Error::Invalid(reason) => CliError::Invalid {
                message: format!("{}: {reason}", server_source.unwrap_or("--server")),
                hint: Some(format!("use an address such as `{DEFAULT_SERVER}` or `https://everbell.example.com`")),
            },
            other => endpoint.explain(other),
        })?;
        let Some(token) = find_token(inputs, client.server_url())? else { return Ok((client, endpoint)) };
        let client = client
            .with_token(token.secret.reveal())
            .map_err(|_| CliError::invalid(format!("the content of {} is not a token", token.source)))?;
        endpoint.token_source = Some(token.source);
        Ok((client, endpoint))
    }

    /// Turns an error of the client into one with a hint and an exit code.
    pub(super) fn explain(&self, error: Error) -> CliError {
        let message = error.to_string();
        match error {
            Error::Refused(refusal) => Refusal::new(*refusal, self).into(),
            Error::Timeout { .. } => CliError::Unreachable {
                message,
                hint: "check the server, or wait longer with `--request-timeout 2m`".to_owned(),
            },
            Error::Unreachable { .. } => CliError::Unreachable {
                message,
                hint: match self.server_source {
                    Some(source) => format!("check that a server listens on this address, which comes from {source}"),
                    None => {
                        "start a server with `everbell serve`, or name another one with `--server` or EVERBELL_SERVER"
                            .to_owned()
                    }
                },
            },
            Error::NotJson { .. } => CliError::Failed {
                message,
                hint: Some(
                    "check that this is the address of an everbell server, not of a proxy in front of it".to_owned(),
                ),
            },
            Error::UnexpectedDocument { call, .. } => CliError::Failed {
                message,
                hint: Some(format!(
                    "use the same release of everbell on both sides; show the response: everbell api {call}"
                )),
            },
            Error::Invalid(_) => CliError::invalid(message),
            _ => CliError::Failed { message, hint: None },
        }
    }
}

/// Whether the server is on this machine.
pub(super) fn is_loopback(server: &Url) -> bool {
    let host = server.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let named = host == "localhost" || host.ends_with(".localhost");
    named || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

fn find_token(inputs: &EndpointInputs, server: &Url) -> Result<Option<Token>, CliError> {
    // A flag takes precedence over the environment.
    if let Some(file) = &inputs.file_flag {
        return read_token(file, "--token-file").map(Some);
    }
    if let Some(text) = &inputs.token_variable {
        return Ok(Some(Token { secret: Secret::new(text.trim()), source: "EVERBELL_TOKEN".to_owned() }));
    }
    if let Some(file) = &inputs.file_variable {
        return read_token(file, "EVERBELL_TOKEN_FILE").map(Some);
    }
    // The data folder belongs to a server on this machine, so no other server gets its token.
    if !may_use_data_folder(server) {
        return Ok(None);
    }
    let file = inputs.data_dir.join(TOKEN_FILE);
    Ok(token_in(&file).ok().map(|secret| Token { secret, source: format!("`{}`", file.display()) }))
}

/// Stricter than [`is_loopback`]: other names than `localhost` may resolve to other machines.
fn may_use_data_folder(server: &Url) -> bool {
    let host = server.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn read_token(file: &Path, from: &str) -> Result<Token, CliError> {
    let secret = token_in(file).map_err(|reason| CliError::Invalid {
        message: format!("{from}: `{}` {reason}", file.display()),
        hint: Some("the file must hold a token on one line, as `everbell tokens create` prints it".to_owned()),
    })?;
    Ok(Token { secret, source: format!("`{}`", file.display()) })
}

fn token_in(file: &Path) -> Result<Secret, String> {
    let length = fs::metadata(file).map_err(|error| format!("cannot be read: {error}"))?.len();
    if length > MAX_TOKEN_FILE_BYTES {
        return Err("is too long for a token".to_owned());
    }
    let text = fs::read_to_string(file).map_err(|error| format!("cannot be read: {error}"))?;
    match text.trim() {
        "" => Err("is empty".to_owned()),
        token if token.contains(char::is_whitespace) => Err("holds more than a token".to_owned()),
        token => Ok(Secret::new(token)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(1);

    fn server(address: &str) -> EndpointInputs {
        EndpointInputs { server_flag: Some(address.to_owned()), ..EndpointInputs::default() }
    }

    #[test]
    fn wrong_addresses_are_refused_with_the_flag_that_named_them() {
        for address in ["", "localhost:7070", "ftp://a", "http://me:pw@a"] {
            let message = ServerEndpoint::find(&server(address), TIMEOUT).err().unwrap().to_string();
            assert!(message.starts_with("--server: ") && !message.contains("pw"), "{address}: {message}");
        }
    }

    #[test]
    fn token_of_the_data_folder_is_for_a_server_of_this_machine() {
        let folder = std::env::temp_dir().join(format!("everbell-endpoint-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("admin-token"), "evb_folder\n").unwrap();
        let token = |mut inputs: EndpointInputs| {
            inputs.data_dir.clone_from(&folder);
            let server = inputs.server_flag.clone().unwrap().parse().unwrap();
            find_token(&inputs, &server).unwrap().map(|token| token.secret.reveal().to_owned())
        };
        let local = ["http://127.0.0.1:1", "http://[::1]:1", "http://localhost"];
        assert!(local.iter().all(|address| token(server(address)).as_deref() == Some("evb_folder")));
        assert_eq!(token(server("http://10.0.0.1")), None);
        let mut inputs = server("http://10.0.0.1");
        inputs.token_variable = Some("evb_mine ".to_owned());
        assert_eq!(token(inputs).as_deref(), Some("evb_mine"));
        let mut inputs = server("http://10.0.0.1");
        inputs.file_flag = Some(folder.join("admin-token"));
        inputs.token_variable = Some("evb_mine".to_owned());
        assert_eq!(token(inputs).as_deref(), Some("evb_folder"));
        let inputs = EndpointInputs { file_flag: Some(folder.join("none")), ..EndpointInputs::default() };
        let message = ServerEndpoint::find(&inputs, TIMEOUT).err().unwrap().to_string();
        assert!(message.contains("none` cannot be read"), "{message}");
        fs::remove_dir_all(folder).unwrap();
    }
}
