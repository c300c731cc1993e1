//! `everbell cron next --batch`: requests as JSON lines on standard input, responses as JSON lines on standard output.
//!
//! Each request gets one response, in order. A bad request gets an error and stops nothing. Responses have no notes, because
//! programs may send millions of requests.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{BufRead, Read, Write};

use everbell_core::cron::{Dst, DstFold, DstGap, Expression};
use everbell_core::{Spec, Zone};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use everbell_wire as wire;

use super::documents::Items;
use crate::output::Output;
use crate::{CliError, Exit};
use everbell_wire::time_input::{excerpt, is_in_range, out_of_range};

const MAX_LINE_BYTES: usize = 64 * 1024;
const MAX_COUNT: u64 = 10_000;
/// More than the database has, so only unknown names can reach it.
const MAX_KNOWN_ZONES: usize = 4_096;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Line<'a> {
    #[serde(borrow)]
    expr: Cow<'a, str>,
    #[serde(borrow, default = "utc")]
    tz: Cow<'a, str>,
    #[serde(borrow)]
    start: Cow<'a, str>,
    #[serde(default = "one")]
    count: u64,
    #[serde(borrow, default)]
    dst_gap: Cow<'a, str>,
    #[serde(borrow, default)]
    dst_fold: Cow<'a, str>,
}

#[derive(Serialize)]
struct Refusal {
    error: String,
}

pub(super) fn run<W: Write>(mut input: impl BufRead, output: &mut Output<W>) -> Result<Exit, CliError> {
    let mut zones = Zones::default();
    let mut line = Vec::new();
    while read_line(&mut input, &mut line)? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match answer(&line, &mut zones) {
            Ok(items) => output.json(&items)?,
            Err(error) => output.json(&Refusal { error })?,
        }
    }
    Ok(Exit::Success)
}

/// Reads up to one byte more than a line may have, and past the end of the line. False at the end of the input.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    // Room for the line, its end, and the one byte that shows it is too long.
    if input.by_ref().take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', line)? == 0 {
        return Ok(false);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > MAX_LINE_BYTES {
        input.skip_until(b'\n')?;
    }
    Ok(true)
}

fn answer(line: &[u8], zones: &mut Zones) -> Result<Items<wire::Fire>, String> {
    if line.len() > MAX_LINE_BYTES {
        return Err(format!("the line is longer than {MAX_LINE_BYTES} bytes"));
    }
    // The parser would also take an array with the values in order.
    if line.trim_ascii_start().first() != Some(&b'{') {
        return Err("must be a JSON object such as {\"expr\":\"@daily\",\"start\":\"2027-03-13T00:00:00Z\"}".to_owned());
    }
    let line: Line<'_> = serde_json::from_slice(line).map_err(|error| without_line(&error))?;
    if !(1..=MAX_COUNT).contains(&line.count) {
        return Err(format!("count: {} is outside 1-{MAX_COUNT}", line.count));
    }
    let dst = Dst {
        gap: choice("dstGap", &line.dst_gap, DstGap::ALL, DstGap::as_str)?,
        fold: choice("dstFold", &line.dst_fold, DstFold::ALL, DstFold::as_str)?,
    };
    let expression = Expression::parse(&line.expr).map_err(|error| error.to_string())?;
    let zone = zones.get(&line.tz)?;
    let start = start(&line.start)?;
    let spec = Spec::recurring(expression, zone, start).with_dst(dst);
    let local = |at: Timestamp| at.to_zoned(spec.zone().as_jiff().clone()).to_string();
    let document = |at: Timestamp| wire::Fire::at(at, local(at));
    Ok(Items { items: spec.slots_after(start).take(line.count as usize).map(document).collect() })
}

fn start(text: &str) -> Result<Timestamp, String> {
    let start: Timestamp = text.parse().map_err(|_| {
        format!("start: `{}` is not a time with an offset, such as `2027-03-13T00:00:00Z`", excerpt(text))
    })?;
    if is_in_range(start) { Ok(start) } else { Err(format!("start: {}", out_of_range(text))) }
}

/// Parses a word of a choice; the default if it is empty.
fn choice<T: Copy + Default>(key: &str, text: &str, all: &[T], word: fn(T) -> &'static str) -> Result<T, String> {
    if text.is_empty() {
        return Ok(T::default());
    }
    let known = all.iter().copied().find(|choice| word(*choice) == text);
    known.ok_or_else(|| {
        let words: Vec<&str> = all.iter().map(|choice| word(*choice)).collect();
        format!("{key}: `{}` is not one of {}", excerpt(text), words.join(", "))
    })
}

/// A cache of zones, also of unknown names, because finding similar names is slow.
#[derive(Default)]
struct Zones(HashMap<String, Result<Zone, String>>);

impl Zones {
    fn get(&mut self, name: &str) -> Result<Zone, String> {
        if let Some(known) = self.0.get(name) {
            return known.clone();
        }
        let found = Zone::get(name).map_err(|error| error.to_string());
        if self.0.len() < MAX_KNOWN_ZONES {
            self.0.insert(name.to_owned(), found.clone());
        }
        found
    }
}

/// The message without the line number, which is always 1.
fn without_line(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", " at column ")
}

fn utc() -> Cow<'static, str> {
    Cow::Borrowed("UTC")
}

fn one() -> u64 {
    1
}
