//! The list as a file: everything that its filters let through, page by page, up to a bound.

use std::sync::Arc;

use axum::body::Body;
use everbell::{RunFilter, StoreResult};
use everbell_core::store::{Cursor, PageRequest};
use everbell_wire as wire;
use everbell_wire::run::Skip;
use futures_util::stream;
use jiff::Timestamp;
use serde_json::json;

use super::period;
use crate::request::{Content, UiRequest, UiResponse};
use everbell_http::App;
use everbell_http::api::runs::{LIST, filter};
use everbell_http::problem::Problem;
use everbell_wire::form::{Field, Kind as Value, joined, optional};

/// That of the list, and the kind of the file.
pub(crate) const QUERY: &[Field] = &joined::<{ LIST.len() + 1 }>(LIST, &[FORMAT]);
const FORMAT: Field = optional("format", Value::Word(&["csv", "jsonl"]), "The format of the file. Default: csv.");

/// The most runs of a file.
const MAX_EXPORTED_RUNS: u32 = 100_000;
/// How many are read at once.
const PAGE_RUNS: u32 = 500;

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    let mut api_request = request.to_api_request();
    if let Some(settled) = period::settled(&api_request.query, &request.clock().zone(None)) {
        api_request.query = settled;
    }
    let format = if request.query(QUERY).text("format") == Some("jsonl") { Format::Lines } else { Format::Table };
    let export = Export {
        app: Arc::clone(&request.app),
        filter: filter(&api_request)?,
        after: None,
        left: MAX_EXPORTED_RUNS,
        format,
    };
    let first = stream::iter([Ok(format.head())]);
    let rest = stream::unfold(Some(export), |export| async {
        let mut export = export?;
        match export.page().await {
            Ok((text, true)) => Some((Ok(text), Some(export))),
            Ok((text, false)) => Some((Ok(text), None)),
            // The response is aborted, so that a client notices that it is incomplete.
            Err(error) => {
                tracing::warn!(%error, "an export could not be finished");
                Some((Err(error), None))
            }
        }
    });
    let body = Body::from_stream(futures_util::StreamExt::chain(first, rest));
    let (media, end) = format.kind();
    let name = format!("attachment; filename=\"runs-{}.{end}\"", request.now.strftime("%Y%m%dT%H%M%SZ"));
    Ok(UiResponse::new(Content::Stream(media, body)).header("content-disposition", name))
}

/// How far a file is.
struct Export {
    app: Arc<App>,
    filter: RunFilter,
    after: Option<Cursor>,
    left: u32,
    format: Format,
}

impl Export {
    /// The next part of the file, and whether there is more.
    async fn page(&mut self) -> StoreResult<(String, bool)> {
        let request = PageRequest { limit: PAGE_RUNS.min(self.left), after: self.after.take() };
        let page = self.app.bell.runs().list(&self.filter, &request).await?;
        let mut text = String::new();
        for run in &page.items {
            let document = wire::Run::new(run, self.app.zone_of(run).await?.as_ref());
            text.push_str(&self.format.row(&document));
        }
        self.left -= request.limit;
        self.after = page.next;
        if self.left == 0 && self.after.is_some() {
            text.push_str(&self.format.cut());
        }
        Ok((text, self.left > 0 && self.after.is_some()))
    }
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// For spreadsheets.
    Table,
    /// A document on each line, as the API has it.
    Lines,
}

impl Format {
    const fn kind(self) -> (&'static str, &'static str) {
        match self {
            Format::Table => ("text/csv; charset=utf-8; header=present", "csv"),
            Format::Lines => ("application/jsonl; charset=utf-8", "jsonl"),
        }
    }

    fn head(self) -> String {
        match self {
            Format::Table => {
                "target,status,scheduledAt,startedAt,finishedAt,durationMs,failureCode,failureMessage,skipReason,\
                 skipDetail,jobKey,jobVersion,triggerType,triggerLabel,runnerInstanceId,lagMs,attempt,orgId,slotAtLocal,\
                 id\r\n"
                    .to_owned()
            }
            Format::Lines => String::new(),
        }
    }

    fn row(self, run: &wire::Run) -> String {
        if self == Format::Lines {
            // A document is always written as JSON; one that were not would be an empty line.
            return format!("{}\n", serde_json::to_string(run).unwrap_or_default());
        }
        let number = |number: Option<i64>| number.map(|number| number.to_string()).unwrap_or_default();
        let time = |time: Option<Timestamp>| time.map(|time| time.to_string()).unwrap_or_default();
        let text = |text: &Option<String>| cell(text.as_deref().unwrap_or_default());
        let cells = [
            cell(&run.target),
            cell(run.status.as_str()),
            run.scheduled_at.to_string(),
            time(run.started_at),
            time(run.finished_at),
            number(run.duration_ms),
            text(&run.failure_code),
            text(&run.failure_message),
            cell(run.skip_reason.as_ref().map_or("", Skip::as_str)),
            text(&run.skip_detail),
            text(&run.job_key),
            number(run.job_version.map(i64::from)),
            cell(run.trigger_type.as_str()),
            cell(&run.trigger_label),
            text(&run.runner_instance_id),
            number(run.lag_ms),
            run.attempt.to_string(),
            text(&run.org_id),
            text(&run.slot_at_local),
            cell(&run.id),
        ];
        format!("{}\r\n", cells.join(","))
    }

    /// The last line of a file that is not the whole.
    fn cut(self) -> String {
        let said = format!("truncated after {MAX_EXPORTED_RUNS} runs; choose a shorter period");
        match self {
            Format::Table => format!("# {}\r\n", cell(&said)),
            Format::Lines => format!("{}\n", json!({ "cut": true, "detail": said })),
        }
    }
}

/// A text as a cell: in quotes where it needs them, and never a formula for who opens the file.
fn cell(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    if guard.is_empty() && !text.contains([',', '"', '\n', '\r']) && text.trim() == text {
        return text.to_owned();
    }
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_harmless() {
        for (text, shown) in [
            ("daily", "daily"),
            ("a,b", "\"a,b\""),
            ("say \"no\"\r\nnow", "\"say \"\"no\"\"\r\nnow\""),
            ("=HYPERLINK(\"x\")", "\"'=HYPERLINK(\"\"x\"\")\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@SUM", "\"'@SUM\""),
            ("\t=1", "\"'\t=1\""),
            (" =1", "\" =1\""),
            ("", ""),
        ] {
            assert_eq!(cell(text), shown, "{text:?}");
        }
    }

    #[test]
    fn a_file_that_is_cut_says_so() {
        assert_eq!(Format::Table.cut(), "# truncated after 100000 runs; choose a shorter period\r\n");
        let last: serde_json::Value = serde_json::from_str(&Format::Lines.cut()).unwrap();
        assert_eq!(last["cut"], true);
    }
}
