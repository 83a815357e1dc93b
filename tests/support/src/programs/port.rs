//! Ports on loopback for programs that want to be told theirs.
//!
//! A port that was free a moment ago is no promise: between looking and listening any connection may get it, since the kernel gives out the
//! same range to both. So these lie outside that range, and a locked file keeps other tests off.

use std::fs::{self, File, TryLockError};
use std::net::TcpListener;
use std::ops::RangeInclusive;
use std::process;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, bail};

/// Where Linux says which ports it gives to connections.
const EPHEMERAL: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// What Linux gives to connections unless told otherwise.
const USUAL: RangeInclusive<u16> = 32768..=60999;

/// As many ports are looked at.
const LOOKS: usize = 4096;

/// The locks on what this process was given; it keeps them until it ends.
static HELD: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// A port on which nobody listens and which nobody is given as long as this process lives.
///
/// # Errors
///
/// When no port is left or a lock cannot be made.
pub fn reserve() -> Result<u16> {
    let folder = std::env::temp_dir().join("cloudwit-ports");
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let ports = outside(&fs::read_to_string(EPHEMERAL).map_or(USUAL, |text| range(&text).unwrap_or(USUAL)));
    if ports.is_empty() {
        bail!("{EPHEMERAL} leaves no port to servers");
    }
    // Processes begin at different places, so that a port is not used again at once by somebody else's client.
    let begin = process::id() as usize * 61 % ports.len();
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    for port in ports.iter().cycle().skip(begin + held.len()).take(LOOKS) {
        let file = folder.join(port.to_string());
        let lock = File::create(&file).with_context(|| format!("making {}", file.display()))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => continue,
            Err(TryLockError::Error(error)) => {
                return Err(anyhow!(error).context(format!("locking {}", file.display())));
            }
        }
        if TcpListener::bind(("127.0.0.1", *port)).is_ok() {
            held.push(lock);
            return Ok(*port);
        }
    }
    bail!("none of {LOOKS} ports outside the range of connections is free on 127.0.0.1")
}

/// An address on loopback with such a port.
///
/// # Errors
///
/// As [`reserve`].
pub fn address() -> Result<String> {
    Ok(format!("127.0.0.1:{}", reserve()?))
}

/// The ports, not those of root, that no connection is given.
fn outside(ephemeral: &RangeInclusive<u16>) -> Vec<u16> {
    // The upper half of what is below: databases and the like listen further down.
    let below = (ephemeral.start() / 2).max(1024)..*ephemeral.start();
    let above = *ephemeral.end()..=u16::MAX;
    below.chain(above.skip(1)).collect()
}

fn range(text: &str) -> Option<RangeInclusive<u16>> {
    let (low, high) = text.trim().split_once(char::is_whitespace)?;
    Some(low.parse().ok()?..=high.trim().parse().ok()?)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_port_is_given_twice_nor_to_a_connection() {
        let given: Vec<u16> = (0..50).map(|_| reserve().unwrap()).collect();
        assert_eq!(given.iter().collect::<HashSet<_>>().len(), given.len());
        let ephemeral = range(&fs::read_to_string(EPHEMERAL).unwrap()).unwrap();
        assert!(given.iter().all(|port| !ephemeral.contains(port)), "{given:?}");
        for port in given {
            TcpListener::bind(("127.0.0.1", port)).unwrap();
        }
    }

    #[test]
    fn the_range_of_connections_is_left_out_wherever_it_is() {
        assert_eq!(range("32768\t60999\n"), Some(USUAL));
        let usual = outside(&USUAL);
        assert_eq!((usual[0], usual[16_383], usual[16_384]), (16384, 32767, 61000));
        assert_eq!(outside(&(1024..=65000)).first(), Some(&65001));
        assert!(outside(&(1024..=65535)).is_empty());
    }
}
