//! [`Orgs`]: everything that is done with orgs.

use std::collections::BTreeSet;

use everbell_core::org::{self, MAX_ORGS_AT_ONCE, Org, OrgWrite, Written};
use everbell_core::store::{OrgCounts, OrgFilter, OrgWritten, Page, PageRequest, StoreError, StoreResult};
use everbell_core::{Invalid, OrgId, storable_text};
use serde_json::{Value, json};

use super::{Context, Facts, MAX_ATTEMPTS, is_in_doubt};

/// The most orgs of an import that the audit trail names.
const MAX_NAMED_ORGS: usize = 20;
/// The longest text in the audit trail; longer ones are cut.
const MAX_TEXT_BYTES: usize = 4_096;

/// Actions on orgs: tenants with their own zone, for each of whom a job with
/// [`Schedule::per_org`](crate::Schedule::per_org) fires at the org's own local time.
///
/// If a write affects few timers they follow at once; else within moments, while an engine runs.
#[derive(Clone, Debug)]
pub struct Orgs {
    pub(super) context: Context,
}

impl Orgs {
    pub(crate) fn new(context: Context) -> Orgs {
        Orgs { context }
    }

    /// Acts in the name of this actor: default `code`.
    #[must_use]
    pub fn by(self, actor: &str) -> Orgs {
        Orgs { context: self.context.by(actor) }
    }

    /// Sets the origin of the request, for the audit trail.
    #[must_use]
    pub fn with_origin(self, origin: everbell_core::store::Origin) -> Orgs {
        Orgs { context: self.context.with_origin(origin) }
    }

    /// Sets the reason, for the audit trail.
    #[must_use]
    pub fn because(self, reason: &str) -> Orgs {
        Orgs { context: self.context.because(reason) }
    }

    /// Creates or changes an org: members that the write leaves out stay as they are, or have their default in a new
    /// org. Refuses an unknown zone, and names similar ones.
    pub async fn set(&self, write: OrgWrite) -> StoreResult<OrgWritten> {
        for _ in 1..MAX_ATTEMPTS {
            match self.try_set(&write).await {
                // Written again after a commit that may have happened it is the same.
                Err(error) if (error.is_conflict() || is_in_doubt(&error)) && write.expected_revision.is_none() => {}
                answer => return answer,
            }
        }
        self.try_set(&write).await
    }

    /// Tries the write once. The audit entry says what changed, so the org is read first, and must not have changed
    /// since.
    async fn try_set(&self, write: &OrgWrite) -> StoreResult<OrgWritten> {
        let (store, now) = (&self.context.parts.store, self.context.now());
        let there = self.find(&write.id).await?;
        let written = self.decide(there.as_ref(), write)?;
        if !written.changed {
            return Ok(written);
        }
        let action = if written.created { "org.create" } else { "org.update" };
        let (before, after) = (there.as_ref().map(facts), facts(&written.org));
        let audit = self.context.entry(action, object(&write.id), now, before.as_ref(), Some(&after));
        let write = OrgWrite { expected_revision: there.map(|org| org.revision), ..write.clone() };
        let mut answers = store.write_orgs(&[write], &audit).await?;
        self.context.parts.follow().await;
        answers.pop().ok_or_else(|| StoreError::not_found("org", &written.org.id))
    }

    /// Creates and changes orgs, all of them or none; at most 10,000 at once.
    pub async fn import(&self, writes: &[OrgWrite]) -> StoreResult<Vec<OrgWritten>> {
        expect_few(writes)?;
        let ids: Vec<&str> = writes.iter().take(MAX_NAMED_ORGS).map(|write| write.id.as_str()).collect();
        let after = Facts::from_iter([("orgs".to_owned(), json!(writes.len())), ("first".to_owned(), json!(ids))]);
        let audit = self.context.entry("org.import", "orgs".to_owned(), self.context.now(), None, Some(&after));
        let written = self.context.parts.store.write_orgs(writes, &audit).await?;
        self.context.parts.follow().await;
        Ok(written)
    }

    /// Returns the effect that [`Orgs::import`] would have, in the same order, without writing.
    pub async fn plan_import(&self, writes: &[OrgWrite]) -> StoreResult<Vec<OrgWritten>> {
        expect_few(writes)?;
        let mut seen = BTreeSet::new();
        let mut planned = Vec::with_capacity(writes.len());
        for write in writes {
            if !seen.insert(&write.id) {
                return Err(Invalid::repeated_org(&write.id).into());
            }
            let there = self.find(&write.id).await?;
            planned.push(self.decide(there.as_ref(), write).map_err(|error| of_several(error, &write.id))?);
        }
        Ok(planned)
    }

    /// Decides the effect of a write. The store decides the same again when it writes.
    fn decide(&self, there: Option<&Org>, write: &OrgWrite) -> StoreResult<OrgWritten> {
        if there.is_none() && write.only_existing {
            return Err(StoreError::not_found("org", &write.id));
        }
        let revision = there.map(|org| org.revision);
        StoreError::expect_revision("org", &write.id, write.expected_revision, revision)?;
        let created = there.is_none();
        Ok(match org::written(there, write, &self.context.actor, self.context.now())? {
            Written::New(org, _) => OrgWritten::new(*org, created, true),
            Written::Same => {
                let org = there.cloned().ok_or_else(|| StoreError::not_found("org", &write.id))?;
                OrgWritten::new(org, created, false)
            }
        })
    }

    /// Deletes an org: no job fires for it any more. Its runs stay.
    pub async fn delete(&self, org: &OrgId, if_revision: Option<u64>) -> StoreResult<()> {
        let there = self.get(org).await?;
        let (now, before) = (self.context.now(), facts(&there));
        let audit = self.context.entry("org.delete", object(org), now, Some(&before), None);
        self.context.parts.store.delete_org(org, if_revision, &audit).await?;
        self.context.parts.follow().await;
        Ok(())
    }

    /// Returns one org.
    pub async fn get(&self, org: &OrgId) -> StoreResult<Org> {
        self.context.parts.store.get_org(org).await
    }

    async fn find(&self, org: &OrgId) -> StoreResult<Option<Org>> {
        match self.get(org).await {
            Ok(org) => Ok(Some(org)),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists orgs, a page at a time, by id.
    pub async fn list(&self, filter: &OrgFilter, page: &PageRequest) -> StoreResult<Page<Org>> {
        self.context.parts.store.list_orgs(filter, page).await
    }

    /// Counts orgs, and those that need attention; at most 10,000 of each.
    pub async fn counts(&self) -> StoreResult<OrgCounts> {
        self.context.parts.store.count_orgs().await
    }
}

fn expect_few(writes: &[OrgWrite]) -> Result<(), Invalid> {
    if writes.len() <= MAX_ORGS_AT_ONCE {
        return Ok(());
    }
    Err(Invalid::new("orgs", format!("at most {MAX_ORGS_AT_ONCE} orgs at once, not {}", writes.len())))
}

/// A refusal that names the org in question, in the words of a store.
fn of_several(error: StoreError, org: &OrgId) -> StoreError {
    match error {
        StoreError::Invalid(refused) => refused.for_org(org).into(),
        other => other,
    }
}

/// The object of an audit entry about an org.
pub(super) fn object(org: &OrgId) -> String {
    format!("org:{org}")
}

/// The facts about an org that can change.
fn facts(org: &Org) -> Facts {
    let facts = json!({
        "name": org.name,
        "timezone": org.place.timezone,
        "enabled": org.place.enabled,
        "settings": storable_text(org.settings.as_str(), MAX_TEXT_BYTES),
    });
    match facts {
        Value::Object(facts) => facts,
        _ => Facts::new(),
    }
}
