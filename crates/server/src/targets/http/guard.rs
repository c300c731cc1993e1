//! The addresses that a target may have.
//!
//! A name is resolved for each connection, and its addresses are checked at that moment: the owner of the name cannot
//! change it between the check and the call. Literal addresses are checked with the settings.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// The addresses that may be called besides the public internet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guard {
    pub(super) allow_private: bool,
    pub(super) allow_link_local: bool,
}

/// How far an address reaches, the least suspicious first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    Public,
    /// The machine itself, and networks that are not reachable from outside.
    Private,
    /// The next wire only: also where clouds keep their metadata, wherever that is.
    LinkLocal,
    /// No single machine.
    Nowhere,
}

/// Metadata services of clouds outside of the link-local ranges.
const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(192, 0, 0, 192)];
const METADATA_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)];

impl Guard {
    /// Why this address may not be called, if so.
    pub(super) fn check(self, address: IpAddr) -> Result<(), String> {
        match reach(address) {
            Reach::Nowhere => Err(format!("{address} is not the address of a machine")),
            Reach::LinkLocal if !(self.allow_private && self.allow_link_local) => {
                Err(format!("{address} is a link-local or metadata address, which needs `allow_link_local`"))
            }
            Reach::Private if !self.allow_private => {
                Err(format!("{address} is a private address, which needs `allow_private`"))
            }
            Reach::Public | Reach::Private | Reach::LinkLocal => Ok(()),
        }
    }

    /// Those addresses of a name that may be called.
    fn filter(self, name: &str, found: impl Iterator<Item = SocketAddr>) -> Result<Vec<SocketAddr>, Unresolved> {
        let (mut allowed, mut refused) = (Vec::new(), None);
        for address in found {
            match self.check(address.ip()) {
                Ok(()) => allowed.push(address),
                Err(reason) => refused = Some(reason),
            }
        }
        match refused {
            _ if !allowed.is_empty() => Ok(allowed),
            Some(reason) => Err(Unresolved(format!("`{name}` must not be called: {reason}"))),
            None => Err(Unresolved(format!("`{name}` has no address"))),
        }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = *self;
        Box::pin(async move {
            let name = name.as_str();
            let found = tokio::net::lookup_host((name, 0)).await;
            let found = found.map_err(|error| Unresolved(format!("`{name}` has no address: {error}")))?;
            let allowed = guard.filter(name, found)?;
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// A name that leads nowhere, or nowhere allowed.
#[derive(Debug)]
pub(super) struct Unresolved(String);

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Unresolved {}

fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => reach_v4(address),
        IpAddr::V6(address) => reach_v6(address),
    }
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        _ if METADATA_V4.contains(&address) => Reach::LinkLocal,
        (169, 254, _) => Reach::LinkLocal,
        // This network, which the machine takes for itself; multicast, reserved and broadcast.
        (0 | 224..=255, ..) => Reach::Nowhere,
        // The last three: shared by providers, protocol assignments, benchmarks.
        (10 | 127, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) | (192, 0, 0) | (198, 18 | 19, _) => {
            Reach::Private
        }
        _ => Reach::Public,
    }
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    let own = match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => return Reach::Private,
        _ if address.is_unspecified() || address.is_multicast() => return Reach::Nowhere,
        _ if METADATA_V6.contains(&address) => Reach::LinkLocal,
        [first, ..] if first & 0xffc0 == 0xfe80 => Reach::LinkLocal,
        // Unique local, the former site-local, and translation inside of a network.
        [first, ..] if first & 0xfe00 == 0xfc00 || first & 0xffc0 == 0xfec0 => Reach::Private,
        [0x64, 0xff9b, 1, ..] => Reach::Private,
        _ => Reach::Public,
    };
    embedded(address).map_or(own, |inner| own.max(reach_v4(inner)))
}

/// Returns the IPv4 address that a gateway on the way would extract from this one.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let at = |place: usize| Ipv4Addr::from((u32::from(segments[place]) << 16) | u32::from(segments[place + 1]));
    match segments {
        // Compatible or mapped, translated, NAT64 (in general and inside of a network), ISATAP.
        [0, 0, 0, 0, 0, 0 | 0xffff, ..]
        | [0, 0, 0, 0, 0xffff, 0, ..]
        | [0x64, 0xff9b, 0 | 1, ..]
        | [_, _, _, _, 0 | 0x200, 0x5efe, ..] => Some(at(6)),
        // 6to4.
        [0x2002, ..] => Some(at(1)),
        // Teredo keeps it inverted.
        [0x2001, 0, ..] => Some(Ipv4Addr::from(!u32::from(at(6)))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_has_its_reach() {
        for (reach_wanted, addresses) in [
            (
                Reach::Public,
                "1.1.1.1 100.63.255.255 100.128.0.1 172.15.0.1 172.32.0.1 192.0.1.1 198.20.0.1 223.255.255.255",
            ),
            (Reach::Public, "2606:4700:4700::1111 64:ff9b::101:101 2002:101:101:: 2001:db8::1 ::ffff:1.1.1.1"),
            (Reach::Private, "127.0.0.1 127.255.255.254 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1"),
            (Reach::Private, "198.18.0.1 192.0.0.1 ::1 fc00::1 fd12:3456::1 fec0::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1"),
            (Reach::Private, "64:ff9b::10.0.0.1 64:ff9b:1::1.1.1.1 2002:a00:1:: 2002:7f00:1::1 ::10.0.0.1"),
            (
                Reach::LinkLocal,
                "169.254.169.254 169.254.0.1 169.254.255.255 fe80::1 febf::1 fd00:ec2::254 fd20:ce::254",
            ),
            (Reach::LinkLocal, "100.100.100.200 168.63.129.16 192.0.0.192 ::ffff:169.254.169.254 ::169.254.169.254"),
            (Reach::LinkLocal, "64:ff9b::169.254.169.254 64:ff9b:1::169.254.169.254 2002:a9fe:a9fe::1"),
            (
                Reach::LinkLocal,
                "2001:0:4136:e378:8000:63bf:5601:5601 2001:db8::5efe:169.254.169.254 ::ffff:0:169.254.1.1",
            ),
            (
                Reach::Nowhere,
                "0.0.0.0 0.1.2.3 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ff02::1 ::ffff:0.0.0.0",
            ),
        ] {
            for address in addresses.split(' ') {
                assert_eq!(reach(address.parse().unwrap()), reach_wanted, "{address}");
            }
        }
    }

    #[test]
    fn what_is_not_allowed_is_refused_with_the_setting_that_would() {
        let check = |allow_private, allow_link_local, address: &str| {
            let guard = Guard { allow_private, allow_link_local };
            guard.check(address.parse().unwrap()).map_err(|reason| reason.rsplit(' ').next().unwrap().to_owned())
        };
        for (allow_private, allow_link_local) in [(false, false), (true, false), (false, true), (true, true)] {
            let checked = |address| check(allow_private, allow_link_local, address);
            assert_eq!(checked("1.1.1.1"), Ok(()));
            assert_eq!(checked("127.0.0.1").is_ok(), allow_private);
            assert_eq!(checked("169.254.169.254").is_ok(), allow_private && allow_link_local);
            assert!(checked("0.0.0.0").is_err());
        }
        assert_eq!(check(false, false, "10.1.2.3"), Err("`allow_private`".to_owned()));
        assert_eq!(check(true, false, "169.254.169.254"), Err("`allow_link_local`".to_owned()));
    }

    #[test]
    fn of_several_addresses_the_allowed_ones_are_called() {
        let guard = Guard { allow_private: false, allow_link_local: false };
        let found = |addresses: &[&str]| {
            let addresses: Vec<SocketAddr> = addresses.iter().map(|a| SocketAddr::new(a.parse().unwrap(), 0)).collect();
            guard.filter("a.example", addresses.into_iter()).map_err(|error| error.to_string())
        };
        assert_eq!(found(&["169.254.169.254", "1.1.1.1", "::1"]).unwrap(), ["1.1.1.1:0".parse().unwrap()]);
        let said = found(&["169.254.169.254"]).unwrap_err();
        assert!(said.starts_with("`a.example` must not be called: 169.254.169.254 is a link-local"), "{said}");
        assert_eq!(found(&[]).unwrap_err(), "`a.example` has no address");
    }
}
