//! Rows of `targets`.

use everbell_core::store::{MAX_STORED_TARGETS, StoreResult, StoredTarget};
use everbell_core::{Invalid, Json, Target};

use super::corrupt;
use super::from_row::by_name;
use crate::micros::Micros;

/// A target as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct TargetColumns {
    pub(crate) label: String,
    pub(crate) revision: i64,
    pub(crate) definition: String,
    pub(crate) updated_by: String,
    pub(crate) created_at: Micros,
    pub(crate) updated_at: Micros,
}

by_name!(TargetColumns { label, revision, definition, updated_by, created_at, updated_at });

impl TargetColumns {
    pub(crate) fn new(stored: &StoredTarget) -> TargetColumns {
        TargetColumns {
            label: stored.label.to_string(),
            revision: i64::from(stored.revision),
            definition: stored.definition.as_str().to_owned(),
            updated_by: stored.updated_by.clone(),
            created_at: stored.created_at.into(),
            updated_at: stored.updated_at.into(),
        }
    }

    pub(crate) fn read(self) -> StoreResult<StoredTarget> {
        let read = || -> Result<StoredTarget, Invalid> {
            Ok(StoredTarget {
                label: Target::new(&self.label)?,
                revision: u32::try_from(self.revision).unwrap_or(0),
                definition: Json::parse("definition", &self.definition)?,
                updated_by: self.updated_by.clone(),
                created_at: self.created_at.into(),
                updated_at: self.updated_at.into(),
            })
        };
        read().map_err(|why| corrupt("targets", &self.label, why))
    }
}

/// The refusal of one target more.
pub(crate) fn too_many() -> Invalid {
    Invalid::new("target", format!("there are {MAX_STORED_TARGETS} stored targets already, which is the most"))
}
