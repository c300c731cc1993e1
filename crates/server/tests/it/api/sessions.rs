//! Sessions of the web pages: the server knows them, and ends them.

use serde_json::json;

use super::events::Stream;
use crate::server::{Folder, Server, TARGETS};
use crate::ui::visitor::Visitor;

fn token(server: &Server, name: &str, role: &str) -> String {
    let made = server.post("/tokens", &json!({ "name": name, "role": role }));
    made.expect(201)["token"].as_str().unwrap().to_owned()
}

/// Returns the status of a page with these cookies.
fn status(server: &Server, cookies: &str) -> u16 {
    server.raw("GET", "/jobs", &[("cookie", cookies)], b"").status
}

fn check_signing_out(server: &Server) {
    let visitor = Visitor::admin(server);
    let cookies = visitor.cookies();
    assert!(!cookies.contains("evb_") && !cookies.contains(&server.token), "{cookies}");
    assert_eq!(status(server, &cookies), 200);
    assert_eq!(visitor.post("/sign-out", &[]).status, 303);
    // The old value is worth nothing, and neither is a cookie with the token itself.
    assert_eq!(status(server, &cookies), 303);
    let (name, _) = cookies.split_once('=').unwrap();
    assert_eq!(status(server, &format!("{name}={}~word", server.token)), 303);
    assert_eq!(status(server, &format!("{name}={}", server.token)), 303);

    let trail = server.get("/audit").expect(200);
    let actions: Vec<_> = trail["items"].as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    assert!(actions.contains(&&json!("session.create")) && actions.contains(&&json!("session.end")), "{trail}");
}

#[test]
fn signing_out_ends_the_session_on_the_server() {
    check_signing_out(&Server::start());
}

#[test]
fn signing_out_ends_the_session_on_postgres() {
    check_signing_out(&Server::postgres(TARGETS));
}

#[test]
fn sessions_are_listed_and_ended_by_their_owner_and_by_admins() {
    let server = Server::start();
    let (ana, ben) = (token(&server, "ana", "viewer"), token(&server, "ben", "viewer"));
    let (first, second) = (Visitor::new(&server, &ana), Visitor::new(&server, &ana));
    let other = Visitor::new(&server, &ben);
    let all = server.get("/sessions?all=true").expect(200);
    assert_eq!(all["items"].as_array().unwrap().len(), 3, "{all}");

    let header = format!("Bearer {ana}");
    let as_ana = |method: &str, path: &str| server.request(method, path, &[("authorization", header.as_str())], b"");
    as_ana("GET", "/sessions?all=true").problem(403, "Forbidden");
    let own = as_ana("GET", "/sessions").expect(200);
    let items = own["items"].as_array().unwrap();
    assert!(items.len() == 2 && items.iter().all(|session| session["actor"] == "token:ana"), "{own}");
    assert_eq!(items[0]["from"], "127.0.0.1");
    // Somebody else's is not theirs to see or to end.
    let bens = all["items"].as_array().unwrap().iter().find(|session| session["actor"] == "token:ben").unwrap();
    let bens = format!("/sessions/{}", bens["id"].as_str().unwrap());
    as_ana("DELETE", &bens).problem(404, "NotFound");
    as_ana("DELETE", "/sessions?actor=token:ben").problem(403, "Forbidden");
    as_ana("DELETE", &format!("/sessions/{}", items[0]["id"].as_str().unwrap())).expect(204);
    assert_eq!(status(&server, &second.cookies()), 303, "the newest is the first of the list");
    assert_eq!(status(&server, &first.cookies()), 200);
    assert_eq!(as_ana("DELETE", "/sessions").expect(200)["ended"], 1);
    assert_eq!(status(&server, &first.cookies()), 303);

    assert_eq!(status(&server, &other.cookies()), 200);
    server.delete(&bens).expect(204);
    assert_eq!(status(&server, &other.cookies()), 303);
}

fn execute(server: &Server, sql: &'static str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(everbell_store::testing::execute(&server.database_url(), sql));
}

#[test]
fn a_session_ends_when_it_is_idle_or_its_token_changes() {
    let server = Server::start();
    let ana = token(&server, "ana", "viewer");
    let cases = [
        ("update everbell.sessions set last_used_at = (unixepoch() - 11 * 3600) * 1000000", 200),
        ("update everbell.sessions set last_used_at = (unixepoch() - 13 * 3600) * 1000000", 303),
        ("update everbell.sessions set expires_at = unixepoch() * 1000000", 303),
        ("update everbell.tokens set role = 'operator' where name = 'ana'", 303),
    ];
    for (sql, expected) in cases {
        let visitor = Visitor::new(&server, &ana);
        assert_eq!(status(&server, &visitor.cookies()), 200);
        execute(&server, sql);
        assert_eq!(status(&server, &visitor.cookies()), expected, "{sql}");
    }
    let visitor = Visitor::new(&server, &ana);
    execute(&server, "update everbell.tokens set expires_at = (unixepoch() - 3600) * 1000000 where name = 'ana'");
    assert_eq!(status(&server, &visitor.cookies()), 303);
}

#[test]
fn a_session_ends_with_its_token() {
    let server = Server::start();
    let visitor = Visitor::new(&server, &token(&server, "ana", "viewer"));
    assert_eq!(status(&server, &visitor.cookies()), 200);
    server.delete("/tokens/ana").expect(204);
    assert_eq!(status(&server, &visitor.cookies()), 303);
    assert_eq!(server.get("/sessions?all=true").expect(200)["items"], json!([]));
}

#[test]
fn admins_end_the_sessions_of_a_token() {
    let server = Server::start();
    let (ana, ben) = (token(&server, "ana", "viewer"), token(&server, "ben", "viewer"));
    let (first, second) = (Visitor::new(&server, &ana), Visitor::new(&server, &ana));
    let other = Visitor::new(&server, &ben);
    let listed = server.get("/sessions?actor=token:ana").expect(200);
    let items = listed["items"].as_array().unwrap();
    assert!(items.len() == 2 && items.iter().all(|session| session["role"] == "viewer"), "{listed}");
    server.get("/sessions?actor=token:ana&all=true").problem(400, "InvalidInput");

    let admin = Visitor::admin(&server);
    assert!(admin.page("/settings").contains("Sign out everywhere: ana"));
    let reply = admin.post("/settings/sessions/end", &[("actor", "token:ana")]);
    assert_eq!((reply.status, reply.headers["location"].as_str()), (303, "/settings"), "{reply:?}");
    let statuses = [&first, &second, &other, &admin].map(|visitor| status(&server, &visitor.cookies()));
    assert_eq!(statuses, [303, 303, 200, 200]);

    // Others cannot.
    other.post("/settings/sessions/end", &[("actor", "token:admin")]);
    assert_eq!(status(&server, &admin.cookies()), 200);
}

#[test]
fn a_session_ends_on_every_instance() {
    let server = Server::postgres(TARGETS);
    let second = Server::in_folder(Folder::new(), &[], &[("EVERBELL_DATABASE_URL", &server.database_url())]);
    let visitor = Visitor::admin(&server);
    let (name, value) = visitor.cookies().split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    // The name of the cookie has the port.
    let (stem, _) = name.rsplit_once('-').unwrap();
    let port = second.address.rsplit_once(':').unwrap().1.to_owned();
    let cookie = format!("{stem}-{port}={value}");
    assert_eq!(status(&second, &cookie), 200);
    assert_eq!(visitor.post("/sign-out", &[]).status, 303);
    assert_eq!(status(&second, &cookie), 303);
}

#[test]
fn signing_out_everywhere_ends_streams_too() {
    let server = Server::start();
    let ana = token(&server, "ana", "viewer");
    let (here, elsewhere) = (Visitor::new(&server, &ana), Visitor::new(&server, &ana));
    let page = here.page("/settings");
    assert!(page.contains("this browser") && page.contains("Sign out everywhere"), "{page}");
    let mut stream = Stream::with(&server, "/ui/events", &format!("cookie: {}\r\n", elsewhere.cookies()));
    let reply = here.post("/settings/sessions/end", &[]);
    assert_eq!((reply.status, reply.headers["location"].as_str()), (303, "/sign-in"), "{reply:?}");
    assert_eq!(status(&server, &elsewhere.cookies()), 303);
    server.job("daily", &json!({}));
    let rest = stream.rest(3).expect("the stream goes on");
    assert!(!rest.contains("job.create"), "{rest}");
}
