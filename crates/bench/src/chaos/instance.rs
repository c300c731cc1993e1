//! One `everbell serve` process.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::clock::{instant, stretch, wait_for};
use super::http::{self, Response, TOKEN};
use super::{Outcome, target_log};

/// How long a start may take on a quiet machine.
const START_LIMIT: Duration = Duration::from_secs(40);

/// How to start one.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) binary: PathBuf,
    /// Its working directory, with `everbell.toml`.
    pub(crate) folder: PathBuf,
    pub(crate) database: String,
    pub(crate) environment: Vec<(String, String)>,
    /// A program and its arguments that start the server, such as `prlimit`.
    pub(crate) wrapper: Vec<String>,
    /// Leaves standard error as a pipe that is never read, instead of a file.
    pub(crate) unread_stderr: bool,
}

/// A process that ends with this value.
pub(crate) struct Instance {
    child: Child,
    pub(crate) address: String,
}

impl Launch {
    pub(crate) fn start(&self) -> Outcome<Instance> {
        let mut words = self.wrapper.clone();
        words.push(self.binary.display().to_string());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(["serve", "--listen", "127.0.0.1:0"]).current_dir(&self.folder);
        command.env("EVERBELL_DATABASE_URL", &self.database).env("EVERBELL_ADMIN_TOKEN", TOKEN);
        command.envs(self.environment.iter().cloned()).stdin(Stdio::null()).stdout(Stdio::piped());
        let log = File::options().create(true).append(true).open(self.log())?;
        command.stderr(if self.unread_stderr { Stdio::piped() } else { log.into() });
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().ok_or("no standard output")?;
        let mut instance = Instance { child, address: String::new() };
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            // The rest of its output is discarded.
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let address = line.split_once("http://").and_then(|(_, rest)| rest.split_whitespace().next());
                let _unheard = address.map(|address| sender.send(address.to_owned()));
            }
        });
        match receiver.recv_timeout(START_LIMIT.mul_f64(stretch())) {
            Ok(address) => instance.address = address,
            Err(_) => return Err(format!("the server did not start: {}", tail(&self.log())).into()),
        }
        Ok(instance)
    }

    /// The file with what the server logs.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().take(3).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
}

impl Instance {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        signal_process(self.pid(), signal);
    }

    pub(crate) fn is_alive(&self) -> bool {
        target_log::is_alive(self.pid())
    }

    /// Whether it ends within this time; how long it took.
    pub(crate) fn ends_within(&mut self, limit: Duration) -> Option<f64> {
        let begun = instant();
        wait_for(limit, || self.child.try_wait().ok().flatten().map(|_| begun.elapsed().as_secs_f64()))
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        // A stopped process dies too.
        let _already_gone = self.child.kill();
        let _ended = self.child.wait();
    }

    pub(crate) fn get(&self, path: &str, limit: Duration) -> Outcome<Response> {
        http::request(&self.address, "GET", path, &[], None, limit)
    }

    pub(crate) fn post(&self, path: &str, body: &Value, limit: Duration) -> Outcome<Response> {
        http::request(&self.address, "POST", path, &[], Some(body), limit)
    }

    /// The child process that ends the programs of a server that dies.
    pub(crate) fn supervisor(&self) -> Option<u32> {
        let own = self.pid().to_string();
        let processes = fs::read_dir("/proc").ok()?.flatten();
        let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.find(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1).map(str::to_owned));
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            parent.as_deref() == Some(&own) && String::from_utf8_lossy(&line).contains("-groups")
        })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn signal_process(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended already.
        let _gone = kill_process(pid, signal);
    }
}
