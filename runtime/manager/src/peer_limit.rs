//! At most so many connections of one peer, so that one that opens them and says nothing leaves room for probes and scrapers.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Connections by peer; clones share them.
#[derive(Debug, Clone)]
pub struct PeerLimit {
    most: usize,
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl PeerLimit {
    /// So many for each peer.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            open: Arc::default(),
        }
    }

    /// A place for one more connection, until the answer is dropped; none if the peer has enough.
    pub fn enter(&self, peer: IpAddr) -> Option<Place> {
        let mut open = self.open();
        let count = open.entry(peer).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Place {
            limit: self.clone(),
            peer,
        })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a connection.
#[derive(Debug)]
pub struct Place {
    limit: PeerLimit,
    peer: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.limit.open();
        if let Some(count) = open.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_enough_does_not_take_the_place_of_others_and_nobody_is_remembered() {
        let limit = PeerLimit::new(2);
        let [one, other] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        let mut places = vec![limit.enter(one).unwrap(), limit.enter(one).unwrap()];
        assert!(limit.enter(one).is_none());
        assert!(limit.enter(other).is_some());
        places.pop();
        assert!(limit.enter(one).is_some());
        drop(places);
        assert!(limit.open().is_empty());
    }
}
