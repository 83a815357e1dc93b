//! The node controllers on a real kube-apiserver, with a cloud made of a map.

#[path = "nodes/fake_cloud.rs"]
mod fake_cloud;
#[path = "nodes/helpers.rs"]
mod helpers;
#[path = "nodes/initialisation.rs"]
mod initialisation;
#[path = "nodes/lifecycle.rs"]
mod lifecycle;
#[path = "nodes/writer.rs"]
mod writer;
