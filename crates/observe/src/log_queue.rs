//! The queue between the log and standard error.
//!
//! A pipe that is not read blocks its writers. So only one thread writes, and all others put lines into a bounded
//! queue. When the queue is full, lines are dropped and counted, and the log says how many once it flows again.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

const MAX_QUEUED_LINES: usize = 10_000;
const MAX_QUEUED_BYTES: usize = 8 << 20;

/// Lines on their way to a reader that may be slow, or gone.
#[derive(Debug, Default)]
pub struct LogQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Whether the thread has taken a line and not written it yet.
    is_writing: bool,
    dropped: u64,
    /// Dropped lines that the log has not mentioned yet.
    unreported: u64,
}

impl State {
    fn drop_lines(&mut self, count: u64) {
        self.dropped += count;
        self.unreported += count;
    }
}

impl LogQueue {
    /// Starts the thread that writes to `out`.
    pub fn start(out: impl Write + Send + 'static) -> io::Result<Arc<LogQueue>> {
        let queue = Arc::new(LogQueue::default());
        let drained = Arc::clone(&queue);
        thread::Builder::new().name("log".to_owned()).spawn(move || drained.drain(out))?;
        Ok(queue)
    }

    /// Adds a line, or drops it if there is no room. Never blocks for long.
    fn push(&self, line: Vec<u8>) {
        let mut state = self.lock();
        if state.lines.len() >= MAX_QUEUED_LINES || state.bytes + line.len() > MAX_QUEUED_BYTES {
            state.drop_lines(1);
            return;
        }
        state.bytes += line.len();
        state.lines.push_back(line);
        self.changed.notify_all();
    }

    /// The number of lines that were dropped since the start.
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Waits until every line is written, at most this long.
    pub fn flush(&self, timeout: Duration) {
        let is_busy = |state: &mut State| state.is_writing || !state.lines.is_empty();
        // What is left then has no reader.
        drop(self.changed.wait_timeout_while(self.lock(), timeout, is_busy));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn drain(&self, mut out: impl Write) {
        loop {
            let line = self.next_line();
            let written = out.write_all(&line).and_then(|()| out.flush());
            let unreported = self.line_done(written.is_ok());
            if unreported > 0 {
                tracing::warn!(lines = unreported, "dropped log lines because standard error was not read in time");
            }
        }
    }

    fn next_line(&self) -> Vec<u8> {
        let mut state = self.lock();
        loop {
            if let Some(line) = state.lines.pop_front() {
                state.bytes -= line.len();
                state.is_writing = true;
                return line;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns how many dropped lines to report, once there is a reader and room again.
    fn line_done(&self, is_written: bool) -> u64 {
        let mut state = self.lock();
        state.is_writing = false;
        if !is_written {
            state.drop_lines(1);
        }
        self.changed.notify_all();
        let has_room = state.lines.len() < MAX_QUEUED_LINES / 2 && state.bytes < MAX_QUEUED_BYTES / 2;
        if is_written && has_room { std::mem::take(&mut state.unreported) } else { 0 }
    }
}

/// Makes writers that collect one event each.
pub(crate) struct QueueWriter(pub Arc<LogQueue>);

impl<'a> MakeWriter<'a> for QueueWriter {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { queue: &self.0, bytes: Vec::new() }
    }
}

/// The line of one event. It enters the queue when it is dropped.
pub(crate) struct Line<'a> {
    queue: &'a LogQueue,
    bytes: Vec<u8>,
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        if !self.bytes.is_empty() {
            self.queue.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Writes each line into a channel that holds one, and blocks while it is full.
    struct Pipe(mpsc::SyncSender<Vec<u8>>);

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_queue_without_a_reader_drops_lines_and_counts_them() {
        let (pipe, reader) = mpsc::sync_channel(1);
        let queue = LogQueue::start(Pipe(pipe)).unwrap();
        let pushed = MAX_QUEUED_LINES + 500;
        for number in 0..pushed {
            queue.push(format!("{number}\n").into_bytes());
        }
        let dropped = queue.dropped() as usize;
        // The thread may hold one line, and the pipe another.
        assert!((498..=500).contains(&dropped), "{dropped}");
        queue.flush(Duration::from_millis(1));
        let read: Vec<Vec<u8>> = (0..pushed - dropped).map(|_| reader.recv().unwrap()).collect();
        assert_eq!(read[7], b"7\n");
        queue.flush(Duration::from_mins(10));
        assert_eq!(queue.dropped() as usize, dropped, "what was queued was read");
    }

    #[test]
    fn long_lines_fill_the_queue_too() {
        let (pipe, _reader) = mpsc::sync_channel(1);
        let queue = LogQueue::start(Pipe(pipe)).unwrap();
        for _ in 0..20 {
            queue.push(vec![b'x'; MAX_QUEUED_BYTES / 8]);
        }
        assert!(queue.dropped() >= 10, "{}", queue.dropped());
    }

    #[test]
    fn lines_for_a_closed_pipe_are_dropped_and_block_nobody() {
        let (pipe, reader) = mpsc::sync_channel(1);
        drop(reader);
        let queue = LogQueue::start(Pipe(pipe)).unwrap();
        for _ in 0..5 {
            queue.push(b"line\n".to_vec());
        }
        queue.flush(Duration::from_mins(10));
        assert_eq!(queue.dropped(), 5);
    }
}
