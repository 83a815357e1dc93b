//! Explanations of PersistentVolumes and claims, from the object and this process's operations.

use std::time::Duration;

use cloudwit_controllers::report::explain::Statement;
use cloudwit_controllers::{Explanation, Leadership};
use cloudwit_csi::Subject;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::{Api, Client};
use tokio::time::timeout;

use crate::volumes::{DriverSource, sentences};

/// The API server answers at once or not at all: a user waits for the page.
const ANSWER: Duration = Duration::from_secs(3);

/// Who says what the operations do.
const CSI: &str = "csi";

/// Answers about volumes; clones share it.
#[derive(Clone)]
pub struct VolumeExplain {
    client: Client,
    drivers: Vec<DriverSource>,
    leadership: Leadership,
}

impl std::fmt::Debug for VolumeExplain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VolumeExplain").finish_non_exhaustive()
    }
}

impl VolumeExplain {
    /// Over these drivers; objects are read with the client's rights.
    pub fn new(client: Client, drivers: Vec<DriverSource>, leadership: Leadership) -> Self {
        Self {
            client,
            drivers,
            leadership,
        }
    }

    /// Whether this process has something to say: only the leader serves drivers.
    pub fn is_ready(&self) -> bool {
        self.leadership.is_leading()
    }

    /// All about a PersistentVolume; none when there is none of that name. The error says why it could not be read.
    pub async fn volume(&self, name: &str) -> Result<Option<Explanation>, String> {
        let volume = read(Api::<PersistentVolume>::all(self.client.clone()).get_opt(name)).await?;
        Ok(volume.map(|volume| Explanation {
            object: format!("PersistentVolume {name}"),
            statements: self.of_volume(&volume),
        }))
    }

    /// All about a claim: while it has no volume, about the one that is being made.
    pub async fn claim(&self, namespace: &str, name: &str) -> Result<Option<Explanation>, String> {
        let claims = Api::<PersistentVolumeClaim>::namespaced(self.client.clone(), namespace);
        let Some(claim) = read(claims.get_opt(name)).await? else {
            return Ok(None);
        };
        let mut statements = plain(sentences::claim(&claim));
        match sentences::bound_to(&claim) {
            Some(volume) => {
                let volumes = Api::<PersistentVolume>::all(self.client.clone());
                match read(volumes.get_opt(volume)).await? {
                    Some(volume) => statements.extend(self.of_driver(&volume)),
                    None => statements.extend(plain(vec![format!("has no PersistentVolume {volume} any more.")])),
                }
            }
            None => {
                let uid = claim.metadata.uid.as_deref().unwrap_or_default();
                let about = |subject: &Subject| sentences::makes(subject, uid);
                statements.extend(self.drivers.iter().flat_map(|driver| of_operations(driver, about)));
            }
        }
        Ok(Some(Explanation {
            object: format!("PersistentVolumeClaim {namespace}/{name}"),
            statements,
        }))
    }

    fn of_volume(&self, volume: &PersistentVolume) -> Vec<Statement> {
        let mut statements = plain(sentences::volume(volume));
        statements.extend(self.of_driver(volume));
        statements
    }

    fn of_driver(&self, volume: &PersistentVolume) -> Vec<Statement> {
        let Some((driver, handle)) = sentences::of_driver(volume) else {
            return Vec::new();
        };
        let Some(own) = self.drivers.iter().find(|own| own.driver == driver) else {
            let text = format!("is of driver {driver}, which this Cloudwit does not serve.");
            return vec![Statement { controller: CSI, text }];
        };
        of_operations(own, |subject| sentences::is_about(subject, handle))
    }
}

fn of_operations(driver: &DriverSource, is_about: impl Fn(&Subject) -> bool) -> Vec<Statement> {
    let (running, failed) = (driver.operations.all(), driver.operations.failures());
    let said = sentences::operations(&running, &failed, is_about).into_iter();
    said.map(|text| Statement { controller: CSI, text }).collect()
}

fn plain(said: Vec<String>) -> Vec<Statement> {
    said.into_iter()
        .map(|text| Statement { controller: "", text })
        .collect()
}

async fn read<T>(asked: impl Future<Output = kube::Result<T>>) -> Result<T, String> {
    match timeout(ANSWER, asked).await {
        Ok(Ok(object)) => Ok(object),
        Ok(Err(error)) => Err(format!(
            "The API server does not give it: {}",
            cloudwit_controllers::kube::rights::with_advice(&error.to_string())
        )),
        Err(_) => Err(format!(
            "The API server has not answered within {} s.",
            ANSWER.as_secs()
        )),
    }
}
