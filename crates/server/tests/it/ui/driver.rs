//! Chromium and its driver: how they start and end, and the W3C `WebDriver` protocol, which is JSON over HTTP.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::{Folder, exchange, without_ours};

/// How long a program may take to come up or to go, on a busy machine.
const DRIVER_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs the driver until its own input ends, then ends its whole process group. So nothing outlives a test, not even one
/// that was killed: its end of the pipe closes with it.
///
/// The driver takes a free port of IPv4 and then wants the same of IPv6, which another program may have: it exits, and is
/// started again.
const LEASH: &str =
    "{ for _ in 1 2 3 4 5; do chromedriver --port=0 && break; done; } & exec >&-; read -r _; kill -KILL 0";

/// The key under which an answer names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser that can be told what to do.
pub(super) struct Driver {
    leash: Option<ChildStdin>,
    shell: Child,
    address: String,
    session: String,
    /// Its profile, its temporary files and its log.
    folder: Folder,
}

impl Driver {
    pub(super) fn start() -> Driver {
        let folder = Folder::new();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let mut command = without_ours("sh");
        command.args(["-c", LEASH]).current_dir(folder.path()).process_group(0);
        command.env("HOME", folder.path()).env("TMPDIR", folder.path());
        command.env("TZ", "UTC").env("LC_ALL", "C.UTF-8").env("LANGUAGE", "en");
        let mut shell = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let (leash, output) = (shell.stdin.take(), shell.stdout.take().unwrap());
        let mut driver = Driver { leash, shell, address: String::new(), session: String::new(), folder };
        let port = port(output).unwrap_or_else(|reason| {
            panic!("chromedriver did not start ({reason}); `./scripts/test setup` installs it: {}", driver.log())
        });
        driver.address = format!("127.0.0.1:{port}");
        let wanted = capabilities(driver.folder.path());
        let session = driver.send("POST", "/session", &wanted);
        let session = session.unwrap_or_else(|reason| panic!("Chromium did not start: {reason} {}", driver.log()));
        session["sessionId"].as_str().unwrap().clone_into(&mut driver.session);
        driver
    }

    /// Returns the output of the driver and the browser.
    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// A command of the session, and its value or why it was refused.
    pub(super) fn command(&self, command: &str, body: &Value) -> Result<Value, String> {
        self.send("POST", &format!("/session/{}/{command}", self.session), body)
    }

    /// Runs a script in the page, which may use `arguments` and must `return`.
    pub(super) fn execute(&self, script: &str, arguments: &Value) -> Result<Value, String> {
        self.command("execute/sync", &json!({ "script": script, "args": arguments }))
    }

    /// A command of the developer tools, for what `WebDriver` has no words.
    pub(super) fn tools(&self, command: &str, parameters: &Value) -> Result<Value, String> {
        self.command("goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let reply = exchange(&self.address, method, path, &[], body.to_string().as_bytes());
        let mut answer: Value = serde_json::from_str(&reply.text).map_err(|_| reply.text.clone())?;
        let value = answer["value"].take();
        if reply.status == 200 {
            return Ok(value);
        }
        // The message goes on with a stack trace of the driver.
        let message = value["message"].as_str().and_then(|message| message.lines().next()).unwrap_or_default();
        Err(format!("{}: {message}", value["error"].as_str().unwrap_or_default()))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.leash.take());
        let _ = self.shell.wait();
        // Those that were killed with the shell may still listen and write for a moment, also after a first removal.
        let mut looks_without_a_trace = 0;
        for _ in 0..DRIVER_TIMEOUT.as_millis() / 10 {
            let _missing = fs::remove_dir_all(self.folder.path());
            let is_gone = !self.folder.path().exists() && TcpStream::connect(&self.address).is_err();
            looks_without_a_trace = if is_gone { looks_without_a_trace + 1 } else { 0 };
            if looks_without_a_trace == 3 {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The id of an element that an answer holds.
pub(super) fn element(answer: &Value) -> Option<&str> {
    answer[ELEMENT].as_str()
}

/// An element as an argument of a script.
pub(super) fn reference(element: &str) -> Value {
    json!({ ELEMENT: element })
}

/// Reads the port from the output of the driver.
fn port(output: ChildStdout) -> Result<u16, String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let port = line.split_once("started successfully on port ").map(|(_, port)| port.trim_end_matches('.'));
            if let Some(port) = port.and_then(|port| port.parse().ok()) {
                // The receiver may be gone. The rest is still read, so the driver never blocks on its output.
                let _ = sender.send(port);
            }
        }
    });
    receiver.recv_timeout(DRIVER_TIMEOUT).map_err(|error| error.to_string())
}

/// Starts Chromium with the arguments that it is given.
const CHROMIUM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/ui/headless");

/// A headless Chromium with a fresh profile and without background requests.
fn capabilities(folder: &Path) -> Value {
    let profile = format!("--user-data-dir={}", folder.join("profile").display());
    let mut flags = vec![
        "--headless",
        "--window-size=1280,800",
        // Or a page that scrolls would have 15 pixels less.
        "--hide-scrollbars",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        // A page that wants something from elsewhere fails here as it would in a closed network.
        "--no-proxy-server",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        &profile,
    ];
    if rustix::process::geteuid().is_root() {
        flags.push("--no-sandbox");
    }
    json!({ "capabilities": { "alwaysMatch": {
        "browserName": "chrome",
        "timeouts": { "pageLoad": 20_000, "script": 10_000 },
        "goog:chromeOptions": { "binary": CHROMIUM, "args": flags },
        "goog:loggingPrefs": { "browser": "ALL" },
    } } })
}
