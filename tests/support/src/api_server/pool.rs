//! API servers that the tests of a file use one after the other, since starting one costs five seconds of CPU time.
//!
//! For tests whose cluster has only what they put there: Nodes, Services and what is written about them. Whoever stops a server or reads its audit log
//! starts one of its own.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::ApiServer;

/// Servers that no test has at the moment. They end with the process.
static IDLE: Mutex<Vec<ApiServer>> = Mutex::new(Vec::new());

/// Leases of the API server itself begin so.
const OWN_LEASES: &str = "apiserver-";

/// A server with an empty cluster, as long as this lives.
#[derive(Debug)]
pub struct PooledApiServer(Option<ApiServer>);

impl PooledApiServer {
    /// One that another test is done with, emptied; a new one where there is none.
    ///
    /// # Errors
    ///
    /// As [`ApiServer::start`], and when something does not go.
    pub async fn get() -> Result<Self> {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let server = match idle {
            Some(server) => {
                empty(&server).await.context("emptying a used API server")?;
                server
            }
            None => ApiServer::start().await?,
        };
        Ok(Self(Some(server)))
    }
}

impl Deref for PooledApiServer {
    type Target = ApiServer;

    fn deref(&self) -> &ApiServer {
        self.0.as_ref().expect("it is given back when this is dropped")
    }
}

impl Drop for PooledApiServer {
    fn drop(&mut self) {
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        idle.extend(self.0.take());
    }
}

/// Deletes what tests and Cloudwit have written.
async fn empty(server: &ApiServer) -> Result<()> {
    let client = server.client();
    let all = ListParams::default();
    let services: Api<Service> = Api::all(client.clone());
    let is_made_by_a_test = |service: &Service| service.name_any() != "kubernetes";
    for service in services.list(&all).await?.into_iter().filter(is_made_by_a_test) {
        let namespace = service.namespace().unwrap_or_default();
        let services: Api<Service> = Api::namespaced(client.clone(), &namespace);
        let without = json!({ "metadata": { "finalizers": null } });
        let name = service.name_any();
        // One that is being deleted goes with its last finalizer.
        let freed = services
            .patch(&name, &PatchParams::default(), &Patch::Merge(without))
            .await;
        match freed {
            // What the test before began to delete may go meanwhile.
            Err(kube::Error::Api(error)) if error.code == 404 => continue,
            freed => freed.map(drop)?,
        }
        match services.delete(&name, &DeleteParams::default()).await {
            Err(kube::Error::Api(error)) if error.code == 404 => {}
            result => result.map(drop)?,
        }
    }
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.delete_collection(&DeleteParams::default(), &all).await?;
    let events: Api<Event> = Api::all(client.clone());
    let namespaces: BTreeSet<String> = events
        .list(&all)
        .await?
        .iter()
        .filter_map(ResourceExt::namespace)
        .collect();
    for namespace in namespaces {
        let events: Api<Event> = Api::namespaced(client.clone(), &namespace);
        events.delete_collection(&DeleteParams::default(), &all).await?;
    }
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
    for lease in leases.list(&all).await?.iter().map(ResourceExt::name_any) {
        if !lease.starts_with(OWN_LEASES) {
            leases.delete(&lease, &DeleteParams::default()).await?;
        }
    }
    let left = services.list(&all).await?.into_iter().filter(is_made_by_a_test).count();
    ensure!(left == 0, "{left} Services are still there");
    ensure!(nodes.list(&all).await?.items.is_empty(), "Nodes are still there");
    Ok(())
}
