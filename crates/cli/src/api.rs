//! `everbell api METHOD PATH`: any request, with the token.

use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use everbell_client::{Call, Method};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::output::{Output, printable};
use super::{CliError, Exit, OnlineArgs, Session};

/// The largest body that is read; the server accepts less.
const MAX_BODY_BYTES: u64 = 16 << 20;

pub(super) const EXAMPLES: &str = "\
Examples:
  everbell api GET /status
  everbell api GET /jobs -f status=paused -f limit=5
  echo '{\"cronExpression\":\"@daily\"}' | everbell api POST /cron/preview --input -";

#[derive(Debug, Args)]
pub(crate) struct ApiArgs {
    /// The method: GET, POST, PUT, PATCH or DELETE.
    #[arg(value_name = "METHOD", value_parser = method)]
    method: Method,
    /// The path, such as `/jobs` or `/api/v1/jobs`.
    #[arg(value_name = "PATH")]
    path: String,
    /// A query parameter for GET and DELETE, otherwise a member of the body. A value that is not JSON is sent as a string.
    #[arg(short, long = "field", value_name = "NAME=VALUE", value_parser = pair)]
    field: Vec<(String, String)>,
    /// Send this file as the body; `-` is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "field")]
    input: Option<PathBuf>,
    /// Print the status and the headers of the response first.
    #[arg(short, long)]
    include: bool,
    #[command(flatten)]
    online: OnlineArgs,
}

fn method(text: &str) -> Result<Method, String> {
    let known = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    let found = known.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(text));
    found.ok_or_else(|| "use GET, POST, PUT, PATCH or DELETE".to_owned())
}

/// `name=value`.
pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    if name.is_empty() { Err("the name is empty".to_owned()) } else { Ok((name.to_owned(), value.to_owned())) }
}

pub(crate) fn run(args: &ApiArgs, now: Timestamp, output: &mut Output) -> Result<Exit, CliError> {
    let session = Session::new(&args.online, now, output)?;
    if !args.path.starts_with('/') {
        return Err(CliError::invalid(format!("the path must begin with `/`, as in `/{}`", args.path.escape_debug())));
    }
    let in_query = args.method == Method::GET || args.method == Method::DELETE;
    let mut call: Call<()> = session.client.request(args.method.clone(), &args.path);
    if in_query {
        call = args.field.iter().fold(call, |call, (name, value)| call.parameter(name, value));
    }
    call = match &args.input {
        Some(file) => call.body("application/json", input(file)?),
        None if in_query => call,
        None => call.json(&members(&args.field)),
    };
    let answer = session.client.run(call.send_raw())?;
    if args.include {
        session.out.line(&format!("HTTP {}", answer.status))?;
        for (name, value) in &answer.headers {
            session.out.line(&format!("{name}: {}", printable(&String::from_utf8_lossy(value.as_bytes()))))?;
        }
        session.out.line("")?;
    }
    if !answer.text.is_empty() {
        session.out.line(answer.text.trim_end())?;
    }
    Ok(Exit::Success)
}

fn members(fields: &[(String, String)]) -> Value {
    let value = |text: &String| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()));
    Value::Object(fields.iter().map(|(name, text)| (name.clone(), value(text))).collect::<Map<_, _>>())
}

/// The text of a file, or of standard input.
pub(super) fn input(file: &std::path::Path) -> Result<String, CliError> {
    let mut text = String::new();
    let read = if file.as_os_str() == "-" {
        std::io::stdin().lock().take(MAX_BODY_BYTES).read_to_string(&mut text)
    } else {
        std::fs::File::open(file).and_then(|open| open.take(MAX_BODY_BYTES).read_to_string(&mut text))
    };
    read.map_err(|error| CliError::invalid(format!("cannot read `{}`: {error}", file.display())))?;
    Ok(text)
}
