//! Where the server is, and with which token it is called.

use std::fs;
use std::path::{Path, PathBuf};

use percent_encoding::AsciiSet;
use reqwest::Url;

use crate::{CliError, OnlineArgs};
use everbell_wire::percent;
use everbell_wire::secret::Secret;

/// The file in the data folder of a server that holds its first admin token.
pub const TOKEN_FILE: &str = "admin-token";

/// Where a server is if nobody says.
const DEFAULT_SERVER: &str = "http://127.0.0.1:7070";
/// Where a server mounts its API unless its configuration says otherwise.
const DEFAULT_MOUNT: &str = "/api/v1";
/// What is there once, outside of every mount.
const ROOTS: [&str; 7] = ["/api/", "/livez", "/readyz", "/healthz", "/metrics", "/openapi.json", "/docs/"];
/// Longer files hold no token.
const LONGEST_TOKEN: u64 = 4_096;

/// What was said about the server and the token, by whom.
#[derive(Default)]
pub(super) struct Given {
    pub(super) server_flag: Option<String>,
    pub(super) server_variable: Option<String>,
    pub(super) token_variable: Option<String>,
    pub(super) file_flag: Option<PathBuf>,
    pub(super) file_variable: Option<PathBuf>,
    pub(super) data_dir: PathBuf,
}

impl Given {
    pub(super) fn from_process(args: &OnlineArgs) -> Given {
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.trim().is_empty());
        Given {
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
    let named = std::env::var("EVERBELL_DATA_DIR").ok().filter(|text| !text.trim().is_empty());
    named.map_or_else(|| PathBuf::from("everbell-data"), PathBuf::from)
}

/// The file in which the first start of a server of this folder wrote its token.
pub(crate) fn first_token_file() -> PathBuf {
    data_dir().join(TOKEN_FILE)
}

/// A token and who named it.
pub(super) struct Token {
    pub(super) text: Secret,
    /// For messages: `EVERBELL_TOKEN`, `` `ops.token` ``.
    pub(super) source: String,
}

/// A server, where its API is mounted, and the token for it.
pub(super) struct Place {
    pub(super) server: Url,
    /// Who named it, if anybody did.
    pub(super) server_from: Option<&'static str>,
    mount: String,
    pub(super) token: Option<Token>,
}

impl Place {
    pub(super) fn find(given: &Given) -> Result<Place, CliError> {
        let (named, server_from) = match (&given.server_flag, &given.server_variable) {
            (Some(text), _) => (text.as_str(), Some("--server")),
            (None, Some(text)) => (text.as_str(), Some("EVERBELL_SERVER")),
            (None, None) => (DEFAULT_SERVER, None),
        };
        let mut server = address(named, server_from.unwrap_or("--server"))?;
        let path = server.path().trim_end_matches('/').to_owned();
        let mount = if path.is_empty() { DEFAULT_MOUNT.to_owned() } else { path };
        server.set_path("");
        let token = token(given, &server)?;
        Ok(Place { server, server_from, mount, token })
    }

    /// Whether the server is on this machine.
    pub(super) fn is_loopback(&self) -> bool {
        let host = self.server.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let named = host == "localhost" || host.ends_with(".localhost");
        named || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
    }

    /// The address of a path: below the mount, unless it begins like one that is not.
    pub(super) fn url(&self, path: &str) -> Result<Url, CliError> {
        let is_root = ROOTS.iter().any(|root| path.starts_with(root));
        let text =
            format!("{}{}{path}", self.server.as_str().trim_end_matches('/'), if is_root { "" } else { &self.mount });
        let url = Url::parse(&text).ok().filter(|url| url.origin() == self.server.origin());
        url.ok_or_else(|| CliError::invalid(format!("`{}` is not a path", path.escape_debug())))
    }
}

/// The path of a job, which people name by its key, its key and version, or its id.
pub(crate) fn job_path(name: &str) -> String {
    if name.parse::<everbell_core::JobId>().is_ok() {
        return format!("/jobs/{name}");
    }
    format!("/jobs/key:{}", segment(name))
}

/// A text as one segment of a path.
pub(crate) fn segment(text: &str) -> String {
    const ENCODED: &AsciiSet = &percent::reserved_except(b"@:");
    let encoded = percent::encode(text, ENCODED);
    // Two dots would be the folder above.
    if encoded.bytes().all(|byte| byte == b'.') { encoded.replace('.', "%2E") } else { encoded }
}

/// The address of a server, in which no password may stand: others see command lines.
fn address(text: &str, from: &str) -> Result<Url, CliError> {
    let refused = |reason: &str| CliError::Invalid {
        message: format!("{from}: {reason}"),
        hint: Some(format!("name it as in `{DEFAULT_SERVER}` or `https://everbell.example.com`")),
    };
    let url = Url::parse(text.trim()).map_err(|_| refused("this is not the address of a server"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(refused("this is not the address of a server"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("an address holds no password; give a token with EVERBELL_TOKEN or `--token-file`"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refused("an address ends before `?` and `#`"));
    }
    Ok(url)
}

fn token(given: &Given, server: &Url) -> Result<Option<Token>, CliError> {
    // A flag is nearer than the environment.
    if let Some(file) = &given.file_flag {
        return read(file, "--token-file").map(Some);
    }
    if let Some(text) = &given.token_variable {
        return Ok(Some(Token { text: Secret::new(text.trim()), source: "EVERBELL_TOKEN".to_owned() }));
    }
    if let Some(file) = &given.file_variable {
        return read(file, "EVERBELL_TOKEN_FILE").map(Some);
    }
    // That of the server of this folder, which is on this machine: no other server gets to see it.
    if !is_local(server) {
        return Ok(None);
    }
    let file = given.data_dir.join(TOKEN_FILE);
    Ok(content(&file).ok().map(|text| Token { text, source: format!("`{}`", file.display()) }))
}

fn is_local(server: &Url) -> bool {
    let host = server.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn read(file: &Path, from: &str) -> Result<Token, CliError> {
    let text = content(file).map_err(|reason| CliError::Invalid {
        message: format!("{from}: `{}` {reason}", file.display()),
        hint: Some("the file holds a token on one line, such as `everbell tokens create` prints it".to_owned()),
    })?;
    Ok(Token { text, source: format!("`{}`", file.display()) })
}

fn content(file: &Path) -> Result<Secret, String> {
    let length = fs::metadata(file).map_err(|error| format!("cannot be read: {error}"))?.len();
    if length > LONGEST_TOKEN {
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

    fn place(given: &Given) -> Result<Place, String> {
        Place::find(given).map_err(|error| error.to_string())
    }

    fn at(server: &str) -> Given {
        Given { server_flag: Some(server.to_owned()), ..Given::default() }
    }

    #[test]
    fn paths_are_below_the_mount_unless_they_are_not() {
        let urls = |place: &Place| ["/jobs", "/api/v2/x", "/readyz"].map(|path| place.url(path).unwrap().to_string());
        let usual = place(&Given::default()).unwrap();
        let expected = ["/api/v1/jobs", "/api/v2/x", "/readyz"].map(|path| format!("{DEFAULT_SERVER}{path}"));
        assert_eq!((urls(&usual), usual.server_from), (expected, None));
        let mounted = place(&at("https://bells.example/cron/")).unwrap();
        assert_eq!(urls(&mounted)[0], "https://bells.example/cron/jobs");
        assert!(mounted.url("@evil.example/").is_ok_and(|url| url.host_str() == Some("bells.example")));
    }

    #[test]
    fn names_stay_in_their_segment() {
        assert_eq!(job_path("daily-briefing@2"), "/jobs/key:daily-briefing@2");
        assert_eq!(job_path("a/b ?é"), "/jobs/key:a%2Fb%20%3F%C3%A9");
        let id = "019a8d10-7c00-7000-8000-000000000001";
        assert_eq!((job_path(id), segment("..")), (format!("/jobs/{id}"), "%2E%2E".to_owned()));
    }

    #[test]
    fn an_address_is_that_of_a_server() {
        for text in ["", "localhost:7070", "ftp://a", "http://", "http://a?b", "http://a#b", "http://me:pw@a"] {
            let told = place(&at(text)).err().unwrap();
            assert!(told.starts_with("--server: ") && !told.contains("pw"), "{text}: {told}");
        }
    }

    #[test]
    fn the_token_of_the_folder_is_for_a_server_of_this_machine() {
        let folder = std::env::temp_dir().join(format!("everbell-place-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("admin-token"), "evb_folder\n").unwrap();
        let token = |mut given: Given| {
            given.data_dir.clone_from(&folder);
            Place::find(&given).unwrap().token.map(|token| token.text.reveal().to_owned())
        };
        let local = ["http://127.0.0.1:1", "http://[::1]:1", "http://localhost"];
        assert!(local.iter().all(|server| token(at(server)).as_deref() == Some("evb_folder")));
        assert_eq!(token(at("http://10.0.0.1")), None);
        let mut given = at("http://10.0.0.1");
        given.token_variable = Some("evb_mine ".to_owned());
        assert_eq!(token(given).as_deref(), Some("evb_mine"));
        let mut given = at("http://10.0.0.1");
        given.file_flag = Some(folder.join("admin-token"));
        given.token_variable = Some("evb_mine".to_owned());
        assert_eq!(token(given).as_deref(), Some("evb_folder"));
        let given = Given { file_flag: Some(folder.join("none")), ..Given::default() };
        assert!(place(&given).err().unwrap().contains("none` cannot be read"));
        fs::remove_dir_all(folder).unwrap();
    }
}
