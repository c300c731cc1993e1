//! A log of the targets: each program appends its start and its end to one file, with the true time. This is the truth
//! that the rows of the database are compared with.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::clock::{pause, true_time};

/// One line is one `write` to a file that is open for appending, so lines of many programs never mix.
pub(crate) const SCRIPT: &str = r#"log=$1 seconds=$2
say() {
    printf '%s %s %s %s %s %s %s\n' "$1" "$EPOCHREALTIME" "${EVERBELL_JOB_KEY:--}" "${EVERBELL_SLOT_AT:--}" \
        "$EVERBELL_ATTEMPT" "$EVERBELL_RUN_ID" "$$" >>"$log"
}
trap 'say end; exit 143' TERM
say start
if [ "$seconds" != 0 ]; then sleep "$seconds" & wait $!; fi
say end"#;

/// One program that was started.
#[derive(Clone, Debug)]
pub(crate) struct Execution {
    pub(crate) job: String,
    /// Seconds since 1970; absent for a run by hand.
    pub(crate) slot: Option<f64>,
    pub(crate) attempt: u32,
    pub(crate) run: String,
    pub(crate) pid: u32,
    pub(crate) start: f64,
    /// Absent while it is at work.
    pub(crate) end: Option<f64>,
}

/// The file of all programs of an experiment, and a thread that sees programs die that could not say so.
pub(crate) struct TargetLog {
    file: PathBuf,
    died: Arc<Mutex<HashMap<u32, f64>>>,
    over: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

impl TargetLog {
    pub(crate) fn new(folder: &Path) -> TargetLog {
        let (file, died) = (folder.join("targets.log"), Arc::new(Mutex::new(HashMap::new())));
        let over = Arc::new(AtomicBool::new(false));
        let watcher = std::thread::spawn({
            let (file, died, over) = (file.clone(), Arc::clone(&died), Arc::clone(&over));
            move || {
                while !over.load(Ordering::Relaxed) {
                    watch(&file, &died);
                    pause(Duration::from_millis(100));
                }
            }
        });
        TargetLog { file, died, over, watcher: Some(watcher) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.file
    }

    /// Everything that was started so far, in the order of the starts.
    pub(crate) fn executions(&self) -> Vec<Execution> {
        let mut executions = read(&self.file);
        let died = lock(&self.died);
        for execution in executions.iter_mut().filter(|execution| execution.end.is_none()) {
            execution.end = died.get(&execution.pid).copied();
        }
        executions.sort_by(|one, other| one.start.total_cmp(&other.start));
        executions
    }

    /// How many programs were started so far.
    pub(crate) fn started(&self) -> usize {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        text.lines().filter(|line| line.starts_with("start ")).count()
    }

    /// Returns when the last program was started.
    pub(crate) fn last_start(&self) -> Option<f64> {
        self.executions().last().map(|execution| execution.start)
    }
}

impl Drop for TargetLog {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ended = self.watcher.take().map(JoinHandle::join);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch(file: &Path, died: &Mutex<HashMap<u32, f64>>) {
    for execution in read(file).into_iter().filter(|execution| execution.end.is_none()) {
        if !is_alive(execution.pid) {
            lock(died).entry(execution.pid).or_insert_with(true_time);
        }
    }
}

/// Whether a process does anything. A dead one that its parent has not reaped does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !['Z', 'X'].contains(&state))
}

fn read(file: &Path) -> Vec<Execution> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut executions: Vec<Execution> = Vec::new();
    // A process id may be used again, so an end belongs to the newest start.
    let mut newest: HashMap<(u32, String), usize> = HashMap::new();
    for line in text.lines() {
        let Some((word, execution)) = parse(line) else { continue };
        let key = (execution.pid, execution.run.clone());
        if word == "start" {
            newest.insert(key, executions.len());
            executions.push(execution);
        } else if let Some(place) = newest.get(&key) {
            executions[*place].end.get_or_insert(execution.start);
        }
    }
    executions
}

/// The word of a line, and its execution as if it had started then.
fn parse(line: &str) -> Option<(&str, Execution)> {
    let fields: Vec<&str> = line.split(' ').collect();
    let [word, at, job, slot, attempt, run, pid] = fields.as_slice() else { return None };
    let execution = Execution {
        job: (*job).to_owned(),
        slot: slot.parse::<jiff::Timestamp>().ok().map(seconds),
        attempt: attempt.parse().ok()?,
        run: (*run).to_owned(),
        pid: pid.parse().ok()?,
        start: at.replace(',', ".").parse().ok()?,
        end: None,
    };
    Some((word, execution))
}

/// Seconds since 1970.
#[allow(clippy::cast_precision_loss, reason = "microseconds since 1970 are below 2^52")]
pub(crate) fn seconds(time: jiff::Timestamp) -> f64 {
    time.as_microsecond() as f64 / 1e6
}
