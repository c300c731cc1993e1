//! The time zone of this machine, in which its cron reads times.

use std::fs;
use std::path::Path;

use everbell_core::Zone;

/// Returns the zone that `TZ`, `/etc/localtime` or `/etc/timezone` names, or else UTC.
pub(crate) fn machine_zone() -> Zone {
    let variable = std::env::var("TZ").ok().map(|name| name.trim_start_matches(':').to_owned());
    let linked = || linked_zone(&fs::read_link("/etc/localtime").ok()?);
    let named = || Some(fs::read_to_string("/etc/timezone").ok()?.trim().to_owned());
    let known = |name: String| Zone::get(&name).ok();
    variable
        .and_then(known)
        .or_else(|| linked().and_then(known))
        .or_else(|| named().and_then(known))
        .unwrap_or_else(Zone::utc)
}

/// `/usr/share/zoneinfo/Europe/Paris` is `Europe/Paris`.
fn linked_zone(path: &Path) -> Option<String> {
    path.to_str()?.split_once("zoneinfo/").map(|(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linked_file_names_its_zone() {
        let found = |path: &str| linked_zone(Path::new(path));
        assert_eq!(found("/usr/share/zoneinfo/Europe/Paris").as_deref(), Some("Europe/Paris"));
        assert_eq!(found("../usr/share/zoneinfo/UTC").as_deref(), Some("UTC"));
        assert_eq!(found("/etc/elsewhere"), None);
    }
}
