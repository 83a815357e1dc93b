//! What tests that cross crates share.
//!
//! | module | what it is about |
//! | ------ | ---------------- |
//! | [`api_server`] | a real kube-apiserver, one for each test file, or used by one test after the other |
//! | [`clouds`] | the clouds: servers by third parties, and stand-ins where there is none |
//! | [`files`] | what Cloudwit is told about each of them |
//! | [`programs`] | the binary `cloudwit`, provider components, other programs, and processes that end when we do |
//! | [`scenes`] | all of it together: a cluster, a cloud, and Cloudwit between them |
//! | [`gate`] | a proxy that stops requests at chosen points, and what goes wrong there |
//! | [`authority`] | certificates for servers and clients |
//! | [`wait`] | waits for a condition and says what was missing |
//! | [`objects`] | Nodes as kubelet registers them, and Services |
//! | [`foreign_events`] | what the API server says about Services by itself |

pub mod api_server;
pub mod authority;
pub mod clouds;
pub mod files;
pub mod foreign_events;
pub mod gate;
pub mod objects;
pub mod programs;
pub mod scenes;
pub mod wait;

pub use api_server::ApiServer;
pub use objects::{NodeBuilder, ServiceBuilder};
pub use wait::{eventually, within};
