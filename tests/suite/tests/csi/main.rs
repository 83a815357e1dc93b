//! The Container Storage Interface in front of the provider `sim` as it is shipped, on the simulated cloud: judged by Kubernetes' own csi-sanity, and asked
//! by Kubernetes' own sidecars and as they ask; and the node service on devices of this machine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use cloudwit_suite::common::csi_node_stub as node_stub;
use cloudwit_suite::common::csi_requests as sidecar_requests;
use cloudwit_suite::common::csi_sanity as sanity_run;
use cloudwit_suite::common::csi_served as served;
use cloudwit_suite::common::csi_sidecars as running;
use cloudwit_suite::common::sim_provider;
mod cluster;
mod explained;
mod kubelet;
mod life;
mod loop_disks;
mod machine;
mod many;
mod node;
mod replica;
mod replicas;
mod requests;
mod sanity;
mod scene;
mod secrets;
mod sidecars;
