//! Scenes, clouds and clients that several tests share.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(
    missing_docs,
    clippy::new_without_default,
    reason = "names and uses in the tests beside it say it"
)]

pub mod aws_scene;
pub mod browser;
pub mod csi_node_stub;
pub mod csi_process;
pub mod csi_requests;
pub mod csi_sanity;
pub mod csi_served;
pub mod csi_sidecars;
pub mod csi_stand_in;
pub mod explaining;
pub mod fake_balancers;
pub mod fake_routes;
pub mod harness;
pub mod machines_cloud;
pub mod openstack_scene;
pub mod sim_provider;
pub mod webhook_client;
