//! The log: one line for each event, on standard error, for people or for programs.

use std::fmt;
use std::io::{self, IsTerminal};
use std::sync::Arc;

use tracing::Subscriber;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::fmt::{MakeWriter, layer};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Registry, registry, reload};

use super::log_queue::{LogQueue, QueueWriter};
use everbell::clock::{Host, HostTime};
use everbell_wire::time_input::excerpt;

/// For whom the lines are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people: colours on a terminal.
    #[default]
    Text,
    /// For programs: an object on each line.
    Json,
}

/// The levels that are logged: `info`, `debug`, or `info,everbell=debug` for parts of the program.
#[derive(Clone, Debug)]
pub struct Filter(Targets);

impl Default for Filter {
    fn default() -> Self {
        Filter(Targets::new().with_default(tracing::Level::INFO))
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Filter, String> {
        let is_level = |word: &str| LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word));
        let is_name =
            |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_:-".contains(c));
        let spaceless: String = text.split(',').map(str::trim).collect::<Vec<_>>().join(",");
        let is_part = |part: &str| match part.split_once('=') {
            None => is_level(part),
            Some((name, level)) => is_name(name) && is_level(level),
        };
        let targets = spaceless.split(',').all(is_part).then(|| spaceless.parse().ok()).flatten();
        targets.map(Filter).ok_or_else(|| {
            let levels = LEVELS.join(", ");
            format!("`{}` is not one of {levels}, or such as `info,everbell=debug`", excerpt(text))
        })
    }
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Changes which lines there are, while the program runs.
#[derive(Clone, Debug)]
pub struct FilterHandle(reload::Handle<Targets, Registry>);

impl FilterHandle {
    /// Logs what this filter says from now on.
    pub fn set(&self, Filter(targets): Filter) -> io::Result<()> {
        self.0.reload(targets).map_err(io::Error::other)
    }
}

/// Begins to log, for the whole process. Returns the queue that lines wait in, and the handle on the filter. May be called
/// once.
pub fn init(format: Format, filter: Filter) -> io::Result<(Arc<LogQueue>, FilterHandle)> {
    // As https://no-color.org has it.
    let colorless = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colors = io::stderr().is_terminal() && !colorless;
    let queue = LogQueue::start(io::stderr())?;
    let (subscriber, filter) = subscriber(format, filter, colors, QueueWriter(Arc::clone(&queue)));
    tracing::dispatcher::set_global_default(subscriber.into()).map_err(io::Error::other)?;
    // The usual hook writes to standard error itself, and would wait for its reader.
    std::panic::set_hook(Box::new(|panic| {
        let backtrace = std::backtrace::Backtrace::capture();
        let has_backtrace = backtrace.status() == std::backtrace::BacktraceStatus::Captured;
        let backtrace = has_backtrace.then(|| tracing::field::display(&backtrace));
        tracing::error!(backtrace, "{panic}");
    }));
    Ok((queue, filter))
}

fn subscriber<W>(
    format: Format,
    Filter(targets): Filter,
    colors: bool,
    out: W,
) -> (Box<dyn Subscriber + Send + Sync>, FilterHandle)
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let lines = layer().with_timer(Utc).with_writer(out);
    let (targets, handle) = reload::Layer::new(targets);
    let subscriber: Box<dyn Subscriber + Send + Sync> = match format {
        Format::Text => Box::new(registry().with(targets).with(lines.with_ansi(colors))),
        Format::Json => Box::new(registry().with(targets).with(lines.with_ansi(false).json().flatten_event(true))),
    };
    (subscriber, FilterHandle(handle))
}

/// `2026-11-15T12:00:00.123Z`.
struct Utc;

impl FormatTime for Utc {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        write!(writer, "{:.3}", Host::default().wall())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use jiff::Timestamp;
    use tracing::{debug, error, info, trace};

    use super::*;

    /// A page that lines are written on.
    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: Format, filter: &str, colors: bool, log: impl FnOnce()) -> Vec<String> {
        let paper = Paper::default();
        let out = paper.clone();
        let (subscriber, _) = subscriber(format, filter.parse().unwrap(), colors, move || out.clone());
        tracing::subscriber::with_default(subscriber, log);
        let text = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn some_lines() {
        error!("an error");
        info!(job = "daily", run = 7, "a line\nof two");
        debug!("details");
        trace!(target: "everbell::engine", "noise");
        debug!(target: "everbell::engine", "step");
        info!(target: "sqlx::query", "select 1");
    }

    #[test]
    fn another_filter_counts_from_then_on() {
        let paper = Paper::default();
        let out = paper.clone();
        let (subscriber, filter) = subscriber(Format::Text, "warn".parse().unwrap(), false, move || out.clone());
        tracing::subscriber::with_default(subscriber, || {
            info!("before");
            filter.set("debug".parse().unwrap()).unwrap();
            debug!("after");
        });
        let text = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
        assert!(!text.contains("before") && text.contains("after"), "{text}");
    }

    #[test]
    fn text_has_the_time_in_utc_and_no_colours_unless_wanted() {
        let lines = logged(Format::Text, "info", false, || error!(job = "daily", "boom"));
        let [line] = &lines[..] else { panic!("{lines:?}") };
        let (time, rest) = line.split_once(' ').unwrap();
        assert!(time.parse::<Timestamp>().is_ok() && time.len() == "2026-11-15T12:00:00.123Z".len(), "{line}");
        assert!(time.ends_with('Z') && rest.trim_start().starts_with("ERROR "), "{line}");
        assert!(rest.ends_with(r#"boom job="daily""#) && !line.contains('\u{1b}'), "{line}");
        let coloured = logged(Format::Text, "info", true, || error!("boom"));
        assert!(coloured[0].contains('\u{1b}'), "{coloured:?}");
    }

    #[test]
    fn json_is_an_object_on_each_line() {
        let lines = logged(Format::Json, "info", true, some_lines);
        assert_eq!(lines.len(), 3, "{lines:?}");
        let line: serde_json::Value = serde_json::from_str(&lines[1]).unwrap();
        assert_eq!((&line["level"], &line["message"]), (&"INFO".into(), &"a line\nof two".into()), "{line}");
        assert_eq!((&line["job"], &line["run"]), (&"daily".into(), &7.into()), "{line}");
        assert!(line["timestamp"].as_str().unwrap().parse::<Timestamp>().is_ok(), "{line}");
    }

    #[test]
    fn a_filter_lets_through_what_it_says() {
        let lines = |filter| logged(Format::Json, filter, false, some_lines).len();
        assert_eq!((lines("off"), lines("error"), lines("info"), lines("trace")), (0, 1, 3, 6));
        assert_eq!(lines("info,everbell::engine=debug"), 4);
        assert_eq!(lines("warn,everbell::engine=trace"), 3);
        assert_eq!(lines("info, sqlx=off"), 2);
    }

    #[test]
    fn the_default_is_info() {
        let paper = Paper::default();
        let out = paper.clone();
        let (subscriber, _) = subscriber(Format::default(), Filter::default(), false, move || out.clone());
        tracing::subscriber::with_default(subscriber, some_lines);
        let text = String::from_utf8(paper.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("an error") && text.contains("select 1") && !text.contains("details"), "{text}");
    }

    #[test]
    fn a_filter_that_makes_no_sense_is_refused_with_what_would() {
        for text in ["", " ", "loud", "info,everbell=loud", "everbell", "info,,debug", "a=b=c"] {
            let refused = text.parse::<Filter>().unwrap_err();
            assert!(refused.contains("info,everbell=debug"), "{text}: {refused}");
        }
    }
}
