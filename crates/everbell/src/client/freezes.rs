//! [`Freezes`]: times in which schedules do not fire.

use everbell_core::Definition;
use everbell_core::freeze::Freeze;
use everbell_core::store::StoreResult;
use everbell_core::{Invalid, JobKey, RunId};
use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::{Context, Facts};
use crate::engine::random;

/// Actions on freezes. Slots inside a freeze become a gap with the reason `frozen`, and are not caught up; runs by hand,
/// retries and backfills go on, and a one-time job waits until its end.
#[derive(Clone, Debug)]
pub struct Freezes {
    context: Context,
}

/// A freeze to be announced.
#[derive(Clone, Debug, Default)]
pub struct NewFreeze {
    /// The first instant that may not fire; now if absent.
    pub from: Option<Timestamp>,
    /// The first instant that may fire again.
    pub until: Timestamp,
    /// Why, from 3 to 500 characters.
    pub reason: String,
    /// Only jobs with this label, of any value if that is absent; all jobs if there is none.
    pub label: Option<(String, Option<String>)>,
    /// The keys of jobs that are exempt from the freeze.
    pub except: Vec<String>,
}

impl Freezes {
    pub(crate) fn new(context: Context) -> Freezes {
        Freezes { context }
    }

    /// Acts in the name of this actor: default `code`.
    #[must_use]
    pub fn by(self, actor: &str) -> Freezes {
        Freezes { context: self.context.by(actor) }
    }

    /// Sets the origin of the request, for the audit trail.
    #[must_use]
    pub fn with_origin(self, origin: everbell_core::store::Origin) -> Freezes {
        Freezes { context: self.context.with_origin(origin) }
    }

    /// Lists the freezes that are in force or still to come, the earliest first.
    pub async fn list(&self) -> StoreResult<Vec<Freeze>> {
        self.context.parts.store.freezes(self.context.now()).await
    }

    /// Returns the freeze that keeps a job from firing now, if there is one: the one that lasts longest.
    pub async fn in_force_for(&self, job: &Definition) -> StoreResult<Option<Freeze>> {
        let now = self.context.now();
        let freezes = self.list().await?.into_iter();
        let in_force = freezes.filter(|freeze| freeze.is_in_force(now) && freeze.applies_to(job));
        Ok(in_force.max_by_key(|freeze| freeze.ends_at))
    }

    /// Announces a freeze.
    pub async fn add(&self, new: NewFreeze) -> StoreResult<Freeze> {
        let now = everbell_core::store::micros(self.context.now());
        let except = new.except.iter().map(|key| JobKey::new(key)).collect::<Result<Vec<_>, Invalid>>();
        let freeze = everbell_core::with!(Freeze {
            label: new.label,
            except: except.map_err(|invalid| Invalid { field: "except", ..invalid })?,
            ..Freeze::new(
                RunId::by_hand(now, random()).as_uuid(),
                everbell_core::store::micros(new.from.unwrap_or(now)),
                everbell_core::store::micros(new.until),
                new.reason,
                self.context.actor.clone(),
                now
            )
        });
        freeze.check()?;
        let context = self.context.clone().because(&freeze.reason);
        let audit = context.entry("freeze.add", format!("freeze:{}", freeze.id), now, None, Some(&facts(&freeze)));
        self.context.parts.store.add_freeze(&freeze, &audit).await?;
        Ok(freeze)
    }

    /// Ends a freeze before its time, or cancels one that is still to come.
    pub async fn end(&self, id: Uuid) -> StoreResult<Freeze> {
        let now = self.context.now();
        let audit = self.context.entry("freeze.end", format!("freeze:{id}"), now, None, None);
        let ended = self.context.parts.store.end_freeze(id, &audit).await?;
        Ok(ended)
    }
}

fn facts(freeze: &Freeze) -> Facts {
    let mut facts = Facts::new();
    facts.insert("from".to_owned(), json!(freeze.starts_at.to_string()));
    facts.insert("until".to_owned(), json!(freeze.ends_at.to_string()));
    facts.insert("label".to_owned(), json!(freeze.label_text()));
    let except: Vec<&str> = freeze.except.iter().map(JobKey::as_str).collect();
    facts.insert("except".to_owned(), json!(except));
    facts
}
