//! Access with the token of a run, for its remote side.

use std::net::IpAddr;

use everbell::{Everbell, RUN_TOKEN_PREFIX};
use everbell_core::handover::Handover;

use super::{Actor, Authenticator, Credential, Role, bearer};
use crate::problem::{Kind, Problem};

impl Actor {
    /// The remote side of a run, whose token was verified. It may report about this attempt, and nothing else.
    pub(crate) fn remote_side(handover: Handover) -> Actor {
        Actor::new(format!("run:{}", handover.run), Role::Operator, Credential::Run(handover), None)
    }

    /// The run that the caller may report on, if its credential is a run token.
    pub(crate) fn handover(&self) -> Option<Handover> {
        match self.credential {
            Credential::Run(handover) => Some(handover),
            _ => None,
        }
    }
}

impl Authenticator {
    /// Authenticates the remote side of a run by its run token; `None` if the header has none.
    pub(crate) async fn authenticate_run(
        &self,
        header: Option<&str>,
        from: Option<IpAddr>,
        bell: &Everbell,
    ) -> Result<Option<Actor>, Problem> {
        let token = header.and_then(bearer).filter(|token| token.starts_with(RUN_TOKEN_PREFIX));
        let Some(token) = token else { return Ok(None) };
        if let Some(handover) = bell.runs().verify_token(token).await? {
            return Ok(Some(Actor::remote_side(handover)));
        }
        let why = Problem::new(Kind::Unauthenticated, "The run token is not valid.");
        Err(self.count_failure(from, bell, why))
    }
}
