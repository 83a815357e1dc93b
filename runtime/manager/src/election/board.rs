//! Last observed holder of a Lease, for the status page.

use std::sync::Arc;

use cloudwit_controllers::Leadership;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use parking_lot::Mutex;

/// One Lease and whether this process works under it; clones share it.
#[derive(Clone)]
pub struct LeaseBoard {
    /// Namespace and name.
    lease: String,
    leadership: Leadership,
    seen: Arc<Mutex<Option<Holder>>>,
}

/// Who holds a Lease.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holder {
    /// The identity of the process; none when it has no holder.
    pub identity: Option<String>,
    /// Since when, by its own clock.
    pub since: Option<Timestamp>,
    /// When it last said that it is alive, by its own clock.
    pub renewed: Option<Timestamp>,
    /// How often the Lease has changed hands.
    pub transitions: i32,
}

/// A Lease at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseStatus {
    /// Namespace and name.
    pub lease: String,
    /// Whether this process works under it.
    pub leads: bool,
    /// What was last seen of it; none before the first look.
    pub holder: Option<Holder>,
}

impl LeaseBoard {
    /// Nothing was seen yet.
    pub fn new(namespace: &str, name: &str, leadership: Leadership) -> Self {
        Self {
            lease: format!("{namespace}/{name}"),
            leadership,
            seen: Arc::default(),
        }
    }

    /// The Lease looks like this now; none when there is none.
    pub fn see(&self, lease: Option<&Lease>) {
        let spec = lease.and_then(|lease| lease.spec.as_ref());
        let holder = spec.map(|spec| Holder {
            identity: spec.holder_identity.clone().filter(|identity| !identity.is_empty()),
            since: spec.acquire_time.as_ref().map(|time| time.0),
            renewed: spec.renew_time.as_ref().map(|time| time.0),
            transitions: spec.lease_transitions.unwrap_or(0),
        });
        *self.seen.lock() = Some(holder.unwrap_or_default());
    }

    /// As it was last seen.
    pub fn status(&self) -> LeaseStatus {
        LeaseStatus {
            lease: self.lease.clone(),
            leads: self.leadership.is_leading(),
            holder: self.seen.lock().clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn board_shows_last_observation_and_no_holder_after_release() {
        let board = LeaseBoard::new("kube-system", "ccm", Leadership::always());
        assert_eq!(board.status().holder, None, "nobody has looked");
        let lease = |holder: &str| {
            serde_json::from_value::<Lease>(serde_json::json!({
                "spec": { "holderIdentity": holder, "acquireTime": "2026-01-01T00:00:00.000000Z", "leaseTransitions": 3 }
            }))
            .unwrap()
        };
        board.see(Some(&lease("cp-1_x")));
        let LeaseStatus {
            lease: name,
            leads,
            holder,
        } = board.status();
        let holder = holder.unwrap();
        assert_eq!((name.as_str(), leads, holder.transitions), ("kube-system/ccm", true, 3));
        assert_eq!(holder.identity.as_deref(), Some("cp-1_x"));
        assert_eq!(holder.since, Some("2026-01-01T00:00:00Z".parse().unwrap()));
        board.see(Some(&lease("")));
        assert_eq!(board.status().holder.unwrap().identity, None);
        board.see(None);
        assert_eq!(board.status().holder, Some(Holder::default()));
    }
}
