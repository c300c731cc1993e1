//! [`Process`]: the identity of an instance's process, so that another instance can see that it is gone.
//!
//! A process id alone proves nothing: the system reuses it, and in another container it means another process. So four
//! things have to agree: the boot of the kernel, the namespace of process ids, the id, and when the process started.
//! Where the first two differ, the state is unknown, and the lease decides.

use std::fmt;

/// A process, by everything that makes it unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    boot: String,
    namespace: String,
    id: i32,
    /// In ticks of the kernel since the boot.
    started: u64,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.boot, self.namespace, self.id, self.started)
    }
}

impl Process {
    /// The process of this text.
    pub(super) fn parse(text: &str) -> Option<Process> {
        let mut words = text.split(' ');
        let (boot, namespace) = (words.next()?.to_owned(), words.next()?.to_owned());
        let (id, started) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        words.next().is_none().then_some(Process { boot, namespace, id, started })
    }
}

#[cfg(not(target_os = "linux"))]
impl Process {
    /// Unknown on this system.
    pub(super) fn own() -> Option<Process> {
        None
    }

    /// Unknown on this system.
    pub(super) fn sees_gone(&self, _: &Process) -> bool {
        false
    }
}

#[cfg(target_os = "linux")]
impl Process {
    /// Returns this process; `None` if the kernel does not reveal it.
    pub(super) fn own() -> Option<Process> {
        let id = i32::try_from(std::process::id()).ok()?;
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?.to_str()?.to_owned();
        let (_, started) = state(id)?;
        (!boot.contains(' ') && !namespace.contains(' ')).then_some(Process { boot, namespace, id, started })
    }

    /// Whether the other one is certainly gone, as seen from this one.
    pub(super) fn sees_gone(&self, other: &Process) -> bool {
        if (&self.boot, &self.namespace) != (&other.boot, &other.namespace) {
            return false;
        }
        let Some(id) = rustix::process::Pid::from_raw(other.id).filter(|_| other.id > 0) else { return false };
        // Asked first: the files of a process may be hidden from other users, its existence is not.
        match rustix::process::test_kill_process(id) {
            Err(rustix::io::Errno::SRCH) => true,
            // A dead process that has not been reaped is gone, and one with another start time is another process.
            _ => {
                state(other.id).is_some_and(|(state, started)| ['Z', 'X'].contains(&state) || started != other.started)
            }
        }
    }
}

/// The state of a process, and when it started.
#[cfg(target_os = "linux")]
fn state(id: i32) -> Option<(char, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name, which may be anything, is in brackets; the state is the third field, the start the 22nd.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.chars().next()?, fields.nth(18)?.parse().ok()?))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_written_and_read_as_itself() {
        let own = Process::own().unwrap();
        assert_eq!(Process::parse(&own.to_string()), Some(own));
        for text in ["", "a b", "a b 1", "a b x 2", "a b 1 2 3", "a b 1 -2"] {
            assert_eq!(Process::parse(text), None, "{text}");
        }
    }

    #[test]
    fn only_what_is_certainly_gone_is() {
        let own = Process::own().unwrap();
        assert!(!own.sees_gone(&own));
        assert!(own.sees_gone(&Process { started: own.started + 1, ..own.clone() }), "another one has its id");
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let id = i32::try_from(child.id()).unwrap();
        let other = Process { id, started: state(id).unwrap().1, ..own.clone() };
        assert!(!own.sees_gone(&other), "it lives");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(own.sees_gone(&other));
        assert!(!own.sees_gone(&Process { boot: "another".to_owned(), ..other.clone() }), "of another machine");
        assert!(!own.sees_gone(&Process { namespace: "pid:[1]".to_owned(), ..other.clone() }), "of another container");
        assert!(!own.sees_gone(&Process { id: 0, ..other }));
    }
}
