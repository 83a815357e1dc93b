//! What an operator writes to have Cloudwit work on each cloud: the cloud config, the grants and the secrets.

pub mod alibaba;
pub mod aws;
pub mod azure;
pub mod baidu;
pub mod cloudstack;
pub mod gce;
pub mod openstack;
pub mod small_clouds;
pub mod vsphere;
