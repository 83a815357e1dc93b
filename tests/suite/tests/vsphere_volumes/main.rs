//! Volumes of the provider `vsphere` as an operator runs it: Cloud Native Storage of vcsim (`tests/vcsim`) behind TLS, and the binary with the built component in
//! front of it; asked as Kubernetes' sidecars ask, and by csi-sanity.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use cloudwit_suite::common::csi_node_stub as node_stub;
use cloudwit_suite::common::csi_requests as sidecar_requests;
use cloudwit_suite::common::csi_sanity as sanity_run;
use cloudwit_suite::common::csi_served as served;
mod bad_days;
mod driver;
mod life;
mod restart;
mod sanity;
