//! `cloudwit csi` as a process, with a provider's component on the stand-in of its cloud.

use std::path::PathBuf;
use std::time::Duration;

use cloudwit_csi::proto::controller_client::ControllerClient;
use cloudwit_csi::proto::*;
use cloudwit_host::destination::Scheme;
use cloudwit_host::grants::{Grants, HttpGrant};
use cloudwit_host::{HostOptions, Provider, ProviderSettings};
use cloudwit_test_support::child::Child;
use cloudwit_test_support::deployment::{CloudFiles, Deployment};
use cloudwit_test_support::stand_in::StandIn;
use cloudwit_test_support::{eventually, guests, programs};
use serde_json::Value;
use tonic::{Code, Status};

use crate::common::csi_served::{Controller, dial};
use crate::hosting::{Hosting, settings};

/// How long anything may take on a busy machine.
const SOON: Duration = Duration::from_secs(120);

/// The driver's process, and the cloud that it has to do with. It ends before the cloud.
pub struct StandInDriver {
    process: Child,
    socket: PathBuf,
    pub cloud: StandIn,
    _folder: tempfile::TempDir,
}

impl StandInDriver {
    /// The provider of this name on this cloud, with what `files` writes about it.
    pub async fn start(
        name: &'static str,
        cloud: StandIn,
        files: impl AsyncFnOnce(&StandIn, &Deployment) -> CloudFiles,
    ) -> Self {
        let built = tokio::task::spawn_blocking(move || (programs::cloudwit(), guests::provider(name))).await;
        let (program, component) = built.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let deployment =
            Deployment::of(name, &folder.path().join("run"), program.parent().unwrap(), &component).unwrap();
        let files = files(&cloud, &deployment).await;
        let config = deployment.write("cloud-config", &files.config).unwrap();
        let settings = deployment.write("settings.yaml", &files.settings).unwrap();
        let socket = folder.path().join("csi.sock");
        let cache = xtask::workspace::target().join("tmp/code-cache");
        let arguments = [
            "csi".to_owned(),
            component.display().to_string(),
            format!("--cloud-config={}", config.display()),
            format!("--settings={}", settings.display()),
            format!("--endpoint={}", socket.display()),
            format!("--cache-dir={}", cache.display()),
        ];
        let process = Child::start(&program, &arguments, &folder.path().join("csi.log")).unwrap();
        eventually(SOON, "the driver listens", || async {
            let connected = tokio::net::UnixStream::connect(&socket).await;
            connected
                .map(drop)
                .map_err(|error| format!("{error}\n{}", process.log_end()))
        })
        .await;
        Self {
            process,
            socket,
            cloud,
            _folder: folder,
        }
    }

    /// A client of the controller service.
    pub async fn client(&self) -> Controller {
        ControllerClient::new(dial(self.socket.clone()).await)
    }

    /// The end of the process's log.
    pub fn log_end(&self) -> String {
        self.process.log_end()
    }

    /// What only an administrator does.
    pub async fn does(&self, what: &str, arguments: Value) -> Value {
        self.cloud.call(what, arguments).await.unwrap()
    }

    /// How many calls have this in their names. None of them met a mistake of the stand-in.
    pub async fn calls(&self, part: &str) -> usize {
        let calls = self.cloud.calls().await.unwrap();
        assert!(
            calls.iter().all(|call| call.status != 599),
            "the stand-in made a mistake"
        );
        calls.iter().filter(|call| call.name.contains(part)).count()
    }
}

/// The component in the real host, for a stand-in that needs no secret.
pub async fn load(name: &'static str, cloud: &StandIn, config_text: String) -> Provider {
    let (address, port) = cloud.url().strip_prefix("http://").unwrap().rsplit_once(':').unwrap();
    let grants = Grants {
        http: vec![HttpGrant {
            scheme: Scheme::Http,
            host: address.to_owned(),
            port: Some(port.parse().unwrap()),
            allow_loopback: true,
            ..HttpGrant::default()
        }],
        ..Grants::default()
    };
    let settings = ProviderSettings {
        config_text,
        grants,
        ..settings()
    };
    let component = tokio::task::spawn_blocking(move || guests::provider(name))
        .await
        .unwrap();
    let hosting = Hosting::new(HostOptions::default());
    hosting.load_file(&component, settings).await.unwrap()
}

/// There is no room for this volume. The first answer may be that what was begun has failed; a fresh attempt then says that there is no room.
pub async fn is_exhausted(client: &mut Controller, new: &CreateVolumeRequest) -> Status {
    let first = client.create_volume(new.clone()).await.unwrap_err();
    if first.code() != Code::Aborted {
        return first;
    }
    client.create_volume(new.clone()).await.unwrap_err()
}

pub fn delete(volume_id: &str) -> DeleteVolumeRequest {
    DeleteVolumeRequest {
        volume_id: volume_id.into(),
        ..Default::default()
    }
}
