//! [`ServerEndpoint`]: where the server is and which token to send, from flags, the environment and files.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use everbell_client::{Client, Error, TraceContext, Url};

use super::contexts::{Context, Contexts};
use crate::refusal::Refusal;
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
    pub(super) context: Option<NamedContext>,
}

/// A context, and how it was named.
pub(super) struct NamedContext {
    pub(super) name: String,
    pub(super) context: Context,
    /// A flag names it, so it takes precedence over the environment.
    pub(super) by_flag: bool,
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
    pub(super) fn from_process(args: &OnlineArgs) -> Result<EndpointInputs, CliError> {
        Ok(EndpointInputs {
            context: NamedContext::find(args)?,
            server_flag: args.server.clone(),
            server_variable: variable("EVERBELL_SERVER"),
            token_variable: variable("EVERBELL_TOKEN"),
            file_flag: args.token_file.clone(),
            file_variable: variable("EVERBELL_TOKEN_FILE").map(PathBuf::from),
            data_dir: data_dir(),
        })
    }
}

impl NamedContext {
    /// The context that a flag or a variable names, else the current one; `None` if a server is named without one.
    fn find(args: &OnlineArgs) -> Result<Option<NamedContext>, CliError> {
        let named = |from: &str, name: String, by_flag| {
            let context = Contexts::load()?.find(from, &name)?.clone();
            Ok(Some(NamedContext { name, context, by_flag }))
        };
        if let Some(name) = &args.context {
            return named("--context", name.clone(), true);
        }
        if args.server.is_some() || variable("EVERBELL_SERVER").is_some() {
            return Ok(None);
        }
        if let Some(name) = variable("EVERBELL_CONTEXT") {
            return named("EVERBELL_CONTEXT", name, false);
        }
        let Contexts { current, contexts } = Contexts::load()?;
        let current = current.and_then(|name| contexts.get(&name).cloned().map(|context| (name, context)));
        Ok(current.map(|(name, context)| NamedContext { name, context, by_flag: false }))
    }

    fn in_words(&self) -> String {
        format!("the context `{}`", self.name)
    }

    /// Its token, if it has one.
    fn token(&self) -> Result<Option<Token>, CliError> {
        let source = self.in_words();
        match (&self.context.token_file, &self.context.token) {
            (Some(file), _) => read_token(file, &source).map(Some),
            (None, Some(token)) => Ok(Some(Token { secret: Secret::new(token.trim()), source })),
            (None, None) => Ok(None),
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

/// The inputs that named the server and the token, for hints.
#[derive(Debug, Default)]
pub(super) struct ServerEndpoint {
    /// `--server`, `EVERBELL_SERVER` or a context; `None` for the default server.
    pub(super) server_source: Option<String>,
    /// The context that names the server.
    pub(super) context: Option<String>,
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
        let named = inputs.context.as_ref().filter(|named| named.by_flag || inputs.server_variable.is_none());
        let named = named.filter(|_| inputs.server_flag.is_none());
        let (server, server_source) = match (&inputs.server_flag, named, &inputs.server_variable) {
            (Some(text), _, _) => (text.as_str(), Some("--server".to_owned())),
            (None, Some(named), _) => (named.context.server.as_str(), Some(named.in_words())),
            (None, None, Some(text)) => (text.as_str(), Some("EVERBELL_SERVER".to_owned())),
            (None, None, None) => (DEFAULT_SERVER, None),
        };
        let context = named.map(|named| named.name.clone());
        let mut endpoint = ServerEndpoint { server_source, context, token_source: None };
        let client = Client::builder(server).timeout(timeout).build().map_err(|error| match error {
            Error::Invalid(reason) => CliError::Invalid {
                message: format!("{}: {reason}", endpoint.server_source.as_deref().unwrap_or("--server")),
                hint: Some(format!("use an address such as `{DEFAULT_SERVER}` or `https://everbell.example.com`")),
            },
            other => endpoint.explain(other),
        })?;
        let Some(token) = find_token(inputs, named, client.server_url())? else { return Ok((client, endpoint)) };
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
            Error::Refused(refusal) => {
                let hint = self.refusal_hint(refusal.status, refusal.is_explained());
                Refusal::new(*refusal, hint).into()
            }
            Error::Timeout { .. } => CliError::Unreachable {
                message,
                hint: "check the server, or wait longer with `--request-timeout 2m`".to_owned(),
            },
            Error::Unreachable { .. } => CliError::Unreachable {
                message,
                hint: match &self.server_source {
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

    fn refusal_hint(&self, status: u16, is_explained: bool) -> Option<String> {
        Some(match (status, &self.token_source) {
            (401, None) => {
                "set EVERBELL_TOKEN, name a file with `--token-file`, or run this in the folder of the server, \
                            which has `everbell-data/admin-token`"
                    .to_owned()
            }
            (401, Some(source)) => {
                format!(
                    "the token in {source} is not valid there: it expired, was revoked, or belongs to another server"
                )
            }
            (403, Some(source)) => {
                format!(
                    "the role of the token in {source} is too low; an admin can create another: everbell tokens create"
                )
            }
            (500..=599, _) => "see the log of the server, or try again in a moment".to_owned(),
            _ if !is_explained => "check that this is the address of an everbell server".to_owned(),
            _ => return None,
        })
    }
}

/// Whether the server is on this machine.
pub(super) fn is_loopback(server: &Url) -> bool {
    let host = server.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let named = host == "localhost" || host.ends_with(".localhost");
    named || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Finds the token. That of a context is only for the server of the context.
fn find_token(inputs: &EndpointInputs, named: Option<&NamedContext>, server: &Url) -> Result<Option<Token>, CliError> {
    // A flag takes precedence over the environment.
    if let Some(file) = &inputs.file_flag {
        return read_token(file, "--token-file").map(Some);
    }
    // Tokens of the environment are for whatever server that names, not for one that has its own.
    if let Some(token) = named.map(NamedContext::token).transpose()?.flatten() {
        return Ok(Some(token));
    }
    // Nor is one that was set beside `EVERBELL_SERVER` for the server of a context.
    let is_of_another = named.is_some() && inputs.server_variable.is_some();
    if let Some(text) = inputs.token_variable.as_ref().filter(|_| !is_of_another) {
        return Ok(Some(Token { secret: Secret::new(text.trim()), source: "EVERBELL_TOKEN".to_owned() }));
    }
    if let Some(file) = inputs.file_variable.as_ref().filter(|_| !is_of_another) {
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
    fn refusals_of_other_programs_get_a_hint_at_the_address() {
        let mut refusal = everbell_client::Refusal::default();
        (refusal.call, refusal.status) = ("POST /api/v1/jobs".to_owned(), 502);
        let message = ServerEndpoint::default().explain(Error::Refused(Box::new(refusal))).to_string();
        assert!(message.contains(": the server answered 502 without a reason\n  hint: "), "{message}");
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
            find_token(&inputs, None, &server).unwrap().map(|token| token.secret.reveal().to_owned())
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

    #[test]
    fn context_names_the_server_unless_a_flag_or_the_environment_does() {
        let context =
            Context { server: "http://10.0.0.9".to_owned(), token_file: None, token: Some("evb_c".to_owned()) };
        let inputs = |by_flag, server_flag: Option<&str>, server_variable: Option<&str>, token: Option<&str>| {
            let context = context.clone();
            EndpointInputs {
                context: Some(NamedContext { name: "prod".to_owned(), context, by_flag }),
                server_flag: server_flag.map(str::to_owned),
                server_variable: server_variable.map(str::to_owned),
                token_variable: token.map(str::to_owned),
                ..EndpointInputs::default()
            }
        };
        let found = |inputs: EndpointInputs| {
            let (client, endpoint) = ServerEndpoint::find(&inputs, TIMEOUT).unwrap();
            let host = client.server_url().host_str().unwrap_or_default().to_owned();
            (host, endpoint.context, endpoint.token_source)
        };
        let prod = |token: &str| ("10.0.0.9".to_owned(), Some("prod".to_owned()), Some(token.to_owned()));
        assert_eq!(found(inputs(false, None, None, None)), prod("the context `prod`"));
        assert_eq!(found(inputs(false, None, None, Some("evb_e"))), prod("the context `prod`"));
        assert_eq!(found(inputs(true, None, Some("http://10.0.0.7"), Some("evb_e"))), prod("the context `prod`"));
        let other = |host: &str| (host.to_owned(), None, None);
        assert_eq!(found(inputs(false, None, Some("http://10.0.0.7"), None)), other("10.0.0.7"), "and not its token");
        assert_eq!(found(inputs(false, Some("http://10.0.0.8"), None, None)), other("10.0.0.8"));
    }
}
