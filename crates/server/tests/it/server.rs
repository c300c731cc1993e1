//! A real server for a test: the real binary, on a database of its own, over a real socket.

#![allow(clippy::unwrap_used, reason = "also the functions that only tests call may panic")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use everbell_store::testing::TestDatabase;
use jiff::Timestamp;
use serde_json::Value;

/// Targets for every test: one that prints, one that takes long, one that fails.
pub(crate) const TARGETS: &str = r#"
[[target]]
label = "print"
type = "log"
[[target]]
label = "sleep"
type = "command"
argv = ["sleep", "60"]
[[target]]
label = "fail"
type = "command"
argv = ["false"]
"#;

/// On a free port.
pub(crate) const SERVE: [&str; 3] = ["serve", "--listen", "127.0.0.1:0"];

/// Every wait of a test ends after this.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A time of a document. As texts times do not stand in order: `31.27Z` comes after `31.277Z`.
pub(crate) fn time(value: &Value) -> Timestamp {
    value.as_str().unwrap().parse().unwrap()
}

/// Looks again and again, as long as a test has patience.
pub(crate) fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    for _ in 0..REQUEST_TIMEOUT.as_millis() / 25 {
        if let Some(found) = look() {
            return Some(found);
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    None
}

/// A folder that goes with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("everbell-it-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running server.
pub(crate) struct Server {
    child: Running,
    pub(crate) address: String,
    /// Of the first admin.
    pub(crate) token: String,
    /// Its output before it was ready.
    pub(crate) greeting: String,
    pub(crate) folder: Folder,
    // After the process that uses it.
    database: Option<TestDatabase>,
}

impl Server {
    /// On SQLite, with the usual targets.
    pub(crate) fn start() -> Server {
        Server::with(TARGETS).registered()
    }

    /// Once its targets are known to all: an instance registers a moment after it listens.
    pub(crate) fn registered(self) -> Server {
        self.until("/instances", |list| list["items"].as_array().is_some_and(|items| !items.is_empty()));
        self
    }

    /// On SQLite, with this configuration.
    pub(crate) fn with(config: &str) -> Server {
        Server::launch(config, None, &[])
    }

    /// On a PostgreSQL database of its own.
    pub(crate) fn postgres(config: &str) -> Server {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let database = runtime.block_on(TestDatabase::create());
        Server::launch(config, Some(database), &[])
    }

    pub(crate) fn launch(config: &str, database: Option<TestDatabase>, env: &[(&str, &str)]) -> Server {
        let folder = Folder::new();
        fs::write(folder.path().join("everbell.toml"), config).unwrap();
        let url = database.as_ref().map(|database| ("EVERBELL_DATABASE_URL", database.url()));
        let env: Vec<(&str, &str)> = env.iter().copied().chain(url).collect();
        let server = Server::in_folder(folder, &[], &env);
        Server { database, ..server }
    }

    /// With the configuration that is in the folder, if one is.
    pub(crate) fn in_folder(folder: Folder, args: &[&str], env: &[(&str, &str)]) -> Server {
        let mut command = quiet(folder.path());
        command.args(SERVE).args(args).envs(env.iter().copied());
        Server::begin(folder, command)
    }

    /// By this command, which somehow serves on a free port.
    pub(crate) fn begin(folder: Folder, mut command: Command) -> Server {
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut greeting = String::new();
        while !greeting.contains("\n  jobs ") && !greeting.starts_with('{') {
            if lines.read_line(&mut greeting).unwrap() == 0 {
                let log = fs::read_to_string(folder.path().join("log")).unwrap();
                panic!("the server ended: {greeting}{log}");
            }
        }
        let is_end = |c: char| c.is_whitespace() || c == '"';
        let after = |text: &str| greeting.split_once(text).and_then(|(_, rest)| rest.split(is_end).next());
        let address = after("listening on http://").unwrap().to_owned();
        // The first start names the file, and prints the token only to a terminal.
        let file = after("first admin token is in ").map(|file| folder.path().join(file));
        let token = file.map_or_else(String::new, |file| fs::read_to_string(file).unwrap().trim().to_owned());
        // It goes on printing for nobody.
        std::thread::spawn(move || drop(std::io::copy(&mut lines, &mut std::io::sink())));
        Server { child: Running(child), address, token, greeting, folder, database: None }
    }

    /// The folder of a server that has ended, for another one.
    pub(crate) fn take_folder(self) -> Folder {
        self.folder
    }

    /// Kills it, does something meanwhile, and starts another one with the same folder and database.
    pub(crate) fn restarted(self, meanwhile: impl FnOnce(&str)) -> Server {
        let url = self.database_url();
        let Server { child, token, folder, database, .. } = self;
        drop(child);
        meanwhile(&url);
        let url = database.as_ref().map(|database| database.url().to_owned());
        let env: Vec<(&str, &str)> = url.iter().map(|url| ("EVERBELL_DATABASE_URL", url.as_str())).collect();
        Server { token, database, ..Server::in_folder(folder, &[], &env) }
    }

    /// The address of its database.
    pub(crate) fn database_url(&self) -> String {
        let file = || format!("sqlite:{}", self.folder.path().join("everbell-data/everbell.db").display());
        self.database.as_ref().map_or_else(file, |database| database.url().to_owned())
    }

    /// Waits for a text in the log.
    pub(crate) fn until_logged(&self, text: &str) {
        let logged = eventually(|| self.log().contains(text).then_some(()));
        assert!(logged.is_some(), "`{text}` was never logged: {}", self.log());
    }

    /// Returns its log so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Returns the URL of this path for a browser.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Waits for its end, and tells the exit code.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        self.child.0.wait().unwrap().code()
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.send("GET", path, None)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Response {
        self.send("POST", path, Some(body))
    }

    pub(crate) fn patch(&self, path: &str, body: &Value) -> Response {
        self.send("PATCH", path, Some(body))
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Response {
        self.send("PUT", path, Some(body))
    }

    pub(crate) fn delete(&self, path: &str) -> Response {
        self.send("DELETE", path, None)
    }

    /// As the first admin; paths without a mount are below `/api/v1`.
    pub(crate) fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Response {
        let body = body.map(ToString::to_string).unwrap_or_default();
        self.request(method, path, &[("authorization", &format!("Bearer {}", self.token))], body.as_bytes())
    }

    /// With these headers, and no others that mean anything.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        let path = if path.starts_with("/api/") { path.to_owned() } else { format!("/api/v1{path}") };
        self.raw(method, &path, headers, body)
    }

    /// At exactly this path.
    pub(crate) fn raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        exchange(&self.address, method, path, headers, body)
    }

    /// Makes a token of this role.
    pub(crate) fn token_of(&self, role: &str) -> String {
        let made = self.post("/tokens", &serde_json::json!({ "name": format!("a-{role}"), "role": role }));
        made.expect(201)["token"].as_str().unwrap().to_owned()
    }

    /// Makes a job that fires in a year unless the body says otherwise.
    pub(crate) fn job(&self, key: &str, more: &Value) -> Value {
        let mut body = serde_json::json!({ "jobKey": key, "target": "print", "cronExpression": "0 0 1 1 *" });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        self.post("/jobs", &body).expect(201)
    }

    /// Asks again and again until the answer is as wanted.
    pub(crate) fn until(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let found = eventually(|| {
            last = self.get(path).expect(200);
            wanted(&last).then(|| last.clone())
        });
        found.unwrap_or_else(|| panic!("{path} never became what was wanted; at last {last}; {}", self.log()))
    }
}

/// One request to whoever listens at this address, and the whole answer.
pub(crate) fn exchange(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(REQUEST_TIMEOUT)).unwrap();
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    let given = |name: &str| headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    if !body.is_empty() && !given("content-type") {
        head.push_str("content-type: application/json\r\n");
    }
    head.extend(headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")));
    head.extend([format!("content-length: {}\r\n\r\n", body.len())]);
    stream.write_all(head.as_bytes()).unwrap();
    // It may answer, and close, before it has read everything.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    let mut part = [0; 16 * 1024];
    // Not everybody who says so closes the connection.
    while !is_whole(&answer) {
        match stream.read(&mut part) {
            Ok(0) | Err(_) => break,
            Ok(length) => answer.extend_from_slice(&part[..length]),
        }
    }
    Response::parse(&answer)
}

/// Is the answer as long as it says?
fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    length.and_then(|length| length.trim().parse::<usize>().ok()).is_some_and(|length| answer.len() - end - 4 >= length)
}

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The binary in this folder, without what the person who runs the tests prefers.
pub(crate) fn quiet(folder: &Path) -> Command {
    let mut command = without_ours(env!("CARGO_BIN_EXE_everbell"));
    command.current_dir(folder).stdin(Stdio::null());
    command
}

/// A program that sees no variable of ours.
pub(crate) fn without_ours(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("EVERBELL_") {
            command.env_remove(name);
        }
    }
    command
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) text: String,
}

impl Response {
    fn parse(bytes: &[u8]) -> Response {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let mut lines = head.lines();
        let status = lines.next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap();
        let header =
            |line: &str| line.split_once(':').map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
        let headers: BTreeMap<String, String> = lines.filter_map(header).collect();
        let chunked = headers.get("transfer-encoding").is_some_and(|value| value == "chunked");
        let text = if chunked { unchunked(body) } else { body.to_owned() };
        Response { status, headers, text }
    }

    /// The document of an answer that must have this status.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        if self.text.is_empty() { Value::Null } else { serde_json::from_str(&self.text).unwrap() }
    }

    /// The problem of an answer that must have this status and code.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        let problem = self.expect(status);
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(self.headers["content-type"], "application/problem+json");
        problem
    }

    /// The places of the faults of a refused request, in order.
    #[track_caller]
    pub(crate) fn faults(&self) -> Vec<String> {
        let problem = self.problem(400, "InvalidInput");
        let place = |fault: &Value| {
            let place = fault.get("pointer").or(fault.get("parameter")).or(fault.get("header"));
            place.and_then(Value::as_str).unwrap().to_owned()
        };
        let mut places: Vec<String> = problem["errors"].as_array().into_iter().flatten().map(place).collect();
        places.sort();
        places
    }
}

fn unchunked(body: &str) -> String {
    let (mut text, mut rest) = (String::new(), body);
    while let Some((size, more)) = rest.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else { break };
        if size == 0 || more.len() < size {
            break;
        }
        text.push_str(&more[..size]);
        rest = more[size..].trim_start_matches("\r\n");
    }
    text
}
