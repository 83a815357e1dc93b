//! Open HTTPS connections: limits per peer, and which one is closed for a new one.
//!
//! A probe opens a connection for one request. So room for the next one matters more than any that has nothing under way: the one that is
//! closed is idle, of a sender that is not known, and of the peer that has most.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Connections at a time, and of one peer. Scrapers and probes need a handful.
pub const CONNECTIONS: usize = 512;
pub const CONNECTIONS_OF_A_PEER: usize = 64;

/// How long a connection may be idle: upstream's `IdleTimeout` for senders that are known, the time for the head of a request for all others
/// (`apiserver pkg/server/secure_serving.go`).
const KNOWN_IDLE: Duration = Duration::from_secs(90);
const UNKNOWN_IDLE: Duration = Duration::from_secs(32);

/// All open connections; clones share them.
#[derive(Clone, Default)]
pub struct Connections(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    next: u64,
    open: HashMap<u64, OpenConnection>,
}

struct OpenConnection {
    peer: IpAddr,
    /// Whether an authenticated client has sent a request over it.
    known: bool,
    /// Requests under way.
    requests: usize,
    idle_since: Instant,
    close: CancellationToken,
}

impl Connections {
    /// A place for one more connection; none when its peer has enough, or all others have requests under way.
    pub fn enter(&self, address: IpAddr) -> Option<Place> {
        let peer = peer_of(address);
        let mut table = self.table();
        if table.open.values().filter(|open| open.peer == peer).count() >= CONNECTIONS_OF_A_PEER {
            return None;
        }
        if table.open.len() >= CONNECTIONS {
            let least = table.least()?;
            if let Some(closed) = table.open.remove(&least) {
                closed.close.cancel();
            }
        }
        let (id, close) = (table.next, CancellationToken::new());
        table.next += 1;
        let open = OpenConnection {
            peer,
            known: false,
            requests: 0,
            idle_since: Instant::now(),
            close: close.clone(),
        };
        table.open.insert(id, open);
        Some(Place {
            connections: self.clone(),
            id,
            close,
        })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock()
    }
}

impl Table {
    /// The idle connection that matters least.
    fn least(&self) -> Option<u64> {
        let mut of_peer = HashMap::<IpAddr, usize>::new();
        for open in self.open.values() {
            *of_peer.entry(open.peer).or_default() += 1;
        }
        let idle = self.open.iter().filter(|(_, open)| open.requests == 0);
        let least = idle.max_by_key(|(_, open)| {
            let many = of_peer.get(&open.peer).copied().unwrap_or_default();
            (!open.known, many, std::cmp::Reverse(open.idle_since))
        });
        least.map(|(id, _)| *id)
    }
}

/// An address for IPv4, a network of 64 bits for IPv6: that is what one machine has.
fn peer_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        v4 => v4,
    }
}

/// The place of a connection, until it is dropped.
pub struct Place {
    connections: Connections,
    id: u64,
    close: CancellationToken,
}

impl Place {
    /// A request is under way until the answer is dropped.
    pub fn request(&self) -> RequestUnderWay<'_> {
        self.change(|open| open.requests += 1);
        RequestUnderWay(self)
    }

    /// An authenticated client has sent a request.
    pub fn set_known(&self) {
        self.change(|open| open.known = true);
    }

    /// Ends when another connection got the place.
    pub async fn evicted(&self) {
        self.close.cancelled().await;
    }

    /// Ends when the connection has been idle for long enough.
    pub async fn idle_for_long(&self) {
        loop {
            let until = match self.connections.table().open.get(&self.id) {
                Some(open) => {
                    let since = if open.requests > 0 {
                        Instant::now()
                    } else {
                        open.idle_since
                    };
                    since + if open.known { KNOWN_IDLE } else { UNKNOWN_IDLE }
                }
                None => return,
            };
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }

    fn change(&self, change: impl FnOnce(&mut OpenConnection)) {
        if let Some(open) = self.connections.table().open.get_mut(&self.id) {
            change(open);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.table().open.remove(&self.id);
    }
}

/// A request under way.
pub struct RequestUnderWay<'a>(&'a Place);

impl Drop for RequestUnderWay<'_> {
    fn drop(&mut self) {
        self.0.change(|open| {
            open.requests -= 1;
            open.idle_since = Instant::now();
        });
    }
}

#[cfg(test)]
mod tests;
