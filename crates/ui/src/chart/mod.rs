//! Charts of the web UI: SVG and HTML as text, made by pure functions of plain values.
//!
//! No chart reads a clock, loads anything or needs a script. Colours come from the style sheet (`assets/ui/chart.css`), by
//! classes that begin with `c-`; nothing has a `style`, because the policy of the pages forbids it. A status is never a
//! colour alone (`palette`). Each chart names and describes itself, each mark says what it is, and what cannot be read off
//! marks has a table.
//!
//! Most charts are as wide as there is room: places across are in percent and heights in pixels, so text keeps its size on
//! every screen. The calendar and the timeline have coordinates that are scaled together.

mod axis;
mod palette;
mod plot;
mod svg;
mod table;
mod words;

mod bars;
mod calendar;
mod chain;
mod dots;
mod gauge;
mod lag;
mod stacks;
mod strip;
mod timeline;

pub(crate) use bars::{Bars, Bucket, bars, bars_table};
pub(crate) use calendar::{Calendar, Day, WEEKS, calendar, calendar_table};
pub(crate) use chain::{ChainArrow, ChainBox, ChainPicture, Condition, chain};
pub(crate) use dots::{DotRun, Dots, dots};
pub(crate) use gauge::{Gauge, gauge};
pub(crate) use lag::{Lag, LagPiece, Lags, lag, lag_table};
pub(crate) use palette::Counts;
pub(crate) use stacks::{MAX_STACKS, Stack, Stacks, stacks};
pub(crate) use strip::{Strip, StripRun, StripSize, strip, strip_legend};
pub(crate) use timeline::{Band, Event, Hatch, Load, Row, Timeline, What, agenda, timeline, timeline_table};
pub(crate) use words::{counted, grouped, orgs_in_zones, period};

#[cfg(test)]
mod gallery;
