//! `cloudwit csi` as a process, with a provider's component on its cloud.

use std::path::PathBuf;
use std::time::Duration;

use cloudwit_csi::proto::CreateVolumeRequest;
use cloudwit_csi::proto::controller_client::ControllerClient;
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::programs::guests;
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment};
use cloudwit_test_support::{eventually, programs};

use crate::common::csi_served::{Controller, dial};

/// How long anything may take on a busy machine.
pub const SOON: Duration = Duration::from_secs(120);

/// The driver's process; it ends when this is dropped.
pub struct CsiProcess {
    /// None while it is started again.
    process: Option<Child>,
    program: PathBuf,
    arguments: Vec<String>,
    socket: PathBuf,
    folder: tempfile::TempDir,
}

impl CsiProcess {
    /// The provider of this name, with what `files` writes about its cloud.
    pub async fn start(name: &'static str, files: impl AsyncFnOnce(&Deployment) -> CloudFiles) -> Self {
        let built = tokio::task::spawn_blocking(move || (programs::cloudwit(), guests::provider(name))).await;
        let (program, component) = built.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let deployment =
            Deployment::of(name, &folder.path().join("run"), program.parent().unwrap(), &component).unwrap();
        let files = files(&deployment).await;
        let config = deployment.write("cloud-config", &files.config).unwrap();
        let settings = deployment.write("settings.yaml", &files.settings).unwrap();
        let socket = folder.path().join("csi.sock");
        let cache = xtask::workspace::target().join("tmp/code-cache");
        let arguments = vec![
            "csi".to_owned(),
            component.display().to_string(),
            format!("--cloud-config={}", config.display()),
            format!("--settings={}", settings.display()),
            format!("--endpoint={}", socket.display()),
            format!("--cache-dir={}", cache.display()),
        ];
        let mut this = Self {
            process: None,
            program,
            arguments,
            socket,
            folder,
        };
        this.run().await;
        this
    }

    async fn run(&mut self) {
        let log = self.folder.path().join("csi.log");
        let process = Child::start(&self.program, &self.arguments, &log).unwrap();
        eventually(SOON, "the driver listens", || async {
            let connected = tokio::net::UnixStream::connect(&self.socket).await;
            connected
                .map(drop)
                .map_err(|error| format!("{error}\n{}", process.log_end()))
        })
        .await;
        self.process = Some(process);
    }

    /// Kills the process in the middle of whatever it does, and starts it again.
    pub async fn restart(&mut self) {
        let process = self.process.take().unwrap();
        tokio::task::spawn_blocking(move || process.kill())
            .await
            .unwrap()
            .unwrap();
        drop(std::fs::remove_file(&self.socket));
        self.run().await;
    }

    /// A client of the controller service.
    pub async fn client(&self) -> Controller {
        ControllerClient::new(dial(self.socket.clone()).await)
    }

    /// The end of the process's log.
    pub fn log_end(&self) -> String {
        self.process.as_ref().map(Child::log_end).unwrap_or_default()
    }
}

/// The id of this volume, made.
pub async fn made(client: &mut Controller, new: CreateVolumeRequest) -> String {
    let answer = client.create_volume(new).await.unwrap().into_inner();
    answer.volume.unwrap().volume_id
}
