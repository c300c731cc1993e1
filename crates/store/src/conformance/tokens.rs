//! Tokens: only hashes are stored; expiry and revocation end them.

use everbell_core::store::{LastAdmin, NewToken, Token};
use jiff::SignedDuration;

use super::Fresh;
use super::given::{assert_refused, at, audit};
use super::world::World;

fn token(name: &str, byte: u8) -> NewToken {
    NewToken {
        name: name.to_owned(),
        hash: [byte; 32],
        role: "operator".to_owned(),
        created_at: at("00:00"),
        expires_at: None,
    }
}

async fn create(world: &World, token: &NewToken) -> Token {
    world.store.create_token(token, &audit("token.create", "token", at("00:00"))).await.unwrap()
}

pub async fn a_token_is_found_by_its_hash(fresh: Fresh) {
    let world = World::new(&fresh);
    let made = create(&world, &token("ops", 1)).await;
    create(&world, &token("other", 2)).await;
    assert_eq!((made.name.as_str(), made.role.as_str()), ("ops", "operator"));
    assert_eq!((made.created_at, made.expires_at, made.revoked_at), (at("00:00"), None, None));
    assert_eq!(made.last_used_at, None);
    let found = world.store.find_token(&[1; 32], at("01:00")).await.unwrap().unwrap();
    assert_eq!((found.name, found.role), (made.name, made.role));
    let mut almost = [1; 32];
    almost[31] = 2;
    assert_eq!(world.store.find_token(&almost, at("01:00")).await.unwrap(), None);
}

pub async fn a_use_is_remembered_to_the_minute(fresh: Fresh) {
    let world = World::new(&fresh);
    create(&world, &token("ops", 1)).await;
    for now in ["01:00:30", "05:17:45"] {
        world.store.find_token(&[1; 32], at(now)).await.unwrap();
        let used = world.store.list_tokens().await.unwrap()[0].last_used_at.unwrap();
        let ago = at(now).duration_since(used);
        assert!(ago >= SignedDuration::ZERO && ago <= SignedDuration::from_mins(1), "{used} for {now}");
    }
}

pub async fn a_name_and_a_hash_are_taken(fresh: Fresh) {
    let world = World::new(&fresh);
    create(&world, &token("ops", 1)).await;
    let entry = audit("token.create", "token", at("00:01"));
    assert_refused(world.store.create_token(&token("ops", 2), &entry).await, "conflict");
    assert_refused(world.store.create_token(&token("twin", 1), &entry).await, "conflict");
    let revoke = audit("token.revoke", "token", at("00:02"));
    world.store.revoke_token("ops", at("00:02"), LastAdmin::Refuse, &revoke).await.unwrap();
    assert_refused(world.store.create_token(&token("ops", 2), &entry).await, "conflict");
    assert_eq!(world.store.list_tokens().await.unwrap().len(), 1);
    assert_eq!(world.store.find_token(&[2; 32], at("01:00")).await.unwrap(), None);
    assert_eq!(world.actions(None).await, ["token.revoke", "token.create"]);
}

pub async fn a_token_ends_when_it_expires(fresh: Fresh) {
    let world = World::new(&fresh);
    let expires_at = Some(at("12:00"));
    create(&world, &NewToken { expires_at, ..token("short", 1) }).await;
    let found = async |now| world.store.find_token(&[1; 32], at(now)).await.unwrap().is_some();
    assert!(found("11:59:59.999999").await);
    assert!(!found("12:00").await, "from that moment on");
    assert!(!found("13:00").await);
    let listed = world.store.list_tokens().await.unwrap();
    assert_eq!((listed.len(), listed[0].expires_at, listed[0].revoked_at), (1, expires_at, None));
}

pub async fn a_revoked_token_is_not_found(fresh: Fresh) {
    let world = World::new(&fresh);
    create(&world, &token("ops", 1)).await;
    create(&world, &token("other", 2)).await;
    let entry = audit("token.revoke", "token:ops", at("01:00"));
    world.store.revoke_token("ops", at("01:00"), LastAdmin::Refuse, &entry).await.unwrap();
    assert_eq!(world.store.find_token(&[1; 32], at("01:00")).await.unwrap(), None);
    assert!(world.store.find_token(&[2; 32], at("01:00")).await.unwrap().is_some());
    let listed = world.store.list_tokens().await.unwrap();
    let ops = listed.iter().find(|token| token.name == "ops").unwrap();
    assert_eq!(ops.revoked_at, Some(at("01:00")));
    world
        .store
        .revoke_token("ops", at("02:00"), LastAdmin::Refuse, &audit("token.revoke", "token", at("02:00")))
        .await
        .unwrap();
    let listed = world.store.list_tokens().await.unwrap();
    let ops = listed.iter().find(|token| token.name == "ops").unwrap();
    assert_eq!(ops.revoked_at, Some(at("01:00")), "it stays revoked since then");
}

pub async fn an_unknown_token_cannot_be_revoked(fresh: Fresh) {
    let world = World::new(&fresh);
    create(&world, &token("ops", 1)).await;
    for name in ["nobody", "OPS", "o_s", ""] {
        let entry = audit("token.revoke", "token", at("01:00"));
        assert_refused(world.store.revoke_token(name, at("01:00"), LastAdmin::Refuse, &entry).await, "not found");
    }
    assert_eq!(world.actions(None).await, ["token.create"]);
}

fn admin(name: &str, byte: u8) -> NewToken {
    NewToken { role: "admin".to_owned(), ..token(name, byte) }
}

pub async fn the_last_admin_stays_unless_it_may_go(fresh: Fresh) {
    let world = World::new(&fresh);
    create(&world, &admin("ana", 1)).await;
    create(&world, &NewToken { expires_at: Some(at("00:30")), ..admin("expired", 2) }).await;
    create(&world, &token("ops", 3)).await;
    let entry = || audit("token.revoke", "token", at("01:00"));
    let revoke = async |name, last_admin| world.store.revoke_token(name, at("01:00"), last_admin, &entry()).await;
    assert_refused(revoke("ana", LastAdmin::Refuse).await, "conflict");
    assert!(world.store.find_token(&[1; 32], at("01:00")).await.unwrap().is_some(), "it is still valid");
    revoke("expired", LastAdmin::Refuse).await.unwrap();
    revoke("ops", LastAdmin::Refuse).await.unwrap();
    revoke("ana", LastAdmin::Revoke).await.unwrap();
    assert_eq!(world.store.find_token(&[1; 32], at("01:00")).await.unwrap(), None);
    revoke("ana", LastAdmin::Refuse).await.unwrap();
}

pub async fn one_of_the_last_admins_remains(fresh: Fresh) {
    let world = World::new(&fresh);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..6_u8 {
        create(&world, &admin(&format!("admin-{number}"), number)).await;
    }
    for number in 0..6_u8 {
        let store = fresh.reconnect().await;
        tasks.spawn(async move {
            let entry = audit("token.revoke", "token", at("01:00"));
            store.revoke_token(&format!("admin-{number}"), at("01:00"), LastAdmin::Refuse, &entry).await.is_ok()
        });
    }
    let revoked = tasks.join_all().await.into_iter().filter(|done| *done).count();
    let valid = world.store.list_tokens().await.unwrap().iter().filter(|token| token.revoked_at.is_none()).count();
    assert_eq!((revoked, valid), (5, 1));
}
