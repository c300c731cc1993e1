//! Messages about an unavailable database.

use everbell::UnavailableReason;

/// Describes why the database is unavailable.
pub(crate) fn unavailable(reason: UnavailableReason, maybe_done: bool) -> String {
    let why = match reason {
        UnavailableReason::TimedOut(time) => {
            format!("The database did not finish within {:.0} s.", time.as_secs_f64().max(1.0))
        }
        UnavailableReason::Locked => "Another database session holds a lock on the required rows.".to_owned(),
        UnavailableReason::ReadOnly => "The database is read-only: it accepts no changes.".to_owned(),
        UnavailableReason::DiskFull => "The disk of the database is full.".to_owned(),
        UnavailableReason::TooManyConnections => "The database server has no free connections.".to_owned(),
        UnavailableReason::Schema => "The schema of the database does not match this release.".to_owned(),
        UnavailableReason::Permission => "The database role of the server lacks a permission.".to_owned(),
        _ => "The database cannot be reached.".to_owned(),
    };
    if maybe_done { format!("{why} The change may have been made: check before you send it again.") } else { why }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_reason_is_the_true_one() {
        let late = UnavailableReason::TimedOut(Duration::from_millis(9_980));
        assert_eq!(unavailable(late, false), "The database did not finish within 10 s.");
        assert_eq!(
            unavailable(UnavailableReason::Unreachable, true),
            "The database cannot be reached. The change may have been made: check before you send it again."
        );
        for reason in [UnavailableReason::Locked, UnavailableReason::ReadOnly, UnavailableReason::DiskFull] {
            assert!(!unavailable(reason, false).contains("reached"), "{reason:?}");
        }
    }
}
