//! Clients that take connections and never let go.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpSocket;

use super::{EVERY_SECOND, plan, strict};
use crate::chaos::checks::failed_with;
use crate::chaos::clock::{pause_s, stretch, wait_for};
use crate::chaos::{Cluster, Options, Outcome, Plan, Verdict, instant};

const CLIENTS: usize = 1_100;
/// They come from this many addresses, so that a bound for each address does not keep them out.
const ADDRESSES: usize = 40;

/// Opens connections from many addresses of loopback.
fn crowd(address: &str) -> Outcome<Vec<TcpStream>> {
    let own = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: own.maximum, ..own })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let address = address.parse()?;
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let socket = TcpSocket::new_v4()?;
        socket.bind(format!("127.0.1.{}:0", 1 + number % ADDRESSES).parse()?)?;
        let connected =
            runtime.block_on(async { tokio::time::timeout(Duration::from_secs(2), socket.connect(address)).await });
        // A server that is full may refuse.
        let Ok(Ok(stream)) = connected else { continue };
        let stream = stream.into_std()?;
        stream.set_nonblocking(true)?;
        clients.push(stream);
    }
    Ok(clients)
}

/// How long `/livez` takes at first, and whether it answers at all within a while.
fn probed(verdict: &mut Verdict, cluster: &Cluster, limit_s: f64) -> Outcome<()> {
    let begun = instant();
    let limit = Duration::from_secs_f64(limit_s * stretch());
    let instance = cluster.any()?;
    let answered = wait_for(limit, || instance.get("/livez", Duration::from_secs(5)).ok());
    let took = begun.elapsed().as_secs_f64();
    verdict.check(
        answered.is_none(),
        format!("/livez {} {took:.1} s", if answered.is_some() { "after" } else { "silent for" }),
    );
    Ok(())
}

/// Clients ask for large documents and never read them.
pub(super) fn never_reading(options: &Options) -> Outcome<Verdict> {
    let mut verdict =
        Verdict::new("never_reading", format!("{CLIENTS} clients ask for /openapi.json 50 times and never read"));
    let mut cluster = Cluster::start(options, &plan(options))?;
    cluster.readiness.stop();
    cluster.jobs("tick", 3, "quick", EVERY_SECOND, &strict())?;
    let instance = cluster.nodes[0].running()?;
    let before = crate::usage::Usage::read(instance.pid())?.rss_mb;
    let mut clients = crowd(&instance.address)?;
    let ask = "GET /openapi.json HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".repeat(50);
    for client in &mut clients {
        let _full_or_closed = client.write(ask.as_bytes());
    }
    verdict.saw(format!("{} connected", clients.len()));
    pause_s(5.0);
    probed(&mut verdict, &cluster, 60.0)?;
    let started = cluster.log.started();
    pause_s(5.0);
    verdict.check(cluster.log.started() == started, format!("{} starts in 5 s", cluster.log.started() - started));
    let after = crate::usage::Usage::read(instance.pid())?.rss_mb;
    verdict.saw(format!("memory {before:.0} -> {after:.0} MB"));
    drop(clients);
    cluster.stop_all(Duration::from_mins(1));
    Ok(verdict)
}

/// Idle connections must not take the descriptors that runs need.
pub(super) fn descriptors(options: &Options) -> Outcome<Verdict> {
    let mut verdict =
        Verdict::new("descriptors", format!("soft and hard limit of 1,024 descriptors, {CLIENTS} idle connections"));
    let wrapper = vec!["prlimit".to_owned(), "--nofile=1024:1024".to_owned()];
    let mut cluster = Cluster::start(options, &Plan { wrapper, ..plan(options) })?;
    cluster.readiness.stop();
    cluster.jobs("tick", 3, "quick", EVERY_SECOND, &strict())?;
    cluster.wait_for_starts(3, Duration::from_secs(30))?;
    let clients = crowd(&cluster.nodes[0].running()?.address)?;
    verdict.saw(format!("{} connected", clients.len()));
    pause_s(12.0);
    probed(&mut verdict, &cluster, 30.0)?;
    drop(clients);
    pause_s(2.0);
    cluster.stop_all(Duration::from_mins(1));
    let failed = failed_with(&cluster.database.snapshot()?, "spawn_failed");
    verdict.check(failed > 0, format!("{failed} runs could not start their program"));
    Ok(verdict)
}
