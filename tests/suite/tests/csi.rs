//! The Container Storage Interface in front of the provider `sim` as it is shipped, on the simulated cloud: judged by Kubernetes' own csi-sanity, and asked
//! by Kubernetes' own sidecars and as they ask; and the node service on devices of this machine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "common/sim_provider.rs"]
mod sim_provider;

#[path = "csi/kubelet.rs"]
mod kubelet;
#[path = "csi/loop_disks.rs"]
mod loop_disks;
#[path = "csi/machine.rs"]
mod machine;
#[path = "csi/node.rs"]
mod node;
#[path = "csi/node_stub.rs"]
mod node_stub;
#[path = "csi/replica.rs"]
mod replica;
#[path = "csi/replicas.rs"]
mod replicas;
#[path = "csi/requests.rs"]
mod requests;
#[path = "csi/sanity.rs"]
mod sanity;
#[path = "csi/scene.rs"]
mod scene;
#[path = "csi/sidecars.rs"]
mod sidecars;
