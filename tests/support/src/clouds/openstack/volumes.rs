//! Volumes in a test's [project](OpenStackProject), as an administrator sees them, and what happens to them in Cinder's backends.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::clouds::openstack::project::OpenStackProject;
use crate::clouds::openstack::{OpenStackCloud, Service};

/// The host that servers are on which take volumes, for [`server_with`](OpenStackProject::server_with): `{"host": HOST}`.
pub const HOST: &str = "compute";

/// How many volumes a server takes, its own disk among them.
pub const MOST_DISKS: usize = 16;

impl OpenStackProject<'_> {
    /// The volumes of this project, as Cinder lists them.
    ///
    /// # Errors
    ///
    /// When Cinder does not answer.
    pub async fn volumes(&self) -> Result<Vec<Value>> {
        self.things("volumes").await
    }

    /// The snapshots of this project, as Cinder lists them.
    ///
    /// # Errors
    ///
    /// When Cinder does not answer.
    pub async fn snapshots(&self) -> Result<Vec<Value>> {
        self.things("snapshots").await
    }

    async fn things(&self, name: &str) -> Result<Vec<Value>> {
        let path = format!("/v3/{name}/detail?all_tenants=1&project_id={}", self.id);
        let answer = self.cloud.get(Service::BlockStorage, &path).await?;
        let things = answer[name].as_array();
        Ok(things.with_context(|| format!("no {name} in {answer}"))?.clone())
    }

    /// Changes of volumes of this project take so many seconds (0.2 before); without a number, they never end.
    ///
    /// # Errors
    ///
    /// When Cinder does not answer.
    pub async fn volume_pace(&self, seconds: Option<f64>) -> Result<()> {
        let asked = json!({ "project": self.id, "seconds": seconds });
        self.cloud.stage(Service::BlockStorage, "pace", asked).await.map(drop)
    }

    /// The next so many changes of volumes of this project fail in the backend.
    ///
    /// # Errors
    ///
    /// When Cinder does not answer.
    pub async fn fail_volumes(&self, times: u32) -> Result<()> {
        let asked = json!({ "project": self.id, "times": times });
        self.cloud.stage(Service::BlockStorage, "fate", asked).await.map(drop)
    }

    /// Deletes a volume at once, whatever has it, as somebody else does.
    ///
    /// # Errors
    ///
    /// When there is no such volume.
    pub async fn vanish_volume(&self, volume: &str) -> Result<()> {
        let asked = json!({ "volume": volume });
        self.cloud.stage(Service::BlockStorage, "vanish", asked).await.map(drop)
    }

    /// Sets the status of a volume, such as `error`, as an administrator does.
    ///
    /// # Errors
    ///
    /// When there is no such volume.
    pub async fn volume_status(&self, volume: &str, status: &str) -> Result<()> {
        let path = format!("/v3/volumes/{volume}/action");
        let reset = json!({ "os-reset_status": { "status": status } });
        self.cloud.post(Service::BlockStorage, &path, reset).await.map(drop)
    }
}

impl OpenStackCloud {
    /// Cinder has started, which it does when it is first asked, and Nova has asked it for something, so that its first attachment takes no longer than others.
    ///
    /// # Errors
    ///
    /// When one of the two does not answer.
    pub async fn volumes_ready(&self) -> Result<()> {
        self.stage(Service::BlockStorage, "calls", json!({})).await?;
        self.stage(Service::Compute, "meet-cinder", json!({})).await.map(drop)
    }

    /// A type of volumes that several servers may have, of a name that no other test uses.
    ///
    /// # Errors
    ///
    /// When there is such a type already.
    pub async fn shared_volume_type(&self, name: &str) -> Result<()> {
        self.volume_type(name, json!({ "multiattach": "<is> True" })).await
    }

    /// A type of volumes with these specifications, of a name that no other test uses. A backend can change a volume's type to one with the same specifications.
    ///
    /// # Errors
    ///
    /// When there is such a type already.
    pub async fn volume_type(&self, name: &str, specs: Value) -> Result<()> {
        let kind = json!({ "volume_type": { "name": name, "extra_specs": specs } });
        self.post(Service::BlockStorage, "/v3/types", kind).await.map(drop)
    }
}
