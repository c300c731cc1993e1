//! Revoking a token, after a confirmation.

use askama::Template;
use axum::http::Method;

use crate::equivalent::Equivalent;
use crate::markup::{Markup, url_part};
use crate::pages::ReturnTo;
use crate::pages::action::Refusal;
use crate::{Frame, Section, UiRequest, UiResponse};
use everbell_http::access::{Role, expect_role};
use everbell_http::problem::{Kind, Problem};

#[derive(Template)]
#[template(path = "settings/revoke.html")]
struct RevokePage {
    frame: Frame,
    subject: ReturnTo,
    refusal: Refusal,
    name: String,
    role: String,
    used: Option<Markup>,
    /// Whether the actor is signed in with this token.
    own: bool,
    same: Equivalent,
}

pub(crate) async fn show(request: UiRequest) -> Result<UiResponse, Problem> {
    expect_role(&request.actor, Role::Admin)?;
    let tokens = request.app.bell.store().list_tokens().await?;
    let name = request.part("name");
    let found = tokens.iter().find(|token| token.name == name && token.revoked_at.is_none());
    let token = found.ok_or_else(|| Problem::new(Kind::NotFound, format!("No active token is named `{name}`.")))?;
    let page = RevokePage {
        frame: request.frame(Section::Settings, format!("Revoke {name}")).await,
        subject: ReturnTo("/settings"),
        refusal: Refusal::default(),
        name: name.to_owned(),
        role: token.role.clone(),
        used: token.last_used_at.map(|at| request.clock().away(at)),
        own: request.actor.name == format!("token:{name}"),
        same: Equivalent::new(
            &request.api_base(),
            "DELETE",
            &format!("/tokens/{}", url_part(name)),
            &["tokens", "revoke", name],
        ),
    };
    UiResponse::page(&page)
}

pub(crate) async fn send(request: UiRequest) -> Result<UiResponse, Problem> {
    let name = request.part("name").to_owned();
    request.perform::<()>(Method::DELETE, "/tokens/{name}", &[("name", &name)], &()).await?;
    Ok(UiResponse::done("/settings", format!("Token {name} revoked.")))
}
