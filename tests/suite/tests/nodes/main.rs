//! The node controllers on a real kube-apiserver, with a cloud made of a map.

mod fake_cloud;
mod helpers;
mod initialisation;
mod lifecycle;
mod writer;
