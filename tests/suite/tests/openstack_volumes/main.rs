//! Volumes of the provider `openstack` as an operator runs it: the real Cinder and Nova, and the binary with the built component in front of them; asked as
//! Kubernetes' sidecars ask, and by csi-sanity.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use cloudwit_suite::common::csi_requests as sidecar_requests;
use cloudwit_suite::common::csi_served as served;
mod bad_days;
mod driver;
mod life;
mod sanity;
