//! Load balancers of the provider `rackspace`: the real kube-apiserver, mimic (Rackspace's own simulator of its cloud) behind a gate, and the binary
//! with the built component between them.
//!
//! | module | what it shows |
//! | ------ | ------------- |
//! | `life` | two ports on one virtual IP, nodes and ports that change, source ranges, affinity, monitors, ServiceNet, shared addresses, a restart |
//! | `bad_days` | PENDING_UPDATE, 422, ERROR, half made, deleted outside, limits, wrong annotations |
//! | `crashes` | killed in the middle of making and deleting; answers that are lost |
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bad_days;
mod crashes;
mod life;
mod stage;
