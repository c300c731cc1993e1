//! How many connections there may be: in all, and from one address.
//!
//! Connections beyond that are not turned away at once: a few may still ask the probes, so that an orchestrator never
//! restarts a server only because others keep it busy.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// The most connections from one address that may only ask probes.
const MAX_PROBES_PER_ADDRESS: usize = 8;

/// How many connections may be open at once.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most connections at the same time.
    pub connections: usize,
    /// From one address; nothing if all come through a proxy.
    pub per_address: Option<usize>,
    /// Beyond both, for probes only.
    pub probes: usize,
}

/// The limit that a connection exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beyond {
    Connections,
    Address,
}

impl Beyond {
    /// The word for it in metrics.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Beyond::Connections => "connections",
            Beyond::Address => "address",
        }
    }
}

/// Counts the open connections.
#[derive(Debug)]
pub(crate) struct Admission {
    limits: Limits,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    all: Count,
    by_address: HashMap<IpAddr, Count>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    full: usize,
    probes: usize,
}

impl Count {
    fn counter(&mut self, beyond: Option<Beyond>) -> &mut usize {
        if beyond.is_none() { &mut self.full } else { &mut self.probes }
    }
}

/// An admitted connection. It is counted until the ticket is dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    admission: Arc<Admission>,
    address: IpAddr,
    /// The limit that it is beyond: it may only ask probes then.
    pub beyond: Option<Beyond>,
}

impl Admission {
    pub(crate) fn new(limits: Limits) -> Arc<Admission> {
        Arc::new(Admission { limits, open: Mutex::default() })
    }

    /// Admits a connection, or returns the limit that it exceeds.
    pub(crate) fn admit(self: &Arc<Admission>, address: IpAddr) -> Result<Ticket, Beyond> {
        let address = group(address);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.by_address.get(&address).copied().unwrap_or_default();
        let beyond = if open.all.full >= self.limits.connections {
            Some(Beyond::Connections)
        } else if self.limits.per_address.is_some_and(|most| own.full >= most) {
            Some(Beyond::Address)
        } else {
            None
        };
        let has_room = open.all.probes < self.limits.probes
            && (self.limits.per_address.is_none() || own.probes < MAX_PROBES_PER_ADDRESS);
        if let Some(beyond) = beyond.filter(|_| !has_room) {
            return Err(beyond);
        }
        *open.all.counter(beyond) += 1;
        *open.by_address.entry(address).or_default().counter(beyond) += 1;
        drop(open);
        Ok(Ticket { admission: Arc::clone(self), address, beyond })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut open = self.admission.open.lock().unwrap_or_else(PoisonError::into_inner);
        *open.all.counter(self.beyond) -= 1;
        if let Some(own) = open.by_address.get_mut(&self.address) {
            *own.counter(self.beyond) -= 1;
            if *own == Count::default() {
                open.by_address.remove(&self.address);
            }
        }
    }
}

/// Groups IPv6 addresses by their /64 network, because one client has a whole network.
fn group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_address_leaves_room_for_others_and_for_probes() {
        let limits = Limits { connections: 5, per_address: Some(2), probes: 10 };
        let admission = Admission::new(limits);
        let greedy: Vec<Ticket> = (0..10).map(|_| admission.admit(from("192.0.2.1")).unwrap()).collect();
        let kinds: Vec<Option<Beyond>> = greedy.iter().map(|ticket| ticket.beyond).collect();
        assert_eq!((&kinds[..2], &kinds[2..]), (&[None; 2][..], &[Some(Beyond::Address); 8][..]));
        assert_eq!(admission.admit(from("192.0.2.1")).unwrap_err(), Beyond::Address);
        let others: Vec<Ticket> =
            (0..3).map(|n| admission.admit(from(&format!("192.0.2.{}", n + 2))).unwrap()).collect();
        assert!(others.iter().all(|ticket| ticket.beyond.is_none()));
        let probes: Vec<Ticket> = (0..2).map(|_| admission.admit(from("192.0.2.9")).unwrap()).collect();
        assert!(probes.iter().all(|ticket| ticket.beyond == Some(Beyond::Connections)));
        assert_eq!(admission.admit(from("192.0.2.10")).unwrap_err(), Beyond::Connections);
        drop((greedy, others, probes));
        assert_eq!(admission.admit(from("192.0.2.1")).unwrap().beyond, None);
        let open = admission.open.lock().unwrap();
        assert!(open.by_address.is_empty() && open.all == Count::default(), "{open:?}");
    }

    #[test]
    fn a_network_of_version_6_counts_as_one_address() {
        let admission = Admission::new(Limits { connections: 9, per_address: Some(1), probes: 9 });
        let _one = admission.admit(from("2001:db8::1")).unwrap();
        assert_eq!(admission.admit(from("2001:db8::ffff")).unwrap().beyond, Some(Beyond::Address));
        assert_eq!(admission.admit(from("2001:db8:0:1::1")).unwrap().beyond, None);
        let _mapped = admission.admit(from("::ffff:192.0.2.1")).unwrap();
        assert_eq!(admission.admit(from("192.0.2.1")).unwrap().beyond, Some(Beyond::Address));
    }

    #[test]
    fn behind_a_proxy_addresses_are_not_counted() {
        let admission = Admission::new(Limits { connections: 20, per_address: None, probes: 20 });
        let all: Vec<Ticket> = (0..40).map(|_| admission.admit(from("192.0.2.1")).unwrap()).collect();
        assert_eq!(all.iter().filter(|ticket| ticket.beyond.is_none()).count(), 20);
    }
}
