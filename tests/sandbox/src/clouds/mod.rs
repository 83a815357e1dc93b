//! What the story needs of a cloud: machines to make and to delete, and a look at what Cloudwit made there. One file for each cloud.

pub(crate) mod aws;
pub(crate) mod openstack;
pub(crate) mod rackspace;
pub(crate) mod sim;
pub(crate) mod stand_ins;
pub(crate) mod vsphere;

use std::path::PathBuf;

use anyhow::{Context, Result};
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment};
use serde_json::Value;

/// A machine, and what the cloud will say about its Node.
#[derive(Debug, Clone)]
pub struct Machine {
    /// As people call it: `m-1`, `i-0123`.
    pub id: String,
    /// The name of its Node.
    pub node: String,
    /// What its firmware reports.
    pub system_uuid: String,
    /// What kubelet gets as `--node-ip`.
    pub ip: String,
    /// As it will stand in the Node.
    pub provider_id: String,
    /// Labels the Node will have.
    pub labels: Vec<(&'static str, String)>,
    /// Addresses the Node will have.
    pub addresses: Vec<String>,
}

/// A route that is in use.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Where to: a Pod range.
    pub destination: String,
    /// By way of the machine with this [`Machine::id`] or [`Machine::ip`].
    pub by: String,
}

/// A cloud that runs.
pub trait Cloud: Sized {
    /// The name of its provider.
    const PROVIDER: &'static str;

    /// What it is called.
    const NAME: &'static str;

    /// Starts it; returns when it answers.
    async fn start(deployment: &Deployment) -> Result<Self>;

    /// Where it answers.
    fn url(&self) -> String;

    /// Where its log is.
    fn log(&self) -> PathBuf;

    /// Whether it still runs.
    fn runs(&self) -> bool;

    /// What Cloudwit is told about it.
    async fn files(&self, deployment: &Deployment) -> Result<CloudFiles>;

    /// How to look at it by hand: a line for each way.
    fn looks(&self) -> Vec<String>;

    /// Makes the machine with this number, counted from 1.
    async fn create_machine(&self, number: u8) -> Result<Machine>;

    /// Deletes a machine.
    async fn delete_machine(&self, machine: &Machine) -> Result<()>;

    /// Routes to Pods; `None` when Cloudwit makes none there.
    async fn routes(&self) -> Result<Option<Vec<Route>>>;

    /// For each load balancer, how many machines are behind it; `None` when Cloudwit makes none there.
    async fn balancers(&self) -> Result<Option<Vec<usize>>>;
}

/// The list in a cloud's answer.
pub fn list<'a>(answer: &'a Value, name: &str) -> Result<&'a Vec<Value>> {
    answer[name]
        .as_array()
        .with_context(|| format!("there is no list {name} in {answer}"))
}
