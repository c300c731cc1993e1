//! The address, scheme, host and site of a client. Headers of a proxy count only if the configuration trusts one.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, header};

use super::options::ApiOptions;

/// The address of the client: the one that the last proxy saw, if a proxy is trusted.
pub fn client_address(options: &ApiOptions, headers: &HeaderMap, peer: Option<IpAddr>) -> Option<IpAddr> {
    let forwarded = options.trust_proxy.then(|| last(headers, "x-forwarded-for")).flatten();
    let parsed = forwarded.and_then(|text| text.parse().or_else(|_| text.parse().map(|at: SocketAddr| at.ip())).ok());
    parsed.or(peer)
}

/// The last value of a header that may have several, on one line or on many. A client writes its own before those of the
/// proxies.
fn last<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let line = headers.get_all(name).iter().next_back()?.to_str().ok()?;
    line.rsplit(',').next().map(str::trim)
}

/// Whether people reach this server through TLS.
pub fn is_secure(options: &ApiOptions, headers: &HeaderMap) -> bool {
    let is_https = |url: &String| url.starts_with("https://");
    let proto = options.trust_proxy.then(|| last(headers, "x-forwarded-proto")).flatten();
    options.public_url.as_ref().is_some_and(is_https) || proto.is_some_and(|proto| proto.eq_ignore_ascii_case("https"))
}

/// The site of a request that was sent by a page of another site. A browser names it; another client names none.
pub fn foreign_site<'h>(options: &ApiOptions, headers: &'h HeaderMap) -> Option<&'h str> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let site = text(header::ORIGIN).or_else(|| text(header::REFERER))?;
    let own = [
        text(header::HOST),
        options.trust_proxy.then(|| last(headers, "x-forwarded-host")).flatten(),
        options.public_url.as_deref().and_then(authority),
    ];
    let named = authority(site);
    let is_own = named.is_some_and(|named| own.iter().flatten().any(|own| own.eq_ignore_ascii_case(named)));
    (!is_own).then_some(site)
}

/// Host and port of an address.
fn authority(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    rest.split(['/', '?', '#']).next().filter(|authority| !authority.is_empty())
}

/// Whether a request names this machine as its host: a page whose name was made to lead here names its own.
pub fn names_this_machine(options: &ApiOptions, headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST) else { return true };
    let Ok(host) = host.to_str() else { return false };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(""),
        None => host.split(':').next().unwrap_or(""),
    };
    let is_own = |address: IpAddr| address.to_canonical().is_loopback() || options.listen == Some(address);
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> ApiOptions {
        ApiOptions { listen: Some([10, 0, 0, 5].into()), ..ApiOptions::for_tests() }
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn the_last_proxy_says_who_the_client_is() {
        let trusting = ApiOptions { trust_proxy: true, ..options() };
        let peer = Some([127, 0, 0, 1].into());
        let forwarded = headers(&[("x-forwarded-for", "6.6.6.6, 7.7.7.7"), ("x-forwarded-for", "8.8.8.8, 9.9.9.9")]);
        assert_eq!(client_address(&trusting, &forwarded, peer), Some([9, 9, 9, 9].into()));
        assert_eq!(client_address(&options(), &forwarded, peer), peer);
        let ported = headers(&[("x-forwarded-for", "9.9.9.9:4711")]);
        assert_eq!(client_address(&trusting, &ported, peer), Some([9, 9, 9, 9].into()));
        assert_eq!(client_address(&trusting, &headers(&[("x-forwarded-for", "unknown")]), peer), peer);
    }

    #[test]
    fn a_page_of_another_site_is_known_by_its_origin() {
        let public = ApiOptions { public_url: Some("https://cron.example/x".to_owned()), ..options() };
        let foreign = |pairs: &[(&'static str, &'static str)]| foreign_site(&public, &headers(pairs)).is_some();
        assert!(!foreign(&[("host", "a:1"), ("origin", "http://a:1")]));
        assert!(!foreign(&[("host", "a:1"), ("origin", "https://cron.example")]));
        assert!(!foreign(&[("host", "a:1"), ("referer", "http://A:1/sign-in?to=/")]));
        assert!(!foreign(&[("host", "a:1")]));
        for origin in ["http://a:2", "http://a", "null", "https://cron.example.evil", "http://a:1.evil", "http://"] {
            let mut headers = headers(&[("host", "a:1")]);
            headers.insert("origin", origin.parse().unwrap());
            assert_eq!(foreign_site(&public, &headers), Some(origin));
        }
    }

    #[test]
    fn this_machine_has_few_names() {
        let named = |host: &'static str| names_this_machine(&options(), &headers(&[("host", host)]));
        for host in ["localhost", "LOCALHOST:7070", "127.0.0.1", "127.9.9.9:1", "[::1]:7070", "10.0.0.5:7070"] {
            assert!(named(host), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "10.0.0.6", "[fe80::1]", "", "127.0.0.1.nip.io"] {
            assert!(!named(host), "{host}");
        }
    }
}
