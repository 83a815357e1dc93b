//! CSI drivers of providers with volumes: one socket each, while this process leads.

use std::collections::BTreeMap;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use cloudwit_controllers::{Leadership, NodeVolumes, leading_volumes};
use cloudwit_csi::{Driver, Metrics, server};
use cloudwit_host::SwappableProvider;
use cloudwit_model::{Cloud as _, VolumeCloud as _};
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::volumes::DriverSource;

/// The path of a unix socket has at most so many bytes on Linux (`sockaddr_un`, without the zero at the end).
pub const LONGEST_PATH: usize = 107;

/// Between two tries to make a socket.
const AGAIN: Duration = Duration::from_secs(30);

/// A provider whose volumes may be served.
#[derive(Debug)]
pub struct Candidate {
    /// The provider.
    pub provider: Arc<SwappableProvider>,
    /// The operator's name for the driver; none for the provider's own.
    pub name: Option<String>,
}

/// A driver and its socket.
#[derive(Debug)]
pub struct Served {
    /// Whose volumes.
    pub provider: Arc<SwappableProvider>,
    /// The driver.
    pub driver: Driver,
    /// Where it is to listen.
    pub socket: PathBuf,
}

impl Served {
    /// What its operations are read from.
    pub fn source(&self) -> DriverSource {
        DriverSource {
            driver: self.driver.name.clone(),
            provider: self.provider.name().to_owned(),
            operations: self.driver.operations.clone(),
        }
    }
}

/// The drivers of all providers that have volumes. Needs a tokio runtime.
///
/// # Errors
///
/// When two have one name, or the path of a socket is too long.
pub async fn drivers(
    dir: &Path,
    candidates: Vec<Candidate>,
    leadership: &Leadership,
    dry_run: bool,
    registry: &mut Registry,
) -> anyhow::Result<Vec<Served>> {
    let metrics = Metrics::register(registry);
    let (mut served, mut owners) = (Vec::new(), BTreeMap::new());
    for Candidate { provider, name } in candidates {
        let owner = provider.name().to_owned();
        if !provider.abilities().volumes.basic {
            info!(provider = owner, "no CSI driver: the provider does not export volumes");
            continue;
        }
        let name = match name {
            Some(name) => name,
            None => match provider.volume_driver().await {
                Ok(described) => described.name,
                Err(error) => {
                    // The others work on.
                    error!(provider = owner, %error, "no CSI driver: failed to describe volumes; restart after a fix");
                    continue;
                }
            },
        };
        if let Some(wrong) = wrong_name(&name) {
            bail!("provider {owner:?}: its CSI driver name {wrong}; set csiDriverName in its settings");
        }
        if let Some(other) = owners.insert(name.clone(), owner.clone()) {
            bail!(
                "providers {other:?} and {owner:?} both serve the CSI driver {name}; set csiDriverName for one of them"
            );
        }
        let socket = dir.join(format!("{name}.sock"));
        let length = socket.as_os_str().len();
        if length > LONGEST_PATH {
            bail!(
                "the socket {} has {length} bytes in its path, at most {LONGEST_PATH} are possible; choose a shorter --csi-socket-dir",
                socket.display()
            );
        }
        let cloud = leading_volumes(provider.clone(), leadership.clone(), dry_run);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let driver = Driver::new(cloud, Some(name), version, metrics.clone()).await?;
        served.push(Served {
            provider,
            driver,
            socket,
        });
    }
    Ok(served)
}

/// Drivers for the CSI annotation, by the provider's name.
pub fn of_nodes(served: &[Served]) -> BTreeMap<String, NodeVolumes> {
    let volumes = |served: &Served| NodeVolumes {
        driver: served.driver.name.clone(),
        cloud: served.provider.clone(),
    };
    served
        .iter()
        .map(|served| (served.provider.name().to_owned(), volumes(served)))
        .collect()
}

/// Listens while this process leads, until shutdown. A socket that cannot be made is tried again.
pub async fn serve(served: Served, leadership: Leadership, shutdown: CancellationToken) {
    let Served { driver, socket, .. } = served;
    leadership.begun().await;
    loop {
        let over = async {
            tokio::select! {
                () = shutdown.cancelled() => {}
                _ = leadership.while_it_lasts(pending::<()>()) => {}
            }
        };
        info!(driver = driver.name, socket = %socket.display(), "serving CSI driver");
        match server::serve(driver.clone(), &socket, over).await {
            Ok(()) => return,
            Err(error) => warn!(driver = driver.name, %error, "CSI driver not served; trying again in {AGAIN:?}"),
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
}

/// What is wrong with the name of a driver: the interface allows at most 63 characters, Kubernetes a DNS subdomain (the CSIDriver has the name).
pub fn wrong_name(name: &str) -> Option<String> {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        label.bytes().all(|byte| inner(byte) || byte == b'-')
            && label.bytes().next().is_some_and(inner)
            && label.bytes().last().is_some_and(inner)
    };
    let fits = name.len() <= 63 && name.split('.').all(is_label);
    let wrong = || {
        format!(
            "{name:?} is not a valid driver name; use at most 63 lower-case letters, digits, '-' and '.', such as disks.csi.example.com"
        )
    };
    (!fits).then(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_names_are_those_of_the_interface() {
        for good in ["ebs.csi.aws.com", "x", "disk.csi.azure.com", "a-1"] {
            assert_eq!(wrong_name(good), None);
        }
        for bad in ["", ".a", "a-", "a/b", "ä", "A", "a..b", "a.-b", &"a".repeat(64)] {
            assert!(wrong_name(bad).is_some(), "{bad:?}");
        }
    }
}
