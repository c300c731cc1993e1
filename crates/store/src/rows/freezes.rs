//! Rows of `freezes`.

use everbell_core::freeze::Freeze;
use everbell_core::store::{FREEZE_RETENTION, MAX_FREEZES, StoreResult};
use everbell_core::{Invalid, JobKey};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::corrupt;
use super::from_row::by_name;
use crate::micros::Micros;

/// A freeze as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct FreezeColumns {
    pub(crate) id: Uuid,
    pub(crate) starts_at: Micros,
    pub(crate) ends_at: Micros,
    pub(crate) reason: String,
    pub(crate) scope: String,
    pub(crate) created_by: String,
    pub(crate) created_at: Micros,
    pub(crate) ended_at: Option<Micros>,
    pub(crate) ended_by: Option<String>,
}

by_name!(FreezeColumns { id, starts_at, ends_at, reason, scope, created_by, created_at, ended_at, ended_by });

/// The jobs of a freeze, in JSON.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct ScopeText {
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<(String, Option<String>)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    except: Vec<String>,
}

impl FreezeColumns {
    pub(crate) fn new(freeze: &Freeze) -> FreezeColumns {
        let except = freeze.except.iter().map(ToString::to_string).collect();
        let scope = serde_json::to_string(&ScopeText { label: freeze.label.clone(), except });
        FreezeColumns {
            id: freeze.id,
            starts_at: freeze.starts_at.into(),
            ends_at: freeze.ends_at.into(),
            reason: freeze.reason.clone(),
            scope: scope.unwrap_or_else(|_| "{}".to_owned()),
            created_by: freeze.created_by.clone(),
            created_at: freeze.created_at.into(),
            ended_at: freeze.ended.as_ref().map(|(at, _)| (*at).into()),
            ended_by: freeze.ended.as_ref().map(|(_, by)| by.clone()),
        }
    }

    pub(crate) fn read(self) -> StoreResult<Freeze> {
        let id = self.id;
        let scope: ScopeText = serde_json::from_str(&self.scope).map_err(|why| corrupt("freezes", id, why))?;
        let except = scope.except.iter().map(|key| JobKey::new(key)).collect::<Result<Vec<_>, Invalid>>();
        Ok(everbell_core::with!(Freeze {
            label: scope.label,
            except: except.map_err(|why| corrupt("freezes", id, why))?,
            ended: self.ended_at.map(Into::into).zip(self.ended_by),
            ..Freeze::new(
                id,
                self.starts_at.into(),
                self.ends_at.into(),
                self.reason,
                self.created_by,
                self.created_at.into()
            )
        }))
    }
}

/// The time before which freezes that are over are forgotten.
pub(crate) fn forgotten_before(now: Timestamp) -> Timestamp {
    let kept = SignedDuration::try_from(FREEZE_RETENTION).unwrap_or_default();
    now.checked_sub(kept).unwrap_or(Timestamp::MIN)
}

/// The refusal of one freeze more.
pub(crate) fn too_many_freezes() -> Invalid {
    Invalid::new("from", format!("there are {MAX_FREEZES} freezes already that are not over, which is the most"))
}
