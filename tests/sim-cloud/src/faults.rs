//! Faults on demand: which requests fail, and how.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a `/v1` request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// `GET /v1/zones`.
    ListZones,
    /// `GET /v1/instances`.
    ListInstances,
    /// `GET /v1/instances/ID`.
    GetInstance,
    /// `POST /v1/instances/tags`.
    ChangeTags,
    /// `GET /v1/load-balancers`.
    ListLoadBalancers,
    /// `GET /v1/load-balancers/ID`.
    GetLoadBalancer,
    /// `POST /v1/load-balancers`.
    CreateLoadBalancer,
    /// `PUT /v1/load-balancers/ID`.
    UpdateLoadBalancer,
    /// `PUT /v1/load-balancers/ID/targets`.
    UpdateTargets,
    /// `DELETE /v1/load-balancers/ID`.
    DeleteLoadBalancer,
    /// `GET /v1/routes`.
    ListRoutes,
    /// `POST /v1/routes/batch`.
    ChangeRoutes,
    /// `GET /v1/disks`.
    ListDisks,
    /// `POST /v1/disks`.
    CreateDisk,
    /// `PUT /v1/disks/ID`.
    ChangeDisk,
    /// `DELETE /v1/disks/ID`.
    DeleteDisk,
    /// `POST /v1/disks/batch`.
    MoveDisks,
    /// `GET /v1/disk-limits`.
    GetDiskLimits,
    /// `GET /v1/snapshots`.
    ListSnapshots,
    /// `POST /v1/snapshots`.
    CreateSnapshot,
    /// `DELETE /v1/snapshots/ID`.
    DeleteSnapshot,
    /// `GET /v1/metadata`.
    GetMetadata,
    /// `GET /v1/ssh-keys`.
    ListSshKeys,
    /// `POST /v1/ssh-keys`.
    AddSshKey,
    /// `GET /v1/clusters`.
    ListClusters,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 25] = [
        Self::ListZones,
        Self::ListInstances,
        Self::GetInstance,
        Self::ChangeTags,
        Self::ListLoadBalancers,
        Self::GetLoadBalancer,
        Self::CreateLoadBalancer,
        Self::UpdateLoadBalancer,
        Self::UpdateTargets,
        Self::DeleteLoadBalancer,
        Self::ListRoutes,
        Self::ChangeRoutes,
        Self::ListDisks,
        Self::CreateDisk,
        Self::ChangeDisk,
        Self::DeleteDisk,
        Self::MoveDisks,
        Self::GetDiskLimits,
        Self::ListSnapshots,
        Self::CreateSnapshot,
        Self::DeleteSnapshot,
        Self::GetMetadata,
        Self::ListSshKeys,
        Self::AddSshKey,
        Self::ListClusters,
    ];

    /// The word of the control API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ListZones => "list-zones",
            Self::ListInstances => "list-instances",
            Self::GetInstance => "get-instance",
            Self::ChangeTags => "change-tags",
            Self::ListLoadBalancers => "list-load-balancers",
            Self::GetLoadBalancer => "get-load-balancer",
            Self::CreateLoadBalancer => "create-load-balancer",
            Self::UpdateLoadBalancer => "update-load-balancer",
            Self::UpdateTargets => "update-targets",
            Self::DeleteLoadBalancer => "delete-load-balancer",
            Self::ListRoutes => "list-routes",
            Self::ChangeRoutes => "change-routes",
            Self::ListDisks => "list-disks",
            Self::CreateDisk => "create-disk",
            Self::ChangeDisk => "change-disk",
            Self::DeleteDisk => "delete-disk",
            Self::MoveDisks => "move-disks",
            Self::GetDiskLimits => "get-disk-limits",
            Self::ListSnapshots => "list-snapshots",
            Self::CreateSnapshot => "create-snapshot",
            Self::DeleteSnapshot => "delete-snapshot",
            Self::GetMetadata => "get-metadata",
            Self::ListSshKeys => "list-ssh-keys",
            Self::AddSshKey => "add-ssh-key",
            Self::ListClusters => "list-clusters",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a request fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum FaultKind {
    /// With this status and, if set, `Retry-After` in seconds. The request changes nothing.
    #[serde(rename_all = "camelCase")]
    Status {
        /// HTTP status.
        status: u16,
        /// `Retry-After`.
        #[serde(default)]
        retry_after: Option<u32>,
    },
    /// The request does its work, but its answer is lost: the connection is cut.
    CutAfter,
    /// The connection is cut before the request does anything.
    Cut,
    /// No answer ever, and nothing is done.
    Hang,
    /// 200 with a body that is no JSON.
    Garbage,
    /// 200 with an empty page, whatever there is. For operations that list.
    Empty,
    /// 403 with what the request had as `Authorization` in its body, as careless services have it.
    Echo,
}

/// Which requests fail, and how. Made with [`Fault::new`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// Only this operation; all when none.
    #[serde(default)]
    pub operation: Option<Operation>,
    /// How.
    pub fault: FaultKind,
    /// Share of the requests, 0 to 1.
    #[serde(default = "always")]
    pub rate: f64,
    /// Only so many, then no more; for ever when none.
    #[serde(default)]
    pub next: Option<u64>,
}

fn always() -> f64 {
    1.0
}

impl Fault {
    /// Every request fails like this.
    pub fn new(fault: FaultKind) -> Self {
        Self {
            operation: None,
            fault,
            rate: 1.0,
            next: None,
        }
    }

    /// Every request fails with this status.
    pub fn status(status: u16) -> Self {
        Self::new(FaultKind::Status {
            status,
            retry_after: None,
        })
    }

    /// Every request is told to slow down for so many seconds (429).
    pub fn slow_down(seconds: u32) -> Self {
        Self::new(FaultKind::Status {
            status: 429,
            retry_after: Some(seconds),
        })
    }

    /// Only requests of this operation.
    pub fn on(mut self, operation: Operation) -> Self {
        self.operation = Some(operation);
        self
    }

    /// Only this share of the requests, 0 to 1.
    pub fn rate(mut self, rate: f64) -> Self {
        self.rate = rate;
        self
    }

    /// Only the next so many.
    pub fn times(mut self, next: u64) -> Self {
        self.next = Some(next);
        self
    }
}

/// The faults that are set, and the random numbers for their rates.
#[derive(Debug)]
pub(crate) struct Faults {
    faults: Vec<Fault>,
    random: u64,
}

impl Faults {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            faults: Vec::new(),
            random: seed,
        }
    }

    pub(crate) fn set(&mut self, faults: Vec<Fault>) {
        self.faults = faults;
    }

    pub(crate) fn all(&self) -> &[Fault] {
        &self.faults
    }

    /// The fault for this request: the first that fits.
    pub(crate) fn hit(&mut self, operation: Operation) -> Option<FaultKind> {
        let (faults, random) = (&mut self.faults, &mut self.random);
        let hit = faults.iter_mut().find(|fault| {
            fault.operation.is_none_or(|only| only == operation)
                && fault.next != Some(0)
                && (fault.rate >= 1.0 || next_share(random) < fault.rate)
        })?;
        if let Some(next) = &mut hit.next {
            *next -= 1;
        }
        Some(hit.fault.clone())
    }
}

/// A number from 0 to below 1 (SplitMix64, whose sequence is the same everywhere).
fn next_share(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    // 53 bits fit a double exactly.
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fault_that_fits_wins_and_is_used_up() {
        let mut faults = Faults::new(1);
        faults.set(vec![
            Fault::status(500).on(Operation::ListZones).times(1),
            Fault::slow_down(3),
        ]);
        assert_eq!(
            faults.hit(Operation::ListZones),
            Some(FaultKind::Status {
                status: 500,
                retry_after: None
            })
        );
        assert_eq!(
            faults.hit(Operation::ListZones),
            Some(FaultKind::Status {
                status: 429,
                retry_after: Some(3)
            })
        );
        assert_eq!(
            faults.hit(Operation::ListRoutes),
            Some(FaultKind::Status {
                status: 429,
                retry_after: Some(3)
            })
        );
    }

    #[test]
    fn a_rate_hits_its_share_and_the_same_requests_in_each_run() {
        let run = || {
            let mut faults = Faults::new(7);
            faults.set(vec![Fault::status(500).rate(0.25)]);
            (0..1000)
                .map(|_| faults.hit(Operation::ListZones).is_some())
                .collect::<Vec<_>>()
        };
        let hits = run();
        let share = hits.iter().filter(|hit| **hit).count();
        assert!((200..300).contains(&share), "{share}");
        assert_eq!(hits, run());
    }
}
