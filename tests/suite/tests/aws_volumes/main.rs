//! Volumes of the provider `aws` as an operator runs it: moto, which checks every signature against the policy we ship, and the binary with the built component
//! in front of it; asked as Kubernetes' sidecars ask, by them, and by csi-sanity.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use cloudwit_suite::common::aws_scene as scene;
use cloudwit_suite::common::csi_node_stub as node_stub;
use cloudwit_suite::common::csi_requests as sidecar_requests;
use cloudwit_suite::common::csi_sanity as sanity_run;
use cloudwit_suite::common::csi_served as served;
use cloudwit_suite::common::csi_sidecars as running;
use cloudwit_suite::common::webhook_client as registration;
mod bad_days;
mod driver;
mod in_tree;
mod life;
mod sanity;
