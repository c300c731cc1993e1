//! Sessions: only hashes are stored; they end by themselves, on request, and with their token.

use everbell_core::store::{
    LastAdmin, MAX_SESSIONS_PER_TOKEN, NewSession, NewToken, PruneBefore, Session, SessionFilter,
};
use uuid::Uuid;

use super::Fresh;
use super::given::{at, audit};
use super::world::World;

/// A session of the token `[token; 32]` that ends at noon.
fn session(number: u128, token: u8) -> NewSession {
    let mut hash = [0; 32];
    hash[..16].copy_from_slice(&number.to_be_bytes());
    NewSession {
        id: Uuid::from_u128(number),
        hash,
        token_hash: [token; 32],
        actor: format!("token:t{token}"),
        role: "viewer".to_owned(),
        created_at: at("01:00"),
        expires_at: at("12:00"),
        address: Some("192.0.2.7".to_owned()),
        user_agent: Some("Mozilla/5.0 'quoted' \"twice\"".to_owned()),
    }
}

async fn create(world: &World, session: &NewSession) {
    world.store.create_session(session, &audit("session.create", "session", at("01:00"))).await.unwrap();
}

async fn end(world: &World, filter: SessionFilter) -> u64 {
    world.store.end_sessions(&filter, &audit("session.end", "session", at("02:00"))).await.unwrap()
}

async fn listed(world: &World, filter: SessionFilter) -> Vec<u128> {
    let sessions = world.store.list_sessions(&filter, at("03:00")).await.unwrap();
    sessions.iter().map(|session| session.id.as_u128()).collect()
}

fn sessions_of(actor: &str) -> SessionFilter {
    SessionFilter { actor: Some(actor.to_owned()), id: None }
}

pub async fn a_session_is_found_by_its_hash(fresh: Fresh) {
    let world = World::new(&fresh);
    let new = session(1, 1);
    create(&world, &new).await;
    create(&world, &session(2, 1)).await;
    let expected = Session {
        id: new.id,
        token_hash: new.token_hash,
        actor: new.actor.clone(),
        role: new.role.clone(),
        created_at: new.created_at,
        expires_at: new.expires_at,
        last_used_at: at("02:30"),
        address: new.address.clone(),
        user_agent: new.user_agent.clone(),
    };
    assert_eq!(world.store.find_session(&new.hash, at("02:30:59")).await.unwrap(), Some(expected.clone()));
    // A use that is reported late does not move the time back.
    assert_eq!(world.store.find_session(&new.hash, at("02:00")).await.unwrap(), Some(expected));
    assert_eq!(world.store.find_session(&[9; 32], at("02:00")).await.unwrap(), None);
    assert_eq!(world.actions(None).await, ["session.create", "session.create"]);
}

pub async fn a_session_ends_by_itself(fresh: Fresh) {
    let world = World::new(&fresh);
    let new = session(1, 1);
    create(&world, &new).await;
    assert!(world.store.find_session(&new.hash, at("11:59:59")).await.unwrap().is_some());
    assert_eq!(world.store.find_session(&new.hash, at("12:00")).await.unwrap(), None);
    let list = world.store.list_sessions(&SessionFilter::default(), at("12:00")).await.unwrap();
    assert_eq!(list, []);
}

pub async fn a_session_that_is_not_used_ends(fresh: Fresh) {
    let world = World::new(&fresh);
    let new = NewSession { created_at: at("00:00"), expires_at: at("23:00"), ..session(1, 1) };
    create(&world, &new).await;
    let listed = async |now: &str| world.store.list_sessions(&SessionFilter::default(), at(now)).await.unwrap().len();
    assert_eq!((listed("11:59").await, listed("12:00").await), (1, 0));
    assert!(world.store.find_session(&new.hash, at("11:59")).await.unwrap().is_some());
    // Every use puts its end off, up to a bound.
    assert_eq!((listed("12:00").await, listed("22:59").await), (1, 1));
    assert!(world.store.find_session(&new.hash, at("22:59")).await.unwrap().is_some());
    assert_eq!((world.store.find_session(&new.hash, at("23:00")).await.unwrap(), listed("23:00").await), (None, 0));

    let unused = NewSession { created_at: at("00:00"), expires_at: at("23:00"), ..session(2, 1) };
    create(&world, &unused).await;
    assert_eq!(world.store.find_session(&unused.hash, at("12:00")).await.unwrap(), None);
}

pub async fn sessions_are_listed_newest_first(fresh: Fresh) {
    let world = World::new(&fresh);
    for (number, token, hour) in [(1, 1, "02:00"), (2, 2, "01:00"), (3, 1, "02:30")] {
        create(&world, &NewSession { created_at: at(hour), ..session(number, token) }).await;
    }
    assert_eq!(listed(&world, SessionFilter::default()).await, [3, 1, 2]);
    assert_eq!(listed(&world, sessions_of("token:t1")).await, [3, 1]);
    assert_eq!(listed(&world, SessionFilter { id: Some(Uuid::from_u128(2)), actor: None }).await, [2]);
    assert_eq!(
        listed(&world, SessionFilter { id: Some(Uuid::from_u128(2)), ..sessions_of("token:t1") }).await,
        [0_u128; 0]
    );
}

pub async fn ended_sessions_are_gone(fresh: Fresh) {
    let world = World::new(&fresh);
    for (number, token) in [(1, 1), (2, 1), (3, 2)] {
        create(&world, &session(number, token)).await;
    }
    // An actor cannot end the session of another.
    assert_eq!(end(&world, SessionFilter { id: Some(Uuid::from_u128(3)), ..sessions_of("token:t1") }).await, 0);
    assert_eq!(world.actions(None).await.len(), 3, "nothing happened, so nothing is written");
    assert_eq!(end(&world, SessionFilter { id: Some(Uuid::from_u128(1)), actor: None }).await, 1);
    assert_eq!(world.store.find_session(&session(1, 1).hash, at("02:00")).await.unwrap(), None);
    assert_eq!(end(&world, sessions_of("token:t1")).await, 1);
    assert_eq!(listed(&world, SessionFilter::default()).await, [3]);
    assert_eq!(world.actions(None).await[..2], ["session.end", "session.end"]);
}

pub async fn a_revoked_token_has_no_sessions(fresh: Fresh) {
    let world = World::new(&fresh);
    for (name, byte) in [("t1", 1), ("t2", 2)] {
        let role = "viewer".to_owned();
        let new = NewToken { name: name.to_owned(), hash: [byte; 32], role, created_at: at("00:00"), expires_at: None };
        world.store.create_token(&new, &audit("token.create", "token", at("00:00"))).await.unwrap();
        create(&world, &session(u128::from(byte), byte)).await;
    }
    let entry = audit("token.revoke", "token:t1", at("02:00"));
    world.store.revoke_token("t1", at("02:00"), LastAdmin::Refuse, &entry).await.unwrap();
    assert_eq!(listed(&world, SessionFilter::default()).await, [2]);
    assert_eq!(world.store.find_session(&session(1, 1).hash, at("02:00")).await.unwrap(), None);
}

pub async fn a_token_has_a_bounded_number_of_sessions(fresh: Fresh) {
    let world = World::new(&fresh);
    create(&world, &session(1_000, 2)).await;
    let most = u128::from(MAX_SESSIONS_PER_TOKEN);
    for number in 1..=most + 2 {
        create(&world, &session(number, 1)).await;
    }
    let newest: Vec<u128> = (3..=most + 2).rev().collect();
    assert_eq!(listed(&world, sessions_of("token:t1")).await, newest);
    assert_eq!(listed(&world, sessions_of("token:t2")).await, [1_000]);
}

pub async fn sessions_that_ended_are_pruned(fresh: Fresh) {
    let world = World::new(&fresh);
    create(&world, &session(1, 1)).await;
    create(&world, &NewSession { created_at: at("02:00"), expires_at: at("15:00"), ..session(2, 1) }).await;
    // Not used since half past midnight.
    create(&world, &NewSession { created_at: at("00:30"), expires_at: at("15:00"), ..session(3, 1) }).await;
    world
        .store
        .prune(PruneBefore { history: at("00:00"), audit: at("00:00"), requests: at("13:00") }, 100)
        .await
        .unwrap();
    let both = world.store.list_sessions(&SessionFilter::default(), at("11:00")).await.unwrap();
    assert_eq!(both.iter().map(|session| session.id.as_u128()).collect::<Vec<_>>(), [2]);
}
