//! Flags of every command that connects to a server.

use std::path::PathBuf;
use std::time::Duration;

use anstream::ColorChoice;
use clap::{Args, ValueEnum};
use everbell_core::Zone;
use everbell_wire as wire;

use super::CliError;
use super::output::Output;
use everbell_wire::form::parse_span;

/// Flags of every command that connects to a server.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server and output")]
pub(crate) struct OnlineArgs {
    /// Connect to the server at this address; default: `EVERBELL_SERVER`, else that of the context, else `http://127.0.0.1:7070`.
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// Connect to the server of this context; default: `EVERBELL_CONTEXT`, else the one of `everbell context use`.
    #[arg(long, value_name = "NAME", conflicts_with = "server")]
    pub(crate) context: Option<String>,
    /// Read the token from this file; default: that of the context, else `EVERBELL_TOKEN`, else `EVERBELL_TOKEN_FILE`, else `everbell-data/admin-token`.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Give up if the server does not respond within this time.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub(crate) request_timeout: Duration,
    /// Print the JSON that the API returns; short for `-o json`.
    #[arg(long, conflicts_with = "output")]
    pub(crate) json: bool,
    /// Print in this format; default: `table` on a terminal, `plain` otherwise.
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
    /// Use colors; with `auto`, `NO_COLOR` and `CLICOLOR_FORCE` are respected.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
    /// Print only the result: no counts, no advice, no progress.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl OnlineArgs {
    /// Prepares the output as the flags ask for, and returns the format.
    pub(crate) fn prepare(&self, out: &mut Output) -> Option<Format> {
        match self.color {
            Color::Auto => {}
            Color::Always => ColorChoice::Always.write_global(),
            Color::Never => ColorChoice::Never.write_global(),
        }
        out.choose_colors();
        let format = if self.json { Some(Format::Json) } else { self.output };
        match format {
            Some(Format::Table) => out.force(true),
            Some(_) => out.force(false),
            None => {}
        }
        format
    }
}

/// The formats in which data is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people, fitted to the terminal
    Table,
    /// Separated by tabs, nothing truncated
    Plain,
    /// The JSON that the API returns
    Json,
    /// One JSON object per line
    Jsonl,
    /// Only keys, ids or names
    Name,
}

/// When colors are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

/// The zone in which times are shown.
#[derive(Debug, Args)]
pub(crate) struct ZoneArgs {
    /// Show times in this IANA time zone; default: that of each schedule.
    #[arg(long, value_name = "ZONE")]
    pub(crate) tz: Option<String>,
}

impl ZoneArgs {
    pub(crate) fn read(&self) -> Result<DisplayZone, CliError> {
        Ok(DisplayZone(self.tz.as_deref().map(parse_zone).transpose()?))
    }
}

fn parse_zone(name: &str) -> Result<Zone, CliError> {
    if name.eq_ignore_ascii_case("utc") { Ok(Zone::utc()) } else { Ok(Zone::get(name)?) }
}

/// The zone in which times are shown: one for all, or each in its own.
#[derive(Clone)]
pub(crate) struct DisplayZone(Option<Zone>);

impl DisplayZone {
    /// The zone for the times of a job, an org or a run.
    pub(crate) fn zone(&self, document: &impl HasZone) -> Zone {
        self.0.clone().unwrap_or_else(|| own_zone(document))
    }

    /// The zone for times that belong to no schedule.
    pub(crate) fn or_utc(&self) -> Zone {
        self.0.clone().unwrap_or_else(Zone::utc)
    }
}

/// A document that has its own time zone.
pub(crate) trait HasZone {
    /// The IANA name of the zone, if the document has one.
    fn zone_name(&self) -> Option<&str>;
}

impl HasZone for wire::Job {
    fn zone_name(&self) -> Option<&str> {
        Some(&self.timezone)
    }
}

impl HasZone for wire::Org {
    fn zone_name(&self) -> Option<&str> {
        Some(&self.timezone)
    }
}

impl HasZone for wire::OrgJob {
    fn zone_name(&self) -> Option<&str> {
        Some(&self.timezone)
    }
}

impl HasZone for wire::Run {
    /// The zone of its slot; a run without a slot has none.
    fn zone_name(&self) -> Option<&str> {
        self.slot_at_local.as_deref()?.rsplit_once('[').map(|(_, zone)| zone.trim_end_matches(']'))
    }
}

/// The zone of a document; UTC if this release does not know it.
pub(crate) fn own_zone(document: &impl HasZone) -> Zone {
    document.zone_name().and_then(|name| Zone::get(name).ok()).unwrap_or_else(Zone::utc)
}

/// Parses the duration of a flag.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    parse_span(text)
        .and_then(|span| if span.is_zero() { Err("it must be longer than zero".to_owned()) } else { Ok(span) })
}
