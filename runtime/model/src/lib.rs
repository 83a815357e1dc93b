//! Types and traits shared by controllers and host. Pure: no runtime, no Kubernetes types, no wasm.
//!
//! ```text
//!   controllers  --- calls -->  Cloud (this crate)  <--- implemented by ---  host
//!   (Kubernetes side)           Node and Service views,                      (wasm side)
//!                               answers, failures, faults
//! ```
//!
//! | file | what it is about |
//! | ---- | ---------------- |
//! | [`cloud`] | the [`Cloud`] trait, the only interface between the two sides, and [`Abilities`] |
//! | [`failure`] | what can go wrong, and when to try again |
//! | [`gated`], [`gated_volumes`] | a cloud whose changes have to pass a gate |
//! | [`node`] | Nodes and addresses as a provider sees them |
//! | [`instance`] | machines and whether they exist |
//! | [`service`] | Services as a provider sees them |
//! | [`load_balancer`] | load balancers and their targets |
//! | [`route`] | routes to Pod ranges |
//! | [`volume`], [`volume_cloud`] | volumes and snapshots; the trait [`VolumeCloud`] of clouds that have them |
//! | [`volume_secrets`] | secrets of a request about volumes |
//! | [`volume_labels`] | labels of disks of in-tree PersistentVolume sources |
//! | [`tagging`] | tags on the machines behind Nodes |
//! | [`known_cluster`], [`location`], [`resolver`], [`ssh_key`] | clusters of a cloud, the calling machine, its name servers, keys for all machines; a trait of each |
//! | [`dns_name`] | which texts are names of Nodes and domains |
//! | [`provider_id`] | reading `spec.providerID` |
//! | [`read_only`] | a cloud that cannot be changed, for dry runs |
//! | [`outside`] | what a provider may read of the cluster, and the Events it may send |

pub mod cloud;
pub mod dns_name;
pub mod failure;
pub mod gated;
pub mod gated_volumes;
pub mod instance;
pub mod known_cluster;
pub mod load_balancer;
pub mod location;
pub mod node;
pub mod outside;
#[cfg(test)]
mod properties;
pub mod provider_id;
pub mod read_only;
pub mod resolver;
pub mod route;
pub mod service;
pub mod ssh_key;
pub mod tagging;
pub mod volume;
pub mod volume_cloud;
pub mod volume_labels;
pub mod volume_secrets;

pub use cloud::{Abilities, Answer, Cloud, ProviderIdentity, VolumeAbilities};
pub use failure::{CloudError, Failure, FaultKind, ProviderFault, Reason, Retry};
pub use gated::{Gate, Gated, PlannedWrite};
pub use gated_volumes::{GatedVolumes, VolumeWrite};
pub use instance::{Evidence, Instance, Presence};
pub use known_cluster::{KnownCluster, KnownClusters};
pub use load_balancer::{
    AnnotationChange, Balancer, MAX_TARGET_UPDATES, RemainingWork, Target, TargetUpdate, short_list,
};
pub use location::{Location, MachineLocation};
pub use node::{Address, AddressKind, NodeRef};
pub use outside::{ClusterNode, ClusterView, EventKind, EventSink, ObjectEvent, Subject};
pub use provider_id::ProviderId;
pub use read_only::{ReadOnly, Telling};
pub use resolver::{DnsScrubber, Resolver};
pub use route::{NewRoute, Route, RouteOutcome, RouteTokens};
pub use service::{Endpoint, Ingress, IpFamily, IpMode, PortStatus, Protocol, Service, ServicePort, TrafficPolicy};
pub use ssh_key::{EnsuredKey, GatedSshKeys, SshKey, SshKeyError, SshKeys};
pub use tagging::{MAX_TAGGED_NODES, TagChange, Tags};
pub use volume_cloud::VolumeCloud;
pub use volume_labels::{InTreeSource, InTreeVolume, VolumeLabels};
pub use volume_secrets::{SecretsFingerprint, VOLUME_SECRET, VolumeSecrets, VolumeSecretsError};
