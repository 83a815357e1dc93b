//! `/v1/metadata`, `/v1/ssh-keys` and `/v1/clusters`.
//!
//! | request | answer |
//! | ------- | ------ |
//! | `GET /v1/metadata?hostname=NAME` | the machine of this name; without a token, as clouds' metadata services answer |
//! | `GET`, `POST /v1/ssh-keys` | keys of all machines; one is added, 200 when it is there |
//! | `GET /v1/clusters` | a page of clusters |
//!
//! A real metadata service knows who asks by the address; here all machines have one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::rejection::JsonRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use crate::Shared;
use crate::api::{Answer, Cloud, ListQuery};
use crate::cloud::{Refusal, refuse};
use crate::faults::Operation;
use crate::wire::{Machine, Page};

/// Most keys of all machines.
const MAX_KEYS: usize = 1_000;

/// A key that all machines take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MachineKey {
    /// Whom it lets in.
    pub user: String,
    /// As a line of `authorized_keys`.
    pub public_key: String,
}

/// A cluster that the cloud manages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagedCluster {
    /// Its name.
    pub name: String,
    /// Where its control plane is; none while it is being built.
    pub host: Option<String>,
    /// The port there.
    pub port: Option<u16>,
}

/// Keys and clusters.
#[derive(Default)]
pub(crate) struct Small(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    keys: Vec<MachineKey>,
    clusters: Vec<ManagedCluster>,
}

impl Small {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // No method leaves it half changed, so a panic of another thread does not matter.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn keys(&self) -> Vec<MachineKey> {
        self.inner().keys.clone()
    }

    /// Adds a key; whether it was new.
    fn add_key(&self, key: MachineKey) -> Result<bool, Refusal> {
        let keys = &mut self.inner().keys;
        if keys.contains(&key) {
            return Ok(false);
        }
        if keys.len() >= MAX_KEYS {
            return refuse(507, format!("there are {MAX_KEYS} keys already"));
        }
        keys.push(key);
        Ok(true)
    }

    pub(crate) fn remove_keys(&self) {
        self.inner().keys.clear();
    }

    pub(crate) fn set_clusters(&self, clusters: Vec<ManagedCluster>) {
        self.inner().clusters = clusters;
    }
}

pub(crate) fn routes(
    router: Router<Arc<Shared>>,
    on: impl Fn(Operation, MethodRouter<Arc<Shared>>) -> MethodRouter<Arc<Shared>>,
) -> Router<Arc<Shared>> {
    router
        .route("/v1/metadata", on(Operation::GetMetadata, get(metadata)))
        .route(
            "/v1/ssh-keys",
            on(Operation::ListSshKeys, get(keys)).merge(on(Operation::AddSshKey, post(add_key))),
        )
        .route("/v1/clusters", on(Operation::ListClusters, get(clusters)))
}

#[derive(Debug, Deserialize)]
struct Asking {
    hostname: String,
}

async fn metadata(State(shared): Cloud, Query(asking): Query<Asking>) -> Answer<Machine> {
    let mut machines = shared.cloud.machines();
    machines.retain(|machine| machine.name == asking.hostname);
    machines.pop().map(Json).ok_or_else(|| Refusal {
        status: 404,
        message: format!("this is no machine of this cloud: {:?}", asking.hostname),
    })
}

async fn keys(State(shared): Cloud, Query(query): Query<ListQuery>) -> Answer<Page<MachineKey>> {
    query.page(shared.small.keys())
}

async fn add_key(
    State(shared): Cloud,
    key: Result<Json<MachineKey>, JsonRejection>,
) -> Result<(StatusCode, Json<MachineKey>), Refusal> {
    let key = key?.0;
    let status = match shared.small.add_key(key.clone())? {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    Ok((status, Json(key)))
}

async fn clusters(State(shared): Cloud, Query(query): Query<ListQuery>) -> Answer<Page<ManagedCluster>> {
    let clusters = shared.small.inner().clusters.clone();
    query.page(clusters)
}
