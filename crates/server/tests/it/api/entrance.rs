//! Trust in requests: identities, addresses behind a proxy, hosts, and the origin of forms.

use serde_json::json;

use crate::server::{Server, TARGETS};
use crate::ui::visitor::Visitor;

const METRICS_TOKEN: &str = "evm_0123456789abcdef0123456789abcdef";

/// The configured admin and a stored token `admin` are two identities.
#[test]
fn the_configured_admin_has_a_name_of_its_own() {
    let configured = format!("evb_{}", "x".repeat(43));
    let mut server = Server::launch(TARGETS, None, &[("EVERBELL_ADMIN_TOKEN", &configured)]);
    server.token.clone_from(&configured);
    assert_eq!(server.get("/status").expect(200)["actor"], "config:admin");
    let made = server.post("/tokens", &json!({ "name": "admin", "role": "operator" })).expect(201);
    let once = |token: &str| {
        let header = format!("Bearer {token}");
        let headers = [("authorization", header.as_str()), ("idempotency-key", "k1")];
        server.request("POST", "/targets/print/try", &headers, b"{}")
    };
    let (first, second) = (once(&configured), once(made["token"].as_str().unwrap()));
    assert!(first.status == 202 && second.status == 202, "{first:?} {second:?}");
    assert!(!second.headers.contains_key("idempotency-replayed"), "{second:?}");
    // It is not the last admin, so it can be revoked.
    server.delete("/tokens/admin").expect(204);
    let trail = server.get("/audit?object=token:admin").expect(200);
    assert_eq!(trail["items"][0]["actor"], "config:admin", "{trail}");
}

#[test]
fn metrics_are_for_this_machine_by_its_own_name() {
    let server = Server::start();
    let asked = |host: &str| {
        // A second `Host` would be another request.
        let mut stream = std::net::TcpStream::connect(&server.address).unwrap();
        let head = format!("GET /metrics HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut stream, &mut text).unwrap();
        text.split_whitespace().nth(1).unwrap().parse::<u16>().unwrap()
    };
    for host in ["localhost", "127.0.0.1:7070", "[::1]:7070", server.address.as_str()] {
        assert_eq!(asked(host), 200, "{host}");
    }
    for host in ["evil.example", "evil.example:7070", "localhost.evil.example", "10.0.0.1"] {
        assert_eq!(asked(host), 421, "{host}");
    }
}

#[test]
fn metrics_behind_a_proxy_need_a_token() {
    for setting in ["trust_proxy = true", "public_url = \"https://cron.example\""] {
        let server = Server::with(&format!("{TARGETS}\n[server]\n{setting}\n"));
        let problem = server.raw("GET", "/metrics", &[], b"").problem(403, "Forbidden");
        assert!(problem["detail"].as_str().unwrap().contains("auth.metrics_token"), "{problem}");
    }
}

#[test]
fn the_token_for_metrics_is_a_bearer_token_and_cannot_be_guessed_for_ever() {
    let server = Server::launch(TARGETS, None, &[("EVERBELL_METRICS_TOKEN", METRICS_TOKEN)]);
    let status = |header: &str| server.raw("GET", "/metrics", &[("authorization", header)], b"").status;
    assert_eq!(status(&format!("Basic {METRICS_TOKEN}")), 401);
    let guesses: Vec<u16> = (0..60).map(|_| status("Bearer evm_a-wrong-guess-of-this-length")).collect();
    assert!(guesses.contains(&401) && guesses.contains(&429), "{guesses:?}");
    assert_eq!(status(&format!("bearer {METRICS_TOKEN}")), 200);
}

/// A client can write any `X-Forwarded-For` of its own; the proxy adds the last line.
#[test]
fn the_last_forwarded_address_counts() {
    let server = Server::with(&format!("{TARGETS}\n[server]\ntrust_proxy = true\n"));
    let guesses: Vec<u16> = (0..60)
        .map(|n| {
            let forged = format!("203.0.113.{n}");
            let headers =
                [("authorization", "Bearer evb_guess"), ("x-forwarded-for", &forged), ("x-forwarded-for", "192.0.2.7")];
            server.request("GET", "/jobs", &headers, b"").status
        })
        .collect();
    assert!(guesses.contains(&429), "{guesses:?}");
    let elsewhere = [("authorization", "Bearer evb_guess"), ("x-forwarded-for", "192.0.2.7, 192.0.2.8")];
    assert_eq!(server.request("GET", "/jobs", &elsewhere, b"").status, 401);
}

#[test]
fn signing_in_from_another_site_is_refused() {
    let server = Server::start();
    let form = format!("token={}", server.token);
    let sent = |name: &str, value: &str| {
        let headers = [("content-type", "application/x-www-form-urlencoded"), (name, value)];
        server.raw("POST", "/sign-in", &headers, form.as_bytes())
    };
    let own = server.url("");
    for (name, value) in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("referer", "https://evil.example/page"),
        ("origin", &format!("{own}.evil.example")),
    ] {
        let reply = sent(name, value);
        assert_eq!(reply.status, 403, "{name}: {value}");
        assert!(!reply.headers.contains_key("set-cookie"), "{reply:?}");
    }
    for (name, value) in [("origin", own.as_str()), ("referer", &format!("{own}/sign-in")), ("x-nothing", "")] {
        assert_eq!(sent(name, value).status, 303, "{name}: {value}");
    }
}

#[test]
fn cookies_are_for_https_only_where_people_use_it() {
    let plain = Server::start();
    let set = Visitor::signed_in_by(&plain, &plain.token, &[]).headers["set-cookie"].clone();
    assert!(set.starts_with("everbell-session-") && !set.contains("Secure"), "{set}");
    assert!(set.contains("HttpOnly") && set.contains("SameSite=Lax"), "{set}");
    let public = Server::with(&format!("{TARGETS}\n[server]\npublic_url = \"https://cron.example\"\n"));
    let set =
        Visitor::signed_in_by(&public, &public.token, &[("origin", "https://cron.example")]).headers["set-cookie"]
            .clone();
    assert!(set.starts_with("__Host-everbell-session") && set.contains("; Secure"), "{set}");
    assert!(set.contains("Path=/;") && !set.contains("Domain"), "{set}");
    let proxied = Server::with(&format!("{TARGETS}\n[server]\ntrust_proxy = true\n"));
    let set = Visitor::signed_in_by(&proxied, &proxied.token, &[("x-forwarded-proto", "https")]).headers["set-cookie"]
        .clone();
    assert!(set.starts_with("__Host-everbell-session"), "{set}");
}

#[test]
fn every_answer_carries_the_headers_that_isolate_it() {
    let server = Server::start();
    for path in ["/sign-in", "/api/v1/jobs", "/livez", "/nothing", "/docs/api"] {
        let headers = server.raw("GET", path, &[], b"").headers;
        assert_eq!(headers["cross-origin-opener-policy"], "same-origin", "{path}");
        assert_eq!(headers["cross-origin-resource-policy"], "same-origin", "{path}");
        assert!(headers["permissions-policy"].contains("camera=()"), "{path}");
        assert!(!headers.contains_key("strict-transport-security"), "{path}");
    }
    let public = Server::with(&format!("{TARGETS}\n[server]\npublic_url = \"https://cron.example\"\n"));
    for path in ["/sign-in", "/api/v1/jobs"] {
        let headers = public.raw("GET", path, &[], b"").headers;
        assert!(headers["strict-transport-security"].starts_with("max-age="), "{path}");
    }
}

/// Standard output may be a journal or the log of a container, which others read.
#[test]
fn the_first_token_is_not_printed_to_a_log() {
    let server = Server::start();
    assert!(!server.greeting.contains("evb_"), "{}", server.greeting);
    assert!(server.greeting.contains("everbell-data/admin-token"), "{}", server.greeting);
    assert!(!server.log().contains(&server.token));
}
