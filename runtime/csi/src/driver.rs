//! A driver: volumes of one cloud under one name.

use std::fmt;
use std::sync::Arc;

use cloudwit_model::volume::VolumeDriver;
use cloudwit_model::{CloudError, VolumeAbilities, VolumeCloud};

use crate::engine::operations::Operations;
use crate::engine::steps::Steps;
use crate::metrics::Metrics;

/// What a driver is made of.
#[derive(Clone)]
pub struct Driver {
    /// The name that StorageClasses and PersistentVolumes have.
    pub name: String,
    /// Version of the process, for `GetPluginInfo`.
    pub version: String,
    /// Its operations.
    pub operations: Operations,
    pub(crate) cloud: Arc<dyn VolumeCloud>,
    pub(crate) metrics: Metrics,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Driver {
    /// A driver of this name, else of the one that the cloud gives. Needs a tokio runtime.
    ///
    /// # Errors
    ///
    /// When the provider fails to describe its volumes.
    pub async fn new(
        cloud: Arc<dyn VolumeCloud>,
        name: Option<String>,
        version: String,
        metrics: Metrics,
    ) -> Result<Self, CloudError> {
        let name = match name {
            Some(name) => name,
            None => cloud.volume_driver().await?.name,
        };
        let operations = Operations::over(Steps::start(cloud.clone()));
        let under_way = operations.clone();
        metrics.watch(&name, move || under_way.count());
        Ok(Self {
            name,
            version,
            operations,
            cloud,
            metrics,
        })
    }

    /// The provider's present description of its volumes: it may have been swapped. Under the name of this driver.
    ///
    /// # Errors
    ///
    /// When the provider fails to describe them.
    pub(crate) async fn description(&self) -> Result<VolumeDriver, CloudError> {
        let mut description = self.cloud.volume_driver().await?;
        description.name.clone_from(&self.name);
        Ok(description)
    }

    pub(crate) fn abilities(&self) -> VolumeAbilities {
        self.cloud.volume_abilities()
    }
}
