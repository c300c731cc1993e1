//! Small signs: a status is a shape, a word and a colour, never a colour alone.

use everbell::{JobStatus, RunStatus};

use super::markup::Markup;

/// A picture of 16 by 16, drawn with the colour of its text.
pub(crate) fn icon(name: &str) -> Markup {
    let path = match name {
        "ok" => "<path d=\"M3.5 8.5l3 3 6-7\"/>",
        "bad" => "<path d=\"M4 4l8 8M12 4l-8 8\"/>",
        "run" => "<circle cx=\"8\" cy=\"8\" r=\"5.5\"/><path d=\"M8 2.5a5.5 5.5 0 0 1 0 11z\" fill=\"currentColor\"/>",
        "wait" => "<circle cx=\"8\" cy=\"8\" r=\"5.5\"/>",
        "skip" => "<path d=\"M3 10.5a5 5 0 0 1 9.4-2.4M13 4.5v4h-4\"/>",
        "off" => "<circle cx=\"8\" cy=\"8\" r=\"5.5\" stroke-dasharray=\"2.5 2\"/><path d=\"M4.5 11.5l7-7\"/>",
        "pause" => "<path d=\"M5.5 3.5v9M10.5 3.5v9\" stroke-width=\"2\"/>",
        "play" => "<path d=\"M5 3.2v9.6l7.5-4.8z\" fill=\"currentColor\"/>",
        "on" => "<circle cx=\"8\" cy=\"8\" r=\"4\" fill=\"currentColor\"/>",
        "retired" => "<path d=\"M3.5 5.5h9v7h-9zM2.5 3h11v2.5h-11zM6.5 8h3\"/>",
        "warn" => "<path d=\"M8 2.5l6 10.5h-12zM8 6.5v3M8 11.3v.2\"/>",
        "recurring" => "<path d=\"M13 8a5 5 0 1 1-1.6-3.7M13 2.5v3h-3\"/>",
        "once" => "<circle cx=\"8\" cy=\"8\" r=\"5.5\"/><path d=\"M8 5v3l2 1.5\"/>",
        "bell" => {
            "<path d=\"M8 2a4 4 0 0 0-4 4c0 4-1.5 5-1.5 5h11s-1.5-1-1.5-5a4 4 0 0 0-4-4zM6.7 13.2a1.4 1.4 0 0 0 2.6 0\"/>"
        }
        "more" => "<path d=\"M8 3.5v.2M8 8v.2M8 12.5v.2\" stroke-width=\"2.2\"/>",
        "sun" => {
            "<circle cx=\"8\" cy=\"8\" r=\"3\"/><path d=\"M8 1.5v1.5M8 13v1.5M1.5 8h1.5M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M3.4 12.6l1-1M11.6 4.4l1-1\"/>"
        }
        "find" => "<circle cx=\"7\" cy=\"7\" r=\"4\"/><path d=\"M10 10l3.5 3.5\"/>",
        "plus" => "<path d=\"M8 3v10M3 8h10\"/>",
        "copy" => "<path d=\"M5.5 5.5h7v7h-7zM3.5 10.5v-7h7\"/>",
        "out" => "<path d=\"M6.5 3h-3v10h3M9.5 5l3 3-3 3M12 8h-6\"/>",
        _ => "",
    };
    Markup::from_html(format!("<svg class=\"i i-{name}\" viewBox=\"0 0 16 16\" aria-hidden=\"true\">{path}</svg>"))
}

/// The status of a run.
pub(crate) fn run(status: RunStatus) -> Markup {
    let (name, word) = run_words(status);
    Markup::from_html(format!("<span class=\"badge {name}\">{}{word}</span>", icon(name)))
}

/// The class and icon of a status, and its word.
pub(crate) fn run_words(status: RunStatus) -> (&'static str, &'static str) {
    match status {
        RunStatus::Pending => ("wait", "Pending"),
        RunStatus::Running => ("run", "Running"),
        RunStatus::Succeeded => ("ok", "Succeeded"),
        RunStatus::Failed => ("bad", "Failed"),
        RunStatus::Canceled => ("off", "Canceled"),
        RunStatus::Skipped => ("skip", "Skipped"),
    }
}

/// The class and icon of the status of a job, and its word. An active job that cannot fire has its own.
fn job_words(status: JobStatus, errored: bool) -> (&'static str, &'static str) {
    match status {
        JobStatus::Active if errored => ("warn", "Cannot fire"),
        JobStatus::Active => ("on", "Active"),
        JobStatus::Paused => ("pause", "Paused"),
        JobStatus::Retired => ("retired", "Retired"),
    }
}

/// Renders the status of a job as a sign; its word is for those who point at it or do not see it.
pub(crate) fn job_dot(status: JobStatus, errored: bool) -> Markup {
    let (name, word) = job_words(status, errored);
    Markup::from_html(format!(
        "<span class=\"dot {name}\" title=\"{word}\">{}<span class=\"quiet\">{word}</span></span>",
        icon(name)
    ))
}

/// Renders the status of a job.
pub(crate) fn job(status: JobStatus, errored: bool) -> Markup {
    let (name, word) = job_words(status, errored);
    Markup::from_html(format!("<span class=\"badge {name}\">{}{word}</span>", icon(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_shape_and_a_word() {
        let mut seen = Vec::new();
        for status in [
            RunStatus::Pending,
            RunStatus::Running,
            RunStatus::Succeeded,
            RunStatus::Failed,
            RunStatus::Canceled,
            RunStatus::Skipped,
        ] {
            let (name, word) = run_words(status);
            assert!(icon(name).as_str().contains("<path") || icon(name).as_str().contains("<circle"), "{name}");
            assert!(!seen.contains(&(name, word)));
            seen.push((name, word));
        }
        assert!(job(JobStatus::Active, true).as_str().contains("Cannot fire"));
    }
}
