//! What hurt users of cloud controllers elsewhere does not hurt here. Each test replays one public issue or pull request and has its
//! name; `docs/reference/user-pain.md` is the list.
//!
//! Most run on the whole stack: a real kube-apiserver, the controllers, the host, the component `sim`, and the simulated cloud over
//! HTTP.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "user_pain/balancers.rs"]
mod balancers;
#[path = "common/harness.rs"]
mod harness;
#[path = "user_pain/healthy_node_deleted.rs"]
mod healthy_node_deleted;
#[path = "user_pain/quota_burnt.rs"]
mod quota_burnt;
#[path = "common/sim_provider.rs"]
mod sim_provider;
#[path = "user_pain/stack.rs"]
mod stack;
#[path = "user_pain/stays_tainted.rs"]
mod stays_tainted;
