//! What tests that cross crates share.
//!
//! | file | what it is about |
//! | ---- | ---------------- |
//! | [`api_server`] | a real kube-apiserver, one for each test file |
//! | [`api_pool`] | such servers, used by one test after the other |
//! | [`kubebuilder`] | the same from the binaries in `KUBEBUILDER_ASSETS` |
//! | [`child`] | a process that ends when we do, with its output in a log |
//! | [`deployment`] | Cloudwit with the provider `sim`, and the simulated cloud, as processes |
//! | [`gate`] | a proxy that stops requests at chosen points |
//! | [`fault`] | what goes wrong at such a point |
//! | [`tls`] | the proxy behind a certificate |
//! | [`authority`] | certificates for servers and clients |
//! | [`installation`] | Cloudwit on a cluster with the provider of a real cloud |
//! | [`rig`] | all of it together: API server, cloud, both behind gates, and Cloudwit's process to kill and start again |
//! | [`guests`] | provider components, built when they are needed |
//! | [`port`] | ports that stay free until the program that is told them listens |
//! | [`mimic`] | Rackspace's cloud by Rackspace itself |
//! | [`moto`] | AWS by a third party |
//! | [`aws_files`] | what Cloudwit is told about a cluster there |
//! | [`oci_registry`] | an OCI registry by a third party |
//! | [`openstack_cloud`] | OpenStack by a third party |
//! | [`openstack_project`] | what a test has in it: an account, networks, load balancers |
//! | [`openstack_servers`] | and servers |
//! | [`openstack_files`] | what Cloudwit is told about such a project |
//! | [`peer`] | upstream's controllers in Go on the simulated cloud |
//! | [`programs`] | the binary `cloudwit` |
//! | [`alibaba_files`] | what Cloudwit is told about the stand-in for Alibaba Cloud |
//! | [`azure_files`] | what Cloudwit is told about the stand-in for Azure |
//! | [`baidu_files`] | what Cloudwit is told about the stand-in for Baidu AI Cloud |
//! | [`cloudstack_files`] | what Cloudwit is told about the stand-in for CloudStack |
//! | [`gce_files`] | what Cloudwit is told about the stand-in for Compute Engine |
//! | [`small_cloud_files`] | what Cloudwit is told about the stand-ins of clouds with machines alone |
//! | [`stand_in`] | clouds for which there is no third-party server |
//! | [`stand_in_scene`] | a cluster, one of them, and Cloudwit between them |
//! | [`vcsim`] | vSphere by a third party |
//! | [`vsphere_files`] | what Cloudwit is told about it |
//! | [`site`] | API server, cloud and the files to start Cloudwit from |
//! | [`wait`] | waits for a condition and says what was missing |
//! | [`objects`] | Nodes as kubelet registers them, and Services |
//! | [`foreign_events`] | what the API server says about Services by itself |

pub mod alibaba_files;
pub mod api_pool;
pub mod api_server;
pub mod authority;
pub mod aws_files;
pub mod azure_files;
pub mod baidu_files;
pub mod child;
pub mod cloud_command;
pub mod cloudstack_files;
pub mod deployment;
pub mod fault;
pub mod foreign_events;
pub mod gate;
pub mod gce_files;
pub mod guests;
pub mod installation;
pub mod kubebuilder;
pub mod mimic;
pub mod moto;
pub mod objects;
pub mod oci_registry;
pub mod openstack_cloud;
pub mod openstack_files;
pub mod openstack_project;
pub mod openstack_servers;
pub mod openstack_volumes;
pub mod peer;
pub mod port;
pub mod programs;
pub mod rig;
pub mod site;
pub mod small_cloud_files;
pub mod stand_in;
pub mod stand_in_scene;
pub mod tls;
pub mod vcsim;
pub mod vsphere_files;
pub mod wait;

pub use api_server::ApiServer;
pub use objects::{NodeBuilder, ServiceBuilder};
pub use wait::{eventually, within};
