//! What hurt users of cloud controllers elsewhere does not hurt here. Each test replays one public issue or pull request and has its
//! name; `docs/reference/user-pain.md` is the list.
//!
//! Most run on the whole stack: a real kube-apiserver, the controllers, the host, the component `sim`, and the simulated cloud over
//! HTTP.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use cloudwit_suite::common::harness;
use cloudwit_suite::common::sim_provider;
mod balancers;
mod healthy_node_deleted;
mod quota_burnt;
mod stack;
mod stays_tainted;
