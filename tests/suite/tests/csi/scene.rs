//! A driver on a socket, in front of a simulated cloud.

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::Arc;

use cloudwit_sim_cloud::{SimCloud, SimCloudOptions};
use tonic::transport::{Channel, Endpoint};

use crate::served::Served;
use crate::sim_provider::load_sim;

pub use crate::served::{Controller, dial};

/// The driver; it goes when this is dropped.
pub struct Scene {
    pub cloud: Arc<SimCloud>,
    served: Served,
    _secrets: Box<dyn Send>,
}

impl Deref for Scene {
    type Target = Served;

    fn deref(&self) -> &Served {
        &self.served
    }
}

impl DerefMut for Scene {
    fn deref_mut(&mut self) -> &mut Served {
        &mut self.served
    }
}

impl Scene {
    /// With so many machines in three zones.
    pub async fn start(machines: usize) -> Self {
        let cloud = Arc::new(SimCloud::start(SimCloudOptions::default()).await.unwrap());
        cloud.add_numbered_machines("node", machines);
        let loaded = load_sim(&cloud, "sim-token", |_| {}).await;
        Self {
            cloud,
            served: Served::start(loaded.provider.clone()).await,
            _secrets: Box::new(loaded),
        }
    }
}

/// A connection to a unix socket with the authority that kubelet sends when it registers a plugin: the path of the socket, escaped as grpc-go does.
pub async fn dial_to_register(path: PathBuf) -> Channel {
    let authority = path.display().to_string().replace('/', "%2F");
    let endpoint = Endpoint::from_shared(format!("http://{authority}")).unwrap();
    crate::served::connect(endpoint, path).await
}
